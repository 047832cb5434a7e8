//! The faults of this folder, by file: variant, name on the command line, and summary of the bug.

/// Passes the rows to a macro, after the arguments of that macro.
macro_rules! rows {
    ($then:ident $($arguments:tt)*) => {
        $then! {
            $($arguments)*
            events {
                WatchDeletedIsBare "watch-deleted-is-bare"
                    "DELETED events contain only the name of the object."
                BookmarkBehind "bookmark-behind"
                    "Bookmarks have a version before that of the last event."
                WatchLosesAnEvent "watch-loses-events" "A watch drops every third event."
                WatchDoublesAnEvent "watch-doubles-events" "A watch sends every third event twice."
                WatchReplaysItsVersion "watch-replays-its-version"
                    "A watch begins with the event of its start version."
                WatchSkipsFirstEvent "watch-skips-first-event"
                    "A watch omits the first event after its start version."
                ModifiedIsAdded "modified-is-added" "A watch reports changes as ADDED."
                TimeoutSecondsIgnored "timeout-seconds-ignored"
                    "timeoutSeconds of a watch is ignored."
                BookmarkWithoutVersion "bookmark-without-version"
                    "Bookmarks have no resourceVersion."
                BookmarksEndInitialEvents "bookmarks-end-initial-events"
                    "Each bookmark has the annotation that ends the initial events."
                BookmarkVersionIsANumber "bookmark-version-is-a-number"
                    "The resourceVersion of a bookmark is a number."
                InitialEventsEndEarly "initial-events-end-early"
                    "The bookmark that ends the initial events is sent before them."
                InitialEventsEndTwice "initial-events-end-twice"
                    "The bookmark that ends the initial events is sent twice."
                TableBookmarksBare "table-bookmarks-bare"
                    "A watch of Tables sends bookmarks as objects of the type."
                MetadataBookmarksBare "metadata-bookmarks-bare"
                    "Bookmarks as PartialObjectMetadata have no annotations."
                WatchLosesUnderLoad "watch-loses-under-load"
                    "A watch loses every sixteenth event, where its ring buffer wraps."
                WatchMarksAsDeleted "watch-marks-as-deleted"
                    "A watch sends DELETED when an object with a finalizer is marked for deletion."
                WatchDeletionsInARow "watch-deletions-in-a-row"
                    "A watch sends only the first of several consecutive deletions."
                WatchWithoutOwners "watch-without-owners"
                    "The objects in watch events lack owner references."
                DeletionsLoseTheirTimestamp "deletions-lose-their-timestamp"
                    "The object of a DELETED event has no deletionTimestamp."
                DeletedWithoutAnnotations "deleted-without-annotations"
                    "The objects in DELETED events lack annotations."
                InitialEventsWithoutManagedFields "initial-events-without-managed-fields"
                    "The initial events of a streaming list lack managed fields."
                SecondEventAfterBookmarkLost "second-event-after-bookmark-lost"
                    "A watch that began with a list loses the second change after its bookmark."
                BookmarkOfTheFirstEvent "bookmark-of-the-first-event"
                    "Bookmarks have the version of the first event of their watch."
                InitialEventsEndAtTheOldest "initial-events-end-at-the-oldest"
                    "The bookmark that ends the initial events has the version of the oldest \
                     object."
                InitialEventsEndUnmarked "initial-events-end-unmarked"
                    "The bookmark that ends the initial events is not marked in watches with a \
                     label selector."
                WebsocketWatchesWithoutBookmarks "websocket-watches-without-bookmarks"
                    "A watch over WebSocket sends no bookmarks."
                TimeoutOfFilteredWatchesIgnored "timeout-of-filtered-watches-ignored"
                    "Watches with a field selector ignore timeoutSeconds."
                ClusterWatchesWithoutDeletions "cluster-watches-without-deletions"
                    "Watches of custom resources across the cluster send no deletions."
                NoEndWithoutInitialEvents "no-end-without-initial-events"
                    "A watch that begins with an empty list does not mark its end."
            }
            starts {
                WatchWithoutInitialEvents "watch-without-initial-events"
                    "A watch without a version does not begin with the existing objects."
                WatchIgnoresSelector "watch-ignores-selector"
                    "A watch sends events of objects that do not match its selectors."
                WatchHeadersLate "watch-headers-late"
                    "A watch sends the head of its response together with its first event."
                WatchIgnoresNamespace "watch-ignores-namespace"
                    "A watch of one namespace sends the events of all namespaces."
                ExpiredWatchContinues "expired-watch-continues"
                    "A watch from an expired version continues with current events and does not \
                     report the gap."
                WatchFromZeroIsFromNow "watch-from-zero-is-from-now"
                    "A watch from version 0 does not begin with the existing objects."
                WatchIgnoresForm "watch-ignores-form"
                    "A watch sends whole objects, whatever representation the client requested."
                InitialEventsUnchecked "initial-events-unchecked"
                    "A watch accepts sendInitialEvents and resourceVersionMatch in every \
                     combination."
                InitialEventsAlways "initial-events-always"
                    "A watch with sendInitialEvents=false begins with the existing objects."
                ExpiredWatchEndsInSilence "expired-watch-ends-in-silence"
                    "A watch from an expired version ends without an event."
                WatchIgnoresFields "watch-ignores-fields"
                    "A watch with field and label selectors ignores the field selector."
                InitialEventsIgnoreFields "initial-events-ignore-fields"
                    "A watch with sendInitialEvents ignores its field selector."
                UnversionedWatchesIgnoreFields "unversioned-watches-ignore-fields"
                    "A watch without a version ignores its field selector."
                WatchesNeedNegatedKeys "watches-need-negated-keys"
                    "A watch with a negated requirement drops objects without the label."
                RejectedWatchIsUpgraded "rejected-watch-is-upgraded"
                    "A watch over WebSocket with a malformed selector is upgraded and sends the \
                     error as an event."
                WatchMatchesNamespacePrefix "watch-matches-namespace-prefix"
                    "The watch of a namespace sends events of all namespaces whose names begin \
                     like it."
                WatchesApplyOneSelector "watches-apply-one-selector"
                    "A watch with both selectors ignores the field selector."
                WatchesIgnoreNegatedFields "watches-ignore-negated-fields"
                    "A watch ignores field selectors with !=."
                SelectableFieldsOfListsOnly "selectable-fields-of-lists-only"
                    "A watch ignores selectors on the selectable fields of custom resources."
                WatchIgnoresTheNode "watch-ignores-the-node"
                    "Watches ignore field selectors on spec.nodeName."
                FutureWatchFails "future-watch-fails"
                    "A watch from a version that does not exist yet returns 500."
            }
            histories {
                SelectorEntryIsModified "selector-entry-is-modified"
                    "A watch sends MODIFIED when a change makes an object match its selector."
                SelectorExitIsSilent "selector-exit-is-silent"
                    "A watch sends no event when a change makes an object leave its selection."
                WatchCoalesces "watch-coalesces"
                    "A watch that is behind sends only the newest state of each object."
                WatchLinesCut "watch-lines-cut" "Events of more than 64 KiB are truncated."
                DeletedKeepsVersion "deleted-keeps-version"
                    "DELETED events have the version of the last write instead of that of the \
                     deletion."
                WatchStatusBehind "watch-status-behind"
                    "A watch event for a new status contains the previous status."
            }
            selections {
                SelectorExitShowsTheNewObject "selector-exit-shows-the-new-object"
                    "An object that leaves a selection is sent as it is after the change."
                SelectorExitKeepsVersion "selector-exit-keeps-version"
                    "An object that leaves a selection is sent with its version before the change."
                AllNamespacesWithoutMetadataChanges "all-namespaces-without-metadata-changes"
                    "A watch of all namespaces sends no event for changes that keep the generation."
                WatchAcceptsUnknownFields "watch-accepts-unknown-fields"
                    "A watch ignores a field selector that its list rejects."
                WatchOfANameInAllNamespaces "watch-of-a-name-in-all-namespaces"
                    "A watch of one name in a namespace receives events of this name in all \
                     namespaces."
                DeletionsIgnoreForm "deletions-ignore-form"
                    "DELETED events have the kind of the resource in watches of \
                     PartialObjectMetadata and of Tables."
            }
            flashes {
                InvalidObjectsFlash "invalid-objects-flash"
                    "A new custom resource is stored before its validation and removed when that \
                     fails."
            }
        }
    };
}

pub(crate) use rows;
