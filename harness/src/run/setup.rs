//! Prepares a run: creates its namespace and installs custom resources.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures_util::future::join_all;
use kubeproof_cases::case::{ResourceName, SubjectFilter};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::record::Record;
use crate::capability::{Requester, STANDARD_VERBS, is_denied_by_policy, resource_list};
use crate::event::{CheckResult, SkipReason, Symptom, Verdict};
use crate::exchange::Exchange;
use crate::plan::Install;
use crate::transport::Client;
use crate::verdict::synthetic;

/// Time for a server to serve an installed resource.
pub(crate) const SERVE_TIMEOUT: Duration = Duration::from_secs(30);

/// Time for a served resource to appear in discovery. Cases judge one that never does.
const LISTING_TIMEOUT: Duration = Duration::from_secs(5);

/// The longest pause between two polls. Polling may end this long before its deadline.
pub(super) const LONGEST_PAUSE: Duration = Duration::from_millis(250);

/// The check that a resource of the run is served.
pub(super) const INSTALLED: &str = "resource-installed";

/// Failures of the setup, and the installed resources. The first affected case reports a failure,
/// and it blocks the others.
#[derive(Clone, Debug, Default)]
pub(crate) struct SetupOutcome {
    pub(crate) namespace: Option<SetupFailure>,
    pub(crate) installs: BTreeMap<ResourceName, SetupFailure>,
    /// Resources that the target installed.
    pub(super) installed: BTreeMap<ResourceName, InstalledResource>,
}

/// An installed resource, as the target serves it.
#[derive(Clone, Debug, Default)]
pub(super) struct InstalledResource {
    /// Verbs of discovery.
    verbs: BTreeSet<String>,
    /// Subresources of the stored definition. Cases judge one that is stored and not served.
    subresources: BTreeSet<String>,
}

impl InstalledResource {
    /// Returns what the resource lacks for this filter.
    pub(super) fn lacks(&self, name: &ResourceName, filter: &SubjectFilter) -> Option<SkipReason> {
        if let Some(verb) = filter.verbs.iter().find(|verb| !self.verbs.contains(*verb)) {
            return Some(SkipReason::MissingVerb { resource: name.clone(), verb: verb.clone() });
        }
        let missing = filter.subresources.iter().find(|sub| !self.subresources.contains(*sub))?;
        Some(SkipReason::SubresourceDropped {
            resource: name.clone(),
            subresource: missing.clone(),
        })
    }
}

/// A failure before the cases.
#[derive(Clone, Debug)]
pub(crate) struct SetupFailure {
    check: CheckResult,
    exchange: Exchange,
    /// When it was not ready yet. `None` if the server rejected it.
    unready_at: Option<Instant>,
}

impl SetupFailure {
    /// Creates the failure of an exchange.
    pub(super) fn new(id: &str, exchange: Exchange, expected: &str) -> Self {
        let message = format!("{expected}, but got {}", exchange.in_words());
        let verdict = rejection_verdict(&exchange);
        let actual = exchange.json().cloned().unwrap_or_else(|| json!(exchange.status()));
        let check = synthetic(id.to_owned(), verdict, id);
        let symptom =
            Some(Symptom::Setup { request: exchange.request.kind(), got: exchange.status() });
        Self {
            check: CheckResult { expected: json!(expected), actual, message, symptom, ..check },
            unready_at: exchange.response().is_none().then(Instant::now),
            exchange,
        }
    }

    /// Marks the failure as that of polling until a deadline.
    pub(super) fn polled(mut self) -> Self {
        self.unready_at = Some(Instant::now());
        self
    }

    /// Reports whether only the end of the run made it a failure.
    pub(super) fn ends_with(&self, run: Option<Instant>) -> bool {
        let (Some(at), Some(end)) = (self.unready_at, run) else { return false };
        at + LONGEST_PAUSE >= end
    }

    /// Returns what was expected, and what happened.
    pub(crate) fn message(&self) -> &str {
        &self.check.message
    }

    /// Replaces the verdict.
    pub(super) fn at(mut self, verdict: Verdict) -> Self {
        self.check.verdict = verdict;
        self
    }

    /// Records the failure as if the case had made the exchange.
    pub(super) fn record_in(&self, record: &mut Record) {
        record.sent(self.check.step.clone(), self.exchange.clone());
        record.check(self.check.clone());
    }
}

/// Returns the verdict on a rejected precondition. Missing rights, a policy of the cluster and a
/// busy server are errors of the run.
pub(super) fn rejection_verdict(exchange: &Exchange) -> Verdict {
    match exchange.status() {
        0 | 401 | 403 | 429 | 503 => Verdict::Error,
        _ if is_denied_by_policy(exchange) => Verdict::Error,
        _ => Verdict::Fail,
    }
}

pub(crate) async fn namespace(
    client: &Client,
    name: &str,
    deadline: Instant,
) -> Option<SetupFailure> {
    let requester = Requester { client, deadline };
    let manifest = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    let exchange = requester.send("POST", "/api/v1/namespaces", Some(&manifest)).await;
    if exchange.status() != 201
        && existing(&requester, &format!("/api/v1/namespaces/{name}"), &exchange).await.is_none()
    {
        return Some(SetupFailure::new(
            "namespace-created",
            exchange,
            "the namespace of the run must be created with 201",
        ));
    }
    // Admission may require a service account for pods. Its controller may be slow or absent.
    let account =
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}});
    requester
        .send("POST", &format!("/api/v1/namespaces/{name}/serviceaccounts"), Some(&account))
        .await;
    None
}

/// Installs all custom resources concurrently, and waits until they are served.
pub(crate) async fn install(
    client: &Client,
    installs: &[Install],
    deadline: Instant,
) -> SetupOutcome {
    // Concurrent cases must not disturb these connections.
    let requester = Requester { client: &client.apart(), deadline };
    let all = installs
        .iter()
        .map(async |install| (install.name.clone(), install_one(&requester, install).await));
    let mut outcome = SetupOutcome::default();
    for (name, installed) in join_all(all).await {
        match installed {
            Ok(installed) => drop(outcome.installed.insert(name, installed)),
            Err(failure) => drop(outcome.installs.insert(name, *failure)),
        }
    }
    outcome
}

async fn install_one(
    requester: &Requester<'_>,
    install: &Install,
) -> Result<InstalledResource, Box<SetupFailure>> {
    let collection = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let mut created = requester.send("POST", collection, Some(&install.manifest)).await;
    if created.status() != 201 {
        let path = format!("{collection}/{}", install.definition());
        let Some(found) = existing(requester, &path, &created).await else {
            let expected = "the CustomResourceDefinition must be created with 201";
            return Err(Box::new(SetupFailure::new(INSTALLED, created, expected)));
        };
        created = found;
    }
    let mut pause = Duration::from_millis(1);
    let mut served_since = None;
    loop {
        let listed = resource_list(requester, &install.root).await;
        let in_discovery =
            listed.into_iter().find(|(name, _)| name.resource == install.name.resource);
        let list =
            requester.get(&format!("{}?limit=1", install.collection), "application/json").await;
        if list.status() == 200 {
            let since = *served_since.get_or_insert_with(Instant::now);
            let verbs = match in_discovery {
                Some((_, found)) if !found.verbs.is_empty() => Some(found.verbs),
                None if since.elapsed() < LISTING_TIMEOUT => None,
                // Cases judge discovery.
                _ => Some(STANDARD_VERBS.map(str::to_owned).into()),
            };
            if let Some(verbs) = verbs {
                let subresources = kept_subresources(created.json(), &install.name.version);
                return Ok(InstalledResource { verbs, subresources });
            }
        }
        pause = (pause * 2).min(LONGEST_PAUSE);
        if Instant::now() + pause > requester.deadline {
            let expected = "the resource of the CustomResourceDefinition must be served";
            return Err(Box::new(SetupFailure::new(INSTALLED, list, expected).polled()));
        }
        tokio::time::sleep(pause).await;
    }
}

/// Returns a response with the object of a create that did not return 201. `None` if the object
/// does not exist. The case that judges creates reports the wrong response.
pub(super) async fn existing(
    requester: &Requester<'_>,
    path: &str,
    created: &Exchange,
) -> Option<Exchange> {
    let has_object =
        |exchange: &Exchange| exchange.json().is_some_and(|body| body["metadata"].is_object());
    match created.status() {
        200..300 if has_object(created) => Some(created.clone()),
        200..300 | 500 | 501 | 505.. => {
            let found = requester.get(path, "application/json").await;
            (found.status() == 200 && has_object(&found)).then_some(found)
        }
        _ => None,
    }
}

/// Returns the subresources of a version in a definition.
fn kept_subresources(definition: Option<&Value>, version: &str) -> BTreeSet<String> {
    let versions = definition.and_then(|definition| definition["spec"]["versions"].as_array());
    let of_version = versions.into_iter().flatten().filter(|kept| kept["name"] == version);
    of_version
        .filter_map(|kept| kept["subresources"].as_object())
        .flat_map(|subresources| subresources.keys().cloned())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchange::{Broken, BrokenKind, Outcome};
    use crate::testing::{exchange, received};

    #[test]
    fn a_failure_ends_with_the_run_if_the_server_was_only_late() {
        let failure = |outcome| SetupFailure::new("a", exchange("/x", outcome), "must be");
        let broken = Broken { kind: BrokenKind::Deadline, message: "late".to_owned() };
        let (late, rejected) =
            (failure(Outcome::Broken(broken)), failure(Outcome::Response(received(404))));
        let now = Instant::now();
        let (end, later) = (Some(now), Some(now + 2 * SERVE_TIMEOUT));
        assert!(late.ends_with(end) && !late.ends_with(later) && !late.ends_with(None));
        assert!(!rejected.ends_with(end));
        let polled = rejected.polled();
        assert!(polled.ends_with(end) && !polled.ends_with(later));
    }
}
