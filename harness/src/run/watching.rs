//! Steps that open, read and end watches.

use kubeproof_cases::case::{Await, Awaited, Close, End, EventPattern, Level, Watch};
use kubeproof_cases::template::{Part, Template};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::build;
use super::record::SharedWatch;
use super::resume;
use super::scope::{Ended, Flow, Scope};
use super::steps::TIME_WENT;
use crate::event::{CheckResult, Verdict};
use crate::exchange::{WatchEnd, WatchEvent};
use crate::verdict::{Mismatch, curl, describe, event_matches, failed_at};
use crate::watch::Next;

const BOOKMARK: &str = "BOOKMARK";

/// Ends without an event between them, after which a server is thought not to serve the watch.
const IDLE_RESUMPTIONS: usize = 5;

impl Scope<'_> {
    pub(super) async fn open_watch(&mut self, watch: &Watch) -> Flow {
        let mut request = watch.request.clone();
        if !request.query.iter().any(|(name, _)| name == "watch") {
            let parts = vec![Part::Text("true".to_owned())];
            request.query.push(("watch".to_owned(), Template { parts, span: request.span }));
        }
        let outgoing = match build::outgoing(&request, self.planned.subject.as_deref(), &self.values) {
            Ok(outgoing) => outgoing,
            Err(error) => return Err(self.stuck(&request.id, error.to_string())),
        };
        let open = self.session.client.watch(outgoing, self.deadline).await.keeping(&watch.keep);
        let head = open.head.clone();
        self.open(&request.id, open);
        self.bind_exchange(&request.id, &head);
        self.answered(&request.id, &head)?;
        let missing = self.capture(&request.capture, head.json());
        self.judge(&request.expect, &request.id, Some(&head), &missing);
        self.require(&missing, &request.id)
    }

    pub(super) async fn await_events(&mut self, awaited: &Await) -> Flow {
        let watch = self.opened(&awaited.watch, &awaited.id)?;
        let flow = match &awaited.what {
            Awaited::Next(patterns) => self.next_events(&watch, patterns, &awaited.id).await,
            Awaited::Until(pattern) => self.until_event(&watch, pattern, &awaited.id).await,
        };
        self.refresh_watch(&awaited.watch, &watch).await;
        flow
    }

    async fn next_events(&mut self, watch: &SharedWatch, patterns: &[EventPattern], id: &str) -> Flow {
        for pattern in patterns {
            let asked = Instant::now();
            let asks_for_bookmark = pattern.types.iter().any(|kind| kind == BOOKMARK);
            let event = loop {
                let next = self.next(watch).await;
                match next {
                    Next::Event(event) if event.kind == BOOKMARK && !asks_for_bookmark => {}
                    Next::Event(event) => break event,
                    end => return Err(self.no_event((watch, asked), pattern, id, &end, None).await),
                }
            };
            match event_matches(pattern, &event, &self.values) {
                Err(undefined) => return Err(self.stuck(id, undefined.to_string())),
                Ok(Ok(())) => self.came(watch, pattern, &event, id).await?,
                Ok(Err(mismatch)) => {
                    let mut check = self.event_check(watch, pattern, id).await;
                    check.message = format!("the next event is not the one: {}", mismatch.in_words());
                    check.actual = json!({"type": event.kind, "object": *event.object});
                    self.record.check(check);
                    return Err(Ended);
                }
            }
        }
        Ok(())
    }

    /// The next event. A server may end a watch whenever it likes; then it goes on from the last version, as with any
    /// other client.
    async fn next(&mut self, watch: &SharedWatch) -> Next {
        let mut watch = watch.lock().await;
        let mut idle = 0;
        loop {
            let before = watch.events().len();
            let asked = Instant::now();
            let next = watch.next(self.stalls_at()).await;
            if matches!(next, Next::Event(_)) {
                self.give_back(asked.elapsed());
            }
            if !matches!(next, Next::End(WatchEnd::Server)) || idle == IDLE_RESUMPTIONS {
                return next;
            }
            let Some(outgoing) = resume::outgoing(&watch) else { return next };
            let again = self.session.client.watch(outgoing, self.deadline).await;
            if !again.is_open() {
                return next;
            }
            idle = if watch.events().len() == before { idle + 1 } else { 0 };
            watch.go_on(again);
        }
    }

    /// When a watch that says nothing from now on has stalled.
    fn stalls_at(&self) -> Instant {
        let stalled = self.session.stalled_after.map(|silence| Instant::now() + silence);
        stalled.map_or(self.deadline, |stalled| stalled.min(self.deadline))
    }

    async fn until_event(&mut self, watch: &SharedWatch, pattern: &EventPattern, id: &str) -> Flow {
        let asked = Instant::now();
        let mut nearest = None;
        loop {
            let next = self.next(watch).await;
            let event = match next {
                Next::Event(event) => event,
                end => return Err(self.no_event((watch, asked), pattern, id, &end, nearest).await),
            };
            match event_matches(pattern, &event, &self.values) {
                Err(undefined) => return Err(self.stuck(id, undefined.to_string())),
                Ok(Ok(())) => return self.came(watch, pattern, &event, id).await,
                Ok(Err(mismatch)) => nearest = Some(mismatch),
            }
        }
    }

    pub(super) async fn end_watch(&mut self, end: &End) -> Flow {
        let watch = self.opened(&end.watch, &end.id)?;
        let mut check = self.own_check(&end.id, &end.watch);
        let asked = Instant::now();
        let (outcome, snapshot) = {
            let mut watch = watch.lock().await;
            // An ordinary answer in place of a stream has ended already; what it had to be is for checks to say.
            let streams = watch.head.status() == 200;
            let outcome = loop {
                match watch.next(self.stalls_at()).await {
                    Next::Event(_) => {}
                    end => break end,
                }
            };
            (streams.then_some(outcome), watch.snapshot())
        };
        if let Some(outcome) = outcome {
            check.expected = json!("the server ends the watch");
            if !matches!(outcome, Next::End(WatchEnd::Server)) {
                let (verdict, words) = self.failed_by(&outcome, asked, check.level);
                check.verdict = verdict;
                check.message = format!("the server does not end the watch: {words}");
                check.curl = Some(curl::line(&snapshot.request, &self.session.judging.server));
            }
            self.record.check(check);
        }
        self.refresh_watch(&end.watch, &watch).await;
        self.judge(&end.expect, &end.watch, Some(&snapshot), &[]);
        Ok(())
    }

    pub(super) async fn close_watch(&mut self, close: &Close) -> Flow {
        let watch = self.opened(&close.of, &close.of)?;
        watch.lock().await.close();
        self.refresh_watch(&close.of, &watch).await;
        Ok(())
    }

    fn opened(&mut self, watch: &str, id: &str) -> Result<SharedWatch, Ended> {
        match self.watch(watch) {
            Some(watch) => Ok(watch),
            None => Err(self.stuck(id, format!("the watch `{watch}` is not open here"))),
        }
    }

    async fn came(
        &mut self,
        watch: &SharedWatch,
        pattern: &EventPattern,
        event: &WatchEvent,
        id: &str,
    ) -> Flow {
        let mut check = self.event_check(watch, pattern, id).await;
        check.verdict = Verdict::Pass;
        self.record.check(check);
        let missing = self.capture(&pattern.capture, Some(&event.object));
        self.require(&missing, &pattern.id)
    }

    /// The end of a case that has waited for an event since then.
    async fn no_event(
        &mut self,
        (watch, asked): (&SharedWatch, Instant),
        pattern: &EventPattern,
        id: &str,
        end: &Next,
        nearest: Option<Mismatch>,
    ) -> Ended {
        let mut check = self.event_check(watch, pattern, id).await;
        let (verdict, words) = self.failed_by(end, asked, check.level);
        check.verdict = verdict;
        let nearest = nearest.map(|mismatch| format!("; the last one differs: {}", mismatch.in_words()));
        check.message = format!("the event does not come: {words}{}", nearest.unwrap_or_default());
        self.record.check(check);
        Ended
    }

    /// The verdict where this came of a watch that was waited for since then, and why. What is more than is read may be lawful.
    fn failed_by(&self, next: &Next, asked: Instant, level: Level) -> (Verdict, String) {
        let words = in_words(next);
        match next {
            Next::End(WatchEnd::Budget(_)) => (Verdict::Error, words),
            Next::Deadline if asked.elapsed() < self.session.patience() => {
                (Verdict::Error, format!("{words}{TIME_WENT}"))
            }
            _ => (failed_at(level), words),
        }
    }

    /// The check for an event, not passed yet.
    async fn event_check(&self, watch: &SharedWatch, pattern: &EventPattern, id: &str) -> CheckResult {
        let mut check = self.own_check(&pattern.id, id);
        check.verdict = failed_at(check.level);
        check.expected = expected(self, pattern);
        check.curl = Some(curl::line(&watch.lock().await.head.request, &self.session.judging.server));
        check
    }
}

fn expected(scope: &Scope<'_>, pattern: &EventPattern) -> Value {
    let mut expected = json!({});
    if !pattern.types.is_empty() {
        expected["type"] = json!(pattern.types.join(" or "));
    }
    if let Some(object) = pattern.object.as_ref().and_then(|object| describe(object, &scope.values).ok()) {
        expected["object"] = object;
    }
    expected
}

fn in_words(next: &Next) -> String {
    match next {
        Next::Event(event) => format!("an event of type {} came", event.kind),
        Next::End(WatchEnd::Server) => "the server ended the watch".to_owned(),
        Next::End(WatchEnd::Client) => "the watch was closed".to_owned(),
        Next::End(WatchEnd::Broken(reason)) => format!("the watch broke: {reason}"),
        Next::End(WatchEnd::Budget(reason)) => format!("the watch was cut off: {reason}"),
        Next::Deadline => "nothing more came before the deadline of the case".to_owned(),
    }
}
