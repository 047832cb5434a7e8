//! Pod security: the labels of a namespace select a standard, which rejects pods, warns about them,
//! or annotates the audit log.

mod checks;
mod policy;
mod restricted;

use kubeproof_apimachinery::object::Object as _;
use kubeproof_apimachinery::schema::FieldError;
use kubeproof_apimachinery::status::ApiError;
use kubeproof_storage::Key;
use serde_json::Value;

use self::checks::Violation;
use self::policy::{Level, LevelVersion, Policy};
use super::namespace_lifecycle::NAMESPACES;
use super::{Attributes, Decision, Operation, Plugin, decided};

/// The most existing pods that the server checks against a new policy.
const MAX_PODS: usize = 3000;

/// The prefix of audit annotations.
const ANNOTATIONS: &str = "pod-security.kubernetes.io/";

/// The subresources of pods that change nothing about their security.
const IGNORED: [&str; 8] =
    ["exec", "attach", "binding", "eviction", "log", "portforward", "proxy", "status"];

/// Checks pods and templates against the standard of their namespace.
pub(super) struct PodSecurity {
    /// The minor version of the server, which is that of the newest checks.
    pub(super) newest: u32,
}

impl Plugin for PodSecurity {
    fn name(&self) -> &'static str {
        "PodSecurity"
    }

    fn handles(&self, request: &Attributes<'_>) -> bool {
        let (ty, subresource) = (request.ty, request.info.subresource.as_str());
        let is_write = matches!(request.operation, Operation::Create | Operation::Update);
        let is_ignored = if ty.is_core("pods") {
            IGNORED.contains(&subresource)
        } else {
            !subresource.is_empty()
        };
        let has_pods = pods_of(&ty.group, &ty.plural).is_some();
        is_write && !is_ignored && (ty.is_core(NAMESPACES) || has_pods)
    }

    fn validate<'a>(&'a self, request: Attributes<'a>, object: &'a Value) -> Decision<'a> {
        decided(if request.ty.is_core(NAMESPACES) {
            self.check_namespace(request, object)
        } else {
            self.check_pods(request, object)
        })
    }
}

impl PodSecurity {
    fn check_namespace(&self, request: Attributes<'_>, new: &Value) -> Result<(), ApiError> {
        let errors = label_errors(new, request.old);
        if !errors.is_empty() {
            return Err(ApiError::invalid(request.ty.subject(), new.meta("name"), &errors));
        }
        if let Some(old) = request.old {
            let pods = || request.context.objects("", "pods", Some(new.meta("name")));
            for warning in namespace_warnings(new, old, pods, self.newest) {
                request.record.warn(warning);
            }
        }
        Ok(())
    }

    fn check_pods(&self, request: Attributes<'_>, object: &Value) -> Result<(), ApiError> {
        let (ty, context) = (request.ty, request.context);
        let Some(subject) = Subject::of(&ty.group, &ty.plural, object) else { return Ok(()) };
        if subject.is_pod && request.old.is_some_and(|old| !is_significant(object, old)) {
            return Ok(());
        }
        let key = Key::new("", request.info.namespace.as_str());
        let labels = context.core(NAMESPACES).and_then(|ty| {
            let namespace = context.store.get(&ty.table, &key)?;
            Some(serde_json::to_value(&namespace.facts.labels).unwrap_or_default())
        });
        let evaluation = evaluate(subject, &labels.unwrap_or_default(), self.newest);
        for (key, value) in evaluation.annotations {
            request.record.annotate(format!("{ANNOTATIONS}{key}"), value);
        }
        for warning in evaluation.warnings {
            request.record.warn(warning);
        }
        evaluation.rejection.map_or(Ok(()), |why| Err(request.forbidden(object, &why)))
    }
}

/// The result for one object.
#[derive(Debug, Default, PartialEq, Eq)]
struct Evaluation {
    /// The reason of a rejection.
    rejection: Option<String>,
    /// The warnings in the response.
    warnings: Vec<String>,
    /// The annotations in the audit log, without the prefix of the plugin.
    annotations: Vec<(&'static str, String)>,
}

/// A pod, or an object with a template of pods.
#[derive(Clone, Copy)]
struct Subject<'a> {
    metadata: &'a Value,
    spec: &'a Value,
    /// Pods are rejected. Other objects only get warnings.
    is_pod: bool,
}

impl<'a> Subject<'a> {
    /// Returns the pod of an object, or the pods that it would create.
    fn of(group: &str, plural: &str, object: &'a Value) -> Option<Self> {
        let pointer = pods_of(group, plural)?;
        let template = object.pointer(pointer).filter(|template| !template.is_null())?;
        let (metadata, spec) = (&template["metadata"], &template["spec"]);
        Some(Self { metadata, spec, is_pod: pointer.is_empty() })
    }
}

/// Returns where objects of a resource have a pod or a template.
fn pods_of(group: &str, plural: &str) -> Option<&'static str> {
    match (group, plural) {
        ("", "pods") => Some(""),
        ("", "podtemplates") => Some("/template"),
        ("", "replicationcontrollers")
        | ("apps", "deployments" | "replicasets" | "statefulsets" | "daemonsets")
        | ("batch", "jobs") => Some("/spec/template"),
        ("batch", "cronjobs") => Some("/spec/jobTemplate/spec/template"),
        _ => None,
    }
}

/// Checks a pod or a template against the policy of its namespace. `labels` are those of the
/// namespace, and `newest` is the minor version of the server.
fn evaluate(subject: Subject<'_>, labels: &Value, newest: u32) -> Evaluation {
    let mut evaluation = Evaluation::default();
    let (policy, errors) = Policy::of(labels);
    let find = |level: LevelVersion| level.violations(subject.metadata, subject.spec, newest);
    let relevant = [policy.audit, policy.warn, policy.enforce];
    let relevant = if subject.is_pod { &relevant[..] } else { &relevant[..2] };
    if errors.is_empty() && relevant.iter().all(|one| one.level == Level::Privileged) {
        return evaluation;
    }
    if !errors.is_empty() {
        let errors: Vec<String> =
            errors.iter().map(|it| format!("{}: {}", it.field, it.message)).collect();
        let text = format!("Failed to parse policy: {}", errors.join(", "));
        evaluation.annotations.push(("error", text));
    }
    if subject.is_pod {
        evaluation.annotations.push(("enforce-policy", policy.enforce.to_string()));
        let found = find(policy.enforce);
        evaluation.rejection = (!found.is_empty())
            .then(|| format!("violates PodSecurity \"{}\": {}", policy.enforce, shown(&found)));
    }
    let would_violate = |level: LevelVersion| {
        let found = find(level);
        (!found.is_empty())
            .then(|| format!("would violate PodSecurity \"{level}\": {}", shown(&found)))
    };
    evaluation.annotations.extend(would_violate(policy.audit).map(|it| ("audit-violations", it)));
    if evaluation.rejection.is_none() {
        evaluation.warnings.extend(would_violate(policy.warn));
    }
    evaluation
}

fn shown(violations: &[Violation]) -> String {
    let texts: Vec<String> =
        violations.iter().map(|it| format!("{} ({})", it.reason, it.detail)).collect();
    texts.join(", ")
}

/// Returns whether an update of a pod can change the result: it adds containers or changes images.
fn is_significant(new: &Value, old: &Value) -> bool {
    let images = |pod: &Value, list: &str| -> Vec<Value> {
        let containers = pod["spec"][list].as_array().into_iter().flatten();
        containers.map(|container| container["image"].clone()).collect()
    };
    let mut lists = ["containers", "initContainers", "ephemeralContainers"].into_iter();
    lists.any(|list| images(new, list) != images(old, list))
}

/// Returns the errors in the labels of a namespace, unless an update keeps them.
fn label_errors(new: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let errors = |namespace: &Value| Policy::of(&namespace["metadata"]["labels"]).1;
    let found = errors(new);
    let shown = |errors: &[FieldError]| -> Vec<(String, String)> {
        errors.iter().map(|error| (error.field.clone(), error.message.clone())).collect()
    };
    let known = old.map(errors).unwrap_or_default();
    if shown(&found) == shown(&known) { Vec::new() } else { found }
}

/// Returns the warnings about existing pods that violate the new policy of their namespace.
fn namespace_warnings(
    new: &Value,
    old: &Value,
    pods: impl FnOnce() -> Vec<Value>,
    newest: u32,
) -> Vec<String> {
    let enforced = |namespace: &Value| Policy::of(&namespace["metadata"]["labels"]).0.enforce;
    let (now, before) = (enforced(new), enforced(old));
    let is_relaxed = now.version == before.version && now.level <= before.level;
    if now == before || now.level == Level::Privileged || is_relaxed {
        return Vec::new();
    }
    let pods = pods();
    let mut found: Vec<(String, String, usize)> = Vec::new();
    for pod in pods.iter().take(MAX_PODS) {
        let violations = now.violations(&pod["metadata"], &pod["spec"], newest);
        if violations.is_empty() {
            continue;
        }
        let reasons: Vec<&str> = violations.iter().map(|it| it.reason.as_str()).collect();
        let (reasons, name) = (reasons.join(", "), pod.meta("name").to_owned());
        match found.iter_mut().find(|(known, ..)| *known == reasons) {
            Some((_, first, count)) => {
                *count += 1;
                first.clone_from(&name.min(first.clone()));
            }
            None => found.push((reasons, name, 1)),
        }
    }
    let mut warnings = Vec::new();
    if pods.len() > MAX_PODS {
        let total = pods.len();
        warnings.push(format!(
            "new PodSecurity enforce level only checked against the first {MAX_PODS} of {total} \
             existing pods"
        ));
    }
    if !found.is_empty() {
        let namespace = new.meta("name");
        warnings.push(format!(
            "existing pods in namespace \"{namespace}\" violate the new PodSecurity enforce level \
             \"{now}\""
        ));
    }
    let mut texts: Vec<String> = found.into_iter().map(described).collect();
    texts.sort();
    warnings.extend(texts);
    warnings
}

fn described((reasons, first, count): (String, String, usize)) -> String {
    match count {
        1 => format!("{first}: {reasons}"),
        2 => format!("{first} (and 1 other pod): {reasons}"),
        more => format!("{first} (and {} other pods): {reasons}", more - 1),
    }
}

#[cfg(test)]
mod tests;
