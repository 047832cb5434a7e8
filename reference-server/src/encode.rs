//! From an object to the text that the store keeps.
//!
//! The order of the fields is that of the usual servers: kind and version first, then `metadata` in the order of its
//! documentation. Kind and version stand in front so that a list can leave them out, and another version of the API can
//! put its own there, without parsing.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use crate::lifecycle;
use crate::object::Object;
use crate::registry::ResourceType;
use crate::store::{Draft, Facts};

/// Fields of `metadata` in front of the version, in their order.
const BEFORE_VERSION: [&str; 5] = ["name", "generateName", "namespace", "selfLink", "uid"];
/// Fields of `metadata` behind the version, in their order.
const AFTER_VERSION: [&str; 9] = [
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "labels",
    "annotations",
    "ownerReferences",
    "finalizers",
    "managedFields",
];

/// Writes an object of type `ty`, but for its version.
pub(crate) fn draft(ty: &ResourceType, object: &Value) -> Draft {
    if let Some(storage) = &ty.storage {
        let mut stored = object.clone();
        (storage.encode)(&mut stored);
        return draft(&storage.ty, &stored);
    }
    let empty = Map::new();
    let metadata = object.metadata().unwrap_or(&empty);

    let mut before = ty.head.clone();
    let body = before.len();
    before.push_str("\"metadata\":{");
    let mut fields = Fields { text: &mut before, first: true };
    for name in BEFORE_VERSION {
        fields.add(name, metadata.get(name));
    }
    fields.key("resourceVersion");
    before.push('"');

    let mut after = String::from("\"");
    let mut fields = Fields { text: &mut after, first: false };
    for name in AFTER_VERSION {
        fields.add(name, metadata.get(name));
    }
    after.push('}');
    let mut fields = Fields { text: &mut after, first: false };
    for (name, value) in object.as_object().into_iter().flatten() {
        if !matches!(name.as_str(), "kind" | "apiVersion" | "metadata") {
            fields.add(name, Some(value));
        }
    }
    after.push('}');

    Draft { key: object.key(), facts: facts(ty, object), before, after, body }
}

fn facts(ty: &ResourceType, object: &Value) -> Facts {
    let labels = object.metadata().and_then(|metadata| metadata.get("labels")).and_then(Value::as_object);
    let labels = labels.into_iter().flatten();
    let owners =
        object.metadata().and_then(|metadata| metadata.get("ownerReferences")).and_then(Value::as_array);
    let owners = owners.into_iter().flatten();
    let deleting = object.is_deleting();
    Facts {
        uid: object.meta("uid").to_owned(),
        labels: labels.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect(),
        fields: ty.selectable_fields(object),
        deleting,
        owners: owners.filter_map(|owner| Some(owner["uid"].as_str()?.to_owned())).collect(),
        awaits_dependents: deleting && lifecycle::awaits_dependents(object),
        schema: ty.schema_id,
    }
}

/// The inside of a JSON object, one field after the other.
struct Fields<'a> {
    text: &'a mut String,
    first: bool,
}

impl Fields<'_> {
    fn key(&mut self, name: &str) {
        if !self.first {
            self.text.push(',');
        }
        self.first = false;
        // Writing to a string cannot fail.
        let _ = write!(self.text, "{}:", Escaped(name));
    }

    fn add(&mut self, name: &str, value: Option<&Value>) {
        if let Some(value) = value {
            self.key(name);
            let _ = write!(self.text, "{value}");
        }
    }
}

/// A JSON string.
struct Escaped<'a>(&'a str);

impl std::fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.0.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            write!(f, "\"{}\"", self.0)
        } else {
            write!(f, "{}", Value::from(self.0))
        }
    }
}
