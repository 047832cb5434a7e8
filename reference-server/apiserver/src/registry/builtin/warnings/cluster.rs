//! Warnings about nodes, quotas, accounts, runtimes and configurations of admission.

use serde_json::Value;

use super::{list, pods, text};
use kubeproof_apimachinery::object::validation::addresses::cidr_warning;
use kubeproof_apimachinery::schema::quantity;

const MOUNTABLE_SECRETS: &str = "kubernetes.io/enforce-mountable-secrets";

/// Returns the warnings about a node.
pub(in crate::registry::builtin) fn node(node: &Value, _: Option<&Value>) -> Vec<String> {
    let spec = &node["spec"];
    let mut warnings = Vec::new();
    if !spec["configSource"].is_null() {
        warnings.push("spec.configSource: the feature is removed".to_owned());
    }
    if !text(spec, "externalID").is_empty() {
        let why = "spec.externalID: this field is deprecated, and is unused by Kubernetes";
        warnings.push(why.to_owned());
    }
    for (index, range) in list(&spec["podCIDRs"]).iter().enumerate() {
        let range = range.as_str().unwrap_or_default();
        warnings.extend(cidr_warning(range, &format!("spec.podCIDRs[{index}]")));
    }
    warnings
}

/// Returns the warnings about a new quota that permits more requests than limits.
pub(in crate::registry::builtin) fn resource_quota(
    quota: &Value,
    old: Option<&Value>,
) -> Vec<String> {
    let hard = &quota["spec"]["hard"];
    let names = ["cpu", "memory", "storage", "ephemeral-storage"];
    let warning = |name: &&str| {
        let mut request = format!("requests.{name}");
        if hard.get(&request).is_none() && matches!(*name, "cpu" | "memory") {
            (*name).clone_into(&mut request);
        }
        let limit = format!("limits.{name}");
        let (requested, limited) = (text(hard, &request), text(hard, &limit));
        let is_more = quantity::compare(requested, limited).is_some_and(std::cmp::Ordering::is_gt);
        is_more.then(|| {
            format!("ResourceQuota {request} ({requested}) should be less than {limit} ({limited})")
        })
    };
    if old.is_some() { Vec::new() } else { names.iter().filter_map(warning).collect() }
}

/// Returns the warning about a new annotation of an account.
pub(in crate::registry::builtin) fn service_account(
    account: &Value,
    old: Option<&Value>,
) -> Vec<String> {
    let has = |account: &Value| account["metadata"]["annotations"].get(MOUNTABLE_SECRETS).is_some();
    if !has(account) || old.is_some_and(has) {
        return Vec::new();
    }
    vec![format!(
        "metadata.annotations[{MOUNTABLE_SECRETS}]: deprecated in v1.32+; prefer separate \
         namespaces to isolate access to mounted secrets"
    )]
}

/// Returns the warnings about deprecated labels in the scheduling of a runtime.
pub(in crate::registry::builtin) fn runtime_class(class: &Value, _: Option<&Value>) -> Vec<String> {
    let labels = class["scheduling"]["nodeSelector"].as_object();
    let labels = labels.into_iter().flat_map(serde_json::Map::keys);
    let why = labels.filter_map(|label| pods::deprecated(label));
    why.map(|why| format!("scheduling.nodeSelector: {why}")).collect()
}

/// Returns the warning about a driver whose name has capital letters.
pub(in crate::registry::builtin) fn resource_slice(
    slice: &Value,
    _: Option<&Value>,
) -> Vec<String> {
    let driver = text(&slice["spec"], "driver");
    let warning = || {
        format!(
            "spec.driver: driver names should be lowercase; {driver:?} contains uppercase \
             characters"
        )
    };
    (driver != driver.to_lowercase()).then(warning).into_iter().collect()
}

/// Returns the warning about a name that is reserved for manifests of admission.
pub(in crate::registry::builtin) fn admission(object: &Value, _: Option<&Value>) -> Vec<String> {
    const SUFFIX: &str = ".static.k8s.io";
    let warning = || {
        format!(
            "metadata.name: names ending with \"{SUFFIX}\" are reserved for static manifest-based \
             configurations and cannot be managed via the API"
        )
    };
    let is_reserved = text(&object["metadata"], "name").ends_with(SUFFIX);
    is_reserved.then(warning).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[test]
    fn nodes_have_warnings() {
        let spec = json!({"externalID": "a", "podCIDRs": ["A::/16"]});
        assert_eq!(node(&json!({ "spec": spec }), None).len(), 2);
    }

    #[rstest]
    #[case(json!({"cpu": "2", "limits.cpu": "1"}),
           &["ResourceQuota cpu (2) should be less than limits.cpu (1)"])]
    #[case(json!({"requests.memory": "1Ti", "memory": "1", "limits.memory": "1Gi"}),
           &["ResourceQuota requests.memory (1Ti) should be less than limits.memory (1Gi)"])]
    #[case(json!({"cpu": "1", "limits.cpu": "1"}), &[])]
    #[case(json!({"storage": "2", "limits.storage": "1"}), &[])]
    fn requests_are_below_limits(#[case] hard: Value, #[case] expected: &[&str]) {
        let quota = json!({"spec": {"hard": hard}});
        assert_eq!(resource_quota(&quota, None), expected);
        assert!(resource_quota(&quota, Some(&quota)).is_empty());
    }

    #[test]
    fn a_new_annotation_has_a_warning() {
        let account = json!({"metadata": {"annotations": {MOUNTABLE_SECRETS: "true"}}});
        assert_eq!(service_account(&account, None).len(), 1);
        assert_eq!(service_account(&account, Some(&json!({}))).len(), 1);
        assert!(service_account(&account, Some(&account)).is_empty());
    }

    #[test]
    fn labels_and_names_have_warnings() {
        let class = json!({"scheduling": {"nodeSelector": {"beta.kubernetes.io/os": "linux"}}});
        let expected = "scheduling.nodeSelector: deprecated since v1.14; use \"kubernetes.io/os\" \
                        instead";
        assert_eq!(runtime_class(&class, None), [expected]);
        assert_eq!(resource_slice(&json!({"spec": {"driver": "A.b"}}), None).len(), 1);
        let object = json!({"metadata": {"name": "a.static.k8s.io"}});
        assert_eq!(admission(&object, None).len(), 1);
    }
}
