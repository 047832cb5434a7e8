//! Warnings about objects that are valid but may not do what the client expects.

mod containers;
mod paths;
mod pods;

use serde_json::Value;

pub(super) use self::pods::template_at;

/// Returns the warnings about a pod.
pub(super) fn pod(pod: &Value) -> Vec<String> {
    template_at(pod, "")
}

/// Returns the warnings about the pods of a workload.
pub(super) fn workload(object: &Value) -> Vec<String> {
    template_at(&object["spec"]["template"], "spec.template.")
}

/// Returns the warnings about a stateful set.
pub(super) fn stateful_set(set: &Value) -> Vec<String> {
    let mut warnings = workload(set);
    if set["spec"]["revisionHistoryLimit"].as_i64().is_some_and(|limit| limit < 0) {
        warnings.push(
            "spec.revisionHistoryLimit: a negative value retains all historical revisions; a value \
             >= 0 is recommended"
                .to_owned(),
        );
    }
    warnings
}

/// Returns the warnings about a persistent volume.
pub(super) fn persistent_volume(volume: &Value) -> Vec<String> {
    let spec = &volume["spec"];
    let mut warnings = Vec::new();
    if spec["persistentVolumeReclaimPolicy"] == "Recycle" {
        warnings.push(
            "spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. \
             Instead, the recommended approach is to use dynamic provisioning."
                .to_owned(),
        );
    }
    let terms = &spec["nodeAffinity"]["required"]["nodeSelectorTerms"];
    for (index, term) in list(terms).iter().enumerate() {
        let place = format!("spec.nodeAffinity.required.nodeSelectorTerms[{index}]");
        warnings.extend(pods::deprecated_keys(term, &place));
    }
    warnings.extend(pods::deprecated_plugins(spec, "spec"));
    warnings
}

/// Returns the warnings about an ingress.
pub(super) fn ingress(ingress: &Value) -> Vec<String> {
    let class = "kubernetes.io/ingress.class";
    let is_old = ingress["metadata"]["annotations"].get(class).is_some()
        && ingress["spec"]["ingressClassName"].is_null();
    let warning = || {
        format!("annotation \"{class}\" is deprecated, please use 'spec.ingressClassName' instead")
    };
    is_old.then(warning).into_iter().collect()
}

/// Returns the warnings about a service.
pub(super) fn service(service: &Value) -> Vec<String> {
    let spec = &service["spec"];
    let is_external_name = spec["type"] == "ExternalName";
    let is_headless = spec["type"] == "ClusterIP" && spec["clusterIP"] == "None";
    let has_addresses = !list(&spec["externalIPs"]).is_empty();
    let hints =
        service["metadata"]["annotations"].get("service.kubernetes.io/topology-aware-hints");
    let warnings = [
        (
            hints.is_some(),
            "annotation service.kubernetes.io/topology-aware-hints is deprecated, please use \
             service.kubernetes.io/topology-mode instead",
        ),
        (
            is_headless && !text(spec, "loadBalancerIP").is_empty(),
            "spec.loadBalancerIP is ignored for headless services",
        ),
        (is_headless && has_addresses, "spec.externalIPs is ignored for headless services"),
        (
            is_headless && spec["sessionAffinity"] != "None",
            "spec.SessionAffinity is ignored for headless services",
        ),
        (
            has_addresses && !is_headless && !is_external_name,
            "spec.externalIPs is deprecated and may no longer be implemented in some clusters",
        ),
        (
            has_addresses && is_external_name,
            "spec.externalIPs is ignored when spec.type is \"ExternalName\"",
        ),
        (
            !is_external_name && !text(spec, "externalName").is_empty(),
            "spec.externalName is ignored when spec.type is not \"ExternalName\"",
        ),
        (
            spec["trafficDistribution"] == "PreferClose",
            "spec.trafficDistribution: \"PreferClose\" is deprecated; use \"PreferSameZone\"",
        ),
    ];
    warnings.into_iter().filter(|(applies, _)| *applies).map(|(_, text)| text.to_owned()).collect()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn text<'v>(object: &'v Value, field: &str) -> &'v str {
    object.get(field).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case(json!({"type": "ClusterIP", "sessionAffinity": "None"}), &[])]
    #[case(
        json!({"type": "ClusterIP", "externalIPs": ["1.2.3.4"]}),
        &["spec.externalIPs is deprecated and may no longer be implemented in some clusters"]
    )]
    #[case(
        json!({"type": "ClusterIP", "clusterIP": "None", "externalIPs": ["1.2.3.4"],
               "sessionAffinity": "ClientIP"}),
        &["spec.externalIPs is ignored for headless services",
          "spec.SessionAffinity is ignored for headless services"]
    )]
    #[case(
        json!({"type": "ExternalName", "externalIPs": ["1.2.3.4"]}),
        &["spec.externalIPs is ignored when spec.type is \"ExternalName\""]
    )]
    fn services_ignore_fields(#[case] spec: Value, #[case] expected: &[&str]) {
        assert_eq!(service(&json!({ "spec": spec })), expected);
    }

    #[test]
    fn other_kinds_have_warnings() {
        let set = json!({"spec": {"revisionHistoryLimit": -1}});
        assert_eq!(stateful_set(&set).len(), 1);
        let volume = json!({"spec": {"persistentVolumeReclaimPolicy": "Recycle", "rbd": {}}});
        assert_eq!(persistent_volume(&volume).len(), 2);
        let annotations = json!({"kubernetes.io/ingress.class": "c"});
        assert_eq!(ingress(&json!({"metadata": {"annotations": annotations}})).len(), 1);
    }
}
