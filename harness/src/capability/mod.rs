//! What the target can do: found by discovery and a few cheap probes, before the plan is made.
//!
//! It is a part of every run, so requests are few and go out together, and nothing is probed that no case of
//! the run asks about. Garbage in place of discovery documents means that nothing is offered, and no more: the cases
//! that need no subject still run, and say what is wrong.

mod discovery;
mod probe;

use std::collections::{BTreeMap, BTreeSet};

use kubeproof_cases::case::{Capability, Identity, ResourceName};
use serde_json::Value;
use tokio::time::Instant;

use crate::exchange::{Exchange, Outcome, Received};
use crate::fence::Fence;
use crate::target::TargetError;
use crate::transport::{Client, Outgoing};
use crate::verdict::shorten;

pub(crate) use discovery::{all_resources, resource_list};
pub(crate) use probe::{may_create, root_of};

/// What a target offers.
#[derive(Clone, Debug, Default)]
pub struct Capabilities {
    /// Every resource of every version that discovery lists.
    pub resources: BTreeMap<ResourceName, Discovered>,
    /// What it can do beyond.
    pub set: BTreeSet<Capability>,
    /// `gitVersion` of /version.
    pub version: Option<String>,
    /// Why it cannot do what is not in the set, where a probe said why.
    reasons: BTreeMap<Capability, String>,
}

/// A resource as discovery lists it.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Discovered {
    /// As `ConfigMap`.
    pub kind: String,
    /// Whether objects live in namespaces.
    pub namespaced: bool,
    /// What can be done with it.
    pub verbs: BTreeSet<String>,
    /// As `status`, with the verbs of each.
    pub subresources: BTreeMap<String, BTreeSet<String>>,
    /// As `configmap`; often empty.
    pub singular: String,
    /// As `cm`.
    pub short_names: Vec<String>,
}

/// What has to be known, and what may be done to find out.
#[derive(Clone, Debug)]
pub struct Questions<'a> {
    /// What cases of the run need.
    pub needs: BTreeSet<Capability>,
    /// What of dry-run requests may be sent.
    pub fence: Fence,
    /// Only a plan is wanted: what is not asked is taken to be so.
    pub plans_only: bool,
    /// The namespace that the user gave.
    pub namespace: Option<&'a str>,
    /// What the containers of the run's pods run, if the user named it.
    pub pod_image: Option<&'a str>,
    /// A name that nothing has, for objects that are not to be stored.
    pub probe_name: &'a str,
    /// A `CustomResourceDefinition` such as the run would install.
    pub crd: Option<&'a Value>,
}

impl Questions<'_> {
    /// Whether this may be asked.
    pub(crate) fn may_send(&self, method: &str, target: &str) -> bool {
        self.fence.holds_back(method, target).is_none()
    }
}

impl Capabilities {
    /// Asks the target. An error only when nothing there answers, or it does not know us.
    pub async fn discover(
        client: &Client,
        questions: &Questions<'_>,
        deadline: Instant,
    ) -> Result<Self, TargetError> {
        let asker = Asker { client, deadline };
        let (reached, (resources, aggregated)) =
            futures_util::join!(client.ping(deadline), all_resources(&asker));
        let mut found = Self { resources, ..Self::default() };
        found.version = reached?.version.and_then(|body| Some(shorten(body.get("gitVersion")?.as_str()?)));
        if aggregated {
            found.set.insert(Capability::AggregatedDiscovery);
        }
        if found.resources.keys().any(|name| name.group.is_empty() && name.version == "v1") {
            found.set.insert(Capability::Core);
        }
        if client.by_token() {
            found.set.insert(Capability::Token);
        }
        for (capability, answer) in probe::all(&asker, &found.resources, questions).await {
            match answer {
                Ok(()) => drop(found.set.insert(capability)),
                Err(reason) => drop(found.reasons.insert(capability, reason)),
            }
        }
        Ok(found)
    }

    /// Why a case that needs this cannot run; `None`: it can.
    pub fn missing(&self, need: Capability) -> Option<String> {
        if self.set.contains(&need) {
            return None;
        }
        let known = self.reasons.get(&need).cloned();
        Some(known.unwrap_or_else(|| match need {
            Capability::AggregatedDiscovery => "the server has no aggregated discovery documents".into(),
            Capability::Core => "the server does not serve core/v1".into(),
            Capability::Token => "the run does not authenticate by a bearer token".into(),
            other => format!("the server does not offer {}", name_of(other)),
        }))
    }
}

/// The name of a capability, as case files spell it.
pub fn name_of(capability: Capability) -> String {
    match serde_json::to_value(capability) {
        Ok(Value::String(name)) => name,
        _ => format!("{capability:?}"),
    }
}

/// Sends the requests of discovery and probes.
pub(crate) struct Asker<'a> {
    pub(crate) client: &'a Client,
    pub(crate) deadline: Instant,
}

impl Asker<'_> {
    /// A GET with this Accept header.
    pub(crate) async fn get(&self, target: &str, accept: &str) -> Exchange {
        self.client.send(outgoing("GET", target, accept, None), self.deadline).await
    }

    /// A request with a JSON body.
    pub(crate) async fn send(&self, method: &str, target: &str, body: Option<&Value>) -> Exchange {
        self.client.send(outgoing(method, target, "application/json", body), self.deadline).await
    }

    /// A request of the unprivileged user.
    pub(crate) async fn get_as(&self, target: &str, identity: Identity) -> Exchange {
        let request = Outgoing { identity, ..outgoing("GET", target, "application/json", None) };
        self.client.send(request, self.deadline).await
    }
}

/// A request of the harness itself.
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

impl Exchange {
    /// The complete answer, if there is one.
    pub fn answer(&self) -> Option<&Received> {
        match &self.outcome {
            Outcome::Answered(received) => Some(received),
            Outcome::Broken(_) => None,
        }
    }

    /// The code of the answer; 0 for none.
    pub fn status(&self) -> u16 {
        self.answer().map_or(0, |answer| answer.status)
    }

    /// The body of the answer as JSON.
    pub fn json(&self) -> Option<&Value> {
        self.answer()?.json.as_deref()
    }

    /// What happened, in a few words: `403 Forbidden: pods is forbidden`, `connection refused`.
    pub fn in_words(&self) -> String {
        let answer = match &self.outcome {
            Outcome::Broken(broken) => return broken.message.clone(),
            Outcome::Answered(answer) => answer,
        };
        let text = |member: &str| answer.json.as_ref()?.get(member)?.as_str().map(shorten);
        let parts = [
            text("reason").map(|reason| format!(" {reason}")),
            text("message").map(|text| format!(": {text}")),
        ];
        format!("{}{}", answer.status, parts.into_iter().flatten().collect::<String>())
    }
}
