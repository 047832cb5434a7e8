//! The faults of this folder, by file: variant, name on the command line, and summary of the bug.

/// Passes the rows to a macro, after the arguments of that macro.
macro_rules! rows {
    ($then:ident $($arguments:tt)*) => {
        $then! {
            $($arguments)*
            scale {
                ScaleNotWritten "scale-not-written"
                    "PUT and PATCH of the scale are accepted and change nothing."
                ScaleWithoutVersion "scale-without-version" "A Scale has no resourceVersion."
                ScaleVersionOfItsOwn "scale-version-of-its-own"
                    "The resourceVersion of a Scale is the generation of its object."
                ScaleNegativeIsNone "scale-negative-is-none"
                    "Negative replicas of a Scale are stored as zero."
                StaleScalePatchAccepted "stale-scale-patch-accepted"
                    "Patches of the scale with a stale resourceVersion are accepted."
                ScaleWithoutSelector "scale-without-selector"
                    "The subresource scale has no selector."
                ScaleNameMismatchAccepted "scale-name-mismatch-accepted"
                    "A PUT of a scale with another name than its path is accepted."
                ScaleWithoutUid "scale-without-uid"
                    "A Scale has neither the uid nor the creationTimestamp of its object."
                ScaleStatusRepeatsSpec "scale-status-repeats-spec"
                    "The status of a Scale has the number of replicas of its spec."
                ScaleOfAnotherUidAccepted "scale-of-another-uid-accepted"
                    "A PUT of a scale with the uid of another object is accepted."
                ScaleWritesReturnNoSelector "scale-writes-return-no-selector"
                    "The response of a write of the scale has no selector."
                DeploymentScaleRepeatsSpec "deployment-scale-repeats-spec"
                    "The status of the scale of a built-in type has the replicas of its spec."
                ScaleTestsIgnored "scale-tests-ignored"
                    "A JSON patch of the scale ignores its tests."
                ScaleTakesNoStrategicPatch "scale-takes-no-strategic-patch"
                    "A strategic merge patch of the scale returns 415."
                ScaleNamesNoNamespace "scale-names-no-namespace"
                    "The scale has no metadata.namespace."
            }
            parts {
                PartsNotWritten "parts-not-written"
                    "A write to ephemeralcontainers, resize or approval returns 200 and stores \
                     nothing."
                PartErrorsIgnored "part-errors-ignored"
                    "An invalid write to ephemeralcontainers, resize or approval returns 200 and \
                     changes nothing."
                PartsWriteMetadata "parts-write-metadata"
                    "A write to ephemeralcontainers or resize also writes the metadata."
                StaleFinalizeAccepted "stale-finalize-accepted"
                    "A PUT of the finalizers of a namespace with a stale resourceVersion is \
                     accepted."
                StatusApproves "status-approves"
                    "A write to the status of a CertificateSigningRequest can approve it."
                CertificateUserFromClient "certificate-user-from-client"
                    "The spec of a new CertificateSigningRequest has the user that the client sent."
            }
            status_parts {
                StatusClearedByPut "status-cleared-by-put"
                    "A PUT of a custom resource without a status clears the stored status."
                PatchesWriteStatus "patches-write-status"
                    "Merge patches and JSON patches of an object also write its status."
                StrategicPatchesWriteStatus "strategic-patches-write-status"
                    "Strategic merge patches of an object also write its status."
                ApplyWritesStatus "apply-writes-status"
                    "A server-side apply to an object of a built-in kind also writes its status."
                StatusJsonPatchesWriteSpec "status-json-patches-write-spec"
                    "A JSON patch of the status also changes the spec."
                StatusMergePatchesReplace "status-merge-patches-replace"
                    "A merge patch of the status removes the members that it does not name."
                StatusStrategicPatchesReplace "status-strategic-patches-replace"
                    "A strategic merge patch of the status removes the members that it does not \
                     name."
                StatusPutsMerge "status-puts-merge"
                    "A PUT of the status keeps the members that its body omits."
                StatusOfDeletedObjectsRejected "status-of-deleted-objects-rejected"
                    "A write of the status of an object that is being deleted returns 409."
                StaleStatusPatchAccepted "stale-status-patch-accepted"
                    "Patches of the status with a stale resourceVersion are accepted."
            }
            status_writes {
                StatusDropsMetadata "status-drops-metadata"
                    "A write to the status subresource ignores labels, annotations, finalizers and \
                     owners."
                CustomStatusWritesMetadata "custom-status-writes-metadata"
                    "A PUT of the status of a custom resource stores its labels and annotations."
                StatusAppliesWriteMetadata "status-applies-write-metadata"
                    "An apply to the status of a custom resource stores its labels and annotations."
                StatusOfAnotherUidAccepted "status-of-another-uid-accepted"
                    "A PUT of the status with the uid of another object is accepted."
                StatusDeleteRemovesTheObject "status-delete-removes-the-object"
                    "A DELETE of the status deletes the object."
                StatusPostIsAPut "status-post-is-a-put" "A POST to the status is handled as a PUT."
            }
            unnoticed_writes {
                BuiltinStatusSendsNoEvent "builtin-status-sends-no-event"
                    "A write to the status of a built-in type sends no watch event."
                ScaleSendsNoEvent "scale-sends-no-event"
                    "A write to the subresource scale sends no watch event."
                BindingSendsNoEvent "binding-sends-no-event"
                    "A binding sends no watch event for its pod."
                ResizeSendsNoEvent "resize-sends-no-event"
                    "A write to the subresource resize of a pod sends no watch event."
                ApprovalSendsNoEvent "approval-sends-no-event"
                    "The approval of a certificate request sends no watch event."
                FinalizeSendsNoEvent "finalize-sends-no-event"
                    "A write to the subresource finalize of a namespace sends no watch event."
                BuiltinStatusKeepsVersion "builtin-status-keeps-version"
                    "A write to the status of a built-in type keeps the resourceVersion."
                ScaleKeepsVersion "scale-keeps-version"
                    "A write to the subresource scale keeps the resourceVersion."
                ConflictAfterStatusWrite "conflict-after-status-write"
                    "After a write to the status, a PUT with the current version returns 409."
                ConflictAfterScale "conflict-after-scale"
                    "After a write to the subresource scale, a PUT with the current version \
                     returns 409."
                ConflictAfterApply "conflict-after-apply"
                    "After a server-side apply, a PUT with the current version returns 409."
                ConflictAfterJsonPatch "conflict-after-json-patch"
                    "After a JSON patch, a PUT with the current version returns 409."
                ConflictAfterMetadataWrite "conflict-after-metadata-write"
                    "After a patch of the metadata alone, a PUT with the current version returns \
                     409."
                ScalePatchSendsNoEvent "scale-patch-sends-no-event"
                    "A patch of the subresource scale sends no watch event."
                StatusApplySendsNoEvent "status-apply-sends-no-event"
                    "A server-side apply to the status sends no watch event."
                EphemeralContainersSendNoEvent "ephemeral-containers-send-no-event"
                    "A write to the subresource ephemeralcontainers sends no watch event."
                ApprovalKeepsVersion "approval-keeps-version"
                    "A write to the subresource approval keeps the resourceVersion."
                CustomScaleKeepsVersion "custom-scale-keeps-version"
                    "A write to the subresource scale of a custom resource keeps the \
                     resourceVersion."
                StatusPatchKeepsVersion "status-patch-keeps-version"
                    "A patch of the status keeps the resourceVersion."
            }
        }
    };
}

pub(crate) use rows;
