//! What a case has done and found so far.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::json;
use tokio::sync::Mutex;

use crate::event::{CheckResult, NamedExchange, Verdict};
use crate::exchange::Exchange;
use crate::stream::OpenStream;
use crate::verdict::failed_at;
use crate::watch::OpenWatch;

/// A watch that steps of several iterations can read.
pub(super) type SharedWatch = Arc<Mutex<OpenWatch>>;

/// Exchanges and checks, in the order in which they happened.
#[derive(Default)]
pub(super) struct Record {
    checks: Vec<CheckResult>,
    exchanges: Vec<NamedExchange>,
    /// Their events are not known before the end.
    watches: Vec<(String, SharedWatch)>,
    /// With the check that their framing is sound.
    streams: Vec<(String, Arc<OpenStream>, CheckResult)>,
}

impl Record {
    pub(super) fn sent(&mut self, step: String, exchange: Exchange) {
        self.exchanges.push(NamedExchange { step, exchange: Arc::new(exchange) });
    }

    pub(super) fn opened(&mut self, step: String, watch: SharedWatch) {
        self.watches.push((step, watch));
    }

    pub(super) fn opened_stream(&mut self, step: String, stream: Arc<OpenStream>, check: CheckResult) {
        self.streams.push((step, stream, check));
    }

    pub(super) fn check(&mut self, result: CheckResult) {
        self.checks.push(result);
    }

    /// Whether something failed already, so that what follows from it need not be told.
    pub(super) fn has_failed(&self) -> bool {
        self.checks.iter().any(|check| check.verdict >= Verdict::Fail)
    }

    /// Takes over what an iteration did.
    pub(super) fn append(&mut self, mut other: Self) {
        self.checks.append(&mut other.checks);
        self.exchanges.append(&mut other.exchanges);
        self.watches.append(&mut other.watches);
        self.streams.append(&mut other.streams);
    }

    /// Forgets the checks of a round that is followed by another.
    pub(super) fn without_checks(mut self) -> Self {
        self.checks.clear();
        self
    }

    /// Each check once, at its worst, and everything sent in the order of sending.
    pub(super) async fn finish(mut self) -> (Vec<CheckResult>, Vec<NamedExchange>) {
        let mut exchanges = self.exchanges;
        for (step, stream, check) in self.streams {
            stream.hang_up();
            let exchange = stream.snapshot();
            self.checks.extend(framing(check, &exchange));
            exchanges.push(NamedExchange { step, exchange: Arc::new(exchange) });
        }
        for (step, watch) in self.watches {
            let mut watch = watch.lock().await;
            watch.close();
            exchanges.push(NamedExchange { step, exchange: Arc::new(watch.snapshot()) });
        }
        exchanges.sort_by_key(|named| named.exchange.started);
        (merged(self.checks), exchanges)
    }
}

/// The check that the server put nothing on the wire that no server may; none where there was no stream.
fn framing(mut check: CheckResult, exchange: &Exchange) -> Option<CheckResult> {
    let transcript = exchange.answer()?.stream.as_ref()?;
    check.expected = json!("every frame is well formed, and in its place");
    if let [first, ..] = transcript.violations.as_slice() {
        check.verdict = failed_at(check.level);
        check.actual = json!(transcript.violations);
        check.message.clone_from(first);
    }
    Some(check)
}

/// A check that was judged in many iterations counts once, at its worst, and says in how many it did not hold.
fn merged(checks: Vec<CheckResult>) -> Vec<CheckResult> {
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    let mut tally: Vec<(usize, usize)> = Vec::new();
    let mut merged: Vec<CheckResult> = Vec::new();
    for check in checks {
        let bad = usize::from(check.verdict > Verdict::Pass);
        if let Some(place) = places.get(&check.id) {
            tally[*place].0 += 1;
            tally[*place].1 += bad;
            if check.verdict > merged[*place].verdict {
                merged[*place] = check;
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
mod tests {
    use super::*;
    use crate::testing::check_result;

    #[tokio::test]
    async fn a_check_of_many_iterations_counts_once_at_its_worst() {
        let mut record = Record::default();
        for verdict in [Verdict::Pass, Verdict::Fail, Verdict::Warn, Verdict::Pass] {
            record.check(CheckResult { message: format!("{verdict:?}"), ..check_result("a", verdict) });
            record.check(check_result("b", Verdict::Pass));
        }
        let (checks, _) = record.finish().await;
        let seen: Vec<_> = checks.iter().map(|c| (c.id.as_str(), c.verdict, c.message.as_str())).collect();
        assert_eq!(seen, [("a", Verdict::Fail, "Fail (in 2 of 4 iterations)"), ("b", Verdict::Pass, "")]);
    }
}
