//! `replicationcontrollers`.

use serde_json::{Value, json};

use super::pod::complete_spec;
use crate::registry::builtin::data::resource;
use crate::registry::builtin::{BuiltinType, FieldLabel, Hooks, restore};
use crate::registry::builtin::{apps, warnings, workload};
use kubeproof_apimachinery::table::column::{Cell, age, column};

use kubeproof_apimachinery::schema::FieldError;

pub(super) fn replication_controllers() -> BuiltinType {
    BuiltinType {
        field_labels: &[FieldLabel {
            label: "status.replicas",
            pointer: "/status/replicas",
            absent: "0",
        }],
        columns: vec![
            column("Desired", "integer", Cell::Pointer("/spec/replicas")),
            column("Current", "integer", Cell::Pointer("/status/replicas")),
            column(
                "Ready",
                "integer",
                Cell::Computed(|object| workload::number(object, "/status/readyReplicas")),
            ),
            age(),
        ]
        .into_iter()
        .chain(apps::template_columns())
        .collect(),
        hooks: Hooks {
            default: complete,
            validate,
            validate_status: workload::validate_status,
            warn: warnings::workloads::replication_controller,
            prepare_create: workload::prepare_create,
            prepare_update: |new, old| restore(new, old, "status"),
            ..Hooks::NONE
        },
        ..resource("", "v1", "replicationcontrollers")
    }
}

/// The labels of the template are the defaults of the selector and of the labels of the controller.
fn complete(controller: &mut Value) {
    complete_spec(&mut controller["spec"]["template"]["spec"]);
    let labels = controller["spec"]["template"]["metadata"]["labels"].clone();
    if labels.is_object() {
        if controller["spec"].get("selector").is_none_or(|selector| *selector == json!({})) {
            controller["spec"]["selector"] = labels.clone();
        }
        if controller["metadata"].get("labels").is_none_or(|own| *own == json!({})) {
            controller["metadata"]["labels"] = labels;
        }
    }
}

fn validate(controller: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let selector = &controller["spec"]["selector"];
    if selector.as_object().is_none_or(serde_json::Map::is_empty) {
        errors.push(FieldError::required("spec.selector", ""));
    }
    errors.extend(workload::validate_template(controller, &json!({ "matchLabels": selector })));
    errors
}
