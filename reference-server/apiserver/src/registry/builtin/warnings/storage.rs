//! Warnings about volumes, their claims, classes and drivers.

use serde_json::Value;

use super::{list, pods, text};
use kubeproof_apimachinery::schema::quantity::is_whole;

/// The deprecated annotations, which fields replace.
const STORAGE_CLASS: &str = "volume.beta.kubernetes.io/storage-class";
const ANNOTATIONS: [(&str, &str); 2] = [
    (STORAGE_CLASS, "deprecated since v1.8; use \"storageClassName\" attribute instead"),
    (
        "volume.beta.kubernetes.io/mount-options",
        "deprecated since v1.31; use \"mountOptions\" attribute instead",
    ),
];

const TOKENS: &str = "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI \
                      driver, set to true to prevent possible logging of tokens in volume \
                      attributes";

/// Returns the warnings about a persistent volume.
pub(in crate::registry::builtin) fn persistent_volume(
    volume: &Value,
    _: Option<&Value>,
) -> Vec<String> {
    let mut warnings = annotations(volume, &ANNOTATIONS);
    let spec = &volume["spec"];
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

/// Returns the warnings about the claim of a volume.
pub(in crate::registry::builtin) fn claim(claim: &Value, _: Option<&Value>) -> Vec<String> {
    let mut warnings = annotations(claim, &ANNOTATIONS[..1]);
    warnings.extend(claim_spec(&claim["spec"], "spec"));
    warnings
}

fn annotations(object: &Value, deprecated: &[(&str, &str)]) -> Vec<String> {
    let given = &object["metadata"]["annotations"];
    let used = deprecated.iter().filter(|(key, _)| given.get(key).is_some());
    used.map(|(key, why)| format!("metadata.annotations[{key}]: {why}")).collect()
}

/// Returns the warnings about bytes that are not whole.
pub(super) fn claim_spec(spec: &Value, place: &str) -> Vec<String> {
    let warning = |kind: &&str| {
        let amount = text(&spec["resources"][kind], "storage");
        let why = format!("fractional byte value {amount:?} is invalid, must be an integer");
        (!is_whole(amount)).then(|| format!("{place}.resources.{kind}[storage]: {why}"))
    };
    ["requests", "limits"].iter().filter_map(warning).collect()
}

/// Returns the warning about new requests for tokens that a driver gets as attributes.
pub(in crate::registry::builtin) fn csi_driver(driver: &Value, old: Option<&Value>) -> Vec<String> {
    let requests = |driver: &Value| driver["spec"]["tokenRequests"].clone();
    let is_new = old.is_none_or(|old| requests(old) != requests(driver));
    let spec = &driver["spec"];
    let applies = is_new
        && !list(&spec["tokenRequests"]).is_empty()
        && spec["serviceAccountTokenInSecrets"].is_null();
    applies.then(|| TOKENS.to_owned()).into_iter().collect()
}

/// Returns the warnings about deprecated labels in the topologies of a class.
pub(in crate::registry::builtin) fn storage_class(class: &Value, _: Option<&Value>) -> Vec<String> {
    let mut warnings = Vec::new();
    for (index, topology) in list(&class["allowedTopologies"]).iter().enumerate() {
        let expressions = list(&topology["matchLabelExpressions"]).iter().enumerate();
        for (at, expression) in expressions {
            let place = format!("allowedTopologies[{index}].matchLabelExpressions[{at}].key");
            let why = pods::deprecated(text(expression, "key"));
            warnings.extend(why.map(|why| format!("{place}: {why}")));
        }
    }
    warnings
}

/// Returns the warnings about deprecated labels in the topology of a capacity.
pub(in crate::registry::builtin) fn storage_capacity(
    capacity: &Value,
    _: Option<&Value>,
) -> Vec<String> {
    let mut warnings = pods::deprecated_keys(&capacity["nodeTopology"], "nodeTopology");
    let labels = capacity["nodeTopology"]["matchLabels"].as_object();
    for label in labels.into_iter().flat_map(serde_json::Map::keys) {
        let why = pods::deprecated(label);
        warnings.extend(why.map(|why| format!("nodeTopology.matchLabels.{label}: {why}")));
    }
    warnings
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[test]
    fn volumes_have_warnings() {
        let annotations = json!({"volume.beta.kubernetes.io/mount-options": "ro"});
        let spec = json!({"persistentVolumeReclaimPolicy": "Recycle", "rbd": {}});
        let volume = json!({"metadata": {"annotations": annotations}, "spec": spec});
        assert_eq!(persistent_volume(&volume, None).len(), 3);
    }

    #[rstest]
    #[case("1", 0)]
    #[case("1500m", 1)]
    #[case("1m", 1)]
    #[case("1Gi", 0)]
    fn bytes_are_whole(#[case] amount: &str, #[case] expected: usize) {
        let spec = json!({"resources": {"requests": {"storage": amount}}});
        assert_eq!(claim(&json!({ "spec": spec }), None).len(), expected);
    }

    #[test]
    fn drivers_get_tokens_as_secrets() {
        let driver = json!({"spec": {"tokenRequests": [{"audience": "a"}]}});
        assert_eq!(csi_driver(&driver, None), [TOKENS]);
        assert!(csi_driver(&driver, Some(&driver)).is_empty());
    }

    #[test]
    fn topologies_have_current_labels() {
        let key = "beta.kubernetes.io/os";
        let why = "deprecated since v1.14; use \"kubernetes.io/os\" instead";
        let topology = json!({"matchLabelExpressions": [{"key": key}]});
        let expected = format!("allowedTopologies[0].matchLabelExpressions[0].key: {why}");
        assert_eq!(storage_class(&json!({"allowedTopologies": [topology]}), None), [expected]);
        let topology = json!({"matchLabels": {key: "linux"}});
        let expected = format!("nodeTopology.matchLabels.{key}: {why}");
        assert_eq!(storage_capacity(&json!({"nodeTopology": topology}), None), [expected]);
    }
}
