//! The conditions of a namespace whose deletion is not complete.

use std::collections::BTreeMap;

use kubeproof_apimachinery::object::timestamp;
use kubeproof_apiserver::loopback::RemoteContent;
use serde_json::{Value, json};

/// What remains in a namespace.
#[derive(Debug, Default)]
pub(super) struct Remaining {
    /// The number of objects of each resource, such as `pods.` and `jobs.batch`.
    pub(super) resources: BTreeMap<String, usize>,
    /// The number of objects with each finalizer.
    pub(super) finalizers: BTreeMap<String, usize>,
    /// The groups whose resources are unknown.
    pub(super) undiscovered: Vec<String>,
    /// The deletions that failed.
    pub(super) errors: Vec<String>,
}

/// A condition in its two states, with the texts of Kubernetes.
struct Condition {
    name: &'static str,
    /// The reason while the condition is false.
    ok: (&'static str, &'static str),
    /// The reason while it is true.
    failed: &'static str,
}

const DISCOVERY: Condition = Condition {
    name: "NamespaceDeletionDiscoveryFailure",
    ok: ("ResourcesDiscovered", "All resources successfully discovered"),
    failed: "DiscoveryFailed",
};
const PARSING: Condition = Condition {
    name: "NamespaceDeletionGroupVersionParsingFailure",
    ok: ("ParsedGroupVersions", "All legacy kube types successfully parsed"),
    failed: "GroupVersionParsingFailed",
};
const CONTENT: Condition = Condition {
    name: "NamespaceDeletionContentFailure",
    ok: ("ContentDeleted", "All content successfully deleted, may be waiting on finalization"),
    failed: "ContentDeletionFailed",
};
const REMAINING: Condition = Condition {
    name: "NamespaceContentRemaining",
    ok: ("ContentRemoved", "All content successfully removed"),
    failed: "SomeResourcesRemain",
};
const FINALIZERS: Condition = Condition {
    name: "NamespaceFinalizersRemaining",
    ok: ("ContentHasNoFinalizers", "All content-preserving finalizers finished"),
    failed: "SomeFinalizersRemain",
};

impl Remaining {
    /// Adds the content of extension servers.
    pub(super) fn add_remote(&mut self, content: RemoteContent) {
        self.undiscovered = content.undiscovered;
        self.errors = content.errors;
        self.resources.extend(content.remaining);
    }

    /// Writes the conditions into the status of a namespace.
    pub(super) fn report(&self, namespace: &mut Value) {
        let list = |counts: &BTreeMap<String, usize>, word: &str| {
            let counts = counts
                .iter()
                .map(|(name, count)| format!("{name} {word} {count} resource instances"));
            counts.collect::<Vec<_>>().join(", ")
        };
        let groups = self.undiscovered.len();
        let stale: Vec<String> = self
            .undiscovered
            .iter()
            .map(|group| format!("{group}: stale GroupVersion discovery: {group}"))
            .collect();
        let problems = [
            (
                DISCOVERY,
                groups > 0,
                format!(
                    "Discovery failed for some groups, {groups} failing: unable to retrieve the \
                 complete list of server APIs: {}",
                    stale.join(", "),
                ),
            ),
            (PARSING, false, String::new()),
            (
                CONTENT,
                !self.errors.is_empty(),
                format!(
                    "Failed to delete all resource types, {} remaining: {}",
                    self.errors.len(),
                    self.errors.join(", "),
                ),
            ),
            (
                REMAINING,
                !self.resources.is_empty(),
                format!("Some resources are remaining: {}", list(&self.resources, "has")),
            ),
            (
                FINALIZERS,
                !self.finalizers.is_empty(),
                format!(
                    "Some content in the namespace has finalizers remaining: {}",
                    list(&self.finalizers, "in"),
                ),
            ),
        ];
        for (condition, is_true, message) in problems {
            set(namespace, &condition, is_true, &message);
        }
    }
}

fn set(namespace: &mut Value, condition: &Condition, is_true: bool, message: &str) {
    let status = if is_true { "True" } else { "False" };
    let (reason, message) = if is_true { (condition.failed, message) } else { condition.ok };
    if !namespace["status"]["conditions"].is_array() {
        namespace["status"]["conditions"] = json!([]);
    }
    let Some(conditions) = namespace["status"]["conditions"].as_array_mut() else { return };
    let known = conditions.iter_mut().find(|known| known["type"] == condition.name);
    let known = match known {
        Some(known) => known,
        None => conditions.push_mut(json!({"type": condition.name})),
    };
    if known["status"] != status {
        known["status"] = status.into();
        known["lastTransitionTime"] = timestamp(0).into();
    }
    known["reason"] = reason.into();
    known["message"] = message.into();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_show_what_remains() {
        let mut remaining = Remaining::default();
        remaining.resources.insert("pods.".to_owned(), 2);
        remaining.finalizers.insert("example.com/wait".to_owned(), 1);
        let mut namespace = json!({"status": {"phase": "Terminating"}});
        remaining.report(&mut namespace);
        let found = |namespace: &Value| -> Vec<(String, String)> {
            let conditions = namespace["status"]["conditions"].as_array().expect("conditions");
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let is_true = conditions.iter().filter(|condition| condition["status"] == "True");
            is_true.map(|it| (text(&it["reason"]), text(&it["message"]))).collect()
        };
        let pair = |reason: &str, message: &str| (reason.to_owned(), message.to_owned());
        let expected = [
            pair(
                "SomeResourcesRemain",
                "Some resources are remaining: pods. has 2 resource instances",
            ),
            pair(
                "SomeFinalizersRemain",
                "Some content in the namespace has finalizers remaining: example.com/wait in 1 \
                 resource instances",
            ),
        ];
        assert_eq!(found(&namespace), expected);
        let before = namespace.clone();
        remaining.report(&mut namespace);
        assert_eq!(namespace, before);
        Remaining::default().report(&mut namespace);
        assert_eq!(found(&namespace), []);
        assert_eq!(namespace["status"]["conditions"].as_array().map(Vec::len), Some(5));
    }
}
