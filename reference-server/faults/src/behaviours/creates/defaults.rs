//! Defaults of single built-in kinds that clients do not see.

use http::StatusCode;
use serde_json::{Value, json};

use crate::behaviours::Fault;
use crate::behaviours::support::requests::is_create;
use crate::middleware::{Middleware, objects, responses};

/// The middleware of a fault of this file.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    let (resources, defaults) = match fault {
        Fault::JobsWithoutSelector => {
            return Some(objects(|request, object| {
                if request.target().resource == "jobs"
                    && let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut)
                {
                    spec.remove("selector");
                }
            }));
        }
        Fault::RequestsIgnoreLimits => return Some(unsent("pods", hide_requests)),
        Fault::LimitRangesWithoutDefaults => return Some(unsent("limitranges", hide_limits)),
        _ => of_workload(fault).or_else(|| of_network(fault)).or_else(|| of_cluster(fault))?,
    };
    // The items of lists have no kind.
    Some(objects(move |request, object| {
        if resources.contains(&request.target().resource.as_str()) {
            hide(object, &defaults);
        }
    }))
}

/// Resources, and the defaults that clients do not see in them.
type Hidden = (&'static [&'static str], Value);

fn of_workload(fault: Fault) -> Option<Hidden> {
    Some(match fault {
        Fault::PodsWithoutDefaults => {
            let spec = json!({
                "restartPolicy": "Always", "terminationGracePeriodSeconds": 30, "priority": 0,
            });
            (&["pods"], json!({ "spec": spec, "status": { "qosClass": "BestEffort" } }))
        }
        Fault::ProbesWithoutDefaults => {
            let probe = json!({ "periodSeconds": 10, "timeoutSeconds": 1, "failureThreshold": 3 });
            let container = json!({ "livenessProbe": probe, "readinessProbe": probe });
            (&["pods"], json!({ "spec": { "containers": [container] } }))
        }
        Fault::CronJobsWithoutPolicy => {
            (&["cronjobs"], json!({ "spec": { "concurrencyPolicy": "Allow" } }))
        }
        Fault::SetsWithoutStrategy => {
            let strategy = json!({ "type": "RollingUpdate" });
            let spec = json!({ "updateStrategy": strategy, "podManagementPolicy": "OrderedReady" });
            (&["statefulsets", "daemonsets"], json!({ "spec": spec }))
        }
        Fault::AutoscalersWithoutPolicies => {
            let rules = json!({ "selectPolicy": "Max" });
            let behavior = json!({ "scaleUp": rules, "scaleDown": rules });
            let spec = json!({ "minReplicas": 1, "behavior": behavior });
            (&["horizontalpodautoscalers"], json!({ "spec": spec }))
        }
        _ => return None,
    })
}

fn of_network(fault: Fault) -> Option<Hidden> {
    Some(match fault {
        Fault::NetworkPoliciesWithoutTypes => {
            (&["networkpolicies"], json!({ "spec": { "policyTypes": ["Ingress"] } }))
        }
        Fault::SlicePortsWithoutProtocol => {
            (&["endpointslices"], json!({ "ports": [{ "protocol": "TCP" }] }))
        }
        Fault::ServicesWithoutPolicies => {
            let spec =
                json!({ "externalTrafficPolicy": "Cluster", "internalTrafficPolicy": "Cluster" });
            (&["services"], json!({ "spec": spec }))
        }
        _ => return None,
    })
}

fn of_cluster(fault: Fault) -> Option<Hidden> {
    Some(match fault {
        Fault::StorageClassesWithoutPolicy => {
            (&["storageclasses"], json!({ "reclaimPolicy": "Delete" }))
        }
        Fault::BindingSubjectsWithoutGroup => {
            let group = json!({ "apiGroup": "rbac.authorization.k8s.io" });
            (&["rolebindings", "clusterrolebindings"], json!({ "subjects": [group] }))
        }
        Fault::WebhooksWithoutDefaults => {
            let webhook = json!({ "failurePolicy": "Fail", "timeoutSeconds": 10 });
            (&["validatingwebhookconfigurations"], json!({ "webhooks": [webhook] }))
        }
        Fault::DefinitionsWithoutConversion => {
            let spec = json!({ "conversion": { "strategy": "None" } });
            (&["customresourcedefinitions"], json!({ "spec": spec }))
        }
        _ => return None,
    })
}

/// Edits the response to the create of a resource. The edit sees the object that the client sent.
fn unsent(resource: &'static str, edit: fn(&mut Value, &Value)) -> Box<dyn Middleware> {
    responses(move |request, response| {
        let is_create = is_create(request) && request.target().is_core(resource);
        if is_create && response.status == StatusCode::CREATED {
            let sent = request.json().unwrap_or_default();
            response.edit_value(|object| edit(object, &sent));
        }
    })
}

/// Removes the requests of containers that the client did not send.
fn hide_requests(pod: &mut Value, sent: &Value) {
    let containers = pod.pointer_mut("/spec/containers").and_then(Value::as_array_mut);
    for (index, container) in containers.into_iter().flatten().enumerate() {
        let requests = &sent["spec"]["containers"][index]["resources"]["requests"];
        if let Some(shown) = container.pointer_mut("/resources/requests") {
            retain(shown, requests);
        }
    }
}

/// Removes the defaults of a limit range that the client did not send.
fn hide_limits(range: &mut Value, sent: &Value) {
    let limits = range.pointer_mut("/spec/limits").and_then(Value::as_array_mut);
    for (index, limit) in limits.into_iter().flatten().enumerate() {
        for field in ["default", "defaultRequest"] {
            if let Some(shown) = limit.get_mut(field) {
                retain(shown, &sent["spec"]["limits"][index][field]);
            }
        }
    }
}

/// Removes the members that another document does not have.
fn retain(shown: &mut Value, sent: &Value) {
    if let Some(fields) = shown.as_object_mut() {
        fields.retain(|name, _| sent.get(name).is_some());
    }
}

/// Removes the members that are equal to those of another document. A list of one item is the
/// document of all items.
fn hide(object: &mut Value, defaults: &Value) {
    if let (Some(items), Some([default])) =
        (object.as_array_mut(), defaults.as_array().map(Vec::as_slice))
    {
        for item in items {
            hide(item, default);
        }
        return;
    }
    let (Some(fields), Some(defaults)) = (object.as_object_mut(), defaults.as_object()) else {
        return;
    };
    for (name, default) in defaults {
        if fields.get(name) == Some(default) {
            fields.remove(name);
        } else if let Some(value) = fields.get_mut(name) {
            hide(value, default);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_values_that_are_equal_to_the_default_are_hidden() {
        let mut object = json!({ "spec": { "a": 1, "b": 2, "c": 3 } });
        hide(&mut object, &json!({ "spec": { "a": 1, "b": 1 }, "status": { "d": 4 } }));
        assert_eq!(object, json!({ "spec": { "b": 2, "c": 3 } }));
    }

    #[test]
    fn a_list_of_one_item_hides_the_defaults_of_all_items() {
        let mut object = json!({ "ports": [{ "a": 1, "b": 1 }, { "a": 2 }] });
        hide(&mut object, &json!({ "ports": [{ "a": 1 }] }));
        assert_eq!(object, json!({ "ports": [{ "b": 1 }, { "a": 2 }] }));
    }

    #[test]
    fn only_values_of_the_client_are_shown() {
        let resources = json!({ "requests": { "cpu": "1", "memory": "1Mi" } });
        let mut pod = json!({ "spec": { "containers": [{ "resources": resources }] } });
        let sent = json!({ "requests": { "memory": "1Mi" } });
        hide_requests(&mut pod, &json!({ "spec": { "containers": [{ "resources": sent }] } }));
        assert_eq!(pod["spec"]["containers"][0]["resources"], sent);
        let mut range = json!({ "spec": { "limits": [{ "default": { "cpu": "1" } }] } });
        hide_limits(&mut range, &json!({ "spec": { "limits": [{}] } }));
        assert_eq!(range["spec"]["limits"], json!([{ "default": {} }]));
    }
}
