//! Admission policies and webhooks.

use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::support::{is_create, rewrite};
use crate::exchange::{Request, Response};
use crate::middleware::{Middleware, requests, responses};
use crate::set::Fault;

const GROUP: &str = "admissionregistration.k8s.io";

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
        Fault::MissingParametersPermit => {
            configured("validatingadmissionpolicybindings", |binding| {
                if binding["spec"]["paramRef"].is_object() {
                    binding["spec"]["paramRef"]["parameterNotFoundAction"] = json!("Allow");
                }
            })
        }
        Fault::WebhookSideEffectsUnchecked => {
            configured("validatingwebhookconfigurations", |configuration| {
                let webhooks = configuration["webhooks"].as_array_mut().into_iter().flatten();
                for webhook in webhooks.filter(|webhook| webhook["sideEffects"] == "Some") {
                    webhook["sideEffects"] = json!("None");
                }
            })
        }
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

/// Edits the objects that a client creates to configure admission.
fn configured(
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
