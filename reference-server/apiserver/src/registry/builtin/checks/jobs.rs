//! The policies of jobs: when pods fail, when a job succeeds, and when pods are replaced.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::{Checks, each_container, has, items, text};
use kubeproof_apimachinery::object::validation::syntax::Syntax;
use kubeproof_apimachinery::schema::{FieldError, Path};

pub(super) const CHECKS: Checks = &[
    ("io.k8s.api.batch.v1.JobSpec", job),
    ("io.k8s.api.batch.v1.PodFailurePolicyOnExitCodesRequirement", exit_codes),
    ("io.k8s.api.batch.v1.PodFailurePolicyRule", failure_rule),
];

const INDEXED: &str = "Indexed";
/// The limits of indexed jobs.
const MAX_PARALLELISM: i64 = 100_000;
const MAX_FAILED: i64 = 100_000;
/// A job with more completions and a limit for each index has smaller limits.
const MANY_COMPLETIONS: i64 = 100_000;
const MAX_WITH_MANY: i64 = 10_000;

fn job(spec: &Value, path: Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if has(spec, "maxFailedIndexes") && !has(spec, "backoffLimitPerIndex") {
        let why = "when maxFailedIndexes is specified";
        errors.push(FieldError::required(path.field("backoffLimitPerIndex"), why));
    }
    if text(spec, "completionMode") == INDEXED {
        errors.extend(indexes(spec, path));
    }
    errors.extend(failure_policy(spec, path));
    if has(spec, "successPolicy") && text(spec, "completionMode") == INDEXED {
        errors.extend(success_policy(spec, path.field("successPolicy")));
    }
    errors
}

fn indexes(spec: &Value, path: Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let number = |field: &str| spec[field].as_i64();
    let completions = number("completions");
    let mut limit = |field: &str, most: i64, why: &str| {
        if number(field).is_some_and(|number| number > most) {
            let why = format!("must be less than or equal to {why}");
            errors.push(FieldError::invalid(path.field(field), &spec[field], &why));
        }
    };
    let why = format!("{MAX_PARALLELISM} when completion mode is Indexed");
    limit("parallelism", MAX_PARALLELISM, &why);
    limit("maxFailedIndexes", completions.unwrap_or(i64::MAX), "completions");
    limit("maxFailedIndexes", MAX_FAILED, &MAX_FAILED.to_string());
    let has_many = completions.is_some_and(|count| count > MANY_COMPLETIONS);
    if has_many && has(spec, "backoffLimitPerIndex") {
        let why = format!(
            "{MAX_WITH_MANY} when completions are above {MANY_COMPLETIONS} and used with backoff \
             limit per index"
        );
        limit("parallelism", MAX_WITH_MANY, &why);
        limit("maxFailedIndexes", MAX_WITH_MANY, &why);
        if !has(spec, "maxFailedIndexes") {
            let why = format!("must be specified when completions is above {MANY_COMPLETIONS}");
            errors.push(FieldError::required(path.field("maxFailedIndexes"), &why));
        }
    }
    errors
}

/// Checks what the policy for failed pods demands of other fields.
fn failure_policy(spec: &Value, path: Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if !has(spec, "podFailurePolicy") {
        return errors;
    }
    let template = path.field("template");
    if text(&spec["template"]["spec"], "restartPolicy") == "OnFailure" {
        let pod = template.field("spec");
        let why = "only \"Never\" is supported when podFailurePolicy is specified";
        errors.push(FieldError::invalid(pod.field("restartPolicy"), &json!("OnFailure"), why));
    }
    let replacement = text(spec, "podReplacementPolicy");
    if !matches!(replacement, "" | "Failed") {
        let place = path.field("podReplacementPolicy");
        errors.push(FieldError::not_supported(place, &json!(replacement), &[json!("Failed")]));
    }
    let mut names = HashSet::new();
    each_container(&spec["template"]["spec"], template, |container, _| {
        names.insert(text(container, "name").to_owned());
    });
    let policy = path.field("podFailurePolicy");
    let list = policy.field("rules");
    for (index, rule) in items(&spec["podFailurePolicy"], "rules").iter().enumerate() {
        let place = list.index(index);
        if text(rule, "action") == "FailIndex" && !has(spec, "backoffLimitPerIndex") {
            let why = "requires the backoffLimitPerIndex to be set";
            errors.push(FieldError::invalid(place.field("action"), &rule["action"], why));
        }
        let name = &rule["onExitCodes"]["containerName"];
        if name.as_str().is_some_and(|name| !names.contains(name)) {
            let place = place.field("onExitCodes");
            let why = "must be one of the container or initContainer names in the pod template";
            errors.push(FieldError::invalid(place.field("containerName"), name, why));
        }
    }
    errors
}

fn failure_rule(rule: &Value, path: Path<'_>) -> Vec<FieldError> {
    let conditions = items(rule, "onPodConditions");
    let mut errors = Vec::new();
    let list = path.field("onPodConditions");
    for (index, condition) in conditions.iter().enumerate() {
        let place = list.index(index);
        errors.extend(Syntax::LabelKey.errors(text(condition, "type"), place.field("type")));
    }
    let why = match (has(rule, "onExitCodes"), !conditions.is_empty()) {
        (true, true) => "specifying both OnExitCodes and OnPodConditions is not supported",
        (false, false) => "specifying one of OnExitCodes and OnPodConditions is required",
        _ => return errors,
    };
    errors.push(FieldError::invalid(path, rule, why));
    errors
}

fn exit_codes(requirement: &Value, path: Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let list = path.field("values");
    let values = items(requirement, "values");
    let mut known = HashSet::new();
    for (index, value) in values.iter().enumerate() {
        let place = list.index(index);
        if *value == 0 && text(requirement, "operator") == "In" {
            errors.push(FieldError::invalid(place, value, "must not be 0 for the In operator"));
        }
        if !known.insert(value.as_i64()) {
            errors.push(FieldError::duplicate(place, value));
        }
    }
    if !values.is_sorted_by_key(Value::as_i64) {
        errors.push(FieldError::invalid(list, &requirement["values"], "must be ordered"));
    }
    errors
}

fn success_policy(spec: &Value, path: Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let completions = spec["completions"].as_i64().unwrap_or(0);
    let list = path.field("rules");
    for (index, rule) in items(&spec["successPolicy"], "rules").iter().enumerate() {
        let place = list.index(index);
        let indexes = rule["succeededIndexes"].as_str();
        let count = rule["succeededCount"].as_i64();
        if indexes.is_none() && count.is_none() {
            let why = "at least one of succeededCount or succeededIndexes must be specified";
            errors.push(FieldError::required(place, why));
        }
        let total = indexes.map(|text| count_indexes(text, completions));
        if let Some(Err(why)) = &total {
            let why = format!("error parsing succeededIndexes: {why}");
            let place = place.field("succeededIndexes");
            errors.push(FieldError::invalid(place, &json!(indexes), &why));
        }
        let limits = [
            (Some(completions), "the number of specified completions"),
            (
                total.map(|total| total.unwrap_or(0)),
                "the number of indexes in the specified succeededIndexes field",
            ),
        ];
        for (most, what) in limits {
            let Some(most) = most.filter(|most| count.is_some_and(|count| count > *most)) else {
                continue;
            };
            let why = format!("must be less than or equal to {most} ({what})");
            let place = place.field("succeededCount");
            errors.push(FieldError::invalid(place, &json!(count), &why));
        }
    }
    errors
}

/// Returns the number of the indexes in a text such as `1,3-5`.
pub(in crate::registry::builtin) fn count_indexes(
    text: &str,
    completions: i64,
) -> Result<i64, String> {
    let mut total = 0;
    let mut last = None;
    if text.is_empty() {
        return Ok(0);
    }
    for interval in text.split(',') {
        let (first, end) = interval.split_once('-').unwrap_or((interval, interval));
        let index = |text: &str| {
            let number: i64 = text
                .parse()
                .map_err(|_| format!("cannot convert string to integer for index: {text:?}"))?;
            if number >= completions {
                return Err(format!("too large index: {text:?}"));
            }
            Ok(number)
        };
        let (first, end) = (index(first)?, index(end)?);
        if last.is_some_and(|last| last >= first) {
            return Err(format!(
                "non-increasing order, previous: {}, current: {first}",
                last.unwrap_or_default()
            ));
        }
        if interval.contains('-') && end <= first {
            return Err(format!("non-increasing order, previous: {first}, current: {end}"));
        }
        total += end - first + 1;
        last = Some(end);
    }
    Ok(total)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::super::tests::mistakes;
    use super::*;

    const NO_LIMIT: [&str; 1] = ["x.backoffLimitPerIndex"];

    #[rstest]
    #[case(json!({"maxFailedIndexes": 1}), &NO_LIMIT)]
    #[case(json!({"maxFailedIndexes": 4, "backoffLimitPerIndex": 1}), &["x.maxFailedIndexes"])]
    #[case(json!({"maxFailedIndexes": 3, "backoffLimitPerIndex": 1}), &[])]
    #[case(json!({"parallelism": 100_001}), &["x.parallelism"])]
    #[case(
        json!({"completions": 100_001, "backoffLimitPerIndex": 1, "parallelism": 10_001}),
        &["x.parallelism", "x.maxFailedIndexes"]
    )]
    #[case(
        json!({"podFailurePolicy": {}, "podReplacementPolicy": "TerminatingOrFailed",
               "template": {"spec": {"restartPolicy": "OnFailure"}}}),
        &["x.template.spec.restartPolicy", "x.podReplacementPolicy"]
    )]
    #[case(
        json!({"podFailurePolicy": {"rules": [
            {"action": "FailIndex", "onExitCodes": {"containerName": "other"}},
        ]}}),
        &["x.podFailurePolicy.rules[0].action",
          "x.podFailurePolicy.rules[0].onExitCodes.containerName"]
    )]
    #[case(json!({"successPolicy": {"rules": [{}]}}), &["x.successPolicy.rules[0]"])]
    #[case(json!({"successPolicy": {"rules": [{"succeededCount": 4}]}}),
           &["x.successPolicy.rules[0].succeededCount"])]
    #[case(json!({"successPolicy": {"rules": [{"succeededCount": 2, "succeededIndexes": "0"}]}}),
           &["x.successPolicy.rules[0].succeededCount"])]
    #[case(json!({"successPolicy": {"rules": [{"succeededIndexes": "0,1-2"}]}}), &[])]
    fn jobs_are_checked(#[case] mut spec: Value, #[case] expected: &[&str]) {
        spec["completionMode"] = json!(INDEXED);
        if spec.get("completions").is_none() {
            spec["completions"] = json!(3);
        }
        assert_eq!(mistakes("JobSpec", &spec), expected);
    }

    #[rstest]
    #[case(json!({"operator": "In", "values": [0, 2, 1, 1]}),
           &["x.values[0]", "x.values[3]", "x.values"])]
    #[case(json!({"operator": "NotIn", "values": [0, 1]}), &[])]
    fn exit_codes_are_ordered(#[case] value: Value, #[case] expected: &[&str]) {
        assert_eq!(mistakes("PodFailurePolicyOnExitCodesRequirement", &value), expected);
    }

    #[rstest]
    #[case(json!({}), &["x"])]
    #[case(json!({"onExitCodes": {}, "onPodConditions": [{"type": "a"}]}), &["x"])]
    #[case(json!({"onPodConditions": [{"type": "a b"}]}), &["x.onPodConditions[0].type"])]
    fn a_rule_has_one_pattern(#[case] value: Value, #[case] expected: &[&str]) {
        assert_eq!(mistakes("PodFailurePolicyRule", &value), expected);
    }

    #[rstest]
    #[case("", Some(0))]
    #[case("0", Some(1))]
    #[case("0,2-3", Some(3))]
    #[case("4", None)]
    #[case("1-1", None)]
    #[case("2,1", None)]
    #[case("a", None)]
    #[case("1,", None)]
    fn indexes_increase(#[case] text: &str, #[case] expected: Option<i64>) {
        assert_eq!(count_indexes(text, 4).ok(), expected);
    }
}
