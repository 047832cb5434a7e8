//! A parsed case: the input of the harness.
//!
//! The checker finds all mistakes of a file before it makes a value of these types. The harness
//! never meets an undefined capture, a malformed pattern or an expression that does not parse.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::expression::Let;
use crate::profile::Profile;
use crate::protocol::Protocol;

mod capability;
mod check;
mod explore;
mod prerequisite;
mod request;
mod step;
mod stream;

pub use check::{Check, Claim, Deviation, Message, MessagePart, Rejection, SchemaCheck};
pub use explore::{Explore, Property};
pub use prerequisite::Prerequisite;
pub use request::{Body, Capture, Identity, Request};
pub use step::{
    Action, Await, Awaited, Close, End, EventPattern, Loop, Schema, Step, Times, Together, Until,
    Watch,
};
pub use stream::{
    Arrival, Creation, Finish, FrameHead, Outbound, Payload, Receiving, Sending, Stream,
};

/// One behaviour of a server, and how to see it.
#[derive(Clone, Debug)]
pub struct Case {
    /// `area/name`, from the place of the file.
    pub id: String,
    /// One sentence: what a correct server does.
    pub summary: String,
    /// Who relies on it, and what breaks.
    pub why: Option<String>,
    /// Ids of the requirements catalogue, at least one.
    pub requirements: Vec<String>,
    /// The editions that judge it, in order, at least one.
    pub editions: Vec<Edition>,
    /// The level of every check that names none.
    pub level: Level,
    /// The resources the case runs on; `None`: the case runs once, without a subject.
    pub subject: Option<SubjectFilter>,
    /// The protocols that it runs over; empty: it runs once.
    pub protocols: Vec<Protocol>,
    /// Capabilities of the target that the case needs.
    pub needs: Vec<Capability>,
    /// The prerequisite of other cases that it judges.
    pub provides: Option<Prerequisite>,
    /// It runs after all others, beside no other case of the run.
    pub alone: bool,
    /// Prerequisites that it needs beyond its verbs and capabilities.
    pub depends_on: Vec<Prerequisite>,
    /// Faults of the reference server that the case detects.
    pub catches: Vec<String>,
    /// Its named expressions.
    pub lets: Vec<Let>,
    /// What happens, in order.
    pub steps: Vec<Step>,
    /// The profile that it belongs to; `None` for cases of users in areas of their own.
    pub profile: Option<Profile>,
    /// The file as messages name it.
    pub file: String,
}

impl Case {
    /// The part of the id before the slash.
    pub fn area(&self) -> &str {
        area_of(&self.id)
    }

    /// Returns whether an edition judges any check of the case.
    pub fn is_judged_by(&self, edition: Edition) -> bool {
        self.editions.contains(&edition)
    }
}

/// Returns the part of an id before the slash.
pub fn area_of(id: &str) -> &str {
    id.split_once('/').map_or(id, |(area, _)| area)
}

/// How strongly the conventions ask for something.
#[derive(
    Clone,
    Copy,
    Debug,
    Deserialize,
    Eq,
    Hash,
    Ord,
    PartialEq,
    PartialOrd,
    Serialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// A failure is a warning.
    May,
    /// A failure is a warning.
    Should,
    /// A failure is a failure.
    Must,
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::May => "may",
            Self::Should => "should",
            Self::Must => "must",
        })
    }
}

/// A state of the conventions that a run can be judged by.
#[derive(
    Clone,
    Copy,
    Debug,
    Deserialize,
    Eq,
    Hash,
    Ord,
    PartialEq,
    PartialOrd,
    Serialize,
    schemars::JsonSchema,
)]
pub enum Edition {
    /// The text of Kubernetes 1.0.
    #[serde(rename = "v1.0")]
    V1_0,
    /// The text of Kubernetes 1.3.
    #[serde(rename = "v1.3")]
    V1_3,
    /// The text of March 2022.
    #[serde(rename = "2022")]
    Y2022,
    /// The text of 2024.
    #[serde(rename = "2024")]
    Y2024,
    /// The text of today.
    #[serde(rename = "head")]
    Head,
}

impl Edition {
    /// From the oldest to the newest.
    pub const ALL: [Self; 5] = [Self::V1_0, Self::V1_3, Self::Y2022, Self::Y2024, Self::Head];
}

impl fmt::Display for Edition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::V1_0 => "v1.0",
            Self::V1_3 => "v1.3",
            Self::Y2022 => "2022",
            Self::Y2024 => "2024",
            Self::Head => "head",
        })
    }
}

/// Which resources a case runs on.
#[derive(Clone, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "they are independent filters")]
pub struct SubjectFilter {
    /// The resources asked for.
    pub of: SubjectSet,
    /// Only this scope.
    pub scope: Option<Scope>,
    /// Discovery verbs that the subject must list.
    pub verbs: Vec<String>,
    /// Subresources that the subject must have, as `status`.
    pub subresources: Vec<String>,
    /// The subject's definition must have a change of the desired state (`subject.change`).
    pub has_change: bool,
    /// The subject's definition must have a status (`subject.status`).
    pub has_status: bool,
    /// The subject belongs to a named group.
    pub has_group: bool,
    /// On the first subject that fits, not on all: for what is expensive and the same everywhere.
    pub once: bool,
}

/// The resources that `subject.of` names.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub enum SubjectSet {
    /// Every standard subject of the run, and every one of the user's.
    #[default]
    Any,
    /// Those of them that are not custom resources of the suite.
    Builtin,
    /// The suite's own custom resources.
    Custom,
    /// These, whether standard subjects or not.
    Named {
        /// The resources.
        names: Vec<ResourceName>,
        /// Every subject of the user, too.
        of_user: bool,
    },
}

/// Whether objects live in namespaces.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// In a namespace.
    Namespaced,
    /// In none.
    Cluster,
}

/// A resource as files and reports name it: `deployments.v1.apps`, `configmaps.v1`.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct ResourceName {
    /// The plural.
    pub resource: String,
    /// As `v1`.
    pub version: String,
    /// Empty for the core group.
    pub group: String,
}

impl fmt::Display for ResourceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.resource, self.version)?;
        if self.group.is_empty() { Ok(()) } else { write!(f, ".{}", self.group) }
    }
}

/// A feature that a target may offer.
#[derive(
    Clone,
    Copy,
    Debug,
    Deserialize,
    Eq,
    Hash,
    Ord,
    PartialEq,
    PartialOrd,
    Serialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Capability {
    /// Validating admission policies can be created (`admissionregistration.k8s.io/v1`).
    AdmissionPolicies,
    /// Validating webhook configurations can be created (`admissionregistration.k8s.io/v1`).
    AdmissionWebhooks,
    /// Aggregated discovery documents.
    AggregatedDiscovery,
    /// API services can be created (`apiregistration.k8s.io/v1`).
    ApiServices,
    /// Pods have the subresource attach.
    Attach,
    /// core/v1 is served.
    Core,
    /// Custom resource definitions can be created.
    Crds,
    /// Pods have the subresource exec.
    Exec,
    /// Objects can be selected by their fields, the name at least (`fieldSelector`).
    FieldSelectors,
    /// A garbage collector deletes objects whose owners are gone.
    GarbageCollection,
    /// /livez and /readyz are served.
    HealthEndpoints,
    /// The run may act as other users (`Impersonate-User`).
    Impersonation,
    /// PATCH takes application/json-patch+json.
    JsonPatch,
    /// Pods have the subresource log.
    Log,
    /// PATCH takes application/merge-patch+json.
    MergePatch,
    /// Mutating admission policies can be created (`admissionregistration.k8s.io/v1`).
    MutatingAdmissionPolicies,
    /// The run may create namespaces.
    Namespaces,
    /// /openapi/v2 is served.
    #[serde(rename = "openapi-v2")]
    OpenapiV2,
    /// /openapi/v3 is served.
    #[serde(rename = "openapi-v3")]
    OpenapiV3,
    /// Lists come in pages (`limit`).
    Paging,
    /// Objects are served as `PartialObjectMetadata` on request.
    PartialMetadata,
    /// Pods can be created.
    Pods,
    /// Pods have the subresource portforward.
    Portforward,
    /// Pods have the subresource proxy.
    Proxy,
    /// Roles can be created and bound, and decide who may do what (`rbac.authorization.k8s.io/v1`).
    Roles,
    /// Pods run: some node is ready to take them.
    RunningPods,
    /// The target runs kubeproof's scripted pods, whose responses on their ports are known, and
    /// reaches them.
    ScriptedPods,
    /// An unprivileged credential was given.
    SecondUser,
    /// Objects can be applied: PATCH takes application/apply-patch+yaml.
    ServerSideApply,
    /// The server compacts old versions soon enough to provoke 410.
    ShortHistory,
    /// PATCH takes application/strategic-merge-patch+json.
    StrategicMergePatch,
    /// A watch can begin with a list and mark its end (`sendInitialEvents`).
    StreamingLists,
    /// Lists are served as tables on request.
    Table,
    /// The run authenticates by bearer token.
    Token,
    /// Custom resource definitions keep validation rules in all their members
    /// (`x-kubernetes-validations`).
    ValidationRules,
    /// Watches carry bookmarks when asked.
    WatchBookmarks,
    /// Watches accept an upgrade to WebSocket.
    WebsocketWatches,
}
