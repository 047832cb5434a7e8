//! The faults of this folder, by file: variant, name on the command line, and summary of the bug.

/// Passes the rows to a macro, after the arguments of that macro.
macro_rules! rows {
    ($then:ident $($arguments:tt)*) => {
        $then! {
            $($arguments)*
            ownership {
                ApplyIgnoresConflicts "apply-ignores-conflicts"
                    "Server-side apply takes fields from other managers without force."
                ApplyForceIgnored "apply-force-ignored"
                    "Server-side apply with force=true is still rejected for conflicts."
                ItemsOwnedByIndex "items-owned-by-index"
                    "Managed fields name the items of list maps by index."
                ApplyNoOpBumpsVersion "apply-no-op-bumps-version"
                    "An apply that changes nothing updates the time of its entry, so the object \
                     gets a new version."
                ApplyManagedFieldsAccepted "apply-managed-fields-accepted"
                    "An applied configuration with managedFields is accepted."
                ApplyOwnsStatus "apply-owns-status"
                    "Server-side apply to the main resource takes ownership of the ignored status."
                ApplyCreateReturnsOk "apply-create-returns-200"
                    "Server-side apply that creates an object returns 200."
                ApplyNeverCreates "apply-never-creates"
                    "Server-side apply to a name that does not exist returns 404."
                ApplyConflictWithoutCauses "apply-conflict-without-causes"
                    "A conflict of server-side apply does not name the conflicting fields."
                ApplyVersionIgnored "apply-version-ignored"
                    "The resourceVersion in an applied configuration is ignored."
                ApplyJsonOnly "apply-json-only"
                    "Server-side apply accepts only JSON and rejects YAML."
                ApplyTypeNotChecked "apply-type-not-checked"
                    "Server-side apply accepts a configuration without kind and apiVersion."
                ApplyDryRunPersists "apply-dry-run-persists"
                    "A dry run of server-side apply stores its changes."
                UpdatesNotTracked "updates-not-tracked"
                    "Creates, updates and patches do not own the fields that they change."
                ManagedFieldsNotReset "managed-fields-not-reset"
                    "An update with one empty managedFields entry keeps the old entries."
                ApplyDuplicatesUnreported "apply-duplicates-unreported"
                    "Duplicate fields in an applied configuration are neither reported nor \
                     rejected."
                ScaleNotApplied "scale-not-applied"
                    "An apply to the scale subresource is rejected with 415."
                ScaleApplyOwnsNothing "scale-apply-owns-nothing"
                    "An apply to the scale subresource records no owner and conflicts with none."
                OwnersWithoutTime "owners-without-time" "The entries of managedFields have no time."
                AppliersWithoutTime "appliers-without-time"
                    "Entries of managedFields for server-side apply have no time."
                ApplyUidOfMissingIgnored "apply-uid-of-missing-ignored"
                    "A server-side apply with the uid of a missing object creates a new object."
                ManagedFieldsNotResetByPut "managed-fields-not-reset-by-put"
                    "A PUT with one empty entry in managedFields does not remove the owners."
                ManagersUnprintable "managers-unprintable"
                    "Field managers with control characters are accepted."
                ApplyNameMismatchAccepted "apply-name-mismatch-accepted"
                    "An apply takes the name from the path if the configuration has another one."
                ApplyNamesOneConflict "apply-names-one-conflict"
                    "The Status of an apply conflict names only the first field."
                StatusApplyIsAnUpdate "status-apply-is-an-update"
                    "Managed fields of the status have the operation Update."
                ApplyNoOpShowsNewTimes "apply-no-op-shows-new-times"
                    "The response to an apply that changes nothing has new times in managedFields."
            }
            conflicts {
                CreatesOwnNothing "creates-own-nothing"
                    "An apply takes over fields that a POST has set."
                PutsOwnNothing "puts-own-nothing" "An apply takes over fields that a PUT has set."
                JsonPatchesOwnNothing "json-patches-own-nothing"
                    "An apply takes over fields that a JSON patch has set."
                DryRunAppliesNeverConflict "dry-run-applies-never-conflict"
                    "A dry run of an apply ignores conflicts."
                StatusAppliesNeverConflict "status-applies-never-conflict"
                    "An apply to the status ignores conflicts."
                EntriesOfOneManagerJoined "entries-of-one-manager-joined"
                    "What a manager has applied and what it has updated share one entry of \
                     metadata.managedFields."
                AbsentManagedFieldsResetOwners "absent-managed-fields-reset-owners"
                    "A PUT without managedFields removes all owners."
                LongManagersCut "long-managers-cut"
                    "The names of managers are cut to 64 characters."
            }
            merges {
                ApplyReplaces "apply-replaces"
                    "Server-side apply replaces the object by the applied configuration."
                ApplyForceShares "apply-force-shares"
                    "A manager keeps owning fields that another manager took by force."
                ApplyKeepsGivenUp "apply-keeps-given-up-fields"
                    "Fields that are no longer in an applied configuration stay in the object."
                ApplyRemovesShared "apply-removes-shared-fields"
                    "Fields that one applier omits are removed although another applier owns them \
                     too."
                ApplyReplacesListMaps "apply-replaces-list-maps"
                    "Server-side apply replaces list maps as a whole."
                ApplyReplacesSets "apply-replaces-sets"
                    "Server-side apply replaces sets as a whole."
                ApplyMergesAtomicLists "apply-merges-atomic-lists"
                    "Server-side apply treats every list of scalars as a set."
                ApplyDropsVersions "apply-drops-versions"
                    "Server-side apply conflicts only with managers that wrote through the same \
                     version."
                ApplyKeepsDroppedItems "apply-keeps-dropped-items"
                    "Environment variables that an applier dropped stay in the container."
            }
            configurations {
                ApplyRejectsLastLabel "apply-rejects-last-label"
                    "An apply that drops the last label, annotation or finalizer of its manager \
                     returns 400."
                ApplyNameOptional "apply-name-optional"
                    "An apply without metadata.name creates the object of the URL."
                ApplyDropsDuplicateItems "apply-drops-duplicate-items"
                    "An apply keeps the last of several list items with the same key."
            }
        }
    };
}

pub(crate) use rows;
