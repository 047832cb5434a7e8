//! Admission plugins.

use http::StatusCode;
use serde_json::{Value, json};

use crate::behaviours::Fault;
use crate::behaviours::support::objects::remove;
use crate::behaviours::support::requests::{created, is_create, rewrite};
use crate::exchange::Response;
use crate::middleware::{Middleware, requests, responses};

/// Texts in the rejections of admission plugins.
const REJECTIONS: [&str; 4] =
    ["exceeded quota", "usage per", "violates PodSecurity", "no PriorityClass"];

/// The middleware of a fault of this file.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    Some(match fault {
        Fault::AdmissionRejectionAsInvalid => responses(|request, response| {
            if is_create(request) && is_rejection(response) {
                response.status = StatusCode::UNPROCESSABLE_ENTITY;
                response.edit_value(|status| {
                    status["reason"] = json!("Invalid");
                    status["code"] = json!(422);
                });
            }
        }),
        Fault::LimitRangesWithoutRequests => limits(|limit| drop(remove(limit, "defaultRequest"))),
        Fault::LimitRangeRatiosIgnored => {
            limits(|limit| drop(remove(limit, "maxLimitRequestRatio")))
        }
        Fault::LimitRangesOfPodsIgnored => limits(|limit| {
            if limit["type"] == "Pod" {
                *limit = other_limit();
            }
        }),
        // A limit range has at most one item of each type.
        Fault::LimitRangesIgnored => created(|request, range| {
            if request.target().is_core("limitranges") {
                range["spec"]["limits"] = json!([other_limit()]);
            }
        }),
        Fault::QuotaScopesIgnored => quotas(|quota| {
            quota.get_mut("spec").and_then(|spec| remove(spec, "scopes"));
        }),
        Fault::QuotasIgnored => quotas(|quota| {
            for part in ["spec", "status"] {
                if quota[part].is_object() {
                    quota[part] = json!({});
                }
            }
        }),
        Fault::AdmissionDefaultsLate => responses(|request, response| {
            let is_pod = is_create(request) && request.target().is_core("pods");
            if is_pod && response.status == StatusCode::CREATED {
                let sent = request.json().unwrap_or_default();
                response.edit_value(|pod| hide_defaults(pod, &sent));
            }
        }),
        _ => return None,
    })
}

/// Edits the limits of each limit range that a client creates.
fn limits(edit: impl Fn(&mut Value) + Send + Sync + 'static) -> Box<dyn Middleware> {
    created(move |request, range| {
        if request.target().is_core("limitranges") {
            range["spec"]["limits"].as_array_mut().into_iter().flatten().for_each(&edit);
        }
    })
}

/// A limit of something else than pods.
fn other_limit() -> Value {
    json!({ "type": "PersistentVolumeClaim", "max": { "storage": "1Ei" } })
}

/// Edits each quota that a client writes.
fn quotas(edit: impl Fn(&mut Value) + Send + Sync + 'static) -> Box<dyn Middleware> {
    requests(move |request| {
        if request.target().is_core("resourcequotas") && !request.body.is_empty() {
            rewrite(request, &edit);
        }
    })
}

fn is_rejection(response: &Response) -> bool {
    if response.status != StatusCode::FORBIDDEN {
        return false;
    }
    let status = response.value().unwrap_or_default();
    let message = status["message"].as_str().unwrap_or_default();
    REJECTIONS.iter().any(|text| message.contains(text))
}

/// Removes what plugins added to a pod.
fn hide_defaults(pod: &mut Value, sent: &Value) {
    let containers = pod.pointer_mut("/spec/containers").and_then(Value::as_array_mut);
    for (index, container) in containers.into_iter().flatten().enumerate() {
        if sent["spec"]["containers"][index]["resources"].is_null() {
            container["resources"] = json!({});
        }
    }
    let names_class = !sent["spec"]["priorityClassName"].is_null();
    if let Some(spec) = pod["spec"].as_object_mut().filter(|_| names_class) {
        spec.remove("priority");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_rejections_of_plugins_are_changed() {
        let failure = |code, message: &str| {
            Response::failure(StatusCode::from_u16(code).expect("a code"), "Forbidden", message)
        };
        assert!(is_rejection(&failure(403, "a is forbidden: exceeded quota: q")));
        assert!(!is_rejection(&failure(403, "a is forbidden: the user may not")));
        assert!(!is_rejection(&failure(409, "exceeded quota")));
    }

    #[test]
    fn values_of_the_client_stay() {
        let spec = json!({
            "priority": 5, "containers": [{"resources": {"a": 1}}, {"resources": {"b": 1}}],
        });
        let mut pod = json!({ "spec": spec });
        let sent = json!({
            "spec": {"priorityClassName": "c", "containers": [{}, {"resources": {"b": 1}}]},
        });
        hide_defaults(&mut pod, &sent);
        let containers = json!([{"resources": {}}, {"resources": {"b": 1}}]);
        assert_eq!(pod["spec"], json!({ "containers": containers }));
    }
}
