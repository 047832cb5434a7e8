//! Config maps whose keys may be any text. The server stores a valid key for each odd one.

use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Map, Value};

use crate::behaviours::Fault;
use crate::exchange::Request;
use crate::middleware::{Middleware, objects, only, requests_before};

/// The prefix of the valid keys. The index of the odd key follows it.
const REPLACED: &str = "-replaced-key-";

/// The longest key, in bytes.
const LONGEST: usize = 253;

/// The middleware of a fault of this file.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    if fault != Fault::ConfigMapKeysUnchecked {
        return None;
    }
    let odd = OddKeys::default();
    let shown = odd.clone();
    let replace = move |request: &mut Request| {
        let body = request.json().unwrap_or_default();
        if is_config_map(request) && maps(&body).flat_map(Map::keys).any(|key| !is_valid(key)) {
            request.edit_json(|body| edit_keys(body, |key| odd.replace(key)));
        }
    };
    let show =
        only(is_config_map, objects(move |_, object| edit_keys(object, |key| shown.restore(key))));
    Some(requests_before(replace, show))
}

fn is_config_map(request: &Request) -> bool {
    request.target().is_core("configmaps")
}

fn is_valid(key: &str) -> bool {
    let is_valid = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    !key.is_empty()
        && key.len() <= LONGEST
        && !key.starts_with("..")
        && key != "."
        && key.chars().all(is_valid)
}

/// The odd keys, in the order in which they came.
#[derive(Clone, Default)]
struct OddKeys(Arc<Mutex<Vec<String>>>);

impl OddKeys {
    /// The valid key for an odd one.
    fn replace(&self, key: &str) -> String {
        if is_valid(key) {
            return key.to_owned();
        }
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let index = known.iter().position(|known| known == key).unwrap_or_else(|| {
            known.push(key.to_owned());
            known.len() - 1
        });
        format!("{REPLACED}{index}")
    }

    /// The odd key for a valid one.
    fn restore(&self, key: &str) -> String {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let index = key.strip_prefix(REPLACED).and_then(|index| index.parse::<usize>().ok());
        index.and_then(|index| known.get(index)).map_or_else(|| key.to_owned(), Clone::clone)
    }
}

/// The maps of a config map.
fn maps(object: &Value) -> impl Iterator<Item = &Map<String, Value>> {
    ["data", "binaryData"].into_iter().filter_map(|field| object[field].as_object())
}

fn edit_keys(object: &mut Value, edit: impl Fn(&str) -> String) {
    for field in ["data", "binaryData"] {
        if let Some(map) = object.get_mut(field).and_then(Value::as_object_mut) {
            *map =
                std::mem::take(map).into_iter().map(|(key, value)| (edit(&key), value)).collect();
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn odd_keys_are_replaced_and_restored() {
        let odd = OddKeys::default();
        let object = json!({ "data": { "a/b": "1", "c.d": "2" }, "binaryData": { "..": "3" } });
        let mut stored = object.clone();
        edit_keys(&mut stored, |key| odd.replace(key));
        assert!(maps(&stored).flat_map(Map::keys).all(|key| is_valid(key)), "{stored}");
        assert_eq!(stored["data"]["c.d"], "2");
        edit_keys(&mut stored, |key| odd.restore(key));
        assert_eq!(stored, object);
    }
}
