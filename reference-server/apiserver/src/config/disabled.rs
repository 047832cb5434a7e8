//! Capabilities that a conformant server may lack.
//!
//! Clients detect them by discovery, OpenAPI, and the status codes 404, 405, 406 and 415. The
//! registry removes a disabled capability from each resource (`registry::capabilities`), so
//! discovery, OpenAPI and the endpoints agree. Endpoints check the capabilities that belong to no
//! resource.

kubeproof_apimachinery::named! {
    /// An optional capability of a server.
    Capability {
        AggregatedDiscovery "aggregated-discovery"
            "Discovery has one document for each group and version, and no aggregated document."
        Bindings "bindings" "Pods have no binding subresource."
        Core "core" "There is no core group: no namespaces, config maps, secrets or pods."
        Crds "crds" "Custom resources cannot be defined."
        DeleteCollection "deletecollection" "Collections cannot be deleted."
        FieldSelectors "field-selectors" "Field selectors are not supported, not even for the name."
        GarbageCollection "garbage-collection"
            "No garbage collector runs, so objects without an owner stay."
        JsonPatch "json-patch" "PATCH does not accept JSON patches."
        MergePatch "merge-patch" "PATCH does not accept merge patches."
        Namespaces "namespaces" "Namespaces are not objects: any name is valid."
        Node "node" "There is no node, so pods stay pending."
        OpenapiV2 "openapi-v2" "There is no OpenAPI v2 document."
        OpenapiV3 "openapi-v3" "There are no OpenAPI v3 documents."
        OtherResources "other-resources"
            "The only resource is the namespaced gadgets.v1.devices.example.com."
        Paging "paging" "Lists are always complete, because the server ignores limits."
        PartialMetadata "partial-metadata"
            "Objects and lists are not served as PartialObjectMetadata."
        Patch "patch" "PATCH is not supported."
        Pods "pods" "There are no pods."
        Protobuf "protobuf" "Protobuf is neither accepted nor served."
        Reviews "reviews" "Users cannot query their identity or permissions."
        Roles "roles" "There are no roles: permissions depend on groups only."
        Scale "scale" "There are no scale subresources."
        ServerSideApply "server-side-apply" "PATCH does not accept applied configurations."
        Status "status" "There are no status subresources."
        StrategicMergePatch "strategic-merge-patch" "PATCH does not accept strategic merge patches."
        StreamingLists "streaming-lists" "A watch cannot start with a list."
        Streams "streams" "Pods have no streams: no exec, attach, port-forward, log or proxy."
        Table "table" "Objects and lists are not served as tables."
        ValidationRules "validation-rules"
            "Custom resource definitions do not keep validation rules."
        Watch "watch" "WATCH is not supported."
        WatchBookmarks "watch-bookmarks" "Watches have no bookmarks."
        WebsocketWatches "websocket-watches"
            "Watches ignore upgrades to WebSocket and send events in the response body."
        Yaml "yaml" "YAML is neither accepted nor served."
    }
}

/// The disabled capabilities of a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DisabledCapabilities(u64);

impl DisabledCapabilities {
    /// Returns the empty set: the server has all capabilities.
    pub const fn none() -> Self {
        Self(0)
    }

    /// Returns this set with one more disabled capability.
    #[must_use]
    pub const fn with(self, capability: Capability) -> Self {
        Self(self.0 | 1 << capability as u64)
    }

    /// Returns whether the capability is disabled.
    pub const fn on(self, capability: Capability) -> bool {
        self.0 & (1 << capability as u64) != 0
    }

    /// Returns the disabled capabilities.
    pub fn iter(self) -> impl Iterator<Item = Capability> {
        Capability::all().filter(move |capability| self.on(*capability))
    }

    /// Returns whether namespaces are objects, which must exist before they contain objects.
    pub(crate) const fn namespaces_exist(self) -> bool {
        !self.on(Capability::Namespaces)
            && !self.on(Capability::Core)
            && !self.on(Capability::OtherResources)
    }
}

impl From<Capability> for DisabledCapabilities {
    fn from(capability: Capability) -> Self {
        Self::none().with(capability)
    }
}

impl FromIterator<Capability> for DisabledCapabilities {
    fn from_iter<I: IntoIterator<Item = Capability>>(disabled: I) -> Self {
        disabled.into_iter().fold(Self::none(), Self::with)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_unique_and_identify_their_capability() {
        let names: BTreeSet<&str> = Capability::all().map(Capability::name).collect();
        assert_eq!(names.len(), Capability::all().count());
        for capability in Capability::all() {
            assert_eq!(Capability::from_name(capability.name()), Some(capability));
            assert!(capability.summary().ends_with('.'), "{capability}: a summary is a sentence");
            assert_eq!(
                DisabledCapabilities::from(capability).iter().collect::<Vec<_>>(),
                [capability]
            );
        }
    }
}
