//! API objects and the values inside them.

use rand::RngExt as _;
use serde_json::Value;

/// The letters of generated names.
const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// Returns a text of the metadata; empty if it is missing.
pub(crate) fn meta<'a>(object: &'a Value, field: &str) -> &'a str {
    object["metadata"][field].as_str().unwrap_or_default()
}

pub(crate) fn remove_meta(object: &mut Value, field: &str) -> Option<Value> {
    object.get_mut("metadata")?.as_object_mut()?.remove(field)
}

pub(crate) fn remove(object: &mut Value, field: &str) -> Option<Value> {
    object.as_object_mut()?.remove(field)
}

/// Edits a document and all values inside it. Inner values come first.
pub(crate) fn everywhere(value: &mut Value, edit: &mut dyn FnMut(&mut Value)) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| everywhere(item, edit)),
        Value::Object(fields) => fields.values_mut().for_each(|field| everywhere(field, edit)),
        _ => {}
    }
    edit(value);
}

/// Returns whether an object is being deleted.
pub(crate) fn is_deleting(object: &Value) -> bool {
    !meta(object, "deletionTimestamp").is_empty()
}

/// A version of this server as a number; 0 if it is none.
pub(crate) fn revision(object: &Value) -> u64 {
    meta(object, "resourceVersion").parse().unwrap_or_default()
}

/// Random letters, as in generated names.
pub(crate) fn random_letters(count: usize) -> String {
    let mut rng = rand::rng();
    (0..count).map(|_| char::from(ALPHABET[rng.random_range(..ALPHABET.len())])).collect()
}

/// Returns a random UUID of version 4.
pub(crate) fn random_uuid() -> String {
    let hex = format!("{:032x}", rand::random::<u128>());
    format!("{}-{}-4{}-a{}-{}", &hex[..8], &hex[8..12], &hex[13..16], &hex[17..20], &hex[20..])
}
