//! The trail of one request: its events, one for each stage.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use http::header::{self, HeaderName, HeaderValue};
use http::{HeaderMap, StatusCode, Uri};
use jiff::Timestamp;
use kubeproof_apimachinery::object::uuid;
use kubeproof_apimachinery::request::{ResourceInfo, yaml};
use kubeproof_apimachinery::serializer::protobuf;
use kubeproof_apimachinery::status::ApiError;
use serde_json::{Map, Value, json};

use super::AuditLog;
use super::policy::Scope;
use crate::authentication::User;
use crate::config::audit::{Level, Stage};
use crate::http::protobuf::to_json;
use crate::http::request_info::RequestInfo;
use crate::http::respond::Chunks;

/// The headers with the address of a client behind a proxy.
const FORWARDED: [&str; 2] = ["x-forwarded-for", "x-real-ip"];

/// The header with the ID of a request, in requests and responses.
pub(crate) const AUDIT_ID: HeaderName = HeaderName::from_static("audit-id");

/// The response repeats this number of bytes of an ID.
const MAX_AUDIT_ID: usize = 64;

/// The beginning of protobuf.
const ENVELOPE: &[u8] = b"k8s\0";

/// The sender, the attributes and the object of a request.
pub(crate) struct Origin<'a> {
    pub(crate) user: &'a User,
    pub(crate) verb: &'a str,
    pub(crate) info: &'a RequestInfo,
    pub(crate) uri: &'a Uri,
    pub(crate) headers: &'a HeaderMap,
    /// The address of the peer, if the connection is in the network.
    pub(crate) remote: Option<IpAddr>,
}

/// How a request ended.
pub(crate) enum Outcome<'a> {
    /// The server rejected the request.
    Rejected(&'a ApiError),
    /// The code of the response, and its body if that is complete.
    Responded(StatusCode, Option<&'a Bytes>),
}

/// The events of a request. It can be cheaply cloned.
#[derive(Clone, Debug)]
pub(crate) struct Trail(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    log: Arc<AuditLog>,
    scope: Scope,
    event: Mutex<Map<String, Value>>,
}

impl Trail {
    /// Writes the first event. Returns whether the log has it, or leaves it out.
    pub(super) fn begin(log: Arc<AuditLog>, scope: Scope, origin: &Origin<'_>) -> (Self, bool) {
        let event = first_event(&scope, origin);
        let trail = Self(Arc::new(Inner { log, scope, event: Mutex::new(event) }));
        let is_written = trail.write(Stage::RequestReceived);
        (trail, is_written)
    }

    /// Records the user that the user of the request acts for.
    pub(crate) fn impersonated(&self, user: &User) {
        self.set("impersonatedUser", user.info());
    }

    /// Adds an annotation. The first value of a key stays.
    pub(crate) fn annotate(&self, key: &str, value: &str) {
        self.change(|event| {
            let annotations = event.entry("annotations").or_insert_with(|| json!({}));
            if annotations.get(key).is_none() {
                annotations[key] = value.into();
            }
        });
    }

    /// Records the body of the request, if the policy asks for it. YAML and protobuf become JSON.
    pub(crate) fn request_body(&self, media_type: &str, bytes: &Bytes) {
        if bytes.is_empty() {
            return;
        }
        let Some(mut object) = parse(media_type, bytes) else { return };
        self.change(|event| complete_reference(event, &object));
        if self.0.scope.level >= Level::Request {
            self.trim(&mut object);
            self.set("requestObject", object);
        }
    }

    /// Writes the event of a complete response.
    pub(crate) fn finish(&self, outcome: &Outcome<'_>) {
        self.set("responseStatus", response_status(outcome));
        if let Outcome::Responded(_, Some(body)) = outcome
            && self.0.scope.level >= Level::RequestResponse
            && let Some(mut object) = parse("", body)
        {
            self.trim(&mut object);
            self.set("responseObject", object);
        } else if let Outcome::Rejected(error) = outcome
            && self.0.scope.level >= Level::RequestResponse
        {
            self.set("responseObject", error.to_status());
        }
        self.write(Stage::ResponseComplete);
    }

    /// Writes the event of a response whose body goes on. The last event follows when it ends.
    pub(crate) fn follow(self, code: StatusCode, chunks: Chunks) -> Chunks {
        self.set("responseStatus", response_status(&Outcome::Responded(code, None)));
        self.write(Stage::ResponseStarted);
        let end = AtEnd(self);
        let followed = stream::unfold((chunks, end), |(mut chunks, end)| async move {
            let chunk = chunks.next().await?;
            Some((chunk, (chunks, end)))
        });
        Box::pin(followed)
    }

    /// Writes the event of a stage. Returns whether the log has it, or leaves it out.
    fn write(&self, stage: Stage) -> bool {
        if self.0.scope.omit_stages.contains(&stage) {
            return true;
        }
        let mut event = self.event().clone();
        event.insert("stage".to_owned(), format!("{stage:?}").into());
        event.insert("stageTimestamp".to_owned(), now());
        self.0.log.write(&Value::Object(event))
    }

    fn trim(&self, object: &mut Value) {
        if !self.0.scope.omit_managed_fields {
            return;
        }
        let items = object.get_mut("items").and_then(Value::as_array_mut);
        for item in items.into_iter().flatten() {
            remove_managed_fields(item);
        }
        remove_managed_fields(object);
    }

    fn set(&self, field: &str, value: Value) {
        self.event().insert(field.to_owned(), value);
    }

    fn change(&self, change: impl FnOnce(&mut Map<String, Value>)) {
        change(&mut self.event());
    }

    fn event(&self) -> std::sync::MutexGuard<'_, Map<String, Value>> {
        self.0.event.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Writes the last event of a response when its body has been sent, or the client went away.
struct AtEnd(Trail);

impl Drop for AtEnd {
    fn drop(&mut self) {
        self.0.write(Stage::ResponseComplete);
    }
}

/// Returns the fields that all events of a request have.
fn first_event(scope: &Scope, origin: &Origin<'_>) -> Map<String, Value> {
    let Origin { user, verb, info, uri, headers, remote } = origin;
    let mut event = Map::from_iter([
        ("kind".to_owned(), "Event".into()),
        ("apiVersion".to_owned(), "audit.k8s.io/v1".into()),
        ("level".to_owned(), format!("{:?}", scope.level).into()),
        ("auditID".to_owned(), audit_id(headers).into()),
        ("stage".to_owned(), Value::Null),
        ("requestURI".to_owned(), uri.to_string().into()),
        ("verb".to_owned(), (*verb).into()),
        ("user".to_owned(), user.info()),
        ("sourceIPs".to_owned(), json!(source_ips(headers, *remote))),
    ]);
    let agent = headers.get(header::USER_AGENT).and_then(|value| value.to_str().ok());
    if let Some(agent) = agent {
        event.insert("userAgent".to_owned(), agent.into());
    }
    if let RequestInfo::Resource(info) = info {
        event.insert("objectRef".to_owned(), reference(info));
    }
    event.insert("requestReceivedTimestamp".to_owned(), now());
    event
}

/// Returns the ID of the header `Audit-ID`.
fn audit_id(headers: &HeaderMap) -> &str {
    headers.get(AUDIT_ID).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

/// Gives a request an ID, unless the client chose one. Returns it for the response.
pub(crate) fn identify(headers: &mut HeaderMap) -> HeaderValue {
    let given = audit_id(headers);
    if !given.is_empty()
        && let Ok(id) = HeaderValue::from_str(&given[..given.len().min(MAX_AUDIT_ID)])
    {
        return id;
    }
    let id = HeaderValue::from_str(&uuid()).unwrap_or_else(|_| HeaderValue::from_static(""));
    headers.insert(AUDIT_ID, id.clone());
    id
}

fn source_ips(headers: &HeaderMap, remote: Option<IpAddr>) -> Vec<IpAddr> {
    let named = FORWARDED.iter().find_map(|name| headers.get(*name)?.to_str().ok());
    let named = named.into_iter().flat_map(|text| text.split(','));
    let mut ips: Vec<IpAddr> = named.filter_map(|ip| ip.trim().parse().ok()).collect();
    ips.extend(remote.filter(|remote| !ips.contains(remote)));
    ips
}

fn reference(info: &ResourceInfo) -> Value {
    let fields = [
        ("resource", &info.resource),
        ("namespace", &info.namespace),
        ("name", &info.name),
        ("apiGroup", &info.group),
        ("apiVersion", &info.version),
        ("subresource", &info.subresource),
    ];
    let present = fields.into_iter().filter(|(_, value)| !value.is_empty());
    present.map(|(name, value)| (name.to_owned(), Value::from(value.as_str()))).collect()
}

/// Adds to the reference what only the body of the request says.
fn complete_reference(event: &mut Map<String, Value>, object: &Value) {
    let Some(reference) = event.get_mut("objectRef").and_then(Value::as_object_mut) else { return };
    for field in ["name", "namespace", "uid", "resourceVersion"] {
        if let Some(value) = object.pointer(&format!("/metadata/{field}")).and_then(Value::as_str)
            && !value.is_empty()
        {
            reference.entry(field).or_insert_with(|| value.into());
        }
    }
}

fn response_status(outcome: &Outcome<'_>) -> Value {
    let (code, status) = match outcome {
        Outcome::Rejected(error) => (error.code, error.to_status()),
        Outcome::Responded(code, _) if code.is_success() || code.is_informational() => {
            return json!({"metadata": {}, "code": code.as_u16()});
        }
        Outcome::Responded(code, body) => {
            (*code, body.and_then(|body| parse("", body)).unwrap_or_default())
        }
    };
    let mut shown = json!({"metadata": {}, "code": code.as_u16()});
    for field in ["status", "message", "reason", "details"] {
        if let Some(value) = status.get(field) {
            shown[field] = value.clone();
        }
    }
    shown
}

/// Returns a body as JSON, if it is JSON, YAML or protobuf.
fn parse(media_type: &str, bytes: &Bytes) -> Option<Value> {
    if media_type == protobuf::MEDIA_TYPE || bytes.starts_with(ENVELOPE) {
        return serde_json::from_slice(&to_json(bytes, ("", "")).ok()?).ok();
    }
    if media_type.ends_with("yaml") {
        return serde_json::from_slice(&yaml::to_json(bytes).ok()?).ok();
    }
    serde_json::from_slice(bytes).ok()
}

fn remove_managed_fields(object: &mut Value) {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
}

/// Returns the time in microseconds.
fn now() -> Value {
    format!("{:.6}", Timestamp::now()).into()
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn source_ips_name_the_client_before_the_proxies() {
        let mut headers = HeaderMap::new();
        let remote = "10.0.0.9".parse().ok();
        let shown = |headers: &HeaderMap| {
            let ips = source_ips(headers, remote).into_iter();
            ips.map(|ip| ip.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(shown(&headers), ["10.0.0.9"]);
        headers.insert("x-forwarded-for", HeaderValue::from_static("192.0.2.1, x, 10.0.0.9"));
        assert_eq!(shown(&headers), ["192.0.2.1", "10.0.0.9"]);
    }

    #[test]
    fn the_status_of_an_error_has_its_reason() {
        let error = ApiError::bad_request("a mistake");
        let status = response_status(&Outcome::Rejected(&error));
        let expected = json!({
            "metadata": {}, "code": 400, "status": "Failure", "reason": "BadRequest",
            "message": "a mistake",
        });
        assert_eq!(status, expected);
        let created = response_status(&Outcome::Responded(StatusCode::CREATED, None));
        assert_eq!(created, json!({"metadata": {}, "code": 201}));
    }

    #[test]
    fn the_body_completes_the_reference() {
        let info = RequestInfo::parse("/api/v1/namespaces/n/configmaps");
        let RequestInfo::Resource(info) = info else { panic!("a resource") };
        let mut event = Map::from_iter([("objectRef".to_owned(), reference(&info))]);
        let object = json!({"metadata": {"name": "a", "namespace": "other", "uid": "1"}});
        complete_reference(&mut event, &object);
        let expected = json!({
            "resource": "configmaps", "namespace": "n", "name": "a", "apiVersion": "v1",
            "uid": "1",
        });
        assert_eq!(event["objectRef"], expected);
    }
}
