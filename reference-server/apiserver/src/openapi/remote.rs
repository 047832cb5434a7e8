//! Adds the documents of extension servers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Map, Value};

/// Where version 2 has its definitions.
const DEFINITIONS: &str = "#/definitions/";

/// What an extension server publishes about one group and version.
#[derive(Clone, Debug)]
pub(crate) struct RemoteDocument {
    /// The path of the group and version, such as `apis/example.com/v1`.
    pub(crate) path: String,
    /// The URL of version 3, relative to the server.
    pub(crate) v3: Option<String>,
    /// Version 2, about the whole server.
    pub(crate) v2: Option<Arc<Value>>,
}

impl RemoteDocument {
    /// Returns whether version 2 is the same document.
    pub(super) fn has_same_v2(&self, other: &Self) -> bool {
        let is_same = match (&self.v2, &other.v2) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            (None, None) => true,
            _ => false,
        };
        is_same && self.path == other.path
    }

    /// Adds the group and version to the index of version 3.
    pub(super) fn add_to_index(&self, index: &mut Value) {
        if let Some(url) = &self.v3 {
            index["paths"][&self.path]["serverRelativeURL"] = url.as_str().into();
        }
    }

    /// Adds the paths of the group and version to a document of version 2, with the definitions
    /// that they need. A definition whose name has another meaning gets a new name.
    pub(super) fn add_to_v2(&self, document: &mut Value) {
        let Some(remote) = &self.v2 else { return };
        let root = format!("/{}", self.path);
        let is_own = |path: &str| {
            path.strip_prefix(&root).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let all = remote["paths"].as_object().into_iter().flatten();
        let mut paths: Map<String, Value> = all
            .filter(|(path, _)| is_own(path))
            .map(|(path, item)| (path.clone(), item.clone()))
            .collect();
        let needed = needed(paths.values(), &remote["definitions"]);
        let names = new_names(&needed, &remote["definitions"], &document["definitions"]);
        paths.values_mut().for_each(|item| rename(item, &names));
        for name in needed {
            let mut definition = remote["definitions"][&name].clone();
            rename(&mut definition, &names);
            let name = names.get(&name).cloned().unwrap_or(name);
            document["definitions"][&name] = definition;
        }
        if let Some(served) = document["paths"].as_object_mut() {
            served.extend(paths);
        }
    }
}

/// Returns the definitions that some paths need, directly or through others.
fn needed<'a>(paths: impl Iterator<Item = &'a Value>, definitions: &'a Value) -> BTreeSet<String> {
    let mut needed = BTreeSet::new();
    let mut open: Vec<&Value> = paths.collect();
    while let Some(value) = open.pop() {
        match value {
            Value::Object(fields) => {
                let name = fields.get("$ref").and_then(Value::as_str);
                let name = name.and_then(|name| name.strip_prefix(DEFINITIONS));
                if let Some(name) = name
                    && let Some(definition) = definitions.get(name)
                    && needed.insert(name.to_owned())
                {
                    open.push(definition);
                }
                open.extend(fields.values());
            }
            Value::Array(items) => open.extend(items),
            _ => {}
        }
    }
    needed
}

/// Returns the new names of definitions whose name has another meaning in the document.
fn new_names(
    needed: &BTreeSet<String>,
    definitions: &Value,
    served: &Value,
) -> BTreeMap<String, String> {
    let differs =
        |name: &str, definition: &Value| served.get(name).is_some_and(|known| known != definition);
    let renamed = needed.iter().filter_map(|name| {
        let definition = &definitions[name];
        differs(name, definition).then_some(())?;
        let mut free = (2..u32::MAX).map(|n| format!("{name}_v{n}"));
        let free = free.find(|free| !differs(free, definition));
        Some((name.clone(), free?))
    });
    renamed.collect()
}

fn rename(value: &mut Value, names: &BTreeMap<String, String>) {
    match value {
        Value::Object(fields) => {
            if let Some(Value::String(reference)) = fields.get_mut("$ref")
                && let Some(name) = reference.strip_prefix(DEFINITIONS)
                && let Some(new) = names.get(name)
            {
                *reference = format!("{DEFINITIONS}{new}");
            }
            fields.values_mut().for_each(|value| rename(value, names));
        }
        Value::Array(items) => items.iter_mut().for_each(|value| rename(value, names)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_the_own_paths_and_their_definitions_are_added() {
        let reference = |name: &str| json!({"$ref": format!("{DEFINITIONS}{name}")});
        let remote = json!({
            "paths": {
                "/apis/farm.io/v1/barns": {"get": {"schema": reference("Barn")}},
                "/apis/farm.io/v10/barns": {"get": {}},
                "/version": {"get": {"schema": reference("Info")}},
            },
            "definitions": {
                "Barn": {"properties": {"meta": reference("Meta"), "time": reference("Time")}},
                "Meta": {"properties": {"barn": reference("Barn")}},
                "Time": {"type": "string"},
                "Info": {},
            },
        });
        let mut document = json!({
            "paths": {"/api": {}},
            "definitions": {"Meta": {"type": "object"}, "Time": {"type": "string"}},
        });
        let added = RemoteDocument {
            path: "apis/farm.io/v1".to_owned(),
            v3: Some("/openapi/v3/apis/farm.io/v1?hash=A".to_owned()),
            v2: Some(Arc::new(remote)),
        };
        added.add_to_v2(&mut document);
        let expected = json!({
            "paths": {
                "/api": {},
                "/apis/farm.io/v1/barns": {"get": {"schema": reference("Barn")}},
            },
            "definitions": {
                "Barn": {"properties": {"meta": reference("Meta_v2"), "time": reference("Time")}},
                "Meta": {"type": "object"},
                "Meta_v2": {"properties": {"barn": reference("Barn")}},
                "Time": {"type": "string"},
            },
        });
        assert_eq!(document, expected);
        let mut index = json!({"paths": {}});
        added.add_to_index(&mut index);
        let url = "/openapi/v3/apis/farm.io/v1?hash=A";
        assert_eq!(index["paths"]["apis/farm.io/v1"], json!({"serverRelativeURL": url}));
    }
}
