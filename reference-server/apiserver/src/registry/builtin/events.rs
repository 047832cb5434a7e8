//! The group `events.k8s.io/v1`: the events of the core group with newer field names.
//!
//! An event is stored once, in the form of the core group, and served in both groups.

use serde_json::{Map, Value, json};

use super::core::event;
use super::data::resource;
use super::{BuiltinType, FieldLabel, Hooks, Storage};
use kubeproof_apimachinery::schema::FieldError;

/// Fields with different names in this group and in the core group.
const RENAMED: [(&str, &str); 7] = [
    ("deprecatedCount", "count"),
    ("deprecatedFirstTimestamp", "firstTimestamp"),
    ("deprecatedLastTimestamp", "lastTimestamp"),
    ("deprecatedSource", "source"),
    ("note", "message"),
    ("regarding", "involvedObject"),
    ("reportingController", "reportingComponent"),
];

/// The fields of an event that may change.
const MUTABLE: [&str; 4] = ["apiVersion", "kind", "metadata", "series"];

pub(super) fn types() -> Vec<BuiltinType> {
    vec![BuiltinType {
        field_labels: FIELD_LABELS,
        columns: event::columns(),
        hooks: Hooks { validate, validate_create, validate_update, ..Hooks::NONE },
        storage: Some(Storage { ty: event::events, encode: to_core, decode: from_core }),
        ..resource("events.k8s.io", "v1", "events")
    }]
}

const FIELD_LABELS: &[FieldLabel] = &[
    FieldLabel { label: "regarding.kind", pointer: "/involvedObject/kind", absent: "" },
    FieldLabel { label: "regarding.namespace", pointer: "/involvedObject/namespace", absent: "" },
    FieldLabel { label: "regarding.name", pointer: "/involvedObject/name", absent: "" },
    FieldLabel { label: "regarding.uid", pointer: "/involvedObject/uid", absent: "" },
    FieldLabel { label: "regarding.apiVersion", pointer: "/involvedObject/apiVersion", absent: "" },
    FieldLabel {
        label: "regarding.resourceVersion",
        pointer: "/involvedObject/resourceVersion",
        absent: "",
    },
    FieldLabel { label: "regarding.fieldPath", pointer: "/involvedObject/fieldPath", absent: "" },
    FieldLabel { label: "reason", pointer: "/reason", absent: "" },
    FieldLabel { label: "reportingController", pointer: "/reportingComponent", absent: "" },
    FieldLabel { label: "type", pointer: "/type", absent: "" },
];

fn validate(event: &Value) -> Vec<FieldError> {
    event::validate_either(event, "reportingController")
}

/// A new event has the new form. The errors name the fields of the core group.
fn validate_create(event: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if !event["eventTime"].is_string() {
        errors.push(FieldError::required("eventTime", ""));
    }
    if !matches!(event["type"].as_str(), Some("Normal" | "Warning")) {
        errors.push(FieldError::invalid("type", &event["type"], "must be Normal or Warning"));
    }
    for (field, core) in RENAMED.iter().filter(|(field, _)| field.starts_with("deprecated")) {
        let given = &event[field];
        if !(given.is_null() || *given == json!({})) {
            errors.push(FieldError::invalid(core, given, "needs to be unset"));
        }
    }
    errors
}

/// The fields of an event do not change. The series counts later occurrences.
fn validate_update(new: &Value, old: &Value) -> Vec<FieldError> {
    let (Some(is), Some(was)) = (new.as_object(), old.as_object()) else { return Vec::new() };
    let mut fields: Vec<&String> = is.keys().chain(was.keys()).collect();
    fields.sort_unstable();
    fields.dedup();
    fields.retain(|field| !MUTABLE.contains(&field.as_str()) && is.get(*field) != was.get(*field));
    fields
        .into_iter()
        .map(|field| FieldError::invalid(field, &new[field], "field is immutable"))
        .collect()
}

fn to_core(event: &mut Value) {
    rename(event, &RENAMED.iter().map(|(here, core)| (*here, *core)));
    if let Some(fields) = event.as_object_mut() {
        for (field, value) in [("involvedObject", json!({})), ("source", json!({}))] {
            fields.entry(field).or_insert(value);
        }
        for field in ["reportingComponent", "reportingInstance"] {
            fields.entry(field).or_insert_with(|| json!(""));
        }
    }
}

fn from_core(event: &mut Value) {
    rename(event, &RENAMED.iter().map(|(here, core)| (*core, *here)));
    let filled_in = |value: &Value| *value == json!({}) || *value == json!("");
    if let Some(fields) = event.as_object_mut() {
        fields.retain(|name, value| name == "metadata" || !filled_in(value));
    }
}

fn rename<'a>(event: &mut Value, names: &(impl Iterator<Item = (&'a str, &'a str)> + Clone)) {
    let Some(fields) = event.as_object_mut() else { return };
    let renamed: Map<String, Value> = std::mem::take(fields)
        .into_iter()
        .map(|(name, value)| match names.clone().find(|(from, _)| *from == name) {
            Some((_, to)) => (to.to_owned(), value),
            None => (name, value),
        })
        .collect();
    *fields = renamed;
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn event() -> Value {
        json!({
            "metadata": {"namespace": "a"}, "regarding": {"namespace": "a"}, "note": "n",
            "action": "Act",
            "eventTime": "2024-05-06T07:08:09.000000Z", "reportingController": "example.com/c",
            "reportingInstance": "i", "reason": "Because", "type": "Normal",
        })
    }

    #[test]
    fn what_goes_to_the_core_group_comes_back_the_same() {
        let mut stored = event();
        to_core(&mut stored);
        assert_eq!(stored["message"], "n");
        assert_eq!(stored["involvedObject"], json!({"namespace": "a"}));
        assert_eq!(stored["reportingComponent"], "example.com/c");
        assert!(stored.get("note").is_none() && stored.get("regarding").is_none());
        from_core(&mut stored);
        assert_eq!(stored, event());
    }

    #[rstest]
    #[case("eventTime", Value::Null, &["eventTime"])]
    #[case("action", json!(""), &["action"])]
    #[case("type", json!("Odd"), &["type"])]
    #[case("reportingController", json!("a b"), &["reportingController"])]
    #[case("note", json!("x".repeat(1025)), &["message"])]
    #[case("deprecatedCount", json!(1), &["count"])]
    fn a_new_event_is_complete(
        #[case] field: &str,
        #[case] value: Value,
        #[case] expected: &[&str],
    ) {
        let errors = |event: &Value| {
            let errors = [validate(event), validate_create(event)].concat();
            errors.into_iter().map(|error| error.field).collect::<Vec<_>>()
        };
        assert_eq!(errors(&event()), [""; 0]);
        let mut wrong = event();
        wrong[field] = value;
        assert_eq!(errors(&wrong), expected);
    }

    #[test]
    fn only_the_series_changes() {
        let mut new = event();
        new["series"] = json!({"count": 2});
        assert_eq!(validate_update(&new, &event()), []);
        new["note"] = json!("other");
        assert_eq!(validate_update(&new, &event()).len(), 1);
    }
}
