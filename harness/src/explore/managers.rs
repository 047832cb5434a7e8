//! Parts of objects that other clients manage, such as controllers.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::generate::remove;

/// The managers of this program begin with it.
const OWN: &str = "kubeproof";

/// The managers that a server lists for the writes of this program.
#[derive(Clone, Debug, Default)]
pub(super) struct OwnManagers(BTreeSet<String>);

impl OwnManagers {
    /// Adds the managers of a new object, which has no other writers yet.
    pub(super) fn learn(&mut self, created: &Value) {
        self.0.extend(managed(created).filter_map(manager).map(str::to_owned));
    }

    /// Reports whether another client wrote to an object.
    pub(super) fn is_shared(&self, object: &Value) -> bool {
        managed(object).any(|entry| self.is_other(entry))
    }

    /// Removes the fields that other clients manage, with their entries in `managedFields`.
    pub(super) fn without_others(&self, object: &Value) -> Value {
        let mut own = object.clone();
        let empty = Map::new();
        for entry in managed(object).filter(|entry| self.is_other(entry)) {
            remove_fields(&mut own, entry["fieldsV1"].as_object().unwrap_or(&empty));
        }
        for at in ["/metadata/labels", "/metadata/annotations", "/metadata/finalizers"] {
            let was_filled = object.pointer(at).is_some_and(|value| !is_empty(value));
            if was_filled && own.pointer(at).is_some_and(is_empty) {
                remove(&mut own, at);
            }
        }
        let entries = own.pointer_mut("/metadata/managedFields").and_then(Value::as_array_mut);
        if let Some(entries) = entries {
            entries.retain(|entry| !self.is_other(entry));
        }
        own
    }

    fn is_other(&self, entry: &Value) -> bool {
        manager(entry).is_some_and(|name| !name.starts_with(OWN) && !self.0.contains(name))
    }
}

fn managed(object: &Value) -> impl Iterator<Item = &Value> {
    let entries = object.pointer("/metadata/managedFields").and_then(Value::as_array);
    entries.into_iter().flatten()
}

fn manager(entry: &Value) -> Option<&str> {
    entry["manager"].as_str()
}

fn is_empty(value: &Value) -> bool {
    value.as_object().is_some_and(Map::is_empty) || value.as_array().is_some_and(Vec::is_empty)
}

/// Removes the fields of a set. Lists with keys are removed as a whole.
fn remove_fields(object: &mut Value, fields: &Map<String, Value>) {
    let Value::Object(members) = object else { return };
    for (key, below) in fields {
        let Some(name) = key.strip_prefix("f:") else { continue };
        let below = below.as_object().filter(|below| below.keys().any(|key| key != "."));
        match (members.get_mut(name), below) {
            (Some(member @ Value::Object(_)), Some(below)) => remove_fields(member, below),
            _ => drop(members.remove(name)),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_of_controllers_are_removed() {
        let manager = |name: &str, fields: Value| json!({"manager": name, "fieldsV1": fields});
        let own = manager("kubeproof", json!({"f:spec": {"f:replicas": {}}}));
        let other = manager(
            "kube-controller-manager",
            json!({
                "f:metadata": {"f:annotations": {".": {}, "f:revision": {}}},
                "f:status": {"f:observedGeneration": {}, "f:conditions": {r#"k:{"type":"A"}"#: {}}},
            }),
        );
        let object = json!({
            "metadata": {"annotations": {"revision": "1"}, "managedFields": [own, other]},
            "spec": {"replicas": 1},
            "status": {"observedGeneration": 1, "conditions": [{"type": "A"}], "replicas": 0},
        });
        let mut managers = OwnManagers::default();
        assert!(managers.is_shared(&object));
        let expected = json!({
            "metadata": {"managedFields": [object["metadata"]["managedFields"][0]]},
            "spec": {"replicas": 1},
            "status": {"replicas": 0},
        });
        assert_eq!(managers.without_others(&object), expected);
        assert!(!managers.is_shared(&expected));
        assert_eq!(managers.without_others(&expected), expected);
        let bare = json!({"items": null});
        assert_eq!(managers.without_others(&json!({})), json!({}));
        assert_eq!(managers.without_others(&bare), bare);
        managers.learn(&object);
        assert_eq!(managers.without_others(&object), object);
    }
}
