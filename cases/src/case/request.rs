//! Requests, as a case describes them.

use serde::{Deserialize, Serialize};

use super::Check;
use crate::template::{JsonTemplate, Template};
use crate::yaml::Span;

/// One exchange.
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
    /// The media type of the body; `None`: that of [`Body::media_type`].
    pub content_type: Option<Template>,
    /// `None`: `application/json`.
    pub accept: Option<Template>,
    /// What is sent.
    pub body: Option<Body>,
    /// The credential.
    pub identity: Identity,
    /// Over the transport that normalises nothing.
    pub exact: bool,
    /// Values of the response.
    pub capture: Vec<Capture>,
    /// Checks of the response.
    pub expect: Vec<Check>,
    /// Its place in the file.
    pub span: Span,
}

/// What a request sends.
#[derive(Clone, Debug)]
pub enum Body {
    /// Merged over the subject's template, apiVersion and kind filled in.
    Object(JsonTemplate),
    /// This value.
    Json(JsonTemplate),
    /// This value, with members in this order.
    Exact(JsonTemplate),
    /// The body of an earlier response with changes merged in.
    Edit {
        /// The step whose response body is changed.
        of: String,
        /// An RFC 7386 merge patch.
        merge: JsonTemplate,
    },
    /// Any text.
    Text(Template),
    /// A message of protobuf in the envelope of Kubernetes.
    Protobuf {
        /// The apiVersion in the envelope.
        api_version: Template,
        /// The kind in the envelope.
        kind: Template,
        /// An object whose names are the numbers of the fields. An object in it is a message, an
        /// array repeats its field, and numbers and booleans are varints.
        message: JsonTemplate,
    },
}

impl Body {
    /// The media type of a request that names none.
    pub fn media_type(&self) -> &'static str {
        match self {
            Self::Protobuf { .. } => "application/vnd.kubernetes.protobuf",
            _ => "application/json",
        }
    }
}

/// Who sends a request.
#[derive(
    Clone, Copy, Debug, Default, Deserialize, Eq, Hash, PartialEq, Serialize, schemars::JsonSchema,
)]
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

/// A value of a response.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Capture {
    /// The variable.
    pub name: String,
    /// A JSON Pointer; empty for the whole body.
    pub pointer: String,
    /// Its place in the file.
    pub span: Span,
}
