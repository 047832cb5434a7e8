//! Warnings about objects that are valid but may not do what the client expects.
//!
//! The arguments are the new object and, on an update, the stored one.

pub(super) mod cluster;
mod containers;
mod paths;
mod pods;
pub(super) mod secrets;
pub(super) mod services;
pub(super) mod storage;
pub(super) mod workloads;

use serde_json::Value;

use self::pods::template_at;

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn text<'v>(object: &'v Value, field: &str) -> &'v str {
    object.get(field).and_then(Value::as_str).unwrap_or_default()
}
