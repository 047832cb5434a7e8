//! Objects that are read in another version than the one in which they were written.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use http::{Method, StatusCode};
use kubeproof_apimachinery::request::ResourceInfo;
use serde_json::Value;

use crate::behaviours::Fault;
use crate::behaviours::support::events::is_change;
use crate::behaviours::support::objects::{meta, remove, remove_meta, revision};
use crate::behaviours::support::requests::created;
use crate::exchange::{Request, Response};
use crate::middleware::{
    Middleware, Next, documents, edit_events, edit_objects, objects, responses, uncompressed,
};

/// The fields of an event of events.k8s.io that have another name in the core group.
const EVENT_FIELDS: [&str; 7] = [
    "regarding",
    "note",
    "reportingController",
    "deprecatedCount",
    "deprecatedSource",
    "deprecatedFirstTimestamp",
    "deprecatedLastTimestamp",
];

/// The middleware of a fault of this file.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    Some(match fault {
        Fault::ConversionDropsAnnotations => Writers::with(Mistake::DropsAnnotations),
        Fault::ConversionKeepsVersion => Writers::with(Mistake::KeepsVersion),
        Fault::WatchInStoredVersion => Writers::with(Mistake::KeepsVersionOfEvents),
        Fault::WatchIsForOneVersion => Writers::with(Mistake::DropsEvents),
        Fault::OldObjectsNotDefaulted => Box::new(NewDefaults::default()),
        Fault::FailedConversionsNotFound => responses(|request, response| {
            let target = request.target();
            let is_read = request.method == Method::GET && target.group.contains('.');
            if !is_read || response.status != StatusCode::INTERNAL_SERVER_ERROR {
                return;
            }
            response.status = StatusCode::NOT_FOUND;
            response.edit_value(|status| {
                status["reason"] = "NotFound".into();
                status["code"] = 404.into();
            });
        }),
        Fault::IncompleteConversionsAccepted => created(|request, definition| {
            if request.target().resource == "customresourcedefinitions" {
                drop_incomplete(&mut definition["spec"]);
            }
        }),
        Fault::ListsAcrossNamespacesInStoredVersion => objects(|request, object| {
            let target = request.target();
            let across = request.verb() == "list" && target.namespace.is_empty();
            if across && target.version == "v1beta1" && !meta(object, "namespace").is_empty() {
                object["apiVersion"] = format!("{}/v1", target.group).into();
            }
        }),
        Fault::EventFieldsUnconverted => objects(|request, event| {
            let target = request.target();
            if request.method == Method::GET && target.group == "events.k8s.io" {
                for field in EVENT_FIELDS {
                    remove(event, field);
                }
            }
        }),
        Fault::OldEventsUnlisted => documents(|request, list| {
            let target = request.target();
            if request.verb() == "list"
                && target.group == "events.k8s.io"
                && let Some(events) = list.get_mut("items").and_then(Value::as_array_mut)
            {
                events.retain(|event| event["eventTime"].is_string());
            }
        }),
        _ => return None,
    })
}

/// The treatment of an object that was written in another version.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mistake {
    DropsAnnotations,
    KeepsVersion,
    KeepsVersionOfEvents,
    DropsEvents,
}

/// Remembers the version in which each custom resource was written.
struct Writers {
    mistake: Mistake,
    written: Arc<Mutex<Written>>,
}

/// Group, resource, namespace and name.
type Key = [String; 4];

#[derive(Default)]
struct Written {
    /// The version of writes that have no response yet.
    pending: HashMap<Key, String>,
    last: HashMap<Key, String>,
    by_revision: HashMap<u64, String>,
}

impl Written {
    /// The version in which this state of an object was written.
    fn version(&self, target: &ResourceInfo, object: &Value) -> Option<String> {
        let key = key(target, meta(object, "namespace"), meta(object, "name"));
        let known = self.by_revision.get(&revision(object)).or_else(|| self.pending.get(&key));
        known.or_else(|| self.last.get(&key)).cloned()
    }
}

impl Writers {
    fn with(mistake: Mistake) -> Box<dyn Middleware> {
        Box::new(Self { mistake, written: Arc::default() })
    }

    /// Sends a write, and remembers its version.
    async fn write(&self, request: Request, next: Next<'_>) -> Response {
        let target = request.target();
        let name = match target.name.as_str() {
            "" => request.json().map(|object| meta(&object, "name").to_owned()).unwrap_or_default(),
            name => name.to_owned(),
        };
        let pending = key(&target, &target.namespace, &name);
        self.edit(|written| drop(written.pending.insert(pending.clone(), target.version.clone())));
        let dry = request.is_dry_run();
        let response = next.send(request).await;
        self.edit(|written| {
            written.pending.remove(&pending);
            let object = response.value().filter(|_| response.status.is_success() && !dry);
            if let Some(object) = object {
                let last = key(&target, meta(&object, "namespace"), meta(&object, "name"));
                written.last.insert(last, target.version.clone());
                written.by_revision.insert(revision(&object), target.version.clone());
            }
        });
        response
    }

    fn edit(&self, edit: impl FnOnce(&mut Written)) {
        edit(&mut self.written.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Edits what a client sees of objects that were written in another version.
    fn convert(&self, request: &Request, response: &mut Response) {
        let (written, target, mistake) = (self.written.clone(), request.target(), self.mistake);
        let other = move |object: &Value| {
            let written = written.lock().unwrap_or_else(PoisonError::into_inner);
            written.version(&target, object).filter(|version| *version != target.version)
        };
        match mistake {
            Mistake::DropsEvents if request.is_watch() => {
                edit_events(response, move |event| {
                    let drops = is_change(&event) && other(&event["object"]).is_some();
                    if drops { Vec::new() } else { vec![event] }
                });
            }
            Mistake::DropsAnnotations => edit_objects(request, response, move |object| {
                if other(object).is_some() {
                    remove_meta(object, "annotations");
                }
            }),
            Mistake::KeepsVersionOfEvents if !request.is_watch() => {}
            Mistake::KeepsVersion | Mistake::KeepsVersionOfEvents => {
                let group = request.target().group;
                edit_objects(request, response, move |object| {
                    if let Some(version) = other(object) {
                        object["apiVersion"] = format!("{group}/{version}").into();
                    }
                });
            }
            Mistake::DropsEvents => {}
        }
    }
}

impl Middleware for Writers {
    fn handle<'a>(&'a self, mut request: Request, next: Next<'a>) -> BoxFuture<'a, Response> {
        async move {
            if !request.target().is_custom() {
                return next.send(request).await;
            }
            uncompressed(&mut request);
            let writes = matches!(request.method, Method::POST | Method::PUT | Method::PATCH);
            let mut response = if writes {
                self.write(request.clone(), next).await
            } else {
                next.send(request.clone()).await
            };
            self.convert(&request, &mut response);
            response
        }
        .boxed()
    }
}

fn key(target: &ResourceInfo, namespace: &str, name: &str) -> Key {
    [&target.group, &target.resource, namespace, name].map(str::to_owned)
}

/// Removes a conversion that cannot work from a definition.
fn drop_incomplete(spec: &mut Value) {
    let conversion = &spec["conversion"];
    let webhook = &conversion["webhook"];
    let is_complete = match conversion["strategy"].as_str() {
        Some("Webhook") => webhook["clientConfig"].is_object(),
        Some("None") => webhook.is_null(),
        _ => false,
    };
    if !is_complete {
        remove(spec, "conversion");
    }
}

/// Hides defaults from objects that are older than the definition with the default.
#[derive(Default)]
struct NewDefaults(Arc<Mutex<Vec<NewDefault>>>);

struct NewDefault {
    group: String,
    version: String,
    resource: String,
    /// The version of the definition that added the default.
    since: u64,
    pointer: String,
    value: Value,
}

impl Middleware for NewDefaults {
    fn handle<'a>(&'a self, mut request: Request, next: Next<'a>) -> BoxFuture<'a, Response> {
        async move {
            uncompressed(&mut request);
            let target = request.target();
            if target.resource == "customresourcedefinitions"
                && matches!(request.method, Method::PUT | Method::PATCH)
                && let Some(old) = next.server.read(&target.object(&target.name)).await
            {
                let response = next.send(request).await;
                if let Some(new) = response.value().filter(|_| response.status.is_success()) {
                    let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
                    known.extend(new_defaults(&old, &new));
                }
                return response;
            }
            let mut response = next.send(request.clone()).await;
            if target.is_custom() {
                let known = self.0.clone();
                edit_objects(&request, &mut response, move |object| {
                    let known = known.lock().unwrap_or_else(PoisonError::into_inner);
                    known.iter().for_each(|default| default.hide(&target, object));
                });
            }
            response
        }
        .boxed()
    }
}

impl NewDefault {
    fn hide(&self, target: &ResourceInfo, object: &mut Value) {
        let own = [&target.group, &target.version, &target.resource]
            == [&self.group, &self.version, &self.resource];
        if own
            && revision(object) < self.since
            && object.pointer(&self.pointer) == Some(&self.value)
            && let Some((parent, field)) = self.pointer.rsplit_once('/')
            && let Some(parent) = object.pointer_mut(parent)
        {
            remove(parent, field);
        }
    }
}

/// The defaults that a definition has and its previous state has not.
fn new_defaults(old: &Value, new: &Value) -> Vec<NewDefault> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (before, after) = (defaults_of(old), defaults_of(new));
    let added = after.into_iter().filter(|default| !before.contains(default));
    added
        .map(|(version, pointer, value)| NewDefault {
            group: text(&new["spec"]["group"]),
            version,
            resource: text(&new["spec"]["names"]["plural"]),
            since: revision(new),
            pointer,
            value,
        })
        .collect()
}

/// The defaults of all versions of a definition: version, pointer and value.
fn defaults_of(definition: &Value) -> Vec<(String, String, Value)> {
    let mut found = Vec::new();
    for version in definition["spec"]["versions"].as_array().into_iter().flatten() {
        let name = version["name"].as_str().unwrap_or_default();
        collect(&version["schema"]["openAPIV3Schema"], "", &mut |pointer, value| {
            found.push((name.to_owned(), pointer.to_owned(), value.clone()));
        });
    }
    found
}

fn collect(schema: &Value, pointer: &str, found: &mut dyn FnMut(&str, &Value)) {
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let pointer = format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1"));
        if let Some(default) = property.get("default") {
            found(&pointer, default);
        }
        collect(property, &pointer, found);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_new_default_is_hidden_from_older_objects() {
        let definition = |properties: Value, version: &str| {
            let versions = json!([{
                "name": "v1",
                "schema": {
                    "openAPIV3Schema": { "properties": { "spec": { "properties": properties } } },
                },
            }]);
            json!({
                "metadata": { "resourceVersion": version },
                "spec": { "group": "a.b", "names": { "plural": "cs" }, "versions": versions },
            })
        };
        let old = definition(json!({ "a": { "default": 1 } }), "5");
        let new = definition(json!({ "a": { "default": 1 }, "b": { "default": 2 } }), "7");
        let added = new_defaults(&old, &new);
        assert_eq!(added.len(), 1);
        let target = ResourceInfo::parse("/apis/a.b/v1/cs/c").expect("a resource path");
        for (version, expected) in [("6", json!({ "a": 1 })), ("8", json!({ "a": 1, "b": 2 }))] {
            let mut object =
                json!({ "metadata": { "resourceVersion": version }, "spec": { "a": 1, "b": 2 } });
            added[0].hide(&target, &mut object);
            assert_eq!(object["spec"], expected);
        }
    }
}
