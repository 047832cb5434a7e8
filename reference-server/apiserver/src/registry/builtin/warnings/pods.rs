//! Warnings about pods and templates.

use std::collections::HashSet;

use serde_json::Value;

use super::{containers, list, paths, text};
use kubeproof_apimachinery::schema::quantity::is_whole;

/// The deprecated labels of nodes.
const NODE_LABELS: [(&str, &str); 8] = [
    ("beta.kubernetes.io/arch", "deprecated since v1.14; use \"kubernetes.io/arch\" instead"),
    ("beta.kubernetes.io/os", "deprecated since v1.14; use \"kubernetes.io/os\" instead"),
    (
        "failure-domain.beta.kubernetes.io/region",
        "deprecated since v1.17; use \"topology.kubernetes.io/region\" instead",
    ),
    (
        "failure-domain.beta.kubernetes.io/zone",
        "deprecated since v1.17; use \"topology.kubernetes.io/zone\" instead",
    ),
    (
        "beta.kubernetes.io/instance-type",
        "deprecated since v1.17; use \"node.kubernetes.io/instance-type\" instead",
    ),
    ("app.kubernetes.io/created-by", "deprecated since v1.9"),
    (
        "scheduler.alpha.kubernetes.io/preferAvoidPods",
        "deprecated since v1.22; use Taints and Tolerations instead",
    ),
    ("node-role.kubernetes.io/master", "use \"node-role.kubernetes.io/control-plane\" instead"),
];

/// The annotations without an effect.
const ANNOTATIONS: [(&str, &str); 3] = [
    (
        "scheduler.alpha.kubernetes.io/critical-pod",
        "non-functional in v1.16+; use the \"priorityClassName\" field instead",
    ),
    (
        "security.alpha.kubernetes.io/sysctls",
        "non-functional in v1.11+; use the \"sysctls\" field instead",
    ),
    (
        "security.alpha.kubernetes.io/unsafe-sysctls",
        "non-functional in v1.11+; use the \"sysctls\" field instead",
    ),
];

/// The plugins for volumes that kubelets no longer have.
const PLUGINS: [(&str, &str); 9] = [
    ("photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"),
    ("gitRepo", "deprecated in v1.11, and disabled by default in v1.33+"),
    ("scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
    ("flocker", "deprecated in v1.22, non-functional in v1.25+"),
    ("storageOS", "deprecated in v1.22, non-functional in v1.25+"),
    ("quobyte", "deprecated in v1.22, non-functional in v1.25+"),
    ("glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
    ("cephfs", "deprecated in v1.28, non-functional in v1.31+"),
    ("rbd", "deprecated in v1.28, non-functional in v1.31+"),
];
/// The plugins among them about which persistent volumes have no warning.
const ONLY_OF_PODS: [&str; 2] = ["flocker", "quobyte"];

const NO_SELECTOR: &str = "a null labelSelector results in matching no pod";

/// Returns the warnings about a template. `place` is its path with a dot at the end.
pub(super) fn template_at(template: &Value, place: &str) -> Vec<String> {
    let spec = &template["spec"];
    let at = format!("{place}spec");
    let mut warnings = nodes(spec, &at);
    let annotations = &template["metadata"]["annotations"];
    for (key, why) in ANNOTATIONS.iter().filter(|(key, _)| annotations.get(key).is_some()) {
        warnings.push(format!("{place}metadata.annotations[{key}]: {why}"));
    }
    for (index, volume) in list(&spec["volumes"]).iter().enumerate() {
        let place = format!("{at}.volumes[{index}]");
        for (plugin, why) in PLUGINS.iter().filter(|(plugin, _)| has(volume, plugin)) {
            warnings.push(format!("{place}.{plugin}: {why}"));
        }
    }
    warnings.extend(paths::overlapping(list(&spec["volumes"])));
    warnings.extend(duplicates(spec, &at, "hostAliases", "ip"));
    warnings.extend(duplicates(spec, &at, "imagePullSecrets", "name"));
    for (index, secret) in list(&spec["imagePullSecrets"]).iter().enumerate() {
        if text(secret, "name").is_empty() {
            warnings.push(format!("{at}.imagePullSecrets[{index}].name: invalid empty name \"\""));
        }
    }
    warnings.extend(fractions(&spec["overhead"], &format!("{at}.overhead")));
    warnings.extend(containers::warnings(spec, &at));
    if spec["terminationGracePeriodSeconds"].as_i64().is_some_and(|seconds| seconds < 0) {
        warnings.push(format!(
            "{at}.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and \
             will be treated as 1"
        ));
    }
    warnings.extend(affinities(&spec["affinity"], &format!("{at}.affinity")));
    warnings
}

/// Returns the warnings about deprecated labels of nodes, and about constraints for no pods.
fn nodes(spec: &Value, at: &str) -> Vec<String> {
    let mut warnings = Vec::new();
    for (key, _) in spec["nodeSelector"].as_object().into_iter().flatten() {
        if let Some(why) = deprecated(key) {
            warnings.push(format!("{at}.nodeSelector[{key}]: {why}"));
        }
    }
    let affinity = &spec["affinity"]["nodeAffinity"];
    let place = format!("{at}.affinity.nodeAffinity");
    let required = "requiredDuringSchedulingIgnoredDuringExecution";
    for (index, term) in list(&affinity[required]["nodeSelectorTerms"]).iter().enumerate() {
        let place = format!("{place}.{required}.nodeSelectorTerms[{index}]");
        warnings.extend(deprecated_keys(term, &place));
    }
    let preferred = "preferredDuringSchedulingIgnoredDuringExecution";
    for (index, term) in list(&affinity[preferred]).iter().enumerate() {
        let place = format!("{place}.{preferred}[{index}].preference");
        warnings.extend(deprecated_keys(&term["preference"], &place));
    }
    for (index, constraint) in list(&spec["topologySpreadConstraints"]).iter().enumerate() {
        let place = format!("{at}.topologySpreadConstraints[{index}]");
        let key = text(constraint, "topologyKey");
        warnings.extend(deprecated(key).map(|why| format!("{place}.topologyKey: {key} is {why}")));
        if constraint["labelSelector"].is_null() {
            warnings.push(format!("{place}.labelSelector: {NO_SELECTOR}"));
        }
    }
    warnings
}

pub(super) fn deprecated(label: &str) -> Option<&'static str> {
    NODE_LABELS.iter().find(|(key, _)| *key == label).map(|(_, why)| *why)
}

/// Returns the warnings about the labels in a term of a node selector.
pub(super) fn deprecated_keys(term: &Value, place: &str) -> Vec<String> {
    let expressions = list(&term["matchExpressions"]).iter().enumerate();
    let warning = |(index, expression): (usize, &Value)| {
        let key = text(expression, "key");
        let why = deprecated(key)?;
        Some(format!("{place}.matchExpressions[{index}].key: {key} is {why}"))
    };
    expressions.filter_map(warning).collect()
}

/// Returns the warnings about the plugin of a persistent volume.
pub(super) fn deprecated_plugins(spec: &Value, place: &str) -> Vec<String> {
    let plugins = PLUGINS.iter().filter(|(plugin, _)| !ONLY_OF_PODS.contains(plugin));
    let used = plugins.filter(|(plugin, _)| has(spec, plugin));
    used.map(|(plugin, why)| format!("{place}.{plugin}: {why}")).collect()
}

/// Reports whether a volume has a plugin. kube-apiserver writes one of them with capital letters.
fn has(volume: &Value, plugin: &str) -> bool {
    volume.get(if plugin == "storageOS" { "storageos" } else { plugin }).is_some()
}

fn duplicates(spec: &Value, at: &str, items: &str, field: &str) -> Vec<String> {
    let mut known = HashSet::new();
    let mut warnings = Vec::new();
    for (index, item) in list(&spec[items]).iter().enumerate() {
        let value = text(item, field);
        if !known.insert(value) {
            warnings.push(format!("{at}.{items}[{index}].{field}: duplicate {field} {value:?}"));
        }
    }
    warnings
}

/// Returns the warnings about bytes that are not whole.
pub(super) fn fractions(amounts: &Value, place: &str) -> Vec<String> {
    let warning = |name: &&str| {
        let amount = text(amounts, name);
        let why = format!("fractional byte value {amount:?} is invalid, must be an integer");
        (!is_whole(amount)).then(|| format!("{place}[{name}]: {why}"))
    };
    ["memory", "ephemeral-storage"].iter().filter_map(warning).collect()
}

fn affinities(affinity: &Value, at: &str) -> Vec<String> {
    let mut warnings = Vec::new();
    for kind in ["podAffinity", "podAntiAffinity"] {
        for (terms, inner) in [
            ("requiredDuringSchedulingIgnoredDuringExecution", ""),
            ("preferredDuringSchedulingIgnoredDuringExecution", "podAffinityTerm"),
        ] {
            for (index, term) in list(&affinity[kind][terms]).iter().enumerate() {
                let (term, dot) = if inner.is_empty() { (term, "") } else { (&term[inner], ".") };
                if term["labelSelector"].is_null() {
                    let place = format!("{at}.{kind}.{terms}[{index}]{dot}{inner}");
                    warnings.push(format!("{place}.labelSelector: {NO_SELECTOR}"));
                }
            }
        }
    }
    warnings
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case(json!({"containers": [{"name": "c"}]}), &[])]
    #[case(
        json!({"nodeSelector": {"beta.kubernetes.io/os": "linux"}}),
        &["spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; use \
           \"kubernetes.io/os\" instead"]
    )]
    #[case(
        json!({"topologySpreadConstraints": [{"topologyKey": "z"}]}),
        &["spec.topologySpreadConstraints[0].labelSelector: a null labelSelector results in \
           matching no pod"]
    )]
    #[case(
        json!({"volumes": [{"name": "v", "gitRepo": {}}, {"name": "w", "storageos": {}}]}),
        &["spec.volumes[0].gitRepo: deprecated in v1.11, and disabled by default in v1.33+",
          "spec.volumes[1].storageOS: deprecated in v1.22, non-functional in v1.25+"]
    )]
    #[case(
        json!({"imagePullSecrets": [{"name": "a"}, {"name": "a"}, {}]}),
        &["spec.imagePullSecrets[1].name: duplicate name \"a\"",
          "spec.imagePullSecrets[2].name: invalid empty name \"\""]
    )]
    #[case(
        json!({"overhead": {"memory": "1500m"}}),
        &["spec.overhead[memory]: fractional byte value \"1500m\" is invalid, must be an integer"]
    )]
    #[case(
        json!({"affinity": {"podAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [{"podAffinityTerm": {}}],
        }}}),
        &["spec.affinity.podAffinity.preferredDuringSchedulingIgnoredDuringExecution[0]\
           .podAffinityTerm.labelSelector: a null labelSelector results in matching no pod"]
    )]
    fn specs_have_warnings(#[case] spec: Value, #[case] expected: &[&str]) {
        assert_eq!(template_at(&json!({ "spec": spec }), ""), expected);
    }

    #[test]
    fn a_template_has_its_place() {
        let annotations = json!({"security.alpha.kubernetes.io/sysctls": "a"});
        let template = json!({
            "metadata": {"annotations": annotations},
            "spec": {"terminationGracePeriodSeconds": -1},
        });
        let places: Vec<_> = template_at(&template, "spec.template.")
            .iter()
            .map(|text| text.split(':').next().unwrap().to_owned())
            .collect();
        let expected = [
            "spec.template.metadata.annotations[security.alpha.kubernetes.io/sysctls]",
            "spec.template.spec.terminationGracePeriodSeconds",
        ];
        assert_eq!(places, expected);
    }
}
