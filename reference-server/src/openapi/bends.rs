//! What faults change in the published schemas of built-in types. What is published is then not what the server does, or not what
//! the design rules of the API allow.

use serde_json::{Map, Value};

use super::definitions::Dialect;
use crate::faults::{Fault, Faults};
use crate::patch::merge;

/// What each fault changes, as a merge patch of a definition that ends so.
const BENDS: [(Fault, &str, &str); 13] = [
    (Fault::OpenApiSnakeCase, ".core.v1.PodSpec", r#"{"properties":{"host_users":{"type":"boolean"}}}"#),
    (
        Fault::OpenApiFloat,
        ".core.v1.PodSpec",
        r#"{"properties":{"priority":{"type":"number","format":"double"}}}"#,
    ),
    (
        Fault::OpenApiIntegersUnsized,
        ".core.v1.PodSpec",
        r#"{"properties":{"terminationGracePeriodSeconds":{"format":null}}}"#,
    ),
    (
        Fault::OpenApiBooleansWithIs,
        ".core.v1.ConfigMap",
        r#"{"properties":{"isImmutable":{"type":"boolean"}}}"#,
    ),
    (
        Fault::OpenApiAdmissionRequired,
        ".core.v1.PodSpec",
        r#"{"required":["containers","serviceAccountName","tolerations"]}"#,
    ),
    (
        Fault::OpenApiOwnersAnywhere,
        ".meta.v1.OwnerReference",
        r#"{"properties":{"namespace":{"type":"string"}}}"#,
    ),
    (
        Fault::OpenApiStatusHasObjectMetadata,
        ".meta.v1.Status",
        r##"{"properties":{"metadata":{"$ref":"#/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"}}}"##,
    ),
    (
        Fault::OpenApiWithoutMergeKeys,
        ".core.v1.PodSpec",
        r#"{"properties":{
            "containers":{"x-kubernetes-patch-strategy":null,"x-kubernetes-patch-merge-key":null},
            "volumes":{"x-kubernetes-patch-strategy":null,"x-kubernetes-patch-merge-key":null}}}"#,
    ),
    (
        Fault::OpenApiWithoutMergeKeys,
        ".core.v1.ServiceSpec",
        r#"{"properties":{"ports":{"x-kubernetes-patch-strategy":null,"x-kubernetes-patch-merge-key":null}}}"#,
    ),
    (
        Fault::OpenApiAllRequired,
        ".core.v1.Container",
        r#"{"required":["name","image","command","args","env","ports","resources"]}"#,
    ),
    (Fault::OpenApiNothingRequired, ".core.v1.Container", r#"{"required":null}"#),
    (
        Fault::OpenApiItemsElsewhere,
        ".core.v1.ConfigMap",
        r#"{"properties":{"items":{"type":"array","items":{"type":"string"}}}}"#,
    ),
    (Fault::OpenApiNodesWithoutStatus, ".core.v1.Node", r#"{"properties":{"status":null}}"#),
];

/// Changes the definitions of a document.
pub(super) fn bend(definitions: &mut Map<String, Value>, dialect: Dialect, faults: Faults) {
    for (_, end, patch) in BENDS.iter().filter(|(fault, ..)| faults.on(*fault)) {
        // The table is a part of the program.
        let patch = patch.replace("#/", &dialect.pointer(""));
        let patch: Value = serde_json::from_str(&patch).unwrap_or_default();
        for (_, definition) in definitions.iter_mut().filter(|(name, _)| name.ends_with(end)) {
            if let Ok(bent) = merge::apply(definition, &patch, Faults::none()) {
                *definition = bent;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bend_is_a_patch() {
        for (fault, _, patch) in &BENDS {
            assert!(serde_json::from_str::<Value>(patch).is_ok_and(|patch| patch.is_object()), "{fault}");
        }
    }
}
