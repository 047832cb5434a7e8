//! The shape of case files, key by key: the types that serde reads.
//!
//! The JSON Schema and the reference page of the language are made from these types, so their doc
//! comments are written for authors of cases. Nothing is checked here beyond the shape.

mod check;
mod flow;
pub(crate) mod forms;
pub(crate) mod names;
mod request;
mod step;
mod stream;
mod verb;
mod watch;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::case::{Capability, Edition, Level, Prerequisite, Scope};
use crate::yaml::Located;

pub(crate) use check::{Claims, RawCheck, RawDeviation, RawRejected};
pub(crate) use flow::{RawExplore, RawLoop, RawSchema, RawTogether, RawUntil, RawUse};
use forms::{Entries, OneOrMany};
pub(crate) use request::{RawEdit, RawGiven, RawProtobuf, RawRequest};
pub(crate) use step::RawStep;
pub(crate) use stream::{
    RawFinish, RawFrame, RawOpenStream, RawPing, RawReceive, RawReset, RawSend, RawStream,
    TokenPlace,
};
pub(crate) use verb::{PatchType, Verb as VerbStep};
pub(crate) use watch::{RawAwait, RawClose, RawEnd, RawEvent, RawWatch};

/// One behaviour of a server, and how to observe it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schemars(title = "kubeproof case")]
pub(crate) struct RawCase {
    /// The rule as a test name, in one sentence: `A create with a taken name returns 409
    /// AlreadyExists`.
    pub(crate) summary: Located<String>,
    /// Ids of the requirements catalogue, at least one.
    #[schemars(schema_with = "names::requirement_ids")]
    pub(crate) requirements: Located<Vec<Located<String>>>,
    /// The level of all checks. The default is the strongest level among the requirements, which
    /// is also the highest level that a case can have.
    pub(crate) level: Option<Located<Level>>,
    /// The editions that judge the case. The default is every edition that has one of its
    /// requirements.
    #[serde(default)]
    pub(crate) editions: Vec<Edition>,
    /// Who relies on the behaviour, and what breaks without it. Failures and `explain` print it.
    pub(crate) why: Option<String>,
    /// The resources that the case runs on. Without this key, the case runs once and has no
    /// subject.
    pub(crate) subject: Option<RawSubject>,
    /// Protocols of streams, or sets of them. The case runs once over each. Without this key, it
    /// runs once.
    #[serde(default)]
    #[schemars(schema_with = "names::protocols")]
    pub(crate) protocols: Option<Located<Vec<Located<String>>>>,
    /// Capabilities of the target beyond the subject. Without them, the case is skipped.
    #[serde(default)]
    pub(crate) needs: Vec<Capability>,
    /// The prerequisite of other cases that this case judges. It runs before them. If the feature
    /// does not work, they are skipped as blocked by this case.
    #[serde(default)]
    pub(crate) provides: Option<Located<Prerequisite>>,
    /// Run the case after all others, beside no other case of the run. For cases that change what
    /// other cases see.
    #[serde(default)]
    pub(crate) alone: bool,
    /// Prerequisites beyond those of the subject's verbs and of `needs`. If one of them does not
    /// work, the case is skipped as blocked.
    #[serde(rename = "dependsOn", default)]
    pub(crate) depends_on: Vec<Prerequisite>,
    /// Faults of the reference server that the case must detect. A test proves each.
    #[serde(default)]
    #[schemars(schema_with = "names::fault_names")]
    pub(crate) catches: Vec<Located<String>>,
    /// Named CEL expressions. Expressions, conditions and `${..}` use them by name.
    #[serde(rename = "let")]
    pub(crate) lets: Option<Entries<String>>,
    /// What happens, in order.
    pub(crate) steps: Located<Vec<Located<RawStep>>>,
}

/// Steps that several cases share. The file is `fragments/NAME.yaml`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "kubeproof fragment")]
pub(crate) struct RawFragment {
    /// The effect of the steps, in one sentence.
    pub(crate) summary: Located<String>,
    /// Parameters with their defaults. In the steps, `${PARAMETER}` is the value. `null` means that
    /// the case must give a value.
    pub(crate) parameters: Option<Entries<forms::Yaml>>,
    /// The steps that replace `use`.
    pub(crate) steps: Located<Vec<Located<RawStep>>>,
}

/// The resources that a case runs on.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawSubject {
    /// `any` (the default): the standard subjects and every `--subject` of the user. `builtin` and
    /// `custom` select a part of these. A name such as `deployments.v1.apps` selects that resource,
    /// whether it is a standard subject or not. In a list of names, `user` adds every `--subject`.
    #[serde(default)]
    #[schemars(schema_with = "names::subject_names")]
    pub(crate) of: Option<OneOrMany<String>>,
    /// Only resources of this scope.
    pub(crate) scope: Option<Scope>,
    /// Verbs that discovery must list.
    #[serde(default)]
    pub(crate) verbs: Vec<Verb>,
    /// Subresources that discovery must list.
    #[serde(default)]
    pub(crate) subresources: Vec<Subresource>,
    /// Parts that the subject's definition must have.
    #[serde(default)]
    pub(crate) has: Vec<Has>,
    /// Run only on the first subject that fits. For cases that are expensive and the same
    /// everywhere.
    #[serde(default)]
    pub(crate) once: bool,
}

/// A discovery verb.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Verb {
    Create,
    Delete,
    Deletecollection,
    Get,
    List,
    Patch,
    Update,
    Watch,
}

impl Verb {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Delete => "delete",
            Self::Deletecollection => "deletecollection",
            Self::Get => "get",
            Self::List => "list",
            Self::Patch => "patch",
            Self::Update => "update",
            Self::Watch => "watch",
        }
    }
}

/// A subresource that subjects may have.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Subresource {
    Approval,
    Binding,
    EphemeralContainers,
    Eviction,
    Finalize,
    Proxy,
    Resize,
    Scale,
    Status,
    Token,
}

impl Subresource {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Approval => "approval",
            Self::Binding => "binding",
            Self::EphemeralContainers => "ephemeralcontainers",
            Self::Eviction => "eviction",
            Self::Finalize => "finalize",
            Self::Proxy => "proxy",
            Self::Resize => "resize",
            Self::Scale => "scale",
            Self::Status => "status",
            Self::Token => "token",
        }
    }
}

/// A part of a subject or its definition.
#[derive(Clone, Copy, Debug, Deserialize, Eq, JsonSchema, PartialEq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Has {
    /// A merge patch that changes the desired state: `${subject.change}`.
    Change,
    /// A merge patch for the status subresource: `${subject.status}`.
    Status,
    /// A named group, unlike core/v1: `${subject.group}`.
    Group,
}
