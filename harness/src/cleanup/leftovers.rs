//! Finds and removes objects that earlier runs left behind.
//!
//! A run removes its objects, even when it is interrupted. A run that was killed or lost its server
//! could not. Names identify these objects.

use std::time::Duration;

use futures_util::future::join_all;
use futures_util::{StreamExt, stream};
use jiff::Timestamp;
use jiff::fmt::rfc2822;
use kubeproof_cases::case::ResourceName;
use serde_json::Value;
use tokio::time::Instant;

use super::{CRDS, Remover};
use crate::capability::{Discovery, Requester, root_of};
use crate::exchange::Exchange;
use crate::target::TargetError;
use crate::transport::Client;

/// An object of an earlier run.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Leftover {
    /// Its path, such as `/api/v1/namespaces/kp-a2c123`.
    pub path: String,
    /// Time since its creation, by the clock of the server.
    pub age: Duration,
}

/// The objects to clean, and the collections that cannot be listed.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// Sorted by path.
    pub leftovers: Vec<Leftover>,
    /// The number of objects that are too young to be removed.
    pub younger: usize,
    /// Collections that the server does not list, with the reason. Objects may remain there.
    pub unseen: Vec<(String, String)>,
    /// The resources that a namespace can contain.
    namespaced: Vec<ResourceName>,
}

/// Why objects of earlier runs cannot be found.
#[derive(Debug, thiserror::Error)]
pub enum FindError {
    /// The target does not respond, rejects the credential, or is no Kubernetes API.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// The given namespace does not exist.
    #[error("the namespace {0:?} does not exist; check --namespace")]
    NoNamespace(String),
}

/// Finds objects of earlier runs that are older than `older_than`, which protects runs that are in
/// progress.
///
/// Searches cluster-scoped resources, and everything in `namespace` if given. A run with its own
/// namespace leaves that namespace as a whole.
pub async fn find(
    client: &Client,
    namespace: Option<&str>,
    older_than: Duration,
    deadline: Instant,
) -> Result<Found, FindError> {
    let reached = client.ping(deadline).await?;
    let requester = Requester { client, deadline };
    let discovery = Discovery::of(&requester, &[]).await.complete(&requester, None).await;
    let resources = discovery.resources;
    if let Some(problem) = reached.problem.filter(|_| resources.is_empty()) {
        return Err(problem.into());
    }
    if let Some(namespace) = namespace
        && resources.keys().any(|name| root_of(name) == CORE && name.resource == "namespaces")
    {
        let path = format!("{NAMESPACES}{namespace}");
        if requester.get(&path, "application/json").await.status() == 404 {
            return Err(FindError::NoNamespace(namespace.to_owned()));
        }
    }
    if resources.is_empty() {
        let why = "discovery lists no resource".to_owned();
        return Ok(Found { unseen: vec![("/".to_owned(), why)], ..Found::default() });
    }
    let removable = resources
        .iter()
        .filter(|(_, found)| ["list", "delete"].iter().all(|verb| found.verbs.contains(*verb)));
    let inside =
        removable.clone().filter(|(_, found)| found.namespaced).map(|(name, _)| name.clone());
    let collections: Vec<String> = removable
        .filter(|(_, found)| !found.namespaced || namespace.is_some())
        .map(|(name, found)| collection(name, namespace.filter(|_| found.namespaced)))
        .collect();
    let lists = join_all(
        collections.iter().map(|collection| requester.get(collection, "application/json")),
    )
    .await;
    let mut found: Vec<Leftover> = collections
        .iter()
        .zip(&lists)
        .flat_map(|(collection, list)| leftovers(collection, list))
        .collect();
    found.sort_by(|a, b| a.path.cmp(&b.path));
    // Each version of a resource lists the same object.
    found.dedup_by(|a, b| resource_and_name(&a.path) == resource_and_name(&b.path));
    let all = found.len();
    found.retain(|leftover| leftover.age >= older_than);
    let younger = all - found.len();
    // A resource may disappear after discovery.
    let unseen = collections
        .into_iter()
        .zip(&lists)
        .filter(|(_, list)| !matches!(list.status(), 200 | 404 | 405));
    let unseen = unseen.map(|(collection, list)| (collection, list.in_words())).collect();
    Ok(Found { leftovers: found, younger, unseen, namespaced: inside.collect() })
}

/// Removes these objects with their finalizers. Returns what could not be removed.
///
/// The contents of a namespace go first, since a finalizer without controller would keep it
/// forever. Definitions go last, since they serve objects.
pub async fn remove(client: &Client, found: &Found) -> Vec<String> {
    let remover = Remover::new(client);
    let namespaces =
        found.leftovers.iter().filter_map(|leftover| leftover.path.strip_prefix(NAMESPACES));
    let contents: Vec<String> = namespaces
        .flat_map(|namespace| {
            found.namespaced.iter().map(move |name| collection(name, Some(namespace)))
        })
        .collect();
    stream::iter(&contents)
        .for_each_concurrent(AT_ONCE, |collection| remover.empty(collection))
        .await;
    let (definitions, objects): (Vec<&Leftover>, Vec<&Leftover>) =
        found.leftovers.iter().partition(|leftover| leftover.path.starts_with(CRDS));
    for leftovers in [objects, definitions] {
        join_all(leftovers.iter().map(|leftover| remover.remove(&leftover.path))).await;
    }
    remover.into_notices("the cleanup ended early")
}

fn collection(name: &ResourceName, namespace: Option<&str>) -> String {
    let root = root_of(name);
    match namespace {
        Some(namespace) => format!("{root}/namespaces/{namespace}/{}", name.resource),
        None => format!("{root}/{}", name.resource),
    }
}

fn leftovers(collection: &str, list: &Exchange) -> Vec<Leftover> {
    let Some(items) = list.json().and_then(|list| list["items"].as_array()) else {
        return Vec::new();
    };
    let now = server_time(list);
    let made_by_a_run = |item: &Value| {
        let name = item["metadata"]["name"].as_str()?;
        let made: Timestamp = item["metadata"]["creationTimestamp"].as_str()?.parse().ok()?;
        let age = Duration::try_from(now.duration_since(made)).unwrap_or_default();
        is_of_a_run(name).then(|| Leftover { path: format!("{collection}/{name}"), age })
    };
    items.iter().filter_map(made_by_a_run).collect()
}

/// `creationTimestamp` uses the clock of the server, which may differ from ours.
fn server_time(exchange: &Exchange) -> Timestamp {
    let date = exchange.response().and_then(|response| {
        let (_, value) =
            response.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("date"))?;
        rfc2822::parse(value).ok()
    });
    date.map_or_else(Timestamp::now, |date| date.timestamp())
}

/// Recognises names of objects (`kp-`, run id, number), of namespaces (`kubeproof-`, run id) and of
/// definitions in a group of a run.
fn is_of_a_run(name: &str) -> bool {
    let is_run = |text: &str| {
        let mut letters = text.chars();
        text.len() == RUN
            && letters.next().is_some_and(|c| c.is_ascii_lowercase())
            && letters.next().is_some_and(|c| c.is_ascii_digit())
            && letters.all(|c| c.is_ascii_lowercase() || c.is_ascii_digit())
    };
    let named = |text: &str| is_run(text.split('-').next().unwrap_or_default());
    let any_of = |prefixes: &[&str], text: &str| {
        prefixes.iter().any(|prefix| text.strip_prefix(prefix).is_some_and(named))
    };
    if let Some((_, group)) = name.split_once('.')
        && let Some(first) = group.strip_suffix(".kubeproof.dev")
    {
        return is_run(first) || any_of(&["kp-", "kubeproof-", "probe-"], first);
    }
    any_of(&["kp-", "kubeproof-"], name)
}

const CORE: &str = "/api/v1";

const NAMESPACES: &str = "/api/v1/namespaces/";

const AT_ONCE: usize = 8;

/// Length of the id of a run.
const RUN: usize = 6;

/// Strips group and version.
fn resource_and_name(path: &str) -> Option<(&str, &str)> {
    let (rest, name) = path.rsplit_once('/')?;
    Some((rest.rsplit_once('/')?.1, name))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rstest::rstest;
    use serde_json::json;

    use super::*;
    use crate::exchange::{Outcome, Received};
    use crate::testing::{exchange, received};

    #[rstest]
    #[case("kubeproof-a2c123", true)]
    #[case("kp-a2c123-pod", true)]
    #[case("kp-a2c123-17", true)]
    #[case("kp-a2c123-17-b", true)]
    #[case("widgets.a2c123.kubeproof.dev", true)]
    #[case("things.kp-a2c123-9.kubeproof.dev", true)]
    #[case("widgets.probe-a2c123.kubeproof.dev", true)]
    #[case("probes.kubeproof-a2c123-probe.kubeproof.dev", true)]
    #[case("v1.kp-a2c123-9.kubeproof.dev", true)]
    #[case("kubeproof-a2c123-probe", true)]
    #[case("probe-a2c123", false)]
    #[case("kp-team-blue", false)]
    #[case("kp-system", false)]
    #[case("kp-system-1", false)]
    #[case("kp-1abc23", false)]
    #[case("a2c123", false)]
    #[case("widgets.kubeproof.dev", false)]
    #[case("widgets.a2c123.example.com", false)]
    #[case("kube-system", false)]
    fn only_names_that_runs_give_are_of_a_run(#[case] name: &str, #[case] expected: bool) {
        assert_eq!(is_of_a_run(name), expected);
    }

    #[test]
    fn versions_of_a_resource_hold_the_same_object() {
        assert_eq!(
            resource_and_name("/apis/a/v1/things/x"),
            resource_and_name("/apis/a/v2/things/x")
        );
        assert_ne!(
            resource_and_name("/apis/a/v1/things/x"),
            resource_and_name("/apis/a/v1/things/y")
        );
        assert_ne!(
            resource_and_name("/apis/a/v1/things/x"),
            resource_and_name("/apis/a/v1/boats/x")
        );
    }

    /// A list from a server whose clock shows one o'clock.
    fn listed(date: &str, items: &Value) -> Exchange {
        let headers = vec![
            ("content-length".to_owned(), "2".to_owned()),
            ("Date".to_owned(), date.to_owned()),
        ];
        let list =
            Received { json: Some(Arc::new(json!({"items": items}))), headers, ..received(200) };
        exchange("/api/v1/nodes", Outcome::Response(list))
    }

    #[rstest]
    #[case::a_minute("2026-11-21T00:59:00Z", 60)]
    #[case::a_day("2026-11-20T01:00:00Z", 86_400)]
    #[case::by_a_clock_that_is_ahead("2026-11-21T01:00:01Z", 0)]
    fn age_is_by_the_clock_of_the_server(#[case] made: &str, #[case] seconds: u64) {
        let item = |name: &str| json!({"metadata": {"name": name, "creationTimestamp": made}});
        let list =
            listed("Sat, 21 Nov 2026 01:00:00 GMT", &json!([item("kp-a2c123-1"), item("mine")]));
        let path = "/api/v1/nodes/kp-a2c123-1".to_owned();
        assert_eq!(
            leftovers("/api/v1/nodes", &list),
            [Leftover { path, age: Duration::from_secs(seconds) }]
        );
    }

    #[test]
    fn what_reports_no_age_stays() {
        let list = listed(
            "Sat, 21 Nov 2026 01:00:00 GMT",
            &json!([{"metadata": {"name": "kp-a2c123-1"}}]),
        );
        assert_eq!(leftovers("/api/v1/nodes", &list), []);
    }

    #[test]
    fn without_a_date_the_clock_is_ours() {
        let long_ago = json!([{
            "metadata": {"name": "kp-a2c123-1", "creationTimestamp": "2020-01-01T00:00:00Z"},
        }]);
        assert!(
            leftovers("/api/v1/nodes", &listed("today", &long_ago))[0].age
                > Duration::from_hours(24 * 365)
        );
    }
}
