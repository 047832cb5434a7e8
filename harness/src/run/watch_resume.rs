//! Resumes a watch that the server closed.

use percent_encoding::utf8_percent_encode;

use super::request::QUERY;
use crate::exchange::WatchEvent;
use crate::transport::Outgoing;
use crate::transport::watch::OpenWatch;

/// Returns the request that resumes a watch after its last event.
///
/// `None` if the client may have missed events: initial events were incomplete, or the client chose
/// the duration.
pub(super) fn outgoing(watch: &OpenWatch) -> Option<Outgoing> {
    let sent = &watch.head.request;
    let (path, query) = sent.target.split_once('?')?;
    let asked = |name: &str| {
        query
            .split('&')
            .find_map(|parameter| parameter.strip_prefix(name)?.strip_prefix('='))
            .unwrap_or_default()
    };
    if !asked("timeoutSeconds").is_empty() {
        return None;
    }
    let last = watch.events().iter().rev().find_map(version);
    let listed = watch.events().iter().any(ends_initial_events);
    let from_a_version =
        !matches!(asked("resourceVersion"), "" | "0") && asked("sendInitialEvents").is_empty();
    let version = match last {
        Some(version) if listed || from_a_version => {
            utf8_percent_encode(version, QUERY).to_string()
        }
        None if from_a_version => asked("resourceVersion").to_owned(),
        _ => return None,
    };
    let kept = query.split('&').filter(|parameter| {
        let name = parameter.split('=').next().unwrap_or_default();
        !["resourceVersion", "sendInitialEvents", "resourceVersionMatch"].contains(&name)
    });
    let version = format!("resourceVersion={version}");
    let query: Vec<&str> = kept.chain([version.as_str()]).collect();
    Some(Outgoing {
        method: sent.method.clone(),
        target: format!("{path}?{}", query.join("&")),
        headers: sent.headers.clone(),
        body: sent.body.clone(),
        identity: sent.identity,
        exact: false,
    })
}

fn version(event: &WatchEvent) -> Option<&str> {
    event.object.pointer("/metadata/resourceVersion")?.as_str().filter(|_| event.kind != "ERROR")
}

fn ends_initial_events(event: &WatchEvent) -> bool {
    event.object.pointer("/metadata/annotations/k8s.io~1initial-events-end").is_some()
}

#[cfg(test)]
mod tests {
    use kubeproof_cases::case::Identity;
    use rstest::rstest;
    use serde_json::json;

    use super::*;
    use crate::exchange::Outcome;
    use crate::testing::{event, exchange, received};

    fn at(version: &str) -> WatchEvent {
        event("ADDED", json!({"metadata": {"resourceVersion": version}}))
    }

    fn listed(version: &str) -> WatchEvent {
        let annotations = json!({"k8s.io/initial-events-end": "true"});
        event(
            "BOOKMARK",
            json!({"metadata": {"resourceVersion": version, "annotations": annotations}}),
        )
    }

    fn watch(query: &str, events: Vec<WatchEvent>) -> OpenWatch {
        OpenWatch::seen(exchange(&format!("/a?{query}"), Outcome::Response(received(200))), events)
    }

    #[rstest]
    #[case::behind_the_last(
        "watch=1&resourceVersion=5",
        vec![at("6"), at("7")],
        "watch=1&resourceVersion=7"
    )]
    #[case::nothing_came("watch=1&resourceVersion=5", vec![], "watch=1&resourceVersion=5")]
    #[case::an_error_has_no_version(
        "watch=1&resourceVersion=5",
        vec![at("6"), event("ERROR", json!({"metadata": {"resourceVersion": "9"}}))],
        "watch=1&resourceVersion=6"
    )]
    #[case::one_without_a_version(
        "watch=1&resourceVersion=5",
        vec![at("6"), event("ADDED", json!({"metadata": {}}))],
        "watch=1&resourceVersion=6"
    )]
    #[case::other_parameters_stay(
        "labelSelector=a%3Db&resourceVersion=5&watch=1",
        vec![at("6")],
        "labelSelector=a%3Db&watch=1&resourceVersion=6"
    )]
    #[case::versions_are_opaque(
        "watch=1&resourceVersion=5",
        vec![at("a/b=c")],
        "watch=1&resourceVersion=a%2Fb%3Dc"
    )]
    #[case::what_was_sent_stays_encoded(
        "watch=1&resourceVersion=a%2Fb",
        vec![],
        "watch=1&resourceVersion=a%2Fb"
    )]
    #[case::the_list_is_not_streamed_twice(
        "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan",
        vec![at("3"), listed("6"), at("7")],
        "watch=1&resourceVersion=7"
    )]
    #[case::from_now_once_listed("watch=1", vec![listed("6")], "watch=1&resourceVersion=6")]
    #[case::a_name_that_begins_alike(
        "watch=1&resourceVersion=5&timeoutSecondsX=1",
        vec![],
        "watch=1&timeoutSecondsX=1&resourceVersion=5"
    )]
    fn a_watch_goes_on_behind_its_last_event(
        #[case] query: &str,
        #[case] events: Vec<WatchEvent>,
        #[case] expected: &str,
    ) {
        let next = outgoing(&watch(query, events)).expect("it can go on");
        assert_eq!(next.target, format!("/a?{expected}"));
        assert_eq!(
            (next.method.as_str(), next.identity, next.exact),
            ("GET", Identity::Second, false)
        );
        assert_eq!(next.headers, [("accept".to_owned(), "application/json".to_owned())]);
    }

    #[rstest]
    #[case::for_a_time("watch=1&resourceVersion=5&timeoutSeconds=1", vec![at("6")])]
    #[case::from_anywhere("watch=1", vec![at("6")])]
    #[case::from_any_version("watch=1&resourceVersion=0", vec![at("6")])]
    #[case::from_anywhere_and_nothing_came("watch=1", vec![])]
    #[case::amid_the_list("watch=1&resourceVersion=5&sendInitialEvents=true", vec![at("6")])]
    #[case::before_the_list("watch=1&resourceVersion=5&sendInitialEvents=true", vec![])]
    fn a_watch_that_may_have_missed_something_does_not(
        #[case] query: &str,
        #[case] events: Vec<WatchEvent>,
    ) {
        assert!(outgoing(&watch(query, events)).is_none());
    }

    #[test]
    fn a_target_without_a_query_is_no_watch() {
        let head = exchange("/a", Outcome::Response(received(200)));
        assert!(outgoing(&OpenWatch::seen(head, vec![at("6")])).is_none());
    }
}
