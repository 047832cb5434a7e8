//! Formats of strings that the server checks too strictly.

use http::StatusCode;
use serde_json::Value;

use super::support::{everywhere, is_create};
use crate::exchange::{Request, Response};
use crate::middleware::{Middleware, around};
use crate::set::Fault;

/// The middleware of a fault of this file.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    match fault {
        Fault::DurationsInWordsRejected => Some(around(|request, next| {
            Box::pin(async move {
                if has_duration_in_words(&request) {
                    let message = "spec in body must be of type duration";
                    let code = StatusCode::UNPROCESSABLE_ENTITY;
                    return Response::failure(code, "Invalid", message);
                }
                next.send(request).await
            })
        })),
        _ => None,
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
