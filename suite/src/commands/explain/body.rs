//! Bodies of example exchanges, on one line.

use std::io::{Result, Write};

use kubeproof_cases::case::Case;
use serde::Serialize;
use serde_json::Value;
use serde_json::ser::Formatter;

use super::write_steps;

/// Maximum characters of a body.
const MAX: usize = 400;

/// The form of the bodies in the example of a case.
#[derive(Clone, Copy)]
pub(super) struct Bodies {
    managed_fields: bool,
}

impl Bodies {
    /// Like kubectl, an example leaves out managed fields. A case about them shows them.
    pub(super) fn of(case: &Case) -> Self {
        let mut steps = Vec::new();
        // A vector accepts all writes.
        _ = write_steps(case, &mut steps);
        Self { managed_fields: String::from_utf8_lossy(&steps).contains("managedFields") }
    }

    pub(super) fn response(self, body: &[u8]) -> String {
        match serde_json::from_slice(body) {
            Ok(value) => self.object(value),
            Err(_) => shorten(&String::from_utf8_lossy(body)),
        }
    }

    pub(super) fn object(self, mut object: Value) -> String {
        if !self.managed_fields {
            remove_managed_fields(&mut object);
            let items = object.get_mut("items").and_then(Value::as_array_mut);
            items.into_iter().flatten().for_each(remove_managed_fields);
        }
        shorten(&spaced(&object))
    }
}

/// Returns all that the bytes of a request contain, also if they are not a correct object.
pub(super) fn request(body: &[u8]) -> String {
    match serde_json::from_slice::<Value>(body) {
        Ok(value) if value.to_string().as_bytes() == body => shorten(&spaced(&value)),
        _ => shorten(&String::from_utf8_lossy(body)),
    }
}

/// Returns JSON with spaces, so that lines can wrap and the search of the site finds the words.
fn spaced(value: &Value) -> String {
    let mut bytes = Vec::new();
    let mut serializer = serde_json::Serializer::with_formatter(&mut bytes, Spaced);
    // A vector accepts all writes, and all values are JSON.
    _ = value.serialize(&mut serializer);
    String::from_utf8_lossy(&bytes).into_owned()
}

struct Spaced;

impl Formatter for Spaced {
    fn begin_array_value<W: Write + ?Sized>(&mut self, out: &mut W, first: bool) -> Result<()> {
        if first { Ok(()) } else { out.write_all(b", ") }
    }

    fn begin_object_key<W: Write + ?Sized>(&mut self, out: &mut W, first: bool) -> Result<()> {
        if first { Ok(()) } else { out.write_all(b", ") }
    }

    fn begin_object_value<W: Write + ?Sized>(&mut self, out: &mut W) -> Result<()> {
        out.write_all(b": ")
    }
}

fn remove_managed_fields(object: &mut Value) {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
}

/// Returns the beginning of a text on one line.
pub(super) fn shorten(text: &str) -> String {
    let line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(MAX) {
        Some((end, _)) => format!("{} ..", &line[..end]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn managed_fields_are_left_out_of_objects_and_items() {
        let bodies = Bodies { managed_fields: false };
        let object = json!({"metadata": {"managedFields": [{}], "name": "a"}});
        let list = json!({"items": [object], "metadata": {"managedFields": 1}});
        assert_eq!(
            bodies.response(list.to_string().as_bytes()),
            r#"{"items": [{"metadata": {"name": "a"}}], "metadata": {}}"#
        );
        assert_eq!(request(br#"{"a":[1,2]}"#), r#"{"a": [1, 2]}"#);
        assert_eq!(request(br#"{"a":1,"a":2}"#), r#"{"a":1,"a":2}"#);
        assert_eq!(bodies.response(b"not\nJSON"), "not JSON");
        let all = Bodies { managed_fields: true };
        assert_eq!(all.object(object.clone()), spaced(&object));
    }
}
