//! Capabilities that a server can be without and be no less right.
//!
//! Most of what the conventions describe is offered, not owed: a server says in discovery, in its documents and by 404, 405,
//! 406 and 415 what it has. So a cut is made where a resource is registered (`Cuts::trim`): discovery, OpenAPI and the
//! handlers work from the same `ResourceType`, and agree. What is no property of a resource is asked for by name where a
//! request is read.

use serde_json::Value;

use crate::builtin::{Subresource, rbac};
use crate::registry::ResourceType;

named! {
    /// A capability that the server is without.
    Cut {
        AggregatedDiscovery "aggregated-discovery" "Discovery has one document for each group and version, and none for all."
        Core "core" "There is no core group: no namespaces, config maps, secrets or pods."
        Crds "crds" "Custom resources cannot be defined."
        DeleteCollection "deletecollection" "Collections cannot be deleted."
        FieldSelectors "field-selectors" "No field can be selected by, not even the name."
        GarbageCollection "garbage-collection" "No controllers are at work: what nobody owns any more stays."
        JsonPatch "json-patch" "PATCH does not take JSON patches."
        MergePatch "merge-patch" "PATCH does not take merge patches."
        Namespaces "namespaces" "Namespaces are no objects: any name is one."
        Node "node" "There is no node: pods stay pending, as on a control plane alone."
        OpenapiV2 "openapi-v2" "There is no document of OpenAPI v2."
        OpenapiV3 "openapi-v3" "There are no documents of OpenAPI v3."
        OtherResources "other-resources" "One namespaced resource is served, gadgets.v1.devices.example.com, and nothing else."
        Paging "paging" "Lists come whole, whatever limit was asked for."
        PartialMetadata "partial-metadata" "Objects and lists are not served as their metadata alone."
        Patch "patch" "Nothing can be patched."
        Pods "pods" "There are no pods."
        Reviews "reviews" "Nobody can ask who they are and what they may do."
        Roles "roles" "There are no roles: rights follow from groups alone."
        Scale "scale" "There are no scale subresources."
        ServerSideApply "server-side-apply" "PATCH does not take applied configurations."
        Status "status" "There are no status subresources."
        StrategicMergePatch "strategic-merge-patch" "PATCH does not take strategic merge patches."
        StreamingLists "streaming-lists" "A watch cannot begin with a list that says where it ends."
        Streams "streams" "Nothing leads into pods: no exec, attach, port-forward, log or proxy."
        Table "table" "Objects and lists are not served as tables."
        ValidationRules "validation-rules" "Definitions of custom resources do not keep validation rules."
        Watch "watch" "Nothing can be watched."
        WatchBookmarks "watch-bookmarks" "Watches carry no bookmarks."
        Yaml "yaml" "YAML is neither taken nor served."
    }
}

/// The patches that each cut takes away.
const PATCHES: [(Cut, &str); 4] = [
    (Cut::JsonPatch, "application/json-patch+json"),
    (Cut::MergePatch, "application/merge-patch+json"),
    (Cut::StrategicMergePatch, "application/strategic-merge-patch+json"),
    (Cut::ServerSideApply, "application/apply-patch+yaml"),
];

/// Subresources that lead into pods.
const STREAMS: [&str; 5] = ["attach", "exec", "log", "portforward", "proxy"];

/// What a server is without.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cuts(u64);

impl Cuts {
    /// Nothing: the server has all it can have.
    pub const fn none() -> Self {
        Self(0)
    }

    /// These, and one more.
    #[must_use]
    pub const fn with(self, cut: Cut) -> Self {
        Self(self.0 | 1 << cut as u64)
    }

    /// Whether the server is without this.
    pub const fn on(self, cut: Cut) -> bool {
        self.0 & (1 << cut as u64) != 0
    }

    /// What the server is without.
    pub fn iter(self) -> impl Iterator<Item = Cut> {
        Cut::all().filter(move |cut| self.on(*cut))
    }

    /// Whether namespaces are objects, which have to be there before something is in them.
    pub(crate) const fn namespaces_exist(self) -> bool {
        !self.on(Cut::Namespaces) && !self.on(Cut::Core) && !self.on(Cut::OtherResources)
    }

    /// Takes from a resource what the server is without; none is left of one that it does not serve at all.
    pub(crate) fn trim(self, mut ty: ResourceType) -> Option<ResourceType> {
        if self.removes(&ty) {
            return None;
        }
        ty.has_status &= !self.on(Cut::Status);
        if self.on(Cut::Scale) {
            ty.scale = None;
        }
        let verbs =
            [(Cut::Watch, "watch"), (Cut::Patch, "patch"), (Cut::DeleteCollection, "deletecollection")];
        ty.verbs.retain(|verb| !verbs.iter().any(|(cut, cut_verb)| self.on(*cut) && verb == cut_verb));
        ty.patch_types
            .retain(|media_type| !PATCHES.iter().any(|(cut, known)| self.on(*cut) && known == media_type));
        if self.on(Cut::Yaml) {
            ty.body_types.retain(|media_type| *media_type != "application/yaml");
        }
        if self.on(Cut::FieldSelectors) {
            ty.selectable.clear();
            ty.selects_by_name = false;
        }
        let leads_nowhere = self.on(Cut::Streams) || self.on(Cut::Pods);
        ty.subresources.retain(|sub: &Subresource| !(leads_nowhere && STREAMS.contains(&sub.name)));
        Some(ty)
    }

    fn removes(self, ty: &ResourceType) -> bool {
        let group = ty.group.as_str();
        (self.on(Cut::OtherResources) && !ty.custom)
            || (self.on(Cut::Core) && group.is_empty())
            || (self.on(Cut::Namespaces) && ty.is_core("namespaces"))
            || (self.on(Cut::Pods) && ty.is_core("pods"))
            || (self.on(Cut::Crds) && group == "apiextensions.k8s.io")
            || (self.on(Cut::Roles) && group == rbac::GROUP)
            || (self.on(Cut::Reviews) && matches!(group, "authentication.k8s.io" | "authorization.k8s.io"))
    }

    /// Takes from the definition of a custom resource what would promise more than the server has.
    pub(crate) fn trim_definition(self, definition: &mut Value) {
        for version in definition["spec"]["versions"].as_array_mut().into_iter().flatten() {
            if let Some(subresources) = version.get_mut("subresources").and_then(Value::as_object_mut) {
                subresources.retain(|name, _| match name.as_str() {
                    "status" => !self.on(Cut::Status),
                    "scale" => !self.on(Cut::Scale),
                    _ => true,
                });
            }
            if self.on(Cut::FieldSelectors)
                && let Some(version) = version.as_object_mut()
            {
                version.remove("selectableFields");
            }
            if self.on(Cut::ValidationRules)
                && let Some(schema) = version.pointer_mut("/schema/openAPIV3Schema")
            {
                drop_rules(schema);
            }
        }
    }
}

impl From<Cut> for Cuts {
    fn from(cut: Cut) -> Self {
        Self::none().with(cut)
    }
}

impl FromIterator<Cut> for Cuts {
    fn from_iter<I: IntoIterator<Item = Cut>>(cuts: I) -> Self {
        cuts.into_iter().fold(Self::none(), Self::with)
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
    use std::collections::BTreeSet;

    use rstest::rstest;
    use serde_json::json;

    use super::*;
    use crate::builtin;

    fn served(cuts: Cuts) -> Vec<ResourceType> {
        builtin::types().into_iter().filter_map(|ty| cuts.trim(ty.into())).collect()
    }

    #[test]
    fn names_are_unique_and_lead_back_to_their_cut() {
        let names: BTreeSet<&str> = Cut::all().map(Cut::name).collect();
        assert_eq!(names.len(), Cut::all().count());
        for cut in Cut::all() {
            assert_eq!(Cut::from_name(cut.name()), Some(cut));
            assert!(cut.summary().ends_with('.'), "{cut}: a summary is a sentence");
            assert_eq!(Cuts::from(cut).iter().collect::<Vec<_>>(), [cut]);
        }
    }

    #[rstest]
    #[case(Cut::Core, "pods")]
    #[case(Cut::Namespaces, "namespaces")]
    #[case(Cut::Crds, "customresourcedefinitions")]
    #[case(Cut::Reviews, "selfsubjectaccessreviews")]
    #[case(Cut::Roles, "clusterroles")]
    fn resources_go_as_a_whole(#[case] cut: Cut, #[case] plural: &str) {
        let serves = |cuts| served(cuts).iter().any(|ty| ty.plural == plural);
        assert!(serves(Cuts::none()) && !serves(cut.into()));
        assert!(served(Cut::OtherResources.into()).is_empty());
    }

    #[test]
    fn what_is_left_of_a_resource_says_what_it_lacks() {
        let cuts = [Cut::Status, Cut::Scale, Cut::Watch, Cut::JsonPatch, Cut::Yaml, Cut::FieldSelectors];
        for ty in served(cuts.into_iter().collect()) {
            assert!(!ty.has_status && ty.scale.is_none() && !ty.allows("watch"), "{}", ty.plural);
            assert!(ty.allows("create"), "{}", ty.plural);
            assert!(!ty.patch_types.contains(&"application/json-patch+json"), "{}", ty.plural);
            assert_eq!(ty.body_types, ["application/json"]);
            assert!(ty.selectable.is_empty() && !ty.selects_by_name, "{}", ty.plural);
        }
        let pods = |cuts| served(cuts).into_iter().find(|ty| ty.is_core("pods"));
        let names: Vec<&str> = pods(Cut::Streams.into())
            .iter()
            .flat_map(|pods| &pods.subresources)
            .map(|sub| sub.name)
            .collect();
        assert_eq!(names, ["binding", "eviction"]);
    }

    #[test]
    fn a_definition_promises_no_more_than_there_is() {
        let mut definition = json!({"spec": {"versions": [{
            "name": "v1",
            "subresources": {"status": {}, "scale": {}},
            "selectableFields": [{"jsonPath": ".spec.a"}],
            "schema": {"openAPIV3Schema": {"properties": {"spec": {"x-kubernetes-validations": [{"rule": "true"}]}}}},
        }]}});
        let cuts = [Cut::Status, Cut::FieldSelectors, Cut::ValidationRules];
        cuts.into_iter().collect::<Cuts>().trim_definition(&mut definition);
        let expected = json!({"spec": {"versions": [{
            "name": "v1",
            "subresources": {"scale": {}},
            "schema": {"openAPIV3Schema": {"properties": {"spec": {}}}},
        }]}});
        assert_eq!(definition, expected);
    }
}
