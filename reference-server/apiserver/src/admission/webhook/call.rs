//! Calls of webhooks.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use http::{StatusCode, Uri};
use kubeproof_apimachinery::object::uuid;
use kubeproof_apimachinery::status::ApiError;
use serde_json::Value;

use super::super::Attributes;
use super::configuration::{Target, Webhook};
use super::response::Response;
use super::review::Invocation;
use super::service;
use crate::http::client::{Client, ClientError};
use crate::http::metrics::Admission;

/// Why a webhook does not allow a request.
#[derive(Debug)]
pub(super) enum Failure {
    /// The webhook rejects the request, or the server rejects the call.
    Rejected(Box<ApiError>),
    /// The call failed, so the failure policy decides.
    Failed(String),
}

/// Calls a webhook, and returns its patch.
pub(super) async fn call(
    invocation: &Invocation<'_>,
    request: &Attributes<'_>,
    object: &Value,
) -> Result<Option<Value>, Failure> {
    let (webhook, since) = (invocation.webhook, Instant::now());
    let result = review(invocation, request, object).await;
    let (code, failed) = match &result {
        Ok(_) => (200, false),
        Err(Failure::Rejected(error)) => (error.code.as_u16(), false),
        Err(Failure::Failed(_)) => (0, true),
    };
    let kind = if webhook.is_mutating { "admit" } else { "validating" };
    let (name, operation) = (webhook.name.as_str(), request.operation.name());
    let is_rejected = result.is_err();
    let call = Admission { name, kind, operation, is_rejected, since };
    request.metrics.webhook(call, code, failed);
    result
}

async fn review(
    invocation: &Invocation<'_>,
    request: &Attributes<'_>,
    object: &Value,
) -> Result<Option<Value>, Failure> {
    let webhook = invocation.webhook;
    if request.dry_run && !webhook.supports_dry_run {
        let why = format!("admission webhook {:?} does not support dry run", webhook.name);
        return Err(Failure::Rejected(Box::new(ApiError::bad_request(why))));
    }
    let Some(version) = webhook.review_version else {
        let why = "could not create admission objects: webhook does not accept known \
                   AdmissionReview versions (v1, v1beta1)";
        return Err(Failure::Failed(why.to_owned()));
    };
    let uid = uuid();
    let review = invocation.review(request, object, (version, &uid));
    let body = post(webhook, request, review.to_string().into()).await.map_err(Failure::Failed)?;
    let mut response =
        Response::read(&body, (version, &uid), webhook.is_mutating).map_err(Failure::Failed)?;
    for (key, value) in response.audit_annotations.take().into_iter().flatten() {
        request.record.annotate(format!("{}/{key}", webhook.name), value);
    }
    for warning in response.warnings.take().into_iter().flatten() {
        request.record.warn(warning);
    }
    if !response.allowed {
        return Err(Failure::Rejected(Box::new(response.rejection(&webhook.name))));
    }
    response.patch().map_err(Failure::Failed)
}

/// Sends a review, and returns the body of the response.
async fn post(webhook: &Webhook, request: &Attributes<'_>, body: Bytes) -> Result<Bytes, String> {
    let (url, client) = connect(&webhook.target, request)?;
    let timeout = format!("timeout={}s", webhook.timeout.as_secs());
    let path = match url.query() {
        Some(query) => format!("{}?{query}&{timeout}", url.path()),
        None => format!("{}?{timeout}", url.path()),
    };
    let failed = |why: &dyn std::fmt::Display| {
        let authority = url.authority().map_or("", |authority| authority.as_str());
        format!("failed to call webhook: Post \"https://{authority}{path}\": {why}")
    };
    let (status, body) =
        client.post_json(&path, body, webhook.timeout).await.map_err(|error| failed(&error))?;
    if status.is_success() {
        return Ok(body);
    }
    Err(format!("failed to call webhook: {}", http_error(status, &body)))
}

/// Returns the URL and the client of a webhook.
fn connect(target: &Target, request: &Attributes<'_>) -> Result<(Uri, Arc<Client>), String> {
    let unusable = |why: &dyn std::fmt::Display| format!("could not get REST client: {why}");
    if let Some(service) = &target.service {
        let url = service::url(service).map_err(|why| unusable(&why))?;
        let dialer = service::dialer(service, request)?;
        let client = Client::new(&url, &target.ca_pem, Some(dialer));
        return Ok((url, Arc::new(client.map_err(|error| unusable(&error))?)));
    }
    let Some(url) = &target.url else {
        return Err(unusable(&"webhook configuration must have either service or URL"));
    };
    let url: Uri = url.parse().map_err(|error: http::uri::InvalidUri| unusable(&error))?;
    if let Some(client) = target.client.get() {
        return Ok((url, Arc::clone(client)));
    }
    let client = Client::new(&url, &target.ca_pem, None);
    let client = Arc::new(client.map_err(|error: ClientError| unusable(&error))?);
    Ok((url, Arc::clone(target.client.get_or_init(|| client))))
}

/// Returns the message of the client of Go for a failed request.
fn http_error(status: StatusCode, body: &[u8]) -> String {
    let given: Value = serde_json::from_slice(body).unwrap_or_default();
    if given["kind"] == "Status"
        && let Some(message) = given["message"].as_str()
    {
        return message.to_owned();
    }
    let text = String::from_utf8_lossy(body);
    let text: String = text.trim().chars().take(2048).collect();
    match status {
        StatusCode::BAD_REQUEST => "the server rejected our request for an unknown reason".into(),
        StatusCode::UNAUTHORIZED => {
            "the server has asked for the client to provide credentials".into()
        }
        StatusCode::FORBIDDEN => text,
        StatusCode::NOT_FOUND => "the server could not find the requested resource".into(),
        StatusCode::METHOD_NOT_ALLOWED => {
            "the server does not allow this method on the requested resource".into()
        }
        StatusCode::SERVICE_UNAVAILABLE => {
            "the server is currently unable to handle the request".into()
        }
        StatusCode::GATEWAY_TIMEOUT => "the server was unable to return a response in the time \
                                        allotted, but may still be processing the request"
            .into(),
        status if status.is_server_error() => {
            format!("an error on the server ({text:?}) has prevented the request from succeeding")
        }
        status => format!(
            "the server responded with the status code {} but did not return more \
                           information",
            status.as_u16()
        ),
    }
}
