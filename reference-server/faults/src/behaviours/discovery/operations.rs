//! Operations of OpenAPI v3 that lack parameters or media types.

use serde_json::Value;

use crate::behaviours::Fault;
use crate::behaviours::support::objects::everywhere;
use crate::middleware::{Middleware, documents, only};

/// The middleware of a fault of this file.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    let edit: fn(&mut Value) = match fault {
        Fault::OpenapiWithoutDryRun => |value| remove_parameter(value, "dryRun"),
        Fault::OpenapiWithoutFieldValidation => |value| remove_parameter(value, "fieldValidation"),
        Fault::OpenapiWithoutApply => |value| {
            if let Some(content) = value.get_mut("content").and_then(Value::as_object_mut) {
                content.retain(|media_type, _| !media_type.starts_with("application/apply-patch"));
            }
        },
        _ => return None,
    };
    Some(only(
        |request| request.path.starts_with("/openapi/v3/"),
        documents(move |_, document| everywhere(&mut document["paths"], &mut |value| edit(value))),
    ))
}

/// Removes a parameter of an operation, or of a path.
fn remove_parameter(value: &mut Value, name: &str) {
    if let Some(parameters) = value.get_mut("parameters").and_then(Value::as_array_mut) {
        parameters.retain(|parameter| parameter["name"] != name);
    }
}
