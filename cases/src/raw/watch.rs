//! Watches and the steps that read them.

use schemars::JsonSchema;
use serde::Deserialize;

use super::check::RawCheck;
use super::forms::{Entries, OneOrMany, Texts, Yaml};
use crate::case::Identity;
use crate::yaml::Located;

/// A watch. Later steps read its events; expressions find them in `ID.events`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct RawWatch {
    /// The name of the watch.
    pub(crate) id: Located<String>,
    /// The collection or object. The default is `${collection}`.
    pub(crate) path: Option<Located<String>>,
    /// Query parameter.
    pub(crate) label_selector: Option<Located<Texts>>,
    /// Query parameter.
    pub(crate) field_selector: Option<Located<Texts>>,
    /// Query parameter.
    pub(crate) resource_version: Option<Located<Texts>>,
    /// Further query parameters. The step adds `watch=true`, unless they have another `watch`.
    pub(crate) query: Option<Entries<Texts>>,
    /// The media type of the response. The default is `application/json`; `""` sends no header.
    pub(crate) accept: Option<Located<String>>,
    /// The credential. The default is `admin`.
    #[serde(rename = "as", default)]
    pub(crate) identity: Identity,
    /// JSON Pointers. The harness keeps only these members of the objects, which saves memory in
    /// cases with hundreds of watches. The default is everything.
    #[serde(default)]
    pub(crate) keep: Vec<Located<String>>,
    /// Checks of the status code and headers of the response.
    #[serde(default)]
    pub(crate) expect: Vec<Located<RawCheck>>,
}

/// Events of an open watch. Either `next` or `until` is needed. To show that an event does not
/// come, await the one that must come next.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawAwait {
    /// The watch.
    pub(crate) watch: Located<String>,
    /// The name of this step.
    pub(crate) id: Located<String>,
    /// The next events, in order. The step passes over bookmarks, unless the type is BOOKMARK.
    pub(crate) next: Option<Located<Vec<Located<RawEvent>>>>,
    /// Reads events until one matches.
    pub(crate) until: Option<Located<RawEvent>>,
}

/// One event.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawEvent {
    /// The id of the check. Events in `next` need one.
    pub(crate) id: Option<Located<String>>,
    /// The type of the event, or several.
    #[serde(rename = "type")]
    pub(crate) types: Option<OneOrMany<EventType>>,
    /// A pattern for the object.
    pub(crate) object: Option<Yaml>,
    /// Values of the object, by JSON Pointer. Later steps use them as `${NAME}`.
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

/// The end of a watch, which the server makes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawEnd {
    /// The watch.
    pub(crate) watch: Located<String>,
    /// The id of the check that the server ends the watch. The default is `WATCH-ends`.
    pub(crate) id: Option<Located<String>>,
    /// Checks of the finished watch, by CEL.
    #[serde(default)]
    pub(crate) expect: Vec<Located<RawCheck>>,
}

/// Either a watch or a stream.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawClose {
    /// The watch.
    pub(crate) watch: Option<Located<String>>,
    /// Or the stream.
    pub(crate) stream: Option<Located<String>>,
}
