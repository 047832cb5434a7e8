//! Formats and patterns of strings that the server checks too strictly.

use serde_json::Value;

use super::edits::definitions;
use crate::behaviours::Fault;
use crate::behaviours::support::failures::rejecting;
use crate::behaviours::support::objects::everywhere;
use crate::behaviours::support::requests::is_create;
use crate::exchange::Request;
use crate::middleware::Middleware;

/// The middleware of a fault of this file.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    match fault {
        Fault::DurationsInWordsRejected => {
            Some(rejecting("spec in body must be of type duration", has_duration_in_words))
        }
        Fault::PatternsAnchored => Some(definitions(|crd| {
            everywhere(&mut crd["spec"]["versions"], &mut anchor);
        })),
        _ => None,
    }
}

/// Makes the pattern of a schema match whole texts only.
fn anchor(schema: &mut Value) {
    let pattern = schema.get("pattern").and_then(Value::as_str);
    if let Some(anchored) = pattern.map(|pattern| format!("^(?:{pattern})$")) {
        schema["pattern"] = anchored.into();
    }
}

/// Reports whether a custom resource has a text with a number and a word of time.
fn has_duration_in_words(request: &Request) -> bool {
    if !is_create(request) || !request.target().is_custom() {
        return false;
    }
    let mut found = false;
    let Some(mut body) = request.json() else { return false };
    everywhere(&mut body, &mut |value: &mut Value| {
        let text = value.as_str().and_then(|text| text.split_once(' '));
        found |= text.is_some_and(|(count, unit)| {
            count.parse::<u32>().is_ok() && matches!(unit, "days" | "hours" | "minutes")
        });
    });
    found
}
