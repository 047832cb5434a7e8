//! Untyped access to the fields that every object has.

pub mod validation;

use jiff::Timestamp;
use serde_json::{Map, Value};

/// Reads and writes the fields that every object has.
pub trait Object {
    /// Returns `metadata`, if the object has it.
    fn metadata(&self) -> Option<&Map<String, Value>>;
    /// Returns `metadata`, and creates it if it is absent.
    fn metadata_mut(&mut self) -> &mut Map<String, Value>;
    /// Returns a text field of `metadata`; empty when absent.
    fn meta(&self, field: &str) -> &str;
    /// Sets a field of `metadata`.
    fn set_meta(&mut self, field: &str, value: impl Into<Value>);
    /// Removes a field of `metadata`.
    fn unset_meta(&mut self, field: &str);
    /// Copies a field of `metadata` from `other`, or removes it if `other` does not have it.
    fn adopt_meta(&mut self, field: &str, other: &Value);
    /// Copies a field from `other`, or removes it if `other` does not have it.
    fn adopt(&mut self, field: &str, other: &Value);
    /// Returns a list of strings in `metadata`.
    fn meta_list(&self, field: &str) -> Vec<String>;
    /// Reports whether `metadata.deletionTimestamp` is set.
    fn is_deleting(&self) -> bool;
    /// Returns `metadata.generation`; 0 when absent.
    fn generation(&self) -> i64;
    /// Returns `metadata.resourceVersion` as a number; 0 when absent.
    fn revision(&self) -> u64;
}

impl Object for Value {
    fn metadata(&self) -> Option<&Map<String, Value>> {
        self.get("metadata").and_then(Value::as_object)
    }

    fn metadata_mut(&mut self) -> &mut Map<String, Value> {
        if self.metadata().is_none() {
            self["metadata"] = Value::Object(Map::new());
        }
        match self.get_mut("metadata") {
            Some(Value::Object(metadata)) => metadata,
            _ => unreachable!("it was made an object above"),
        }
    }

    fn meta(&self, field: &str) -> &str {
        self.metadata()
            .and_then(|metadata| metadata.get(field))
            .and_then(Value::as_str)
            .unwrap_or_default()
    }

    fn set_meta(&mut self, field: &str, value: impl Into<Value>) {
        self.metadata_mut().insert(field.to_owned(), value.into());
    }

    fn unset_meta(&mut self, field: &str) {
        self.metadata_mut().remove(field);
    }

    fn adopt_meta(&mut self, field: &str, other: &Value) {
        match other.metadata().and_then(|metadata| metadata.get(field)) {
            Some(value) => self.set_meta(field, value.clone()),
            None => self.unset_meta(field),
        }
    }

    fn adopt(&mut self, field: &str, other: &Value) {
        let Some(fields) = self.as_object_mut() else { return };
        match other.get(field) {
            Some(value) => fields.insert(field.to_owned(), value.clone()),
            None => fields.remove(field),
        };
    }

    fn meta_list(&self, field: &str) -> Vec<String> {
        let list =
            self.metadata().and_then(|metadata| metadata.get(field)).and_then(Value::as_array);
        list.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    }

    fn is_deleting(&self) -> bool {
        !self.meta("deletionTimestamp").is_empty()
    }

    fn generation(&self) -> i64 {
        self.pointer("/metadata/generation").and_then(Value::as_i64).unwrap_or_default()
    }

    fn revision(&self) -> u64 {
        self.meta("resourceVersion").parse().unwrap_or_default()
    }
}

/// Returns the time `after` seconds from now as `metadata` writes it: UTC, in whole seconds.
pub fn timestamp(after: i64) -> String {
    let now = Timestamp::now();
    let at = now.checked_add(jiff::SignedDuration::from_secs(after)).unwrap_or(now);
    Timestamp::from_second(at.as_second()).unwrap_or(at).to_string()
}

/// The digits of a UUID.
const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// Returns a random UUID, version 4.
pub fn uuid() -> String {
    let bits = rand::random::<u128>() & !(0xf << 76) & !(0x3 << 62) | (0x4 << 76) | (0x2 << 62);
    let mut text = String::with_capacity(36);
    for (index, byte) in bits.to_be_bytes().into_iter().enumerate() {
        if matches!(index, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        text.push(char::from(DIGITS[usize::from(byte >> 4)]));
        text.push(char::from(DIGITS[usize::from(byte & 0xf)]));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uid_is_a_random_uuid() {
        let uid = uuid();
        let parts: Vec<&str> = uid.split('-').collect();
        assert_eq!(parts.iter().map(|part| part.len()).collect::<Vec<_>>(), [8, 4, 4, 4, 12]);
        assert!(parts[2].starts_with('4'), "{uid} is not of version 4");
        assert!(parts[3].starts_with(['8', '9', 'a', 'b']), "{uid} is not of the RFC's variant");
        assert_ne!(uid, uuid());
    }

    #[test]
    fn a_timestamp_has_whole_seconds() {
        let text = timestamp(0);
        assert_eq!(text.len(), "2026-01-01T00:00:00Z".len(), "{text}");
        assert!(timestamp(30) > text);
    }
}
