//! Values of namespaces, pods and services that are stored or shown in a wrong way.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::behaviours::Fault;
use crate::behaviours::support::causes::rejection;
use crate::behaviours::support::objects::remove_meta;
use crate::behaviours::support::requests::{created, is_create, rewrite};
use crate::exchange::Response;
use crate::middleware::{
    Middleware, around, edit_objects, objects, requests, responses, uncompressed,
};
use crate::patch;

/// The middleware of a fault of this file.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    Some(match fault {
        Fault::NamespaceLabelInCamelCase => requests(|request| {
            let target = request.target();
            if request.method == Method::POST
                && target.is_core("namespaces")
                && target.name.is_empty()
            {
                request.edit_json(|namespace| {
                    namespace["metadata"]["labels"]["kubernetes.io/createdBy"] = "kubeproof".into();
                });
            }
        }),
        Fault::BindingAnnotationsLost => requests(|request| {
            if request.method == Method::POST && request.target().subresource == "binding" {
                rewrite(request, |binding| drop(remove_meta(binding, "annotations")));
            }
        }),
        Fault::BindingChangesNothing => requests(|request| {
            if request.method == Method::POST && request.target().subresource == "binding" {
                request.edit_query(|query| query.set("dryRun", "All"));
            }
        }),
        Fault::DryRunWithoutDefaults => responses(|request, response| {
            if is_create(request) && request.is_dry_run() && response.status == StatusCode::CREATED
            {
                let sent = request.json().unwrap_or_default();
                response.edit_value(|object| {
                    if let (Some(spec), Some(_)) = (sent.get("spec"), object.get("spec")) {
                        object["spec"] = spec.clone();
                    }
                });
            }
        }),
        _ => return defaults_and_addresses(fault),
    })
}

/// Faults of defaults, of the addresses of services, and of the nodes of pods.
fn defaults_and_addresses(fault: Fault) -> Option<Box<dyn Middleware>> {
    Some(match fault {
        Fault::PullPolicyIgnoresLatest => created(|_, object| {
            let pod = if object["spec"].get("template").is_some() {
                object.pointer_mut("/spec/template/spec")
            } else {
                object.get_mut("spec")
            };
            let Some(pod) = pod else { return };
            for list in ["initContainers", "containers"] {
                let containers = pod.get_mut(list).and_then(Value::as_array_mut);
                for container in containers.into_iter().flatten() {
                    if container.get("image").is_some()
                        && container.get("imagePullPolicy").is_none()
                    {
                        container["imagePullPolicy"] = "IfNotPresent".into();
                    }
                }
            }
        }),
        Fault::TargetPortMissing => objects(|_, object| {
            let ports = object.pointer_mut("/spec/ports").and_then(Value::as_array_mut);
            for port in ports.into_iter().flatten().filter(|port| port["targetPort"].is_number()) {
                if port["targetPort"] == port["port"] {
                    patch::set(port, "/targetPort", None);
                }
            }
        }),
        Fault::BindingOfAnyName => requests(|request| {
            let target = request.target();
            if request.method == Method::POST && target.subresource == "binding" {
                rewrite(request, |binding| {
                    binding["metadata"]["name"] = target.name.into();
                    remove_meta(binding, "namespace");
                });
            }
        }),
        Fault::BoundTwice => bound_twice(),
        Fault::ClusterIpKept => cluster_ip_kept(),
        Fault::ClusterIpLeaks => cluster_ip_leaks(),
        _ => return None,
    })
}

/// Binds a pod again, and shows it on the new node.
fn bound_twice() -> Box<dyn Middleware> {
    let nodes: Arc<Mutex<HashMap<String, Value>>> = Arc::default();
    around(move |mut request, next| {
        let nodes = nodes.clone();
        Box::pin(async move {
            uncompressed(&mut request);
            let mut response = next.send(request.clone()).await;
            let target = request.target();
            if target.subresource == "binding" && response.status == StatusCode::CONFLICT {
                let node = request.json().and_then(|body| body.pointer("/target/name").cloned());
                let mut nodes = nodes.lock().unwrap_or_else(PoisonError::into_inner);
                nodes.insert(
                    format!("{}/{}", target.namespace, target.name),
                    node.unwrap_or_default(),
                );
                let success = json!({
                    "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
                });
                return Response::json(StatusCode::CREATED, &success);
            }
            edit_objects(&request, &mut response, move |object| {
                let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
                let nodes = nodes.lock().unwrap_or_else(PoisonError::into_inner);
                let node = nodes.get(&format!("{}/{}", text("namespace"), text("name"))).cloned();
                if let Some(node) = node.filter(|_| object["kind"] == "Pod") {
                    object["spec"]["nodeName"] = node;
                }
            });
            response
        })
    })
}

/// Shows services of type `ExternalName` with the address that they had before.
fn cluster_ip_kept() -> Box<dyn Middleware> {
    let addresses: Mutex<HashMap<String, Value>> = Mutex::default();
    objects(move |_, object| {
        let uid = object["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
        let mut addresses = addresses.lock().unwrap_or_else(PoisonError::into_inner);
        match object["spec"].get("clusterIP").filter(|address| *address != "") {
            Some(address) => drop(addresses.insert(uid, address.clone())),
            None => {
                if let Some(address) = addresses.get(&uid)
                    && object["spec"]["type"] == "ExternalName"
                {
                    object["spec"]["clusterIPs"] = json!([address]);
                    object["spec"]["clusterIP"] = address.clone();
                }
            }
        }
    })
}

/// Rejects addresses that services of type `ExternalName` had before.
fn cluster_ip_leaks() -> Box<dyn Middleware> {
    let leaked: Arc<Mutex<Vec<Value>>> = Arc::default();
    around(move |request, next| {
        let leaked = leaked.clone();
        Box::pin(async move {
            if !request.target().is_core("services") {
                return next.send(request).await;
            }
            let asked = request.json().and_then(|body| body.pointer("/spec/clusterIP").cloned());
            if let Some(asked) = asked.filter(|_| request.method == Method::POST)
                && leaked.lock().unwrap_or_else(PoisonError::into_inner).contains(&asked)
            {
                return rejection(&json!({
                    "reason": "FieldValueInvalid", "field": "spec.clusterIPs",
                    "message": format!("Invalid value: {asked}: provided IP is already allocated"),
                }));
            }
            let before = match request.method {
                Method::PUT | Method::PATCH => next.server.read(&request.path).await,
                _ => None,
            };
            let response = next.send(request).await;
            if let (Some(before), Some(after)) = (before, response.value())
                && after["spec"]["type"] == "ExternalName"
                && let Some(address) = before.pointer("/spec/clusterIP")
            {
                leaked.lock().unwrap_or_else(PoisonError::into_inner).push(address.clone());
            }
            response
        })
    })
}
