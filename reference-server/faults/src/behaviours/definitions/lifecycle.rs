//! Definitions that are deleted, whose names conflict, or that stop to serve a version.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::edits::definitions;
use crate::behaviours::Fault;
use crate::behaviours::support::failures::failure;
use crate::behaviours::support::objects::{is_deleting, meta, random_uuid, remove};
use crate::behaviours::support::requests::is_create;
use crate::exchange::{Request, Response};
use crate::middleware::{Middleware, Next, around, objects, responses, uncompressed};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/";

/// The middleware of a fault of this file.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    Some(match fault {
        Fault::CreatesWhileDefinitionTerminates => responses(accept_late_creates),
        Fault::DeletedDefinitionsHideObjects => {
            around(|request, next| Box::pin(unless_definition_is_deleted(request, next)))
        }
        Fault::DeletedDefinitionsKeepObjects => keeping_objects(),
        Fault::DefinitionNamesNeverConflict => objects(|_, object| set_conditions(object, "True")),
        Fault::FreedNamesStayTaken => {
            let conflicts: Mutex<HashSet<String>> = Mutex::default();
            objects(move |_, object| {
                let uid = meta(object, "uid").to_owned();
                let mut conflicts = conflicts.lock().unwrap_or_else(PoisonError::into_inner);
                if has_conflict(object) {
                    conflicts.insert(uid);
                } else if conflicts.contains(&uid) {
                    set_conditions(object, "False");
                }
            })
        }
        Fault::LimitsOfNamesIgnored => each_version(|version| {
            if let Some(properties) = version.pointer_mut("/schema/openAPIV3Schema/properties") {
                remove(properties, "metadata");
            }
        }),
        Fault::UnservedVersionsStay => each_version(|version| version["served"] = json!(true)),
        Fault::ChangedDefinitionsKeepTheirForm => {
            each_changed_version(|version| drop(remove(version, "subresources")))
        }
        Fault::RemovedFieldsStillRead => each_changed_version(|version| {
            if let Some(spec) = version.pointer_mut("/schema/openAPIV3Schema/properties/spec") {
                spec["x-kubernetes-preserve-unknown-fields"] = json!(true);
            }
        }),
        _ => return None,
    })
}

/// Shows the objects of each deleted definition in the lists of its resource.
fn keeping_objects() -> Box<dyn Middleware> {
    let kept: Arc<Mutex<HashMap<String, Vec<Value>>>> = Arc::default();
    around(move |mut request, next| {
        let kept = Arc::clone(&kept);
        Box::pin(async move {
            if request.method == Method::DELETE && request.path.starts_with(DEFINITIONS) {
                let definition = next.server.read(&request.path).await.unwrap_or_default();
                let list = collection_of(&definition);
                let objects = next.server.read(&list).await.unwrap_or_default();
                let objects = objects["items"].as_array().cloned().unwrap_or_default();
                kept.lock().unwrap_or_else(PoisonError::into_inner).insert(list, objects);
            }
            if request.verb() != "list" {
                return next.send(request).await;
            }
            uncompressed(&mut request);
            let path = request.path.clone();
            let mut response = next.send(request).await;
            let kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(objects) = kept.get(&path).filter(|_| response.status.is_success()) {
                response.edit_value(|list| {
                    if let Some(items) = list["items"].as_array_mut() {
                        items.extend(objects.iter().cloned());
                    }
                });
            }
            response
        })
    })
}

/// The path of all objects of a definition.
fn collection_of(definition: &Value) -> String {
    let spec = &definition["spec"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let version = text(&spec["versions"][0]["name"]);
    format!("/apis/{}/{version}/{}", text(&spec["group"]), text(&spec["names"]["plural"]))
}

/// Changes the versions of each definition on its way to the server.
fn each_version(edit: fn(&mut Value)) -> Box<dyn Middleware> {
    definitions(move |crd| {
        crd["spec"]["versions"].as_array_mut().into_iter().flatten().for_each(edit);
    })
}

/// Changes the versions of each definition that is not new. A new one has the generation 1.
fn each_changed_version(edit: fn(&mut Value)) -> Box<dyn Middleware> {
    definitions(move |crd| {
        if crd["metadata"]["generation"].as_i64().is_some_and(|generation| generation > 1) {
            crd["spec"]["versions"].as_array_mut().into_iter().flatten().for_each(edit);
        }
    })
}

/// Accepts a create that the server rejects because the definition is being deleted.
fn accept_late_creates(request: &Request, response: &mut Response) {
    let status = response.value().unwrap_or_default();
    let is_late = status["message"]
        .as_str()
        .is_some_and(|message| message.contains("custom resource definition is terminating"));
    if let Some(mut object) = request.json().filter(|_| is_late && is_create(request)) {
        object["metadata"]["uid"] = random_uuid().into();
        object["metadata"]["resourceVersion"] = "1".into();
        *response = Response::json(StatusCode::CREATED, &object);
    }
}

/// Returns 404 for the objects of a definition that is being deleted.
async fn unless_definition_is_deleted(request: Request, next: Next<'_>) -> Response {
    let target = request.target();
    let is_read = request.method == Method::GET && target.is_custom() && target.is_object();
    let path = format!("{DEFINITIONS}{}.{}", target.resource, target.group);
    if is_read && next.server.read(&path).await.is_some_and(|definition| is_deleting(&definition)) {
        return failure(StatusCode::NOT_FOUND, "NotFound", &target, &target.name);
    }
    next.send(request).await
}

fn conditions(object: &Value) -> impl Iterator<Item = &Value> {
    object["status"]["conditions"].as_array().into_iter().flatten()
}

fn has_conflict(definition: &Value) -> bool {
    conditions(definition).any(|one| one["type"] == "NamesAccepted" && one["status"] == "False")
}

/// Sets the status of both conditions of a definition.
fn set_conditions(object: &mut Value, status: &str) {
    if object["kind"] != "CustomResourceDefinition" {
        return;
    }
    for condition in object["status"]["conditions"].as_array_mut().into_iter().flatten() {
        if matches!(condition["type"].as_str(), Some("NamesAccepted" | "Established")) {
            condition["status"] = status.into();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conflict_is_found_and_hidden() {
        let condition = json!({ "type": "NamesAccepted", "status": "False" });
        let mut definition = json!({
            "kind": "CustomResourceDefinition", "status": { "conditions": [condition] },
        });
        assert!(has_conflict(&definition));
        set_conditions(&mut definition, "True");
        assert!(!has_conflict(&definition));
    }
}
