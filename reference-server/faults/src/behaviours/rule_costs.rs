//! Costs of rules that the server estimates too high.

use http::StatusCode;
use serde_json::Value;

use super::support::{everywhere, is_create};
use crate::exchange::{Request, Response};
use crate::middleware::{Middleware, around};
use crate::set::Fault;

/// The middleware of a fault of this file.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    match fault {
        Fault::CheapRulesRejected => Some(around(|request, next| {
            Box::pin(async move {
                if sizes_long_texts(&request) {
                    let message = "estimated rule cost exceeds budget";
                    let code = StatusCode::UNPROCESSABLE_ENTITY;
                    return Response::failure(code, "Invalid", message);
                }
                next.send(request).await
            })
        })),
        _ => None,
    }
}

/// Reports whether a definition has a rule about the size of a text without a maximum length.
fn sizes_long_texts(request: &Request) -> bool {
    if !is_create(request) || request.target().resource != "customresourcedefinitions" {
        return false;
    }
    let mut found = false;
    let Some(mut body) = request.json() else { return false };
    everywhere(&mut body, &mut |schema: &mut Value| {
        let rules = schema.get("x-kubernetes-validations").and_then(Value::as_array);
        let mut texts = rules.into_iter().flatten().filter_map(|rule| rule["rule"].as_str());
        found |= schema.get("type").is_some_and(|kind| kind == "string")
            && schema.get("maxLength").is_none()
            && texts.any(|rule| rule.contains("self.size()"));
    });
    found
}
