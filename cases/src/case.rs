//! A parsed case: what the harness runs.
//!
//! Everything that a file can get wrong is found before a value of these types exists, so the harness
//! never meets an undefined capture, a malformed pattern or an expression that does not parse.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::cel::Expression;
use crate::pattern::{Pattern, TextPattern};
use crate::rule::{Exemption, Rule, SchemaSet};
use crate::span::Span;
use crate::stream::{Creation, Finish, Protocol, Receiving, Sending, Stream};
use crate::template::{JsonTemplate, Template};

/// One behaviour of a server, and how to see it.
#[derive(Clone, Debug)]
pub struct Case {
    /// `area/name`, from the place of the file.
    pub id: String,
    /// One sentence: what a correct server does.
    pub summary: String,
    /// Who relies on it, and what breaks.
    pub why: Option<String>,
    /// Ids of the ledger, at least one.
    pub requirements: Vec<String>,
    /// The editions under which something in it is judged; in order, at least one.
    pub editions: Vec<Edition>,
    /// The level of every check that names none.
    pub level: Level,
    /// The resources the case runs on; `None`: it runs once, without a subject.
    pub subject: Option<SubjectFilter>,
    /// The protocols that it runs over, one after another; empty: it runs once.
    pub protocols: Vec<Protocol>,
    /// What the target must offer beyond the subject.
    pub needs: Vec<Capability>,
    /// Faults of the reference server that the case detects.
    pub catches: Vec<String>,
    /// What happens, in order.
    pub steps: Vec<Step>,
    /// The file as messages name it.
    pub file: String,
}

impl Case {
    /// The part of the id before the slash.
    pub fn area(&self) -> &str {
        self.id.split_once('/').map_or(self.id.as_str(), |(area, _)| area)
    }

    /// Whether anything in it is judged under this edition.
    pub fn is_judged_by(&self, edition: Edition) -> bool {
        self.editions.contains(&edition)
    }
}

/// How strongly the conventions ask for something.
#[derive(
    Clone, Copy, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize, schemars::JsonSchema,
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
    Clone, Copy, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize, schemars::JsonSchema,
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
pub struct SubjectFilter {
    /// The resources asked for.
    pub of: SubjectSet,
    /// Only this scope.
    pub scope: Option<Scope>,
    /// Discovery verbs that the subject must list.
    pub verbs: Vec<String>,
    /// Subresources that the subject must have, as `status`.
    pub subresources: Vec<String>,
    /// The subject's definition must know a change of desired state (`subject.change`).
    pub has_change: bool,
    /// The subject's definition must know a status (`subject.status`).
    pub has_status: bool,
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
    Named(Vec<ResourceName>),
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

/// What a target can offer beyond the subject of a case.
#[derive(
    Clone, Copy, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Capability {
    /// Aggregated discovery documents.
    AggregatedDiscovery,
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
    /// What nobody owns any more goes: a garbage collector is at work.
    GarbageCollection,
    /// The run may act as other users (`Impersonate-User`).
    Impersonation,
    /// PATCH takes application/json-patch+json.
    JsonPatch,
    /// Pods have the subresource log.
    Log,
    /// PATCH takes application/merge-patch+json.
    MergePatch,
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
    /// The target runs pods that are scripted by kubeproof, so that what their ports answer is known, and reaches them.
    ScriptedPods,
    /// An unprivileged credential was given.
    SecondUser,
    /// Objects can be applied: PATCH takes application/apply-patch+yaml.
    ServerSideApply,
    /// The server forgets old versions soon enough to provoke 410.
    ShortHistory,
    /// PATCH takes application/strategic-merge-patch+json.
    StrategicMergePatch,
    /// A watch can begin with a list, and says where that ends (`sendInitialEvents`).
    StreamingLists,
    /// Lists are served as tables on request.
    Table,
    /// The run authenticates by bearer token.
    Token,
    /// Custom resource definitions keep validation rules in all their members (`x-kubernetes-validations`).
    ValidationRules,
    /// Watches carry bookmarks when asked.
    WatchBookmarks,
}

/// One thing that happens.
#[derive(Clone, Debug)]
pub enum Step {
    /// Creates an object that the case needs.
    Given(Request),
    /// One exchange.
    Request(Request),
    /// Opens a watch.
    Watch(Watch),
    /// Reads events of an open watch.
    Await(Await),
    /// Reads a watch to the end that the server makes.
    End(End),
    /// Hangs up a watch or a stream.
    Close(Close),
    /// Opens a stream.
    Stream(Box<Stream>),
    /// Creates a SPDY stream.
    Create(Creation),
    /// Sends on a stream.
    Send(Sending),
    /// Reads a stream until something has come.
    Receive(Receiving),
    /// Reads a stream to the end that the server makes.
    Finish(Finish),
    /// Iterations at once.
    Concurrently(Loop),
    /// Iterations one after another.
    Repeat(Loop),
    /// Different things at once.
    Together(Together),
    /// Iterations until something holds.
    Until(Until),
    /// Design rules over the published API.
    Schema(Schema),
    /// Checks that relate earlier exchanges.
    Expect(Vec<Check>),
}

/// One exchange, as a file describes it.
#[derive(Clone, Debug)]
pub struct Request {
    /// The name of the exchange in expressions.
    pub id: String,
    /// Any token; usually GET, POST, PUT, PATCH, DELETE.
    pub method: String,
    /// The target, a query string included if it has one.
    pub path: Template,
    /// Encoded and added to the path.
    pub query: Vec<(String, Template)>,
    /// In order, repeated names allowed.
    pub headers: Vec<(String, Template)>,
    /// The media type of the body; `None`: `application/json` when there is a body.
    pub content_type: Option<Template>,
    /// `None`: `application/json`.
    pub accept: Option<Template>,
    /// What is sent.
    pub body: Option<Body>,
    /// Who sends it.
    pub identity: Identity,
    /// Over the transport that normalises nothing.
    pub exact: bool,
    /// Values taken out of the answer.
    pub capture: Vec<Capture>,
    /// What must hold of the answer.
    pub expect: Vec<Check>,
    /// Where it stands.
    pub span: Span,
}

/// What a request sends.
#[derive(Clone, Debug)]
pub enum Body {
    /// Merged over the subject's template, apiVersion and kind filled in.
    Object(JsonTemplate),
    /// As it stands.
    Json(JsonTemplate),
    /// The body of an earlier answer with changes merged in.
    Edit {
        /// The step whose answer is changed.
        of: String,
        /// An RFC 7386 merge patch.
        merge: JsonTemplate,
    },
    /// Any text.
    Text(Template),
}

/// Who sends a request.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, Hash, PartialEq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Identity {
    /// The run's own credential.
    #[default]
    Admin,
    /// The unprivileged one.
    Second,
    /// None.
    Anonymous,
    /// A token that cannot be valid.
    Invalid,
}

/// A value taken out of an answer.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Capture {
    /// The variable.
    pub name: String,
    /// A JSON Pointer; empty for the whole body.
    pub pointer: String,
    /// Where it stands.
    pub span: Span,
}

/// A watch that is opened, and stays open while later steps run.
#[derive(Clone, Debug)]
pub struct Watch {
    /// The opening exchange; its `expect` judges the head of the answer. `watch=true` is in its query.
    pub request: Request,
    /// JSON Pointers of what is kept of each object; all of it when there are none.
    pub keep: Vec<String>,
}

/// Events read from an open watch.
#[derive(Clone, Debug)]
pub struct Await {
    /// The id of the watch.
    pub watch: String,
    /// The id of this step.
    pub id: String,
    /// What is read.
    pub what: Awaited,
    /// Where it stands.
    pub span: Span,
}

/// What an await reads.
#[derive(Clone, Debug)]
pub enum Awaited {
    /// The next events, in order.
    Next(Vec<EventPattern>),
    /// Everything up to an event that matches.
    Until(EventPattern),
}

/// An event as it must be.
#[derive(Clone, Debug)]
pub struct EventPattern {
    /// The id of the check.
    pub id: String,
    /// ADDED, MODIFIED, DELETED, BOOKMARK, ERROR; one of these. Empty: any but BOOKMARK.
    pub types: Vec<String>,
    /// What the object must match.
    pub object: Option<Pattern>,
    /// Values taken out of the object.
    pub capture: Vec<Capture>,
    /// Where it stands.
    pub span: Span,
}

/// Reads a watch to the end that the server makes.
#[derive(Clone, Debug)]
pub struct End {
    /// The id of the watch.
    pub watch: String,
    /// The id of the check that the end comes; default `<watch>-ends`.
    pub id: String,
    /// Checks by CEL over the finished watch.
    pub expect: Vec<Check>,
    /// Where it stands.
    pub span: Span,
}

/// Hangs up.
#[derive(Clone, Debug)]
pub struct Close {
    /// The id of the watch or stream.
    pub of: String,
    /// Whether it is a stream.
    pub stream: bool,
}

/// Iterations of the same steps.
#[derive(Clone, Debug)]
pub struct Loop {
    /// The name of the list of results.
    pub id: String,
    /// How many.
    pub times: Times,
    /// What each does. Ids and captures in it are its own.
    pub steps: Vec<Step>,
}

/// How many iterations.
#[derive(Clone, Debug)]
pub enum Times {
    /// This many; `i` counts them.
    Count(u32),
    /// One per item of a list.
    Over {
        /// The list.
        list: Expression,
        /// The variable that holds the item.
        variable: String,
    },
}

/// Different things at once.
#[derive(Clone, Debug)]
pub struct Together {
    /// The name of the list of results, one per branch.
    pub id: String,
    /// What happens in each.
    pub branches: Vec<Vec<Step>>,
}

/// Iterations until something holds.
#[derive(Clone, Debug)]
pub struct Until {
    /// The name of the last round's results, and the id of the check.
    pub id: String,
    /// How often at most.
    pub attempts: u32,
    /// One round.
    pub steps: Vec<Step>,
    /// Ends it. Sees the steps of the round by their own ids.
    pub condition: Expression,
    /// Where it stands.
    pub span: Span,
}

/// Design rules over a published API.
#[derive(Clone, Debug)]
pub struct Schema {
    /// What is held against the rules.
    pub of: SchemaSet,
    /// The rules.
    pub expect: Vec<SchemaCheck>,
}

/// One design rule.
#[derive(Clone, Debug)]
pub struct SchemaCheck {
    /// Unique in the case.
    pub id: String,
    /// The rule.
    pub rule: Rule,
    /// How strongly it is asked for.
    pub level: Level,
    /// The requirements it judges: all of the case's unless it names some.
    pub requirements: Vec<String>,
    /// Judged only under these; never empty.
    pub editions: Vec<Edition>,
    /// Where Kubernetes itself breaks the rule by history.
    pub history: Vec<Exemption>,
    /// What it means when it is broken.
    pub means: Option<String>,
}

/// One expectation, with an id of its own.
#[derive(Clone, Debug)]
pub struct Check {
    /// Unique in the case.
    pub id: String,
    /// How strongly it is asked for.
    pub level: Level,
    /// The requirements it judges: all of the case's unless it names some.
    pub requirements: Vec<String>,
    /// Judged only under these; never empty.
    pub editions: Vec<Edition>,
    /// All of these must hold.
    pub claims: Vec<Claim>,
    /// What deployed servers do instead.
    pub deviation: Option<Deviation>,
    /// What it means when it is broken.
    pub means: Option<String>,
    /// Where it stands.
    pub span: Span,
}

/// A behaviour that differs from the letter and is met in deployed servers.
#[derive(Clone, Debug)]
pub struct Deviation {
    /// Why it is accepted.
    pub because: String,
    /// What the editions that judge the check ask for.
    pub letter: BTreeMap<Edition, String>,
    /// All of these must hold.
    pub claims: Vec<Claim>,
}

/// Something that holds of an exchange or does not.
#[derive(Clone, Debug)]
pub enum Claim {
    /// The HTTP code is one of these.
    Status(Vec<u16>),
    /// The answer refuses the request for this reason.
    Refused(Refusal),
    /// The body matches.
    Body(Pattern),
    /// The header matches.
    Header {
        /// In lower case.
        name: String,
        /// `None`: the header must be absent.
        value: Option<TextPattern>,
    },
    /// The raw body matches.
    Text(TextPattern),
    /// The expression is true.
    Cel(Expression),
    /// One of these sets holds.
    AnyOf(Vec<Vec<Claim>>),
}

/// A refusal that counts: a v1 Status with the right code and reason.
#[derive(Clone, Debug)]
pub struct Refusal {
    /// HTTP code, and the Status' own.
    pub code: Vec<u16>,
    /// One of these; empty: any.
    pub reason: Vec<String>,
    /// What `details` must match.
    pub details: Option<Pattern>,
    /// What `message` must match.
    pub message: Option<TextPattern>,
}
