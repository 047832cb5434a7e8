//! The metrics of autoscalers and their targets.

use std::cmp::Ordering;

use serde_json::{Value, json};

use super::resources::container_resource;
use super::{Checks, has, text};
use kubeproof_apimachinery::object::validation::syntax::Syntax;
use kubeproof_apimachinery::schema::{FieldError, Path, quantity};

pub(super) const CHECKS: Checks = &[
    ("io.k8s.api.autoscaling.v2.ContainerResourceMetricSource", of_container),
    ("io.k8s.api.autoscaling.v2.ExternalMetricSource", external),
    ("io.k8s.api.autoscaling.v2.HPAScalingRules", rules),
    ("io.k8s.api.autoscaling.v2.MetricIdentifier", identifier),
    ("io.k8s.api.autoscaling.v2.MetricTarget", target),
    ("io.k8s.api.autoscaling.v2.ObjectMetricSource", object),
    ("io.k8s.api.autoscaling.v2.PodsMetricSource", pods),
    ("io.k8s.api.autoscaling.v2.ResourceMetricSource", resource),
];

fn target(target: &Value, path: Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for field in ["value", "averageValue"] {
        let amount = target[field].as_str().and_then(|amount| quantity::compare(amount, "0"));
        if amount.is_some_and(|order| order != Ordering::Greater) {
            let place = path.field(field);
            errors.push(FieldError::invalid(place, &target[field], "must be positive"));
        }
    }
    errors
}

fn resource(source: &Value, path: Path<'_>) -> Vec<FieldError> {
    let place = path.field("target");
    let target = &source["target"];
    match (has(target, "averageUtilization"), has(target, "averageValue")) {
        (false, false) => {
            let why = "must set either a target raw value or a target utilization";
            vec![FieldError::required(place.field("averageUtilization"), why)]
        }
        (true, true) => {
            let why = "may not set both a target raw value and a target utilization";
            vec![FieldError::forbidden(place.field("averageValue"), why)]
        }
        _ => Vec::new(),
    }
}

fn of_container(source: &Value, path: Path<'_>) -> Vec<FieldError> {
    let mut errors = resource(source, path);
    if has(source, "name") && !text(source, "name").is_empty() {
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
    Syntax::PathSegment.errors(text(metric, "name"), path.field("name"))
}

fn rules(rules: &Value, path: Path<'_>) -> Vec<FieldError> {
    let is_negative = text(rules, "tolerance").starts_with('-');
    let why = "must be greater than or equal to 0";
    let error = || FieldError::invalid(path.field("tolerance"), &json!(rules["tolerance"]), why);
    is_negative.then(error).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::super::tests::mistakes;
    use super::*;

    #[rstest]
    #[case("MetricTarget", json!({"value": "0", "averageValue": "-1"}),
           &["x.value", "x.averageValue"])]
    #[case("MetricTarget", json!({"value": "1m"}), &[])]
    #[case("ResourceMetricSource", json!({"target": {}}), &["x.target.averageUtilization"])]
    #[case("ResourceMetricSource",
           json!({"target": {"averageUtilization": 1, "averageValue": "1"}}),
           &["x.target.averageValue"])]
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
    #[case("HPAScalingRules", json!({"tolerance": "-1"}), &["x.tolerance"])]
    fn metrics_are_checked(#[case] name: &str, #[case] value: Value, #[case] expected: &[&str]) {
        assert_eq!(mistakes(name, &value), expected);
    }
}
