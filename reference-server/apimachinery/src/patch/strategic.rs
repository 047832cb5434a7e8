//! Strategic merge patch: a merge patch that takes the merge strategy of each list from the schema.
//!
//! Objects merge field by field, and null removes a field. A list is replaced unless its schema has
//! the strategy `merge`. Objects in such a list are identified by the merge key, and scalars form a
//! set. Directives in the patch override this: `$patch` (replace, delete, merge), `$retainKeys`,
//! `$setElementOrder/<list>` and `$deleteFromPrimitiveList/<list>`. An object whose schema has the
//! strategy `replace` is replaced.
//!
//! kube-apiserver returns 500 for most patches that break these rules. They are client errors, so
//! this server returns 400.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde_json::{Map, Value};

use super::order::{agrees, arrange, identity};
use super::{PatchError, type_name};

use crate::schema::Schema;

const DIRECTIVE: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const ELEMENT_ORDER: &str = "$setElementOrder/";
const DELETE_SCALARS: &str = "$deleteFromPrimitiveList/";

/// Merges `patch` into `document`, an object with the schema `schema`.
pub fn apply(document: &Value, patch: &Value, schema: &Schema) -> Result<Value, PatchError> {
    let Value::Object(patch) = patch else {
        let found = type_name(patch);
        return malformed(format!(
            "error decoding patch: a strategic merge patch is an object, not {found}"
        ));
    };
    let stored = document.as_object().cloned().unwrap_or_default();
    let merged = Merge { keeps_null: false }.object(stored, patch, Some(schema))?;
    Ok(Value::Object(merged.unwrap_or_default()))
}

fn malformed<T>(text: String) -> Result<T, PatchError> {
    Err(PatchError::Malformed(text))
}

/// The value and the directives that a patch has for one field.
#[derive(Default)]
struct FieldPatch<'p> {
    value: Option<&'p Value>,
    order: Option<&'p [Value]>,
    delete: Option<&'p [Value]>,
}

/// The directive that `$patch` has for its object.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Directive {
    Merge,
    Replace,
    Delete,
}

struct Merge {
    /// The patch replaces the value, so null has nothing to remove: it is the zero value.
    keeps_null: bool,
}

impl Merge {
    const REPLACE: Self = Self { keeps_null: true };

    /// Merges an object. Returns `None` if the patch deletes it.
    fn object(
        &self,
        mut stored: Map<String, Value>,
        patch: &Map<String, Value>,
        schema: Option<&Schema>,
    ) -> Result<Option<Map<String, Value>>, PatchError> {
        match Self::directive(patch)? {
            Directive::Merge => {}
            Directive::Replace => stored = Map::new(),
            Directive::Delete => return Ok(None),
        }
        Self::retain_keys(&mut stored, patch)?;
        for (name, change) in fields(patch)? {
            let schema = schema.and_then(|schema| schema.child(name));
            match change.value {
                Some(Value::Null) if !self.keeps_null => {
                    stored.remove(name);
                }
                Some(Value::Object(patch)) => {
                    let replaces = schema.is_some_and(|schema| schema.patch_strategy.replace);
                    let merged = match stored.remove(name) {
                        Some(Value::Object(_)) if replaces => {
                            Self::REPLACE.object(Map::new(), patch, schema)?
                        }
                        Some(Value::Object(old)) => self.object(old, patch, schema)?,
                        _ => self.object(Map::new(), patch, schema)?,
                    };
                    if let Some(merged) = merged {
                        stored.insert(name.to_owned(), Value::Object(merged));
                    }
                }
                Some(Value::Array(_)) | None => {
                    let old = stored.get(name).and_then(Value::as_array);
                    if let Some(merged) = self.list(old, &change, schema)? {
                        stored.insert(name.to_owned(), Value::Array(merged));
                    }
                }
                Some(scalar) => {
                    stored.insert(name.to_owned(), scalar.clone());
                }
            }
        }
        Ok(Some(stored))
    }

    fn directive(patch: &Map<String, Value>) -> Result<Directive, PatchError> {
        match patch.get(DIRECTIVE) {
            None => Ok(Directive::Merge),
            Some(value) => match value.as_str() {
                Some("merge") => Ok(Directive::Merge),
                Some("replace") => Ok(Directive::Replace),
                Some("delete") => Ok(Directive::Delete),
                _ => malformed(format!(
                    "unknown patch type: {value}, expected merge, replace or delete"
                )),
            },
        }
    }

    /// Removes the fields that `$retainKeys` does not list. The list must contain the fields that
    /// the patch sets.
    fn retain_keys(
        stored: &mut Map<String, Value>,
        patch: &Map<String, Value>,
    ) -> Result<(), PatchError> {
        let Some(value) = patch.get(RETAIN_KEYS) else { return Ok(()) };
        let wrong = |what: String| malformed(format!("invalid patch format of retainKeys: {what}"));
        let Some(keys) = value.as_array() else {
            return wrong(format!("expected an array of names, not {}", type_name(value)));
        };
        let keys: HashSet<&str> = keys.iter().filter_map(Value::as_str).collect();
        let is_named = |name: &str| keys.contains(name);
        let is_set = |(name, value): (&String, &Value)| !value.is_null() && !name.starts_with('$');
        if let Some((name, _)) =
            patch.iter().find(|(name, value)| is_set((*name, *value)) && !is_named(name))
        {
            return wrong(format!("the patch sets {name:?}, which it does not retain"));
        }
        stored.retain(|name, _| is_named(name));
        Ok(())
    }

    /// Merges a list. Returns `None` if neither the document nor the patch has one.
    fn list(
        &self,
        stored: Option<&Vec<Value>>,
        change: &FieldPatch<'_>,
        schema: Option<&Schema>,
    ) -> Result<Option<Vec<Value>>, PatchError> {
        let patch = change.value.and_then(Value::as_array);
        let by_item = schema.is_some_and(|schema| schema.patch_strategy.merge);
        let item_schema = schema.and_then(|schema| schema.items.as_deref());
        let (stored, patch) = match (stored, patch) {
            (None, None) => return Ok(None),
            (None, Some(patch)) => return self.fresh(patch, item_schema).map(Some),
            (Some(_), Some(patch)) if !by_item => {
                return Self::REPLACE.fresh(patch, item_schema).map(Some);
            }
            (Some(stored), patch) => (stored, patch.map(Vec::as_slice).unwrap_or_default()),
        };

        let gone: HashSet<&Value> = change.delete.into_iter().flatten().collect();
        let deleted = |item: &Value| gone.contains(item);
        let kept: Vec<Value> = stored.iter().filter(|item| !deleted(item)).cloned().collect();
        let all = || kept.iter().chain(patch).chain(change.order.unwrap_or_default());
        let key = if all().any(Value::is_object) {
            if !all().all(Value::is_object) {
                return malformed("a list is patched with items of another type".to_owned());
            }
            let Some(key) = schema.and_then(|schema| schema.patch_merge_key) else {
                return malformed("cannot merge lists without a merge key".to_owned());
            };
            Some(key)
        } else {
            None
        };

        let normal: Vec<&Value> = patch.iter().filter(|item| !is_special(item)).collect();
        if let Some(order) = change.order
            && !agrees(normal.iter().copied(), order, key)
        {
            return malformed(
                "the order of the patched list doesn't match its $setElementOrder".to_owned(),
            );
        }
        let merged = match key {
            None => Self::set(kept, patch),
            Some(key) => match self.keyed(kept, patch, key, item_schema)? {
                Keyed::Merged(merged) => merged,
                Keyed::Replaced(items) => return Ok(Some(items)),
            },
        };
        let normal: Vec<Value> = normal.into_iter().cloned().collect();
        let order = match change.order {
            Some(order) => order,
            None => normal.as_slice(),
        };
        Ok(Some(arrange(merged, order, stored, key)))
    }

    /// Merges scalars as a set. New items follow the stored ones.
    fn set(mut items: Vec<Value>, patch: &[Value]) -> Vec<Value> {
        let mut known: HashSet<Value> = items.iter().cloned().collect();
        for item in patch {
            if known.insert(item.clone()) {
                items.push(item.clone());
            }
        }
        items
    }

    /// Merges objects as a map by their merge key.
    fn keyed(
        &self,
        mut items: Vec<Value>,
        patch: &[Value],
        key: &str,
        schema: Option<&Schema>,
    ) -> Result<Keyed, PatchError> {
        let objects = || patch.iter().filter_map(|item| Some((item, item.as_object()?)));
        let mut replaced = false;
        let mut deleted = HashSet::new();
        for (item, object) in objects() {
            match Self::directive(object)? {
                Directive::Merge => {}
                Directive::Replace => replaced = true,
                Directive::Delete => {
                    deleted.insert(required_key(item, key)?);
                }
            }
        }
        if replaced {
            return Self::REPLACE.fresh(patch, schema).map(Keyed::Replaced);
        }
        items.retain(|item| item.get(key).is_none_or(|key| !deleted.contains(key)));
        let mut places: HashMap<Value, usize> = HashMap::new();
        for (at, item) in items.iter().enumerate() {
            if let Some(key) = item.get(key) {
                places.entry(key.clone()).or_insert(at);
            }
        }
        for (item, object) in objects() {
            if Self::directive(object)? != Directive::Merge {
                continue;
            }
            let wanted = required_key(item, key)?;
            let at = places.get(wanted).copied();
            let old = at.and_then(|at| items[at].as_object().cloned());
            let merged = match old {
                Some(old) => self.object(old, object, schema)?,
                None => Self::REPLACE.object(Map::new(), object, schema)?,
            };
            let merged = Value::Object(merged.unwrap_or_default());
            if let Some(at) = at {
                items[at] = merged;
            } else {
                places.insert(wanted.clone(), items.len());
                items.push(merged);
            }
        }
        Ok(Keyed::Merged(items))
    }

    /// Returns a list of the patch without its directives.
    fn fresh(&self, patch: &[Value], schema: Option<&Schema>) -> Result<Vec<Value>, PatchError> {
        let mut items = Vec::with_capacity(patch.len());
        for item in patch.iter().filter(|item| !is_special(item)) {
            match item {
                Value::Object(object) => {
                    items.extend(self.object(Map::new(), object, schema)?.map(Value::Object));
                }
                other => items.push(other.clone()),
            }
        }
        Ok(items)
    }
}

enum Keyed {
    Merged(Vec<Value>),
    Replaced(Vec<Value>),
}

/// Reports whether a list item only carries a directive.
fn is_special(item: &Value) -> bool {
    matches!(item.get(DIRECTIVE).and_then(Value::as_str), Some("delete" | "replace"))
}

fn required_key<'v>(item: &'v Value, key: &str) -> Result<&'v Value, PatchError> {
    match identity(item, Some(key)) {
        Some(value) => Ok(value),
        None => malformed(format!("map: {item} does not contain declared merge key: {key}")),
    }
}

/// Collects the value and the directives for each field of a patch.
fn fields(patch: &Map<String, Value>) -> Result<BTreeMap<&str, FieldPatch<'_>>, PatchError> {
    let list = |name: &str, value: &'_ Value| match value.as_array() {
        Some(_) => Ok(()),
        None => malformed(format!("{name:?} takes an array, not {}", type_name(value))),
    };
    let mut fields: BTreeMap<&str, FieldPatch<'_>> = BTreeMap::new();
    for (name, value) in patch {
        if let Some(field) = name.strip_prefix(ELEMENT_ORDER) {
            list(name, value)?;
            fields.entry(field).or_default().order = value.as_array().map(Vec::as_slice);
        } else if let Some(field) = name.strip_prefix(DELETE_SCALARS) {
            list(name, value)?;
            fields.entry(field).or_default().delete = value.as_array().map(Vec::as_slice);
        } else if name != DIRECTIVE && name != RETAIN_KEYS {
            fields.entry(name).or_default().value = Some(value);
        }
    }
    Ok(fields)
}

#[cfg(test)]
mod tests;
