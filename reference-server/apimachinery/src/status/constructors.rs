//! One constructor for each kind of error, so that code, reason and details always fit together.

use std::fmt;
use std::time::Duration;

use http::StatusCode;
use serde_json::Value;

use super::{ApiError, Cause, Details, Subject};
use crate::field::{CauseReason, FieldError};
use crate::patch::PatchError;
use crate::patch::apply::ApplyError;
use crate::serializer::json::DecodeError;

/// The maximum number of mistakes that one error lists. A body can contain as many as it has bytes.
const MAX_CAUSES: usize = 200;

impl ApiError {
    /// Builds 400 `BadRequest`.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "BadRequest", message)
    }

    /// Builds 401 `Unauthorized`.
    pub fn unauthorized() -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "Unauthorized", "Unauthorized")
    }

    /// Builds 500 without a reason, for an error of another server.
    pub fn unknown(message: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "", message)
    }

    /// Builds 403 `Forbidden`. `what` is the sentence behind `is forbidden:`.
    pub fn forbidden(subject: Subject<'_>, name: &str, what: &str) -> Self {
        let quoted = if name.is_empty() { String::new() } else { format!(" {name:?}") };
        let message = format!("{}{quoted} is forbidden: {what}", subject.qualified());
        Self::new(StatusCode::FORBIDDEN, "Forbidden", message).with(subject.details(name))
    }

    /// Builds 403 `Forbidden` for a path outside the API.
    pub fn forbidden_path(what: &str) -> Self {
        Self::new(StatusCode::FORBIDDEN, "Forbidden", format!("forbidden: {what}"))
            .with(Details::default())
    }

    /// Builds 403 `Forbidden` for a create in a terminating namespace.
    pub fn namespace_terminating(subject: Subject<'_>, name: &str, namespace: &str) -> Self {
        let what = format!(
            "unable to create new content in namespace {namespace} because it is being terminated"
        );
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

    /// Builds 404 `NotFound` for an object.
    pub fn not_found(subject: Subject<'_>, name: &str) -> Self {
        let message = format!("{} {name:?} not found", subject.qualified());
        Self::new(StatusCode::NOT_FOUND, "NotFound", message).with(subject.details(name))
    }

    /// Builds 404 `NotFound` for a resource that a served group does not have.
    pub fn no_such_resource() -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            "NotFound",
            "the server could not find the requested resource",
        )
        .with(Details::default())
    }

    /// Builds 404 `NotFound` for a path outside the API.
    pub fn no_such_path() -> Self {
        let mut error = Self::new(StatusCode::NOT_FOUND, "NotFound", "404 page not found");
        error.plain = true;
        error
    }

    /// Builds 405 `MethodNotAllowed`.
    pub fn method_not_allowed() -> Self {
        Self::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "MethodNotAllowed",
            "the server does not allow this method on the requested resource",
        )
        .with(Details::default())
    }

    /// Builds 406 `NotAcceptable`.
    pub fn not_acceptable(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_ACCEPTABLE, "NotAcceptable", message)
    }

    /// Builds 415 `UnsupportedMediaType`.
    pub fn unsupported_media_type(accepted: &[&str]) -> Self {
        let message = format!(
            "the body of the request was in an unknown format - accepted media types include: {}",
            accepted.join(", ")
        );
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "UnsupportedMediaType", message)
    }

    /// Builds 413 `RequestEntityTooLarge`.
    pub fn too_large(what: &str) -> Self {
        let message = format!("Request entity too large: {what}");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "RequestEntityTooLarge", message)
    }

    /// Builds 408 `Timeout` for a body that does not arrive in time.
    pub fn slow_body(limit: Duration) -> Self {
        let message = format!(
            "Timeout: the body of the request did not come within {} s",
            limit.as_secs_f64()
        );
        Self::new(StatusCode::REQUEST_TIMEOUT, "Timeout", message).with(Details::default())
    }

    /// Builds 429 `TooManyRequests` for a request that exceeds the memory budget of the server.
    pub fn memory_exhausted() -> Self {
        let message = "too many large requests at once, please try again later";
        Self::new(StatusCode::TOO_MANY_REQUESTS, "TooManyRequests", message)
            .with(Details { retry_after: Some(1), ..Details::default() })
    }

    /// Builds 409 `AlreadyExists`.
    pub fn already_exists(subject: Subject<'_>, name: &str, deleting: bool) -> Self {
        let state = if deleting { "object is being deleted: " } else { "" };
        let message = format!("{state}{} {name:?} already exists", subject.qualified());
        Self::new(StatusCode::CONFLICT, "AlreadyExists", message).with(subject.details(name))
    }

    /// Builds 409 `Conflict`.
    pub fn conflict(subject: Subject<'_>, name: &str, why: &str) -> Self {
        let message =
            format!("Operation cannot be fulfilled on {} {name:?}: {why}", subject.qualified());
        Self::new(StatusCode::CONFLICT, "Conflict", message).with(subject.details(name))
    }

    /// Builds 409 `Conflict` for server-side apply. Each cause names an owner and a field.
    pub fn apply_conflict(message: String, causes: Vec<Cause>) -> Self {
        Self::new(StatusCode::CONFLICT, "Conflict", message)
            .with(Details { causes, ..Details::default() })
    }

    /// Builds 409 `Conflict` for an object that changed since the client read it.
    pub fn modified(subject: Subject<'_>, name: &str) -> Self {
        let why = "the object has been modified; please apply your changes to the latest version \
                   and try again";
        Self::conflict(subject, name, why)
    }

    /// Builds 422 `Invalid`, with one cause for each error.
    pub fn invalid(subject: Subject<'_>, name: &str, errors: &[FieldError]) -> Self {
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

    /// Builds 422 `Invalid` for query parameters or `DeleteOptions`. `kind` is `ListOptions` or a
    /// similar kind.
    pub fn invalid_options(kind: &str, errors: &[FieldError]) -> Self {
        Self::invalid(Subject { group: "meta.k8s.io", word: kind }, "", errors)
    }

    /// Builds 422 `Invalid` for a patch that parses but does not apply to this object.
    pub fn unprocessable_patch(message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", message).with(Details::default())
    }

    /// Builds 422 `Invalid` for a patch whose result does not fit the type.
    pub fn patched_object_invalid(patched: &Value, why: &str) -> Self {
        let message = format!("Invalid value: {:?}: {why}", patched.to_string());
        let error = FieldError {
            field: "patch".to_owned(),
            reason: CauseReason::FieldValueInvalid,
            message,
        };
        Self::invalid(Subject { group: "", word: "" }, "", &[error])
    }

    /// Builds 410 `Expired`.
    pub fn expired(message: impl Into<String>) -> Self {
        Self::new(StatusCode::GONE, "Expired", message)
    }

    /// Builds 504 `Timeout` for a version in the future.
    pub fn future_version(asked: u64, current: u64) -> Self {
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

    /// Builds 503 `ServiceUnavailable` for a backend that the server cannot reach.
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable", message)
    }

    /// Builds 500 without a reason for an unreachable node. Real servers do the same.
    pub fn unreachable_node(message: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "", message)
    }

    /// Builds 429 `TooManyRequests` for an eviction that a disruption budget does not allow.
    pub fn disruption_budget(message: &str, why: String, retry_after: Option<u32>) -> Self {
        let cause = Cause { reason: "DisruptionBudget", message: why, field: String::new() };
        Self::new(StatusCode::TOO_MANY_REQUESTS, "TooManyRequests", message).with(Details {
            causes: vec![cause],
            retry_after,
            ..Details::default()
        })
    }

    /// Builds 500 `InternalError`.
    pub fn internal(message: impl Into<String>) -> Self {
        let message = format!("Internal error occurred: {}", message.into());
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", message)
    }

    /// Builds 500 `InternalError` whose cause is the message, as kube-apiserver does.
    pub fn internal_cause(why: &dyn fmt::Display) -> Self {
        let message = why.to_string();
        let cause = Cause { reason: "", message: message.clone(), field: String::new() };
        let error = Self::internal(message);
        error.with(Details { causes: vec![cause], ..Details::default() })
    }

    /// Builds the error of a complete Status, such as that of a webhook.
    pub fn of_status(status: Value) -> Self {
        let code = status["code"].as_u64().and_then(|code| u16::try_from(code).ok());
        let code = code.and_then(|code| StatusCode::from_u16(code).ok());
        let code = code.filter(|code| code.as_u16() >= 400).unwrap_or(StatusCode::BAD_REQUEST);
        let message = status["message"].as_str().unwrap_or_default().to_owned();
        Self { given: Some(Box::new(status)), ..Self::new(code, "", message) }
    }

    fn new(code: StatusCode, reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            code,
            reason,
            message: message.into(),
            details: None,
            resume: None,
            plain: false,
            given: None,
        }
    }

    fn with(mut self, details: Details) -> Self {
        self.details = Some(Box::new(details));
        self
    }
}

impl From<PatchError> for ApiError {
    fn from(error: PatchError) -> Self {
        let message = error.to_string();
        match error {
            PatchError::Malformed(_) => Self::bad_request(message),
            PatchError::Unprocessable(_) => Self::unprocessable_patch(message),
            PatchError::TooLarge(what) => Self::too_large(&what),
        }
    }
}

impl From<DecodeError> for ApiError {
    fn from(error: DecodeError) -> Self {
        Self::bad_request(format!("couldn't get version/kind; json parse error: {error}"))
    }
}

impl From<ApplyError> for ApiError {
    fn from(error: ApplyError) -> Self {
        let message = error.to_string();
        let ApplyError::Conflict(conflicts) = error else { return Self::bad_request(message) };
        let causes = conflicts.into_iter().flat_map(|conflict| {
            let cause = move |field| Cause {
                reason: "FieldManagerConflict",
                message: conflict.message.clone(),
                field,
            };
            conflict.fields.clone().into_iter().map(cause)
        });
        Self::apply_conflict(message, causes.collect())
    }
}

impl Subject<'_> {
    fn qualified(&self) -> String {
        if self.group.is_empty() {
            self.word.to_owned()
        } else {
            format!("{}.{}", self.word, self.group)
        }
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
