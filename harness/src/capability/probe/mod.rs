//! Probes for capabilities that discovery does not list. Each takes a request or two. As many as
//! `--jobs` go out together.

mod admission;
mod pods;
mod reads;
mod users;
mod writes;

use std::collections::BTreeMap;

use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt, stream as streams};
use kubeproof_cases::case::{Capability, ResourceName};
use serde_json::Value;

use self::admission::{Admission, admission};
use self::pods::{pods, running_pods, scripted_pods, stream};
pub(crate) use self::reads::ignores_limit;
use self::reads::{
    bookmarks, field_selectors, garbage_collection, health_endpoints, openapi_v2, openapi_v3,
    paging, representation, short_history, streaming_lists, websocket_watches,
};
use self::users::{impersonation, roles, second_user};
use self::writes::{api_services, crds, namespaces, patch, validation_rules};
use super::{Discovered, ProbeOptions, Requester};
use crate::event::SkipReason;
use crate::exchange::Exchange;

/// Nothing, or why the capability is missing.
type ProbeResult = Result<(), Missing>;

/// Why a capability is missing.
enum Missing {
    Reason(SkipReason),
    /// The finding of the probe of this capability.
    Detail(String),
    /// The server fails. The capability counts as offered, so that cases judge it.
    Broken,
}

/// What a probe found about a capability.
pub(super) enum Finding {
    Offered,
    /// The target offers it, and fails with a server error.
    Broken,
    Missing(SkipReason),
}

impl From<SkipReason> for Missing {
    fn from(reason: SkipReason) -> Self {
        Self::Reason(reason)
    }
}

impl From<String> for Missing {
    fn from(detail: String) -> Self {
        Self::Detail(detail)
    }
}

impl From<&str> for Missing {
    fn from(detail: &str) -> Self {
        Self::Detail(detail.to_owned())
    }
}

type Resources = BTreeMap<ResourceName, Discovered>;

pub(super) async fn all(
    requester: &Requester<'_>,
    resources: &Resources,
    options: &ProbeOptions<'_>,
) -> Vec<(Capability, Finding)> {
    let probes = options.needs.iter().filter_map(|need| {
        let capability = *need;
        let probe = probe(capability, requester, resources, options)?;
        Some(probe.map(move |result| (capability, finding(capability, result))).boxed())
    });
    let probes: Vec<BoxFuture<'_, (Capability, Finding)>> = probes.collect();
    streams::iter(probes).buffered(options.jobs.max(1)).collect().await
}

/// Returns the probe of a capability, unless discovery or the options show it.
fn probe<'a>(
    capability: Capability,
    requester: &'a Requester<'_>,
    resources: &'a Resources,
    options: &'a ProbeOptions<'_>,
) -> Option<BoxFuture<'a, ProbeResult>> {
    Some(match capability {
        Capability::AggregatedDiscovery | Capability::Core | Capability::Token => return None,
        Capability::OpenapiV2 => openapi_v2(requester).boxed(),
        Capability::OpenapiV3 => openapi_v3(requester).boxed(),
        Capability::Attach => stream(requester, resources, options, "attach").boxed(),
        Capability::Exec => stream(requester, resources, options, "exec").boxed(),
        Capability::Log => stream(requester, resources, options, "log").boxed(),
        Capability::Portforward => stream(requester, resources, options, "portforward").boxed(),
        Capability::Proxy => stream(requester, resources, options, "proxy").boxed(),
        Capability::AdmissionPolicies => {
            admission(requester, resources, options, Admission::ValidatingPolicy).boxed()
        }
        Capability::AdmissionWebhooks => {
            admission(requester, resources, options, Admission::ValidatingWebhook).boxed()
        }
        Capability::ApiServices => api_services(requester, resources, options).boxed(),
        Capability::MutatingAdmissionPolicies => {
            admission(requester, resources, options, Admission::MutatingPolicy).boxed()
        }
        Capability::Namespaces => namespaces(requester, resources, options).boxed(),
        Capability::Crds => crds(requester, resources, options).boxed(),
        Capability::GarbageCollection => garbage_collection(requester).boxed(),
        Capability::HealthEndpoints => health_endpoints(requester).boxed(),
        Capability::Impersonation => impersonation(requester, options).boxed(),
        Capability::Pods => pods(requester, resources, options).boxed(),
        Capability::Roles => roles(requester, resources, options).boxed(),
        Capability::RunningPods => running_pods(requester, resources, options).boxed(),
        Capability::ScriptedPods => scripted_pods(requester, options).boxed(),
        Capability::SecondUser => second_user(requester, resources, options).boxed(),
        Capability::Table => representation(requester, resources, options, "Table").boxed(),
        Capability::PartialMetadata => {
            representation(requester, resources, options, "PartialObjectMetadataList").boxed()
        }
        Capability::WatchBookmarks => bookmarks(requester, resources, options).boxed(),
        Capability::StreamingLists => streaming_lists(requester, resources, options).boxed(),
        Capability::FieldSelectors => field_selectors(requester, resources, options).boxed(),
        Capability::Paging => paging(requester, resources, options).boxed(),
        Capability::JsonPatch => patch(requester, resources, options, "json-patch+json").boxed(),
        Capability::MergePatch => patch(requester, resources, options, "merge-patch+json").boxed(),
        Capability::StrategicMergePatch => {
            patch(requester, resources, options, "strategic-merge-patch+json").boxed()
        }
        Capability::ServerSideApply => {
            patch(requester, resources, options, "apply-patch+yaml").boxed()
        }
        Capability::WebsocketWatches => websocket_watches(requester, resources, options).boxed(),
        Capability::ShortHistory => short_history(requester, resources, options).boxed(),
        Capability::ValidationRules => validation_rules(requester, resources, options).boxed(),
    })
}

fn finding(capability: Capability, result: ProbeResult) -> Finding {
    match result {
        Ok(()) => Finding::Offered,
        Err(Missing::Broken) => Finding::Broken,
        Err(Missing::Reason(reason)) => Finding::Missing(reason),
        Err(Missing::Detail(detail)) => {
            Finding::Missing(SkipReason::MissingCapability { capability, detail })
        }
    }
}

fn creatable(resources: &Resources, name: &ResourceName) -> ProbeResult {
    match resources.get(name) {
        None => Err(SkipReason::ResourceNotServed { resource: name.clone() }.into()),
        Some(found) if !found.verbs.contains("create") => {
            Err(SkipReason::MissingVerb { resource: name.clone(), verb: "create".to_owned() }
                .into())
        }
        Some(_) => Ok(()),
    }
}

/// Trusts discovery where the write policy forbids a dry run.
async fn creatable_by_dry_run(
    requester: &Requester<'_>,
    options: &ProbeOptions<'_>,
    collection: &str,
    manifest: &Value,
) -> ProbeResult {
    if options.may_send("POST", collection) {
        match may_create(requester, collection, manifest).await? {
            500.. => Err(Missing::Broken),
            _ => Ok(()),
        }
    } else {
        Ok(())
    }
}

/// Sends a dry-run create. Deletes the object if the server stored it anyway.
pub(crate) async fn dry_create(
    requester: &Requester<'_>,
    collection: &str,
    manifest: &Value,
) -> Exchange {
    let exchange =
        requester.send("POST", &format!("{collection}?dryRun=All"), Some(manifest)).await;
    if (200..300).contains(&exchange.status()) {
        let name = manifest["metadata"]["name"].as_str().unwrap_or_default();
        let object = format!("{collection}/{name}");
        if (200..300).contains(&requester.get(&object, "application/json").await.status()) {
            requester.send("DELETE", &object, None).await;
        }
    }
    exchange
}

/// Sends a dry-run create and returns the status code.
///
/// Only a plain rejection makes the capability missing. Cases judge all other responses of a broken
/// server.
pub(crate) async fn may_create(
    requester: &Requester<'_>,
    collection: &str,
    manifest: &Value,
) -> Result<u16, SkipReason> {
    let exchange = dry_create(requester, collection, manifest).await;
    match create_rejection(collection, &exchange) {
        Some(reason) => Err(reason),
        None => Ok(exchange.status()),
    }
}

/// Returns the skip reason if the server permits no create in this collection.
fn create_rejection(collection: &str, exchange: &Exchange) -> Option<SkipReason> {
    let is_rejected =
        matches!(exchange.status(), 401 | 403 | 404 | 405) || is_denied_by_policy(exchange);
    is_rejected.then(|| SkipReason::CreateRejected {
        collection: collection.to_owned(),
        response: exchange.in_words(),
    })
}

/// Reports whether a webhook or a policy of the cluster denied a valid object. Their administrators
/// choose the status code.
pub(crate) fn is_denied_by_policy(exchange: &Exchange) -> bool {
    let message = exchange.json().and_then(|status| status["message"].as_str()).unwrap_or_default();
    (400..500).contains(&exchange.status())
        && ["denied the request", "denied request"].iter().any(|text| message.contains(text))
}

/// Prefers collections that hold few objects.
fn some_collection(
    resources: &Resources,
    options: &ProbeOptions<'_>,
    verb: &str,
) -> Result<String, SkipReason> {
    let usual = ["configmaps", "namespaces", "secrets"].map(|plural| named(plural, "v1", ""));
    let listed =
        |name: &&ResourceName| resources.get(name).is_some_and(|found| found.verbs.contains(verb));
    let name = usual.iter().find(listed).or_else(|| resources.keys().find(listed));
    let name = name.ok_or_else(|| SkipReason::NoResourceWithVerb { verb: verb.to_owned() })?;
    Ok(collection(name, resources.get(name).is_some_and(|found| found.namespaced), options))
}

fn collection(name: &ResourceName, namespaced: bool, options: &ProbeOptions<'_>) -> String {
    let root = root_of(name);
    if namespaced {
        format!("{root}/namespaces/{}/{}", options.home(), name.resource)
    } else {
        format!("{root}/{}", name.resource)
    }
}

/// Returns the path of a resource's group version.
pub(crate) fn root_of(name: &ResourceName) -> String {
    match name.group.as_str() {
        "" => format!("/api/{}", name.version),
        group => format!("/apis/{group}/{}", name.version),
    }
}

fn named(resource: &str, version: &str, group: &str) -> ResourceName {
    ResourceName {
        resource: resource.to_owned(),
        version: version.to_owned(),
        group: group.to_owned(),
    }
}
