//! Renders a request of a case file.

use bytes::Bytes;
use kubeproof_cases::case::{Body, Request};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};

use super::protobuf;
use crate::plan::Subject;
use crate::transport::Outgoing;
use crate::values::{Undefined, Values, merge};

/// All characters except the unreserved ones of RFC 3986.
pub(super) const QUERY: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

const JSON: &str = "application/json";

/// Why a request cannot be rendered.
#[derive(Debug, thiserror::Error)]
pub(super) enum BuildError {
    #[error(transparent)]
    Undefined(#[from] Undefined),
    #[error("the response of `{0}` has no JSON body to edit")]
    NothingToEdit(String),
    #[error("the step and the case name no protocol for the stream")]
    NoProtocol,
}

/// Renders a request.
pub(super) fn outgoing(
    request: &Request,
    subject: Option<&Subject>,
    values: &Values,
) -> Result<Outgoing, BuildError> {
    let mut target = values.render(&request.path)?;
    for (name, value) in &request.query {
        target.push(if target.contains('?') { '&' } else { '?' });
        target.extend(utf8_percent_encode(name, QUERY));
        target.push('=');
        target.extend(utf8_percent_encode(&values.render(value)?, QUERY));
    }

    let body = request.body.as_ref().map(|body| rendered(body, subject, values)).transpose()?;
    let named =
        |name: &str| request.headers.iter().any(|(given, _)| given.eq_ignore_ascii_case(name));
    let mut headers = Vec::new();
    let accept = request.accept.as_ref().map(|accept| values.render(accept)).transpose()?;
    let content_type =
        request.content_type.as_ref().map(|given| values.render(given)).transpose()?;
    let type_of_body = request.body.as_ref().map(Body::media_type);
    let defaults = [("accept", accept, Some(JSON)), ("content-type", content_type, type_of_body)];
    for (name, given, default) in defaults {
        let default = default.filter(|_| !named(name)).map(ToOwned::to_owned);
        let value = given.or(default);
        // An empty value suppresses the header.
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            headers.push((name.to_owned(), value));
        }
    }
    for (name, value) in &request.headers {
        headers.push((name.clone(), values.render(value)?));
    }

    Ok(Outgoing {
        method: request.method.clone(),
        target,
        headers,
        body: body.unwrap_or_default(),
        identity: request.identity,
        exact: request.exact,
    })
}

fn rendered(body: &Body, subject: Option<&Subject>, values: &Values) -> Result<Bytes, BuildError> {
    let text = match body {
        Body::Text(text) => values.render(text)?,
        Body::Json(json) => values.render_json(json)?.to_string(),
        Body::Exact(json) => values.render_exact(json)?,
        Body::Object(json) => object(values.render_json(json)?, subject, values).to_string(),
        Body::Edit { of, merge: patch } => {
            let edited =
                values.get(of).and_then(|step| step.get("body")).filter(|body| !body.is_null());
            let mut edited = edited.ok_or_else(|| BuildError::NothingToEdit(of.clone()))?.clone();
            merge(&mut edited, &values.render_json(patch)?);
            edited.to_string()
        }
        Body::Protobuf { api_version, kind, message } => {
            let (api_version, kind) = (values.render(api_version)?, values.render(kind)?);
            return Ok(protobuf::enveloped(&api_version, &kind, &values.render_json(message)?));
        }
    };
    Ok(text.into())
}

/// Merges the given members into the template of the subject.
fn object(given: Value, subject: Option<&Subject>, values: &Values) -> Value {
    let Some(subject) = subject else { return given };
    let mut object = values.get("subject.template").cloned().unwrap_or_else(|| json!({}));
    merge(&mut object, &json!({"apiVersion": subject.api_version(), "kind": subject.kind}));
    merge(&mut object, &given);
    object
}
