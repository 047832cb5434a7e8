//! Steps that repeat other steps: concurrently, in sequence, in branches, or until a condition is
//! true.

use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::{StreamExt, stream};
use kubeproof_cases::case::{Loop, Step, Times, Together, Until};
use kubeproof_cases::expression::Expression;
use kubeproof_cases::plural;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::scope::{Ended, Flow, Scope};
use super::steps::TIME_WENT;
use crate::event::Verdict;
use crate::values::{Values, Variable};
use crate::verdict::{Explanation, curl, evaluate, explain, failed_at, short};

/// Concurrent iterations per unit of load. More connections would test the machine instead of the
/// server.
const AT_ONCE: usize = 100;

/// Limit on iterations over a list per unit of load. The largest case of the suite has fewer.
const MOST: usize = 5000;

/// Limit on the first pause between two rounds.
const FIRST_PAUSE: Duration = Duration::from_millis(1);

/// Growth of the pause per round.
const PAUSE_GROWTH: f64 = 1.5;

const RESPONSES_TOOK: &str =
    ", and waiting for responses used most of the case timeout (--case-timeout)";

const OVERLOADED: &str = ", most of which the server rejected with 429, 503 or 504";

impl<'a> Scope<'a> {
    pub(super) async fn concurrently(&mut self, inner: &Loop) -> Flow {
        let iterations =
            self.iterations(inner)?.into_iter().map(|scope| (scope, inner.steps.as_slice()));
        self.at_once(&inner.id, iterations.collect()).await
    }

    pub(super) async fn together(&mut self, together: &Together) -> Flow {
        let branches = together.branches.iter().enumerate();
        let branches =
            branches.map(|(n, steps)| (self.child(&together.id, n), steps.as_slice())).collect();
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
        self.bind(&inner.id, Variable::list(results));
        self.refresh_watches().await;
        flow
    }

    pub(super) async fn until(&mut self, until: &Until) -> Flow {
        let mut rounds = Rounds::new();
        self.take_fair_wait();
        for attempt in 0..until.attempts {
            let begun = Instant::now();
            let mut round = self.child(&until.id, usize::try_from(attempt).unwrap_or(usize::MAX));
            round.record.isolate();
            // Inside of another loop, `i` belongs to that loop.
            if self.values.get("i").is_none() {
                round.values.set("i", json!(attempt));
            }
            let flow = round.steps(&until.steps).await;
            let has_timed_out = flow.is_err() && round.is_cut_off();
            if has_timed_out && self.excuse(&rounds, true).is_none() && rounds.last.is_some() {
                self.record.append(round.into_results().0.superseded());
                return self.never_true(until, &rounds, None);
            }
            let holds_now = evaluate(&until.condition, &round.values) == Ok(Value::Bool(true));
            rounds.complete(begun.elapsed(), self.session.quick(), &round.values);
            rounds.overloaded += u32::from(round.record.shows_overload());
            let pause = rounds.next_pause(self.session.longest_pause);
            let out_of_time = Instant::now() + pause >= self.deadline;
            let is_last = attempt + 1 >= until.attempts || out_of_time;
            let (mut record, results) = round.into_results();
            self.bind(&until.id, results);
            let last = usize::try_from(attempt).unwrap_or(usize::MAX);
            self.values.requests.last_round(&until.id, last);
            self.refresh_watches().await;

            if flow.is_err() || holds_now || is_last {
                let late = self.excuse(&rounds, out_of_time).filter(|_| !holds_now);
                if late == Some(OVERLOADED) {
                    record.excuse(0, "the server rejected most rounds with 429, 503 or 504");
                }
                self.record.append(record);
                flow?;
                if !holds_now {
                    return self.never_true(until, &rounds, late);
                }
                let mut check = self.own_check(&until.id, &until.id);
                check.expected = json!({"cel": until.condition.text});
                self.record.check(check);
                return Ok(());
            }
            self.record.append(record.superseded());
            rounds.pause(pause).await;
        }
        Ok(())
    }

    /// Records that the condition was false in every round, and why.
    fn never_true(&mut self, until: &Until, rounds: &Rounds, late: Option<&str>) -> Flow {
        let mut check = self.own_check(&until.id, &until.id);
        check.expected = json!({"cel": until.condition.text});
        check.verdict = if late.is_some() { Verdict::Error } else { failed_at(check.level) };
        let values = rounds.last.as_ref().unwrap_or(&self.values);
        let Explanation { message, actual, symptom, steps, .. } = explain(&until.condition, values);
        if self.is_reported(symptom.as_ref(), &message) {
            return Err(Ended);
        }
        let count = plural(rounds.count, "round");
        check.message = format!("{message} (after {count}{})", late.unwrap_or_default());
        let first = steps.first().and_then(|step| self.values.requests.of_step(step));
        check.curl = first.map(|sent| curl::line(&sent, &self.session.judging.server));
        (check.actual, check.symptom, check.steps) = (actual, symptom, steps);
        self.record.check(check);
        Err(Ended)
    }

    /// Returns why the server is not at fault for a condition that stayed false.
    fn excuse(&self, rounds: &Rounds, out_of_time: bool) -> Option<&'static str> {
        let time = self.deadline.max(Instant::now()).saturating_duration_since(rounds.begun);
        rounds.excuse(out_of_time.then_some(time), self.session.fair_wait())
    }

    /// Runs iterations concurrently. All of them end before a failed one ends the case.
    async fn at_once<'s>(&mut self, id: &str, iterations: Vec<(Scope<'a>, &'s [Step])>) -> Flow
    where
        'a: 's,
    {
        let mut running: Vec<BoxFuture<'s, (Scope<'a>, Flow)>> =
            Vec::with_capacity(iterations.len());
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
        self.bind(id, Variable::list(results));
        self.refresh_watches().await;
        all
    }

    /// Ends the case because a list is none.
    fn no_list(&mut self, id: &str, list: &Expression, found: &Value) -> Ended {
        let message = format!("`{}` is no list: {}", list.text, short(found));
        let steps: Vec<String> =
            list.variables.iter().filter_map(|variable| self.step_of(variable)).collect();
        if steps.is_empty() {
            return self.stuck(id, message);
        }
        let actual = found.clone();
        let why = Explanation { message, actual, steps, ..Explanation::default() };
        self.lacking(id, why)
    }

    /// The list may come from the server.
    fn most(&self) -> usize {
        MOST * usize::try_from(self.session.load).unwrap_or(1)
    }

    fn iterations(&mut self, inner: &Loop) -> Result<Vec<Scope<'a>>, Ended> {
        let items: Vec<Option<Value>> = match &inner.times {
            Times::Count(count) => (0..*count).map(|_| None).collect(),
            Times::Over { list, .. } => match evaluate(list, &self.values) {
                Ok(Value::Array(items)) if items.len() > self.most() => {
                    let message = format!(
                        "`{}` has {} items, more than {}",
                        list.text,
                        items.len(),
                        self.most()
                    );
                    return Err(self.stuck(&inner.id, message));
                }
                Ok(Value::Array(items)) => items.into_iter().map(Some).collect(),
                Ok(other) => return Err(self.no_list(&inner.id, list, &other)),
                Err(error) => return Err(self.unusable(&inner.id, list, error.to_string())),
            },
        };
        let iterations = items.into_iter().enumerate().map(|(n, item)| {
            let mut iteration = self.child(&inner.id, n);
            iteration.values.set("i", json!(n));
            if let (Times::Over { variable, .. }, Some(item)) = (&inner.times, item) {
                iteration.record.set_item(variable, &item);
                iteration.values.set(variable, item);
            }
            iteration
        });
        Ok(iterations.collect())
    }
}

/// The rounds of an `until` so far.
struct Rounds {
    begun: Instant,
    count: u32,
    /// The number of rounds with a response of an overloaded server.
    overloaded: u32,
    /// The time of pauses, and of rounds whose responses came in time.
    fair: Duration,
    longest_pause: Duration,
    /// The values of the last complete round.
    last: Option<Values>,
}

impl Rounds {
    fn new() -> Self {
        Self {
            begun: Instant::now(),
            count: 0,
            overloaded: 0,
            fair: Duration::ZERO,
            longest_pause: FIRST_PAUSE,
            last: None,
        }
    }

    /// Records a round that was not cut off.
    fn complete(&mut self, took: Duration, quick: Duration, values: &Values) {
        self.count += 1;
        if took < quick {
            self.fair += took;
        }
        self.last = Some(values.clone());
    }

    /// Returns why the server is not at fault for a condition that stayed false. `waited` is the
    /// time of all rounds if it expired before the attempts were used up. Pauses and quick
    /// responses indicate a wrong server; slow responses and overload do not.
    fn excuse(&self, waited: Option<Duration>, fair_wait: Duration) -> Option<&'static str> {
        match waited {
            Some(time) if time < fair_wait => Some(TIME_WENT),
            _ if self.overloaded > self.count / 2 => Some(OVERLOADED),
            Some(time) if self.fair < time / 2 => Some(RESPONSES_TOOK),
            _ => None,
        }
    }

    /// Returns the next pause. Random pauses separate clients that compete for one object.
    fn next_pause(&mut self, longest: Duration) -> Duration {
        let pause = self.longest_pause.mul_f64(rand::random_range(0.25..=1.0));
        self.longest_pause = self.longest_pause.mul_f64(PAUSE_GROWTH).min(longest);
        pause
    }

    async fn pause(&mut self, pause: Duration) {
        let begun = Instant::now();
        tokio::time::sleep(pause).await;
        self.fair += begun.elapsed();
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    const FAIR_WAIT: Duration = Duration::from_secs(5);

    #[rstest]
    #[case::prompt_until_the_attempts_end((20, 0, 0), None, None)]
    #[case::prompt_until_the_time_ends((20, 0, 9), Some(10), None)]
    #[case::slow((3, 0, 2), Some(10), Some(RESPONSES_TOOK))]
    #[case::after_slow_steps((3, 0, 2), Some(2), Some(TIME_WENT))]
    #[case::overloaded_until_the_attempts_end((20, 11, 0), None, Some(OVERLOADED))]
    #[case::overloaded_until_the_time_ends((20, 20, 9), Some(10), Some(OVERLOADED))]
    #[case::overloaded_in_half_of_the_rounds((20, 10, 0), None, None)]
    #[case::overloaded_in_the_only_round((1, 1, 0), None, Some(OVERLOADED))]
    #[case::no_round_complete((0, 0, 0), Some(10), Some(RESPONSES_TOOK))]
    fn slow_and_overloaded_servers_are_excused(
        #[case] (count, overloaded, fair): (u32, u32, u64),
        #[case] waited: Option<u64>,
        #[case] expected: Option<&str>,
    ) {
        let fair = Duration::from_secs(fair);
        let rounds = Rounds { count, overloaded, fair, ..Rounds::new() };
        assert_eq!(rounds.excuse(waited.map(Duration::from_secs), FAIR_WAIT), expected);
    }
}
