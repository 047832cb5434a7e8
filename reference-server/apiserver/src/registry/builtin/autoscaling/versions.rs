//! Conversions between the versions of autoscalers. `v1` has annotations for the fields that it
//! lacks: metrics in the form of the first beta version, and behavior with Go's names of fields.

use super::annotation;
use serde_json::{Map, Value, json};

/// The average utilization of an autoscaler without metrics.
pub(super) const DEFAULT_CPU: i32 = 80;

const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";
const CURRENT_METRICS: &str = "autoscaling.alpha.kubernetes.io/current-metrics";
const BEHAVIOR: &str = "autoscaling.alpha.kubernetes.io/behavior";
const CONDITIONS: &str = "autoscaling.alpha.kubernetes.io/conditions";

/// Returns the metric for the utilization of the processor.
pub(super) fn cpu(percent: &Value) -> Value {
    let target = json!({"type": "Utilization", "averageUtilization": percent});
    json!({"type": "Resource", "resource": {"name": "cpu", "target": target}})
}

/// Converts the utilization of `v1` and its annotations.
pub(super) fn to_version_2(autoscaler: &mut Value) {
    let mut annotation = |name: &str| {
        let annotations = autoscaler["metadata"].get_mut("annotations")?.as_object_mut()?;
        let text = annotations.remove(name)?;
        if annotations.is_empty() {
            autoscaler["metadata"].as_object_mut()?.remove("annotations");
        }
        // kube-apiserver ignores texts that are no JSON.
        serde_json::from_str::<Value>(text.as_str()?).ok()
    };
    let metrics = annotation(METRICS);
    let behavior = annotation(BEHAVIOR);
    let current = annotation(CURRENT_METRICS);
    let conditions = annotation(CONDITIONS);
    let take = |object: &mut Value, field: &str| {
        object.as_object_mut().and_then(|it| it.remove(field)).filter(|value| !value.is_null())
    };
    let spec = &mut autoscaler["spec"];
    let mut all: Vec<Value> = list(metrics).iter().map(|metric| nested(metric, &TARGET)).collect();
    all.extend(take(spec, "targetCPUUtilizationPercentage").map(|percent| cpu(&percent)));
    if all.is_empty() {
        all.push(cpu(&json!(DEFAULT_CPU)));
    }
    spec["metrics"] = all.into();
    if let Some(behavior) = behavior.filter(Value::is_object) {
        spec["behavior"] = renamed(&behavior, &first_in_lower_case);
    }
    let Some(status) = autoscaler.get_mut("status").filter(|status| status.is_object()) else {
        return;
    };
    let percent = take(status, "currentCPUUtilizationPercentage");
    if current.is_some() {
        let all = list(current).iter().map(|metric| nested(metric, &CURRENT)).collect::<Vec<_>>();
        status["currentMetrics"] = all.into();
    } else if let Some(percent) = percent {
        let current = json!({"averageUtilization": percent, "averageValue": "0"});
        let resource = json!({"name": "cpu", "current": current});
        status["currentMetrics"] = json!([{"type": "Resource", "resource": resource}]);
    }
    if let Some(conditions) = conditions.filter(Value::is_array) {
        status["conditions"] = conditions;
    }
}

/// Converts the metric for the processor into the utilization of `v1`. Annotations show the rest.
pub(super) fn to_version_1(autoscaler: &mut Value) {
    let take = |autoscaler: &mut Value, part: &str, field: &str| {
        autoscaler.get_mut(part).and_then(Value::as_object_mut).and_then(|it| it.remove(field))
    };
    let is_cpu = |metric: &Value| {
        metric["resource"]["name"] == "cpu"
            && metric["resource"]["target"]["averageUtilization"].is_number()
    };
    let mut others = list(take(autoscaler, "spec", "metrics"));
    if let Some(at) = others.iter().position(is_cpu) {
        let metric = others.remove(at);
        let percent = metric["resource"]["target"]["averageUtilization"].clone();
        autoscaler["spec"]["targetCPUUtilizationPercentage"] = percent;
    }
    let behavior = take(autoscaler, "spec", "behavior").unwrap_or_default();
    let mut behavior = renamed(&behavior, &first_in_upper_case);
    annotation::fill_in(&mut behavior);
    let conditions = list(take(autoscaler, "status", "conditions"));
    let current = list(take(autoscaler, "status", "currentMetrics"));
    let percents = current.iter().filter(|metric| metric["resource"]["name"] == "cpu");
    let percent =
        percents.map(|metric| &metric["resource"]["current"]["averageUtilization"]).next();
    if let Some(percent) = percent.filter(|percent| percent.is_number()) {
        autoscaler["status"]["currentCPUUtilizationPercentage"] = percent.clone();
    }
    let flat = |metrics: &[Value], words: &Words| {
        json!(metrics.iter().map(|metric| flat(metric, words)).collect::<Vec<_>>())
    };
    for (name, value) in [
        (METRICS, flat(&others, &TARGET)),
        (CURRENT_METRICS, flat(&current, &CURRENT)),
        (BEHAVIOR, behavior),
        (CONDITIONS, json!(conditions)),
    ] {
        let is_empty = value.is_null() || value.as_array().is_some_and(Vec::is_empty);
        if !is_empty {
            autoscaler["metadata"]["annotations"][name] = json!(annotation::text(&value));
        }
    }
}

fn list(value: Option<Value>) -> Vec<Value> {
    match value {
        Some(Value::Array(items)) => items,
        _ => Vec::new(),
    }
}

/// The names in the metrics of a spec, or of a status.
struct Words {
    /// The member of a metric of `v2`.
    member: &'static str,
    utilization: &'static str,
    average: &'static str,
    value: &'static str,
}

const TARGET: Words = Words {
    member: "target",
    utilization: "targetAverageUtilization",
    average: "targetAverageValue",
    value: "targetValue",
};
const CURRENT: Words = Words {
    member: "current",
    utilization: "currentAverageUtilization",
    average: "currentAverageValue",
    value: "currentValue",
};

/// The type of a metric, and the name of its source, which starts with a small letter.
fn source(metric: &Value) -> (&str, String) {
    let kind = metric["type"].as_str().unwrap_or_default();
    (kind, first_in_lower_case(kind))
}

/// The field for the label selector of a metric.
fn selector(kind: &str) -> &'static str {
    if kind == "External" { "metricSelector" } else { "selector" }
}

/// The field for the average of a metric. The field of an object has no prefix.
fn average(kind: &str, words: &Words) -> &'static str {
    if kind == "Object" { "averageValue" } else { words.average }
}

/// Converts a metric of `v2` into the form in the annotations.
fn flat(metric: &Value, words: &Words) -> Value {
    let (kind, field) = source(metric);
    let from = &metric[&field];
    let amounts = &from[words.member];
    let mut to = Map::new();
    for (name, value) in [
        ("name", &from["name"]),
        ("container", &from["container"]),
        ("target", &from["describedObject"]),
        ("metricName", &from["metric"]["name"]),
        (selector(kind), &from["metric"]["selector"]),
        (words.utilization, &amounts["averageUtilization"]),
        (average(kind, words), &amounts["averageValue"]),
        (words.value, &amounts["value"]),
    ] {
        if !value.is_null() {
            to.insert(name.to_owned(), value.clone());
        }
    }
    if kind == "Object" {
        // The type has a value for this field, even if the metric has only an average.
        to.entry(words.value).or_insert_with(|| json!("0"));
    }
    json!({"type": kind, field: to})
}

/// Converts a metric of the form in the annotations into one of `v2`.
fn nested(metric: &Value, words: &Words) -> Value {
    let (kind, field) = source(metric);
    let from = &metric[&field];
    let (mut to, mut described, mut amounts) = (Map::new(), Map::new(), Map::new());
    let set = |into: &mut Map<String, Value>, name: &str, value: &Value| {
        if !value.is_null() {
            into.insert(name.to_owned(), value.clone());
        }
    };
    set(&mut to, "name", &from["name"]);
    set(&mut to, "container", &from["container"]);
    set(&mut to, "describedObject", &from["target"]);
    set(&mut described, "name", &from["metricName"]);
    set(&mut described, "selector", &from[selector(kind)]);
    set(&mut amounts, "averageUtilization", &from[words.utilization]);
    set(&mut amounts, "averageValue", &from[average(kind, words)]);
    let is_average = kind == "Object" && amounts.contains_key("averageValue");
    if !is_average {
        set(&mut amounts, "value", &from[words.value]);
    }
    if words.member == "target" {
        let has = |name| amounts.contains_key(name);
        let kind = match (has("averageUtilization"), has("averageValue")) {
            (true, _) => "Utilization",
            (false, true) => "AverageValue",
            (false, false) => "Value",
        };
        amounts.insert("type".to_owned(), kind.into());
    }
    if !described.is_empty() {
        to.insert("metric".to_owned(), described.into());
    }
    to.insert(words.member.to_owned(), amounts.into());
    json!({"type": kind, field: to})
}

fn renamed(value: &Value, rename: &dyn Fn(&str) -> String) -> Value {
    match value {
        Value::Object(fields) => {
            let present = fields.iter().filter(|(_, value)| !value.is_null());
            present.map(|(name, value)| (rename(name), renamed(value, rename))).collect()
        }
        Value::Array(items) => items.iter().map(|item| renamed(item, rename)).collect(),
        other => other.clone(),
    }
}

fn first_in_lower_case(name: &str) -> String {
    let mut name = name.to_owned();
    if let Some(first) = name.get_mut(..1) {
        first.make_ascii_lowercase();
    }
    name
}

fn first_in_upper_case(name: &str) -> String {
    let mut name = name.to_owned();
    if let Some(first) = name.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    name
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn annotation(autoscaler: &Value, name: &str) -> Value {
        let text = autoscaler["metadata"]["annotations"][name].as_str().unwrap();
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn versions_convert_without_loss() {
        let old = json!({
            "metadata": {}, "spec": {"maxReplicas": 3, "targetCPUUtilizationPercentage": 70},
        });
        let mut new = old.clone();
        to_version_2(&mut new);
        assert_eq!(new["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"], 70);
        to_version_1(&mut new);
        assert_eq!(new, old);
    }

    #[test]
    fn an_autoscaler_without_metrics_gets_the_processor() {
        let mut autoscaler = json!({"metadata": {}, "spec": {"maxReplicas": 3}});
        to_version_2(&mut autoscaler);
        assert_eq!(autoscaler["spec"]["metrics"], json!([cpu(&json!(80))]));
    }

    #[rstest]
    #[case(
        json!({"type": "Pods", "pods": {
            "metric": {"name": "m"}, "target": {"type": "AverageValue", "averageValue": "5"},
        }}),
        json!({"type": "Pods", "pods": {"metricName": "m", "targetAverageValue": "5"}})
    )]
    #[case(
        json!({"type": "Object", "object": {
            "describedObject": {"kind": "Service", "name": "s"},
            "metric": {"name": "m", "selector": {}},
            "target": {"type": "AverageValue", "averageValue": "5"},
        }}),
        json!({"type": "Object", "object": {
            "target": {"kind": "Service", "name": "s"}, "metricName": "m", "selector": {},
            "averageValue": "5", "targetValue": "0",
        }})
    )]
    #[case(
        json!({"type": "External", "external": {
            "metric": {"name": "m", "selector": {}}, "target": {"type": "Value", "value": "5"},
        }}),
        json!({"type": "External", "external": {
            "metricName": "m", "metricSelector": {}, "targetValue": "5",
        }})
    )]
    #[case(
        json!({"type": "ContainerResource", "containerResource": {
            "name": "cpu", "container": "c",
            "target": {"type": "Utilization", "averageUtilization": 5},
        }}),
        json!({"type": "ContainerResource", "containerResource": {
            "name": "cpu", "container": "c", "targetAverageUtilization": 5,
        }})
    )]
    fn other_metrics_become_an_annotation(#[case] metric: Value, #[case] expected: Value) {
        let behavior = json!({"scaleUp": {"policies": [{"type": "Pods", "periodSeconds": 1}]}});
        let old = json!({"metadata": {}, "spec": {"metrics": [metric], "behavior": behavior}});
        let mut autoscaler = old.clone();
        to_version_1(&mut autoscaler);
        assert_eq!(annotation(&autoscaler, METRICS), json!([expected]));
        let policies = json!([{"Type": "Pods", "PeriodSeconds": 1}]);
        let rules = json!({
            "Policies": policies, "SelectPolicy": null, "StabilizationWindowSeconds": null,
            "Tolerance": null,
        });
        let expected = json!({"ScaleUp": rules, "ScaleDown": null});
        assert_eq!(annotation(&autoscaler, BEHAVIOR), expected);
        to_version_2(&mut autoscaler);
        assert_eq!(autoscaler, old);
    }

    #[test]
    fn a_status_survives_both_conversions() {
        let current = json!({"averageUtilization": 20, "averageValue": "100m"});
        let metric = json!({"type": "Resource", "resource": {"name": "cpu", "current": current}});
        let old = json!({
            "metadata": {}, "spec": {"metrics": [cpu(&json!(80))]},
            "status": {"currentMetrics": [metric], "conditions": [{"type": "AbleToScale"}]},
        });
        let mut autoscaler = old.clone();
        to_version_1(&mut autoscaler);
        assert_eq!(autoscaler["status"], json!({"currentCPUUtilizationPercentage": 20}));
        to_version_2(&mut autoscaler);
        assert_eq!(autoscaler, old);
    }
}
