//! Finds the mistakes in an applied configuration that does not fit its type.

use std::collections::BTreeSet;

use serde_json::Value;

use super::shape::{keying, step};
use crate::go_values::{go_text, go_type};
use crate::schema::{Kind, Schema};

/// Returns the mistakes, each with its path: unknown fields, other types, and items of lists that
/// have no identity or the same one.
pub fn mistakes(config: &Value, schema: &Schema) -> Vec<String> {
    let mut found = Vec::new();
    walk(config, schema, "", &mut found);
    found
}

fn walk(value: &Value, schema: &Schema, path: &str, found: &mut Vec<String>) {
    if value.is_null() {
        return;
    }
    if let Some(why) = wrong_type(value, schema) {
        found.push(format!("{path}: {why}"));
        return;
    }
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                let path = format!("{path}.{name}");
                match schema.child(name) {
                    Some(child) => walk(field, child, &path, found),
                    None if schema.preserve_unknown => {}
                    None => found.push(format!("{path}: field not declared in schema")),
                }
            }
        }
        Value::Array(list) => walk_list(list, schema, path, found),
        _ => {}
    }
}

fn walk_list(list: &[Value], schema: &Schema, path: &str, found: &mut Vec<String>) {
    let Some(items) = &schema.items else { return };
    let Some(keys) = keying(schema) else {
        for (index, item) in list.iter().enumerate() {
            walk(item, items, &format!("{path}[{index}]"), found);
        }
        return;
    };
    let mut known = BTreeSet::new();
    for (index, item) in list.iter().enumerate() {
        let step = match no_identity(item, keys) {
            Some(why) => Err(why.to_owned()),
            None => step(item, schema, keys).ok_or_else(|| no_keys(keys)),
        };
        match step {
            Ok(step) => {
                let element = format!("{path}{step}");
                if !known.insert(step.to_string()) {
                    found.push(format!("{path}: duplicate entries for key {step}"));
                }
                walk(item, items, &element, found);
            }
            // The other items have no path either.
            Err(why) => {
                found.push(format!("{path}: element {index}: {why}"));
                return;
            }
        }
    }
}

fn no_identity(item: &Value, keys: &[String]) -> Option<&'static str> {
    match (item, keys.is_empty()) {
        (Value::Null, false) => Some("associative list with keys may not have a null element"),
        (Value::Object(_), false) => None,
        (_, false) => Some("associative list with keys may not have non-map elements"),
        (Value::Object(_), true) => {
            Some("associative list without keys has an element that's a map type")
        }
        (Value::Array(_), true) => Some("not supported: associative list with lists as elements"),
        (Value::Null, true) => {
            Some("associative list without keys has an element that's an explicit null")
        }
        (_, true) => None,
    }
}

fn no_keys(keys: &[String]) -> String {
    let keys: Vec<_> = keys.iter().map(|key| format!("{key:?}")).collect();
    format!(
        "associative list with keys has an element that omits all key fields [{}] (and doesn't \
         have default values for any key fields)",
        keys.join(" ")
    )
}

/// Returns why a value has another type. The format of a string is checked later.
fn wrong_type(value: &Value, schema: &Schema) -> Option<String> {
    let shown = go_text(value);
    let why = match schema.kind? {
        Kind::Object if !value.is_object() => format!("expected map, got &{{{shown}}}"),
        Kind::Array if !value.is_array() => format!("expected list, got &{{{shown}}}"),
        Kind::Boolean if !value.is_boolean() => format!("expected boolean, got &{{{shown}}}"),
        Kind::String if !value.is_string() && schema.format.is_none() => {
            format!("expected string, got &value.valueUnstructured{{Value:{shown}}}")
        }
        Kind::Integer | Kind::Number if !value.is_number() => {
            format!("expected numeric (int or float), got {}", go_type(value))
        }
        _ => return None,
    };
    Some(why)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;
    use crate::schema::ListType;
    use crate::schema::build::anything;

    fn of(kind: Kind) -> Schema {
        Schema { kind: Some(kind), ..Schema::default() }
    }

    fn object(fields: Vec<(&str, Schema)>) -> Schema {
        let fields = fields.into_iter().map(|(name, schema)| (name.to_owned(), schema.into()));
        Schema { properties: fields.collect(), ..of(Kind::Object) }
    }

    fn schema() -> Schema {
        let item = object(vec![("name", of(Kind::String)), ("on", of(Kind::Boolean))]);
        let named = Schema {
            items: Some(item.into()),
            list_type: ListType::Map,
            list_map_keys: vec!["name".to_owned()],
            ..of(Kind::Array)
        };
        let key = Schema { always_set: true, ..of(Kind::String) };
        let filled = Schema {
            items: Some(object(vec![("name", key)]).into()),
            list_map_keys: vec!["name".to_owned()],
            ..of(Kind::Array)
        };
        let set = Schema {
            items: Some(of(Kind::String).into()),
            list_type: ListType::Set,
            ..of(Kind::Array)
        };
        object(vec![
            ("named", named),
            ("filled", filled),
            ("set", set),
            ("count", of(Kind::Integer)),
            ("any", Schema { preserve_unknown: true, ..anything() }),
        ])
    }

    #[rstest]
    #[case(json!({"named": [{"name": "a", "on": true}], "set": ["b"], "count": null}), &[])]
    #[case(json!({"any": {"a": [1]}}), &[])]
    #[case(json!({"filled": [{}, {"name": "a"}]}), &[])]
    #[case(json!({"filled": [{}, {}]}), &[".filled: duplicate entries for key [name=\"\"]"])]
    #[case(json!({"other": 1}), &[".other: field not declared in schema"])]
    #[case(json!({"named": {}}), &[".named: expected list, got &{map[]}"])]
    #[case(json!({"named": [{"name": "a", "on": 1}]}),
           &[".named[name=\"a\"].on: expected boolean, got &{1}"])]
    #[case(json!({"named": [{"name": 1}]}),
           &[".named[name=1].name: expected string, got &value.valueUnstructured{Value:1}"])]
    #[case(json!({"named": [{"name": "a"}, {"name": "a"}]}),
           &[".named: duplicate entries for key [name=\"a\"]"])]
    #[case(json!({"named": [null]}),
           &[".named: element 0: associative list with keys may not have a null element"])]
    #[case(json!({"named": [{}]}),
           &[".named: element 0: associative list with keys has an element that omits all key \
              fields [\"name\"] (and doesn't have default values for any key fields)"])]
    #[case(json!({"set": ["a", "a"]}), &[".set: duplicate entries for key [=\"a\"]"])]
    #[case(json!({"set": [{}]}),
           &[".set: element 0: associative list without keys has an element that's a map type"])]
    #[case(json!({"count": "1"}), &[".count: expected numeric (int or float), got string"])]
    #[case(json!([]), &[": expected map, got &{[]}"])]
    fn a_configuration_has_a_type(#[case] config: Value, #[case] expected: &[&str]) {
        assert_eq!(mistakes(&config, &schema()), expected);
    }
}
