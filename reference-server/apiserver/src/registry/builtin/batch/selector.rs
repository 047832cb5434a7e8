//! The selector of a job: its pods have generated labels unless the client selects them itself.

use serde_json::{Value, json};

use crate::registry::builtin::workload::selects;
use kubeproof_apimachinery::object::Object;
use kubeproof_apimachinery::schema::FieldError;

/// The labels with the uid and with the name. Older clients use those without a domain.
const UIDS: [&str; 2] = ["controller-uid", "batch.kubernetes.io/controller-uid"];
const NAMES: [&str; 2] = ["job-name", "batch.kubernetes.io/job-name"];

/// Labels the pods of a job with its uid and selects them. Labels of the client stay, and
/// validation rejects wrong ones.
pub(super) fn generate(job: &mut Value) {
    if job["spec"]["manualSelector"] == true {
        return;
    }
    let expected = expected(job);
    let uid = job.meta("uid").to_owned();
    let Some(spec) = job.get_mut("spec").filter(|spec| spec["template"].is_object()) else {
        return;
    };
    for (label, value) in expected {
        let labels = &mut spec["template"]["metadata"]["labels"];
        if labels.get(label).is_none() {
            labels[label] = value.into();
        }
    }
    let selected = &mut spec["selector"]["matchLabels"];
    if selected.get(UIDS[1]).is_none() {
        selected[UIDS[1]] = uid.into();
    }
}

/// Returns the errors of a new job.
pub(super) fn validate(job: &Value) -> Vec<FieldError> {
    check(job, true)
}

/// Returns the errors of a changed job. Older jobs lack the labels with a domain.
pub(super) fn validate_update(new: &Value, old: &Value) -> Vec<FieldError> {
    let labels = &old["spec"]["template"]["metadata"]["labels"];
    check(new, [UIDS[1], NAMES[1]].iter().all(|label| labels.get(label).is_some()))
}

/// A client that does not select the pods itself has the generated labels and their selector.
fn check(job: &Value, with_domains: bool) -> Vec<FieldError> {
    let spec = &job["spec"];
    if spec["manualSelector"] == true || spec["selector"].is_null() {
        return Vec::new();
    }
    let labels = &spec["template"]["metadata"]["labels"];
    let expected = expected(job);
    let expected = || expected.iter().filter(|(key, _)| with_domains || !key.contains('/'));
    let error = |(key, value): &(&str, String)| {
        let place = format!("spec.template.metadata.labels[{key}]");
        let why = format!("must be '{value}'");
        match labels.get(key) {
            None => Some(FieldError::required(place, &why)),
            Some(given) if *given != **value => Some(FieldError::invalid(place, labels, &why)),
            Some(_) => None,
        }
    };
    let mut errors: Vec<_> = expected().filter_map(error).collect();
    let all: Value = expected().map(|(key, value)| ((*key).to_owned(), json!(value))).collect();
    if !selects(&spec["selector"], Some(&all)) {
        let why = "`selector` not auto-generated";
        errors.push(FieldError::invalid("spec.selector", &spec["selector"], why));
    }
    errors
}

fn expected(job: &Value) -> [(&'static str, String); 4] {
    let (uid, name) = (job.meta("uid").to_owned(), job.meta("name").to_owned());
    [(UIDS[0], uid.clone()), (NAMES[0], name.clone()), (UIDS[1], uid), (NAMES[1], name)]
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn job() -> Value {
        let template = json!({"metadata": {"labels": {"a": "b"}}});
        let mut job =
            json!({"metadata": {"name": "j", "uid": "u"}, "spec": {"template": template}});
        generate(&mut job);
        job
    }

    #[test]
    fn labels_and_selector_are_generated() {
        let job = job();
        let labels = json!({
            "a": "b", "batch.kubernetes.io/controller-uid": "u", "controller-uid": "u",
            "batch.kubernetes.io/job-name": "j", "job-name": "j",
        });
        assert_eq!(job["spec"]["template"]["metadata"]["labels"], labels);
        let selector = json!({"matchLabels": {"batch.kubernetes.io/controller-uid": "u"}});
        assert_eq!(job["spec"]["selector"], selector);
        assert_eq!(validate(&job), []);
    }

    #[rstest]
    #[case("/spec/template/metadata/labels/job-name", json!(""), &[
        "spec.template.metadata.labels[job-name]"
    ])]
    #[case("/spec/template/metadata/labels", json!({}), &[
        "spec.template.metadata.labels[controller-uid]",
        "spec.template.metadata.labels[job-name]",
        "spec.template.metadata.labels[batch.kubernetes.io/controller-uid]",
        "spec.template.metadata.labels[batch.kubernetes.io/job-name]",
    ])]
    #[case("/spec/selector/matchLabels", json!({"x": "y"}), &["spec.selector"])]
    fn an_update_keeps_them(
        #[case] pointer: &str,
        #[case] value: Value,
        #[case] expected: &[&str],
    ) {
        let old = job();
        let mut new = old.clone();
        *new.pointer_mut(pointer).unwrap() = value;
        let errors = validate_update(&new, &old);
        let fields: Vec<_> = errors.iter().map(|error| error.field.as_str()).collect();
        assert_eq!(fields, expected);
    }

    #[test]
    fn an_old_job_lacks_labels_with_domains() {
        let mut old = job();
        let labels = old["spec"]["template"]["metadata"]["labels"].as_object_mut().unwrap();
        labels.retain(|key, _| !key.contains('/'));
        old["spec"]["selector"] = json!({"matchLabels": {"controller-uid": "u"}});
        assert_eq!(validate_update(&old, &old), []);
    }
}
