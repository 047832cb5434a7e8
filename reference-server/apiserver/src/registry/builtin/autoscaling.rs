//! The group `autoscaling`: horizontal pod autoscalers in two versions, stored as `v2`.

mod annotation;
mod versions;

use std::sync::LazyLock;

use serde_json::{Value, json};

use self::versions::{DEFAULT_CPU, cpu, to_version_1, to_version_2};
use super::data::{hooks, resource, schema};
use super::{BuiltinType, Hooks, NameRule, Storage};
use crate::registry::LazySchema;
use kubeproof_api::Version;
use kubeproof_apimachinery::schema::FieldError;
use kubeproof_apimachinery::table::column::{Cell, Column, age, column};

pub(super) fn types() -> Vec<BuiltinType> {
    vec![version_1(), version_2()]
}

fn version_2() -> BuiltinType {
    BuiltinType {
        columns: columns(metrics_of_version_2),
        has_generation: false,
        hooks: Hooks {
            default: complete,
            validate_create,
            validate_update,
            is_new_generation: |_, _| false,
            ..hooks(true)
        },
        ..resource("autoscaling", "v2", "horizontalpodautoscalers")
    }
}

fn version_1() -> BuiltinType {
    BuiltinType {
        columns: columns(metrics_of_version_1),
        has_generation: false,
        name_rule: NameRule::DnsSubdomain,
        hooks: Hooks {
            validate: validate_version_1,
            validate_create,
            validate_update,
            is_new_generation: |_, _| false,
            ..hooks(true)
        },
        storage: Some(Storage { ty: version_2, encode: to_version_2, decode: to_version_1 }),
        ..resource("autoscaling", "v1", "horizontalpodautoscalers")
    }
}

fn columns(metrics: fn(&Value) -> Value) -> Vec<Column> {
    vec![
        column("Reference", "string", Cell::Computed(reference)),
        column("Targets", "string", Cell::Computed(metrics)),
        column(
            "MinPods",
            "string",
            Cell::Computed(|it| text(&it["spec"]["minReplicas"], "<unset>")),
        ),
        column("MaxPods", "string", Cell::Pointer("/spec/maxReplicas")),
        column(
            "Replicas",
            "string",
            Cell::Computed(|it| json!(it["status"]["currentReplicas"].as_i64().unwrap_or(0))),
        ),
        age(),
    ]
}

fn complete(autoscaler: &mut Value) {
    let spec = &mut autoscaler["spec"];
    if spec["metrics"].as_array().is_none_or(Vec::is_empty) {
        spec["metrics"] = json!([cpu(&json!(DEFAULT_CPU))]);
    }
    let Some(behavior) = spec.get_mut("behavior").filter(|behavior| behavior.is_object()) else {
        return;
    };
    let percent = json!({"type": "Percent", "value": 100, "periodSeconds": 15});
    let pods = json!({"type": "Pods", "value": 4, "periodSeconds": 15});
    let up = json!({
        "stabilizationWindowSeconds": 0, "selectPolicy": "Max", "policies": [pods, percent],
    });
    let down = json!({"selectPolicy": "Max", "policies": [percent]});
    for (name, defaults) in [("scaleUp", up), ("scaleDown", down)] {
        for (field, default) in defaults.as_object().into_iter().flatten() {
            if behavior[name][field].is_null() {
                behavior[name][field] = default.clone();
            }
        }
    }
}

/// Returns the errors that the validation of version 2 reports. kube-apiserver has only this one.
fn validate_version_1(autoscaler: &Value) -> Vec<FieldError> {
    static SCHEMA: LazyLock<Option<LazySchema>> =
        LazyLock::new(|| schema(Version::default(), &version_2()));
    let mut spec = json!({"metadata": autoscaler["metadata"], "spec": autoscaler["spec"]});
    to_version_2(&mut spec);
    SCHEMA.as_ref().map(|schema| schema.validate(&spec, None)).unwrap_or_default()
}

fn validate_create(autoscaler: &Value) -> Vec<FieldError> {
    validate_update(autoscaler, &Value::Null)
}

/// Versions that were stored before kube-apiserver checked them stay valid.
fn validate_update(new: &Value, old: &Value) -> Vec<FieldError> {
    let is_new = old.is_null();
    let (new, old) = (&new["spec"], &old["spec"]);
    let target = &new["scaleTargetRef"];
    let is_changed = |field: &str| target[field] != old["scaleTargetRef"][field];
    let mut errors = Vec::new();
    if is_new || is_changed("apiVersion") || is_changed("kind") {
        // Only this kind of the core group has replicas.
        let is_core = target["kind"] == "ReplicationController";
        errors.extend(invalid_version(target, is_core, "spec.scaleTargetRef"));
    }
    if validate_described(old).is_empty() {
        errors.extend(validate_described(new));
    }
    errors
}

/// Returns the errors in the versions of objects that metrics describe.
fn validate_described(spec: &Value) -> Vec<FieldError> {
    let metrics = spec["metrics"].as_array().into_iter().flatten().enumerate();
    let objects = metrics.filter(|(_, metric)| metric["type"] == "Object");
    let error = |(index, metric): (usize, &Value)| {
        let place = format!("spec.metrics[{index}].object.describedObject");
        invalid_version(&metric["object"]["describedObject"], true, &place)
    };
    objects.filter_map(error).collect()
}

/// Returns the error in the version of a reference, which is in the core group only if `is_core`.
fn invalid_version(reference: &Value, is_core: bool, place: &str) -> Option<FieldError> {
    let version = reference["apiVersion"].as_str().unwrap_or_default();
    let group = version.split_once('/').map_or("", |(group, _)| group);
    let why = if version != "/" && version.matches('/').count() > 1 {
        format!("unexpected GroupVersion string: {version}")
    } else if group.is_empty() && !is_core {
        "apiVersion must specify API group".to_owned()
    } else {
        return None;
    };
    Some(FieldError::invalid(format!("{place}.apiVersion"), &json!(version), &why))
}

fn reference(autoscaler: &Value) -> Value {
    let target = &autoscaler["spec"]["scaleTargetRef"];
    let text = |field: &str| target[field].as_str().unwrap_or_default();
    json!(format!("{}/{}", text("kind"), text("name")))
}

fn metrics_of_version_1(autoscaler: &Value) -> Value {
    let target = &autoscaler["spec"]["targetCPUUtilizationPercentage"];
    let current = &autoscaler["status"]["currentCPUUtilizationPercentage"];
    json!(format!("cpu: {}/{}", percent(current, "<unknown>"), percent(target, "<auto>")))
}

/// The number of metrics in a cell.
const SHOWN: usize = 2;

fn metrics_of_version_2(autoscaler: &Value) -> Value {
    let currents = &autoscaler["status"]["currentMetrics"];
    let metrics = autoscaler["spec"]["metrics"].as_array().into_iter().flatten().enumerate();
    let mut all: Vec<String> = metrics.map(|(at, metric)| target(metric, &currents[at])).collect();
    let more = all.len().saturating_sub(SHOWN);
    all.truncate(SHOWN);
    let shown = all.join(", ");
    match (all.is_empty(), more) {
        (true, _) => json!("<none>"),
        (_, 0) => json!(shown),
        _ => json!(format!("{shown} + {more} more...")),
    }
}

/// Returns the current and the desired value of a metric.
fn target(metric: &Value, current: &Value) -> String {
    let kind = metric["type"].as_str().unwrap_or_default();
    let mut field = kind.to_owned();
    if let Some(first) = field.get_mut(..1) {
        first.make_ascii_lowercase();
    }
    let (wanted, current) = (&metric[&field]["target"], &current[&field]["current"]);
    let prefix =
        metric[&field]["name"].as_str().map(|name| format!("{name}: ")).unwrap_or_default();
    if !wanted["averageUtilization"].is_null() {
        let current = percent(&current["averageUtilization"], "<unknown>");
        return format!("{prefix}{current}/{}", percent(&wanted["averageUtilization"], "<auto>"));
    }
    // Only these sources have averages besides values.
    let suffix = if matches!(kind, "External" | "Object") { " (avg)" } else { "" };
    for (value, suffix) in [("averageValue", suffix), ("value", "")] {
        if let Some(wanted) = wanted[value].as_str() {
            let current = current[value].as_str().unwrap_or("<unknown>");
            return format!("{prefix}{current}/{wanted}{suffix}");
        }
    }
    "<unknown type>".to_owned()
}

fn percent(value: &Value, absent: &str) -> String {
    value.as_i64().map_or_else(|| absent.to_owned(), |number| format!("{number}%"))
}

fn text(value: &Value, absent: &str) -> Value {
    json!(value.as_i64().map_or_else(|| absent.to_owned(), |number| number.to_string()))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[test]
    fn defaults_depend_on_each_other() {
        let policies = json!([{"type": "Pods", "value": 1, "periodSeconds": 60}]);
        let mut autoscaler = json!({"spec": {"behavior": {"scaleDown": {"policies": policies}}}});
        complete(&mut autoscaler);
        assert_eq!(autoscaler["spec"]["metrics"][0]["resource"]["name"], "cpu");
        let down = &autoscaler["spec"]["behavior"]["scaleDown"];
        assert_eq!(*down, json!({"policies": policies, "selectPolicy": "Max"}));
        assert_eq!(autoscaler["spec"]["behavior"]["scaleUp"]["policies"][1]["value"], 100);
        assert_eq!(metrics_of_version_2(&autoscaler), "cpu: <unknown>/80%");
    }

    #[test]
    fn a_cell_shows_two_metrics() {
        let average = json!({"type": "AverageValue", "averageValue": "5"});
        let metrics = json!([
            {"type": "Resource", "resource": {"name": "memory", "target": average}},
            {"type": "External", "external": {"metric": {"name": "m"}, "target": average}},
            {"type": "Pods", "pods": {"metric": {"name": "m"}, "target": average}},
        ]);
        let shown = metrics_of_version_2(&json!({"spec": {"metrics": metrics}}));
        assert_eq!(shown, "memory: <unknown>/5, <unknown>/5 (avg) + 1 more...");
    }

    #[rstest]
    #[case(json!({"maxReplicas": 3, "targetCPUUtilizationPercentage": 0}),
           &["spec.metrics[0].resource.target.averageUtilization"])]
    #[case(json!({"minReplicas": 4, "maxReplicas": 3}), &["spec.maxReplicas"])]
    #[case(json!({"maxReplicas": 3}), &[])]
    fn version_1_has_the_mistakes_of_version_2(#[case] mut spec: Value, #[case] expected: &[&str]) {
        spec["scaleTargetRef"] = json!({"kind": "Deployment", "name": "a"});
        let errors = validate_version_1(&json!({"metadata": {}, "spec": spec}));
        assert_eq!(errors.iter().map(|error| &*error.field).collect::<Vec<_>>(), expected);
    }

    #[rstest]
    #[case(json!({"kind": "Deployment", "apiVersion": "apps/v1"}), 0)]
    #[case(json!({"kind": "Deployment"}), 1)]
    #[case(json!({"kind": "Deployment", "apiVersion": "v1"}), 1)]
    #[case(json!({"kind": "Deployment", "apiVersion": "a/b/c"}), 1)]
    #[case(json!({"kind": "ReplicationController", "apiVersion": "v1"}), 0)]
    fn the_target_has_a_version(#[case] target: Value, #[case] expected: usize) {
        let described = json!({"type": "Object", "object": {"describedObject": target}});
        let new = json!({"spec": {"scaleTargetRef": target, "metrics": [described]}});
        let is_malformed = target["apiVersion"] == "a/b/c";
        let all = expected + usize::from(is_malformed);
        assert_eq!(validate_create(&new).len(), all);
        assert_eq!(validate_update(&new, &json!({"spec": {}})).len(), all);
        assert_eq!(validate_update(&new, &new), []);
    }
}
