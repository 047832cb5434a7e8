//! Requests that are spelled out, and objects that a case needs.

use schemars::JsonSchema;
use serde::Deserialize;

use super::check::RawCheck;
use super::forms::{Entries, RepeatableEntries, Texts, Yaml, YamlMapping};
use crate::case::Identity;
use crate::yaml::Located;

/// An object that the case needs. The path defaults to `${collection}`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawGiven {
    /// The name of the exchange in expressions.
    pub(crate) id: Located<String>,
    /// The collection. The default is `${collection}`.
    pub(crate) path: Option<Located<String>>,
    /// Body: merged over the subject's template. apiVersion and kind are filled in.
    pub(crate) object: Option<YamlMapping>,
    /// Body: this value as JSON.
    pub(crate) body: Option<Yaml>,
    /// Values of the response body, by JSON Pointer. Later steps use them as `${NAME}`.
    pub(crate) capture: Option<Entries<String>>,
}

/// Any request.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct RawRequest {
    /// The name of the exchange in expressions.
    pub(crate) id: Located<String>,
    /// GET, POST, PUT, PATCH, DELETE, or any other token.
    pub(crate) method: Located<String>,
    /// The request target. It may carry a raw query string.
    pub(crate) path: Located<String>,
    /// Query parameters, which the harness encodes. A list repeats a parameter.
    pub(crate) query: Option<Entries<Texts>>,
    /// Headers. A list of single-key mappings may repeat one.
    pub(crate) headers: Option<RepeatableEntries<String>>,
    /// The media type of the body. The default is `application/json`; PATCH must name its own. `""`
    /// sends no header.
    pub(crate) content_type: Option<Located<String>>,
    /// The media type of the response. The default is `application/json`; `""` sends no header.
    pub(crate) accept: Option<Located<String>>,
    /// Body: merged over the subject's template. apiVersion and kind are filled in.
    pub(crate) object: Option<YamlMapping>,
    /// Body: this value as JSON.
    pub(crate) body: Option<Yaml>,
    /// Body: this JSON with its spelling and order of members.
    pub(crate) json: Option<Located<String>>,
    /// Body: that of an earlier response with changes merged in.
    pub(crate) edit: Option<Located<RawEdit>>,
    /// Body: any text.
    pub(crate) text: Option<Located<String>>,
    /// Body: a message of protobuf in the envelope of Kubernetes. The default of `contentType` is
    /// `application/vnd.kubernetes.protobuf`.
    pub(crate) protobuf: Option<RawProtobuf>,
    /// The credential. The default is `admin`.
    #[serde(rename = "as", default)]
    pub(crate) identity: Identity,
    /// Send the request over the transport that normalises nothing: odd paths, methods and headers.
    #[serde(default)]
    pub(crate) exact: bool,
    /// Values of the response body, by JSON Pointer. Later steps use them as `${NAME}`.
    pub(crate) capture: Option<Entries<String>>,
    /// Checks of the response.
    #[serde(default)]
    pub(crate) expect: Vec<Located<RawCheck>>,
}

/// A message of protobuf in the envelope of Kubernetes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct RawProtobuf {
    /// The apiVersion in the envelope.
    pub(crate) api_version: Located<String>,
    /// The kind in the envelope.
    pub(crate) kind: Located<String>,
    /// The fields by their numbers. A mapping is a message, a list repeats its field, and numbers
    /// and booleans are varints.
    pub(crate) message: YamlMapping,
}

/// The body of an earlier response with changes merged in.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawEdit {
    /// The step whose response body is changed.
    pub(crate) of: Located<String>,
    /// A merge patch (RFC 7386). `null` removes a member.
    pub(crate) merge: Yaml,
}
