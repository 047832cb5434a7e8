//! Removes disabled capabilities from resources when they are registered.
//!
//! Discovery, OpenAPI and the endpoints read the same `ResourceType`, so they agree on what is
//! missing.

use kubeproof_apimachinery::serializer::protobuf;
use serde_json::Value;

use super::ResourceType;
use super::builtin::{Subresource, rbac};
use crate::config::disabled::{Capability, DisabledCapabilities};

/// The media type of patches for each disabled capability.
const PATCHES: [(Capability, &str); 4] = [
    (Capability::JsonPatch, "application/json-patch+json"),
    (Capability::MergePatch, "application/merge-patch+json"),
    (Capability::StrategicMergePatch, "application/strategic-merge-patch+json"),
    (Capability::ServerSideApply, "application/apply-patch+yaml"),
];

/// The subresources that connect to pods.
const STREAMS: [&str; 5] = ["attach", "exec", "log", "portforward", "proxy"];

impl DisabledCapabilities {
    /// Removes disabled capabilities from a resource. Returns none if the resource is not served at
    /// all.
    pub(crate) fn trim(self, mut ty: ResourceType) -> Option<ResourceType> {
        if self.removes(&ty) {
            return None;
        }
        ty.has_status &= !self.on(Capability::Status);
        if self.on(Capability::Scale) {
            ty.scale = None;
        }
        let verbs = [
            (Capability::Watch, "watch"),
            (Capability::Patch, "patch"),
            (Capability::DeleteCollection, "deletecollection"),
        ];
        ty.verbs.retain(|verb| {
            !verbs
                .iter()
                .any(|(capability, disabled_verb)| self.on(*capability) && verb == disabled_verb)
        });
        ty.patch_types.retain(|media_type| {
            !PATCHES.iter().any(|(capability, known)| self.on(*capability) && known == media_type)
        });
        let bodies =
            [(Capability::Yaml, "application/yaml"), (Capability::Protobuf, protobuf::MEDIA_TYPE)];
        ty.body_types.retain(|media_type| {
            !bodies.iter().any(|(capability, known)| self.on(*capability) && known == media_type)
        });
        if self.on(Capability::FieldSelectors) {
            ty.selectable.clear();
            ty.selects_by_name = false;
        }
        let leads_nowhere = self.on(Capability::Streams) || self.on(Capability::Pods);
        let unbound = self.on(Capability::Bindings);
        ty.subresources.retain(|sub: &Subresource| match sub.name {
            "binding" => !unbound,
            name => !(leads_nowhere && STREAMS.contains(&name)),
        });
        Some(ty)
    }

    fn removes(self, ty: &ResourceType) -> bool {
        let group = ty.group.as_str();
        (self.on(Capability::OtherResources) && !ty.custom)
            || (self.on(Capability::Core) && group.is_empty())
            || (self.on(Capability::Namespaces) && ty.is_core("namespaces"))
            || (self.on(Capability::Pods) && (ty.is_core("pods") || ty.is_core("bindings")))
            || (self.on(Capability::Bindings) && ty.is_core("bindings"))
            || (self.on(Capability::Crds) && group == "apiextensions.k8s.io")
            || (self.on(Capability::Roles) && group == rbac::GROUP)
            || (self.on(Capability::Reviews)
                && matches!(group, "authentication.k8s.io" | "authorization.k8s.io"))
    }

    /// Removes disabled capabilities from the definition of a custom resource.
    pub(crate) fn trim_definition(self, definition: &mut Value) {
        for version in definition["spec"]["versions"].as_array_mut().into_iter().flatten() {
            if let Some(subresources) =
                version.get_mut("subresources").and_then(Value::as_object_mut)
            {
                subresources.retain(|name, _| match name.as_str() {
                    "status" => !self.on(Capability::Status),
                    "scale" => !self.on(Capability::Scale),
                    _ => true,
                });
            }
            if self.on(Capability::FieldSelectors)
                && let Some(version) = version.as_object_mut()
            {
                version.remove("selectableFields");
            }
            if self.on(Capability::ValidationRules)
                && let Some(schema) = version.pointer_mut("/schema/openAPIV3Schema")
            {
                drop_rules(schema);
            }
        }
    }
}

fn drop_rules(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            members.retain(|name, _| name != "x-kubernetes-validations");
            members.values_mut().for_each(drop_rules);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_rules),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;
    use crate::config::KubernetesVersion;
    use crate::registry::builtin;

    fn served(disabled: DisabledCapabilities) -> Vec<ResourceType> {
        let types = builtin::types().into_iter();
        let types = types.filter_map(|ty| ResourceType::built_in(ty, KubernetesVersion::default()));
        types.filter_map(|ty| disabled.trim(ty)).collect()
    }

    #[rstest]
    #[case(Capability::Core, "pods")]
    #[case(Capability::Namespaces, "namespaces")]
    #[case(Capability::Crds, "customresourcedefinitions")]
    #[case(Capability::Reviews, "selfsubjectaccessreviews")]
    #[case(Capability::Roles, "clusterroles")]
    fn resources_go_as_a_whole(#[case] capability: Capability, #[case] plural: &str) {
        let serves = |disabled| served(disabled).iter().any(|ty| ty.plural == plural);
        assert!(serves(DisabledCapabilities::none()) && !serves(capability.into()));
        assert!(served(Capability::OtherResources.into()).is_empty());
    }

    #[test]
    fn what_is_left_of_a_resource_says_what_it_lacks() {
        let disabled = [
            Capability::Status,
            Capability::Scale,
            Capability::Watch,
            Capability::JsonPatch,
            Capability::Yaml,
            Capability::Protobuf,
            Capability::FieldSelectors,
        ];
        for ty in served(disabled.into_iter().collect()) {
            assert!(!ty.has_status && ty.scale.is_none() && !ty.allows("watch"), "{}", ty.plural);
            let creates = ty.allows("create") || ty.is_core("componentstatuses");
            assert!(creates, "{}", ty.plural);
            assert!(!ty.patch_types.contains(&"application/json-patch+json"), "{}", ty.plural);
            assert_eq!(ty.body_types, ["application/json"]);
            assert!(ty.selectable.is_empty() && !ty.selects_by_name, "{}", ty.plural);
        }
        let pods = |disabled| served(disabled).into_iter().find(|ty| ty.is_core("pods"));
        let names: Vec<&str> = pods(Capability::Streams.into())
            .iter()
            .flat_map(|pods| &pods.subresources)
            .map(|sub| sub.name)
            .collect();
        assert_eq!(names, ["binding", "ephemeralcontainers", "eviction", "resize"]);
    }

    #[test]
    fn a_definition_promises_no_more_than_there_is() {
        let mut definition = json!({"spec": {"versions": [{
            "name": "v1",
            "subresources": {"status": {}, "scale": {}},
            "selectableFields": [{"jsonPath": ".spec.a"}],
            "schema": {
                "openAPIV3Schema": {
                    "properties": {"spec": {"x-kubernetes-validations": [{"rule": "true"}]}},
                },
            },
        }]}});
        let disabled =
            [Capability::Status, Capability::FieldSelectors, Capability::ValidationRules];
        disabled.into_iter().collect::<DisabledCapabilities>().trim_definition(&mut definition);
        let expected = json!({"spec": {"versions": [{
            "name": "v1",
            "subresources": {"scale": {}},
            "schema": {"openAPIV3Schema": {"properties": {"spec": {}}}},
        }]}});
        assert_eq!(definition, expected);
    }
}
