//! Costs of rules that the server estimates too high.

use serde_json::Value;

use crate::behaviours::Fault;
use crate::behaviours::support::failures::rejecting;
use crate::behaviours::support::objects::everywhere;
use crate::behaviours::support::requests::is_create;
use crate::exchange::Request;
use crate::middleware::Middleware;

/// The middleware of a fault of this file.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    match fault {
        Fault::CheapRulesRejected => {
            Some(rejecting("estimated rule cost exceeds budget", sizes_long_texts))
        }
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
