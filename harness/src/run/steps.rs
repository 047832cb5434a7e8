//! Runs the steps of a case in order.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use kubeproof_cases::case::{Action, Request, Step};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::case::out_of_time;
use super::request::{self, BuildError};
use super::scope::{Ended, Flow, Scope};
use super::setup::{existing, rejection_verdict};
use crate::capability::Requester;
use crate::event::{CheckResult, Symptom, Verdict};
use crate::exchange::{Broken, BrokenKind, Exchange, Isolation, Outcome, Received};
use crate::plan::PlannedRun;
use crate::verdict::{curl, evaluate, missing_variable, synthetic};

/// Explains why a silence decides nothing.
pub(super) const ALL_SLOW: &str =
    ", but the server responds slowly or not at all to other requests, too";

/// The first and the last pause between two reads of an object that controllers write to.
const FIRST_PAUSE: Duration = Duration::from_millis(5);
const LAST_PAUSE: Duration = Duration::from_millis(200);

/// Explains why too little time was left.
pub(super) const TIME_WENT: &str =
    ", and earlier steps used most of the case timeout (--case-timeout)";

impl Scope<'_> {
    /// Runs steps until one ends the case.
    pub(super) fn steps<'s>(&'s mut self, steps: &'s [Step]) -> BoxFuture<'s, Flow> {
        async move {
            for step in steps {
                if Instant::now() >= self.deadline {
                    self.record.check(out_of_time("the case timeout (--case-timeout) expired"));
                    return Err(Ended);
                }
                if !self.holds(step).await? {
                    self.skip(step);
                    continue;
                }
                self.define(&step.lets);
                match &step.action {
                    Action::Given(request) => self.given(request).await?,
                    Action::Request(request) => self.request(request).await?,
                    Action::Watch(watch) => self.open_watch(watch).await?,
                    Action::Await(awaited) => self.await_events(awaited).await?,
                    Action::End(end) => self.end_watch(end).await?,
                    Action::Close(close) if close.stream => self.close_stream(close)?,
                    Action::Close(close) => self.close_watch(close).await?,
                    Action::Stream(stream) => self.open_stream(stream).await?,
                    Action::OpenStream(creation) => self.create_stream(creation).await?,
                    Action::Send(sending) => self.send_on_stream(sending).await?,
                    Action::Receive(receiving) => self.receive_on_stream(receiving).await?,
                    Action::Finish(finish) => self.finish_stream(finish).await?,
                    Action::Concurrently(inner) => self.concurrently(inner).await?,
                    Action::Repeat(inner) => self.repeat(inner).await?,
                    Action::Together(together) => self.together(together).await?,
                    Action::Until(until) => self.until(until).await?,
                    Action::Schema(schema) => self.schema(schema).await?,
                    Action::Explore(explore) => self.explore(explore).await?,
                    Action::Expect(checks) => {
                        self.refresh_watches().await;
                        self.judge(checks, "expect", None, &[]);
                    }
                }
            }
            Ok(())
        }
        .boxed()
    }

    /// Whether the conditions of a step hold.
    async fn holds(&mut self, step: &Step) -> Result<bool, Ended> {
        if !step.when.is_empty() {
            self.refresh_watches().await;
        }
        for condition in &step.when {
            match evaluate(condition, &self.values) {
                Ok(Value::Bool(true)) => {}
                Ok(Value::Bool(false)) => return Ok(false),
                Ok(other) => {
                    let message =
                        format!("`when: {}` is neither true nor false: {other}", condition.text);
                    return Err(self.unusable(step.name().unwrap_or("when"), condition, message));
                }
                Err(error) => {
                    let message = error.to_string();
                    return Err(self.unusable(step.name().unwrap_or("when"), condition, message));
                }
            }
        }
        Ok(true)
    }

    /// Binds the name of a step that does not run to `null`.
    fn skip(&mut self, step: &Step) {
        if let Some(name) = step.name() {
            self.bind(name, Value::Null);
        }
    }

    async fn given(&mut self, request: &Request) -> Flow {
        let mut exchange = self.exchange(request).await?;
        if exchange.status() != 201
            && let Some(found) = self.existing(&exchange).await
        {
            self.bind_exchange(&request.id, &found);
            exchange = found;
        } else if exchange.status() != 201 {
            let prerequisites = &self.session.prerequisites;
            let resource = resource_of(&exchange.request.target, self.planned);
            if rejection_verdict(&exchange) == Verdict::Fail
                && let Some(reason) = prerequisites.no_create(self.planned, &resource)
            {
                self.record.block(reason);
                return Err(Ended);
            }
            let check = format!("given-{}", request.id);
            let message = format!(
                "the case needs an object, but `{}` returned {}, expected 201",
                exchange.request.kind(),
                exchange.in_words()
            );
            let actual = exchange.json().cloned().unwrap_or_else(|| json!(exchange.status()));
            let check = synthetic(check, rejection_verdict(&exchange), &self.step(&request.id));
            let expected = json!({"status": 201});
            let symptom =
                Some(Symptom::Setup { request: exchange.request.kind(), got: exchange.status() });
            let curl = Some(curl::line(&exchange.request, &self.session.judging.server));
            self.record.check(CheckResult { expected, actual, message, curl, symptom, ..check });
            return Err(Ended);
        }
        if self.has_other_writers
            && let Some(settled) = self.settled(&exchange).await
        {
            self.bind_exchange(&request.id, &settled);
            exchange = settled;
        }
        let missing = self.capture(&request.capture, &request.id, exchange.json());
        self.judge(&request.expect, &request.id, Some(&exchange), &missing);
        self.require(&missing, &request.id)
    }

    /// Reads a new object until its controllers have written what they write to it. Returns a
    /// response that only shows their version.
    async fn settled(&self, created: &Exchange) -> Option<Exchange> {
        let name = created.json()?["metadata"]["name"].as_str()?;
        let collection = created.request.target.split('?').next().unwrap_or_default();
        let path = format!("{collection}/{name}");
        let requester = Requester { client: &self.session.client, deadline: self.deadline };
        let mut seen = requester.get(&path, "application/json").await;
        let mut pause = FIRST_PAUSE;
        while pause < LAST_PAUSE && Instant::now() + pause < self.deadline {
            tokio::time::sleep(pause).await;
            let next = requester.get(&path, "application/json").await;
            let version = |exchange: &Exchange| {
                exchange.json().map(|body| body["metadata"]["resourceVersion"].clone())
            };
            pause = if version(&next) == version(&seen) { pause * 2 } else { FIRST_PAUSE };
            seen = next;
        }
        (seen.status() == 200).then_some(seen)
    }

    async fn request(&mut self, request: &Request) -> Flow {
        let exchange = self.exchange(request).await?;
        self.judge_response(request, &exchange).await
    }

    /// Judges a response. Ends the case if the user of the run lacks a right.
    pub(super) async fn judge_response(&mut self, request: &Request, exchange: &Exchange) -> Flow {
        let before = self.record.checks();
        let missing = self.capture(&request.capture, &request.id, exchange.json());
        self.judge(&request.expect, &request.id, Some(exchange), &missing);
        let flow = self.require(&missing, &request.id);
        if self.record.fails_from(before)
            && let Some(why) = self.session.excuse(exchange, self.planned, self.deadline).await
        {
            self.record.excuse(before, &why);
            return Err(Ended);
        }
        flow
    }

    /// Returns the object of a create that did not return 201, if it exists. Otherwise one wrong
    /// status code would fail every case.
    async fn existing(&mut self, created: &Exchange) -> Option<Exchange> {
        let sent: Option<Value> = serde_json::from_slice(&created.request.body).ok();
        let named = |object: &Value| Some(object["metadata"]["name"].as_str()?.to_owned());
        let name = created.json().and_then(named).or_else(|| named(&sent?))?;
        let collection = created.request.target.split('?').next().unwrap_or_default();
        let path = format!("{collection}/{name}");
        let requester = Requester { client: &self.session.client, deadline: self.deadline };
        let found = existing(&requester, &path, created).await?;
        if !(200..300).contains(&created.status()) {
            // The rejection took the object off the list of the cleanup.
            self.tracker.found(&created.request);
        }
        Some(found)
    }

    /// Sends a request. Ends the case without a response.
    async fn exchange(&mut self, request: &Request) -> Result<Exchange, Ended> {
        let subject = self.planned.subject.as_deref();
        let outgoing = match request::outgoing(request, subject, &self.values) {
            Ok(outgoing) => outgoing,
            Err(error) => return Err(self.not_built(&request.id, &error)),
        };
        let intent = self.tracker.intend(&outgoing);
        let mut exchange = self.session.client.send(outgoing, self.deadline).await;
        self.tracker.settle(&intent, &exchange);
        if exchange.request.method == "GET"
            && let Some(isolation) = Isolation::of(&exchange.request.target)
            && let Outcome::Response(Received { json: Some(body), .. }) = &mut exchange.outcome
        {
            isolation.filter(Arc::make_mut(body));
        }
        self.bind_exchange(&request.id, &exchange);
        self.record.sent(self.step(&request.id), exchange.clone());
        self.require_response(&request.id, &exchange).await?;
        Ok(exchange)
    }

    /// Ends the case at a request that cannot be rendered.
    pub(super) fn not_built(&mut self, id: &str, error: &BuildError) -> Ended {
        match error {
            BuildError::Undefined(undefined) => self.undefined(id, undefined),
            BuildError::NothingToEdit(of) => {
                match missing_variable(&format!("{of}.body"), &self.values) {
                    Some(why) => self.lacking(id, why),
                    None => self.stuck(id, error.to_string()),
                }
            }
            BuildError::NoProtocol => self.stuck(id, error.to_string()),
        }
    }

    /// Ends the case if the exchange is broken.
    pub(super) async fn require_response(&mut self, id: &str, exchange: &Exchange) -> Flow {
        let Outcome::Broken(broken) = &exchange.outcome else { return Ok(()) };
        let mut check = self.own_check(&format!("{id}-response"), id);
        let late = match broken.kind {
            BrokenKind::Deadline if exchange.took < self.session.fair_wait() => TIME_WENT,
            BrokenKind::Deadline if self.session.is_slow().await => ALL_SLOW,
            _ => "",
        };
        check.verdict = if late.is_empty() { broken_verdict(broken) } else { Verdict::Error };
        check.expected = json!("a response");
        check.actual = Value::Null;
        let request = exchange.request.verb();
        check.message = format!(
            "the server sent no response to {}: {}{late}",
            exchange.request.line(),
            broken.message
        );
        check.symptom = Some(Symptom::NoResponse { request });
        check.curl = Some(curl::line(&exchange.request, &self.session.judging.server));
        self.record.check(check);
        Err(Ended)
    }
}

/// Returns the resource of a collection as reports name it. Custom resources of the run have
/// another group on the server.
fn resource_of(target: &str, planned: &PlannedRun) -> String {
    let path = target.split('?').next().unwrap_or_default();
    if let Some(subject) = planned.subject.as_deref()
        && path.starts_with(&subject.root())
        && path.ends_with(&format!("/{}", subject.name.resource))
    {
        return subject.name.to_string();
    }
    let resource = path.rsplit('/').next().unwrap_or_default();
    let segments: Vec<&str> = path.trim_start_matches('/').split('/').collect();
    match segments.as_slice() {
        ["apis", group, version, ..] => format!("{resource}.{version}.{group}"),
        [_, version, ..] => format!("{resource}.{version}"),
        _ => resource.to_owned(),
    }
}

/// A server that hangs or breaks the protocol is wrong. A failed connection decides nothing, nor
/// does an oversized response, because it may still be valid.
fn broken_verdict(broken: &Broken) -> Verdict {
    match broken.kind {
        BrokenKind::Protocol | BrokenKind::Deadline => Verdict::Fail,
        BrokenKind::NotSent | BrokenKind::Budget | BrokenKind::Connect | BrokenKind::Tls => {
            Verdict::Error
        }
    }
}
