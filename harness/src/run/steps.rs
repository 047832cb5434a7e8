//! The steps of a case, in order.

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use kubeproof_cases::case::{Request, Step};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::build;
use super::case::out_of_time;
use super::scope::{Ended, Flow, Scope};
use super::setup::refusal_verdict;
use crate::event::Verdict;
use crate::exchange::{Broken, BrokenKind, Exchange, Outcome};
use crate::verdict::curl;

/// Said of what the server was given too little time for.
pub(super) const TIME_WENT: &str = ", and most of the time of the case (--case-timeout) had gone by before";

impl Scope<'_> {
    /// Runs steps until one of them ends the case.
    pub(super) fn steps<'s>(&'s mut self, steps: &'s [Step]) -> BoxFuture<'s, Flow> {
        async move {
            for step in steps {
                if Instant::now() >= self.deadline {
                    self.record.check(out_of_time("the time of the case (--case-timeout) was over"));
                    return Err(Ended);
                }
                match step {
                    Step::Given(request) => self.given(request).await?,
                    Step::Request(request) => self.request(request).await?,
                    Step::Watch(watch) => self.open_watch(watch).await?,
                    Step::Await(awaited) => self.await_events(awaited).await?,
                    Step::End(end) => self.end_watch(end).await?,
                    Step::Close(close) if close.stream => self.close_stream(close)?,
                    Step::Close(close) => self.close_watch(close).await?,
                    Step::Stream(stream) => self.open_stream(stream).await?,
                    Step::Create(creation) => self.create_stream(creation).await?,
                    Step::Send(sending) => self.send_on_stream(sending).await?,
                    Step::Receive(receiving) => self.receive_on_stream(receiving).await?,
                    Step::Finish(finish) => self.finish_stream(finish).await?,
                    Step::Concurrently(inner) => self.concurrently(inner).await?,
                    Step::Repeat(inner) => self.repeat(inner).await?,
                    Step::Together(together) => self.together(together).await?,
                    Step::Until(until) => self.until(until).await?,
                    Step::Schema(schema) => self.schema(schema).await?,
                    Step::Expect(checks) => {
                        self.refresh_watches().await;
                        self.judge(checks, "expect", None, &[]);
                    }
                }
            }
            Ok(())
        }
        .boxed()
    }

    async fn given(&mut self, request: &Request) -> Flow {
        let exchange = self.exchange(request).await?;
        if exchange.status() != 201 {
            let check = format!("given-{}", request.id);
            let message = format!("the object must be created with 201, but got {}", exchange.in_words());
            let actual = exchange.json().cloned().unwrap_or_else(|| json!(exchange.status()));
            self.fail(
                check,
                refusal_verdict(&exchange),
                &request.id,
                json!({"status": 201}),
                actual,
                message,
            );
            return Err(Ended);
        }
        let missing = self.capture(&request.capture, exchange.json());
        self.judge(&request.expect, &request.id, Some(&exchange), &missing);
        self.require(&missing, &request.id)
    }

    async fn request(&mut self, request: &Request) -> Flow {
        let exchange = self.exchange(request).await?;
        let missing = self.capture(&request.capture, exchange.json());
        self.judge(&request.expect, &request.id, Some(&exchange), &missing);
        self.require(&missing, &request.id)
    }

    /// Sends a request, and ends the case when there is no answer.
    async fn exchange(&mut self, request: &Request) -> Result<Exchange, Ended> {
        let subject = self.planned.subject.as_deref();
        let outgoing = match build::outgoing(request, subject, &self.values) {
            Ok(outgoing) => outgoing,
            Err(error) => return Err(self.stuck(&request.id, error.to_string())),
        };
        let intent = self.tracker.intend(&outgoing);
        let exchange = self.session.client.send(outgoing, self.deadline).await;
        self.tracker.settle(&intent, &exchange);
        self.bind_exchange(&request.id, &exchange);
        self.record.sent(self.step(&request.id), exchange.clone());
        self.answered(&request.id, &exchange)?;
        Ok(exchange)
    }

    /// Ends the case when an exchange is broken.
    pub(super) fn answered(&mut self, id: &str, exchange: &Exchange) -> Flow {
        let Outcome::Broken(broken) = &exchange.outcome else { return Ok(()) };
        let mut check = self.own_check(&format!("{id}-answers"), id);
        let hurried = broken.kind == BrokenKind::Deadline && exchange.took < self.session.patience();
        check.verdict = if hurried { Verdict::Error } else { broken_verdict(broken) };
        check.expected = json!("an answer");
        check.actual = Value::Null;
        let late = if hurried { TIME_WENT } else { "" };
        check.message = format!("there is no answer: {}{late}", broken.message);
        check.curl = Some(curl::line(&exchange.request, &self.session.judging.server));
        self.record.check(check);
        Err(Ended)
    }
}

/// A server that takes a request and then hangs, or breaks the protocol, is wrong. Without a connection nothing can be
/// told, nor of an answer that is longer than is read: a cluster may be large.
fn broken_verdict(broken: &Broken) -> Verdict {
    match broken.kind {
        BrokenKind::Protocol | BrokenKind::Deadline => Verdict::Fail,
        BrokenKind::Budget | BrokenKind::Connect | BrokenKind::Tls | BrokenKind::Interrupted => {
            Verdict::Error
        }
    }
}
