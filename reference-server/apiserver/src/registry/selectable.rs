//! Fields that field selectors support.

use serde_json::Value;

use super::builtin::FieldLabel;

/// A field that field selectors support.
#[derive(Clone, Debug)]
pub(crate) struct Selectable {
    pub(crate) label: String,
    pub(crate) pointer: String,
    pub(crate) absent: String,
}

impl From<&FieldLabel> for Selectable {
    fn from(field: &FieldLabel) -> Self {
        Self {
            label: field.label.to_owned(),
            pointer: field.pointer.to_owned(),
            absent: field.absent.to_owned(),
        }
    }
}

impl Selectable {
    /// Creates a field of a custom resource. An absent value counts as empty.
    pub(crate) fn new(label: &str, pointer: &str) -> Self {
        Self { label: label.to_owned(), pointer: pointer.to_owned(), absent: String::new() }
    }

    pub(super) fn value(&self, object: &Value) -> String {
        match object.pointer(&self.pointer) {
            None | Some(Value::Null) => self.absent.clone(),
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
        }
    }
}
