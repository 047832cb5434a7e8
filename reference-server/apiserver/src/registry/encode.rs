//! Encodes an object as the text in the store.
//!
//! The order of the fields is that of kube-apiserver: kind and version first, then `metadata` in
//! the documented order. Lists can skip kind and version, and another API version can replace them,
//! without parsing.

use serde::Serialize;
use serde_json::{Map, Value};

use crate::registry::ResourceType;
use kubeproof_apimachinery::object::Object;
use kubeproof_storage::{Draft, Facts, Key};

/// The fields of `metadata` before the version, in order.
const BEFORE_VERSION: [&str; 5] = ["name", "generateName", "namespace", "selfLink", "uid"];
/// The fields of `metadata` after the version, in order.
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

/// The space for the text before and after the version, which fits most objects.
const CAPACITY: usize = 512;

/// The schema of objects whose type is not served. No type has it.
const UNSERVED: u64 = u64::MAX;

/// Encodes an object of type `ty` without its resource version.
pub(crate) fn draft(ty: &ResourceType, object: &Value) -> Draft {
    if let Some(storage) = &ty.storage {
        let mut stored = object.clone();
        (storage.encode)(&mut stored);
        return draft(&storage.ty, &stored);
    }
    with_facts(object, &ty.head, facts(ty, object))
}

/// Encodes a stored object whose type is not served. Its type converts it when it is served again.
pub(crate) fn draft_of_unserved(object: &Value) -> Draft {
    let head = format!(r#"{{"apiVersion":{},"kind":{},"#, object["apiVersion"], object["kind"]);
    let facts = Facts { schema: UNSERVED, ..metadata_facts(object) };
    with_facts(object, &head, facts)
}

fn with_facts(object: &Value, head: &str, facts: Facts) -> Draft {
    let empty = Map::new();
    let metadata = object.metadata().unwrap_or(&empty);

    let mut before = Vec::with_capacity(CAPACITY);
    before.extend_from_slice(head.as_bytes());
    let body = before.len();
    before.extend_from_slice(b"\"metadata\":{");
    let mut fields = Fields { text: &mut before, first: true };
    for name in BEFORE_VERSION {
        fields.add(name, metadata.get(name));
    }
    fields.key("resourceVersion");
    before.push(b'"');

    let mut after = Vec::with_capacity(CAPACITY);
    after.push(b'"');
    let mut fields = Fields { text: &mut after, first: false };
    for name in AFTER_VERSION {
        fields.add(name, metadata.get(name));
    }
    after.push(b'}');
    let mut fields = Fields { text: &mut after, first: false };
    for (name, value) in object.as_object().into_iter().flatten() {
        if !matches!(name.as_str(), "kind" | "apiVersion" | "metadata") {
            fields.add(name, Some(value));
        }
    }
    after.push(b'}');

    Draft { key: key(object), facts: facts.into(), before, after, body }
}

/// Returns the key of an object in the store.
pub(crate) fn key(object: &Value) -> Key {
    Key::new(object.meta("namespace"), object.meta("name"))
}

fn facts(ty: &ResourceType, object: &Value) -> Facts {
    Facts {
        fields: ty.selectable_fields(object),
        claims: ty.strategy.claims(object),
        schema: ty.schema_id,
        ..metadata_facts(object)
    }
}

fn metadata_facts(object: &Value) -> Facts {
    let labels =
        object.metadata().and_then(|metadata| metadata.get("labels")).and_then(Value::as_object);
    let labels = labels.into_iter().flatten();
    let owners = object
        .metadata()
        .and_then(|metadata| metadata.get("ownerReferences"))
        .and_then(Value::as_array);
    let owners = owners.into_iter().flatten();
    let deleting = object.is_deleting();
    Facts {
        uid: object.meta("uid").to_owned(),
        labels: labels
            .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
            .collect(),
        deleting,
        owners: owners.filter_map(|owner| Some(owner["uid"].as_str()?.to_owned())).collect(),
        awaits_dependents: deleting && awaits_dependents(object),
        ..Facts::default()
    }
}

/// The finalizer of a deletion that orphans dependents.
pub const ORPHAN: &str = "orphan";
/// The finalizer of foreground deletion.
pub const FOREGROUND: &str = "foregroundDeletion";

/// Returns whether finalizers hold the object because of its dependents.
pub(crate) fn awaits_dependents(object: &Value) -> bool {
    object.meta_list("finalizers").iter().any(|name| [ORPHAN, FOREGROUND].contains(&name.as_str()))
}

/// The fields of a JSON object.
struct Fields<'a> {
    text: &'a mut Vec<u8>,
    first: bool,
}

impl Fields<'_> {
    fn key(&mut self, name: &str) {
        if !self.first {
            self.text.push(b',');
        }
        self.first = false;
        self.write(name);
        self.text.push(b':');
    }

    fn add(&mut self, name: &str, value: Option<&Value>) {
        if let Some(value) = value {
            self.key(name);
            self.write(value);
        }
    }

    fn write(&mut self, value: &(impl Serialize + ?Sized)) {
        // Writing to memory cannot fail, and all keys are strings.
        let _ = serde_json::to_writer(&mut *self.text, value);
    }
}
