//! Decides whether a failed case restarts.
//!
//! A server may compact old versions and close watches at any time. Clients then list again, and a
//! case starts again. The same is true if a controller writes to the objects of the case, and if a
//! gateway in front of the server fails.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::event::NamedExchange;
use crate::exchange::{Exchange, Received, WatchEnd, parse_json};

/// The managers of this program begin with it.
const OWN: &str = "kubeproof";

/// Attempts of a case.
const ATTEMPTS: usize = 3;

/// Attempts of a case whose objects a controller writes to.
const SHARED_ATTEMPTS: usize = 10;

/// Attempts in which the case waited in vain. After a few of them, the server is a more likely
/// cause than a controller, and the user waits for the report.
const SLOW_ATTEMPTS: usize = 4;

/// The attempts of a case so far.
#[derive(Debug)]
pub(super) struct Attempts {
    fair_wait: Duration,
    count: usize,
    slow: usize,
}

impl Attempts {
    /// Starts without attempts. One that takes the fair wait is slow.
    pub(super) fn new(fair_wait: Duration) -> Self {
        Self { fair_wait, count: 0, slow: 0 }
    }

    pub(super) fn add(&mut self, took: Duration) {
        self.count += 1;
        self.slow += usize::from(took >= self.fair_wait);
    }

    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Reports whether another attempt may follow.
    pub(super) fn may_go_on(&self, was_interrupted: bool, has_other_writers: bool) -> bool {
        let after_writes = has_other_writers && self.count < SHARED_ATTEMPTS;
        self.slow < SLOW_ATTEMPTS && (after_writes || was_interrupted && self.count < ATTEMPTS)
    }
}

/// Reports whether the server compacted a version or closed a watch, or a gateway failed.
pub(super) fn was_interrupted(exchanges: &[NamedExchange]) -> bool {
    lost_history(exchanges) || exchanges.iter().any(|named| is_of_a_gateway(&named.exchange))
}

/// Reports whether a gateway, not the server, rejected a request. A server sends a Status.
fn is_of_a_gateway(exchange: &Exchange) -> bool {
    exchange.response().is_some_and(|response| {
        let kind = || parse_json(&response.body)?.get("kind").cloned();
        matches!(response.status, 502..=504) && kind().is_none_or(|kind| kind != "Status")
    })
}

/// Reports whether the server compacted a version or closed a watch.
fn lost_history(exchanges: &[NamedExchange]) -> bool {
    exchanges.iter().any(|named| {
        let exchange = &named.exchange;
        let chose_its_time = exchange.request.target.contains("timeoutSeconds=");
        exchange.response().is_some_and(|response| {
            response.status == 410
                || has_expired(response)
                || (matches!(response.end, Some(WatchEnd::Server | WatchEnd::Broken(_)))
                    && !chose_its_time)
        })
    })
}

/// Reports whether a watch ended with an error after which clients list again.
fn has_expired(response: &Received) -> bool {
    let last = response.events.last().filter(|event| event.kind == "ERROR");
    let code = last.and_then(|event| event.object.get("code")?.as_u64());
    matches!(code, Some(410 | 500 | 503 | 504))
}

/// Returns the object of an update that was rejected with 409.
pub(super) fn conflict(exchange: &Exchange) -> Option<String> {
    let is_update = matches!(exchange.request.method.as_str(), "PUT" | "PATCH");
    let (path, _) =
        exchange.request.target.split_once('?').unwrap_or((&exchange.request.target, ""));
    let path =
        ["/status", "/scale"].into_iter().find_map(|part| path.strip_suffix(part)).unwrap_or(path);
    (is_update && exchange.status() == 409).then(|| path.to_owned())
}

/// Returns another client that manages an object of a case. The names of these objects begin with
/// `name`.
///
/// The managers of the case begin with the name of this program, are in a request, or are in an
/// object that is new.
pub(super) fn other_writer(exchanges: &[Arc<Exchange>], name: &str) -> Option<String> {
    // A broken server creates with another code than 201.
    let is_new = |exchange: &&Arc<Exchange>| {
        exchange.request.method == "POST" && (200..300).contains(&exchange.status())
    };
    let new = exchanges.iter().filter(is_new);
    let own: BTreeSet<String> = new.flat_map(|exchange| managers(exchange, name)).collect();
    let is_own = |manager: &str| {
        let asked = format!("fieldManager={manager}");
        manager.starts_with(OWN)
            || own.contains(manager)
            || exchanges.iter().any(|exchange| exchange.request.target.contains(&asked))
    };
    exchanges.iter().flat_map(|exchange| managers(exchange, name)).find(|manager| !is_own(manager))
}

/// Returns the managers of the objects of a case in a response: alone, in a list, or in events.
fn managers(exchange: &Exchange, name: &str) -> BTreeSet<String> {
    let Some(response) = exchange.response() else { return BTreeSet::new() };
    // The record of a case has no parsed bodies.
    let body = parse_json(&response.body).unwrap_or_default();
    let items = body.get("items").and_then(Value::as_array).into_iter().flatten();
    let events = response.events.iter().map(|event| &*event.object);
    let objects = [&body].into_iter().chain(items).chain(events);
    let is_own =
        |metadata: &&Value| metadata["name"].as_str().is_some_and(|given| given.starts_with(name));
    let metadata = objects.filter_map(|object| object.get("metadata")).filter(is_own);
    let entries = metadata.filter_map(|metadata| metadata.get("managedFields")?.as_array());
    let managers = entries.flatten().filter_map(|entry| entry["manager"].as_str());
    managers.map(str::to_owned).collect()
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
    #[case::another_rejection(named("/a", Outcome::Response(received(404))), false)]
    #[case::no_response(
        named("/a", Outcome::Broken(Broken { kind: BrokenKind::Deadline, message: "late".into() })),
        false
    )]
    #[case::a_watch_goes_on(watched("/a?watch=1", vec![], None), false)]
    #[case::the_case_hung_up(watched("/a?watch=1", vec![], Some(WatchEnd::Client)), false)]
    #[case::a_watch_broke(
        watched("/a?watch=1", vec![], Some(WatchEnd::Broken("reset".into()))),
        true
    )]
    #[case::the_time_that_was_asked_for(
        watched("/a?watch=1&timeoutSeconds=1", vec![], Some(WatchEnd::Server)),
        false
    )]
    #[case::a_watch_lost_its_storage(
        watched("/a?watch=1", vec![event("ERROR", json!({"code": 500}))], Some(WatchEnd::Client)),
        true
    )]
    #[case::another_error(
        watched("/a?watch=1", vec![event("ERROR", json!({"code": 403}))], Some(WatchEnd::Client)),
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

    #[rstest]
    #[case::of_a_gateway(502, "<h1>502 Bad Gateway</h1>", true)]
    #[case::of_a_gateway_with_json(504, r#"{"message": "upstream timed out"}"#, true)]
    #[case::of_the_server(503, r#"{"kind": "Status", "code": 503}"#, false)]
    #[case::of_a_broken_server(500, "panic", false)]
    fn a_case_restarts_after_the_failure_of_a_gateway(
        #[case] status: u16,
        #[case] body: &'static str,
        #[case] expected: bool,
    ) {
        let received = Received { body: body.into(), ..received(status) };
        let exchange = named("/a", Outcome::Response(received));
        assert_eq!(was_interrupted(&[exchange]), expected);
    }

    fn body(method: &str, status: u16, managers: &[&str]) -> Arc<Exchange> {
        let entry = |manager: &&str| json!({"manager": manager});
        let entries: Vec<_> = managers.iter().map(entry).collect();
        let object = json!({"metadata": {"name": "kp-1-a", "managedFields": entries}});
        let received = Received { body: object.to_string().into(), ..received(status) };
        let mut exchange = exchange("/a/b?fieldManager=one", Outcome::Response(received));
        exchange.request.method = method.to_owned();
        Arc::new(exchange)
    }

    #[rstest]
    #[case::only_own_writes("kubeproof", &["kubeproof", "kubeproof-other"], None)]
    #[case::a_name_in_a_request("kubeproof", &["kubeproof", "one"], None)]
    #[case::another_name_for_this_program("someone", &["someone"], None)]
    #[case::a_controller("kubeproof", &["kubeproof", "controller"], Some("controller"))]
    fn a_case_restarts_after_the_writes_of_others(
        #[case] creator: &str,
        #[case] managers: &[&str],
        #[case] expected: Option<&str>,
    ) {
        for (method, code) in [("GET", 201), ("PATCH", 201), ("GET", 200)] {
            let exchanges = [body("POST", code, &[creator]), body(method, 200, managers)];
            assert_eq!(other_writer(&exchanges, "kp-1").as_deref(), expected);
            assert_eq!(other_writer(&exchanges, "kp-2"), None);
        }
    }

    #[rstest]
    #[case::for_lost_history(1, true, false, 3)]
    #[case::for_writes_of_others(1, false, true, 10)]
    #[case::for_both(1, true, true, 10)]
    #[case::for_nothing(1, false, false, 1)]
    #[case::slow_for_lost_history(3, true, false, 3)]
    #[case::slow_for_writes_of_others(3, false, true, 4)]
    fn attempts_are_few(
        #[case] seconds: u64,
        #[case] was_interrupted: bool,
        #[case] has_other_writers: bool,
        #[case] expected: usize,
    ) {
        let mut attempts = Attempts::new(Duration::from_secs(3));
        attempts.add(Duration::from_secs(seconds));
        while attempts.may_go_on(was_interrupted, has_other_writers) {
            attempts.add(Duration::from_secs(seconds));
        }
        assert_eq!(attempts.count(), expected);
    }

    #[test]
    fn only_a_conflict_of_an_update_is_read_again() {
        assert_eq!(conflict(&body("PUT", 409, &[])).as_deref(), Some("/a/b"));
        assert_eq!(conflict(&body("PUT", 200, &[])), None);
        assert_eq!(conflict(&body("POST", 409, &[])), None);
    }
}
