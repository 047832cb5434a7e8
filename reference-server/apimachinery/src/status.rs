//! API errors and the Status objects that report them.

mod constructors;

use http::StatusCode;
use serde_json::{Map, Value, json};

use crate::field::FieldError;

/// The error that a rejected request returns.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{code} {reason}: {message}")]
pub struct ApiError {
    /// The HTTP status code, which is also `code`.
    pub code: StatusCode,
    /// The machine-readable reason; empty for an error without one.
    pub reason: &'static str,
    /// `message`
    pub message: String,
    /// `details`
    pub details: Option<Box<Details>>,
    /// `metadata.continue`: the token that continues a list whose version is expired.
    pub resume: Option<String>,
    /// The response body is plain text, as for a path outside the API.
    pub plain: bool,
    /// The Status that a webhook returned, which replaces that of the other fields.
    pub given: Option<Box<Value>>,
}

/// `Status.details`
#[derive(Clone, Debug, Default)]
pub struct Details {
    /// `name`
    pub name: String,
    /// `group`
    pub group: String,
    /// `kind`
    pub kind: String,
    /// `uid`
    pub uid: String,
    /// `causes`
    pub causes: Vec<Cause>,
    /// `retryAfterSeconds`, also sent as the header `Retry-After`.
    pub retry_after: Option<u32>,
}

/// One entry of `Status.details.causes`
#[derive(Clone, Debug)]
pub struct Cause {
    /// `reason`
    pub reason: &'static str,
    /// `message`
    pub message: String,
    /// `field`
    pub field: String,
}

/// A resource or a kind, as messages and details show it.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// The API group; empty for the core group.
    pub group: &'a str,
    /// The plural or the kind.
    pub word: &'a str,
}

impl From<&FieldError> for Cause {
    fn from(error: &FieldError) -> Self {
        Self {
            reason: error.reason.as_str(),
            message: error.message.clone(),
            field: error.field.clone(),
        }
    }
}

impl ApiError {
    /// Returns the Status object.
    pub fn to_status(&self) -> Value {
        if let Some(given) = &self.given {
            return Value::clone(given);
        }
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
    /// Returns the details as JSON.
    pub fn to_value(&self) -> Value {
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
                let mut entry = json!({ "message": cause.message });
                if !cause.reason.is_empty() {
                    entry["reason"] = cause.reason.into();
                }
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

/// Returns the Status for a deletion that removed the object.
pub fn success(details: &Details) -> Value {
    json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
        "details": details.to_value(),
    })
}
