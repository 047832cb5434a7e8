//! Resources of a target that has no known ones.

use std::collections::BTreeMap;

use futures_util::future::join_all;
use kubeproof_cases::case::ResourceName;
use serde_json::{Value, json};

use super::subject::{Origin, Subject};
use crate::capability::{Discovered, ProbeOptions, Requester, may_create};
use crate::transport::write_policy::WritePolicy;

/// Limit on adopted resources of a target without standard ones.
const ADOPTED: usize = 2;

/// Limit on resources to probe for adoption.
const CANDIDATES: usize = 24;

/// Finds resources whose minimal object passes a dry-run create, for targets without known
/// resources.
///
/// Prefers one namespaced and one cluster-scoped resource.
pub(crate) async fn adopt(
    requester: &Requester<'_>,
    resources: &BTreeMap<ResourceName, Discovered>,
    options: &ProbeOptions<'_>,
) -> Vec<Subject> {
    let usable = |found: &Discovered| {
        ["create", "get", "list", "delete"].iter().all(|v| found.verbs.contains(*v))
    };
    let candidates = resources.iter().filter(|(_, found)| usable(found)).take(CANDIDATES);
    let accepted = join_all(candidates.map(async |(name, found)| {
        let subject = Subject::discovered(name, found, Origin::Adopted);
        let manifest = json!({
            "apiVersion": subject.api_version(), "kind": subject.kind,
            "metadata": {"name": options.probe_name},
        });
        let collection = subject.collection(options.home());
        accepts(requester, options, &collection, &manifest).await.then_some(subject)
    }))
    .await;
    let (mut adopted, cluster): (Vec<Subject>, Vec<Subject>) =
        accepted.into_iter().flatten().partition(|subject| subject.namespaced);
    adopted.truncate(if cluster.is_empty() { ADOPTED } else { 1 });
    adopted.extend(cluster);
    adopted.truncate(ADOPTED);
    adopted
}

async fn accepts(
    requester: &Requester<'_>,
    options: &ProbeOptions<'_>,
    collection: &str,
    manifest: &Value,
) -> bool {
    if !options.may_send("POST", collection) {
        // In read-only mode discovery decides. Outside of the given namespace nothing is adopted.
        return matches!(options.write_policy, WritePolicy::ReadOnly);
    }
    let response = may_create(requester, collection, manifest).await;
    matches!(response, Ok(status) if (200..300).contains(&status))
}
