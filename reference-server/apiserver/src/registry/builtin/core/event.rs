//! `events` of the core group.

use serde_json::{Value, json};

use crate::registry::builtin::data::resource;
use crate::registry::builtin::{BuiltinType, FieldLabel, Hooks, NameRule};
use kubeproof_apimachinery::table::column::{Cell, Column, column, wide};

use kubeproof_apimachinery::object::validation::syntax::Syntax;
use kubeproof_apimachinery::schema::{FieldError, Path};

pub(in crate::registry::builtin) fn events() -> BuiltinType {
    BuiltinType {
        field_labels: FIELD_LABELS,
        columns: columns(),
        // kube-apiserver does not check the names of these events.
        name_rule: NameRule::PathSegment,
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

/// The maximum number of bytes of the reporting instance, the action and the reason.
const MAX_TEXT: usize = 128;
/// The maximum number of bytes of the message.
const MAX_MESSAGE: usize = 1024;

/// Returns the errors of an event of either group. Events of the new form have a time of their own
/// and say who reports them. As in kube-apiserver, errors name the fields of the core group.
pub(in crate::registry::builtin) fn validate_either(
    event: &Value,
    controller: &str,
) -> Vec<FieldError> {
    let own = text(&event["metadata"], "namespace");
    let about = text(either(event, "involvedObject", "regarding"), "namespace");
    let is_new = event["eventTime"].is_string();
    let mut errors = Vec::new();
    let lives_beside = match about {
        "" if is_new => matches!(own, "default" | "kube-system"),
        "" => matches!(own, "" | "default"),
        _ => is_new || about == own,
    };
    if !lives_beside {
        let why = "does not match event.namespace";
        errors.push(FieldError::invalid("involvedObject.namespace", &json!(about), why));
    }
    if !is_new {
        return errors;
    }
    let reporter = text(event, controller);
    if reporter.is_empty() {
        errors.push(FieldError::required(controller, ""));
    }
    errors.extend(Syntax::LabelKey.errors(reporter, Path::Root.field(controller)));
    for field in ["reportingInstance", "action", "reason"] {
        let value = text(event, field);
        if value.is_empty() {
            errors.push(FieldError::required(field, ""));
        }
        errors.extend(too_long(field, value, MAX_TEXT));
    }
    let message = either(event, "message", "note").as_str().unwrap_or_default();
    errors.extend(too_long("message", message, MAX_MESSAGE));
    errors
}

fn too_long(field: &str, value: &str, most: usize) -> Option<FieldError> {
    let why = format!("can have at most {most} characters");
    (value.len() > most).then(|| FieldError::invalid(field, &json!(""), &why))
}

fn validate(event: &Value) -> Vec<FieldError> {
    validate_either(event, "reportingComponent")
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

    #[rstest]
    #[case("reportingComponent", json!(""), &["reportingComponent"; 3])]
    #[case("reportingInstance", json!(""), &["reportingInstance"])]
    #[case("action", json!("x".repeat(129)), &["action"])]
    #[case("message", json!("x".repeat(1025)), &["message"])]
    #[case("involvedObject", json!({"namespace": "other"}), &[])]
    #[case("involvedObject", json!({}), &["involvedObject.namespace"])]
    fn an_event_with_a_time_names_its_reporter(
        #[case] field: &str,
        #[case] value: Value,
        #[case] expected: &[&str],
    ) {
        let mut event = json!({
            "metadata": {"namespace": "a"}, "involvedObject": {"namespace": "a"}, "action": "Act",
            "eventTime": "2024-05-06T07:08:09.000000Z", "reportingComponent": "example.com/c",
            "reportingInstance": "i", "reason": "Because",
        });
        event[field] = value;
        let errors = validate(&event);
        assert_eq!(errors.iter().map(|error| &*error.field).collect::<Vec<_>>(), expected);
    }
}
