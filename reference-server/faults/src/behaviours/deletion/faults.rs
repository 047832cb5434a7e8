//! The faults of this folder, by file: variant, name on the command line, and summary of the bug.

/// Passes the rows to a macro, after the arguments of that macro.
macro_rules! rows {
    ($then:ident $($arguments:tt)*) => {
        $then! {
            $($arguments)*
            deleted_objects {
                DryRunPersists "dry-run-persists" "A dry run stores its changes."
                FinalizersIgnored "finalizers-ignored"
                    "A DELETE removes an object at once, despite its finalizers."
                DeletionNotMarked "deletion-not-marked"
                    "A DELETE of an object with finalizers returns 200 and sets no \
                     deletionTimestamp."
                UidPreconditionIgnored "uid-precondition-ignored"
                    "A DELETE ignores preconditions.uid."
                VersionPreconditionIgnored "version-precondition-ignored"
                    "A DELETE ignores preconditions.resourceVersion."
                DeleteReturnsAnEmptyObject "delete-returns-an-empty-object"
                    "A successful DELETE returns an empty object."
                DeleteMissingSucceeds "delete-missing-succeeds"
                    "A DELETE of an object that does not exist returns 200."
                SecondDeleteBumpsVersion "second-delete-bumps-version"
                    "A second DELETE of an object changes its deletionTimestamp."
                PropagationPolicyIgnored "propagation-policy-ignored"
                    "A DELETE ignores propagationPolicy."
                GracePeriodIgnored "grace-period-ignored"
                    "A DELETE of a running pod removes it at once."
                OrphanDependentsIgnored "orphan-dependents-ignored"
                    "A DELETE ignores orphanDependents."
                OrphanDependentsBesidePolicy "orphan-dependents-beside-policy"
                    "A DELETE accepts orphanDependents together with a propagationPolicy and uses \
                     the policy."
                FirstPolicyStays "first-policy-stays"
                    "The propagationPolicy of a second DELETE is ignored."
                DryRunInBodyIgnored "dry-run-in-body-ignored"
                    "A DELETE reads dryRun only from the query."
                UnknownPropagationAccepted "unknown-propagation-accepted"
                    "A DELETE with an unknown propagationPolicy is carried out."
                GraceNeverShortened "grace-never-shortened"
                    "A DELETE with a shorter grace period than the first changes nothing, unless \
                     it is 0."
                DeletionReturnsUnmarked "deletion-returns-unmarked"
                    "A DELETE of an object with finalizers returns the object as it was before."
                DeleteReturnsNothing "delete-returns-nothing"
                    "A successful DELETE returns 200 without a body."
                CollectionDryRunPersists "collection-dry-run-persists"
                    "A DELETE of a collection with dryRun deletes the objects."
                CollectionPreconditionsIgnored "collection-preconditions-ignored"
                    "A DELETE of a collection ignores its preconditions."
                UidPreconditionOfBuiltInsOnly "uid-precondition-of-built-ins-only"
                    "A DELETE of a custom resource ignores the precondition uid."
                FinalizersDroppedWhileDeleting "finalizers-dropped-while-deleting"
                    "A PUT that adds a finalizer to an object that is being deleted returns 200 \
                     and drops the finalizer."
                WritesHideTheDeletion "writes-hide-the-deletion"
                    "A PUT or PATCH of an object that is being deleted returns it without \
                     deletionTimestamp."
                SecondDeleteRestartsTheTime "second-delete-restarts-the-time"
                    "A second DELETE sets deletionTimestamp to the time of that request."
                SecondDeleteReturnsANewTime "second-delete-returns-a-new-time"
                    "A second DELETE returns the time of that request as deletionTimestamp, and \
                     stores the first time."
                CollectionPolicyIgnored "collection-policy-ignored"
                    "Deletions of collections ignore the propagation policy."
                QueriedPropagationPolicyIgnored "queried-propagation-policy-ignored"
                    "A DELETE ignores propagationPolicy in the query."
            }
            preconditions {
                UidPreconditionBesideVersionIgnored "uid-precondition-beside-version-ignored"
                    "A DELETE ignores preconditions.uid if there is a resourceVersion, too."
                VersionPreconditionBesideUidIgnored "version-precondition-beside-uid-ignored"
                    "A DELETE ignores preconditions.resourceVersion if there is a uid, too."
                PreconditionsOfPodsIgnored "preconditions-of-pods-ignored"
                    "A DELETE of a pod ignores its preconditions."
                PreconditionsOfHeldObjectsIgnored "preconditions-of-held-objects-ignored"
                    "A DELETE of an object with finalizers ignores its preconditions."
            }
            options {
                DeleteOptionsOfCoreOnly "delete-options-of-core-only"
                    "DeleteOptions of any group other than the core group are rejected."
                DeleteOptionsUnread "delete-options-unread"
                    "A DELETE ignores a body that is not DeleteOptions."
                QueriedGracePeriodIgnored "queried-grace-period-ignored"
                    "A DELETE of a pod ignores gracePeriodSeconds in the query."
                UntypedDeleteOptionsRejected "untyped-delete-options-rejected"
                    "A DELETE whose body has no kind returns 400."
                DeleteOptionsInJsonOnly "delete-options-in-json-only"
                    "A DELETE with a body in YAML, or without Content-Type, returns 415."
                ProtobufDeleteOptionsDropped "protobuf-delete-options-dropped"
                    "A DELETE ignores options in protobuf."
                ProtobufCollectionOptionsDropped "protobuf-collection-options-dropped"
                    "A DELETE of a collection ignores options in protobuf."
                DeletePreconditionsBeforeTheDeletion "delete-preconditions-before-the-deletion"
                    "A DELETE checks its preconditions first, so the object may change before it \
                     is removed."
            }
            collections {
                DeleteCollectionIgnoresSelector "delete-collection-ignores-selector"
                    "A DELETE of a collection ignores the selector and deletes all objects."
                CollectionIgnoresNegatedFields "collection-ignores-negated-fields"
                    "Deletions of collections ignore field selectors with !=."
                CollectionIgnoresExistence "collection-ignores-existence"
                    "Deletions of collections ignore KEY and !KEY in label selectors."
                CollectionIgnoresSets "collection-ignores-sets"
                    "Deletions of collections ignore in (..) in label selectors."
                CollectionStopsAtHeldObjects "collection-stops-at-held-objects"
                    "A deletion of a collection ends at the first object that a finalizer holds."
                CollectionDeletesOnePage "collection-deletes-one-page"
                    "A deletion of a collection removes 30 objects at most."
                CollectionSkipsHeldObjects "collection-skips-held-objects"
                    "A deletion of a collection ignores objects with finalizers."
                CollectionStatusCodeIsText "collection-status-code-is-text"
                    "A deletion of a collection returns a Status whose code is a text."
            }
            garbage_collection {
                GarbageStays "garbage-stays" "Dependents of a deleted object are not deleted."
                OrphansDeleted "orphans-deleted"
                    "Dependents are deleted with their owner despite the policy Orphan."
                ForegroundDoesNotWait "foreground-does-not-wait"
                    "A foreground deletion does not wait for the dependents of the object."
                OneOwnerIsAll "one-owner-is-all"
                    "An object is deleted when the first of its owners is deleted."
                BackgroundWaits "background-waits"
                    "A background deletion waits for the dependents, like a foreground deletion."
                OwnershipCyclesStay "ownership-cycles-stay"
                    "The foreground deletion of objects that own each other never ends."
                OwnersMatchByName "owners-match-by-name"
                    "An object with the name of a former owner counts as the owner."
                ClusterScopedOwnersIgnored "cluster-scoped-owners-ignored"
                    "Creates drop owner references to namespaces."
                EveryDependentBlocks "every-dependent-blocks"
                    "Every dependent blocks the deletion of its owner in the foreground."
            }
            namespaces {
                NamespaceContentStays "namespace-content-stays"
                    "A deleted namespace is removed and its content remains."
                NamespacesReturnServerError "namespaces-return-500"
                    "Every request for a namespace returns 500."
                DefaultNamespaceMissing "default-namespace-missing"
                    "The namespace default does not exist."
                WatchesMissNewNamespaces "watches-miss-new-namespaces"
                    "A watch across all namespaces sends no events of namespaces created later."
                DeleteCollectionMatchesNamespacePrefix "delete-collection-matches-namespace-prefix"
                    "A DELETE of a collection includes namespaces whose names begin with the \
                     namespace."
                ListedNamespacesAreActive "listed-namespaces-are-active"
                    "Lists of namespaces show the phase Active for each of them."
                MissingNamespacesHaveNoLists "missing-namespaces-have-no-lists"
                    "A list in a namespace that does not exist returns 404."
                TerminatingNamespacesKeepCustomResources
                    "terminating-namespaces-keep-custom-resources"
                    "The deletion of a namespace does not delete its custom resources."
            }
        }
    };
}

pub(crate) use rows;
