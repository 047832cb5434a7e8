//! Tests of jobs and cron jobs.

use rstest::rstest;

use super::*;

fn job(vary: fn(&mut Value)) -> Value {
    let mut job = json!({"metadata": {"name": "j", "uid": "u"}, "spec": {"template": {
        "metadata": {"labels": {"app": "j"}},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]},
    }}});
    vary(&mut job);
    let ty = jobs();
    ty.schema().prune(&mut job);
    (ty.hooks.prepare_create)(&mut job);
    ty.schema().apply_defaults(&mut job);
    (ty.hooks.default)(&mut job);
    job
}

fn mistakes(ty: &BuiltinType, object: &Value) -> Vec<String> {
    let mut errors = ty.schema().validate(object, None);
    errors.extend((ty.hooks.validate)(object));
    errors.into_iter().map(|error| error.field).collect()
}

#[test]
fn a_job_gets_defaults_labels_and_a_selector() {
    let mut job = job(|_| ());
    assert_eq!(job["metadata"]["labels"]["app"], "j");
    let labels = job["spec"]["template"]["metadata"]["labels"].take();
    assert_eq!(labels["batch.kubernetes.io/controller-uid"], "u");
    assert_eq!(labels["job-name"], "j");
    job["spec"].as_object_mut().unwrap().remove("template");
    let expected = json!({
        "backoffLimit": 6, "completionMode": "NonIndexed", "completions": 1,
        "manualSelector": false, "parallelism": 1, "podReplacementPolicy": "TerminatingOrFailed",
        "selector": {"matchLabels": {"batch.kubernetes.io/controller-uid": "u"}}, "suspend": false,
    });
    assert_eq!(job["spec"], expected);
}

#[rstest]
#[case(|_: &mut Value| (), &[])]
#[case(|j: &mut Value| j["spec"]["parallelism"] = json!(-1), &["spec.parallelism"])]
#[case(
    |j: &mut Value| j["spec"]["template"]["spec"]["restartPolicy"] = json!("Always"),
    &["spec.template.spec.restartPolicy"]
)]
#[case(
    |j: &mut Value| {
        j["spec"]["completionMode"] = json!("Indexed");
        j["spec"]["parallelism"] = json!(2);
    },
    &["spec.completions"]
)]
#[case(
    |j: &mut Value| j["spec"]["backoffLimitPerIndex"] = json!(1),
    &["spec.backoffLimitPerIndex"]
)]
#[case(|j: &mut Value| j["spec"]["manualSelector"] = json!(true), &["spec.selector"])]
#[case(|j: &mut Value| j["spec"]["completionMode"] = json!("Odd"), &["spec.completionMode"])]
fn mistakes_name_their_field(#[case] vary: fn(&mut Value), #[case] expected: &[&str]) {
    assert_eq!(mistakes(&jobs(), &job(vary)), expected);
}

#[rstest]
#[case(|_: &mut Value| (), &[])]
#[case(|j: &mut Value| j["spec"]["parallelism"] = json!(5), &[])]
#[case(|j: &mut Value| j["spec"]["completions"] = json!(5), &["spec.completions"])]
#[case(
    |j: &mut Value| j["spec"]["template"]["spec"]["dnsPolicy"] = json!("Default"),
    &["spec.template"]
)]
fn most_of_a_job_is_immutable(#[case] vary: fn(&mut Value), #[case] expected: &[&str]) {
    let old = job(|_| ());
    let mut new = old.clone();
    vary(&mut new);
    let errors = validate_job_update(&new, &old);
    assert_eq!(errors.into_iter().map(|error| error.field).collect::<Vec<_>>(), expected);
}

#[rstest]
#[case("resources", "spec.containers[0]", &[])]
#[case("nodeSelector", "spec", &[])]
#[case("dnsPolicy", "spec", &["spec.template.spec"])]
#[case("image", "spec.containers[0]", &["spec.template.spec"])]
fn a_suspended_job_gets_other_resources_and_nodes(
    #[case] field: &str,
    #[case] place: &str,
    #[case] expected: &[&str],
) {
    let old = job(|j| j["spec"]["suspend"] = json!(true));
    let mut new = old.clone();
    let spec = &mut new["spec"]["template"]["spec"];
    let part = if place == "spec" { spec } else { &mut spec["containers"][0] };
    part[field] = json!({"changed": "yes"});
    let fields = |old: &Value| {
        let errors = validate_job_update(&new, old);
        errors.into_iter().map(|error| error.field).collect::<Vec<_>>()
    };
    assert_eq!(fields(&old), expected);
    let mut active = old;
    active["status"]["active"] = json!(1);
    assert_eq!(fields(&active), ["spec.template"]);
}

#[test]
fn an_indexed_job_changes_its_size_with_its_parallelism() {
    let old = job(|j| {
        j["spec"]["completionMode"] = json!("Indexed");
        j["spec"]["completions"] = json!(2);
        j["spec"]["parallelism"] = json!(2);
    });
    let mut new = old.clone();
    new["spec"]["completions"] = json!(3);
    assert_eq!(validate_job_update(&new, &old)[0].field, "spec.completions");
    new["spec"]["parallelism"] = json!(3);
    assert_eq!(validate_job_update(&new, &old), []);
    new["spec"]["successPolicy"] = json!({"rules": [{"succeededCount": 1}]});
    assert_eq!(validate_job_update(&new, &old)[0].field, "spec.successPolicy");
}

fn cron_job(vary: fn(&mut Value)) -> Value {
    let template = json!({"spec": {
        "restartPolicy": "OnFailure", "containers": [{"name": "c", "image": "i"}],
    }});
    let mut cron = json!({"metadata": {"name": "c"}, "spec": {
        "schedule": "0 * * * *", "jobTemplate": {"spec": {"template": template}},
    }});
    vary(&mut cron);
    let ty = cron_jobs();
    ty.schema().prune(&mut cron);
    ty.schema().apply_defaults(&mut cron);
    (ty.hooks.default)(&mut cron);
    cron
}

#[rstest]
#[case(|_: &mut Value| (), &[])]
#[case(|c: &mut Value| c["spec"]["schedule"] = json!("often"), &["spec.schedule"])]
#[case(|c: &mut Value| c["spec"]["schedule"] = json!(""), &["spec.schedule"])]
#[case(|c: &mut Value| c["spec"]["timeZone"] = json!("Mars"), &["spec.timeZone"])]
#[case(|c: &mut Value| c["spec"]["concurrencyPolicy"] = json!("Odd"), &["spec.concurrencyPolicy"])]
#[case(|c: &mut Value| c["metadata"]["name"] = json!("c".repeat(53)), &["metadata.name"])]
fn cron_jobs_are_validated(#[case] vary: fn(&mut Value), #[case] expected: &[&str]) {
    let cron = cron_job(vary);
    assert_eq!(mistakes(&cron_jobs(), &cron), expected);
    assert_eq!(cron["spec"]["successfulJobsHistoryLimit"], 3);
}

#[test]
fn cells_describe_the_progress() {
    let job = json!({
        "spec": {"completions": 3, "parallelism": 1},
        "status": {"succeeded": 2, "conditions": [{"type": "Complete", "status": "False"}]},
    });
    assert_eq!(completions(&job), "2/3");
    assert_eq!(job_status(&job), "Running");
    let failed = json!({"status": {"conditions": [{"type": "Failed", "status": "True"}]}});
    assert_eq!(job_status(&failed), "Failed");
}
