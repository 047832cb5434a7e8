//! What a case file may say, key by key: the types that serde reads and that the JSON Schema is made of.
//!
//! Nothing is checked here beyond the shape. Doc comments become the descriptions that editors show.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::case::{Capability, Edition, Identity, Level, Scope};
use crate::forms::{Entries, HeaderExpectation, JsonText, OneOrMany, RepeatableEntries, Texts};
use crate::raw_stream::{RawCreate, RawFinish, RawReceive, RawSend, RawStream};
use crate::rule::{Rule, SchemaSet};
use crate::syntax::Located;

/// One behaviour of a server, and how to see it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schemars(title = "kubeproof case")]
pub(crate) struct RawCase {
    /// One sentence in the present tense: what a correct server does.
    pub(crate) summary: Located<String>,
    /// Ids of the ledger; at least one.
    pub(crate) requirements: Located<Vec<Located<String>>>,
    /// How strongly it is asked for; default: the strongest level among the requirements.
    pub(crate) level: Option<Level>,
    /// Only under these; default: under those that have one of its requirements.
    #[serde(default)]
    pub(crate) editions: Vec<Edition>,
    /// Who relies on it, and what breaks.
    pub(crate) why: Option<String>,
    /// Which resources the case runs on; absent: it runs once, without a subject.
    pub(crate) subject: Option<RawSubject>,
    /// The protocols of streams that the case runs over, one result for each, or sets of them: `command`,
    /// `command-status`, `command-text`, `command-half-close`, `ports`, `log`. Absent: the case runs once.
    pub(crate) protocols: Option<Located<Vec<Located<String>>>>,
    /// What the target must offer beyond the subject.
    #[serde(default)]
    pub(crate) needs: Vec<Capability>,
    /// Faults of the reference server that the case detects.
    #[serde(default)]
    pub(crate) catches: Vec<Located<String>>,
    /// What happens, in order.
    pub(crate) steps: Located<Vec<Located<RawStep>>>,
}

/// Which resources a case runs on.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawSubject {
    /// `any` (the default), `builtin`, `custom`, or resources by name, as `configmaps.v1`.
    pub(crate) of: Option<OneOrMany<String>>,
    /// Only this scope.
    pub(crate) scope: Option<Scope>,
    /// Discovery verbs that the subject must list.
    #[serde(default)]
    pub(crate) verbs: Vec<Verb>,
    /// Subresources that the subject must have.
    #[serde(default)]
    pub(crate) subresources: Vec<Subresource>,
    /// What the subject's definition must know.
    #[serde(default)]
    pub(crate) has: Vec<Has>,
    /// Only on the first subject that fits, for what is expensive and the same everywhere.
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
    Eviction,
    Proxy,
    Scale,
    Status,
}

impl Subresource {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Eviction => "eviction",
            Self::Proxy => "proxy",
            Self::Scale => "scale",
            Self::Status => "status",
        }
    }
}

/// What a subject's definition may know.
#[derive(Clone, Copy, Debug, Deserialize, Eq, JsonSchema, PartialEq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Has {
    /// A merge patch that changes the desired state: `${subject.change}`.
    Change,
    /// A merge patch for the status subresource: `${subject.status}`.
    Status,
}

/// One thing that happens.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum RawStep {
    /// POSTs an object that the case needs; anything but 201 ends the case.
    Given(RawGiven),
    /// One exchange.
    Request(Box<RawRequest>),
    /// Opens a watch.
    Watch(RawWatch),
    /// Reads events of an open watch.
    Await(RawAwait),
    /// Reads a watch to the end that the server makes.
    End(RawEnd),
    /// Hangs up a watch or a stream.
    Close(RawClose),
    /// Opens a stream over WebSocket or SPDY.
    Stream(Box<RawStream>),
    /// Creates a SPDY stream on an open connection.
    Create(RawCreate),
    /// Sends on an open stream.
    Send(Box<RawSend>),
    /// Reads an open stream until something has come.
    Receive(RawReceive),
    /// Reads a stream to the end that the server makes.
    Finish(RawFinish),
    /// Iterations at once.
    Concurrently(RawLoop),
    /// Iterations one after another.
    Repeat(RawLoop),
    /// Different things at once.
    Together(RawTogether),
    /// Iterations until something holds.
    Until(RawUntil),
    /// Design rules over the published API.
    Schema(RawSchema),
    /// Checks that relate earlier exchanges, by CEL.
    Expect(Vec<Located<RawCheck>>),
}

/// Design rules over the published API.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawSchema {
    /// What is held against the rules; default `published`.
    #[serde(default)]
    pub(crate) of: SchemaSet,
    /// The rules.
    pub(crate) expect: Located<Vec<Located<RawSchemaCheck>>>,
}

/// One design rule.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawSchemaCheck {
    /// Unique in the case; kept when the case is edited.
    pub(crate) id: Located<String>,
    /// The rule.
    pub(crate) rule: Rule,
    /// How strongly it is asked for; default: as the case.
    pub(crate) level: Option<Level>,
    /// A part of the case's requirements.
    #[serde(default)]
    pub(crate) requirements: Vec<Located<String>>,
    /// What it means when it is broken.
    pub(crate) means: Option<String>,
}

/// An object that the case needs.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawGiven {
    /// The name of the exchange in expressions.
    pub(crate) id: Located<String>,
    /// The collection; default `${collection}`.
    pub(crate) path: Option<Located<String>>,
    /// JSON merged over the subject's template, apiVersion and kind filled in.
    pub(crate) object: Option<JsonText>,
    /// JSON as it stands.
    pub(crate) json: Option<JsonText>,
    /// Values taken out of the answer by JSON Pointer.
    pub(crate) capture: Option<Entries<String>>,
}

/// One exchange.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct RawRequest {
    /// The name of the exchange in expressions.
    pub(crate) id: Located<String>,
    /// GET, POST, PUT, PATCH, DELETE, or any other token.
    pub(crate) method: Located<String>,
    /// The target; may carry a raw query string.
    pub(crate) path: Located<String>,
    /// Parameters, encoded and added to the path; a list repeats one.
    pub(crate) query: Option<Entries<Texts>>,
    /// Headers; a list of single-key mappings may repeat one.
    pub(crate) headers: Option<RepeatableEntries<String>>,
    /// The media type of the body; default `application/json`. PATCH must name its own.
    pub(crate) content_type: Option<Located<String>>,
    /// The media type asked for; default `application/json`.
    pub(crate) accept: Option<Located<String>>,
    /// Body: JSON merged over the subject's template, apiVersion and kind filled in.
    pub(crate) object: Option<JsonText>,
    /// Body: JSON as it stands.
    pub(crate) json: Option<JsonText>,
    /// Body: that of an earlier answer with changes merged in.
    pub(crate) edit: Option<Located<RawEdit>>,
    /// Body: any text.
    pub(crate) text: Option<Located<String>>,
    /// Who sends it; default `admin`.
    #[serde(rename = "as", default)]
    pub(crate) identity: Identity,
    /// Over the transport that normalises nothing.
    #[serde(default)]
    pub(crate) exact: bool,
    /// Values taken out of the answer by JSON Pointer.
    pub(crate) capture: Option<Entries<String>>,
    /// What must hold of the answer.
    #[serde(default)]
    pub(crate) expect: Vec<Located<RawCheck>>,
}

/// The body of an earlier answer with changes merged in.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawEdit {
    /// The step whose answer is changed.
    pub(crate) of: Located<String>,
    /// An RFC 7386 merge patch; null removes.
    pub(crate) merge: JsonText,
}

/// A watch that stays open while later steps run.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawWatch {
    /// The name of the watch.
    pub(crate) id: Located<String>,
    /// The collection or object.
    pub(crate) path: Located<String>,
    /// Parameters beside `watch=true`.
    pub(crate) query: Option<Entries<Texts>>,
    /// The media type asked for; default `application/json`.
    pub(crate) accept: Option<Located<String>>,
    /// Who sends it; default `admin`.
    #[serde(rename = "as", default)]
    pub(crate) identity: Identity,
    /// JSON Pointers: of the object of each event, only these members are kept. Default: all of it.
    #[serde(default)]
    pub(crate) keep: Vec<Located<String>>,
    /// What must hold of the head of the answer.
    #[serde(default)]
    pub(crate) expect: Vec<Located<RawCheck>>,
}

/// Events read from an open watch.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawAwait {
    /// The watch.
    pub(crate) watch: Located<String>,
    /// The name of this step.
    pub(crate) id: Located<String>,
    /// The next events, in order; bookmarks are passed over unless asked for.
    pub(crate) next: Option<Located<Vec<Located<RawEvent>>>>,
    /// Reads on until an event matches.
    pub(crate) until: Option<Located<RawEvent>>,
}

/// An event as it must be.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawEvent {
    /// The id of the check; needed in `next`.
    pub(crate) id: Option<Located<String>>,
    /// The type, or several.
    #[serde(rename = "type")]
    pub(crate) types: Option<OneOrMany<EventType>>,
    /// A pattern for the object.
    pub(crate) object: Option<JsonText>,
    /// Values taken out of the object by JSON Pointer.
    pub(crate) capture: Option<Entries<String>>,
}

/// The type of a watch event.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub(crate) enum EventType {
    Added,
    Bookmark,
    Deleted,
    Error,
    Modified,
}

impl EventType {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Added => "ADDED",
            Self::Bookmark => "BOOKMARK",
            Self::Deleted => "DELETED",
            Self::Error => "ERROR",
            Self::Modified => "MODIFIED",
        }
    }
}

/// Reads a watch to the end that the server makes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawEnd {
    /// The watch.
    pub(crate) watch: Located<String>,
    /// The id of the check that the end comes; default `<watch>-ends`.
    pub(crate) id: Option<Located<String>>,
    /// Checks over the finished watch.
    #[serde(default)]
    pub(crate) expect: Vec<Located<RawCheck>>,
}

/// Hangs up.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawClose {
    /// The watch.
    pub(crate) watch: Option<Located<String>>,
    /// Or the stream.
    pub(crate) stream: Option<Located<String>>,
}

/// Iterations of the same steps.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawLoop {
    /// The name of the list of results.
    pub(crate) id: Located<String>,
    /// How many; `${i}` counts them from 0.
    pub(crate) times: Option<Located<u32>>,
    /// A CEL list: one iteration per item.
    pub(crate) over: Option<Located<String>>,
    /// The variable that holds the item of `over`.
    #[serde(rename = "as")]
    pub(crate) variable: Option<Located<String>>,
    /// What each does.
    pub(crate) steps: Located<Vec<Located<RawStep>>>,
}

/// Different things at once.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawTogether {
    /// The name of the list of results, one per branch.
    pub(crate) id: Located<String>,
    /// What happens in each.
    pub(crate) branches: Located<Vec<Located<Vec<Located<RawStep>>>>>,
}

/// Iterations until something holds.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawUntil {
    /// The name of the last round's results, and the id of the check.
    pub(crate) id: Located<String>,
    /// How often at most.
    pub(crate) attempts: Located<u32>,
    /// One round.
    pub(crate) steps: Located<Vec<Located<RawStep>>>,
    /// Ends it when true.
    pub(crate) cel: Located<String>,
}

/// The claims stand beside other keys in three places, and serde's `flatten` would lose their places.
macro_rules! with_claims {
    ($(#[$meta:meta])* struct $name:ident { $($fields:tt)* }) => {
        $(#[$meta])*
        #[derive(Debug, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields, rename_all = "camelCase")]
        pub(crate) struct $name {
            $($fields)*
            /// The HTTP code is (one of) these.
            pub(crate) status: Option<Located<OneOrMany<u16>>>,
            /// The answer refuses the request for this reason.
            pub(crate) refused: Option<RawRefused>,
            /// The body is JSON and matches this pattern.
            pub(crate) body: Option<JsonText>,
            /// Headers that are there and match, or are absent.
            pub(crate) header: Option<Located<Entries<HeaderExpectation>>>,
            /// A regular expression that the raw body matches.
            pub(crate) text: Option<Located<String>>,
            /// An expression that is true.
            pub(crate) cel: Option<Located<String>>,
            /// At least one of these sets holds: all are equally lawful.
            pub(crate) any_of: Option<Located<Vec<Located<RawClaims>>>>,
        }

        impl $name {
            pub(crate) fn claims(&self) -> Claims<'_> {
                Claims {
                    status: self.status.as_ref(),
                    refused: self.refused.as_ref(),
                    body: self.body.as_ref(),
                    header: self.header.as_ref(),
                    text: self.text.as_ref(),
                    cel: self.cel.as_ref(),
                    any_of: self.any_of.as_ref(),
                }
            }
        }
    };
}

/// The claims of a check, a deviation, or a member of `anyOf`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Claims<'a> {
    pub(crate) status: Option<&'a Located<OneOrMany<u16>>>,
    pub(crate) refused: Option<&'a RawRefused>,
    pub(crate) body: Option<&'a JsonText>,
    pub(crate) header: Option<&'a Located<Entries<HeaderExpectation>>>,
    pub(crate) text: Option<&'a Located<String>>,
    pub(crate) cel: Option<&'a Located<String>>,
    pub(crate) any_of: Option<&'a Located<Vec<Located<RawClaims>>>>,
}

with_claims! {
    /// One expectation.
    struct RawCheck {
        /// Unique in the case, kept when the case is edited.
        pub(crate) id: Located<String>,
        /// Default: the case's.
        pub(crate) level: Option<Level>,
        /// The part of the case's requirements that it judges; default: all.
        #[serde(default)]
        pub(crate) requirements: Vec<Located<String>>,
        /// Judged only under these; default: under those that have one of its requirements.
        #[serde(default)]
        pub(crate) editions: Vec<Edition>,
        /// One line: what it means when this is broken.
        pub(crate) means: Option<String>,
        /// What deployed servers do instead.
        pub(crate) deviation: Option<Located<RawDeviation>>,
    }
}

with_claims! {
    /// A behaviour that differs from the letter and is met in deployed servers.
    struct RawDeviation {
        /// Why it is accepted.
        pub(crate) because: String,
    }
}

with_claims! {
    /// One set of claims.
    struct RawClaims {}
}

/// A refusal that counts: a v1 Status with the right code and reason.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawRefused {
    /// The HTTP code, and the Status' own.
    pub(crate) code: Located<OneOrMany<u16>>,
    /// The reason, or several.
    pub(crate) reason: Located<OneOrMany<String>>,
    /// A pattern for the details.
    pub(crate) details: Option<JsonText>,
    /// A regular expression for the message.
    pub(crate) message: Option<Located<String>>,
}
