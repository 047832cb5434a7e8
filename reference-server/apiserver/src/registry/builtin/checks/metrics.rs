//! Autoscalers: the numbers of replicas, the metrics with their targets, and the policies.

use std::cmp::Ordering;

use serde_json::{Value, json};

use super::resources::container_resource;
use super::{Checks, has, items, text};
use kubeproof_apimachinery::object::validation::syntax::Syntax;
use kubeproof_apimachinery::schema::{FieldError, Path, quantity};

pub(super) const CHECKS: Checks = &[
    ("io.k8s.api.autoscaling.v2.ContainerResourceMetricSource", of_container),
    ("io.k8s.api.autoscaling.v2.ExternalMetricSource", external),
    ("io.k8s.api.autoscaling.v2.HPAScalingPolicy", policy),
    ("io.k8s.api.autoscaling.v2.HPAScalingRules", rules),
    ("io.k8s.api.autoscaling.v2.HorizontalPodAutoscalerSpec", spec),
    ("io.k8s.api.autoscaling.v2.MetricIdentifier", identifier),
    ("io.k8s.api.autoscaling.v2.MetricSpec", metric),
    ("io.k8s.api.autoscaling.v2.MetricTarget", target),
    ("io.k8s.api.autoscaling.v2.ObjectMetricSource", object),
    ("io.k8s.api.autoscaling.v2.PodsMetricSource", pods),
    ("io.k8s.api.autoscaling.v2.ResourceMetricSource", resource),
];

/// The types of metrics, and the fields of their sources.
const SOURCES: [(&str, &str); 5] = [
    ("ContainerResource", "containerResource"),
    ("External", "external"),
    ("Object", "object"),
    ("Pods", "pods"),
    ("Resource", "resource"),
];
/// The maximum number of seconds of a period.
const PERIOD: i64 = 1_800;
/// The maximum number of seconds of a stabilization window.
const WINDOW: i64 = 3_600;

fn spec(spec: &Value, path: Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let (least, most) = (spec["minReplicas"].as_i64(), spec["maxReplicas"].as_i64().unwrap_or(0));
    if least.is_some_and(|least| least < 1) {
        let why = "must be greater than or equal to 1";
        errors.push(FieldError::invalid(path.field("minReplicas"), &spec["minReplicas"], why));
    }
    let place = path.field("maxReplicas");
    if most == 0 {
        errors.push(FieldError::required(place, "must be set and greater than 0"));
    } else if most < 0 {
        let why = "must be greater than or equal to 1";
        errors.push(FieldError::invalid(place, &json!(most), why));
    }
    if least.is_some_and(|least| most < least) {
        let why = "must be greater than or equal to `minReplicas`";
        errors.push(FieldError::invalid(place, &json!(most), why));
    }
    let scales_from_zero = |metric: &Value| matches!(text(metric, "type"), "Object" | "External");
    if least == Some(0) && !items(spec, "metrics").iter().any(scales_from_zero) {
        let why = "must specify at least one Object or External metric to support scaling to \
                   zero replicas";
        errors.push(FieldError::forbidden(path.field("metrics"), why));
    }
    errors
}

fn metric(metric: &Value, path: Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let kind = text(metric, "type");
    let place = path.field("type");
    if kind.is_empty() {
        errors.push(FieldError::required(place, "must specify a metric source type"));
    }
    let source = SOURCES.iter().find(|(name, _)| *name == kind).map(|(_, source)| *source);
    match source {
        None => {
            let known = SOURCES.map(|(name, _)| json!(name));
            let error = FieldError::not_supported(place, &json!(kind), &known);
            // As in kube-apiserver, the check of the source reports it again.
            errors.extend([error.clone(), error]);
        }
        Some(source) if !has(metric, source) => {
            let why = "must populate information for the given metric source";
            errors.push(FieldError::required(path.field(source), why));
        }
        Some(_) => {}
    }
    let given = SOURCES.iter().filter(|(_, source)| has(metric, source));
    if given.clone().count() > 1 {
        let others = given.filter(|(_, name)| Some(*name) != source);
        let why = "must populate the given metric source only";
        errors.extend(others.map(|(_, name)| FieldError::forbidden(path.field(name), why)));
    }
    errors
}

fn target(target: &Value, path: Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let place = path.field("type");
    if text(target, "type").is_empty() {
        errors.push(FieldError::required(place, "must specify a metric target type"));
    }
    if !matches!(text(target, "type"), "Utilization" | "Value" | "AverageValue") {
        let why = "must be either Utilization, Value, or AverageValue";
        errors.push(FieldError::invalid(place, &json!(text(target, "type")), why));
    }
    for field in ["value", "averageValue"] {
        let amount = target[field].as_str().and_then(|amount| quantity::compare(amount, "0"));
        if amount.is_some_and(|order| order != Ordering::Greater) {
            let place = path.field(field);
            errors.push(FieldError::invalid(place, &target[field], "must be positive"));
        }
    }
    let percent = &target["averageUtilization"];
    if percent.as_i64().is_some_and(|percent| percent < 1) {
        let place = path.field("averageUtilization");
        errors.push(FieldError::invalid(place, percent, "must be greater than 0"));
    }
    errors
}

fn resource(source: &Value, path: Path<'_>) -> Vec<FieldError> {
    let mut errors = named(source, "name", "a resource name", path);
    let place = path.field("target");
    let target = &source["target"];
    match (has(target, "averageUtilization"), has(target, "averageValue")) {
        (false, false) => {
            let why = "must set either a target raw value or a target utilization";
            errors.push(FieldError::required(place.field("averageUtilization"), why));
        }
        (true, true) => {
            let why = "may not set both a target raw value and a target utilization";
            errors.push(FieldError::forbidden(place.field("averageValue"), why));
        }
        _ => {}
    }
    errors
}

/// Returns the error of an absent name.
fn named(source: &Value, field: &str, what: &str, path: Path<'_>) -> Vec<FieldError> {
    let error = || FieldError::required(path.field(field), &format!("must specify {what}"));
    text(source, field).is_empty().then(error).into_iter().collect()
}

fn of_container(source: &Value, path: Path<'_>) -> Vec<FieldError> {
    let mut errors = resource(source, path);
    errors.extend(named(source, "container", "a container", path));
    if !text(source, "name").is_empty() {
        errors.extend(container_resource(text(source, "name"), path.field("name")));
    }
    if !text(source, "container").is_empty() {
        errors.extend(Syntax::DnsLabel.errors(text(source, "container"), path.field("container")));
    }
    errors
}

fn pods(source: &Value, path: Path<'_>) -> Vec<FieldError> {
    let place = path.field("target");
    let why = "must specify a positive target averageValue";
    let error = || FieldError::required(place.field("averageValue"), why);
    (!has(&source["target"], "averageValue")).then(error).into_iter().collect()
}

fn object(source: &Value, path: Path<'_>) -> Vec<FieldError> {
    let target = path.field("target");
    let is_set = has(&source["target"], "value") || has(&source["target"], "averageValue");
    let why = "must set either a target value or averageValue";
    let error = || FieldError::required(target.field("averageValue"), why);
    (!is_set).then(error).into_iter().collect()
}

fn external(source: &Value, path: Path<'_>) -> Vec<FieldError> {
    let target = path.field("target");
    match (has(&source["target"], "value"), has(&source["target"], "averageValue")) {
        (false, false) => {
            let why = "must set either a target value for metric or a per-pod target";
            vec![FieldError::required(target.field("averageValue"), why)]
        }
        (true, true) => {
            let why = "may not set both a target value for metric and a per-pod target";
            vec![FieldError::forbidden(target.field("value"), why)]
        }
        _ => Vec::new(),
    }
}

fn identifier(metric: &Value, path: Path<'_>) -> Vec<FieldError> {
    let mut errors = named(metric, "name", "a metric name", path);
    if errors.is_empty() {
        errors.extend(Syntax::PathSegment.errors(text(metric, "name"), path.field("name")));
    }
    errors
}

fn rules(rules: &Value, path: Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let place = path.field("stabilizationWindowSeconds");
    let window = &rules["stabilizationWindowSeconds"];
    match window.as_i64() {
        Some(seconds) if seconds < 0 => {
            let why = "must be greater than or equal to zero";
            errors.push(FieldError::invalid(place, window, why));
        }
        Some(seconds) if seconds > WINDOW => {
            let why = format!("must be less than or equal to {WINDOW}");
            errors.push(FieldError::invalid(place, window, &why));
        }
        _ => {}
    }
    if items(rules, "policies").is_empty() {
        let why = "must specify at least one Policy";
        errors.push(FieldError::required(path.field("policies"), why));
    }
    if text(rules, "tolerance").starts_with('-') {
        let why = "must be greater than or equal to 0";
        errors.push(FieldError::invalid(path.field("tolerance"), &rules["tolerance"], why));
    }
    errors
}

fn policy(policy: &Value, path: Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for field in ["value", "periodSeconds"] {
        let number = policy[field].as_i64().unwrap_or(0);
        let why = match number {
            ..=0 => "must be greater than zero".to_owned(),
            _ if field == "periodSeconds" && number > PERIOD => {
                format!("must be less than or equal to {PERIOD}")
            }
            _ => continue,
        };
        errors.push(FieldError::invalid(path.field(field), &json!(number), &why));
    }
    errors
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::super::tests::mistakes;
    use super::*;

    #[rstest]
    #[case("MetricTarget", json!({"type": "Value", "value": "0", "averageValue": "-1"}),
           &["x.value", "x.averageValue"])]
    #[case("MetricTarget", json!({"type": "Value", "value": "1m"}), &[])]
    #[case("MetricTarget", json!({"type": "Odd"}), &["x.type"])]
    #[case("MetricTarget", json!({"averageUtilization": 0}),
           &["x.type", "x.type", "x.averageUtilization"])]
    #[case("MetricSpec", json!({"type": "Pods"}), &["x.pods"])]
    #[case("MetricSpec", json!({"type": "ContainerResource"}), &["x.containerResource"])]
    #[case("MetricSpec", json!({"type": "Pods", "pods": {}, "object": {}}), &["x.object"])]
    #[case("MetricSpec", json!({"pods": {}}), &["x.type", "x.type", "x.type"])]
    #[case("HorizontalPodAutoscalerSpec", json!({"minReplicas": 4, "maxReplicas": 3}),
           &["x.maxReplicas"])]
    #[case("HorizontalPodAutoscalerSpec", json!({"minReplicas": 1}),
           &["x.maxReplicas", "x.maxReplicas"])]
    #[case("HorizontalPodAutoscalerSpec", json!({"minReplicas": 0, "maxReplicas": -1}),
           &["x.minReplicas", "x.maxReplicas", "x.maxReplicas", "x.metrics"])]
    #[case("HPAScalingPolicy", json!({"value": 1, "periodSeconds": 1801}), &["x.periodSeconds"])]
    #[case("HPAScalingPolicy", json!({}), &["x.value", "x.periodSeconds"])]
    #[case("HPAScalingRules", json!({"policies": [], "stabilizationWindowSeconds": 3601}),
           &["x.stabilizationWindowSeconds", "x.policies"])]
    #[case("ResourceMetricSource", json!({"name": "cpu", "target": {}}),
           &["x.target.averageUtilization"])]
    #[case("ResourceMetricSource",
           json!({"target": {"averageUtilization": 1, "averageValue": "1"}}),
           &["x.name", "x.target.averageValue"])]
    #[case("ContainerResourceMetricSource",
           json!({"name": "odd", "container": "A", "target": {"averageValue": "1"}}),
           &["x.name", "x.name", "x.container"])]
    #[case("PodsMetricSource", json!({"target": {"value": "1"}}), &["x.target.averageValue"])]
    #[case("ObjectMetricSource", json!({"target": {}}), &["x.target.averageValue"])]
    #[case("ObjectMetricSource", json!({"target": {"value": "1"}}), &[])]
    #[case("ExternalMetricSource", json!({"target": {"value": "1", "averageValue": "1"}}),
           &["x.target.value"])]
    #[case("ExternalMetricSource", json!({"target": {}}), &["x.target.averageValue"])]
    #[case("MetricIdentifier", json!({"name": "a/b"}), &["x.name"])]
    #[case("HPAScalingRules", json!({"policies": [{}], "tolerance": "-1"}), &["x.tolerance"])]
    fn metrics_are_checked(#[case] name: &str, #[case] value: Value, #[case] expected: &[&str]) {
        assert_eq!(mistakes(name, &value), expected);
    }
}
