//! The group `batch/v1`: jobs and cron jobs.

mod schedule;
mod selector;
mod status;

use serde_json::{Value, json};

use super::core::pod::{complete_spec, validate_spec};
use super::data::{container_columns, hooks, of_containers, resource};
use super::workload::selects;
use super::{BuiltinType, FieldLabel, Hooks, NameRule, warnings};
use kubeproof_apimachinery::object::Object;
use kubeproof_apimachinery::schema::{FieldError, Path};
use kubeproof_apimachinery::table::column::{Cell, age, column, count, wide};

pub(super) fn types() -> Vec<BuiltinType> {
    vec![cron_jobs(), jobs()]
}

/// The longest name of a cron job, since its jobs get a suffix.
const MAX_CRON_JOB_NAME: usize = 52;

const JOB_LABELS: &[FieldLabel] =
    &[FieldLabel { label: "status.successful", pointer: "/status/succeeded", absent: "0" }];

fn jobs() -> BuiltinType {
    let mut columns = vec![
        column("Status", "string", Cell::Computed(job_status)),
        column("Completions", "string", Cell::Computed(completions)),
        column("Duration", "string", Cell::Computed(duration)),
        age(),
    ];
    columns.extend(container_columns(
        |job| of_containers(&job["spec"]["template"], "name"),
        |job| of_containers(&job["spec"]["template"], "image"),
    ));
    columns.push(wide("Selector", "string", Cell::Computed(|job| selector(&job["spec"]))));
    BuiltinType {
        field_labels: JOB_LABELS,
        columns,
        hooks: Hooks {
            default: |job| {
                complete_job_spec(&mut job["spec"]);
                let labels = job["spec"]["template"]["metadata"]["labels"].clone();
                if labels.is_object() && count(job, "/metadata/labels") == 0 {
                    job["metadata"]["labels"] = labels;
                }
            },
            validate: |job| {
                let root = Path::Root;
                let mut errors = validate_job_spec(&job["spec"], root.field("spec"));
                if job["spec"]["selector"].is_null() {
                    errors.push(FieldError::required("spec.selector", ""));
                }
                errors
            },
            validate_create: selector::validate,
            validate_update: validate_job_update,
            validate_status: status::validate,
            warn: warnings::workloads::job,
            prepare_create: selector::generate,
            ..hooks(true)
        },
        ..resource("batch", "v1", "jobs")
    }
}

fn cron_jobs() -> BuiltinType {
    let mut columns = vec![
        column("Schedule", "string", Cell::Pointer("/spec/schedule")),
        column("Timezone", "string", Cell::Pointer("/spec/timeZone")),
        column("Suspend", "boolean", Cell::Computed(suspend)),
        column("Active", "integer", Cell::Computed(|cron| json!(count(cron, "/status/active")))),
        column("Last Schedule", "string", Cell::Computed(last_schedule)),
        age(),
    ];
    columns.extend(container_columns(
        |cron| of_containers(&cron["spec"]["jobTemplate"]["spec"]["template"], "name"),
        |cron| of_containers(&cron["spec"]["jobTemplate"]["spec"]["template"], "image"),
    ));
    let selects = |cron: &Value| selector(&cron["spec"]["jobTemplate"]["spec"]);
    columns.push(wide("Selector", "string", Cell::Computed(selects)));
    BuiltinType {
        name_rule: NameRule::DnsSubdomain,
        columns,
        hooks: Hooks {
            // The jobs get the other defaults when the controller creates them.
            default: |cron| {
                complete_spec(&mut cron["spec"]["jobTemplate"]["spec"]["template"]["spec"]);
            },
            validate: validate_cron_job,
            warn: warnings::workloads::cron_job,
            ..hooks(true)
        },
        ..resource("batch", "v1", "cronjobs")
    }
}

/// Sets the defaults that depend on other fields.
fn complete_job_spec(spec: &mut Value) {
    complete_spec(&mut spec["template"]["spec"]);
    if spec["completions"].is_null() && spec["parallelism"].is_null() {
        spec["completions"] = json!(1);
    }
    if spec["parallelism"].is_null() {
        spec["parallelism"] = json!(1);
    }
    if spec["backoffLimit"].is_null() {
        let limit = if spec["backoffLimitPerIndex"].is_null() { 6 } else { i32::MAX };
        spec["backoffLimit"] = json!(limit);
    }
    let fixed = [
        ("completionMode", json!("NonIndexed")),
        ("manualSelector", json!(false)),
        ("suspend", json!(false)),
    ];
    for (field, default) in fixed {
        if spec[field].is_null() {
            spec[field] = default;
        }
    }
    if spec["podReplacementPolicy"].is_null() {
        let has_policy = spec["podFailurePolicy"].is_object();
        let policy = if has_policy { "Failed" } else { "TerminatingOrFailed" };
        spec["podReplacementPolicy"] = json!(policy);
    }
}

fn validate_job_spec(spec: &Value, path: Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let template = path.field("template");
    let pod = template.field("spec");
    errors.extend(validate_spec(&spec["template"]["spec"], pod));
    let policy = &spec["template"]["spec"]["restartPolicy"];
    if policy.as_str() == Some("Always") {
        let why = "valid values: \"OnFailure\", \"Never\"";
        errors.push(FieldError::required(pod.field("restartPolicy"), why));
    }
    if !spec["selector"].is_null()
        && !selects(&spec["selector"], spec["template"]["metadata"].get("labels"))
    {
        let metadata = template.field("metadata");
        let labels = &spec["template"]["metadata"]["labels"];
        let why = "`selector` does not match template `labels`";
        errors.push(FieldError::invalid(metadata.field("labels"), labels, why));
    }
    if spec["completionMode"] == "Indexed" && spec["completions"].is_null() {
        let why = "when completion mode is Indexed";
        errors.push(FieldError::required(path.field("completions"), why));
    }
    if spec["completionMode"] != "Indexed" {
        for field in ["backoffLimitPerIndex", "maxFailedIndexes", "successPolicy"] {
            if !spec[field].is_null() {
                let why = "requires indexed completion mode";
                errors.push(FieldError::invalid(path.field(field), &spec[field], why));
            }
        }
    }
    errors
}

fn validate_job_update(new: &Value, old: &Value) -> Vec<FieldError> {
    let (now, before) = (&new["spec"], &old["spec"]);
    let mut fixed = vec![
        "completionMode",
        "selector",
        "podFailurePolicy",
        "backoffLimitPerIndex",
        "managedBy",
        "successPolicy",
    ];
    let mut errors = Vec::new();
    if now["completionMode"] != "Indexed" {
        fixed.push("completions");
    } else if now["completions"] != before["completions"]
        && now["completions"] != now["parallelism"]
        && !now["completions"].is_null()
    {
        let why = "can only be modified in tandem with spec.parallelism";
        errors.push(FieldError::invalid("spec.completions", &now["completions"], why));
    }
    let changed = fixed.into_iter().filter(|field| now[field] != before[field]);
    errors.extend(changed.map(|field| {
        FieldError::invalid(format!("spec.{field}"), &now[field], "field is immutable")
    }));
    errors.extend(changed_template(new, old));
    errors.extend(selector::validate_update(new, old));
    errors
}

/// A suspended job without pods may get other resources of its containers and another placement of
/// its pods.
fn changed_template(new: &Value, old: &Value) -> Option<FieldError> {
    let (now, before) = (&new["spec"]["template"], &old["spec"]["template"]);
    let is_idle = old["status"]["startTime"].is_null() || status::is_true(old, "Suspended");
    let is_open = is_idle && old["status"]["active"].as_i64().unwrap_or(0) == 0;
    if old["spec"]["suspend"] != true || !is_open {
        let error = || FieldError::invalid("spec.template", now, "field is immutable");
        return (now != before).then(error);
    }
    let is_changed = fixed_pod(&now["spec"]) != fixed_pod(&before["spec"]);
    let error = || FieldError::invalid("spec.template.spec", &now["spec"], "field is immutable");
    is_changed.then(error)
}

/// Returns what the pods of a suspended job keep.
fn fixed_pod(spec: &Value) -> Value {
    let mut fixed = spec.clone();
    for list in ["containers", "initContainers"] {
        let containers = fixed.get_mut(list).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten().filter_map(Value::as_object_mut) {
            container.remove("resources");
        }
    }
    let Some(fields) = fixed.as_object_mut() else { return fixed };
    for field in ["nodeSelector", "tolerations", "schedulingGates"] {
        fields.remove(field);
    }
    if let Some(affinity) = fields.get_mut("affinity").and_then(Value::as_object_mut) {
        affinity.remove("nodeAffinity");
        if affinity.is_empty() {
            fields.remove("affinity");
        }
    }
    fixed
}

fn validate_cron_job(cron: &Value) -> Vec<FieldError> {
    let root = Path::Root;
    let spec = root.field("spec");
    let template = spec.field("jobTemplate");
    let job = template.field("spec");
    let mut errors = validate_job_spec(&cron["spec"]["jobTemplate"]["spec"], job);
    let selector = &cron["spec"]["jobTemplate"]["spec"]["selector"];
    if !selector.is_null() {
        let why = "`selector` will be auto-generated";
        errors.push(FieldError::invalid(job.field("selector"), selector, why));
    }
    if cron["spec"]["jobTemplate"]["spec"]["manualSelector"] == true {
        let value = &cron["spec"]["jobTemplate"]["spec"]["manualSelector"];
        let supported = [json!("nil"), json!("false")];
        errors.push(FieldError::not_supported(job.field("manualSelector"), value, &supported));
    }
    let schedule = cron["spec"]["schedule"].as_str().unwrap_or_default();
    let place = spec.field("schedule");
    if let Some(why) = (!schedule.is_empty()).then(|| schedule::mistake(schedule)).flatten() {
        errors.push(FieldError::invalid(place, &cron["spec"]["schedule"], &why));
    }
    if let Some(zone) = cron["spec"]["timeZone"].as_str() {
        let wrong = schedule::zone_mistakes(zone);
        let place = spec.field("timeZone");
        errors.extend(wrong.iter().map(|why| FieldError::invalid(place, &json!(zone), why)));
    }
    if cron.meta("name").len() > MAX_CRON_JOB_NAME {
        let why = "must be no more than 52 characters";
        errors.push(FieldError::invalid("metadata.name", &cron["metadata"]["name"], why));
    }
    errors
}

fn job_status(job: &Value) -> Value {
    let is_true = |kind: &str| status::is_true(job, kind);
    let kinds = [
        ("Complete", "Complete"),
        ("Failed", "Failed"),
        ("Suspended", "Suspended"),
        ("FailureTarget", "FailureTarget"),
        ("SuccessCriteriaMet", "SuccessCriteriaMet"),
    ];
    if !job["metadata"]["deletionTimestamp"].is_null() && !is_true("Complete") {
        return json!("Terminating");
    }
    let known = kinds.iter().find(|(kind, _)| is_true(kind));
    json!(known.map_or("Running", |(_, text)| *text))
}

fn completions(job: &Value) -> Value {
    let number = |pointer: &str| job.pointer(pointer).and_then(Value::as_i64);
    let succeeded = number("/status/succeeded").unwrap_or(0);
    if let Some(completions) = number("/spec/completions") {
        return json!(format!("{succeeded}/{completions}"));
    }
    let parallelism = number("/spec/parallelism").unwrap_or(0);
    if parallelism > 1 {
        json!(format!("{succeeded}/1 of {parallelism}"))
    } else {
        json!(format!("{succeeded}/1"))
    }
}

fn duration(job: &Value) -> Value {
    let time = |field: &str| job["status"][field].as_str();
    match (time("startTime"), time("completionTime")) {
        (None, _) => json!(""),
        (Some(start), end) => schedule::between(start, end),
    }
}

/// Returns the flag as text, as Kubernetes does.
fn suspend(cron: &Value) -> Value {
    json!(if cron["spec"]["suspend"] == true { "True" } else { "False" })
}

fn last_schedule(cron: &Value) -> Value {
    match cron["status"]["lastScheduleTime"].as_str() {
        None => json!("<none>"),
        Some(time) => schedule::between(time, None),
    }
}

fn selector(spec: &Value) -> Value {
    super::core::selector_text(&spec["selector"]["matchLabels"])
}

#[cfg(test)]
mod tests;
