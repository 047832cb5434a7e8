//! The exchanges and checks of a case so far.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};

use serde_json::{Value, json};
use tokio::sync::Mutex;

use super::shown::{MAX_SHOWN, bound};
use crate::event::{CheckResult, NamedExchange, SkipReason, Symptom, Verdict};
use crate::exchange::{Exchange, Outcome, shorten};
use crate::transport::stream::OpenStream;
use crate::transport::watch::OpenWatch;
use crate::verdict::failed_at;

/// Limit on the steps of a check that iterations add.
const MOST_STEPS: usize = 6;

/// Limit on the bytes of a body of a superseded round. Most reports show no more.
const LONGEST_BODY: usize = 64 << 10;

/// A watch that several iterations read.
pub(super) type SharedWatch = Arc<Mutex<OpenWatch>>;

/// Exchanges and checks in order.
#[derive(Default)]
pub(super) struct Record {
    checks: Vec<CheckResult>,
    exchanges: Vec<NamedExchange>,
    /// Open watches. Their events are complete only at the end.
    watches: Vec<(String, SharedWatch)>,
    /// Open streams, with the check of their framing.
    streams: Vec<(String, Arc<OpenStream>, CheckResult)>,
    /// The items of the loops around the steps, by the variable of each loop.
    items: BTreeMap<String, Value>,
    /// Why the case did not end: a prerequisite does not work.
    blocked: Option<SkipReason>,
    /// What dropped records of iterations contained. A timeout drops them.
    dropped: Option<Arc<Lost>>,
}

/// The checks and exchanges of dropped iterations.
type Lost = std::sync::Mutex<(Vec<CheckResult>, Vec<NamedExchange>)>;

impl Drop for Record {
    fn drop(&mut self) {
        if let Some(dropped) = &self.dropped {
            let mut dropped = dropped.lock().unwrap_or_else(PoisonError::into_inner);
            dropped.0.append(&mut self.checks);
            dropped.1.append(&mut self.exchanges);
        }
    }
}

impl Record {
    /// Creates the record of a case.
    pub(super) fn new() -> Self {
        let mut record = Self::default();
        record.dropped = Some(Arc::default());
        record
    }

    /// Creates the record of an iteration. If it is dropped, `recover` finds its checks.
    pub(super) fn child(&self) -> Self {
        let mut child = Self::default();
        child.dropped.clone_from(&self.dropped);
        child.items.clone_from(&self.items);
        child
    }

    /// Names the item of the iteration that the record is about. Failed checks show it.
    pub(super) fn set_item(&mut self, variable: &str, item: &Value) {
        self.items.insert(variable.to_owned(), item.clone());
    }

    /// Keeps the checks out of the case if the record is dropped.
    pub(super) fn isolate(&mut self) {
        self.dropped = None;
    }

    /// Adds the checks and exchanges of iterations that were dropped.
    pub(super) fn recover(&mut self) {
        if let Some(dropped) = self.dropped.take() {
            let mut dropped = dropped.lock().unwrap_or_else(PoisonError::into_inner);
            self.checks.append(&mut dropped.0);
            self.exchanges.append(&mut dropped.1);
        }
    }

    /// Records an exchange. Reports read the raw body, so the parsed one is dropped.
    pub(super) fn sent(&mut self, step: String, mut exchange: Exchange) {
        if let Outcome::Response(received) = &mut exchange.outcome {
            received.json = None;
        }
        self.exchanges.push(NamedExchange { step, exchange: Arc::new(exchange) });
    }

    pub(super) fn opened(&mut self, step: String, watch: SharedWatch) {
        self.watches.push((step, watch));
    }

    pub(super) fn opened_stream(
        &mut self,
        step: String,
        stream: Arc<OpenStream>,
        check: CheckResult,
    ) {
        self.streams.push((step, stream, check));
    }

    /// Records a check, and shortens large values.
    pub(super) fn check(&mut self, mut result: CheckResult) {
        if result.verdict != Verdict::Pass {
            result.items.clone_from(&self.items);
        }
        for value in [&mut result.expected, &mut result.actual] {
            bound(value);
        }
        result.items.values_mut().for_each(bound);
        // The curl command is useful only as a whole.
        for text in [Some(&mut result.message), result.diff.as_mut()].into_iter().flatten() {
            if text.len() > MAX_SHOWN {
                *text = shorten(text);
            }
        }
        self.checks.push(result);
    }

    /// Reports whether something failed already. Consequences are not reported again.
    pub(super) fn has_failed(&self) -> bool {
        self.checks.iter().any(|check| check.verdict >= Verdict::Fail)
    }

    /// Records that a prerequisite does not work.
    pub(super) fn block(&mut self, reason: SkipReason) {
        self.blocked.get_or_insert(reason);
    }

    /// Blocks a case that cannot go on after it met a defect that another case reports.
    pub(super) fn block_by_reported(&mut self) -> bool {
        let met = self.checks.iter().find_map(|check| {
            Some(SkipReason::Reported {
                defect: check.message.clone(),
                case: check.reported_by.clone()?,
            })
        });
        met.map(|reason| self.block(reason)).is_some()
    }

    /// Returns the prerequisite that blocked the case. A failure before it counts more.
    pub(super) fn take_blocked(&mut self) -> Option<SkipReason> {
        self.blocked.take().filter(|_| !self.has_failed())
    }

    /// Turns failed checks into errors, from a number of checks on.
    pub(super) fn excuse(&mut self, from: usize, reason: &str) {
        for check in self.checks.iter_mut().skip(from) {
            if matches!(check.verdict, Verdict::Fail | Verdict::Warn) {
                check.verdict = Verdict::Error;
                check.message = format!("{}; {reason}", check.message);
                check.symptom = None;
            }
        }
    }

    /// Returns the number of checks.
    pub(super) fn checks(&self) -> usize {
        self.checks.len()
    }

    /// Reports whether a check failed, from a number of checks on.
    pub(super) fn fails_from(&self, from: usize) -> bool {
        let failed = |check: &CheckResult| matches!(check.verdict, Verdict::Fail | Verdict::Warn);
        self.checks.iter().skip(from).any(failed)
    }

    /// Reports whether a response shows that the server, or a proxy before it, is overloaded.
    pub(super) fn shows_overload(&self) -> bool {
        let overloaded = |named: &NamedExchange| matches!(named.exchange.status(), 429 | 503 | 504);
        self.exchanges.iter().any(overloaded)
    }

    /// Takes over the record of an iteration.
    pub(super) fn append(&mut self, mut other: Self) {
        self.checks.append(&mut other.checks);
        self.exchanges.append(&mut other.exchanges);
        self.watches.append(&mut other.watches);
        self.streams.append(&mut other.streams);
        self.blocked = self.blocked.take().or_else(|| other.blocked.take());
    }

    /// Drops what a later round replaces: the checks, and the rest of long bodies.
    pub(super) fn superseded(mut self) -> Self {
        self.checks.clear();
        for named in &mut self.exchanges {
            if named.exchange.response().is_some_and(|it| it.body.len() > LONGEST_BODY) {
                Arc::make_mut(&mut named.exchange).shorten_body(LONGEST_BODY);
            }
        }
        self
    }

    /// Returns each check once with its worst verdict, and exchanges in the order of sending. The
    /// checks of framing come first.
    pub(super) async fn finish(mut self) -> (Vec<CheckResult>, Vec<NamedExchange>) {
        self.dropped = None;
        let mut exchanges = std::mem::take(&mut self.exchanges);
        let mut checks = Vec::new();
        for (step, stream, check) in std::mem::take(&mut self.streams) {
            stream.hang_up();
            let exchange = stream.snapshot();
            checks.extend(framing(check, &exchange));
            exchanges.push(NamedExchange { step, exchange: Arc::new(exchange) });
        }
        // Wrong frames explain the failures of later checks, so their check comes first.
        checks.append(&mut self.checks);
        for (step, watch) in std::mem::take(&mut self.watches) {
            let exchange = watch.lock().await.finish();
            exchanges.push(NamedExchange { step, exchange: Arc::new(exchange) });
        }
        exchanges.sort_by_key(|named| named.exchange.started);
        let mut checks = merged(checks);
        order_steps(&mut checks, &exchanges);
        (checks, exchanges)
    }
}

/// Puts the steps of checks in the order of sending. A step without exchange decided nothing.
fn order_steps(checks: &mut [CheckResult], exchanges: &[NamedExchange]) {
    let order: BTreeMap<&str, usize> =
        exchanges.iter().enumerate().map(|(at, named)| (named.step.as_str(), at)).collect();
    for check in checks {
        check.steps.retain(|step| order.contains_key(step.as_str()));
        check.steps.sort_by_key(|step| order.get(step.as_str()).copied());
        check.steps.dedup();
    }
}

/// Checks that the server sent only valid frames. `None` without a stream.
fn framing(mut check: CheckResult, exchange: &Exchange) -> Option<CheckResult> {
    let transcript = exchange.response()?.stream.as_ref()?;
    check.expected = json!("every frame is well formed, and in its place");
    if let [first, ..] = transcript.violations.as_slice() {
        check.verdict = failed_at(check.level);
        check.actual = json!(transcript.violations);
        check.message.clone_from(first);
        check.symptom = Some(Symptom::BrokenFraming { request: exchange.request.verb() });
    }
    Some(check)
}

/// Merges the checks of many iterations into one with the worst verdict and a count.
fn merged(checks: Vec<CheckResult>) -> Vec<CheckResult> {
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    let mut tally: Vec<(usize, usize)> = Vec::new();
    let mut merged: Vec<CheckResult> = Vec::new();
    for check in checks {
        let bad = usize::from(check.verdict > Verdict::Pass);
        if let Some(place) = places.get(&check.id) {
            tally[*place].0 += 1;
            tally[*place].1 += bad;
            let worst = &mut merged[*place];
            let weight = |check: &CheckResult| check.verdict.weight(check.level);
            if weight(&check) > weight(worst) {
                *worst = check;
            } else if bad > 0 && check.verdict == worst.verdict {
                let room = MOST_STEPS.saturating_sub(worst.steps.len());
                worst.steps.extend(check.steps.into_iter().take(room));
            }
        } else {
            places.insert(check.id.clone(), merged.len());
            tally.push((1, bad));
            merged.push(check);
        }
    }
    for (check, (judged, bad)) in merged.iter_mut().zip(tally) {
        if judged > 1 && bad > 0 {
            check.message = format!("{} (in {bad} of {judged} iterations)", check.message);
        }
    }
    merged
}

#[cfg(test)]
mod tests;
