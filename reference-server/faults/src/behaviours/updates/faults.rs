//! The faults of this folder, by file: variant, name on the command line, and summary of the bug.

/// Passes the rows to a macro, after the arguments of that macro.
macro_rules! rows {
    ($then:ident $($arguments:tt)*) => {
        $then! {
            $($arguments)*
            updated_objects {
                PutCreates "put-creates" "A PUT of a name that does not exist creates the object."
                PutOfNothingSucceeds "put-of-nothing-succeeds"
                    "A PUT of a name that does not exist returns 200 and stores nothing."
                UpdateWritesStatus "update-writes-status"
                    "PUT and PATCH of the main resource also write the status."
                StatusWritesSpec "status-writes-spec"
                    "PUT and PATCH of the status also write the spec."
                FinalizersAddedWhileDeleting "finalizers-added-while-deleting"
                    "Finalizers can be added to an object that is being deleted."
                FinalizersPatchedWhileDeleting "finalizers-patched-while-deleting"
                    "A patch can add finalizers to an object that is being deleted."
                DeletionTimestampMayChange "deletion-timestamp-may-change"
                    "A client can set metadata.deletionTimestamp."
                DeletionCanBeUndone "deletion-can-be-undone"
                    "A write that omits metadata.deletionTimestamp cancels the deletion of an \
                     object."
                PutMerges "put-merges" "A PUT keeps the fields that its body omits."
                NameMismatchAccepted "name-mismatch-accepted"
                    "PUT and PATCH accept a body with another name than the URL, and ignore it."
                OtherUidAccepted "other-uid-accepted"
                    "A PUT with the uid of another object is accepted."
                FinishedObjectsStay "finished-objects-stay"
                    "An object remains, marked as deleted, after its last finalizer is removed."
                DerivedDefaultsRecomputed "derived-defaults-recomputed"
                    "The selector of a replication controller follows its template with every \
                     update."
                ClusterIpCleared "cluster-ip-cleared"
                    "A PUT of a service without its clusterIP clears the address."
                LoadBalancerIpInSpec "load-balancer-ip-in-spec"
                    "A load balancer address that a client writes to the status is stored in the \
                     spec."
                UpdateReturnsStatus "update-returns-status" "A successful PUT returns a Status."
                PutsKeepOwners "puts-keep-owners"
                    "A PUT keeps the ownerReferences that its body omits."
                LastFinalizerReturnsStatus "last-finalizer-returns-status"
                    "The update that removes the last finalizer returns a Status."
                NamespaceLabelCanBeRemoved "namespace-label-can-be-removed"
                    "A PUT of a namespace can remove the label with its name."
                NamespaceFinalizersMayChange "namespace-finalizers-may-change"
                    "A PUT of a namespace may change the finalizers of its spec."
                DeletedObjectsReturn "deleted-objects-return"
                    "A PUT of a deleted object creates it again."
                PutWithoutNameAccepted "put-without-name-accepted"
                    "A PUT without metadata.name takes the name of the URL."
            }
            versions {
                StaleWriteAccepted "stale-write-accepted"
                    "A PUT with an old resourceVersion is accepted."
                UnreadableVersionAccepted "unreadable-version-accepted"
                    "A PUT with a resourceVersion that is not a number is handled as if it had \
                     none."
                FutureWriteAccepted "future-write-accepted"
                    "A PUT with a resourceVersion above the current one is accepted, because \
                     versions are compared by order."
                LostUpdate "lost-update"
                    "The server checks the version before it takes the lock, so one of two \
                     concurrent writes is lost."
                VersionsShared "versions-shared"
                    "Every second update of an object keeps the resourceVersion of the update \
                     before."
                NoOpBumpsVersion "no-op-bumps-version"
                    "A write that changes nothing gets a new resourceVersion and sends an event."
                ConflictAsBadRequest "conflict-as-bad-request" "A stale write returns 400."
                PutNeedsVersion "put-needs-version"
                    "A PUT without a resourceVersion returns a conflict."
                StalePutOfEqualContentAccepted "stale-put-of-equal-content-accepted"
                    "A PUT with a stale resourceVersion succeeds if it would change nothing."
            }
            generation {
                UidChangesOnUpdate "uid-changes-on-update"
                    "Every update gives the object a new uid."
                GenerationNotBumped "generation-not-bumped"
                    "A change of the spec keeps metadata.generation."
                GenerationAlwaysBumped "generation-always-bumped"
                    "Every change, including a change of labels, increments metadata.generation."
                StatusBumpsGeneration "status-bumps-generation"
                    "A change of the status increments metadata.generation."
                GenerationFromClient "generation-from-client"
                    "metadata.generation in the body of a PUT or PATCH is stored."
                GenerationStartsOver "generation-starts-over"
                    "A change of the spec sets metadata.generation to 1."
                ObservedByServer "observed-by-server"
                    "The server updates status.observedGeneration with the generation."
                JsonPatchBumpsGeneration "json-patch-bumps-generation"
                    "Every JSON patch increases metadata.generation."
                ScaleKeepsGeneration "scale-keeps-generation"
                    "A write to the subresource scale keeps metadata.generation."
                StrategicPatchesKeepGeneration "strategic-patches-keep-generation"
                    "A strategic merge patch of the spec keeps metadata.generation."
                AppliesKeepGeneration "applies-keep-generation"
                    "A server-side apply that changes the spec keeps metadata.generation."
                StrategicPatchesOfLabelsMoveGeneration
                    "strategic-patches-of-labels-move-generation"
                    "Every strategic merge patch increases metadata.generation."
                AppliesOfTheStatusMoveGeneration "applies-of-the-status-move-generation"
                    "A server-side apply to the status increases metadata.generation."
                JsonPatchesOfTheStatusMoveGeneration "json-patches-of-the-status-move-generation"
                    "A JSON patch of the status increases metadata.generation."
            }
            preconditions {
                StalePutsOfPodsAccepted "stale-puts-of-pods-accepted"
                    "A PUT of a pod with a stale resourceVersion is accepted."
                StalePutsOfNamespacesAccepted "stale-puts-of-namespaces-accepted"
                    "A PUT of a namespace with a stale resourceVersion is accepted."
                StaleDryRunsAccepted "stale-dry-runs-accepted"
                    "A dry run of a PUT with a stale resourceVersion is accepted."
                StaleYamlAccepted "stale-yaml-accepted"
                    "A PUT in YAML with a stale resourceVersion is accepted."
                StaleStrategicPatchesAccepted "stale-strategic-patches-accepted"
                    "A strategic merge patch with a stale resourceVersion is accepted."
                StaleStatusAppliesAccepted "stale-status-applies-accepted"
                    "An apply to the status with a stale resourceVersion is accepted."
                StalePartsOfPodsAccepted "stale-parts-of-pods-accepted"
                    "Patches of ephemeralcontainers and resize with a stale resourceVersion are \
                     accepted."
                StaleApprovalsAccepted "stale-approvals-accepted"
                    "An approval of a certificate request with a stale resourceVersion is accepted."
                StalePutsOfDeletedObjectsAccepted "stale-puts-of-deleted-objects-accepted"
                    "A PUT with a stale resourceVersion is accepted if the object is being deleted."
                OtherUidOfDryRunsAccepted "other-uid-of-dry-runs-accepted"
                    "A dry run of a PUT with the uid of another object is accepted."
                OtherUidOfPatchesAccepted "other-uid-of-patches-accepted"
                    "Merge patches of any type with the uid of another object are accepted."
                OtherUidOfSubresourcePatchesAccepted "other-uid-of-subresource-patches-accepted"
                    "Patches of the status and the scale with the uid of another object are \
                     accepted."
            }
            responses {
                JsonPatchesReturnTheOldVersion "json-patches-return-the-old-version"
                    "The response of a JSON patch has the resourceVersion before the patch."
                StatusPatchesReturnTheOldVersion "status-patches-return-the-old-version"
                    "The response of a patch of the status has the resourceVersion before the \
                     patch."
                StatusWritesReturnNoLabels "status-writes-return-no-labels"
                    "The response of a write of the status has no labels."
                DeletionsReturnNoLabels "deletions-return-no-labels"
                    "The object that a DELETE returns has no labels."
                WritesReturnAnotherCreationTime "writes-return-another-creation-time"
                    "The creationTimestamp in the response of a patch is the first second of 1970."
            }
            timestamps {
                NullClearsTheCreationTime "null-clears-the-creation-time"
                    "A PUT with a null creationTimestamp removes the creationTimestamp."
                PutsReturnSentTimes "puts-return-sent-times"
                    "The response of a PUT contains the creationTimestamp that the client sent."
            }
        }
    };
}

pub(crate) use rows;
