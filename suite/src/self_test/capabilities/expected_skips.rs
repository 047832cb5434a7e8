//! The skips that each missing capability may cause.

use kubeproof_cases::case::Capability as NeededCapability;
use kubeproof_cases::case::Capability::{
    AggregatedDiscovery, Core, FieldSelectors, GarbageCollection, Impersonation, JsonPatch,
    MergePatch, OpenapiV2, OpenapiV3, Paging, PartialMetadata, RunningPods, ServerSideApply,
    StrategicMergePatch, StreamingLists, Table, ValidationRules, WatchBookmarks, WebsocketWatches,
};
use kubeproof_harness::event::{CaseResult, SkipReason};
use kubeproof_reference_server::Capability as ServerCapability;

use self::Expected::{Capability, Code, NotServed, Subresource, Verb};

/// The expected results of a server that lacks a capability.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ExpectedSkips {
    /// Each skip has one of these reasons. Empty if the capability is optional for all cases.
    pub(super) reasons: &'static [Expected],
    /// The minimum number of results, in percent of those of the complete server.
    pub(super) least_percent: usize,
    /// A few cases that need the capability, and a few that do not.
    pub(super) sample: &'static [&'static str],
}

impl ExpectedSkips {
    /// Returns whether the reason of a skip is expected.
    pub(super) fn includes(&self, result: &CaseResult) -> bool {
        result.skip.as_ref().is_some_and(|skip| {
            let expected = |cause: &&SkipReason| self.reasons.iter().any(|one| one.matches(cause));
            skip.causes().iter().any(expected)
        })
    }
}

/// A skip reason that a missing capability may cause.
#[derive(Clone, Copy, Debug)]
pub(super) enum Expected {
    /// The capability is missing.
    Capability(NeededCapability),
    /// The server does not serve the resource of this name.
    NotServed(&'static str),
    /// No resource, or not the subject, lists the verb.
    Verb(&'static str),
    /// The subresource is missing.
    Subresource(&'static str),
    /// Any reason with this code.
    Code(&'static str),
}

impl Expected {
    fn matches(self, reason: &SkipReason) -> bool {
        match (self, reason) {
            (Capability(expected), SkipReason::MissingCapability { capability, .. }) => {
                *capability == expected
            }
            (NotServed(name), SkipReason::ResourceNotServed { resource }) => {
                resource.resource == name
            }
            (
                Verb(expected),
                SkipReason::MissingVerb { verb, .. } | SkipReason::NoResourceWithVerb { verb },
            ) => verb == expected,
            (
                Subresource(expected),
                SkipReason::MissingSubresource { subresource, .. }
                | SkipReason::SubresourceDropped { subresource, .. },
            ) => subresource == expected,
            (Code(code), reason) => reason.code() == code,
            _ => false,
        }
    }
}

pub(super) const WITHOUT_WRITES: ExpectedSkips = expect(
    &[Code("create-rejected"), Capability(Impersonation)],
    3,
    &["discovery/group-*", "get/*", "rules/*", "users/impersonation-*"],
);

const fn expect(
    reasons: &'static [Expected],
    least_percent: usize,
    sample: &'static [&'static str],
) -> ExpectedSkips {
    ExpectedSkips { reasons, least_percent, sample }
}

/// Returns the expected results of a server without this capability, if the table contains it.
pub(super) fn expected_skips(capability: ServerCapability) -> Option<ExpectedSkips> {
    let mut rows = WITHOUT_CAPABILITY.iter();
    rows.find(|(of, _)| *of == capability).map(|(_, expected)| *expected)
}

const WITHOUT_CAPABILITY: &[(ServerCapability, ExpectedSkips)] = &[
    (
        ServerCapability::AggregatedDiscovery,
        expect(
            &[Capability(AggregatedDiscovery)],
            95,
            &["discovery/aggregated*", "discovery/group*"],
        ),
    ),
    (
        ServerCapability::Bindings,
        expect(&[Subresource("binding")], 95, &["create/binding-*", "create/pod-*"]),
    ),
    (
        ServerCapability::Core,
        expect(
            &[Capability(Core), Code("resource-not-served"), Code("deletes-foreign-objects")],
            40,
            &["create/*", "namespaces/*"],
        ),
    ),
    (
        ServerCapability::Crds,
        expect(
            &[NotServed("customresourcedefinitions")],
            55,
            &["pruning/*", "namespaces/created-active"],
        ),
    ),
    (
        ServerCapability::DeleteCollection,
        expect(&[Verb("deletecollection")], 95, &["deletion/*collection*", "put/missing-object"]),
    ),
    (
        ServerCapability::FieldSelectors,
        expect(&[Capability(FieldSelectors)], 95, &["selectors/field-*"]),
    ),
    (
        ServerCapability::GarbageCollection,
        expect(
            &[Capability(GarbageCollection)],
            95,
            &["deletion/*dependents*", "put/missing-object"],
        ),
    ),
    (
        ServerCapability::JsonPatch,
        expect(&[Capability(JsonPatch)], 95, &["patch/json-*", "patch/merge-patch-malformed"]),
    ),
    (
        ServerCapability::MergePatch,
        expect(&[Capability(MergePatch)], 85, &["patch/merge-*", "patch/json-patch-malformed"]),
    ),
    (
        ServerCapability::Namespaces,
        expect(
            &[NotServed("namespaces"), Code("deletes-foreign-objects")],
            90,
            &["namespaces/*", "put/missing-object"],
        ),
    ),
    (
        ServerCapability::Node,
        expect(
            &[Capability(RunningPods)],
            70,
            &["exec/pod-that-there-is-not", "status/put-of-a-pod"],
        ),
    ),
    (ServerCapability::OpenapiV2, expect(&[Capability(OpenapiV2)], 95, &["discovery/openapi-*"])),
    (
        ServerCapability::OpenapiV3,
        expect(&[Capability(OpenapiV3)], 90, &["discovery/openapi-*", "discovery/group*"]),
    ),
    (
        ServerCapability::OtherResources,
        expect(
            &[
                Code("resource-not-served"),
                Code("no-resource-with-verb"),
                Capability(Core),
                Capability(Impersonation),
                Capability(GarbageCollection),
                Code("wrong-scope"),
                Code("no-change-defined"),
                Code("no-status-defined"),
                Capability(StrategicMergePatch),
                Code("deletes-foreign-objects"),
            ],
            13,
            &["create/*", "discovery/*", "put/*", "patch/strategic-*", "watch/*websocket*"],
        ),
    ),
    (
        ServerCapability::Paging,
        expect(
            &[Capability(Paging)],
            95,
            &["list/*page*", "list/*continue*", "list/limits-*", "list/empty-list*"],
        ),
    ),
    (
        ServerCapability::PartialMetadata,
        expect(
            &[Capability(PartialMetadata)],
            95,
            &["serialization/partial-*", "serialization/json-*"],
        ),
    ),
    (ServerCapability::Patch, expect(&[Verb("patch")], 75, &["patch/*", "put/*"])),
    (
        ServerCapability::Pods,
        expect(
            &[NotServed("pods"), Subresource("proxy")],
            70,
            &["exec/pod-that-there-is-not", "status/*", "log/invalid-options"],
        ),
    ),
    // Protobuf is optional for all cases.
    (
        ServerCapability::Protobuf,
        expect(&[], 95, &["errors/other-representations", "serialization/json-*"]),
    ),
    // Only reviews have few verbs.
    (
        ServerCapability::Reviews,
        expect(
            &[Code("resource-not-served"), Capability(Impersonation), Code("nothing-to-judge")],
            90,
            &["users/*"],
        ),
    ),
    (
        ServerCapability::Roles,
        expect(&[NotServed("roles"), NotServed("rolebindings")], 95, &["users/*"]),
    ),
    (
        ServerCapability::Scale,
        expect(&[Subresource("scale")], 95, &["scale/*", "status/missing-object"]),
    ),
    (
        ServerCapability::ServerSideApply,
        expect(
            &[Capability(ServerSideApply)],
            90,
            &["apply/creates*", "patch/merge-patch-malformed"],
        ),
    ),
    (ServerCapability::Status, expect(&[Subresource("status")], 90, &["status/*"])),
    (
        ServerCapability::StrategicMergePatch,
        expect(
            &[Capability(StrategicMergePatch)],
            95,
            &["patch/strategic-*", "put/missing-object"],
        ),
    ),
    (
        ServerCapability::StreamingLists,
        expect(
            &[Capability(StreamingLists)],
            95,
            &["watch/streaming-list-of-nothing", "watch/one-*"],
        ),
    ),
    (
        ServerCapability::Streams,
        expect(
            &[
                Subresource("attach"),
                Subresource("exec"),
                Subresource("log"),
                Subresource("portforward"),
                Subresource("proxy"),
            ],
            75,
            &["exec/pod-that-there-is-not", "discovery/pods-list*", "status/put-of-a-pod"],
        ),
    ),
    (
        ServerCapability::Table,
        expect(&[Capability(Table)], 95, &["serialization/table*", "serialization/json-*"]),
    ),
    (
        ServerCapability::ValidationRules,
        expect(&[Capability(ValidationRules)], 95, &["rules/*", "put/missing-object"]),
    ),
    (
        ServerCapability::Watch,
        expect(&[Verb("watch")], 85, &["watch/one-*", "watch/label-*", "put/missing-object"]),
    ),
    (
        ServerCapability::WatchBookmarks,
        expect(
            &[Capability(WatchBookmarks), Capability(StreamingLists)],
            95,
            &["watch/bookmarks*", "watch/one-*"],
        ),
    ),
    (
        ServerCapability::WebsocketWatches,
        expect(
            &[Capability(WebsocketWatches)],
            95,
            &["watch/*websocket*", "watch/one-*", "exec/success-status"],
        ),
    ),
    // YAML is optional for all cases.
    (ServerCapability::Yaml, expect(&[], 95, &["serialization/yaml*", "validation/duplicate-*"])),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_capability_has_expected_skips() {
        let missing =
            ServerCapability::all().filter(|capability| expected_skips(*capability).is_none());
        assert_eq!(missing.map(ServerCapability::name).collect::<Vec<_>>(), [""; 0]);
    }
}
