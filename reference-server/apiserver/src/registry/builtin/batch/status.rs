//! The status of jobs, which the job controller and controllers of users write.

use serde_json::{Value, json};

use crate::registry::builtin::checks::count_indexes;
use kubeproof_apimachinery::schema::FieldError;

/// Reports whether a job has a condition with the status `True`.
pub(super) fn is_true(job: &Value, kind: &str) -> bool {
    let conditions = job["status"]["conditions"].as_array().into_iter().flatten();
    conditions.into_iter().any(|it| it["type"] == kind && it["status"] == "True")
}

fn is_finished(job: &Value) -> bool {
    is_true(job, "Complete") || is_true(job, "Failed")
}

/// Returns the errors of a new status. As in kube-apiserver, the rules apply to changed fields, and
/// an old mistake blocks no other change.
pub(super) fn validate(new: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = uncounted(new);
    errors.extend(conditions(new, old));
    errors.extend(times(new, old));
    errors.extend(counts(new, old));
    errors.extend(indexes(new, old));
    errors
}

fn invalid(job: &Value, field: &str, why: &str) -> FieldError {
    FieldError::invalid(format!("status.{field}"), &job["status"][field], why)
}

/// Each pod waits once to be counted.
fn uncounted(job: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut known = Vec::new();
    for list in ["succeeded", "failed"] {
        let uids = job["status"]["uncountedTerminatedPods"][list].as_array().into_iter().flatten();
        for (index, uid) in uids.enumerate() {
            let place = format!("status.uncountedTerminatedPods.{list}[{index}]");
            if uid == "" {
                errors.push(FieldError::invalid(place, uid, "must not be empty"));
            } else if known.contains(&uid) {
                errors.push(FieldError::duplicate(place, uid));
            }
            known.push(uid);
        }
    }
    errors
}

fn conditions(new: &Value, old: &Value) -> Vec<FieldError> {
    let is = |kind: &str| is_true(new, kind);
    let changed = |kind: &str| is_true(new, kind) != is_true(old, kind);
    let (complete, met) = (is("Complete"), is("SuccessCriteriaMet"));
    let has_policy = new["spec"]["successPolicy"].is_object();
    let reopened = |kind: &str| is_true(old, kind) && !is(kind);
    let rules = [
        (
            complete && is("Failed") && (changed("Complete") || changed("Failed")),
            "cannot set Complete=True and Failed=true conditions",
        ),
        (
            complete && is("FailureTarget") && (changed("Complete") || changed("FailureTarget")),
            "cannot set Complete=True and FailureTarget=true conditions",
        ),
        (
            is("Failed") && !is("FailureTarget") && changed("Failed"),
            "cannot set Failed=True condition without the FailureTarget=true condition",
        ),
        (
            complete && !met && (changed("Complete") || changed("SuccessCriteriaMet")),
            "cannot set Complete=True condition without the SuccessCriteriaMet=true condition",
        ),
        (met && is("Failed"), "cannot set SuccessCriteriaMet=True and Failed=true conditions"),
        (
            met && is("FailureTarget"),
            "cannot set SuccessCriteriaMet=True and FailureTarget=true conditions",
        ),
        (
            has_policy && complete && !met,
            "cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True",
        ),
        (reopened("Failed"), "cannot disable the terminal Failed=True condition"),
        (reopened("Complete"), "cannot disable the terminal Complete=True condition"),
        (reopened("FailureTarget"), "cannot disable the terminal FailureTarget=True condition"),
        (reopened("SuccessCriteriaMet"), "cannot disable the SuccessCriteriaMet=True condition"),
        (
            is_true(old, "Complete") && changed("SuccessCriteriaMet") && met,
            "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions",
        ),
    ];
    let broken = rules.into_iter().filter(|(is_broken, _)| *is_broken);
    broken.map(|(_, why)| FieldError::invalid("status.conditions", &json!(""), why)).collect()
}

fn times(new: &Value, old: &Value) -> Vec<FieldError> {
    let time = |job: &Value, field: &str| job["status"][field].as_str().map(str::to_owned);
    let (start, end) = (time(new, "startTime"), time(new, "completionTime"));
    let (old_start, old_end) = (time(old, "startTime"), time(old, "completionTime"));
    let complete = is_true(new, "Complete");
    let completed = complete != is_true(old, "Complete") || end != old_end;
    let mut errors = Vec::new();
    if completed && end.is_some() && !complete {
        let why = "cannot set completionTime when there is no Complete=True condition";
        errors.push(invalid(new, "completionTime", why));
    }
    if completed && end.is_none() && complete {
        let why = "completionTime is required for Complete jobs";
        errors.push(FieldError::required("status.completionTime", why));
    }
    // The times of a status have one zone and whole seconds.
    if (start != old_start || end != old_end)
        && start.as_ref().zip(end.as_ref()).is_some_and(|(start, end)| end < start)
    {
        errors.push(invalid(new, "completionTime", "must be equal to or after `startTime`"));
    }
    let is_empty = new["spec"]["suspend"] == true && new["spec"]["completions"] == 0;
    let ended = is_finished(new) != is_finished(old);
    if (ended || start != old_start) && start.is_none() && is_finished(new) && !is_empty {
        let why = "startTime is required for finished job";
        errors.push(FieldError::required("status.startTime", why));
    }
    if end.is_some() && old_end.is_some() && end != old_end {
        errors.push(invalid(new, "completionTime", "field is immutable"));
    }
    let resumes = is_true(old, "Suspended") && !is_true(new, "Suspended");
    if old_start.is_some() && start != old_start && new["spec"]["suspend"] != true && !resumes {
        let why = "field is immutable for unsuspended job once set";
        errors.push(invalid(new, "startTime", why));
    }
    errors
}

fn counts(new: &Value, old: &Value) -> Vec<FieldError> {
    let count = |job: &Value, field: &str| job["status"][field].as_i64().unwrap_or(0);
    let changed = |field: &str| count(new, field) != count(old, field);
    let ended = is_finished(new) != is_finished(old);
    let mut errors = Vec::new();
    for field in ["active", "terminating"] {
        if (ended || changed(field)) && count(new, field) > 0 && is_finished(new) {
            let why = format!("{field}>0 is invalid for finished job");
            errors.push(invalid(new, field, &why));
        }
    }
    let waiting = |job: &Value| job["status"]["uncountedTerminatedPods"].clone();
    let has_waiting = ["failed", "succeeded"]
        .iter()
        .any(|list| waiting(new)[list].as_array().is_some_and(|uids| !uids.is_empty()));
    if (ended || waiting(new) != waiting(old)) && is_finished(new) && has_waiting {
        errors.push(invalid(new, "uncountedTerminatedPods", "must be empty for finished job"));
    }
    let has_moved = changed("ready") || changed("active");
    if has_moved && count(new, "ready") > count(new, "active") {
        errors.push(invalid(new, "ready", "cannot set more ready pods than active"));
    }
    // A job with indexes can shrink.
    let spec = &new["spec"];
    let is_elastic =
        spec["completionMode"] == "Indexed" && spec["completions"] == spec["parallelism"];
    for (field, is_fixed) in [("failed", true), ("succeeded", !is_elastic)] {
        if is_fixed && count(new, field) < count(old, field) {
            let why = format!("cannot decrease the {field} counter");
            errors.push(invalid(new, field, &why));
        }
    }
    errors
}

fn indexes(new: &Value, old: &Value) -> Vec<FieldError> {
    let spec = &new["spec"];
    let mut errors = Vec::new();
    let has_limit = !spec["backoffLimitPerIndex"].is_null();
    for field in ["completedIndexes", "failedIndexes"] {
        let Some(text) = new["status"][field].as_str() else { continue };
        if old["status"][field] == text {
            continue;
        }
        let completions = spec["completions"].as_i64();
        let is_parsed = field == "completedIndexes" || has_limit;
        if let Some(completions) = completions.filter(|_| is_parsed && !text.is_empty())
            && let Err(why) = count_indexes(text, completions)
        {
            errors.push(invalid(new, field, &format!("error parsing {field}: {why}")));
        }
        let why = match field {
            "completedIndexes" if spec["completionMode"] != "Indexed" && !text.is_empty() => {
                "cannot set non-empty completedIndexes when non-indexed completion mode"
            }
            "failedIndexes" if !has_limit => {
                "cannot set non-null failedIndexes when backoffLimitPerIndex is null"
            }
            _ => continue,
        };
        errors.push(invalid(new, field, why));
    }
    errors
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    const START: &str = "2024-01-02T03:04:05Z";
    const END: &str = "2024-01-02T03:04:06Z";

    fn conditions(kinds: &[&str]) -> Value {
        kinds.iter().map(|kind| json!({"type": kind, "status": "True"})).collect()
    }

    fn fields(spec: &Value, new: &Value, old: &Value) -> Vec<String> {
        let job = |status: &Value| json!({"spec": spec, "status": status});
        validate(&job(new), &job(old)).into_iter().map(|error| error.field).collect()
    }

    #[rstest]
    #[case(&["SuccessCriteriaMet", "Complete"], &[])]
    #[case(&["Complete"], &["status.conditions"])]
    #[case(&["SuccessCriteriaMet", "Complete", "Failed", "FailureTarget"],
           &["status.conditions"; 4])]
    fn a_complete_job_met_its_criteria(#[case] kinds: &[&str], #[case] expected: &[&str]) {
        let new =
            json!({"conditions": conditions(kinds), "startTime": START, "completionTime": END});
        assert_eq!(fields(&json!({}), &new, &json!({})), expected);
    }

    #[test]
    fn a_failed_job_has_a_target_and_no_end() {
        let new =
            json!({"conditions": conditions(&["FailureTarget", "Failed"]), "startTime": START});
        assert_eq!(fields(&json!({}), &new, &json!({})), [""; 0]);
        let new = json!({"conditions": conditions(&["Failed"]), "completionTime": END});
        let expected = ["status.conditions", "status.completionTime", "status.startTime"];
        assert_eq!(fields(&json!({}), &new, &json!({})), expected);
    }

    #[rstest]
    #[case(json!({"ready": 2, "active": 1}), json!({}), &["status.ready"])]
    #[case(json!({"failed": 1}), json!({"failed": 2}), &["status.failed"])]
    #[case(json!({}), json!({"succeeded": 2}), &["status.succeeded"])]
    #[case(json!({"startTime": END}), json!({"startTime": START}), &["status.startTime"])]
    #[case(json!({}), json!({"conditions": [{"type": "Failed", "status": "True"}]}),
           &["status.conditions"])]
    #[case(
        json!({"uncountedTerminatedPods": {"failed": ["a", "a", ""]}}),
        json!({}),
        &[
            "status.uncountedTerminatedPods.failed[1]",
            "status.uncountedTerminatedPods.failed[2]",
        ]
    )]
    #[case(json!({"completedIndexes": "0"}), json!({}), &["status.completedIndexes"])]
    #[case(json!({"failedIndexes": ""}), json!({}), &["status.failedIndexes"])]
    fn a_status_fits_to_the_last_one(
        #[case] new: Value,
        #[case] old: Value,
        #[case] expected: &[&str],
    ) {
        assert_eq!(fields(&json!({"completions": 3}), &new, &old), expected);
    }

    #[test]
    fn indexes_are_below_the_completions() {
        let spec = json!({"completionMode": "Indexed", "completions": 2, "parallelism": 2,
                          "backoffLimitPerIndex": 1});
        let new = json!({"completedIndexes": "0", "failedIndexes": "2"});
        assert_eq!(fields(&spec, &new, &json!({"succeeded": 1})), ["status.failedIndexes"]);
    }
}
