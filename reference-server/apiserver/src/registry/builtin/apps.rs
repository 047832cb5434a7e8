//! The group `apps/v1`: deployments, replica sets, stateful sets and daemon sets.

mod sets;

use serde_json::{Value, json};

use super::core::pod::complete_spec;
use super::data::resource;
use super::workload;
use super::{BuiltinType, Hooks, immutable, restore, take_status_and_metadata, warnings};
use kubeproof_apimachinery::object::Object;
use kubeproof_apimachinery::table::column::{Cell, Column, age, column, wide};

use kubeproof_apimachinery::schema::{FieldError, Path};

pub(super) fn types() -> Vec<BuiltinType> {
    let mut types = vec![deployments(), replica_sets()];
    types.extend(sets::types());
    types
}

fn deployments() -> BuiltinType {
    let mut columns = vec![
        column("Ready", "string", Cell::Computed(ready)),
        column(
            "Up-to-date",
            "string",
            Cell::Computed(|object| workload::number(object, "/status/updatedReplicas")),
        ),
        column(
            "Available",
            "string",
            Cell::Computed(|object| workload::number(object, "/status/availableReplicas")),
        ),
        age(),
    ];
    columns.extend(template_columns());
    BuiltinType {
        columns,
        hooks: Hooks {
            default: complete_deployment,
            validate: validate_deployment,
            prepare_status_update: |new, old| {
                take_status_and_metadata(new, old);
                new.adopt_meta("labels", old);
            },
            is_new_generation: |new, old| {
                new["spec"] != old["spec"] || annotations(new) != annotations(old)
            },
            ..hooks()
        },
        ..resource("apps", "v1", "deployments")
    }
}

fn replica_sets() -> BuiltinType {
    let mut columns = vec![
        column("Desired", "integer", Cell::Pointer("/spec/replicas")),
        column(
            "Current",
            "integer",
            Cell::Computed(|object| workload::number(object, "/status/replicas")),
        ),
        column(
            "Ready",
            "integer",
            Cell::Computed(|object| workload::number(object, "/status/readyReplicas")),
        ),
        age(),
    ];
    columns.extend(template_columns());
    BuiltinType { columns, hooks: hooks(), ..resource("apps", "v1", "replicasets") }
}

/// The common hooks of deployments and replica sets.
fn hooks() -> Hooks {
    Hooks {
        default: |object| complete_spec(&mut object["spec"]["template"]["spec"]),
        validate,
        validate_update,
        validate_status: workload::validate_status,
        warn: warnings::workloads::workload,
        prepare_create: workload::prepare_create,
        prepare_update: |new, old| restore(new, old, "status"),
        ..Hooks::NONE
    }
}

fn complete_deployment(deployment: &mut Value) {
    complete_spec(&mut deployment["spec"]["template"]["spec"]);
    let strategy = &mut deployment["spec"]["strategy"];
    if strategy["type"] == "RollingUpdate" {
        for field in ["maxUnavailable", "maxSurge"] {
            if strategy["rollingUpdate"][field].is_null() {
                strategy["rollingUpdate"][field] = json!("25%");
            }
        }
    }
}

fn validate(object: &Value) -> Vec<FieldError> {
    let selector = &object["spec"]["selector"];
    let root = Path::Root;
    let spec = root.field("spec");
    let path = spec.field("selector");
    let mut errors = Vec::new();
    if selector.is_object() && workload::is_empty(selector) {
        errors.push(FieldError::invalid(
            path,
            selector,
            "an empty selector would select every pod",
        ));
    }
    errors.extend(workload::validate_template(object, selector));
    errors
}

fn validate_deployment(deployment: &Value) -> Vec<FieldError> {
    let mut errors = validate(deployment);
    let strategy = &deployment["spec"]["strategy"];
    let rolling = &strategy["rollingUpdate"];
    if strategy["type"] == "Recreate" && rolling.is_object() {
        let why = "may not be specified when strategy `type` is 'Recreate'";
        errors.push(FieldError::forbidden("spec.strategy.rollingUpdate", why));
    }
    for field in ["maxUnavailable", "maxSurge"] {
        let is_surge = field == "maxSurge";
        let may_exceed = |why: &&str| is_surge && *why == MORE_THAN_ALL;
        if let Some(why) = wrong_amount(&rolling[field]).filter(|why| !may_exceed(why)) {
            let place = format!("spec.strategy.rollingUpdate.{field}");
            errors.push(FieldError::invalid(place, &rolling[field], why));
        }
    }
    if is_zero(&rolling["maxUnavailable"]) && is_zero(&rolling["maxSurge"]) {
        let why = "may not be 0 when `maxSurge` is 0";
        let place = "spec.strategy.rollingUpdate.maxUnavailable";
        errors.push(FieldError::invalid(place, &rolling["maxUnavailable"], why));
    }
    let seconds = |field: &str| deployment["spec"][field].as_i64().unwrap_or(0);
    if seconds("progressDeadlineSeconds") <= seconds("minReadySeconds") {
        let value = &deployment["spec"]["progressDeadlineSeconds"];
        let why = "must be greater than minReadySeconds";
        errors.push(FieldError::invalid("spec.progressDeadlineSeconds", value, why));
    }
    errors
}

fn validate_update(new: &Value, old: &Value) -> Vec<FieldError> {
    immutable(new, old, &["spec.selector"])
}

/// More pods than all may be added, but not removed.
const MORE_THAN_ALL: &str = "must not be greater than 100%";

/// Returns the mistake in a number or a percentage of pods.
pub(super) fn wrong_amount(amount: &Value) -> Option<&'static str> {
    match amount {
        Value::String(text) => {
            match text.strip_suffix('%').and_then(|digits| digits.parse::<u32>().ok()) {
                None => Some(
                    "a valid percent string must be a numeric string followed by an ending '%' \
                     (e.g. '1%', or '93%')",
                ),
                Some(percent) if percent > 100 => Some(MORE_THAN_ALL),
                Some(_) => None,
            }
        }
        Value::Number(number) if number.as_i64().is_some_and(|number| number < 0) => {
            Some("must be greater than or equal to 0")
        }
        _ => None,
    }
}

fn is_zero(amount: &Value) -> bool {
    *amount == json!(0) || *amount == json!("0%")
}

fn annotations(object: &Value) -> Option<&Value> {
    object.pointer("/metadata/annotations").filter(|annotations| **annotations != json!({}))
}

fn ready(deployment: &Value) -> Value {
    let ready = workload::number(deployment, "/status/readyReplicas");
    json!(format!("{ready}/{}", workload::number(deployment, "/spec/replicas")))
}

/// Returns the columns of wide output that all types with pod templates have.
pub(super) fn template_columns() -> [Column; 3] {
    [
        wide("Containers", "string", Cell::Computed(|object| of_containers(object, "name"))),
        wide("Images", "string", Cell::Computed(|object| of_containers(object, "image"))),
        wide("Selector", "string", Cell::Computed(selector)),
    ]
}

fn of_containers(object: &Value, field: &str) -> Value {
    let containers =
        object["spec"]["template"]["spec"]["containers"].as_array().into_iter().flatten();
    let texts: Vec<&str> = containers.filter_map(|container| container[field].as_str()).collect();
    json!(texts.join(","))
}

fn selector(object: &Value) -> Value {
    let selector = &object["spec"]["selector"];
    let mut parts: Vec<String> = selector["matchExpressions"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|expression| {
            let key = expression["key"].as_str().unwrap_or_default();
            let values: Vec<&str> = expression["values"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .collect();
            let values = values.join(",");
            match expression["operator"].as_str() {
                Some("In") => format!("{key} in ({values})"),
                Some("NotIn") => format!("{key} notin ({values})"),
                Some("DoesNotExist") => format!("!{key}"),
                _ => key.to_owned(),
            }
        })
        .collect();
    // A replication controller has a map instead of a selector.
    let labels = selector.get("matchLabels");
    let labels = labels.or_else(|| parts.is_empty().then_some(selector));
    if let Some(labels) = labels.filter(|labels| labels.as_object().is_some_and(|l| !l.is_empty()))
    {
        parts.extend(super::core::selector_text(labels).as_str().map(str::to_owned));
        parts.rotate_right(1);
    }
    if parts.is_empty() { json!("<none>") } else { json!(parts.join(",")) }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use kubeproof_apimachinery::schema::CauseReason;

    fn deployment(vary: fn(&mut Value)) -> Value {
        let mut deployment = json!({"metadata": {"name": "d"}, "spec": {
            "selector": {"matchLabels": {"app": "d"}},
            "template": {
                "metadata": {"labels": {"app": "d"}},
                "spec": {"containers": [{"name": "c", "image": "i"}]},
            },
        }});
        vary(&mut deployment);
        let kind = deployments();
        kind.schema().prune(&mut deployment);
        kind.schema().apply_defaults(&mut deployment);
        (kind.hooks.default)(&mut deployment);
        deployment
    }

    #[test]
    fn a_deployment_is_filled_in() {
        let deployment = deployment(|_| ());
        let mut spec = deployment["spec"].clone();
        spec.as_object_mut().unwrap().remove("template");
        assert_eq!(
            spec,
            json!({
                "progressDeadlineSeconds": 600, "replicas": 1, "revisionHistoryLimit": 10,
                "selector": {"matchLabels": {"app": "d"}},
                "strategy": {
                    "type": "RollingUpdate",
                    "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"},
                },
            })
        );
        assert_eq!(
            deployment["spec"]["template"]["spec"]["containers"][0]["imagePullPolicy"],
            "Always"
        );
    }

    #[rstest]
    #[case(|_: &mut Value| (), &[])]
    #[case(|d: &mut Value| d["spec"]["replicas"] = json!(-1), &["spec.replicas"])]
    #[case(|d: &mut Value| d["spec"]["selector"] = Value::Null, &["spec.selector"])]
    #[case(|d: &mut Value| d["spec"]["selector"] = json!({}), &["spec.selector"])]
    #[case(
        |d: &mut Value| d["spec"]["template"]["metadata"]["labels"] = json!({"x": "y"}),
        &["spec.template.metadata.labels"]
    )]
    #[case(
        |d: &mut Value| d["spec"]["template"]["spec"]["containers"] = json!([]),
        &["spec.template.spec.containers"]
    )]
    #[case(
        |d: &mut Value| d["spec"]["template"]["spec"]["containers"][0]["name"] = json!("Bad_Name"),
        &["spec.template.spec.containers[0].name"]
    )]
    #[case(
        |d: &mut Value| d["spec"]["template"]["spec"]["restartPolicy"] = json!("Never"),
        &["spec.template.spec.restartPolicy"]
    )]
    #[case(
        |d: &mut Value| {
            let none = json!({"maxSurge": 0, "maxUnavailable": 0});
            d["spec"]["strategy"] = json!({ "rollingUpdate": none });
        },
        &["spec.strategy.rollingUpdate.maxUnavailable"]
    )]
    #[case(|d: &mut Value| d["spec"]["strategy"] = json!({"type": "Recreate", "rollingUpdate": {}}),
           &["spec.strategy.rollingUpdate"])]
    #[case(|d: &mut Value| d["spec"]["strategy"] = json!({"rollingUpdate": {"maxSurge": "many"}}),
           &["spec.strategy.rollingUpdate.maxSurge"])]
    #[case(
        |d: &mut Value| d["spec"]["progressDeadlineSeconds"] = json!(0),
        &["spec.progressDeadlineSeconds"]
    )]
    fn mistakes_name_their_field(#[case] vary: fn(&mut Value), #[case] expected: &[&str]) {
        let deployment = deployment(vary);
        let kind = deployments();
        let mut errors = kind.schema().validate(&deployment, None);
        errors.extend((kind.hooks.validate)(&deployment));
        assert_eq!(errors.into_iter().map(|error| error.field).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn the_selector_is_forever() {
        let old = deployment(|_| ());
        let new = deployment(|d| d["spec"]["selector"]["matchLabels"]["x"] = json!("y"));
        let errors = validate_update(&new, &old);
        assert_eq!(
            (errors[0].field.as_str(), errors[0].reason),
            ("spec.selector", CauseReason::FieldValueInvalid)
        );
    }

    #[test]
    fn annotations_are_a_new_generation_and_labels_are_not() {
        let is_new = deployments().hooks.is_new_generation;
        let old = deployment(|_| ());
        assert!(is_new(&deployment(|d| d["metadata"]["annotations"] = json!({"a": "b"})), &old));
        assert!(!is_new(&deployment(|d| d["metadata"]["labels"] = json!({"a": "b"})), &old));
    }
}
