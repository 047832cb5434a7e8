//! The validation of built-in types beyond the keywords of OpenAPI.
//!
//! Custom resources have none of it.

use std::collections::HashSet;

use serde_json::Value;

use super::{FieldError, Path};
use crate::object::validation::syntax::Syntax;

/// Returns the mistakes of a value at a path.
pub type Check = fn(&Value, Path<'_>) -> Vec<FieldError>;

/// What a value must be besides its keywords.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Constraints {
    /// The syntax of a string, of the items of a list, or of the values of a map.
    pub syntax: Option<Syntax>,
    /// An empty string is checked, too. Otherwise it means an absent one.
    pub strict: bool,
    /// The syntax of the keys of a map.
    pub keys: Option<Syntax>,
    /// The field that identifies the items of a list. It is empty for the item itself.
    pub unique: Option<&'static str>,
    /// The field that differs in the items of a list. A duplicate is a mistake of its item.
    pub key: Option<&'static str>,
    /// The maximum number of items of a list, or of bytes of a string.
    pub most: Option<u64>,
    /// The items of a list with too many of them are not checked.
    pub stops: bool,
    /// The functions of the definition.
    pub checks: Vec<Check>,
}

impl Constraints {
    pub(super) fn errors(&self, value: &Value, path: Path<'_>) -> Vec<FieldError> {
        let mut errors = Vec::new();
        match value {
            Value::String(text) => self.text(text, path, &mut errors),
            Value::Array(items) => self.items(items, path, &mut errors),
            Value::Object(fields) => {
                for (key, value) in fields {
                    if let Some(syntax) = self.keys {
                        // kube-apiserver reports labels at the map itself.
                        let place = if syntax == Syntax::LabelKey { path } else { path.key(key) };
                        errors.extend(syntax.errors(key, place));
                    }
                    if let (Some(syntax), Some(text)) = (self.syntax, value.as_str()) {
                        let place = if syntax == Syntax::LabelValue { path } else { path.key(key) };
                        errors.extend(syntax.errors(text, place));
                    }
                }
            }
            _ => {}
        }
        errors.extend(self.checks.iter().flat_map(|check| check(value, path)));
        errors
    }

    fn text(&self, text: &str, path: Path<'_>, errors: &mut Vec<FieldError>) {
        if let Some(most) = self.most.filter(|most| text.len() as u64 > *most) {
            errors.push(FieldError::too_long(path, most));
        }
        if let Some(syntax) = self.syntax.filter(|_| self.strict || !text.is_empty()) {
            errors.extend(syntax.errors(text, path));
        }
    }

    /// Reports whether a list is too long for a check of its items.
    pub(super) fn stops_at(&self, items: &[Value]) -> bool {
        self.stops && self.most.is_some_and(|most| items.len() as u64 > most)
    }

    fn items(&self, items: &[Value], path: Path<'_>, errors: &mut Vec<FieldError>) {
        if let Some(most) = self.most.filter(|most| items.len() as u64 > *most) {
            errors.push(FieldError::too_many(path, items.len(), most));
        }
        if self.stops_at(items) {
            return;
        }
        let (mut known, mut keys) = (HashSet::new(), HashSet::new());
        for (index, item) in items.iter().enumerate() {
            let place = path.index(index);
            if let (Some(syntax), Some(text)) = (self.syntax, item.as_str()) {
                errors.extend(syntax.errors(text, place));
            }
            if let Some(field) = self.key {
                let key = item.get(field).and_then(Value::as_str).unwrap_or_default();
                if !keys.insert(key) {
                    errors.push(FieldError::duplicate(place, &Value::from(key)));
                }
            }
            match self.unique {
                Some("") if !known.insert(item) => errors.push(FieldError::duplicate(place, item)),
                Some(field) if !field.is_empty() => {
                    let key = item.get(field).filter(|key| *key != "");
                    if let Some(key) = key.filter(|key| !known.insert(key)) {
                        errors.push(FieldError::duplicate(place.field(field), key));
                    }
                }
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case(Constraints { syntax: Some(Syntax::DnsLabel), ..Constraints::default() },
           json!(["a", "B", ""]), &["f[1]", "f[2]"])]
    #[case(Constraints { syntax: Some(Syntax::DnsLabel), ..Constraints::default() },
        json!(""), &[])]
    #[case(Constraints { keys: Some(Syntax::ConfigKey), ..Constraints::default() },
           json!({"a": "", "b c": ""}), &["f[b c]"])]
    #[case(Constraints { unique: Some(""), ..Constraints::default() },
           json!(["a", "b", "a"]), &["f[2]"])]
    #[case(Constraints { unique: Some("name"), ..Constraints::default() },
           json!([{"name": "a"}, {"name": "a"}, {}, {}]), &["f[1].name"])]
    #[case(Constraints { key: Some("name"), ..Constraints::default() },
           json!([{"name": "a"}, {"name": "a"}, {}, {}]), &["f[1]", "f[3]"])]
    #[case(Constraints { most: Some(1), ..Constraints::default() }, json!([1, 2]), &["f"])]
    #[case(Constraints {
               most: Some(1), stops: true, unique: Some(""), ..Constraints::default()
           },
           json!([1, 1]), &["f"])]
    #[case(Constraints { most: Some(1), ..Constraints::default() }, json!("ab"), &["f"])]
    #[case(Constraints { checks: vec![|value, path| vec![FieldError::invalid(path, value, "")]],
           ..Constraints::default() }, json!({}), &["f"])]
    fn values_are_constrained(
        #[case] constraints: Constraints,
        #[case] value: Value,
        #[case] expected: &[&str],
    ) {
        let errors = constraints.errors(&value, Path::Root.field("f"));
        assert_eq!(errors.iter().map(|error| &*error.field).collect::<Vec<_>>(), expected);
    }
}
