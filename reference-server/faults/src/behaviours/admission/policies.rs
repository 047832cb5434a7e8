//! Admission policies and webhooks.

use http::{StatusCode, header};
use serde_json::{Value, json};

use super::configurations::{configured, policy_rules, replace_operation, webhooks};
use crate::behaviours::Fault;
use crate::behaviours::support::causes::{field, ignoring};
use crate::behaviours::support::objects::remove;
use crate::behaviours::support::requests::is_create;
use crate::exchange::{Request, Response};
use crate::middleware::{Middleware, only, responses};

/// The middleware of a fault of this file.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    Some(match fault {
        Fault::AdmissionPoliciesIgnored => {
            configured("validatingadmissionpolicybindings", |binding| {
                binding["spec"]["validationActions"] = json!(["Audit"]);
            })
        }
        Fault::PolicyReasonsIgnored => configured("validatingadmissionpolicies", |policy| {
            for validation in policy["spec"]["validations"].as_array_mut().into_iter().flatten() {
                validation["reason"] = Value::Null;
            }
        }),
        Fault::MutatingPoliciesIgnored => {
            configured("mutatingadmissionpolicybindings", |binding| {
                binding["spec"]["policyName"] = json!("none");
            })
        }
        Fault::MutatingPolicyNamespacesIgnored => {
            configured("mutatingadmissionpolicies", |policy| {
                remove(&mut policy["spec"]["matchConstraints"], "namespaceSelector");
            })
        }
        Fault::MutatingWebhookNamespacesIgnored => mutating_webhooks(|webhook| {
            remove(webhook, "namespaceSelector");
        }),
        Fault::MutatingWebhooksAlwaysFail => mutating_webhooks(|webhook| {
            webhook["failurePolicy"] = json!("Fail");
        }),
        Fault::ParametersBesideTheObject => {
            configured("validatingadmissionpolicybindings", |binding| {
                remove(&mut binding["spec"]["paramRef"], "namespace");
            })
        }
        Fault::WebhookRulesCoverSubresources => webhooks(|webhook| {
            for rule in webhook["rules"].as_array_mut().into_iter().flatten() {
                let Some(resources) = rule["resources"].as_array_mut() else { continue };
                let parts = resources.iter().filter_map(|resource| resource.as_str());
                let parts: Vec<Value> = parts
                    .filter(|resource| !resource.contains('/'))
                    .map(|resource| format!("{resource}/*").into())
                    .collect();
                resources.extend(parts);
            }
        }),
        Fault::MissingParametersPermit => {
            configured("validatingadmissionpolicybindings", |binding| {
                if binding["spec"]["paramRef"].is_object() {
                    binding["spec"]["paramRef"]["parameterNotFoundAction"] = json!("Allow");
                }
            })
        }
        _ => return called_webhooks(fault),
    })
}

/// Faults in when the server calls webhooks.
fn called_webhooks(fault: Fault) -> Option<Box<dyn Middleware>> {
    Some(match fault {
        Fault::WebhookSideEffectsUnchecked => {
            configured("validatingwebhookconfigurations", |configuration| {
                let webhooks = configuration["webhooks"].as_array_mut().into_iter().flatten();
                for webhook in webhooks.filter(|webhook| webhook["sideEffects"] == "Some") {
                    webhook["sideEffects"] = json!("None");
                }
            })
        }
        Fault::WebhookObjectSelectorsIgnored => {
            webhooks(|webhook| drop(remove(webhook, "objectSelector")))
        }
        Fault::WebhookNamespaceSelectorsIgnored => {
            webhooks(|webhook| drop(remove(webhook, "namespaceSelector")))
        }
        Fault::WebhookConditionsIgnored => webhooks(|webhook| {
            for condition in webhook["matchConditions"].as_array_mut().into_iter().flatten() {
                condition["expression"] = json!("true");
            }
        }),
        Fault::WebhooksMatchExactly => webhooks(|webhook| webhook["matchPolicy"] = json!("Exact")),
        _ => return policies(fault),
    })
}

/// Faults in what policies apply to, and in what they say.
fn policies(fault: Fault) -> Option<Box<dyn Middleware>> {
    Some(match fault {
        Fault::PoliciesIgnoreDeletions => policy_rules(|rule| {
            if let Some(operations) = rule["operations"].as_array_mut() {
                operations.retain(|operation| operation != "DELETE");
            }
        }),
        Fault::PoliciesIgnoreUpdates => {
            policy_rules(|rule| replace_operation(rule, "UPDATE", "CONNECT"))
        }
        Fault::PolicyNamesIgnored => policy_rules(|rule| drop(remove(rule, "resourceNames"))),
        Fault::BrokenPoliciesAccepted => only(
            |request| request.target().resource == "validatingadmissionpolicies",
            ignoring(|_, cause| field(cause).ends_with(".expression")),
        ),
        Fault::PolicyExclusionsIgnored => without_constraint("excludeResourceRules"),
        Fault::PolicySelectorsIgnored => without_constraint("objectSelector"),
        Fault::PolicyNamespacesIgnored => without_constraint("namespaceSelector"),
        Fault::PolicyConditionsIgnored => configured("validatingadmissionpolicies", |policy| {
            remove(&mut policy["spec"], "matchConditions");
        }),
        Fault::PoliciesAlwaysFail => configured("validatingadmissionpolicies", |policy| {
            policy["spec"]["failurePolicy"] = json!("Fail");
        }),
        Fault::BindingNamespacesIgnored => {
            configured("validatingadmissionpolicybindings", |binding| {
                if let Some(resources) = binding.pointer_mut("/spec/matchResources") {
                    remove(resources, "namespaceSelector");
                }
            })
        }
        Fault::PolicyMessagesFixed => configured("validatingadmissionpolicies", |policy| {
            for validation in policy["spec"]["validations"].as_array_mut().into_iter().flatten() {
                remove(validation, "messageExpression");
            }
        }),
        Fault::PolicyWarningsMissing => responses(|_, response| {
            let warning = response.headers.get(header::WARNING);
            if warning.is_some_and(|text| {
                String::from_utf8_lossy(text.as_bytes()).contains("ValidatingAdmissionPolicy")
            }) {
                response.headers.remove(header::WARNING);
            }
        }),
        Fault::MissingParametersDeny => {
            configured("validatingadmissionpolicybindings", |binding| {
                if binding["spec"]["paramRef"].is_object() {
                    binding["spec"]["paramRef"]["parameterNotFoundAction"] = json!("Deny");
                }
            })
        }
        _ => return failures(fault),
    })
}

/// Faults of mutations and of failures.
fn failures(fault: Fault) -> Option<Box<dyn Middleware>> {
    Some(match fault {
        Fault::MutationsHidden => responses(hide_annotations),
        Fault::FailingWebhooksIgnored => failure_policy("Ignore"),
        Fault::FailurePolicyIgnored => failure_policy("Fail"),
        Fault::FailingWebhooksForbid => responses(|_, response| {
            if response.status != StatusCode::INTERNAL_SERVER_ERROR {
                return;
            }
            response.status = StatusCode::FORBIDDEN;
            response.edit_value(|status| {
                status["reason"] = json!("Forbidden");
                status["code"] = json!(403);
            });
        }),
        _ => return None,
    })
}

/// Removes a constraint from the policies that a client creates.
fn mutating_webhooks(edit: fn(&mut Value)) -> Box<dyn Middleware> {
    configured("mutatingwebhookconfigurations", move |configuration| {
        configuration["webhooks"].as_array_mut().into_iter().flatten().for_each(edit);
    })
}

fn without_constraint(name: &'static str) -> Box<dyn Middleware> {
    configured("validatingadmissionpolicies", move |policy| {
        remove(&mut policy["spec"]["matchConstraints"], name);
    })
}

fn failure_policy(policy: &'static str) -> Box<dyn Middleware> {
    configured("validatingwebhookconfigurations", move |configuration| {
        for webhook in configuration["webhooks"].as_array_mut().into_iter().flatten() {
            webhook["failurePolicy"] = json!(policy);
        }
    })
}

/// Removes the annotations that the client did not send from the response to a create.
fn hide_annotations(request: &Request, response: &mut Response) {
    if !is_create(request) || response.status != StatusCode::CREATED {
        return;
    }
    let sent = request.json().unwrap_or_default();
    response.edit_value(|object| {
        if let Some(annotations) = object["metadata"]["annotations"].as_object_mut() {
            annotations.retain(|name, _| sent["metadata"]["annotations"].get(name).is_some());
        }
    });
}
