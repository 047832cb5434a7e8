//! The faults of this folder, by file: variant, name on the command line, and summary of the bug.

/// Passes the rows to a macro, after the arguments of that macro.
macro_rules! rows {
    ($then:ident $($arguments:tt)*) => {
        $then! {
            $($arguments)*
            media_types {
                MergePatchAsStrategic "merge-patch-as-strategic"
                    "A merge patch is applied as a strategic merge patch."
                StrategicPatchAsMerge "strategic-patch-as-merge"
                    "A strategic merge patch is applied as a merge patch."
                PatchOfUnknownTypeIgnored "patch-of-unknown-type-ignored"
                    "A PATCH of an unknown media type returns 200 and changes nothing."
                HugeNumbersRoundedByPatches "huge-numbers-rounded-by-patches"
                    "Integers in a patched custom resource are converted to doubles."
                MergePatchRejected "merge-patch-rejected"
                    "application/merge-patch+json returns 415."
                UntypedPatchIsAMergePatch "untyped-patch-is-a-merge-patch"
                    "A PATCH without Content-Type is applied as a merge patch."
                PatchParametersRejected "patch-parameters-rejected"
                    "A PATCH whose media type has parameters returns 415."
                ForceOfPatchesIgnored "force-of-patches-ignored"
                    "The server ignores force=true for patches that are no server-side apply."
            }
            json_patches {
                JsonPatchNotAtomic "json-patch-not-atomic"
                    "A failed JSON patch stores the changes of the operations before the failed \
                     one."
                PatchesReleaseNothing "patches-release-nothing"
                    "A JSON patch or strategic merge patch of an object that is being deleted \
                     returns 200 and stores nothing."
                JsonPatchTestIgnored "json-patch-test-ignored"
                    "The test operations of a JSON patch always succeed."
                JsonPatchDashPrepends "json-patch-dash-prepends"
                    "A JSON patch that adds at the index '-' inserts at the start of the list."
                JsonPatchTestsCompareScalarsOnly "json-patch-tests-compare-scalars-only"
                    "The test operation of a JSON patch succeeds for every list and map."
                JsonPatchMoveCopies "json-patch-move-copies"
                    "The operation move of a JSON patch also keeps the value at its old path."
                JsonPatchVersionIgnored "json-patch-version-ignored"
                    "The server does not verify the resourceVersion that a JSON patch sets."
                JsonPointersDecodedInWrongOrder "json-pointers-decoded-in-wrong-order"
                    "A JSON patch decodes ~0 before ~1, so ~01 in a path becomes a slash."
                JsonPointerTildesKept "json-pointer-tildes-kept"
                    "A JSON patch does not decode ~0 in a path."
                JsonPatchVersionTestsIgnored "json-patch-version-tests-ignored"
                    "A JSON patch ignores tests of the resourceVersion."
                JsonPatchAddsParents "json-patch-adds-parents"
                    "A JSON patch that adds below a missing object creates this object."
                JsonPatchRemovesMissing "json-patch-removes-missing"
                    "JSON patches pass over removals of missing members."
                JsonPatchClampsIndexes "json-patch-clamps-indexes"
                    "A JSON patch that adds beyond the end of a list appends."
                JsonPatchTestsCompareTexts "json-patch-tests-compare-texts"
                    "A test operation of a JSON patch compares values as texts, ignoring case."
                JsonPatchTestsBeforeTheWrite "json-patch-tests-before-the-write"
                    "The tests of a JSON patch run before the write, so the object may change in \
                     between."
            }
            merge_patches {
                MergePatchKeepsNull "merge-patch-keeps-null"
                    "A null in a merge patch is stored as null instead of removing the field."
                MergePatchAppendsLists "merge-patch-appends-lists"
                    "A merge patch appends to a list instead of replacing it."
                NullCreatesEmptyKeys "null-creates-empty-keys"
                    "A merge patch with null for an absent key of a map creates it with an empty \
                     text."
            }
            strategic_patches {
                StrategicReplacesKeyedLists "strategic-replaces-keyed-lists"
                    "A strategic merge patch replaces lists that have a merge key."
                StrategicDeleteIgnored "strategic-delete-ignored"
                    "The directive '$patch: delete' of a strategic merge patch does nothing."
                StrategicRetainKeysIgnored "strategic-retain-keys-ignored"
                    "The directive '$retainKeys' of a strategic merge patch removes nothing."
                StrategicSetDuplicates "strategic-set-duplicates"
                    "A strategic merge patch adds scalars that a merged list already contains."
                StrategicOrderIgnored "strategic-order-ignored"
                    "The directive '$setElementOrder' of a strategic merge patch does nothing."
                StrategicNullIgnored "strategic-null-ignored"
                    "A null in a strategic merge patch leaves its key unchanged."
                StrategicReplaceListIgnored "strategic-replace-list-ignored"
                    "The directive replace in a list of a strategic merge patch merges the list."
                StrategicReplaceMapIgnored "strategic-replace-map-ignored"
                    "The directive replace in a map of a strategic merge patch merges the map."
                StrategicReplacesServicePorts "strategic-replaces-service-ports"
                    "A strategic merge patch replaces the ports of a service."
                StrategicReplacesOwners "strategic-replaces-owners"
                    "A strategic merge patch replaces the owner references of an object."
                StrategicReplacesMounts "strategic-replaces-mounts"
                    "A strategic merge patch replaces the volume mounts of a container."
                StrategicPatchesOfStatusRejected "strategic-patches-of-status-rejected"
                    "A strategic merge patch of a status returns 415."
                StrategicPatchesOfStatusReplaceLists "strategic-patches-of-status-replace-lists"
                    "A strategic merge patch of a status replaces its lists."
            }
        }
    };
}

pub(crate) use rows;
