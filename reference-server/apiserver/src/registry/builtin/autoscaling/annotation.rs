//! The text of annotations that hold the fields of other versions: JSON in the order of Go's types.

use serde_json::{Map, Value};

/// The fields of all types in an order that fits each of them.
const ORDER: [&str; 39] = [
    "type",
    "status",
    "lastTransitionTime",
    "reason",
    "message",
    "object",
    "pods",
    "resource",
    "containerResource",
    "external",
    "kind",
    "name",
    "apiVersion",
    "target",
    "metricName",
    "metricSelector",
    "targetValue",
    "currentValue",
    "targetAverageUtilization",
    "currentAverageUtilization",
    "targetAverageValue",
    "currentAverageValue",
    "container",
    "selector",
    "averageValue",
    "matchLabels",
    "matchExpressions",
    "key",
    "operator",
    "values",
    "ScaleUp",
    "ScaleDown",
    "StabilizationWindowSeconds",
    "SelectPolicy",
    "Policies",
    "Tolerance",
    "Type",
    "Value",
    "PeriodSeconds",
];

/// The directions of a behavior, and the fields of the rules of one.
const DIRECTIONS: [&str; 2] = ["ScaleUp", "ScaleDown"];
const RULES: [&str; 4] = ["StabilizationWindowSeconds", "SelectPolicy", "Policies", "Tolerance"];

/// Returns a value as JSON with its fields in order.
pub(super) fn text(value: &Value) -> String {
    let mut text = String::new();
    write(value, true, &mut text);
    text
}

/// Adds the absent fields of a behavior as null, because their types always write them.
pub(super) fn fill_in(behavior: &mut Value) {
    for direction in DIRECTIONS {
        if let Some(rules) = behavior.get_mut(direction).and_then(Value::as_object_mut) {
            for name in RULES {
                rules.entry(name).or_insert(Value::Null);
            }
        } else if let Some(fields) = behavior.as_object_mut() {
            fields.insert(direction.to_owned(), Value::Null);
        }
    }
}

fn write(value: &Value, has_order: bool, text: &mut String) {
    match value {
        Value::Object(fields) => {
            text.push('{');
            for (index, (name, value)) in sorted(fields, has_order).into_iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                text.push_str(&Value::from(name.as_str()).to_string());
                text.push(':');
                write(value, has_order && name != "matchLabels", text);
            }
            text.push('}');
        }
        Value::Array(items) => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                write(item, has_order, text);
            }
            text.push(']');
        }
        other => text.push_str(&other.to_string()),
    }
}

fn sorted(fields: &Map<String, Value>, has_order: bool) -> Vec<(&String, &Value)> {
    let mut fields: Vec<_> = fields.iter().collect();
    let place = |name: &str| ORDER.iter().position(|known| *known == name).unwrap_or(ORDER.len());
    fields.sort_by_key(|(name, _)| (if has_order { place(name) } else { 0 }, *name));
    fields
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_have_an_order() {
        let selector = json!({"matchLabels": {"name": "b", "kind": "a"}});
        let metric = json!({"pods": {"selector": selector, "metricName": "m"}, "type": "Pods"});
        let labels = r#"{"matchLabels":{"kind":"a","name":"b"}}"#;
        let pods = format!("{{\"metricName\":\"m\",\"selector\":{labels}}}");
        let expected = format!("[{{\"type\":\"Pods\",\"pods\":{pods}}}]");
        assert_eq!(text(&json!([metric])), expected);
    }

    #[test]
    fn a_behavior_has_all_fields() {
        let mut behavior = json!({"ScaleUp": {"SelectPolicy": "Max"}});
        fill_in(&mut behavior);
        let rules = "{\"StabilizationWindowSeconds\":null,\"SelectPolicy\":\"Max\",\
                     \"Policies\":null,\"Tolerance\":null}";
        let expected = format!("{{\"ScaleUp\":{rules},\"ScaleDown\":null}}");
        assert_eq!(text(&behavior), expected);
    }
}
