use std::time::Duration;

use rstest::rstest;

use super::*;
use crate::exchange::{Received, Transcript};
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
    let shown: Vec<usize> =
        record.checks.iter().map(|check| check.actual.to_string().len()).collect();
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
    let seen: Vec<_> =
        checks.iter().map(|c| (c.id.as_str(), c.verdict, c.message.as_str())).collect();
    assert_eq!(
        seen,
        [("a", Verdict::Fail, "Fail (in 2 of 4 iterations)"), ("b", Verdict::Pass, "")]
    );
}

#[tokio::test]
async fn of_iterations_that_are_equally_bad_the_first_is_reported() {
    let mut record = Record::default();
    for (id, message) in [("a", "one"), ("a", "two"), ("b", "alone")] {
        record
            .check(CheckResult { message: message.to_owned(), ..check_result(id, Verdict::Fail) });
    }
    let (checks, _) = record.finish().await;
    let messages: Vec<_> = checks.iter().map(|check| check.message.as_str()).collect();
    assert_eq!(messages, ["one (in 2 of 2 iterations)", "alone"]);
}

#[tokio::test]
async fn a_failed_check_has_the_items_of_the_first_iteration_that_failed() {
    let mut record = Record::new();
    record.set_item("kind", &json!("Pod"));
    for (code, verdict) in [(200, Verdict::Pass), (404, Verdict::Fail), (409, Verdict::Fail)] {
        let mut iteration = record.child();
        iteration.set_item("code", &json!(code));
        iteration.check(check_result("a", verdict));
        iteration.check(check_result("b", Verdict::Pass));
        record.append(iteration);
    }
    let (checks, _) = record.finish().await;
    let items: Vec<_> = checks.iter().map(|check| json!(check.items)).collect();
    assert_eq!(items, [json!({"code": 404, "kind": "Pod"}), json!({})]);
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
async fn everything_sent_is_reported_in_the_order_of_sending() {
    let at = |seconds, outcome| Exchange {
        started: Duration::from_secs(seconds),
        ..exchange("/x", outcome)
    };
    let responded = |json| Outcome::Response(Received { json, ..received(200) });
    let mut record = Record::default();
    record.sent("third".to_owned(), at(3, responded(Some(Arc::new(json!({}))))));
    let watch = OpenWatch::seen(at(2, responded(None)), Vec::new());
    record.opened("second".to_owned(), Arc::new(Mutex::new(watch)));
    let stream = OpenStream::rejected(at(4, responded(None)), Vec::new());
    let check = check_result("framing", Verdict::Pass);
    record.opened_stream("fourth".to_owned(), Arc::new(stream), check);
    let mut iteration = Record::default();
    iteration.sent("first".to_owned(), at(1, responded(None)));
    iteration.check(check_result("a", Verdict::Pass));
    record.append(iteration);
    assert_eq!(record.checks.len(), 1);
    let (checks, exchanges) = record.superseded().finish().await;
    assert_eq!(checks.len(), 0);
    let steps: Vec<&str> = exchanges.iter().map(|named| named.step.as_str()).collect();
    assert_eq!(steps, ["first", "second", "third", "fourth"]);
    // Reports read the bytes.
    assert!(exchanges[2].exchange.json().is_none());
}

#[test]
fn superseded_rounds_keep_the_start_of_long_bodies() {
    let body = format!("a{}", "é".repeat(LONGEST_BODY));
    let outcome = Outcome::Response(Received { body: body.into(), ..received(200) });
    let mut record = Record::default();
    record.sent("a".to_owned(), exchange("/x", outcome));
    record.check(check_result("a", Verdict::Fail));
    let record = record.superseded();
    assert!(record.checks.is_empty());
    let body = &record.exchanges[0].exchange.response().unwrap().body;
    assert_eq!(str::from_utf8(body).unwrap().len(), LONGEST_BODY - 1);
}

#[test]
fn a_stream_is_judged_by_its_worst_frame_and_no_stream_not_at_all() {
    let judged = |stream| {
        let outcome = Outcome::Response(Received { stream, ..received(101) });
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
