//! The objects that configure admission: policies, bindings and webhooks.

use http::Method;
use serde_json::{Value, json};

use crate::behaviours::support::requests::rewrite;
use crate::middleware::{Middleware, requests};

const GROUP: &str = "admissionregistration.k8s.io";

/// Edits the objects that a client creates to configure admission.
pub(super) fn configured(
    plural: &'static str,
    edit: impl Fn(&mut Value) + Send + Sync + 'static,
) -> Box<dyn Middleware> {
    requests(move |request| {
        let target = request.target();
        if request.method == Method::POST && target.group == GROUP && target.resource == plural {
            rewrite(request, &edit);
        }
    })
}

/// Edits the rules of the policies that a client creates.
pub(super) fn policy_rules(
    edit: impl Fn(&mut Value) + Send + Sync + 'static,
) -> Box<dyn Middleware> {
    configured("validatingadmissionpolicies", move |policy| {
        let rules = policy.pointer_mut("/spec/matchConstraints/resourceRules");
        rules.and_then(Value::as_array_mut).into_iter().flatten().for_each(&edit);
    })
}

/// Edits the webhooks that a client creates.
pub(super) fn webhooks(edit: impl Fn(&mut Value) + Send + Sync + 'static) -> Box<dyn Middleware> {
    configured("validatingwebhookconfigurations", move |configuration| {
        configuration["webhooks"].as_array_mut().into_iter().flatten().for_each(&edit);
    })
}

/// Replaces an operation of a rule by one that the resources of the suite do not have. A rule needs
/// an operation.
pub(super) fn replace_operation(rule: &mut Value, from: &str, to: &str) {
    let operations = rule["operations"].as_array_mut().into_iter().flatten();
    for operation in operations.filter(|operation| *operation == from) {
        *operation = json!(to);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_operation_of_a_rule_is_replaced() {
        let mut rule = json!({ "operations": ["CREATE", "UPDATE"] });
        replace_operation(&mut rule, "UPDATE", "CONNECT");
        assert_eq!(rule, json!({ "operations": ["CREATE", "CONNECT"] }));
    }
}
