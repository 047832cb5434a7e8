//! Recognises Kubernetes types that are embedded in other schemas.
//!
//! The schema of a custom resource cannot refer to a type. A spec with a pod template contains all
//! fields of a pod, which its author did not name. The members that only the original type has
//! identify the copy.

use serde_json::Value;

/// Members that identify a Kubernetes type.
const ORIGINALS: [&[&str]; 15] = [
    // PodSpec
    &["containers", "nodeSelector", "restartPolicy", "serviceAccountName", "volumes"],
    // Container
    &["args", "command", "env", "image", "volumeMounts"],
    // Volume
    &["configMap", "emptyDir", "hostPath", "name", "persistentVolumeClaim", "secret"],
    // VolumeMount
    &["mountPath", "name", "readOnly", "subPath"],
    // EnvVar
    &["name", "value", "valueFrom"],
    // EnvFromSource
    &["configMapRef", "prefix", "secretRef"],
    // ResourceRequirements
    &["claims", "limits", "requests"],
    // PodSecurityContext, SecurityContext
    &["runAsGroup", "runAsNonRoot", "runAsUser", "seLinuxOptions"],
    // Probe
    &["failureThreshold", "initialDelaySeconds", "periodSeconds", "successThreshold"],
    // Lifecycle
    &["postStart", "preStop"],
    // Affinity
    &["nodeAffinity", "podAffinity", "podAntiAffinity"],
    // Toleration
    &["effect", "key", "operator", "tolerationSeconds", "value"],
    // TopologySpreadConstraint
    &["maxSkew", "topologyKey", "whenUnsatisfiable"],
    // PersistentVolumeClaimSpec
    &["accessModes", "resources", "storageClassName", "volumeMode"],
    // LabelSelector
    &["matchExpressions", "matchLabels"],
];

/// Reports whether a schema is the copy of a Kubernetes type.
pub(super) fn is_copy(schema: &Value) -> bool {
    let Some(members) = schema["properties"].as_object() else { return false };
    ORIGINALS.iter().any(|original| original.iter().all(|member| members.contains_key(*member)))
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};

    use super::*;
    use crate::schema::Published;
    use crate::schema::fields::fields;

    fn object(members: &[&str]) -> Value {
        let members: Map<String, Value> =
            members.iter().map(|name| ((*name).to_owned(), json!({"type": "number"}))).collect();
        json!({"type": "object", "properties": members})
    }

    #[test]
    fn the_fields_of_a_copy_are_not_those_of_its_author() {
        let schema = json!({
            "type": "object",
            "properties": {
                "spec": {
                    "type": "object",
                    "properties": {
                        "ratio": {"type": "number"}, "pod": object(ORIGINALS[0]),
                        "own": object(&["containers", "volumes"]),
                        "tolerations": {"type": "array", "items": object(ORIGINALS[11])},
                    },
                },
            },
        });
        let mut published = Published::default();
        published
            .add_crd(&json!({
                "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
                "spec": {
                    "group": "example.com", "scope": "Namespaced",
                    "names": {"plural": "boats", "kind": "Boat"},
                    "versions": [{
                        "name": "v1", "served": true, "schema": {"openAPIV3Schema": schema},
                    }],
                },
            }))
            .unwrap();
        let boat = published.types.first().unwrap();
        let mut paths: Vec<String> =
            fields(&published, boat).into_iter().map(|field| field.path).collect();
        paths.sort();
        let expected = [
            "spec",
            "spec.own",
            "spec.own.containers",
            "spec.own.volumes",
            "spec.pod",
            "spec.ratio",
            "spec.tolerations",
            "spec.tolerations[]",
        ];
        assert_eq!(paths, expected);
    }
}
