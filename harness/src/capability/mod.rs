//! Finds the capabilities of the target by discovery and a few cheap probes, before planning.
//!
//! Every run does this. Therefore requests are few, go out together, and probe only what a case of
//! the run needs. Gaps of discovery fail the cases about discovery, and hide nothing else.

mod discovery;
mod home;
mod probe;

use std::collections::{BTreeMap, BTreeSet};

use kubeproof_cases::case::{Capability, Identity, ResourceName};
use kubeproof_cases::plural;
use serde_json::Value;
use tokio::time::Instant;

use crate::event::SkipReason;
use crate::exchange::{Exchange, shorten};
use crate::target::TargetError;
use crate::transport::write_policy::WritePolicy;
use crate::transport::{Client, Outgoing};

use self::home::Home;
use discovery::serves_anything;
pub(crate) use discovery::{Discovery, STANDARD_VERBS, Search, WantedResource, resource_list};
use probe::Finding;
pub(crate) use probe::{dry_create, ignores_limit, is_denied_by_policy, may_create, root_of};

/// The capabilities of a target.
#[derive(Clone, Debug, Default)]
pub struct Capabilities {
    /// Every resource of every version, listed by discovery or hidden.
    pub resources: BTreeMap<ResourceName, Discovered>,
    /// Capabilities found by discovery and probes.
    pub set: BTreeSet<Capability>,
    /// Capabilities whose probe got a server error.
    pub(crate) broken: BTreeSet<Capability>,
    /// `gitVersion` of /version.
    pub version: Option<String>,
    /// What is wrong with discovery, in words.
    pub(crate) gaps: Vec<String>,
    /// An existing namespace, for probes and for cases that only read.
    pub(crate) home: String,
    /// Why a capability is missing, where a probe returned a reason.
    reasons: BTreeMap<Capability, SkipReason>,
}

/// A resource as discovery lists it.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Discovered {
    /// Such as `ConfigMap`.
    pub kind: String,
    /// Whether objects live in namespaces.
    pub namespaced: bool,
    /// Verbs that discovery lists.
    pub verbs: BTreeSet<String>,
    /// Subresources, such as `status`, with the verbs of each.
    pub subresources: BTreeMap<String, BTreeSet<String>>,
    /// Such as `configmap`; often empty.
    pub singular: String,
    /// Such as `cm`.
    pub short_names: Vec<String>,
}

/// Which capabilities to probe, and which requests a probe may send.
#[derive(Clone, Debug)]
pub struct ProbeOptions<'a> {
    /// Capabilities that cases of the run need.
    pub needs: BTreeSet<Capability>,
    /// Resources to look for where discovery has gaps.
    pub(crate) wanted: Vec<WantedResource>,
    /// Limits the dry-run requests of probes.
    pub write_policy: WritePolicy,
    /// True for `--dry-run`: a capability that needs a forbidden probe counts as present.
    pub plans_only: bool,
    /// The namespace of `--namespace`.
    pub namespace: Option<&'a str>,
    /// The image of `--pod-image`.
    pub pod_image: Option<&'a str>,
    /// An unused name for objects that must not be stored.
    pub probe_name: &'a str,
    /// Concurrent probes.
    pub jobs: usize,
    /// A `CustomResourceDefinition` like those that the run installs.
    pub crd: Option<&'a Value>,
}

impl ProbeOptions<'_> {
    /// Returns the namespace for probes.
    pub(crate) fn home(&self) -> &str {
        self.namespace.unwrap_or("default")
    }

    /// Reports whether a probe may send this request.
    pub(crate) fn may_send(&self, method: &str, target: &str) -> bool {
        self.write_policy.denial(method, target).is_none()
    }
}

impl Capabilities {
    /// Finds the capabilities. Returns an error only if the target does not respond, or rejects the
    /// credential.
    pub async fn discover(
        client: &Client,
        options: &ProbeOptions<'_>,
        deadline: Instant,
    ) -> Result<Self, TargetError> {
        let requester = Requester { client, deadline };
        // A target that cannot be reached gets no further requests.
        let reached = client.ping(deadline).await?;
        let (mut options, mut problem) = (options.clone(), reached.problem);
        let is_odd = problem.is_some();
        if is_odd && serves_anything(&requester, &options, reached.is_redirected).await {
            // The word of the user is not enough for a server that may be no API at all.
            options.wanted.iter_mut().for_each(WantedResource::needs_evidence);
        } else if let Some(problem) = problem.take() {
            return Err(problem);
        }
        client.check_second(deadline).await?;
        let discovery = Discovery::of(&requester, &options.wanted).await;
        let Discovery { resources, is_aggregated, gaps, .. } =
            discovery.complete(&requester, Some(&options)).await;
        if let Some(problem) = problem.filter(|_| resources.is_empty()) {
            return Err(problem);
        }
        let home = Home::find(&requester, &resources, &options).await;
        let options = &ProbeOptions { namespace: Some(&home.name), ..options };
        let mut found = Self { resources, gaps, home: home.name.clone(), ..Self::default() };
        found.version =
            reached.version.and_then(|body| Some(shorten(body.get("gitVersion")?.as_str()?)));
        if is_aggregated {
            found.set.insert(Capability::AggregatedDiscovery);
        }
        if found.resources.keys().any(|name| name.group.is_empty() && name.version == "v1") {
            found.set.insert(Capability::Core);
        }
        if client.by_token() {
            found.set.insert(Capability::Token);
        }
        let responses = probe::all(&requester, &found.resources, options).await;
        home.leave(&requester).await;
        for (capability, response) in responses {
            match response {
                Finding::Offered => drop(found.set.insert(capability)),
                Finding::Broken => {
                    found.set.insert(capability);
                    found.broken.insert(capability);
                }
                Finding::Missing(reason) => drop(found.reasons.insert(capability, reason)),
            }
        }
        Ok(found)
    }

    /// Describes what is wrong with discovery. `None` if nothing is.
    pub(crate) fn gaps_in_words(&self) -> Option<String> {
        let (first, others) = self.gaps.split_first()?;
        let more = match others.len() {
            0 => String::new(),
            count => format!(", and {}", plural(count, "other gap")),
        };
        Some(format!(
            "discovery has gaps, so other documents and requests replace it: {first}{more}"
        ))
    }

    /// Returns why a case that needs this is skipped, or `None` if the target offers it.
    pub fn missing(&self, need: Capability) -> Option<SkipReason> {
        if self.set.contains(&need) {
            return None;
        }
        let found = self.reasons.get(&need).cloned();
        Some(found.unwrap_or_else(|| {
            let detail = match need {
                Capability::AggregatedDiscovery => {
                    "the server has no aggregated discovery documents".to_owned()
                }
                Capability::Core => "the server does not serve core/v1".to_owned(),
                Capability::Token => "the run does not authenticate by a bearer token".to_owned(),
                other => format!("the server does not support {}", name_of(other)),
            };
            SkipReason::MissingCapability { capability: need, detail }
        }))
    }
}

/// Returns the name of a capability as case files spell it.
pub fn name_of(capability: Capability) -> String {
    match serde_json::to_value(capability) {
        Ok(Value::String(name)) => name,
        _ => format!("{capability:?}"),
    }
}

/// Sends the requests of discovery and probes.
pub(crate) struct Requester<'a> {
    pub(crate) client: &'a Client,
    pub(crate) deadline: Instant,
}

impl Requester<'_> {
    pub(crate) async fn get(&self, target: &str, accept: &str) -> Exchange {
        self.client.send(outgoing("GET", target, accept, None), self.deadline).await
    }

    pub(crate) async fn send(&self, method: &str, target: &str, body: Option<&Value>) -> Exchange {
        self.client.send(outgoing(method, target, "application/json", body), self.deadline).await
    }

    pub(crate) async fn send_as(
        &self,
        identity: Identity,
        (method, target): (&str, &str),
        body: Option<&Value>,
    ) -> Exchange {
        let request = Outgoing { identity, ..outgoing(method, target, "application/json", body) };
        self.client.send(request, self.deadline).await
    }
}

pub(crate) fn outgoing(method: &str, target: &str, accept: &str, body: Option<&Value>) -> Outgoing {
    let mut headers = vec![("accept".to_owned(), accept.to_owned())];
    if body.is_some() {
        headers.push(("content-type".to_owned(), "application/json".to_owned()));
    }
    Outgoing {
        method: method.to_owned(),
        target: target.to_owned(),
        headers,
        body: body.map(|body| body.to_string().into()).unwrap_or_default(),
        identity: Identity::Admin,
        exact: false,
    }
}
