//! Steps that repeat steps: at once, one after another, in branches, until something holds.

use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::{StreamExt, stream};
use kubeproof_cases::case::{Loop, Step, Times, Together, Until};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::scope::{Ended, Flow, Scope};
use super::steps::TIME_WENT;
use crate::event::Verdict;
use crate::verdict::{evaluate, failed_at};

/// Iterations in flight, for each multiple of load. More connections than this would test the machine, not the server.
const AT_ONCE: usize = 100;

/// Iterations over a list, for each multiple of load: more than the largest of the suite's own.
const MOST: usize = 5000;

/// The first pause between two rounds, at most, ...
const FIRST_PAUSE: Duration = Duration::from_millis(1);

/// ... and by how much the next is longer.
const PAUSE_GROWTH: f64 = 1.5;

/// Said of what was not asked for often.
const ANSWERS_TOOK: &str = ", and the answers had taken most of the time of the case (--case-timeout)";

impl<'a> Scope<'a> {
    pub(super) async fn concurrently(&mut self, inner: &Loop) -> Flow {
        let iterations = self.iterations(inner)?.into_iter().map(|scope| (scope, inner.steps.as_slice()));
        self.at_once(&inner.id, iterations.collect()).await
    }

    pub(super) async fn together(&mut self, together: &Together) -> Flow {
        let branches = together.branches.iter().enumerate();
        let branches = branches.map(|(n, steps)| (self.child(&together.id, n), steps.as_slice())).collect();
        self.at_once(&together.id, branches).await
    }

    pub(super) async fn repeat(&mut self, inner: &Loop) -> Flow {
        let mut results = Vec::new();
        let mut flow = Ok(());
        for mut iteration in self.iterations(inner)? {
            let begun = Instant::now();
            iteration.deadline = self.deadline;
            flow = iteration.steps(&inner.steps).await;
            self.deadline = iteration.deadline;
            self.give_back(begun.elapsed());
            let (record, result) = iteration.into_results();
            self.record.append(record);
            results.push(result);
            if flow.is_err() {
                break;
            }
        }
        self.bind(&inner.id, Value::Array(results));
        self.refresh_watches().await;
        flow
    }

    pub(super) async fn until(&mut self, until: &Until) -> Flow {
        let begun = Instant::now();
        let mut paused = Duration::ZERO;
        let mut longest = FIRST_PAUSE;
        for attempt in 0..until.attempts {
            let mut round = self.child(&until.id, usize::try_from(attempt).unwrap_or(usize::MAX));
            // Inside of another loop it stays that one's: what is tried again is to be the same.
            if self.values.get("i").is_none() {
                round.values.set("i", json!(attempt));
            }
            let flow = round.steps(&until.steps).await;
            let holds = evaluate(&until.condition, &round.values);
            let (record, results) = round.into_results();
            self.bind(&until.id, results);
            self.refresh_watches().await;

            let holds_now = matches!(holds, Ok(Value::Bool(true)));
            // Chance keeps clients that compete for one object out of step.
            let pause_ends = Instant::now() + longest.mul_f64(rand::random_range(0.25..=1.0));
            longest = longest.mul_f64(PAUSE_GROWTH).min(self.session.longest_pause);
            let out_of_time = pause_ends >= self.deadline;
            let is_last = attempt + 1 >= until.attempts || out_of_time;
            if flow.is_err() || holds_now || is_last {
                self.record.append(record);
                flow?;
                let mut check = self.own_check(&until.id, &until.id);
                check.expected = json!(until.condition.text);
                if !holds_now {
                    let late = if out_of_time { self.excuse(begun.elapsed(), paused) } else { None };
                    check.verdict = if late.is_some() { Verdict::Error } else { failed_at(check.level) };
                    check.actual = holds.clone().unwrap_or_default();
                    let why = holds.err().map(|error| format!(": {error}")).unwrap_or_default();
                    let late = late.unwrap_or_default();
                    check.message = format!("it does not hold after {} rounds{late}{why}", attempt + 1);
                }
                self.record.check(check);
                return if holds_now { Ok(()) } else { Err(Ended) };
            }
            self.record.append(record.without_checks());
            let pausing = Instant::now();
            tokio::time::sleep_until(pause_ends).await;
            paused += pausing.elapsed();
        }
        Ok(())
    }

    /// Why a server is not to blame that something did not hold in this time. Much waiting and few rounds show one that does not do it;
    /// much asking, one that is slow to answer.
    fn excuse(&self, time: Duration, paused: Duration) -> Option<&'static str> {
        if time < self.session.patience() {
            Some(TIME_WENT)
        } else {
            (paused < time / 2).then_some(ANSWERS_TOOK)
        }
    }

    /// Runs iterations beside each other. All of them end before one that failed ends the case.
    async fn at_once<'s>(&mut self, id: &str, iterations: Vec<(Scope<'a>, &'s [Step])>) -> Flow
    where
        'a: 's,
    {
        let mut running: Vec<BoxFuture<'s, (Scope<'a>, Flow)>> = Vec::with_capacity(iterations.len());
        for (mut iteration, steps) in iterations {
            running.push(Box::pin(async move {
                let flow = iteration.steps(steps).await;
                (iteration, flow)
            }));
        }
        let at_once = AT_ONCE * usize::try_from(self.session.load).unwrap_or(1);
        let ended: Vec<(Scope<'a>, Flow)> = stream::iter(running).buffered(at_once).collect().await;
        let mut results = Vec::with_capacity(ended.len());
        let mut all = Ok(());
        for (iteration, flow) in ended {
            self.deadline = self.deadline.max(iteration.deadline);
            let (record, result) = iteration.into_results();
            self.record.append(record);
            results.push(result);
            all = all.and(flow);
        }
        self.bind(id, Value::Array(results));
        self.refresh_watches().await;
        all
    }

    /// Iterations over a list, which may be a server's.
    fn most(&self) -> usize {
        MOST * usize::try_from(self.session.load).unwrap_or(1)
    }

    fn iterations(&mut self, inner: &Loop) -> Result<Vec<Scope<'a>>, Ended> {
        let items: Vec<Option<Value>> = match &inner.times {
            Times::Count(count) => (0..*count).map(|_| None).collect(),
            Times::Over { list, .. } => match evaluate(list, &self.values) {
                Ok(Value::Array(items)) if items.len() > self.most() => {
                    let message =
                        format!("`{}` has {} items, more than {}", list.text, items.len(), self.most());
                    return Err(self.stuck(&inner.id, message));
                }
                Ok(Value::Array(items)) => items.into_iter().map(Some).collect(),
                Ok(other) => {
                    return Err(self.stuck(&inner.id, format!("`{}` is no list: {other}", list.text)));
                }
                Err(error) => return Err(self.stuck(&inner.id, error.to_string())),
            },
        };
        let iterations = items.into_iter().enumerate().map(|(n, item)| {
            let mut iteration = self.child(&inner.id, n);
            iteration.values.set("i", json!(n));
            if let (Times::Over { variable, .. }, Some(item)) = (&inner.times, item) {
                iteration.values.set(variable, item);
            }
            iteration
        });
        Ok(iterations.collect())
    }
}
