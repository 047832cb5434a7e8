//! Steps that open, read and close watches.

use std::time::Duration;

use kubeproof_cases::case::{
    Await, Awaited, Close, End, EventPattern, Level, Prerequisite, Request, Watch,
};
use kubeproof_cases::template::{Part, Template};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::record::SharedWatch;
use super::request;
use super::scope::{Ended, Flow, Scope};
use super::steps::{ALL_SLOW, TIME_WENT};
use super::watch_resume;
use crate::event::{CheckResult, Symptom, Verdict};
use crate::exchange::{Exchange, WatchEnd, WatchEvent};
use crate::transport::watch::{Next, OpenWatch};
use crate::verdict::{Mismatch, curl, describe, event_diff, event_matches, failed_at};

const BOOKMARK: &str = "BOOKMARK";

/// Time for the head of a watch on a server that sends it with the first event. Other responses,
/// such as rejections, arrive in this time.
const LATE_HEAD: Duration = Duration::from_millis(100);

/// Time for the transport to report that the deadline passed.
const HEAD_GRACE: Duration = Duration::from_millis(500);

const CUT_SHORT: &str =
    "; the timeout of the case (--case-timeout) is shorter than that of the watch";

/// Limit on resumptions without an event in between.
const IDLE_RESUMPTIONS: usize = 5;

impl Scope<'_> {
    pub(super) async fn open_watch(&mut self, watch: &Watch) -> Flow {
        let mut request = watch.request.clone();
        if !request.query.iter().any(|(name, _)| name == "watch") {
            let parts = vec![Part::Text("true".to_owned())];
            request.query.push(("watch".to_owned(), Template { parts, span: request.span }));
        }
        let outgoing =
            match request::outgoing(&request, self.planned.subject.as_deref(), &self.values) {
                Ok(outgoing) => outgoing,
                Err(error) => return Err(self.not_built(&request.id, &error)),
            };
        let mut open = self.session.client.start_watch(outgoing, self.deadline, &watch.keep);
        if !open.arrived(self.head_expected_at()).await {
            self.go_on_without_head(request, open);
            return Ok(());
        }
        let head = open.head.clone();
        self.open(&request.id, open);
        self.bind_exchange(&request.id, &head);
        self.require_response(&request.id, &head).await?;
        self.judge_response(&request, &head).await
    }

    /// Returns when the head of a watch is late. The case that judges it goes on without it,
    /// and then the others do so at once.
    fn head_expected_at(&self) -> Instant {
        let now = Instant::now();
        if self.planned.case.provides == Some(Prerequisite::WatchStart) {
            (now + self.session.fair_wait()).min(self.deadline)
        } else if self.session.prerequisites.heads_are_late() {
            (now + LATE_HEAD).min(self.deadline)
        } else {
            self.deadline + HEAD_GRACE
        }
    }

    /// Keeps a watch open whose response has not begun. Its checks wait for the head.
    fn go_on_without_head(&mut self, request: Request, open: OpenWatch) {
        if self.planned.case.provides == Some(Prerequisite::WatchStart) {
            let mut check = self.own_check(&format!("{}-response", request.id), &request.id);
            check.verdict = failed_at(check.level);
            check.expected = json!("the head of the response");
            check.message = format!(
                "the server withheld the head of the response to {} for {:.1} s",
                open.head.request.line(),
                self.session.fair_wait().as_secs_f64()
            );
            check.symptom = Some(Symptom::NoResponse { request: open.head.request.verb() });
            check.curl = Some(curl::line(&open.head.request, &self.session.judging.server));
            self.record.check(check);
        }
        let head = open.head.clone();
        self.open(&request.id, open);
        self.bind_exchange(&request.id, &head);
        self.late_watches.push(request);
    }

    /// Judges the head of a watch that arrived late.
    async fn judge_late_head(&mut self, id: &str, watch: &SharedWatch) -> Flow {
        let Some(at) = self.late_watches.iter().position(|request| request.id == id) else {
            return Ok(());
        };
        let head = {
            let watch = watch.lock().await;
            if watch.is_late() {
                return Ok(());
            }
            watch.head.clone()
        };
        let request = self.late_watches.remove(at);
        self.require_response(&request.id, &head).await?;
        self.judge_response(&request, &head).await
    }

    pub(super) async fn await_events(&mut self, awaited: &Await) -> Flow {
        let watch = self.opened(&awaited.watch, &awaited.id)?;
        let flow = match &awaited.what {
            Awaited::Next(patterns) => self.next_events(&watch, patterns, &awaited.id).await,
            Awaited::Until(pattern) => self.until_event(&watch, pattern, &awaited.id).await,
        };
        self.refresh_watch(&awaited.watch, &watch).await;
        let late = self.judge_late_head(&awaited.watch, &watch).await;
        flow.and(late)
    }

    async fn next_events(
        &mut self,
        watch: &SharedWatch,
        patterns: &[EventPattern],
        id: &str,
    ) -> Flow {
        for pattern in patterns {
            let asked = Instant::now();
            let asks_for_bookmark = pattern.types.iter().any(|kind| kind == BOOKMARK);
            let event = loop {
                let next = self.next(watch).await;
                match next {
                    Next::Event(event) if event.kind == BOOKMARK && !asks_for_bookmark => {}
                    Next::Event(event) => break event,
                    end => {
                        return Err(self.no_event((watch, asked), pattern, id, (&end, None)).await);
                    }
                }
            };
            match event_matches(pattern, &event, &self.values, self.reported()) {
                Err(undefined) => return Err(self.undefined(id, &undefined)),
                Ok(Ok(())) => self.came(watch, pattern, &event, id).await?,
                Ok(Err(mismatch)) => {
                    let mut check = self.event_check(watch, pattern, id).await;
                    let why = mismatch.in_words_of("the object");
                    check.message = format!("the next event is not the expected one: {why}");
                    check.symptom = Some(mismatch.symptom());
                    check.actual = json!({"type": event.kind, "object": *event.object});
                    check.diff = event_diff(pattern, &event, &self.values);
                    self.record.check(check);
                    return Err(Ended);
                }
            }
        }
        Ok(())
    }

    /// Returns the next event. Resumes a watch that the server closed, as other clients do.
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
            let Some(outgoing) = watch_resume::outgoing(&watch) else { return next };
            let again = self.session.client.watch(outgoing, self.deadline).await;
            if !again.is_open() {
                return next;
            }
            idle = if watch.events().len() == before { idle + 1 } else { 0 };
            watch.go_on(again);
        }
    }

    /// Returns when a silent watch has stalled.
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
                end => {
                    return Err(self.no_event((watch, asked), pattern, id, (&end, nearest)).await);
                }
            };
            match event_matches(pattern, &event, &self.values, self.reported()) {
                Err(undefined) => return Err(self.undefined(id, &undefined)),
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
            watch.arrived(self.stalls_at()).await;
            // An ordinary response has ended already, and checks judge it.
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
                let (verdict, words) = if is_cut_short(&outcome, &snapshot) {
                    (Verdict::Error, format!("{}{CUT_SHORT}", in_words(&outcome)))
                } else {
                    self.failed_by(&outcome, asked, check.level).await
                };
                check.verdict = verdict;
                check.message = format!("the server does not end the watch: {words}");
                let request = snapshot.request.verb();
                check.symptom = Some(Symptom::NoResponse { request });
                check.steps = self.step_of(&end.watch).into_iter().collect();
                check.curl = Some(curl::line(&snapshot.request, &self.session.judging.server));
            }
            self.record.check(check);
        }
        self.refresh_watch(&end.watch, &watch).await;
        self.judge_late_head(&end.watch, &watch).await?;
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
        let missing = self.capture(&pattern.capture, &pattern.id, Some(&event.object));
        self.require(&missing, &pattern.id)
    }

    /// Records the failed check of an event that did not arrive.
    async fn no_event(
        &mut self,
        (watch, asked): (&SharedWatch, Instant),
        pattern: &EventPattern,
        id: &str,
        (end, nearest): (&Next, Option<Mismatch>),
    ) -> Ended {
        if matches!(end, Next::Deadline)
            && watch.lock().await.met_foreign_events(asked)
            && let Some(reason) = self.session.prerequisites.ignored_selectors(self.planned)
        {
            self.record.block(reason);
            return Ended;
        }
        let mut check = self.event_check(watch, pattern, id).await;
        let (verdict, words) = self.failed_by(end, asked, check.level).await;
        check.verdict = verdict;
        let last = nearest.as_ref();
        let last = last
            .map(|mismatch| format!("; of the last event, {}", mismatch.in_words_of("the object")));
        let kind = match pattern.types.join(" or ") {
            kind if kind.is_empty() => "expected event".to_owned(),
            kind => format!("expected {kind} event"),
        };
        check.message = format!("the {kind} does not arrive: {words}{}", last.unwrap_or_default());
        check.symptom = nearest.map(|mismatch| mismatch.symptom()).or_else(|| {
            let request = "watch".to_owned();
            Some(Symptom::NoResponse { request })
        });
        self.record.check(check);
        Ended
    }

    /// Returns the verdict on a missing event, and why. An oversized watch may be valid.
    async fn failed_by(&self, next: &Next, asked: Instant, level: Level) -> (Verdict, String) {
        let words = in_words(next);
        match next {
            Next::End(WatchEnd::Budget(_)) => (Verdict::Error, words),
            Next::Deadline if asked.elapsed() < self.session.fair_wait() => {
                (Verdict::Error, format!("{words}{TIME_WENT}"))
            }
            Next::Deadline if self.session.is_slow().await => {
                (Verdict::Error, format!("{words}{ALL_SLOW}"))
            }
            _ => (failed_at(level), words),
        }
    }

    /// Creates the check of an event that has failed so far.
    async fn event_check(
        &self,
        watch: &SharedWatch,
        pattern: &EventPattern,
        id: &str,
    ) -> CheckResult {
        let mut check = self.own_check(&pattern.id, id);
        check.verdict = failed_at(check.level);
        check.expected = expected(self, pattern);
        check.steps = self.step_of_watch(watch).into_iter().collect();
        check.curl =
            Some(curl::line(&watch.lock().await.head.request, &self.session.judging.server));
        check
    }
}

/// Reports whether the case ends before the time for which it asked a watch.
fn is_cut_short(next: &Next, watch: &Exchange) -> bool {
    let (_, query) = watch.request.target.split_once('?').unwrap_or_default();
    let seconds = query.split('&').find_map(|pair| pair.strip_prefix("timeoutSeconds="));
    let seconds = seconds.and_then(|seconds| seconds.parse().ok()).map(Duration::from_secs);
    matches!(next, Next::Deadline) && seconds.is_some_and(|seconds| watch.took < seconds)
}

fn expected(scope: &Scope<'_>, pattern: &EventPattern) -> Value {
    let mut expected = json!({});
    if !pattern.types.is_empty() {
        expected["type"] = json!(pattern.types.join(" or "));
    }
    if let Some(object) =
        pattern.object.as_ref().and_then(|object| describe(object, &scope.values).ok())
    {
        expected["object"] = object;
    }
    expected
}

fn in_words(next: &Next) -> String {
    match next {
        Next::Event(event) => format!("an event of type {} arrived", event.kind),
        Next::End(WatchEnd::Server) => "the server ended the watch".to_owned(),
        Next::End(WatchEnd::Client) => "the watch was closed".to_owned(),
        Next::End(WatchEnd::List(kind)) => {
            format!("the server returned a list ({kind}) in response to the watch request")
        }
        Next::End(WatchEnd::Broken(reason)) => format!("the watch broke: {reason}"),
        Next::End(WatchEnd::Budget(reason)) => format!("the watch exceeds a limit: {reason}"),
        Next::Deadline => "no event arrived before the case timeout".to_owned(),
    }
}
