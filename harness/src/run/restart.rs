//! Decides whether a failed case restarts.
//!
//! A server may compact old versions and close watches at any time. Clients then list again, and a
//! case starts again.

use crate::event::NamedExchange;
use crate::exchange::{Received, WatchEnd};

/// Reports whether the server compacted a version or closed a watch.
pub(super) fn lost_history(exchanges: &[NamedExchange]) -> bool {
    exchanges.iter().any(|named| {
        let exchange = &named.exchange;
        let chose_its_time = exchange.request.target.contains("timeoutSeconds=");
        exchange.response().is_some_and(|answer| {
            answer.status == 410
                || has_expired(answer)
                || (answer.end == Some(WatchEnd::Server) && !chose_its_time)
        })
    })
}

fn has_expired(answer: &Received) -> bool {
    let last = answer.events.last().filter(|event| event.kind == "ERROR");
    last.is_some_and(|event| {
        event.object.get("code").and_then(serde_json::Value::as_u64) == Some(410)
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rstest::rstest;
    use serde_json::json;

    use super::*;
    use crate::exchange::{Broken, BrokenKind, Outcome, WatchEvent};
    use crate::testing::{event, exchange, received};

    fn named(target: &str, outcome: Outcome) -> NamedExchange {
        NamedExchange { step: "step".to_owned(), exchange: Arc::new(exchange(target, outcome)) }
    }

    fn watched(target: &str, events: Vec<WatchEvent>, end: Option<WatchEnd>) -> NamedExchange {
        named(target, Outcome::Response(Received { events, end, ..received(200) }))
    }

    fn expired() -> WatchEvent {
        event("ERROR", json!({"kind": "Status", "code": 410}))
    }

    #[rstest]
    #[case::a_version_is_gone(named("/a", Outcome::Response(received(410))), true)]
    #[case::the_end_of_a_watch(watched("/a?watch=1", vec![], Some(WatchEnd::Server)), true)]
    #[case::a_watch_expires(watched("/a?watch=1", vec![expired()], Some(WatchEnd::Client)), true)]
    #[case::all_is_well(named("/a", Outcome::Response(received(200))), false)]
    #[case::another_refusal(named("/a", Outcome::Response(received(404))), false)]
    #[case::no_answer(
        named("/a", Outcome::Broken(Broken { kind: BrokenKind::Deadline, message: "late".into() })),
        false
    )]
    #[case::a_watch_goes_on(watched("/a?watch=1", vec![], None), false)]
    #[case::the_case_hung_up(watched("/a?watch=1", vec![], Some(WatchEnd::Client)), false)]
    #[case::a_watch_broke(
        watched("/a?watch=1", vec![], Some(WatchEnd::Broken("reset".into()))),
        false
    )]
    #[case::the_time_that_was_asked_for(
        watched("/a?watch=1&timeoutSeconds=1", vec![], Some(WatchEnd::Server)),
        false
    )]
    #[case::another_error(
        watched("/a?watch=1", vec![event("ERROR", json!({"code": 500}))], Some(WatchEnd::Client)),
        false
    )]
    #[case::an_object_of_that_code(
        watched("/a?watch=1", vec![event("ADDED", json!({"code": 410}))], Some(WatchEnd::Client)),
        false
    )]
    #[case::an_error_that_was_not_the_last(
        watched("/a?watch=1", vec![expired(), event("ADDED", json!({}))], Some(WatchEnd::Client)),
        false
    )]
    fn a_case_restarts_after_what_servers_need_not_keep(
        #[case] one: NamedExchange,
        #[case] cut_off: bool,
    ) {
        assert_eq!(lost_history(std::slice::from_ref(&one)), cut_off);
        let well = || named("/b", Outcome::Response(received(200)));
        assert_eq!(lost_history(&[well(), one, well()]), cut_off);
        assert!(!lost_history(&[]));
    }
}
