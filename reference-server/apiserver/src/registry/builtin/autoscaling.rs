//! The group `autoscaling`: horizontal pod autoscalers in two versions, stored as `v2`.

use serde_json::{Value, json};

use super::data::{hooks, resource};
use super::{BuiltinType, Hooks, NameRule, Storage};
use kubeproof_apimachinery::schema::FieldError;
use kubeproof_apimachinery::table::column::{Cell, Column, age, column};

pub(super) fn types() -> Vec<BuiltinType> {
    vec![version_1(), version_2()]
}

/// The average utilization of an autoscaler without metrics.
const DEFAULT_CPU: i32 = 80;

fn version_2() -> BuiltinType {
    BuiltinType {
        columns: columns(metrics_of_version_2),
        has_generation: false,
        hooks: Hooks {
            default: complete,
            validate,
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
        hooks: Hooks { validate, is_new_generation: |_, _| false, ..hooks(true) },
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
        let target = json!({"type": "Utilization", "averageUtilization": DEFAULT_CPU});
        let resource = json!({"name": "cpu", "target": target});
        spec["metrics"] = json!([{"type": "Resource", "resource": resource}]);
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

fn validate(autoscaler: &Value) -> Vec<FieldError> {
    let spec = &autoscaler["spec"];
    let mut errors = Vec::new();
    let (least, most) = (spec["minReplicas"].as_i64(), spec["maxReplicas"].as_i64());
    if most.zip(least).is_some_and(|(most, least)| most < least) {
        let why = "must be greater than or equal to `minReplicas`";
        errors.push(FieldError::invalid("spec.maxReplicas", &spec["maxReplicas"], why));
    }
    for (index, metric) in spec["metrics"].as_array().into_iter().flatten().enumerate() {
        let Some(kind) = metric["type"].as_str().filter(|kind| !kind.is_empty()) else { continue };
        let mut field = kind.to_owned();
        field[..1].make_ascii_lowercase();
        if metric[&field].is_null() {
            let place = format!("spec.metrics[{index}].{field}");
            let why = "must populate information for the given metric source";
            errors.push(FieldError::required(place, why));
        }
    }
    errors
}

/// Converts the utilization of `v1` into a metric.
fn to_version_2(autoscaler: &mut Value) {
    let Some(spec) = autoscaler.get_mut("spec").and_then(Value::as_object_mut) else { return };
    let percent = spec.remove("targetCPUUtilizationPercentage");
    if let Some(percent) = percent.filter(|percent| !percent.is_null()) {
        let target = json!({"type": "Utilization", "averageUtilization": percent});
        let resource = json!({"name": "cpu", "target": target});
        spec.insert("metrics".to_owned(), json!([{"type": "Resource", "resource": resource}]));
    }
    let Some(status) = autoscaler.get_mut("status").and_then(Value::as_object_mut) else { return };
    let percent = status.remove("currentCPUUtilizationPercentage");
    if let Some(percent) = percent.filter(|percent| !percent.is_null()) {
        let current = json!({"averageUtilization": percent, "averageValue": "0"});
        let resource = json!({"name": "cpu", "current": current});
        let metrics = json!([{"type": "Resource", "resource": resource}]);
        status.insert("currentMetrics".to_owned(), metrics);
    }
}

/// The annotations of `v1` with the fields that it lacks.
const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";
const BEHAVIOR: &str = "autoscaling.alpha.kubernetes.io/behavior";
const CONDITIONS: &str = "autoscaling.alpha.kubernetes.io/conditions";

/// Converts the metric for the processor into the utilization of `v1`. Annotations show the rest.
fn to_version_1(autoscaler: &mut Value) {
    let take = |autoscaler: &mut Value, part: &str, field: &str| {
        autoscaler.get_mut(part).and_then(Value::as_object_mut).and_then(|it| it.remove(field))
    };
    let is_cpu = |metric: &Value| {
        metric["resource"]["name"] == "cpu"
            && metric["resource"]["target"]["averageUtilization"].is_number()
    };
    let metrics = take(autoscaler, "spec", "metrics").unwrap_or_default();
    let mut others = metrics.as_array().cloned().unwrap_or_default();
    if let Some(at) = others.iter().position(is_cpu) {
        let metric = others.remove(at);
        let percent = metric["resource"]["target"]["averageUtilization"].clone();
        autoscaler["spec"]["targetCPUUtilizationPercentage"] = percent;
    }
    let behavior = take(autoscaler, "spec", "behavior").unwrap_or_default();
    let conditions = take(autoscaler, "status", "conditions").unwrap_or_default();
    let current = take(autoscaler, "status", "currentMetrics").unwrap_or_default();
    let percent = &current[0]["resource"]["current"]["averageUtilization"];
    if percent.is_number() {
        autoscaler["status"]["currentCPUUtilizationPercentage"] = percent.clone();
    }
    for (name, value) in [(METRICS, json!(others)), (BEHAVIOR, behavior), (CONDITIONS, conditions)]
    {
        let is_empty = value.is_null() || value.as_array().is_some_and(Vec::is_empty);
        if !is_empty {
            autoscaler["metadata"]["annotations"][name] = json!(value.to_string());
        }
    }
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
    fn versions_convert_without_loss() {
        let old = json!({"spec": {"maxReplicas": 3, "targetCPUUtilizationPercentage": 70}});
        let mut new = old.clone();
        to_version_2(&mut new);
        assert_eq!(new["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"], 70);
        to_version_1(&mut new);
        assert_eq!(new, old);
    }

    #[test]
    fn other_metrics_become_an_annotation() {
        let pods = json!({"type": "Pods", "pods": {"metric": {"name": "m"}}});
        let mut autoscaler = json!({"metadata": {}, "spec": {"metrics": [pods]}});
        to_version_1(&mut autoscaler);
        let text = autoscaler["metadata"]["annotations"][METRICS].as_str().unwrap();
        assert_eq!(serde_json::from_str::<Value>(text).unwrap(), json!([pods]));
    }

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
    #[case(json!({"minReplicas": 4, "maxReplicas": 3}), "spec.maxReplicas")]
    #[case(json!({"metrics": [{"type": "Pods"}]}), "spec.metrics[0].pods")]
    #[case(
        json!({"metrics": [{"type": "ContainerResource"}]}),
        "spec.metrics[0].containerResource"
    )]
    fn mistakes_name_their_field(#[case] spec: Value, #[case] expected: &str) {
        let errors = validate(&json!({ "spec": spec }));
        assert_eq!(errors.iter().map(|error| &*error.field).collect::<Vec<_>>(), [expected]);
    }
}
