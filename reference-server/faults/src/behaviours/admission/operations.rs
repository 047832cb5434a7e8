//! Admission policies and webhooks that apply to other operations than they should, or that do not
//! follow changes.

use serde_json::{Value, json};

use super::configurations::{configured, policy_rules, replace_operation, webhooks};
use crate::behaviours::Fault;
use crate::behaviours::support::causes::{ignoring, message, value};
use crate::behaviours::support::deletions::first_deletions_are_dry;
use crate::behaviours::support::objects::everywhere;
use crate::behaviours::support::requests::is_update;
use crate::middleware::{Middleware, requests};

/// The middleware of a fault of this file.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    operations(fault).or_else(|| expressions(fault)).or_else(|| changes(fault))
}

/// Faults in the operations and subresources for which admission runs.
fn operations(fault: Fault) -> Option<Box<dyn Middleware>> {
    Some(match fault {
        Fault::PoliciesIgnoreConnections => {
            policy_rules(|rule| replace_operation(rule, "CONNECT", "UPDATE"))
        }
        Fault::PoliciesIgnoreSubresources => policy_rules(|rule| {
            if let Some(resources) = rule["resources"].as_array_mut()
                && resources.iter().any(|resource| !is_subresource(resource))
            {
                resources.retain(|resource| !is_subresource(resource));
            }
        }),
        Fault::PoliciesIgnoreScale => policy_rules(|rule| {
            for resource in rule["resources"].as_array_mut().into_iter().flatten() {
                if let Some(parent) = resource.as_str().and_then(|name| name.strip_suffix("/scale"))
                {
                    *resource = format!("{parent}/none").into();
                }
            }
        }),
        Fault::PoliciesCoverSubresources => policy_rules(|rule| {
            if let Some(resources) = rule["resources"].as_array_mut() {
                let statuses = resources.iter().filter(|resource| !is_subresource(resource));
                let statuses = statuses.filter_map(|resource| resource.as_str());
                let statuses: Vec<Value> =
                    statuses.map(|resource| format!("{resource}/status").into()).collect();
                resources.extend(statuses);
            }
        }),
        Fault::PoliciesSeeNoOldObject => configured("validatingadmissionpolicies", |policy| {
            everywhere(&mut policy["spec"], &mut |value| {
                if let Value::String(text) = value {
                    *text = text.replace("oldObject", "object");
                }
            });
        }),
        Fault::MutatingPoliciesRunOnce => configured("mutatingadmissionpolicies", |policy| {
            policy["spec"]["reinvocationPolicy"] = json!("Never");
        }),
        Fault::MutatingPoliciesIgnoreUpdates => configured("mutatingadmissionpolicies", |policy| {
            let rules = policy.pointer_mut("/spec/matchConstraints/resourceRules");
            for rule in rules.and_then(Value::as_array_mut).into_iter().flatten() {
                replace_operation(rule, "UPDATE", "CONNECT");
            }
        }),
        Fault::WebhooksIgnoreUpdates => {
            webhook_rules(|rule| replace_operation(rule, "UPDATE", "CONNECT"))
        }
        Fault::WebhooksIgnoreDeletions => {
            webhook_rules(|rule| replace_operation(rule, "DELETE", "CONNECT"))
        }
        Fault::MutatingWebhooksIgnored => {
            configured("mutatingwebhookconfigurations", |configuration| {
                for webhook in configuration["webhooks"].as_array_mut().into_iter().flatten() {
                    webhook["failurePolicy"] = json!("Ignore");
                }
            })
        }
        _ => return None,
    })
}

/// Faults in the expressions of policies.
fn expressions(fault: Fault) -> Option<Box<dyn Middleware>> {
    Some(match fault {
        Fault::PolicyAuthorizerAllowsAll => decisions(".allowed() || true"),
        Fault::PolicyAuthorizerDeniesAll => decisions(".allowed() && false"),
        Fault::PolicyJsonPatchesIgnored => configured("mutatingadmissionpolicies", |policy| {
            for mutation in policy["spec"]["mutations"].as_array_mut().into_iter().flatten() {
                if let Some(Value::String(text)) = mutation.pointer_mut("/jsonPatch/expression") {
                    *text = format!("({text}).filter(operation, false)");
                }
            }
        }),
        // A number that the client did not send is one of a mutating policy.
        Fault::MutationsUnchecked => ignoring(|request, cause| {
            let sent = value(request, cause).filter(Value::is_number);
            sent.is_some_and(|sent| !message(cause).contains(&format!("value: {sent}:")))
        }),
        Fault::PoliciesMatchExactly => configured("validatingadmissionpolicies", |policy| {
            policy["spec"]["matchConstraints"]["matchPolicy"] = json!("Exact");
        }),
        _ => return None,
    })
}

/// Replaces the decisions of the authorizer in the validations of policies.
fn decisions(decision: &'static str) -> Box<dyn Middleware> {
    configured("validatingadmissionpolicies", move |policy| {
        for validation in policy["spec"]["validations"].as_array_mut().into_iter().flatten() {
            if let Some(Value::String(text)) = validation.get_mut("expression") {
                *text = text.replace(".allowed()", decision);
            }
        }
    })
}

/// Faults in how admission follows changes of its configuration.
fn changes(fault: Fault) -> Option<Box<dyn Middleware>> {
    Some(match fault {
        Fault::ChangedPoliciesIgnored => requests(|request| {
            if is_update(request) && request.target().resource == "validatingadmissionpolicies" {
                request.edit_query(|query| query.set("dryRun", "All"));
            }
        }),
        Fault::RemovedBindingsDeny => first_deletions_are_dry("validatingadmissionpolicybindings"),
        _ => return None,
    })
}

fn is_subresource(resource: &Value) -> bool {
    resource.as_str().is_some_and(|name| name.contains('/'))
}

/// Edits the rules of the validating webhooks that a client creates.
fn webhook_rules(edit: fn(&mut Value)) -> Box<dyn Middleware> {
    webhooks(move |webhook| {
        webhook["rules"].as_array_mut().into_iter().flatten().for_each(edit);
    })
}
