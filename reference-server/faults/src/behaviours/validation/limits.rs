//! Limits of lengths that are one too low or one too high.

use http::Method;
use serde_json::{Map, Value, json};

use crate::behaviours::Fault;
use crate::behaviours::support::causes::{ignoring, message, rejecting, rejection};
use crate::exchange::Request;
use crate::middleware::{Middleware, around};

/// The middleware of a fault of this file.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    names_too_low(fault).or_else(|| values_too_low(fault)).or_else(|| too_high(fault))
}

/// Faults that reject valid lengths of names.
fn names_too_low(fault: Fault) -> Option<Box<dyn Middleware>> {
    Some(match fault {
        Fault::NamesUpTo252 => too_long(|body| name(body).len() > 252),
        Fault::AppNamesUpTo63 => rejecting(|request| {
            let too_long = request.target().group == "apps"
                && request.json().is_some_and(|body| name(&body).len() > 63);
            too_long.then(cause)
        }),
        Fault::NamespacesUpTo62 => rejecting(|request| {
            let too_long = request.target().is_core("namespaces")
                && request.json().is_some_and(|body| name(&body).len() > 62);
            too_long.then(cause)
        }),
        Fault::PortNamesUpTo14 => too_long(|body| {
            let containers = body["spec"]["containers"].as_array().into_iter().flatten();
            let mut ports =
                containers.flat_map(|one| one["ports"].as_array().into_iter().flatten());
            ports.any(|port| port["name"].as_str().is_some_and(|name| name.len() > 14))
        }),
        Fault::ContainerNamesUpTo62 => too_long(|body| named(body, "containers", 62)),
        Fault::VolumeNamesUpTo62 => too_long(|body| named(body, "volumes", 62)),
        Fault::CronJobNamesUpTo51 => {
            too_long(|body| body["kind"] == "CronJob" && name(body).len() > 51)
        }
        Fault::NetworkNamesUpTo63 => rejecting(|request| {
            let too_long = request.target().group == "networking.k8s.io"
                && request.json().is_some_and(|body| name(&body).len() > 63);
            too_long.then(cause)
        }),
        Fault::CustomNamesUpTo63 => rejecting(|request| {
            let too_long = request.target().group.contains("kubeproof")
                && request.json().is_some_and(|body| name(&body).len() > 63);
            too_long.then(cause)
        }),
        Fault::ServiceNamesUpTo62 => {
            too_long(|body| body["kind"] == "Service" && name(body).len() > 62)
        }
        _ => return None,
    })
}

/// Faults that reject valid lengths of values and of keys.
fn values_too_low(fault: Fault) -> Option<Box<dyn Middleware>> {
    Some(match fault {
        Fault::LabelValuesUpTo62 => {
            too_long(|body| texts(&body["metadata"]["labels"], |_, value| value.len() > 62))
        }
        Fault::LabelNamesUpTo62 => too_long(|body| {
            texts(&body["metadata"]["labels"], |key, _| {
                key.rsplit('/').next().is_some_and(|name| name.len() > 62)
            })
        }),
        Fault::LabelPrefixesUpTo63 => too_long(|body| {
            texts(&body["metadata"]["labels"], |key, _| {
                key.split_once('/').is_some_and(|(prefix, _)| prefix.len() > 63)
            })
        }),
        Fault::AnnotationsUpTo256000 => too_long(|body| annotations(body) > 256_000),
        Fault::DataUpToMegabyte => too_long(|body| {
            let values = body["data"].as_object().into_iter().flat_map(Map::values);
            values.filter_map(Value::as_str).map(str::len).sum::<usize>() > 1_000_000
        }),
        Fault::PortsUpTo65534 => too_long(|body| body["spec"].to_string().contains("ort\":65535")),
        Fault::ConfigMapKeysUpTo252 => too_long(|body| {
            body["kind"] == "ConfigMap" && texts(&body["data"], |key, _| key.len() > 252)
        }),
        Fault::AnnotationNamesUpTo62 => too_long(|body| {
            texts(&body["metadata"]["annotations"], |key, _| {
                key.rsplit('/').next().is_some_and(|name| name.len() > 62)
            })
        }),
        Fault::SecretKeysUpTo252 => too_long(|body| {
            body["kind"] == "Secret" && texts(&body["data"], |key, _| key.len() > 252)
        }),
        Fault::FinalizerNamesUpTo62 => too_long(|body| {
            let finalizers = body["metadata"]["finalizers"].as_array().into_iter().flatten();
            let mut names = finalizers.filter_map(|one| one.as_str()?.rsplit('/').next());
            names.any(|name| name.len() > 62)
        }),
        Fault::ManagersUpTo127 => rejecting(|request| {
            let query = request.query();
            query.get("fieldManager").is_some_and(|name| name.len() > 127).then(cause)
        }),
        _ => return None,
    })
}

/// Faults that accept invalid lengths.
fn too_high(fault: Fault) -> Option<Box<dyn Middleware>> {
    Some(match fault {
        Fault::LabelValuesOf64 => ignoring(|request, cause| {
            is_metadata(cause)
                && body(request).is_some_and(|body| {
                    texts(&body["metadata"]["labels"], |_, value| value.len() == 64)
                })
        }),
        Fault::LabelPrefixesOf254 => ignoring(|request, cause| {
            is_metadata(cause)
                && body(request).is_some_and(|body| {
                    texts(&body["metadata"]["labels"], |key, _| {
                        key.split_once('/').is_some_and(|(prefix, _)| prefix.len() == 254)
                    })
                })
        }),
        Fault::AnnotationsUnlimited => ignoring(|_, cause| message(cause).contains("262144")),
        Fault::NewAnnotationsUnlimited => ignoring(|request, cause| {
            request.method == Method::POST && message(cause).contains("262144")
        }),
        Fault::DataUnlimited => ignoring(|request, cause| {
            message(cause).contains("1048576") && request.body.len() > 1024 * 1024
        }),
        Fault::PortNamesOf16 => ignoring(|_, cause| {
            cause["field"].as_str().is_some_and(|field| field.contains("ports["))
                && message(cause).contains("15 bytes")
        }),
        _ => return None,
    })
}

/// Rejects bodies that are too long.
fn too_long(is_too_long: fn(&Value) -> bool) -> Box<dyn Middleware> {
    around(move |request, next| {
        Box::pin(async move {
            if body(&request).is_some_and(|body| is_too_long(&body)) {
                return rejection(&cause());
            }
            next.send(request).await
        })
    })
}

fn cause() -> Value {
    json!({
        "reason": "FieldValueTooLong", "field": "metadata", "message": "Too long",
    })
}

/// The body of a write.
fn body(request: &Request) -> Option<Value> {
    if request.target().is_resource() { request.json() } else { None }
}

fn name(body: &Value) -> &str {
    body["metadata"]["name"].as_str().unwrap_or_default()
}

fn is_metadata(cause: &Value) -> bool {
    cause["field"].as_str().is_some_and(|field| field.starts_with("metadata."))
}

/// Returns whether a pod has a part with a name of more characters.
fn named(body: &Value, parts: &str, most: usize) -> bool {
    let spec = body.pointer("/spec/template/spec").unwrap_or(&body["spec"]);
    let mut parts = spec[parts].as_array().into_iter().flatten();
    parts.any(|part| part["name"].as_str().is_some_and(|name| name.len() > most))
}

/// Returns whether a key and value of a map are found.
fn texts(map: &Value, found: fn(&str, &str) -> bool) -> bool {
    let mut entries = map.as_object().into_iter().flatten();
    entries.any(|(key, value)| found(key, value.as_str().unwrap_or_default()))
}

/// The size of all annotations.
fn annotations(body: &Value) -> usize {
    let annotations = body["metadata"]["annotations"].as_object().into_iter().flatten();
    annotations.map(|(key, value)| key.len() + value.as_str().map_or(0, str::len)).sum()
}
