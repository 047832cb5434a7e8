//! `events` of the core group.

use serde_json::{Value, json};

use crate::registry::builtin::data::resource;
use crate::registry::builtin::{BuiltinType, FieldLabel, Hooks};
use kubeproof_apimachinery::table::column::{Cell, Column, column, wide};

use kubeproof_apimachinery::schema::FieldError;

pub(in crate::registry::builtin) fn events() -> BuiltinType {
    BuiltinType {
        field_labels: FIELD_LABELS,
        columns: columns(),
        hooks: Hooks { validate, ..Hooks::NONE },
        ..resource("", "v1", "events")
    }
}

const FIELD_LABELS: &[FieldLabel] = &[
    FieldLabel { label: "involvedObject.kind", pointer: "/involvedObject/kind", absent: "" },
    FieldLabel {
        label: "involvedObject.namespace",
        pointer: "/involvedObject/namespace",
        absent: "",
    },
    FieldLabel { label: "involvedObject.name", pointer: "/involvedObject/name", absent: "" },
    FieldLabel { label: "involvedObject.uid", pointer: "/involvedObject/uid", absent: "" },
    FieldLabel {
        label: "involvedObject.apiVersion",
        pointer: "/involvedObject/apiVersion",
        absent: "",
    },
    FieldLabel {
        label: "involvedObject.resourceVersion",
        pointer: "/involvedObject/resourceVersion",
        absent: "",
    },
    FieldLabel {
        label: "involvedObject.fieldPath",
        pointer: "/involvedObject/fieldPath",
        absent: "",
    },
    FieldLabel { label: "reason", pointer: "/reason", absent: "" },
    FieldLabel { label: "reportingComponent", pointer: "/reportingComponent", absent: "" },
    FieldLabel { label: "source", pointer: "/source/component", absent: "" },
    FieldLabel { label: "type", pointer: "/type", absent: "" },
];

/// Returns whether an event is in the namespace of its object. Events about cluster-scoped objects
/// are in `default`.
pub(in crate::registry::builtin) fn lives_beside(event: &Value, about: &Value) -> bool {
    let own = text(&event["metadata"], "namespace");
    match text(about, "namespace") {
        "" => matches!(own, "" | "default" | "kube-system"),
        about => about == own,
    }
}

fn validate(event: &Value) -> Vec<FieldError> {
    let about = &event["involvedObject"]["namespace"];
    if lives_beside(event, &event["involvedObject"]) {
        Vec::new()
    } else {
        let about = if about.is_null() { &json!("") } else { about };
        vec![FieldError::invalid(
            "involvedObject.namespace",
            about,
            "does not match event.namespace",
        )]
    }
}

/// Returns the columns of events. The cells of an event are the same in both groups.
pub(in crate::registry::builtin) fn columns() -> Vec<Column> {
    let last_seen = Cell::AgeOf(&[
        "/series/lastObservedTime",
        "/lastTimestamp",
        "/deprecatedLastTimestamp",
        "/firstTimestamp",
        "/deprecatedFirstTimestamp",
        "/eventTime",
    ]);
    let first_seen = Cell::AgeOf(&["/firstTimestamp", "/deprecatedFirstTimestamp", "/eventTime"]);
    let name = Column { format: "name".into(), ..wide("Name", "string", Cell::Pointer(NAME)) };
    vec![
        column("Last Seen", "string", last_seen),
        column("Type", "string", Cell::Computed(|event| json!(text(event, "type")))),
        column("Reason", "string", Cell::Computed(|event| json!(text(event, "reason")))),
        column("Object", "string", Cell::Computed(about)),
        wide("Subobject", "string", Cell::Computed(part)),
        wide("Source", "string", Cell::Computed(source)),
        column("Message", "string", Cell::Computed(|event| json!(message(event)))),
        wide("First Seen", "string", first_seen),
        wide("Count", "string", Cell::Computed(count)),
        name,
    ]
}

/// The JSON pointer to the name of an event.
const NAME: &str = "/metadata/name";

/// Returns a field by its name in the core group or in the group `events.k8s.io`.
fn either<'e>(event: &'e Value, core: &str, newer: &str) -> &'e Value {
    event.get(core).or_else(|| event.get(newer)).unwrap_or(&Value::Null)
}

fn about(event: &Value) -> Value {
    let object = either(event, "involvedObject", "regarding");
    let kind = text(object, "kind").to_lowercase();
    match text(object, "name") {
        "" => json!(kind),
        name => json!(format!("{kind}/{name}")),
    }
}

fn part(event: &Value) -> Value {
    json!(text(either(event, "involvedObject", "regarding"), "fieldPath"))
}

fn message(event: &Value) -> &str {
    either(event, "message", "note").as_str().unwrap_or_default().trim()
}

fn count(event: &Value) -> Value {
    let single = either(event, "count", "deprecatedCount").as_i64().filter(|count| *count > 0);
    json!(event["series"]["count"].as_i64().or(single).unwrap_or(1))
}

fn source(event: &Value) -> Value {
    let source = either(event, "source", "deprecatedSource");
    let controller = either(event, "reportingComponent", "reportingController");
    let (mut component, mut host) = (text(source, "component"), text(source, "host"));
    if component.is_empty() {
        component = controller.as_str().unwrap_or_default();
    }
    if host.is_empty() {
        host = text(event, "reportingInstance");
    }
    if host.is_empty() { json!(component) } else { json!(format!("{component}, {host}")) }
}

fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object.get(field).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("a", json!({"namespace": "a"}), true)]
    #[case("a", json!({"namespace": "b"}), false)]
    #[case("a", json!({}), false)]
    #[case("default", json!({}), true)]
    fn an_event_lives_beside_its_object(
        #[case] own: &str,
        #[case] about: Value,
        #[case] good: bool,
    ) {
        let event = json!({"metadata": {"namespace": own}, "involvedObject": about});
        assert_eq!(validate(&event).is_empty(), good);
    }
}
