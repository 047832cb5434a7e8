//! Values that are stored, dropped or shown otherwise than the client wrote them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use http::Method;
use serde_json::{Value, json};

use crate::behaviours::Fault;
use crate::behaviours::support::objects::{everywhere, remove};
use crate::behaviours::support::requests::{is_create, rewrite};
use crate::behaviours::support::served::schema_of;
use crate::middleware::{Middleware, around, edit_objects, objects, requests, uncompressed};
use crate::patch;

/// The middleware of a fault of this file.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    Some(match fault {
        Fault::MicroTimesCut => objects(|_, object| everywhere(object, &mut cut)),
        Fault::UnknownFieldsKept => {
            overlay(|sent, stored| Edits { set: lost(sent, stored, "", 0), ..Edits::default() })
        }
        Fault::PruningTopLevelOnly => overlay(|sent, stored| Edits {
            set: lost(sent, stored, "", 0)
                .into_iter()
                .filter(|(at, _)| at.matches('/').count() > 1)
                .collect(),
            ..Edits::default()
        }),
        Fault::NullsKept => overlay(|sent, _| Edits { set: nulls(sent, ""), ..Edits::default() }),
        Fault::DefaultsNotApplied => overlay(|sent, stored| Edits {
            hide: match (sent.get("spec"), stored.get("spec")) {
                (Some(sent), Some(stored)) => gained(sent, stored, "/spec"),
                _ => Vec::new(),
            },
            ..Edits::default()
        }),
        Fault::WholeNumbersWithFraction => {
            overlay(|sent, stored| Edits { set: floats(sent, stored, ""), ..Edits::default() })
        }
        Fault::DefaultsOverrideValues => defaults_win(),
        Fault::IntOrStringAsText => numbers_as_text(),
        Fault::OtherOwnersForgotten => owners_of_creates(|owners| {
            if owners.iter().any(|owner| owner["controller"] == true) {
                owners.retain(|owner| owner["controller"] == true);
            }
        }),
        Fault::BlockingOwnersForgotten => owners_of_creates(|owners| {
            for owner in owners {
                remove(owner, "blockOwnerDeletion");
            }
        }),
        _ => return None,
    })
}

/// Edits the owner references in the bodies of creates.
fn owners_of_creates(edit: fn(&mut Vec<Value>)) -> Box<dyn Middleware> {
    requests(move |request| {
        if is_create(request) {
            rewrite(request, |object| {
                let owners = object.pointer_mut("/metadata/ownerReferences");
                if let Some(owners) = owners.and_then(Value::as_array_mut) {
                    edit(owners);
                }
            });
        }
    })
}

/// The differences between an object and the form that clients see.
#[derive(Clone, Default)]
struct Edits {
    set: Vec<(String, Value)>,
    hide: Vec<String>,
}

/// Shows each object with edits that follow from what was sent and what was stored, until the next
/// write.
fn overlay(edits: fn(&Value, &Value) -> Edits) -> Box<dyn Middleware> {
    let known: Arc<Mutex<HashMap<String, Edits>>> = Arc::default();
    around(move |mut request, next| {
        let known = known.clone();
        Box::pin(async move {
            uncompressed(&mut request);
            let mut response = next.send(request.clone()).await;
            let writes = matches!(request.method, Method::POST | Method::PUT | Method::PATCH);
            if writes
                && response.status.is_success()
                && let (Some(sent), Some(stored)) = (request.json(), response.value())
                && let Some(uid) = stored["metadata"]["uid"].as_str()
            {
                let edits = edits(&sent, &stored);
                known.lock().unwrap_or_else(PoisonError::into_inner).insert(uid.to_owned(), edits);
            }
            edit_objects(&request, &mut response, move |object| {
                let known = known.lock().unwrap_or_else(PoisonError::into_inner);
                let uid = object["metadata"]["uid"].as_str().unwrap_or_default();
                let Some(edits) = known.get(uid).cloned() else { return };
                edits.set.into_iter().for_each(|(pointer, value)| set(object, &pointer, value));
                edits.hide.iter().for_each(|pointer| patch::set(object, pointer, None));
            });
            response
        })
    })
}

/// Returns the sent values that the server did not store, with their pointers.
fn lost(sent: &Value, stored: &Value, at: &str, depth: usize) -> Vec<(String, Value)> {
    let mut found = Vec::new();
    for (name, value, pointer) in members(sent, at) {
        if depth == 0 && name == "metadata" {
            continue;
        }
        match member(stored, &name) {
            Some(stored) => found.extend(lost(value, stored, &pointer, depth + 1)),
            None if !value.is_null() => found.push((pointer, value.clone())),
            None => {}
        }
    }
    found
}

/// Returns the pointers of values that the server added to a sent object.
fn gained(sent: &Value, stored: &Value, at: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (name, value, pointer) in members(stored, at) {
        match member(sent, &name) {
            Some(sent) => found.extend(gained(sent, value, &pointer)),
            None => found.push(pointer),
        }
    }
    found
}

fn nulls(sent: &Value, at: &str) -> Vec<(String, Value)> {
    let inner = members(sent, at);
    inner
        .into_iter()
        .flat_map(|(_, value, pointer)| match value {
            Value::Null => vec![(pointer, Value::Null)],
            value => nulls(value, &pointer),
        })
        .collect()
}

/// Whole numbers that were sent in another notation and are stored as integers.
fn floats(sent: &Value, stored: &Value, at: &str) -> Vec<(String, Value)> {
    let mut found = Vec::new();
    for (name, value, pointer) in members(sent, at) {
        match member(stored, &name) {
            Some(stored) if value.is_f64() && stored.is_i64() => {
                found.push((pointer, json!(stored.as_f64())));
            }
            Some(stored) => found.extend(floats(value, stored, &pointer)),
            None => {}
        }
    }
    found
}

/// The members of an object or list, with their names and pointers.
fn members<'a>(value: &'a Value, at: &str) -> Vec<(String, &'a Value, String)> {
    let pointer = |name: &str| format!("{at}/{}", name.replace('~', "~0").replace('/', "~1"));
    match value {
        Value::Object(fields) => {
            fields.iter().map(|(name, value)| (name.clone(), value, pointer(name))).collect()
        }
        Value::Array(items) => items
            .iter()
            .enumerate()
            .map(|(index, value)| (index.to_string(), value, pointer(&index.to_string())))
            .collect(),
        _ => Vec::new(),
    }
}

fn member<'a>(value: &'a Value, name: &str) -> Option<&'a Value> {
    match value {
        Value::Object(fields) => fields.get(name),
        Value::Array(items) => items.get(name.parse::<usize>().ok()?),
        _ => None,
    }
}

fn set(object: &mut Value, pointer: &str, value: Value) {
    let Some((parent, name)) = pointer.rsplit_once('/') else { return };
    let name = name.replace("~1", "/").replace("~0", "~");
    match object.pointer_mut(parent) {
        Some(Value::Object(fields)) => drop(fields.insert(name, value)),
        Some(Value::Array(items)) => {
            if let Some(item) = name.parse::<usize>().ok().and_then(|index| items.get_mut(index)) {
                *item = value;
            }
        }
        _ => {}
    }
}

/// Leaves out the values of new objects for which the server has a default.
fn defaults_win() -> Box<dyn Middleware> {
    around(|mut request, next| {
        Box::pin(async move {
            let body = if request.method == Method::POST { request.json() } else { None };
            let Some(spec) = body.as_ref().and_then(|body| body["spec"].as_object().cloned())
            else {
                return next.send(request).await;
            };
            for field in spec.keys() {
                let mut without = request.clone();
                without.edit_query(|query| query.set("dryRun", "All"));
                without.edit_json(|body| patch::set(body, &format!("/spec/{field}"), None));
                let tried = next.send(without).await;
                let has_default = tried.status.is_success()
                    && tried.value().is_some_and(|object| object["spec"].get(field).is_some());
                if has_default {
                    request.edit_json(|body| patch::set(body, &format!("/spec/{field}"), None));
                }
            }
            next.send(request).await
        })
    })
}

/// Turns numbers in fields that take an integer or a string into strings.
fn numbers_as_text() -> Box<dyn Middleware> {
    around(|mut request, next| {
        Box::pin(async move {
            let writes = matches!(request.method, Method::POST | Method::PUT | Method::PATCH);
            if writes
                && request.target().is_custom()
                && let Some(schema) = schema_of(&request, next).await
            {
                request.edit_json(|body| as_text(body, &schema));
            }
            next.send(request).await
        })
    })
}

fn as_text(value: &mut Value, schema: &Value) {
    if schema["x-kubernetes-int-or-string"] == true && value.is_number() {
        *value = value.to_string().into();
        return;
    }
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                let schema =
                    schema["properties"].get(name).unwrap_or(&schema["additionalProperties"]);
                as_text(field, schema);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| as_text(item, &schema["items"])),
        _ => {}
    }
}

/// Cuts the fraction of a time such as `2024-05-06T07:08:09.123456Z`.
fn cut(value: &mut Value) {
    let Some(text) = value.as_str() else { return };
    if let Some((whole, fraction)) = text.split_once('.')
        && whole.len() == 19
        && whole.as_bytes()[10] == b'T'
        && fraction.len() == 7
        && fraction.ends_with('Z')
    {
        *value = format!("{whole}.000000Z").into();
    }
}
