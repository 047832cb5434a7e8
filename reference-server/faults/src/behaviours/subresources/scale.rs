//! The scale subresource.

use http::Method;
use serde_json::Value;

use crate::behaviours::Fault;
use crate::behaviours::support::failures::unsupported_media_type;
use crate::behaviours::support::objects::{remove, remove_meta};
use crate::behaviours::support::requests::{STRATEGIC_PATCH, rewrite};
use crate::exchange::Request;
use crate::middleware::{Middleware, around, documents, requests, uncompressed};

/// The middleware of a fault of this file.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    Some(match fault {
        Fault::ScaleNotWritten => requests(|request| {
            if is_scale(request) && matches!(request.method, Method::PUT | Method::PATCH) {
                request.edit_query(|query| query.set("dryRun", "All"));
            }
        }),
        Fault::ScaleWithoutVersion => without("metadata", &["resourceVersion"]),
        Fault::ScaleWithoutUid => without("metadata", &["uid", "creationTimestamp"]),
        Fault::ScaleNamesNoNamespace => without("metadata", &["namespace"]),
        Fault::ScaleWithoutSelector => without("status", &["selector"]),
        Fault::ScaleStatusRepeatsSpec => documents(|request, document| {
            if is_scale(request)
                && let Some(replicas) = document.pointer("/spec/replicas").cloned()
            {
                document["status"]["replicas"] = replicas;
            }
        }),
        Fault::ScaleWritesReturnNoSelector => documents(|request, document| {
            if is_scale(request) && request.method != Method::GET {
                remove(&mut document["status"], "selector");
            }
        }),
        Fault::DeploymentScaleRepeatsSpec => documents(|request, document| {
            if is_scale(request)
                && !request.target().is_custom()
                && let Some(replicas) = document.pointer("/spec/replicas").cloned()
            {
                document["status"]["replicas"] = replicas;
            }
        }),
        Fault::ScaleVersionOfItsOwn => around(|mut request, next| {
            Box::pin(async move {
                if !is_scale(&request) {
                    return next.send(request).await;
                }
                uncompressed(&mut request);
                request.edit_json(remove_version);
                let mut response = next.send(request.clone()).await;
                let target = request.target();
                let object = next.server.read(&target.object(&target.name)).await;
                if let Some(object) = object.filter(|_| response.status.is_success()) {
                    response.edit_value(|scale| {
                        let generation =
                            object["metadata"]["generation"].as_i64().unwrap_or_default();
                        scale["metadata"]["resourceVersion"] = generation.to_string().into();
                    });
                }
                response
            })
        }),
        _ => return checks(fault),
    })
}

/// Faults in the checks of what a client writes.
fn checks(fault: Fault) -> Option<Box<dyn Middleware>> {
    Some(match fault {
        Fault::ScaleOfAnotherUidAccepted => requests(|request| {
            if is_scale(request) && request.method == Method::PUT {
                request.edit_json(|scale| drop(remove_meta(scale, "uid")));
            }
        }),
        Fault::StaleScalePatchAccepted => requests(|request| {
            if is_scale(request) && request.method == Method::PATCH {
                request.edit_json(|patch| drop(remove_meta(patch, "resourceVersion")));
            }
        }),
        Fault::ScaleTestsIgnored => requests(|request| {
            if is_scale(request) && request.method == Method::PATCH {
                rewrite(request, |patch| {
                    if let Some(operations) = patch.as_array_mut() {
                        operations.retain(|operation| operation["op"] != "test");
                    }
                });
            }
        }),
        Fault::ScaleTakesNoStrategicPatch => around(|request, next| {
            Box::pin(async move {
                if is_scale(&request) && request.media_type() == STRATEGIC_PATCH {
                    return unsupported_media_type();
                }
                next.send(request).await
            })
        }),
        Fault::ScaleNameMismatchAccepted => requests(|request| {
            if is_scale(request) && request.method == Method::PUT {
                let name = request.target().name;
                request.edit_json(|scale| scale["metadata"]["name"] = name.into());
            }
        }),
        Fault::ScaleNegativeIsNone => requests(|request| {
            if is_scale(request) {
                request.edit_json(|scale| {
                    if scale["spec"]["replicas"].as_i64().is_some_and(|replicas| replicas < 0) {
                        scale["spec"]["replicas"] = 0.into();
                    }
                });
            }
        }),
        _ => return None,
    })
}

/// Removes fields of a part of each scale.
fn without(part: &'static str, fields: &'static [&'static str]) -> Box<dyn Middleware> {
    documents(move |request, document| {
        if is_scale(request)
            && let Some(part) = document[part].as_object_mut()
        {
            part.retain(|name, _| !fields.contains(&name.as_str()));
        }
    })
}

fn is_scale(request: &Request) -> bool {
    request.target().subresource == "scale"
}

fn remove_version(scale: &mut Value) {
    if let Some(metadata) = scale["metadata"].as_object_mut() {
        metadata.remove("resourceVersion");
    }
}
