//! Renders a request of a case file.

use kubeproof_cases::case::{Body, Request};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};

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

    let body = match &request.body {
        None => None,
        Some(Body::Text(text)) => Some(values.render(text)?),
        Some(Body::Json(json)) => Some(values.render_json(json)?.to_string()),
        Some(Body::Exact(json)) => Some(values.render_exact(json)?),
        Some(Body::Object(json)) => {
            Some(object(values.render_json(json)?, subject, values).to_string())
        }
        Some(Body::Edit { of, merge: patch }) => {
            let edited =
                values.get(of).and_then(|step| step.get("body")).filter(|body| !body.is_null());
            let mut edited = edited.ok_or_else(|| BuildError::NothingToEdit(of.clone()))?.clone();
            merge(&mut edited, &values.render_json(patch)?);
            Some(edited.to_string())
        }
    };

    let named =
        |name: &str| request.headers.iter().any(|(given, _)| given.eq_ignore_ascii_case(name));
    let mut headers = Vec::new();
    let accept = request.accept.as_ref().map(|accept| values.render(accept)).transpose()?;
    let content_type =
        request.content_type.as_ref().map(|given| values.render(given)).transpose()?;
    let defaults = [("accept", accept, true), ("content-type", content_type, body.is_some())];
    for (name, given, by_default) in defaults {
        let value = given.or_else(|| (by_default && !named(name)).then(|| JSON.to_owned()));
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
        body: body.map(Into::into).unwrap_or_default(),
        identity: request.identity,
        exact: request.exact,
    })
}

/// Merges the given members into the template of the subject.
fn object(given: Value, subject: Option<&Subject>, values: &Values) -> Value {
    let Some(subject) = subject else { return given };
    let mut object = values.get("subject.template").cloned().unwrap_or_else(|| json!({}));
    merge(&mut object, &json!({"apiVersion": subject.api_version(), "kind": subject.kind}));
    merge(&mut object, &given);
    object
}
