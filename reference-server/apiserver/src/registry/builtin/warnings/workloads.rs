//! Warnings about workloads: their names, their templates and their numbers.

use serde_json::Value;

use super::{list, storage, template_at, text};
use kubeproof_apimachinery::object::validation::names;

/// The numbers of indexes and of pods from which a job may lose track of failed indexes.
const COMPLETIONS: i64 = 100_000;
const PARALLELISM: i64 = 10_000;

/// Returns the warnings about a new pod. Updates come from components.
pub(in crate::registry::builtin) fn pod(pod: &Value, old: Option<&Value>) -> Vec<String> {
    if old.is_some() {
        return Vec::new();
    }
    let mut warnings = name(pod, "this is used in the Pod's hostname");
    warnings.extend(template_at(pod, ""));
    warnings
}

/// Returns the warnings about a template of pods.
pub(in crate::registry::builtin) fn pod_template(
    object: &Value,
    old: Option<&Value>,
) -> Vec<String> {
    if is_changed(object, old) { template_at(&object["template"], "template.") } else { Vec::new() }
}

/// Returns the warnings about a workload whose pods get other names.
pub(in crate::registry::builtin) fn daemon_set(set: &Value, old: Option<&Value>) -> Vec<String> {
    if !is_changed(set, old) {
        return Vec::new();
    }
    template_at(&set["spec"]["template"], "spec.template.")
}

/// Returns the warnings about a workload whose pods have its name as a prefix.
pub(in crate::registry::builtin) fn workload(object: &Value, old: Option<&Value>) -> Vec<String> {
    let mut warnings = pod_prefix(object, old);
    warnings.extend(daemon_set(object, old));
    warnings
}

/// Returns the warnings about a replication controller. As in kube-apiserver, a warning about an
/// update is about the stored template.
pub(in crate::registry::builtin) fn replication_controller(
    controller: &Value,
    old: Option<&Value>,
) -> Vec<String> {
    match old {
        None => workload(controller, None),
        Some(old) if is_changed(controller, Some(old)) => daemon_set(old, None),
        Some(_) => Vec::new(),
    }
}

/// Returns the warnings about a stateful set.
pub(in crate::registry::builtin) fn stateful_set(set: &Value, old: Option<&Value>) -> Vec<String> {
    let mut warnings = daemon_set(set, old);
    let field = if old.is_some() { ".Spec" } else { "" };
    for (index, claim) in list(&set["spec"]["volumeClaimTemplates"]).iter().enumerate() {
        let place = format!("spec.volumeClaimTemplates[{index}]{field}");
        warnings.extend(storage::claim_spec(&claim["spec"], &place));
    }
    if set["spec"]["revisionHistoryLimit"].as_i64().is_some_and(|limit| limit < 0) {
        warnings.push(
            "spec.revisionHistoryLimit: a negative value retains all historical revisions; a value \
             >= 0 is recommended"
                .to_owned(),
        );
    }
    warnings
}

/// Returns the warnings about a job.
pub(in crate::registry::builtin) fn job(job: &Value, old: Option<&Value>) -> Vec<String> {
    let mut warnings = pod_prefix(job, old);
    if is_changed(job, old) {
        warnings.extend(job_spec(&job["spec"], "spec"));
    }
    warnings
}

/// Returns the warnings about a cron job.
pub(in crate::registry::builtin) fn cron_job(cron: &Value, old: Option<&Value>) -> Vec<String> {
    let mut warnings = pod_prefix(cron, old);
    if is_changed(cron, old) {
        warnings.extend(job_spec(&cron["spec"]["jobTemplate"]["spec"], "spec.jobTemplate.spec"));
    }
    if old.is_some() && text(&cron["spec"], "schedule").contains("TZ") {
        warnings.push(
            "cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see \
             https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details"
                .to_owned(),
        );
    }
    warnings
}

fn job_spec(spec: &Value, place: &str) -> Vec<String> {
    let number = |field: &str| spec[field].as_i64().unwrap_or_default();
    let mut warnings = Vec::new();
    let is_large = number("completions") > COMPLETIONS && number("parallelism") > PARALLELISM;
    if spec["completionMode"] == "Indexed" && is_large {
        warnings.push(format!(
            "{place}: In Indexed Jobs with a number of completions higher than 10^5 and a \
             parallelism higher than 10^4, Kubernetes might not be able to track completedIndexes \
             when a big number of indexes fail"
        ));
    }
    warnings.extend(template_at(&spec["template"], &format!("{place}.template.")));
    warnings
}

/// Reports whether an object is new or has a new generation.
fn is_changed(object: &Value, old: Option<&Value>) -> bool {
    let generation = |object: &Value| object["metadata"]["generation"].as_i64();
    old.is_none_or(|old| generation(old) != generation(object))
}

fn pod_prefix(object: &Value, old: Option<&Value>) -> Vec<String> {
    match old {
        None => name(object, "this is used in Pod names and hostnames"),
        Some(_) => Vec::new(),
    }
}

fn name(object: &Value, purpose: &str) -> Vec<String> {
    let wrong = names::dns_label(text(&object["metadata"], "name")).join(" ");
    let warning = || {
        format!(
            "metadata.name: {purpose}, which can result in surprising behavior; a DNS label is \
             recommended: [{wrong}]"
        )
    };
    (!wrong.is_empty()).then(warning).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn sets_have_warnings() {
        let template = json!({"spec": {"resources": {"requests": {"storage": "1m"}}}});
        let spec = json!({"revisionHistoryLimit": -1, "volumeClaimTemplates": [template]});
        let set = json!({ "spec": spec });
        let places = |warnings: Vec<String>| -> Vec<_> {
            let place = |warning: String| warning.split(": ").next().unwrap().to_owned();
            warnings.into_iter().map(place).collect()
        };
        let limit = "spec.revisionHistoryLimit";
        let amount = "resources.requests[storage]";
        let expected = [format!("spec.volumeClaimTemplates[0].{amount}"), limit.to_owned()];
        assert_eq!(places(stateful_set(&set, None)), expected);
        let expected = [format!("spec.volumeClaimTemplates[0].Spec.{amount}"), limit.to_owned()];
        assert_eq!(places(stateful_set(&set, Some(&set))), expected);
    }

    #[test]
    fn names_are_labels() {
        let expected = "metadata.name: this is used in Pod names and hostnames, which can result \
                        in surprising behavior; a DNS label is recommended: [must not contain \
                        dots]";
        let object = json!({"metadata": {"name": "a.b"}});
        assert_eq!(workload(&object, None), [expected]);
        assert!(workload(&object, Some(&object)).is_empty());
        assert_eq!(pod(&object, None).len(), 1);
    }

    #[test]
    fn an_update_warns_if_the_generation_changes() {
        let template = json!({"spec": {"terminationGracePeriodSeconds": -1}});
        let object = |generation: i64| {
            let spec =
                json!({"template": template, "jobTemplate": {"spec": {"template": template}}});
            json!({"metadata": {"name": "a", "generation": generation}, "spec": spec})
        };
        for warn in [workload, daemon_set, stateful_set, replication_controller, job, cron_job] {
            assert_eq!(warn(&object(1), None).len(), 1);
            assert_eq!(warn(&object(2), Some(&object(1))).len(), 1);
            assert!(warn(&object(1), Some(&object(1))).is_empty());
        }
    }

    #[test]
    fn a_large_job_has_a_warning() {
        let spec = json!({"completionMode": "Indexed", "completions": 100_001,
                          "parallelism": 10_001});
        assert_eq!(job(&json!({"metadata": {"name": "a"}, "spec": spec}), None).len(), 1);
    }
}
