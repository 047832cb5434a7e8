//! Server-side apply with wrong merges.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use http::{Method, StatusCode};
use serde_json::Value;

use crate::behaviours::Fault;
use crate::behaviours::support::requests::{MERGE_PATCH, is_apply};
use crate::middleware::{Middleware, around};
use crate::patch;

/// The middleware of a fault of this file. Each turns an apply into other requests.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    Some(match fault {
        Fault::ApplyReplaces => replaces(|config, current| {
            let mut object = config.clone();
            object["metadata"] = current["metadata"].clone();
            patch::overlay(&mut object["metadata"], &config["metadata"]);
            object
        }),
        Fault::ApplyReplacesListMaps => then_merges(|_, value| {
            value.as_array().is_some_and(|items| items.iter().any(Value::is_object))
        }),
        Fault::ApplyReplacesSets => then_merges(|name, value| {
            let scalars =
                value.as_array().is_some_and(|items| items.iter().all(|i| !i.is_object()));
            scalars && name != "command" && name != "args"
        }),
        Fault::ApplyMergesAtomicLists => merges_atomic_lists(),
        Fault::ApplyKeepsGivenUp => keeps_given_up(),
        Fault::ApplyKeepsDroppedItems => keeps_dropped_items(),
        Fault::ApplyRemovesShared => removes_shared(),
        Fault::ApplyForceShares => force_shares(),
        Fault::ApplyDropsVersions => forgets_versions(),
        _ => return None,
    })
}

/// Writes a whole object in place of each apply to an existing object.
fn replaces(compute: fn(&Value, &Value) -> Value) -> Box<dyn Middleware> {
    around(move |request, next| {
        Box::pin(async move {
            if is_apply(&request)
                && let Some(config) = request.json()
                && let Some(current) = next.server.read(&request.path).await
            {
                let mut put = request.clone();
                put.method = Method::PUT;
                put.edit_query(|query| {
                    query.remove("force");
                });
                let put = put.with_json("application/json", &compute(&config, &current));
                return next.send(put).await;
            }
            next.send(request).await
        })
    })
}

/// Applies, and then writes the lists of the configuration over those of the object.
fn then_merges(replaced: fn(&str, &Value) -> bool) -> Box<dyn Middleware> {
    around(move |request, next| {
        Box::pin(async move {
            let response = next.send(request.clone()).await;
            if !is_apply(&request) || response.status != StatusCode::OK || request.is_dry_run() {
                return response;
            }
            let config = request.json().unwrap_or_default();
            let Some(patch) = only(&config, "", replaced) else { return response };
            let mut merge = request.by_same_client(Method::PATCH, &request.path);
            if let Some(manager) = request.query().get("fieldManager") {
                merge.edit_query(|query| query.set("fieldManager", manager));
            }
            next.send(merge.with_json(MERGE_PATCH, &patch)).await
        })
    })
}

/// The parts of a configuration that satisfy a condition.
fn only(config: &Value, name: &str, wanted: fn(&str, &Value) -> bool) -> Option<Value> {
    if wanted(name, config) {
        return Some(config.clone());
    }
    let fields = config.as_object()?.iter();
    let kept = fields.filter_map(|(name, value)| Some((name.clone(), only(value, name, wanted)?)));
    let kept: serde_json::Map<String, Value> = kept.collect();
    (!kept.is_empty()).then_some(Value::Object(kept))
}

/// Adds the items of the object to the scalar lists of each configuration.
fn merges_atomic_lists() -> Box<dyn Middleware> {
    around(|mut request, next| {
        Box::pin(async move {
            if is_apply(&request)
                && let Some(current) = next.server.read(&request.path).await
            {
                request.edit_json(|config| join(config, &current));
                request.edit_query(|query| query.set("force", "true"));
            }
            next.send(request).await
        })
    })
}

fn join(config: &mut Value, current: &Value) {
    match (config, current) {
        (Value::Object(fields), Value::Object(present)) => {
            for (name, field) in fields {
                if let Some(present) = present.get(name) {
                    join(field, present);
                }
            }
        }
        (Value::Array(items), Value::Array(present)) if !present.iter().any(Value::is_object) => {
            let missing = present.iter().filter(|item| !items.contains(item)).cloned();
            let joined: Vec<Value> = missing.collect();
            items.splice(0..0, joined);
        }
        _ => {}
    }
}

/// Writes the fields that an apply dropped back into the object.
fn keeps_given_up() -> Box<dyn Middleware> {
    around(|request, next| {
        Box::pin(async move {
            let before =
                if is_apply(&request) { next.server.read(&request.path).await } else { None };
            let response = next.send(request.clone()).await;
            let (Some(before), Some(after)) = (before, response.value()) else { return response };
            if response.status != StatusCode::OK || request.is_dry_run() {
                return response;
            }
            let Some(lost) = missing(&before, &after) else { return response };
            next.send(
                request.by_same_client(Method::PATCH, &request.path).with_json(MERGE_PATCH, &lost),
            )
            .await
        })
    })
}

/// Writes the environment variables of containers that an apply dropped back into the object.
fn keeps_dropped_items() -> Box<dyn Middleware> {
    around(|request, next| {
        Box::pin(async move {
            let before =
                if is_apply(&request) { next.server.read(&request.path).await } else { None };
            let response = next.send(request.clone()).await;
            let Some(before) = before.filter(|_| response.status == StatusCode::OK) else {
                return response;
            };
            let mut after = response.value().unwrap_or_default();
            if request.is_dry_run() || !add_variables(&mut after, &before) {
                return response;
            }
            let patch = serde_json::json!({ "spec": { "template": after["spec"]["template"] } });
            let write = request.by_same_client(Method::PATCH, &request.path);
            next.send(write.with_json(MERGE_PATCH, &patch)).await
        })
    })
}

/// Adds the variables that containers had before. Returns whether there were any.
fn add_variables(after: &mut Value, before: &Value) -> bool {
    const CONTAINERS: &str = "/spec/template/spec/containers";
    let mut added = false;
    let containers = after.pointer_mut(CONTAINERS).and_then(Value::as_array_mut);
    let old = before.pointer(CONTAINERS).and_then(Value::as_array);
    let (Some(containers), Some(old)) = (containers, old) else { return false };
    for container in containers {
        let same = old.iter().find(|old| old["name"] == container["name"]);
        let variables = same.and_then(|same| same["env"].as_array());
        let Some(env) = container.get_mut("env").and_then(Value::as_array_mut) else { continue };
        for variable in variables.into_iter().flatten() {
            if !env.iter().any(|kept| kept["name"] == variable["name"]) {
                env.push(variable.clone());
                added = true;
            }
        }
    }
    added
}

/// The members of `before` that `after` lacks.
fn missing(before: &Value, after: &Value) -> Option<Value> {
    let mut lost = serde_json::Map::new();
    for (name, value) in before.as_object()? {
        let part = match after.get(name) {
            None => Some(value.clone()),
            Some(_) if name == "managedFields" => None,
            Some(after) => missing(value, after),
        };
        if let Some(part) = part {
            lost.insert(name.clone(), part);
        }
    }
    (!lost.is_empty()).then_some(Value::Object(lost))
}

/// Removes the fields that an applier dropped even if another manager owns them.
fn removes_shared() -> Box<dyn Middleware> {
    let applied: Arc<Mutex<HashMap<String, Value>>> = Arc::default();
    around(move |request, next| {
        let applied = applied.clone();
        Box::pin(async move {
            let response = next.send(request.clone()).await;
            if !is_apply(&request) || !response.status.is_success() || request.is_dry_run() {
                return response;
            }
            let manager = request.query().get("fieldManager").unwrap_or_default().to_owned();
            let config = request.json().unwrap_or_default();
            let key = format!("{manager} {}", request.path);
            let last = {
                let mut known = applied.lock().unwrap_or_else(PoisonError::into_inner);
                known.insert(key, config.clone())
            };
            let dropped = last.and_then(|last| missing(&last, &config));
            let Some(mut nulls) = dropped else { return response };
            nullify(&mut nulls);
            next.send(
                request.by_same_client(Method::PATCH, &request.path).with_json(MERGE_PATCH, &nulls),
            )
            .await
        })
    })
}

fn nullify(value: &mut Value) {
    match value {
        Value::Object(fields) => fields.values_mut().for_each(nullify),
        other => *other = Value::Null,
    }
}

/// After a forced apply the former owners still own the fields that they lost.
fn force_shares() -> Box<dyn Middleware> {
    around(|request, next| {
        Box::pin(async move {
            let forced =
                is_apply(&request) && request.query().flag("force") && !request.is_dry_run();
            let before = if forced { next.server.read(&request.path).await } else { None };
            let response = next.send(request.clone()).await;
            let (Some(before), Some(mut after)) = (before, response.value()) else {
                return response;
            };
            if response.status != StatusCode::OK {
                return response;
            }
            let own = request.query().get("fieldManager").unwrap_or_default().to_owned();
            let entries = |object: &Value, own_ones: bool| -> Vec<Value> {
                let entries = object["metadata"]["managedFields"].as_array().cloned();
                let is_own = |entry: &Value| entry["manager"] == own.as_str();
                entries.unwrap_or_default().into_iter().filter(|e| is_own(e) == own_ones).collect()
            };
            let mut owners = entries(&before, false);
            owners.extend(entries(&after, true));
            after["metadata"]["managedFields"] = owners.into();
            let put = request.by_same_client(Method::PUT, &request.path);
            next.send(put.with_json("application/json", &after)).await
        })
    })
}

/// Forces each apply whose conflicts are all with managers that wrote through another version.
fn forgets_versions() -> Box<dyn Middleware> {
    around(|request, next| {
        Box::pin(async move {
            let response = next.send(request.clone()).await;
            if !is_apply(&request) || response.status != StatusCode::CONFLICT {
                return response;
            }
            let version = request.target().api_version();
            let Some(current) = next.server.read(&request.path).await else { return response };
            let entries = current["metadata"]["managedFields"].as_array().cloned();
            let managers: Vec<String> = entries
                .into_iter()
                .flatten()
                .filter(|entry| entry["apiVersion"] == version.as_str())
                .filter_map(|entry| Some(format!("\"{}\"", entry["manager"].as_str()?)))
                .collect();
            let status = response.value().unwrap_or_default();
            let causes = status.pointer("/details/causes").and_then(Value::as_array);
            let with_this_version = causes.into_iter().flatten().any(|cause| {
                let message = cause["message"].as_str().unwrap_or_default();
                managers.iter().any(|manager| message.contains(manager))
            });
            if with_this_version {
                return response;
            }
            let mut forced = request;
            forced.edit_query(|query| query.set("force", "true"));
            next.send(forced).await
        })
    })
}
