//! What a case has done and found so far.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::Mutex;

use crate::event::{CheckResult, NamedExchange, Verdict};
use crate::exchange::{Exchange, Outcome};
use crate::stream::OpenStream;
use crate::verdict::{failed_at, shorten};
use crate::watch::OpenWatch;

/// Bytes of a value or text in a check.
const MAX_SHOWN: usize = 64 << 10;

/// Levels of a value in a check: what reads reports takes no more than about twice as many.
const MAX_DEPTH: usize = 60;

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
    /// Takes an exchange in. Reports read bodies as they came; what was made of one is in the variables of the case already.
    pub(super) fn sent(&mut self, step: String, mut exchange: Exchange) {
        if let Outcome::Answered(received) = &mut exchange.outcome {
            received.json = None;
        }
        self.exchanges.push(NamedExchange { step, exchange: Arc::new(exchange) });
    }

    pub(super) fn opened(&mut self, step: String, watch: SharedWatch) {
        self.watches.push((step, watch));
    }

    pub(super) fn opened_stream(&mut self, step: String, stream: Arc<OpenStream>, check: CheckResult) {
        self.streams.push((step, stream, check));
    }

    /// Takes a check in. What it shows is enough to see what is wrong, however much the server sent.
    pub(super) fn check(&mut self, mut result: CheckResult) {
        for value in [&mut result.expected, &mut result.actual] {
            bound(value);
        }
        for text in
            [Some(&mut result.message), result.diff.as_mut(), result.curl.as_mut()].into_iter().flatten()
        {
            if text.len() > MAX_SHOWN {
                *text = shorten(text);
            }
        }
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
            let exchange = watch.lock().await.finish();
            exchanges.push(NamedExchange { step, exchange: Arc::new(exchange) });
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

/// Puts the beginning of its text in the place of a value that is too large, or too deep for others to read again.
fn bound(value: &mut Value) {
    if !is_shown(value, &mut MAX_SHOWN.clone(), MAX_DEPTH) {
        *value = json!(shorten(&value.to_string()));
    }
}

fn is_shown(value: &Value, room: &mut usize, depth: usize) -> bool {
    let own = match value {
        Value::String(text) => text.len(),
        _ => 8,
    };
    let Some(rest) = room.checked_sub(own) else { return false };
    *room = rest;
    match value {
        Value::Array(items) => depth > 0 && items.iter().all(|item| is_shown(item, room, depth - 1)),
        Value::Object(members) => {
            depth > 0
                && members.iter().all(|(name, member)| {
                    let fits = room.checked_sub(name.len()).map(|rest| *room = rest).is_some();
                    fits && is_shown(member, room, depth - 1)
                })
        }
        _ => true,
    }
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
    use std::time::Duration;

    use rstest::rstest;

    use super::*;
    use crate::exchange::Received;
    use crate::stream::Transcript;
    use crate::testing::{check_result, exchange, received};

    #[test]
    fn what_is_large_or_deep_is_shown_by_its_beginning() {
        let deep = (0..200).fold(json!(1), |inner, _| json!([inner]));
        let wide = json!(vec![0; 100_000]);
        let mut record = Record::default();
        for (id, actual) in [("a", deep), ("b", wide), ("c", json!({"a": [1, "b"]}))] {
            let message = "x".repeat(1 << 20);
            record.check(CheckResult { actual, message, ..check_result(id, Verdict::Fail) });
        }
        let shown: Vec<usize> = record.checks.iter().map(|check| check.actual.to_string().len()).collect();
        assert!(shown[..2].iter().all(|length| *length < 1000), "{shown:?}");
        assert_eq!(record.checks[2].actual, json!({"a": [1, "b"]}));
        assert!(record.checks.iter().all(|check| check.message.len() < 1000));
    }

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
    #[tokio::test]
    async fn of_iterations_that_are_equally_bad_the_first_is_told() {
        let mut record = Record::default();
        for (id, message) in [("a", "one"), ("a", "two"), ("b", "alone")] {
            record.check(CheckResult { message: message.to_owned(), ..check_result(id, Verdict::Fail) });
        }
        let (checks, _) = record.finish().await;
        let told: Vec<_> = checks.iter().map(|check| check.message.as_str()).collect();
        assert_eq!(told, ["one (in 2 of 2 iterations)", "alone"]);
    }

    #[rstest]
    #[case(json!("abc"), 3, 0, true)]
    #[case(json!("abc"), 2, 9, false)]
    #[case(json!(1), 8, 0, true)]
    #[case(json!(1), 7, 9, false)]
    #[case(json!([1]), 16, 1, true)]
    #[case(json!([1]), 15, 1, false)]
    #[case(json!([1]), 16, 0, false)]
    #[case(json!([[1]]), 99, 1, false)]
    #[case(json!({"ab": "c"}), 11, 1, true)]
    #[case(json!({"ab": "c"}), 10, 1, false)]
    #[case(json!({"ab": "c"}), 11, 0, false)]
    #[case(json!({"a": {"b": 1}}), 99, 2, true)]
    #[case(json!({"a": {"b": 1}}), 99, 1, false)]
    #[case(json!(["a", "b", "c"]), 11, 1, true)]
    #[case(json!(["a", "b", "c"]), 10, 1, false)]
    fn a_value_is_shown_within_its_room_and_depth(
        #[case] value: Value,
        #[case] mut room: usize,
        #[case] depth: usize,
        #[case] expected: bool,
    ) {
        assert_eq!(is_shown(&value, &mut room, depth), expected);
    }

    #[rstest]
    #[case(MAX_SHOWN, true)]
    #[case(MAX_SHOWN + 1, false)]
    fn texts_are_shown_up_to_a_length(#[case] length: usize, #[case] whole: bool) {
        let text = "x".repeat(length);
        let mut record = Record::default();
        record.check(CheckResult { message: text.clone(), ..check_result("a", Verdict::Fail) });
        assert_eq!(record.checks[0].message == text, whole);
    }

    #[rstest]
    #[case(Verdict::Pass, false)]
    #[case(Verdict::Warn, false)]
    #[case(Verdict::Fail, true)]
    #[case(Verdict::Error, true)]
    fn a_failure_is_remembered(#[case] verdict: Verdict, #[case] expected: bool) {
        let mut record = Record::default();
        record.check(check_result("a", verdict));
        record.check(check_result("b", Verdict::Pass));
        assert_eq!(record.has_failed(), expected);
    }

    #[tokio::test]
    async fn everything_sent_is_told_in_the_order_of_sending() {
        let at =
            |seconds, outcome| Exchange { started: Duration::from_secs(seconds), ..exchange("/x", outcome) };
        let answered = |json| Outcome::Answered(Received { json, ..received(200) });
        let mut record = Record::default();
        record.sent("third".to_owned(), at(3, answered(Some(Arc::new(json!({}))))));
        let watch = OpenWatch::seen(at(2, answered(None)), Vec::new());
        record.opened("second".to_owned(), Arc::new(Mutex::new(watch)));
        let stream = OpenStream::refused(at(4, answered(None)), Vec::new());
        let check = check_result("framing", Verdict::Pass);
        record.opened_stream("fourth".to_owned(), Arc::new(stream), check);
        let mut iteration = Record::default();
        iteration.sent("first".to_owned(), at(1, answered(None)));
        iteration.check(check_result("a", Verdict::Pass));
        record.append(iteration);
        assert_eq!(record.checks.len(), 1);
        let (checks, exchanges) = record.without_checks().finish().await;
        assert_eq!(checks.len(), 0);
        let steps: Vec<&str> = exchanges.iter().map(|named| named.step.as_str()).collect();
        assert_eq!(steps, ["first", "second", "third", "fourth"]);
        // Reports read the bytes.
        assert!(exchanges[2].exchange.json().is_none());
    }

    #[test]
    fn a_stream_is_judged_by_its_worst_frame_and_no_stream_not_at_all() {
        let judged = |stream| {
            let outcome = Outcome::Answered(Received { stream, ..received(101) });
            framing(check_result("framing", Verdict::Pass), &exchange("/x", outcome))
        };
        assert!(judged(None).is_none());
        assert_eq!(judged(Some(Arc::default())).unwrap().verdict, Verdict::Pass);
        let mut transcript = Transcript::default();
        transcript.violations = vec!["a reserved bit".to_owned(), "another".to_owned()];
        let check = judged(Some(Arc::new(transcript))).unwrap();
        assert_eq!((check.verdict, check.message.as_str()), (Verdict::Fail, "a reserved bit"));
        assert_eq!(check.actual, json!(["a reserved bit", "another"]));
    }
}
