//! Finds resources that discovery does not list, by requests for their objects.

use std::collections::BTreeSet;

use futures_util::future::{join, join_all};
use kubeproof_cases::case::ResourceName;
use serde_json::json;

use super::{Discovery, STANDARD_VERBS};
use crate::capability::{Discovered, ProbeOptions, Requester, outgoing, root_of};
use crate::exchange::Exchange;

/// A resource that the run may need.
#[derive(Clone, Debug)]
pub(crate) struct WantedResource {
    pub(crate) name: ResourceName,
    /// Such as `ConfigMap`, if the suite or the user defines it.
    pub(crate) kind: Option<String>,
    /// The scope, if the suite defines it.
    pub(crate) namespaced: Option<bool>,
    /// True if it has the subresource `status`.
    pub(crate) has_status: bool,
    /// When to look for it.
    pub(crate) search: Search,
}

impl WantedResource {
    /// Makes a resource of the user count as served only if a response shows it.
    pub(crate) fn needs_evidence(&mut self) {
        if self.search == Search::Named {
            self.search = Search::Always;
        }
    }
}

/// When to look for a resource that discovery does not list.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Search {
    /// Only if the list of its group version is broken.
    InGaps,
    /// Always.
    Always,
    /// Always, and it counts as served unless the server contradicts: the user named it.
    Named,
}

/// Adds the wanted resources that are served and not listed.
pub(super) async fn add(
    requester: &Requester<'_>,
    discovery: &mut Discovery,
    options: &ProbeOptions<'_>,
) {
    let missing = options.wanted.iter().filter(|wanted| {
        !discovery.resources.contains_key(&wanted.name)
            && (wanted.search != Search::InGaps || discovery.is_broken(&root_of(&wanted.name)))
    });
    let found = join_all(missing.map(async |wanted| {
        Some((wanted.name.clone(), look_up(requester, options, wanted).await?))
    }))
    .await;
    for (name, found) in found.into_iter().flatten() {
        let root = root_of(&name);
        if !discovery.is_broken(&root) {
            let gap =
                format!("GET {root} does not list {}, which the server serves", name.resource);
            discovery.gaps.push(gap);
        }
        discovery.resources.insert(name, found);
    }
}

/// Adds the standard verbs to resources without verbs. Requests for an object that does not exist
/// show verbs that the server rejects.
pub(super) async fn assume_verbs(
    requester: &Requester<'_>,
    discovery: &mut Discovery,
    options: Option<&ProbeOptions<'_>>,
) {
    let without = discovery.resources.iter().filter(|(_, found)| found.verbs.is_empty());
    let assumed = join_all(without.map(async |(name, found)| {
        let wanted = options.filter(|options| options.wanted.iter().any(|one| one.name == *name));
        let rejected = match wanted {
            Some(options) => rejected_verbs(requester, options, name, found.namespaced).await,
            None => BTreeSet::new(),
        };
        let verbs = STANDARD_VERBS.iter().filter(|verb| !rejected.contains(*verb));
        (name.clone(), verbs.map(|verb| (*verb).to_owned()).collect::<BTreeSet<_>>())
    }))
    .await;
    for (name, verbs) in assumed {
        if let Some(found) = discovery.resources.get_mut(&name) {
            found.verbs = verbs;
        }
    }
}

/// Requests the collection of a resource. Returns `None` if the server does not serve it.
pub(super) async fn look_up(
    requester: &Requester<'_>,
    options: &ProbeOptions<'_>,
    wanted: &WantedResource,
) -> Option<Discovered> {
    let get = async |namespaced: bool| {
        let path = format!("{}?limit=1", collection(&wanted.name, namespaced, options));
        requester.get(&path, "application/json").await
    };
    let in_namespace =
        async { if wanted.namespaced == Some(false) { None } else { Some(get(true).await) } };
    let (everywhere, inside) = join(get(false), in_namespace).await;
    let responses = || inside.iter().map(|inside| (true, inside)).chain([(false, &everywhere)]);
    let is_served = |exchange: &Exchange| {
        list_kind(exchange).is_some() || rejects_the_verb(exchange) || is_named(wanted, exchange)
    };
    let (namespaced, _) = responses().find(|(_, exchange)| is_served(exchange))?;
    let listed = responses().find_map(|(_, exchange)| list_kind(exchange));
    let of_list = listed.and_then(|kind| kind.strip_suffix("List")).filter(|kind| !kind.is_empty());
    let kind = wanted.kind.clone().or_else(|| of_list.map(str::to_owned));
    let status = wanted.has_status.then(|| ("status".to_owned(), BTreeSet::new()));
    Some(Discovered {
        kind: kind.unwrap_or_else(|| guessed_kind(&wanted.name.resource)),
        namespaced: wanted.namespaced.unwrap_or(namespaced),
        subresources: status.into_iter().collect(),
        ..Discovered::default()
    })
}

/// Reports whether a response shows that the server serves the resource, even if the user may not
/// read it.
pub(super) fn shows_resource(exchange: &Exchange) -> bool {
    let is_status = || exchange.json().is_some_and(|body| body["kind"] == "Status");
    list_kind(exchange).is_some()
        || rejects_the_verb(exchange)
        || (exchange.status() == 403 && is_status())
}

/// Returns the kind of a list; empty for a list without kind. `None` if a response is no list.
fn list_kind(exchange: &Exchange) -> Option<&str> {
    let body = exchange.json().filter(|_| exchange.status() == 200)?;
    let kind = body["kind"].as_str().unwrap_or_default();
    (body["items"].is_array() || kind.ends_with("List")).then_some(kind)
}

/// Reports whether the server serves the resource and rejects only the verb.
fn rejects_the_verb(exchange: &Exchange) -> bool {
    exchange.status() == 405
        && exchange.json().is_some_and(|status| status["reason"] == "MethodNotAllowed")
}

/// Reports whether a resource counts as served because the user named it. The server contradicts
/// with 404, a redirect, or a page for people.
fn is_named(wanted: &WantedResource, exchange: &Exchange) -> bool {
    let contradicts = match exchange.status() {
        404 | 300..400 => true,
        200..300 => exchange.json().is_none(),
        _ => false,
    };
    wanted.search == Search::Named && !contradicts
}

/// Derives a kind from a plural: `Policy` from `policies`.
fn guessed_kind(plural: &str) -> String {
    let singular = match plural.strip_suffix("ies") {
        Some(stem) => format!("{stem}y"),
        None => plural.strip_suffix('s').unwrap_or(plural).to_owned(),
    };
    let mut letters = singular.chars();
    letters.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(letters).collect()
}

/// Returns the verbs that the server rejects with 405 or 501, for an object that does not exist.
async fn rejected_verbs(
    requester: &Requester<'_>,
    options: &ProbeOptions<'_>,
    name: &ResourceName,
    namespaced: bool,
) -> BTreeSet<&'static str> {
    let collection = collection(name, namespaced, options);
    let object = format!("{collection}/{}", options.probe_name);
    let requests = [
        ("GET", format!("{collection}?limit=1"), &["list", "watch"][..]),
        ("GET", object.clone(), &["get"]),
        ("PATCH", format!("{object}?dryRun=All"), &["patch"]),
        ("PUT", format!("{object}?dryRun=All"), &["update"]),
        ("DELETE", format!("{object}?dryRun=All"), &["delete", "deletecollection"]),
    ];
    let mut rejected = BTreeSet::new();
    // In order: a deletion also removes what a wrong server stored in spite of the dry run.
    for (method, target, verbs) in requests {
        if options.may_send(method, &target)
            && matches!(send(requester, method, &target).await.status(), 405 | 501)
        {
            rejected.extend(verbs);
        }
    }
    rejected
}

async fn send(requester: &Requester<'_>, method: &str, target: &str) -> Exchange {
    let body = matches!(method, "PUT" | "PATCH").then(|| json!({}));
    let mut request = outgoing(method, target, "application/json", body.as_ref());
    for (name, value) in &mut request.headers {
        if method == "PATCH" && name == "content-type" {
            "application/merge-patch+json".clone_into(value);
        }
    }
    requester.client.send(request, requester.deadline).await
}

fn collection(name: &ResourceName, namespaced: bool, options: &ProbeOptions<'_>) -> String {
    let (root, resource) = (root_of(name), &name.resource);
    match options.home() {
        namespace if namespaced => format!("{root}/namespaces/{namespace}/{resource}"),
        _ => format!("{root}/{resource}"),
    }
}
