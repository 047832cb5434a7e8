//! Refusals: what goes wrong, and the Status that says so.
//!
//! One constructor per meaning, so code, reason and details are chosen in one place and always fit each other.

use std::time::Duration;

use http::StatusCode;
use serde_json::{Map, Value, json};

use crate::schema::{CauseReason, FieldError};

/// Why a request is refused.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{code} {reason}: {message}")]
pub(crate) struct ApiError {
    pub(crate) code: StatusCode,
    /// Empty for an error that has no reason of its own.
    pub(crate) reason: &'static str,
    pub(crate) message: String,
    pub(crate) details: Option<Box<Details>>,
    /// `metadata.continue`: how to go on with a list whose version is gone.
    pub(crate) resume: Option<String>,
    /// Answered as plain text, as for a path that belongs to no API.
    pub(crate) plain: bool,
}

/// `Status.details`
#[derive(Clone, Debug, Default)]
pub(crate) struct Details {
    pub(crate) name: String,
    pub(crate) group: String,
    pub(crate) kind: String,
    pub(crate) uid: String,
    pub(crate) causes: Vec<Cause>,
    pub(crate) retry_after: Option<u32>,
}

/// One entry of `Status.details.causes`
#[derive(Clone, Debug)]
pub(crate) struct Cause {
    pub(crate) reason: &'static str,
    pub(crate) message: String,
    pub(crate) field: String,
}

/// A resource or a kind, as messages and details name it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Subject<'a> {
    pub(crate) group: &'a str,
    /// The plural, or the kind.
    pub(crate) word: &'a str,
}

/// How many mistakes of one object a refusal tells. There may be as many as bytes.
const MAX_CAUSES: usize = 200;

impl Subject<'_> {
    fn qualified(&self) -> String {
        if self.group.is_empty() { self.word.to_owned() } else { format!("{}.{}", self.word, self.group) }
    }

    fn details(&self, name: &str) -> Details {
        Details {
            name: name.to_owned(),
            group: self.group.to_owned(),
            kind: self.word.to_owned(),
            ..Details::default()
        }
    }
}

impl From<&FieldError> for Cause {
    fn from(error: &FieldError) -> Self {
        Self { reason: error.reason.as_str(), message: error.message.clone(), field: error.field.clone() }
    }
}

impl ApiError {
    fn new(code: StatusCode, reason: &'static str, message: impl Into<String>) -> Self {
        Self { code, reason, message: message.into(), details: None, resume: None, plain: false }
    }

    fn with(mut self, details: Details) -> Self {
        self.details = Some(Box::new(details));
        self
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "BadRequest", message)
    }

    pub(crate) fn unauthorized() -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "Unauthorized", "Unauthorized")
    }

    /// `what` is the sentence behind `is forbidden:`.
    pub(crate) fn forbidden(subject: Subject<'_>, name: &str, what: &str) -> Self {
        let quoted = if name.is_empty() { String::new() } else { format!(" {name:?}") };
        let message = format!("{}{quoted} is forbidden: {what}", subject.qualified());
        Self::new(StatusCode::FORBIDDEN, "Forbidden", message).with(subject.details(name))
    }

    /// A path outside the API may not be read.
    pub(crate) fn forbidden_path(what: &str) -> Self {
        Self::new(StatusCode::FORBIDDEN, "Forbidden", format!("forbidden: {what}")).with(Details::default())
    }

    pub(crate) fn namespace_terminating(subject: Subject<'_>, name: &str, namespace: &str) -> Self {
        let what =
            format!("unable to create new content in namespace {namespace} because it is being terminated");
        let mut error = Self::forbidden(subject, name, &what);
        if let Some(details) = &mut error.details {
            details.causes.push(Cause {
                reason: "NamespaceTerminating",
                message: format!("namespace {namespace} is being terminated"),
                field: "metadata.namespace".to_owned(),
            });
        }
        error
    }

    pub(crate) fn not_found(subject: Subject<'_>, name: &str) -> Self {
        let message = format!("{} {name:?} not found", subject.qualified());
        Self::new(StatusCode::NOT_FOUND, "NotFound", message).with(subject.details(name))
    }

    /// A resource that a served group does not have.
    pub(crate) fn no_such_resource() -> Self {
        Self::new(StatusCode::NOT_FOUND, "NotFound", "the server could not find the requested resource")
            .with(Details::default())
    }

    /// A path that belongs to no API at all.
    pub(crate) fn no_such_path() -> Self {
        let mut error = Self::new(StatusCode::NOT_FOUND, "NotFound", "404 page not found");
        error.plain = true;
        error
    }

    pub(crate) fn method_not_allowed() -> Self {
        Self::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "MethodNotAllowed",
            "the server does not allow this method on the requested resource",
        )
        .with(Details::default())
    }

    pub(crate) fn not_acceptable(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_ACCEPTABLE, "NotAcceptable", message)
    }

    pub(crate) fn unsupported_media_type(accepted: &[&str]) -> Self {
        let message = format!(
            "the body of the request was in an unknown format - accepted media types include: {}",
            accepted.join(", ")
        );
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "UnsupportedMediaType", message)
    }

    pub(crate) fn too_large(what: &str) -> Self {
        let message = format!("Request entity too large: {what}");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "RequestEntityTooLarge", message)
    }

    /// The body did not come in time.
    pub(crate) fn slow_body(limit: Duration) -> Self {
        let message =
            format!("Timeout: the body of the request did not come within {} s", limit.as_secs_f64());
        Self::new(StatusCode::REQUEST_TIMEOUT, "Timeout", message).with(Details::default())
    }

    /// Others send too much at the moment.
    pub(crate) fn no_room() -> Self {
        let message = "too many large requests at once, please try again later";
        Self::new(StatusCode::TOO_MANY_REQUESTS, "TooManyRequests", message)
            .with(Details { retry_after: Some(1), ..Details::default() })
    }

    pub(crate) fn already_exists(subject: Subject<'_>, name: &str, deleting: bool) -> Self {
        let state = if deleting { "object is being deleted: " } else { "" };
        let message = format!("{state}{} {name:?} already exists", subject.qualified());
        Self::new(StatusCode::CONFLICT, "AlreadyExists", message).with(subject.details(name))
    }

    pub(crate) fn conflict(subject: Subject<'_>, name: &str, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {} {name:?}: {why}", subject.qualified());
        Self::new(StatusCode::CONFLICT, "Conflict", message).with(subject.details(name))
    }

    /// Server-side apply wants fields that others own: each by its owner and where it is.
    pub(crate) fn apply_conflict(message: String, causes: Vec<Cause>) -> Self {
        Self::new(StatusCode::CONFLICT, "Conflict", message).with(Details { causes, ..Details::default() })
    }

    /// The object has changed since the client read it.
    pub(crate) fn modified(subject: Subject<'_>, name: &str) -> Self {
        let why =
            "the object has been modified; please apply your changes to the latest version and try again";
        Self::conflict(subject, name, why)
    }

    pub(crate) fn invalid(subject: Subject<'_>, name: &str, errors: &[FieldError]) -> Self {
        let more = errors.len().saturating_sub(MAX_CAUSES);
        let errors = &errors[..errors.len() - more];
        let mut list: Vec<String> = errors.iter().map(ToString::to_string).collect();
        if more > 0 {
            list.push(format!("and {more} more"));
        }
        let list = match list.as_slice() {
            [one] => one.clone(),
            many => format!("[{}]", many.join(", ")),
        };
        let message = format!("{} {name:?} is invalid: {list}", subject.qualified());
        let mut details = subject.details(name);
        details.causes = errors.iter().map(Cause::from).collect();
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", message).with(details)
    }

    /// Query parameters or `DeleteOptions` that make no sense; `kind` is `ListOptions` and the like.
    pub(crate) fn invalid_options(kind: &str, errors: &[FieldError]) -> Self {
        Self::invalid(Subject { group: "meta.k8s.io", word: kind }, "", errors)
    }

    /// The patch can be read, but not applied to this object.
    pub(crate) fn unprocessable_patch(message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", message).with(Details::default())
    }

    /// What the patch makes of the object is no object of its type.
    pub(crate) fn patched_object_invalid(patched: &Value, why: &str) -> Self {
        let message = format!("Invalid value: {:?}: {why}", patched.to_string());
        let error = FieldError { field: "patch".to_owned(), reason: CauseReason::FieldValueInvalid, message };
        Self::invalid(Subject { group: "", word: "" }, "", &[error])
    }

    pub(crate) fn expired(message: impl Into<String>) -> Self {
        Self::new(StatusCode::GONE, "Expired", message)
    }

    pub(crate) fn future_version(asked: u64, current: u64) -> Self {
        let message = format!("Timeout: Too large resource version: {asked}, current: {current}");
        let cause = Cause {
            reason: "ResourceVersionTooLarge",
            message: "Too large resource version".to_owned(),
            field: String::new(),
        };
        Self::new(StatusCode::GATEWAY_TIMEOUT, "Timeout", message).with(Details {
            causes: vec![cause],
            retry_after: Some(1),
            ..Details::default()
        })
    }

    /// What stands behind the server cannot be reached.
    pub(crate) fn unavailable(message: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable", message)
    }

    /// The node of a pod cannot be reached. A real server says so without a reason.
    pub(crate) fn unreachable_node(message: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "", message)
    }

    /// Not now: a budget does not allow another disruption.
    pub(crate) fn disruption_budget(message: &str, why: String, retry_after: Option<u32>) -> Self {
        let cause = Cause { reason: "DisruptionBudget", message: why, field: String::new() };
        Self::new(StatusCode::TOO_MANY_REQUESTS, "TooManyRequests", message).with(Details {
            causes: vec![cause],
            retry_after,
            ..Details::default()
        })
    }

    pub(crate) fn internal(message: impl Into<String>) -> Self {
        let message = format!("Internal error occurred: {}", message.into());
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", message)
    }

    /// The Status object.
    pub(crate) fn to_status(&self) -> Value {
        let mut metadata = Map::new();
        if let Some(resume) = &self.resume {
            metadata.insert("continue".to_owned(), resume.clone().into());
        }
        let mut status = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": metadata,
            "status": "Failure",
            "message": self.message,
            "code": self.code.as_u16(),
        });
        if !self.reason.is_empty() {
            status["reason"] = self.reason.into();
        }
        if let Some(details) = &self.details {
            status["details"] = details.to_value();
        }
        status
    }
}

impl Details {
    pub(crate) fn to_value(&self) -> Value {
        let mut details = Map::new();
        for (key, value) in
            [("name", &self.name), ("group", &self.group), ("kind", &self.kind), ("uid", &self.uid)]
        {
            if !value.is_empty() {
                details.insert(key.to_owned(), value.as_str().into());
            }
        }
        if !self.causes.is_empty() {
            let causes = self.causes.iter().map(|cause| {
                let mut entry = json!({ "reason": cause.reason, "message": cause.message });
                if !cause.field.is_empty() {
                    entry["field"] = cause.field.as_str().into();
                }
                entry
            });
            details.insert("causes".to_owned(), causes.collect());
        }
        if let Some(seconds) = self.retry_after {
            details.insert("retryAfterSeconds".to_owned(), seconds.into());
        }
        Value::Object(details)
    }
}

/// The Status of a deletion that removed the object.
pub(crate) fn success(details: &Details) -> Value {
    json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details.to_value() })
}
