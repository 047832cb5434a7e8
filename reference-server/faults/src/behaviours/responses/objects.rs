//! How objects look in responses: type, metadata and encoding.

use http::header::{self, HeaderValue};
use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::behaviours::Fault;
use crate::behaviours::support::objects::{everywhere, is_deleting, meta, remove, remove_meta};
use crate::behaviours::support::requests::{is_get, rewrite};
use crate::document::PROTOBUF;
use crate::exchange::{Request, Response};
use crate::middleware::{
    Middleware, Next, around, documents, edit_objects, objects, requests, responses, uncompressed,
};

const PARTIAL: &str = "PartialObjectMetadata";

/// The middleware of a fault of this file.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    types(fault).or_else(|| metadata(fault)).or_else(|| encodings(fault))
}

/// Faults in kind and apiVersion.
fn types(fault: Fault) -> Option<Box<dyn Middleware>> {
    Some(match fault {
        Fault::MetadataListsWithoutListKind => documents(|_, document| {
            if document["kind"] == "PartialObjectMetadataList" {
                document["kind"] = PARTIAL.into();
            }
        }),
        Fault::ResponsesWithoutKind => shown(|_, object| {
            if object["kind"] != PARTIAL {
                remove(object, "kind");
                remove(object, "apiVersion");
            }
        }),
        Fault::ApiVersionWithoutGroup => shown(|_, object| {
            if let (true, Some(version)) =
                (object["kind"] != PARTIAL, object["apiVersion"].as_str())
            {
                object["apiVersion"] = version.rsplit('/').next().unwrap_or_default().into();
            }
        }),
        _ => return None,
    })
}

/// Faults in metadata, and in the keys of specs.
fn metadata(fault: Fault) -> Option<Box<dyn Middleware>> {
    Some(match fault {
        Fault::NamespaceNotStated => shown(|_, object| {
            remove_meta(object, "namespace");
        }),
        Fault::ClusterScopedInDefault => shown(|request, object| {
            if request.target().namespace.is_empty()
                && !meta(object, "name").is_empty()
                && meta(object, "namespace").is_empty()
            {
                object["metadata"]["namespace"] = json!("default");
            }
        }),
        Fault::DottedKeysRenamed => shown(|_, object| {
            if let Some(spec) = object.get_mut("spec") {
                everywhere(spec, &mut rename_dotted_keys);
            }
        }),
        Fault::MetadataMisnamed => config_maps(|object| {
            if let Some(metadata) = remove(object, "metadata") {
                object["meta"] = metadata;
            }
        }),
        Fault::NoUid => shown(|_, object| drop(remove_meta(object, "uid"))),
        Fault::UidMissing => config_maps(|object| drop(remove_meta(object, "uid"))),
        Fault::VersionMissing => config_maps(|object| drop(remove_meta(object, "resourceVersion"))),
        Fault::VersionIsGeneration => shown(|request, object| {
            if let (false, Some(generation)) =
                (request.is_watch(), object["metadata"]["generation"].as_i64())
            {
                object["metadata"]["resourceVersion"] = generation.to_string().into();
            }
        }),
        Fault::PartialMetadataWithoutDeletion => shown(|_, object| {
            if object["kind"] == PARTIAL {
                remove_meta(object, "deletionTimestamp");
            }
        }),
        Fault::GenerationStartsAtZero => {
            around(|request, next| Box::pin(generations_from_zero(request, next)))
        }
        Fault::CreationTimeLocal => around(|request, next| Box::pin(local_times(request, next))),
        Fault::TerminatingNamespaceIsActive => shown(|request, object| {
            if request.target().is_core("namespaces")
                && is_deleting(object)
                && object["kind"] != PARTIAL
            {
                object["status"]["phase"] = json!("Active");
            }
        }),
        _ => return None,
    })
}

/// Faults in status codes, encodings and representations.
fn encodings(fault: Fault) -> Option<Box<dyn Middleware>> {
    Some(match fault {
        Fault::ReadsReturnNonAuthoritative => responses(|request, response| {
            if is_get(request) && response.status == StatusCode::OK {
                response.status = StatusCode::NON_AUTHORITATIVE_INFORMATION;
            }
        }),
        Fault::ReadsAreCacheable => responses(|request, response| {
            if request.method == Method::GET && response.status == StatusCode::OK {
                response.set_header(header::CACHE_CONTROL, "public, max-age=60");
            }
        }),
        Fault::StatusReturnsItsPart => responses(|request, response| {
            if is_get(request) && request.target().subresource == "status" {
                response.edit_value(|object| drop(remove(object, "spec")));
            }
        }),
        Fault::ProtobufWithoutEnvelope => around(|mut request, next| {
            Box::pin(async move {
                let protobuf = is_get(&request) && request.header("accept").contains("protobuf");
                if !protobuf {
                    return next.send(request).await;
                }
                request
                    .headers
                    .insert(header::ACCEPT, HeaderValue::from_static("application/json"));
                let mut response = next.send(request).await;
                if response.status == StatusCode::OK {
                    response.set_header(header::CONTENT_TYPE, PROTOBUF);
                }
                response
            })
        }),
        Fault::ProtobufBodyLosesData => responses(|request, response| {
            if request.method == Method::POST && request.media_type() == PROTOBUF {
                response.edit_value(|object| drop(remove(object, "data")));
            }
        }),
        Fault::ProtobufEnvelopeWithoutKind => responses(|_, response| {
            // The magic prefix, and the first field with its length: apiVersion and kind.
            if let [b'k', b'8', b's', 0, 0x0a, length, rest @ ..] = response.bytes()
                && let Some(rest) = rest.get(usize::from(*length)..)
            {
                let unnamed = [b"k8s\0\x0a\0".as_slice(), rest].concat();
                response.set_bytes(unnamed);
            }
        }),
        Fault::OnlyFirstAcceptEntry => requests(|request| {
            let first = request.header("accept").split(',').next().unwrap_or_default();
            if let Ok(first) = HeaderValue::from_str(first) {
                request.headers.insert(header::ACCEPT, first);
            }
        }),
        Fault::PartialMetadataIsWhole => {
            around(|request, next| Box::pin(whole_partials(request, next)))
        }
        _ => return None,
    })
}

fn rename_dotted_keys(value: &mut Value) {
    if let Value::Object(fields) = value {
        let renamed = std::mem::take(fields).into_iter();
        *fields = renamed.map(|(name, value)| (name.replace('.', "_"), value)).collect();
    }
}

/// Edits every object of a resource that a client sees.
fn shown(edit: impl Fn(&Request, &mut Value) + Send + Sync + 'static) -> Box<dyn Middleware> {
    objects(move |request, object| {
        if request.target().is_resource() {
            edit(request, object);
        }
    })
}

fn config_maps(edit: impl Fn(&mut Value) + Send + Sync + 'static) -> Box<dyn Middleware> {
    shown(move |request, object| {
        if request.target().is_core("configmaps") {
            edit(object);
        }
    })
}

/// Counts generations from 0 in responses, and from 1 in requests.
async fn generations_from_zero(mut request: Request, next: Next<'_>) -> Response {
    uncompressed(&mut request);
    rewrite(&mut request, |object| {
        shift(object, "/metadata/generation", 1);
        shift(object, "/status/observedGeneration", 1);
    });
    let mut response = next.send(request.clone()).await;
    edit_objects(&request, &mut response, |object| {
        shift(object, "/metadata/generation", -1);
        shift(object, "/status/observedGeneration", -1);
    });
    response
}

fn shift(object: &mut Value, pointer: &str, by: i64) {
    if let Some(value) = object.pointer_mut(pointer)
        && let Some(number) = value.as_i64()
    {
        *value = (number + by).max(0).into();
    }
}

/// Writes creation times without time zone in responses, and accepts them in requests.
async fn local_times(mut request: Request, next: Next<'_>) -> Response {
    uncompressed(&mut request);
    rewrite(&mut request, |object| {
        let time = meta(object, "creationTimestamp");
        if time.contains(' ') {
            object["metadata"]["creationTimestamp"] = format!("{}Z", time.replace(' ', "T")).into();
        }
    });
    let mut response = next.send(request.clone()).await;
    edit_objects(&request, &mut response, |object| {
        let time = meta(object, "creationTimestamp");
        if !time.is_empty() {
            let local = time.replace('T', " ").replace('Z', "");
            object["metadata"]["creationTimestamp"] = local.into();
        }
    });
    response
}

/// Adds the fields of the whole objects to partial ones.
async fn whole_partials(mut request: Request, next: Next<'_>) -> Response {
    let partial = request.method == Method::GET && !request.is_watch();
    if !partial || !request.header("accept").contains(PARTIAL) {
        return next.send(request).await;
    }
    uncompressed(&mut request);
    let mut response = next.send(request.clone()).await;
    request.headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
    let Some(mut whole) = next.send(request).await.value() else { return response };
    response.edit_value(|shown| {
        if shown["kind"] == PARTIAL {
            add_fields(shown, &whole);
        } else if shown["kind"] == "PartialObjectMetadataList" {
            let objects = whole["items"].as_array_mut().map(std::mem::take).unwrap_or_default();
            for item in shown["items"].as_array_mut().into_iter().flatten() {
                let same = |object: &&Value| meta(object, "uid") == meta(item, "uid");
                if let Some(object) = objects.iter().find(same) {
                    add_fields(item, object);
                }
            }
        }
    });
    response
}

fn add_fields(shown: &mut Value, whole: &Value) {
    for (name, field) in whole.as_object().into_iter().flatten() {
        if name != "kind" && name != "apiVersion" {
            shown[name.as_str()] = field.clone();
        }
    }
}
