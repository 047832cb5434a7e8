//! `events` of the core group.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::builtin::columns::{Cell, column, wide};
use crate::builtin::{BuiltinType, FieldLabel, Hooks};
use crate::faults::Faults;
use crate::schema::build::{definitions, int32, micro_time, object, string, time};
use crate::schema::meta::with_type_meta;
use crate::schema::{FieldError, Schema};

definitions! {
    "io.k8s.api.core.v1"

    object_reference ObjectReference {
        apiVersion: string(), fieldPath: string(), kind: string(), name: string(), namespace: string(),
        resourceVersion: string(), uid: string(),
    }
    event_series EventSeries { count: int32(), lastObservedTime: micro_time() }
    event_source EventSource { component: string(), host: string() }
}

pub(in crate::builtin) fn events() -> BuiltinType {
    let schema = with_type_meta(object("io.k8s.api.core.v1.Event"))
        .field("action", string())
        .field("count", int32())
        .field("eventTime", micro_time())
        .field("firstTimestamp", time())
        .field("involvedObject", object_reference().or_empty())
        .field("lastTimestamp", time())
        .field("message", string())
        .field("reason", string())
        .field("related", object_reference())
        .always("reportingComponent", string())
        .always("reportingInstance", string())
        .field("series", event_series())
        .field("source", event_source().or_empty())
        .field("type", string());
    BuiltinType {
        short_names: &["ev"],
        field_labels: FIELD_LABELS,
        columns: vec![
            column(
                "Last Seen",
                "string",
                Cell::AgeOf(&["/lastTimestamp", "/series/lastObservedTime", "/firstTimestamp", "/eventTime"]),
            ),
            column("Type", "string", Cell::Pointer("/type")),
            column("Reason", "string", Cell::Pointer("/reason")),
            column("Object", "string", Cell::Computed(involved)),
            wide("Source", "string", Cell::Computed(source)),
            column("Message", "string", Cell::Computed(|event| json!(text(event, "message").trim()))),
            wide("First Seen", "string", Cell::AgeOf(&["/firstTimestamp", "/eventTime"])),
            wide(
                "Count",
                "string",
                Cell::Computed(|event| json!(event["count"].as_i64().unwrap_or(1).to_string())),
            ),
        ],
        hooks: Hooks { validate, ..Hooks::NONE },
        ..BuiltinType::namespaced("", "v1", "Event", "events", Arc::new(schema))
    }
}

const FIELD_LABELS: &[FieldLabel] = &[
    FieldLabel { label: "involvedObject.kind", pointer: "/involvedObject/kind", absent: "" },
    FieldLabel { label: "involvedObject.namespace", pointer: "/involvedObject/namespace", absent: "" },
    FieldLabel { label: "involvedObject.name", pointer: "/involvedObject/name", absent: "" },
    FieldLabel { label: "involvedObject.uid", pointer: "/involvedObject/uid", absent: "" },
    FieldLabel { label: "involvedObject.apiVersion", pointer: "/involvedObject/apiVersion", absent: "" },
    FieldLabel {
        label: "involvedObject.resourceVersion",
        pointer: "/involvedObject/resourceVersion",
        absent: "",
    },
    FieldLabel { label: "involvedObject.fieldPath", pointer: "/involvedObject/fieldPath", absent: "" },
    FieldLabel { label: "reason", pointer: "/reason", absent: "" },
    FieldLabel { label: "reportingComponent", pointer: "/reportingComponent", absent: "" },
    FieldLabel { label: "source", pointer: "/source/component", absent: "" },
    FieldLabel { label: "type", pointer: "/type", absent: "" },
];

/// An event lives beside the object that it is about; those about cluster-scoped objects live in `default`.
pub(in crate::builtin) fn lives_beside(event: &Value, about: &Value) -> bool {
    let own = text(&event["metadata"], "namespace");
    match text(about, "namespace") {
        "" => matches!(own, "" | "default" | "kube-system"),
        about => about == own,
    }
}

fn validate(event: &Value, _: Faults) -> Vec<FieldError> {
    let about = &event["involvedObject"]["namespace"];
    if lives_beside(event, &event["involvedObject"]) {
        Vec::new()
    } else {
        let about = if about.is_null() { &json!("") } else { about };
        vec![FieldError::invalid("involvedObject.namespace", about, "does not match event.namespace")]
    }
}

fn involved(event: &Value) -> Value {
    let object = &event["involvedObject"];
    json!(format!("{}/{}", text(object, "kind").to_lowercase(), text(object, "name")))
}

fn source(event: &Value) -> Value {
    let (component, host) = (text(&event["source"], "component"), text(&event["source"], "host"));
    let component = if component.is_empty() { text(event, "reportingComponent") } else { component };
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
    fn an_event_lives_beside_its_object(#[case] own: &str, #[case] about: Value, #[case] good: bool) {
        let event = json!({"metadata": {"namespace": own}, "involvedObject": about});
        assert_eq!(validate(&event, Faults::none()).is_empty(), good);
    }
}
