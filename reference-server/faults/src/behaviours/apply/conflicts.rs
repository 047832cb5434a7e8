//! Server-side apply that ignores the owners of some fields.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use http::Method;
use serde_json::{Value, json};

use crate::behaviours::Fault;
use crate::behaviours::support::objects::meta;
use crate::behaviours::support::requests::{is_apply, is_create, rewrite};
use crate::exchange::Request;
use crate::middleware::{Middleware, around, objects, requests, uncompressed};

/// The characters of a manager that are kept.
const LONGEST: usize = 64;

/// The middleware of a fault of this file.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    Some(match fault {
        Fault::CreatesOwnNothing => disowned(is_create),
        Fault::PutsOwnNothing => disowned(|request| request.method == Method::PUT),
        Fault::JsonPatchesOwnNothing => {
            disowned(|request| request.media_type() == "application/json-patch+json")
        }
        Fault::DryRunAppliesNeverConflict => forced(Request::is_dry_run),
        Fault::StatusAppliesNeverConflict => {
            forced(|request| request.target().subresource == "status")
        }
        Fault::EntriesOfOneManagerJoined => objects(|_, object| {
            let entries = object.pointer_mut("/metadata/managedFields");
            if let Some(entries) = entries.and_then(Value::as_array_mut) {
                join(entries);
            }
        }),
        Fault::AbsentManagedFieldsResetOwners => requests(|request| {
            if request.method == Method::PUT && request.target().is_object() {
                rewrite(request, |object| {
                    if object["metadata"].is_object() {
                        let metadata = &mut object["metadata"];
                        if metadata.get("managedFields").is_none() {
                            metadata["managedFields"] = json!([{}]);
                        }
                    }
                });
            }
        }),
        Fault::LongManagersCut => requests(|request| {
            let manager = request.query().get("fieldManager").unwrap_or_default().to_owned();
            if let Some((end, _)) = manager.char_indices().nth(LONGEST) {
                request.edit_query(|query| query.set("fieldManager", &manager[..end]));
            }
        }),
        _ => return None,
    })
}

/// Applies with force to objects that had one of these writes.
fn disowned(writes: fn(&Request) -> bool) -> Box<dyn Middleware> {
    let written: Arc<Mutex<HashSet<String>>> = Arc::default();
    around(move |mut request, next| {
        let written = written.clone();
        Box::pin(async move {
            uncompressed(&mut request);
            let target = request.target();
            let lock = || written.lock().unwrap_or_else(PoisonError::into_inner);
            if is_apply(&request) && lock().contains(&target.object(&target.name)) {
                force(&mut request);
            }
            let response = next.send(request.clone()).await;
            let stores = response.status.is_success() && !request.is_dry_run();
            if stores && writes(&request) && target.subresource.is_empty() {
                let object = response.value().unwrap_or_default();
                lock().insert(target.object(meta(&object, "name")));
            }
            response
        })
    })
}

/// Applies with force.
fn forced(applies: fn(&Request) -> bool) -> Box<dyn Middleware> {
    requests(move |request| {
        if is_apply(request) && applies(request) {
            force(request);
        }
    })
}

fn force(request: &mut Request) {
    request.edit_query(|query| query.set("force", "true"));
}

/// Adds the fields of the updates of each manager to those of its applies.
fn join(entries: &mut Vec<Value>) {
    let mut joined: Vec<Value> = Vec::new();
    for entry in entries.drain(..) {
        let same = joined.iter_mut().find(|other| {
            ["manager", "subresource"].iter().all(|member| other[member] == entry[member])
        });
        match same {
            Some(other) => merge(&mut other["fieldsV1"], &entry["fieldsV1"]),
            None => joined.push(entry),
        }
    }
    *entries = joined;
}

/// Adds the members of a set of fields to another set.
fn merge(fields: &mut Value, more: &Value) {
    for (name, below) in more.as_object().into_iter().flatten() {
        merge(&mut fields[name], below);
        if fields[name].is_null() {
            fields[name] = below.clone();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_of_one_manager_become_one() {
        let mut entries = vec![
            json!({ "manager": "a", "operation": "Apply", "fieldsV1": { "f:b": { "f:c": {} } } }),
            json!({ "manager": "d", "operation": "Update", "fieldsV1": { "f:e": {} } }),
            json!({ "manager": "a", "operation": "Update", "fieldsV1": { "f:b": { "f:f": {} } } }),
        ];
        join(&mut entries);
        assert_eq!(entries.len(), 2);
        assert_eq!(entries[0]["fieldsV1"], json!({ "f:b": { "f:c": {}, "f:f": {} } }));
        assert_eq!(entries[1]["manager"], "d");
    }
}
