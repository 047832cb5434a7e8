//! Small groups of resources of the whole cluster: API services, runtime classes and priority
//! classes.

use std::sync::Arc;

use serde_json::{Value, json};

use super::checks::statuses::service_conditions;
use super::data::{hooks, resource};
use super::{BuiltinType, Hooks, immutable, warnings};
use crate::registry::strategy::Strategy;
use kubeproof_apimachinery::object::Object;
use kubeproof_apimachinery::object::validation::names;
use kubeproof_apimachinery::object::validation::syntax::Syntax;
use kubeproof_apimachinery::schema::{FieldError, Path};
use kubeproof_apimachinery::table::column::{Cell, age, column};

pub(super) fn types() -> Vec<BuiltinType> {
    vec![api_services(), runtime_classes(), priority_classes()]
}

fn api_services() -> BuiltinType {
    BuiltinType {
        has_generation: false,
        allows_unconditional_update: false,
        columns: vec![
            column("Service", "string", Cell::Computed(service)),
            column("Available", "string", Cell::Computed(available)),
            age(),
        ],
        hooks: Hooks {
            validate: validate_api_service,
            validate_status: service_conditions,
            is_new_generation: |_, _| false,
            ..hooks(true)
        },
        ..resource("apiregistration.k8s.io", "v1", "apiservices")
    }
}

fn validate_api_service(service: &Value) -> Vec<FieldError> {
    let spec = &service["spec"];
    let text = |field: &str| spec[field].as_str().unwrap_or_default();
    let mut errors = Vec::new();
    let expected = format!("{}.{}", text("version"), text("group"));
    if service.meta("name") != expected {
        let why = format!("must be `spec.version+\".\"+spec.group`: \"{expected}\"");
        errors.push(FieldError::invalid("metadata.name", &service["metadata"]["name"], &why));
    }
    if text("group").is_empty() && text("version") != "v1" {
        let why = "only v1 may have an empty group and it better be legacy kube";
        errors.push(FieldError::required("spec.group", why));
    }
    let (root, group) = (Path::Root, text("group"));
    let place = root.field("spec");
    if !group.is_empty() {
        errors.extend(Syntax::DnsSubdomain.errors(group, place.field("group")));
    }
    errors.extend(Syntax::Rfc1035Label.errors(text("version"), place.field("version")));
    if spec["service"].is_null() {
        if !text("caBundle").is_empty() {
            let why = "local APIServices may not have a caBundle";
            errors.push(FieldError::invalid("spec.caBundle", &spec["caBundle"], why));
        }
        if spec["insecureSkipTLSVerify"] == true {
            let why = "local APIServices may not have insecureSkipTLSVerify";
            errors.push(FieldError::invalid("spec.insecureSkipTLSVerify", &json!(true), why));
        }
        return errors;
    }
    let skips = spec["insecureSkipTLSVerify"] == true;
    if skips && !text("caBundle").is_empty() {
        let why = "may not be true if caBundle is present";
        let value = &spec["insecureSkipTLSVerify"];
        errors.push(FieldError::invalid("spec.insecureSkipTLSVerify", value, why));
    }
    errors
}

fn service(api: &Value) -> Value {
    let service = &api["spec"]["service"];
    let text = |field: &str| service[field].as_str().unwrap_or_default();
    if service.is_null() {
        return json!("Local");
    }
    json!(format!("{}/{}", text("namespace"), text("name")))
}

fn available(api: &Value) -> Value {
    let conditions = api["status"]["conditions"].as_array().into_iter().flatten();
    let condition = conditions.into_iter().find(|condition| condition["type"] == "Available");
    match condition {
        None => json!("Unknown"),
        Some(condition) if condition["status"] == "True" => json!("True"),
        Some(condition) => {
            let text = |field: &str| condition[field].as_str().unwrap_or_default();
            json!(format!("{} ({})", text("status"), text("reason")))
        }
    }
}

fn runtime_classes() -> BuiltinType {
    BuiltinType {
        has_generation: false,
        allows_create_on_update: true,
        allows_unconditional_update: false,
        columns: vec![column("Handler", "string", Cell::Pointer("/handler")), age()],
        hooks: Hooks {
            validate: |class| {
                let handler = class["handler"].as_str().unwrap_or_default();
                let wrong = if handler.is_empty() { Vec::new() } else { names::dns_label(handler) };
                let error = |why: &String| FieldError::invalid("handler", &class["handler"], why);
                let tolerations = class["scheduling"]["tolerations"].as_array();
                let tolerations = tolerations.map(Vec::as_slice).unwrap_or_default();
                let again = tolerations
                    .iter()
                    .enumerate()
                    .filter(|(index, toleration)| tolerations[..*index].contains(toleration));
                let again = again.map(|(index, toleration)| {
                    FieldError::duplicate(format!("scheduling.tolerations[{index}]"), toleration)
                });
                wrong.iter().map(error).chain(again).collect()
            },
            validate_update: |new, old| immutable(new, old, &["handler"]),
            is_new_generation: |_, _| false,
            warn: warnings::cluster::runtime_class,
            ..Hooks::NONE
        },
        ..resource("node.k8s.io", "v1", "runtimeclasses")
    }
}

/// The names of the classes that each cluster has.
pub(crate) const SYSTEM_CLASSES: [&str; 2] = ["system-node-critical", "system-cluster-critical"];

/// Keeps the classes of the system.
#[derive(Debug)]
struct PriorityClassStrategy;

impl Strategy for PriorityClassStrategy {
    fn check_delete(&self, name: &str) -> Result<(), &'static str> {
        let is_system = SYSTEM_CLASSES.contains(&name);
        if is_system {
            Err("this is a system priority class and cannot be deleted")
        } else {
            Ok(())
        }
    }
}

/// The highest value of a priority class of a user.
const MAX_PRIORITY: i64 = 1_000_000_000;

fn priority_classes() -> BuiltinType {
    BuiltinType {
        has_generation: true,
        columns: vec![
            column("Value", "integer", Cell::Pointer("/value")),
            column(
                "Global-Default",
                "boolean",
                Cell::Computed(|class| json!(class["globalDefault"].as_bool().unwrap_or(false))),
            ),
            age(),
            column("PreemptionPolicy", "string", Cell::Pointer("/preemptionPolicy")),
        ],
        hooks: Hooks {
            validate: validate_priority_class,
            validate_update: |new, old| immutable(new, old, &["value", "preemptionPolicy"]),
            is_new_generation: |_, _| false,
            ..Hooks::NONE
        },
        strategy: || Arc::new(PriorityClassStrategy),
        ..resource("scheduling.k8s.io", "v1", "priorityclasses")
    }
}

fn validate_priority_class(class: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let is_system = class.meta("name").starts_with("system-");
    if is_system {
        let known = ["system-cluster-critical", "system-node-critical"];
        if !known.contains(&class.meta("name")) {
            let why = "priority class names with 'system-' prefix are reserved for system use only";
            errors.push(FieldError::forbidden("metadata.name", why));
        }
    } else if class["value"].as_i64().is_some_and(|value| value > MAX_PRIORITY) {
        let why = format!("maximum allowed value of a user defined priority is {MAX_PRIORITY}");
        errors.push(FieldError::forbidden("value", &why));
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(errors: Vec<FieldError>) -> Vec<String> {
        errors.into_iter().map(|error| error.field).collect()
    }

    #[test]
    fn an_api_service_is_named_after_its_version() {
        let mut service = json!({
            "metadata": {"name": "v1.a.b"}, "spec": {"group": "a.b", "version": "v1"},
        });
        assert_eq!(fields(validate_api_service(&service)), [""; 0]);
        service["spec"]["version"] = json!("v2");
        assert_eq!(fields(validate_api_service(&service)), ["metadata.name"]);
        assert_eq!(super::service(&service), "Local");
    }

    #[test]
    fn system_priorities_are_reserved() {
        let class = |name: &str, value: i64| json!({"metadata": {"name": name}, "value": value});
        assert_eq!(fields(validate_priority_class(&class("a", MAX_PRIORITY))), [""; 0]);
        assert_eq!(fields(validate_priority_class(&class("a", MAX_PRIORITY + 1))), ["value"]);
        assert_eq!(fields(validate_priority_class(&class("system-a", 1))), ["metadata.name"]);
    }

    #[test]
    fn the_handler_of_a_runtime_class_is_a_label() {
        let validate = runtime_classes().hooks.validate;
        assert_eq!(fields(validate(&json!({"handler": "runc"}))), [""; 0]);
        assert_eq!(fields(validate(&json!({"handler": "Run C"}))), ["handler"]);
    }
}
