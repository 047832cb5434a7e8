//! The deliberate bugs of this server: what a conformance suite must be able to find.
//!
//! Every fault is one row of the table below and one `if` beside the rule that it bends, so the correct path reads as if it
//! were not there. A set of them is a few machine words that are copied about: a fault that is off costs a bit test.

use std::fmt;

/// Names the bits that a [`Faults`] set has room for.
const WORDS: usize = 8;

macro_rules! faults {
    ($($variant:ident $name:literal $summary:literal)*) => {
        /// A deliberate bug.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[expect(clippy::doc_markdown, reason = "the same sentences are printed for people")]
        pub enum Fault {
            $(#[doc = $summary] $variant,)*
        }

        const TABLE: &[(Fault, &str, &str)] = &[$((Fault::$variant, $name, $summary),)*];
    };
}

faults! {
    CreateOverwrites "create-overwrites" "POST of a name that is taken replaces the object and answers 201."
    ConflictAsCreated "already-exists-as-conflict-reason" "POST of a name that is taken answers 409 with reason Conflict instead of AlreadyExists."
    AlreadyExistsAsBadRequest "already-exists-as-bad-request" "POST of a name that is taken answers 400."
    CreateAnswersOk "create-answers-200" "A successful POST answers 200 instead of 201."
    CreateWithVersionAccepted "create-with-version-accepted" "POST of an object that names a resourceVersion is accepted."
    NamespaceMismatchAccepted "namespace-mismatch-accepted" "The namespace in the body may differ from the one in the URL, which wins."
    MissingNamespaceAccepted "missing-namespace-accepted" "Objects can be created in a namespace that does not exist."
    TerminatingNamespaceAccepts "terminating-namespace-accepts" "Objects can be created in a namespace that is being deleted."
    NamespaceContentStays "namespace-content-stays" "A deleted namespace goes and leaves its content behind."
    GeneratedNamesCollide "generated-names-collide" "Names from generateName end in one random letter, and a name that is taken is overwritten."
    GeneratedNamesRunOut "generated-names-run-out" "Names from generateName end in one random letter, and one that is taken is answered 500."
    CreateAnswersRequest "create-answers-request" "POST answers the object as it was sent, before defaults."
    MicroTimesCut "micro-times-cut" "Times with microseconds are cut to whole seconds."
    NamesTakenEverywhere "names-taken-everywhere" "A name that is taken in one namespace is taken in all."
    TerminatingNamespaceIsActive "terminating-namespace-is-active" "A namespace that is being deleted keeps the phase Active."
    NamesMadeUp "names-made-up" "POST without a name and without generateName makes up a name."
    GenerateNameWins "generate-name-wins" "generateName is used although there is a name."
    GenerateNameIgnoresPrefix "generate-name-ignores-prefix" "A generated name is random from its first letter on."
    DryRunUnchecked "dry-run-unchecked" "A dry run of a create does not look whether the name is taken."
    DryRunValuesUnchecked "dry-run-values-unchecked" "A create with a dryRun of an unknown value is carried out."
    KindNotChecked "kind-not-checked" "The kind in a body is overwritten without a look at it."
    ApiVersionNotChecked "api-version-not-checked" "The apiVersion in a body is overwritten without a look at it."
    PathNamesAccepted "path-names-accepted" "Names such as '..' and 'a/b' are accepted."
    NamesUpTo63 "names-up-to-63" "No name may be longer than 63 characters, whatever its kind."
    NullsKept "nulls-kept" "Null in a typed object is stored as null."
    EmptyLabelsDropped "empty-labels-dropped" "Labels with an empty value are dropped."
    LabelsStringified "labels-stringified" "Numbers as values of labels and annotations are turned into text."
    AnnotationsTrimmed "annotations-trimmed" "White space around the value of an annotation is removed."
    UidFromClient "uid-from-client" "uid and creationTimestamp in the body of a POST are kept."
    UidFromClock "uid-from-clock" "The uid is made from the time in seconds, so objects of one second share it."
    UidMadeAnew "uid-made-anew" "Every update gives the object a new uid."
    CreationTimeLocal "creation-time-local" "creationTimestamp is written as '2026-01-01 00:00:00'."
    AnswersWithoutKind "answers-without-kind" "Objects are answered without kind and apiVersion."
    NamespaceNotStated "namespace-not-stated" "Objects are answered without metadata.namespace."
    ClusterScopedInDefault "cluster-scoped-in-default" "Cluster-scoped objects are answered with the namespace default."
    GenerationStartsAtZero "generation-starts-at-zero" "metadata.generation of a new object is 0."
    GenerationNotBumped "generation-not-bumped" "A change of the spec keeps metadata.generation."
    GenerationAlwaysBumped "generation-always-bumped" "Every change, of labels too, counts as a new generation."
    StatusBumpsGeneration "status-bumps-generation" "A change of the status counts as a new generation."
    PutCreates "put-creates" "PUT of a name that does not exist creates the object."
    PutOfNothingSucceeds "put-of-nothing-succeeds" "PUT of a name that does not exist answers 200 and stores nothing."
    UpdateWritesStatus "update-writes-status" "PUT and PATCH of the main resource also write the status."
    StatusWritesSpec "status-writes-spec" "PUT and PATCH of the status also write the spec."
    StaleWriteAccepted "stale-write-accepted" "PUT with an old resourceVersion is accepted."
    UnreadableVersionAccepted "unreadable-version-accepted" "PUT with a resourceVersion that is no number counts as one without."
    FutureWriteAccepted "future-write-accepted" "PUT with a resourceVersion above the current one is accepted, as versions are compared by order."
    LostUpdate "lost-update" "The version is checked before the lock is taken, so of two writers at once one is lost."
    NoOpBumpsVersion "no-op-bumps-version" "A write that changes nothing still gets a new resourceVersion and an event."
    DryRunPersists "dry-run-persists" "A dry run is carried out."
    FinalizersIgnored "finalizers-ignored" "DELETE removes an object at once, whatever its finalizers."
    DeletionNotMarked "deletion-not-marked" "DELETE of an object with finalizers answers 200 and leaves it without a deletionTimestamp."
    FinalizersAddedWhileDeleting "finalizers-added-while-deleting" "Finalizers can be added to an object that is being deleted."
    DeletionTimestampMayChange "deletion-timestamp-may-change" "A client can set metadata.deletionTimestamp."
    UidPreconditionIgnored "uid-precondition-ignored" "DELETE ignores preconditions.uid."
    VersionPreconditionIgnored "version-precondition-ignored" "DELETE ignores preconditions.resourceVersion."
    DeleteAnswersEmpty "delete-answers-empty" "A successful DELETE answers an empty object."
    DeleteCollectionIgnoresSelector "delete-collection-ignores-selector" "DELETE of a collection deletes everything, whatever the selector."
    ScaleNotWritten "scale-not-written" "PUT and PATCH of the scale are accepted and change nothing."
    MissingObjectAsServerError "missing-object-as-500" "GET of an object that does not exist answers 500."
    DeleteMissingSucceeds "delete-missing-succeeds" "DELETE of an object that does not exist answers 200."
    DeletionCanBeUndone "deletion-can-be-undone" "A write that leaves metadata.deletionTimestamp out takes an object back from its deletion."
    SecondDeleteBumpsVersion "second-delete-bumps-version" "DELETE of an object that is being deleted already moves its deletionTimestamp."
    PropagationPolicyIgnored "propagation-policy-ignored" "DELETE ignores propagationPolicy."
    GracePeriodIgnored "grace-period-ignored" "DELETE of a running pod removes it at once."
    PutMerges "put-merges" "PUT keeps the fields that its body leaves out."
    NameMismatchAccepted "name-mismatch-accepted" "PUT and PATCH accept a body with another name than the URL, and ignore it."
    ConflictAsBadRequest "conflict-as-bad-request" "A stale write is answered 400."
    ListIgnoresNamespace "list-ignores-namespace" "The list of one namespace shows the objects of all."
    WatchDeletedIsBare "watch-deleted-is-bare" "DELETED events carry the name of the object only."
    BookmarkBehind "bookmark-behind" "Bookmarks name a version before that of the last event."
    UnsupportedMediaTypeAsBadRequest "unsupported-media-type-as-400" "A body of a media type that is not served is answered 400."
    MalformedBodyAsServerError "malformed-body-as-500" "A body that is no JSON is answered 500."
    DetailsNameMissing "details-without-name" "details of a failure do not name the object."
    FutureVersionAccepted "future-version-accepted" "GET at a resourceVersion that does not exist yet answers the object of now."
    GetByPrefix "get-by-prefix" "GET answers the first object whose name begins with the one asked for."
    GetAtExactVersion "get-at-exact-version" "GET with a resourceVersion answers 404 unless it is that of the object."
    NamesTrimmed "names-trimmed" "White space around a name in a path is ignored."
    MissingObjectIsNull "missing-object-is-null" "GET of an object that does not exist answers 200 with null."
    LimitOffByOne "limit-off-by-one" "A page has one object more than its limit."
    ContinueReadsLatest "continue-reads-latest" "Later pages of a list show the newest version instead of that of the first page."
    ContinueSkipsAnObject "continue-skips-objects" "A continue token leads behind the next names that begin like the last one."
    RemainingCountWithSelector "remaining-count-with-selector" "remainingItemCount is given although a selector is at work."
    ContinueStartsOver "continue-starts-over" "A continue token that cannot be read starts the list over."
    ListLags "list-lags" "A list misses the last write."
    ListKindIsList "list-kind-is-list" "The kind of every list is List."
    EmptyListIsNull "empty-list-is-null" "The items of an empty list are null."
    ListLooksLikeObject "list-looks-like-object" "The metadata of a list has a uid and a creationTimestamp, as that of an object."
    ItemsCarryListVersion "items-carry-list-version" "The items of a list carry the resourceVersion of the list."
    ItemsCarryListKind "items-carry-list-kind" "The items of a list carry the kind of the list."
    ItemsAbridged "items-abridged" "The items of a list have no uid."
    AllNamespacesIsDefault "all-namespaces-is-default" "The list over all namespaces shows the namespace default only."
    MalformedSelectorSelectsAll "malformed-selector-selects-all" "A labelSelector that cannot be parsed selects everything."
    ListWithoutVersion "list-without-version" "Lists have no metadata.resourceVersion."
    LabelSelectorIgnored "label-selector-ignored" "labelSelector selects everything."
    FieldSelectorIgnored "field-selector-ignored" "fieldSelector selects everything."
    UnknownFieldSelectorMatchesAll "unknown-field-selector-accepted" "A field selector on a field that cannot be selected by is accepted."
    WatchLosesAnEvent "watch-loses-events" "A watch drops every third event."
    WatchDoublesAnEvent "watch-doubles-events" "A watch sends every third event twice."
    WatchReplaysItsVersion "watch-replays-its-version" "A watch begins with the event of the version that it was started from."
    WatchSkipsFirstEvent "watch-skips-first-event" "A watch misses the first event after the version that it was started from."
    WatchWithoutInitialEvents "watch-without-initial-events" "A watch without a version does not begin with the objects that are there."
    WatchIgnoresSelector "watch-ignores-selector" "A watch sends the events of objects that its selectors leave out."
    WatchIgnoresNamespace "watch-ignores-namespace" "A watch of one namespace sends the events of all."
    ModifiedIsAdded "modified-is-added" "A watch reports changes as ADDED."
    SelectorEntryIsModified "selector-entry-is-modified" "An object that a change brings into a watch's selection is reported as MODIFIED."
    SelectorExitIsSilent "selector-exit-is-silent" "A watch says nothing when a change takes an object out of its selection."
    ExpiredWatchContinues "expired-watch-continues" "A watch from an expired version goes on from now, without telling what it missed."
    TimeoutSecondsIgnored "timeout-seconds-ignored" "timeoutSeconds of a watch is ignored."
    BookmarkWithoutVersion "bookmark-without-version" "Bookmarks carry no resourceVersion."
    UnknownTokenIsAnonymous "unknown-token-is-anonymous" "An unknown token counts as none, so it is answered 403 instead of 401."
    PublicPathsNeedNoValidToken "public-paths-need-no-valid-token" "Discovery is answered whatever token comes with the request."
    OddCredentialsAsServerError "odd-credentials-as-500" "An Authorization header of another scheme than Bearer is answered 500."
    AuthorizationAfterLookup "authorization-after-lookup" "Resources that are not served are answered 404 before rights are looked at."
    AuthorizationAfterDecoding "authorization-after-decoding" "The media type of a body is looked at before rights are."
    DetailsGroupMissing "details-without-group" "details of a failure do not name the group."
    ImpersonationIgnored "impersonation-ignored" "Impersonate-User is ignored: requests are done with the rights of who sent them."
    ImpersonationUnchecked "impersonation-unchecked" "Everybody may act as everybody else."
    ImpersonationKeepsGroups "impersonation-keeps-groups" "Who acts as another user keeps the own groups beside those of the other."
    ImpersonationWithoutUser "impersonation-without-user" "Impersonate-Group without Impersonate-User is ignored."
    ImpersonationOfNamesOnly "impersonation-of-names-only" "Impersonate-Group, Impersonate-Uid and Impersonate-Extra are ignored."
    ImpersonationExtraEncoded "impersonation-extra-encoded" "The keys of Impersonate-Extra are not percent-decoded."
    ImpersonatedIsNotAuthenticated "impersonated-is-not-authenticated" "A user that somebody acts as is not in the group of the authenticated."
    ServiceAccountGroupsMissing "service-account-groups-missing" "Who acts as a service account is not in the groups of service accounts."
    SelfReviewOfAdmin "self-review-of-the-administrator" "A SelfSubjectReview tells of the administrator, whoever asks."
    AccessReviewUnchecked "access-review-unchecked" "A review of access that asks nothing, or names no user, is answered."
    AccessReviewOfTheAsker "access-review-of-the-asker" "A SubjectAccessReview answers for who asks."
    LocalReviewOfAnyNamespace "local-review-of-any-namespace" "A LocalSubjectAccessReview answers for other namespaces."
    RulesReviewOfAdmin "rules-review-of-the-administrator" "A SelfSubjectRulesReview lists the rules of the administrator, whoever asks."
    RulesReviewNeedsNoNamespace "rules-review-needs-no-namespace" "A SelfSubjectRulesReview without a namespace is answered."
    TokenReviewKnowsEverybody "token-review-knows-everybody" "A TokenReview of an unknown token says that it is the user's."
    EverybodyMayEverything "everybody-may-everything" "Every authenticated user may do everything."
    ForbiddenAsNotFound "forbidden-as-not-found" "What a user may not see is answered 404."
    MethodNotAllowedAsNotFound "method-not-allowed-as-not-found" "A method that a path does not have is answered 404 instead of 405."
    AcceptIgnored "accept-ignored" "An Accept header that cannot be met is ignored."
    YamlByDefault "yaml-by-default" "A request without an Accept header is answered in YAML."
    CharsetRefused "charset-refused" "A content type with a charset is refused."
    UnknownAsBadRequest "unknown-as-bad-request" "Paths of groups, versions and resources that are not served are answered 400."
    DefaultNamespaceMissing "default-namespace-missing" "There is no namespace called default."
    ContentTypeIgnored "content-type-ignored" "Bodies of any media type are read as JSON."
    BodyLimitMissing "body-limit-missing" "Bodies of any size are accepted."
    StrictValidationIgnored "strict-validation-ignored" "fieldValidation=Strict accepts unknown fields."
    WarningsMissing "warnings-missing" "Unknown fields are dropped without a warning."
    MergePatchAsStrategic "merge-patch-as-strategic" "A merge patch is applied as a strategic merge patch."
    StrategicPatchAsMerge "strategic-patch-as-merge" "A strategic merge patch is applied as a merge patch."
    StatusWithoutReason "status-without-reason" "Failures have no reason."
    StatusWithoutDetails "status-without-details" "Failures have no details."
    StatusWithoutKind "status-without-kind" "Failures are no objects: kind and apiVersion are missing."
    StatusCodeMismatch "status-code-always-500" "The code inside a Status is 500, whatever the code of the answer."
    UidReused "uid-reused" "The uid is made from namespace and name, so a new object of an old name has the old uid."
    JsonPatchNotAtomic "json-patch-not-atomic" "A JSON patch stops at an operation that fails, and what the ones before it did is stored."
    JsonPatchTestIgnored "json-patch-test-ignored" "The test operations of a JSON patch always succeed."
    JsonPatchDashPrepends "json-patch-dash-prepends" "A JSON patch that adds at the index '-' inserts at the start of the list."
    MergePatchKeepsNull "merge-patch-keeps-null" "A null in a merge patch is stored as null instead of removing the field."
    MergePatchAppendsLists "merge-patch-appends-lists" "A merge patch appends to a list instead of replacing it."
    StrategicReplacesKeyedLists "strategic-replaces-keyed-lists" "A strategic merge patch replaces lists that have a merge key."
    StrategicDeleteIgnored "strategic-delete-ignored" "The directive '$patch: delete' of a strategic merge patch does nothing."
    StrategicRetainKeysIgnored "strategic-retain-keys-ignored" "The directive '$retainKeys' of a strategic merge patch removes nothing."
    StrategicSetDuplicates "strategic-set-duplicates" "A strategic merge patch adds scalars that a merged list has already."
    StrategicOrderIgnored "strategic-order-ignored" "The directive '$setElementOrder' of a strategic merge patch does nothing."
    ApplyReplaces "apply-replaces" "Server-side apply replaces the object by the applied configuration."
    ApplyIgnoresConflicts "apply-ignores-conflicts" "Server-side apply takes fields from other managers without force."
    ApplyForceIgnored "apply-force-ignored" "Server-side apply with force=true is refused for conflicts all the same."
    ApplyForceShares "apply-force-shares" "A manager whose fields were taken by force goes on owning them."
    ApplyKeepsGivenUp "apply-keeps-given-up-fields" "Fields that an applied configuration no longer has stay in the object."
    ApplyRemovesShared "apply-removes-shared-fields" "Fields that one applier gives up are removed although another owns them too."
    ApplyNeedsNoManager "apply-needs-no-manager" "Server-side apply without a fieldManager is accepted."
    ApplyReplacesListMaps "apply-replaces-list-maps" "Server-side apply replaces list maps as a whole."
    ApplyReplacesSets "apply-replaces-sets" "Server-side apply replaces sets as a whole."
    ApplyNoOpBumpsVersion "apply-no-op-bumps-version" "An apply that changes nothing gives its entry a new time, and so the object a new version."
    ApplyManagedFieldsAccepted "apply-managed-fields-accepted" "An applied configuration with managedFields is accepted."
    ApplyOwnsStatus "apply-owns-status" "Server-side apply to the main resource takes ownership of the status that it ignores."
    ApplyCreateAnswersOk "apply-create-answers-200" "Server-side apply that creates an object answers 200."
    ApplyNeverCreates "apply-never-creates" "Server-side apply to a name that does not exist answers 404."
    ApplyConflictWithoutCauses "apply-conflict-without-causes" "A conflict of server-side apply does not say which fields are in conflict."
    ApplyVersionIgnored "apply-version-ignored" "The resourceVersion in an applied configuration is ignored."
    ApplyJsonOnly "apply-json-only" "Server-side apply reads JSON only and refuses YAML."
    ApplyTypeNotChecked "apply-type-not-checked" "Server-side apply accepts a configuration without kind and apiVersion."
    ApplyDryRunPersists "apply-dry-run-persists" "A dry run of server-side apply is carried out."
    UpdatesNotTracked "updates-not-tracked" "Creates, updates and patches do not become owners of what they change."
    ManagedFieldsNotReset "managed-fields-not-reset" "An update whose managedFields are one empty entry keeps the old ones."
    SelectorInMatchesPrefix "selector-in-matches-prefix" "The label selector 'key in (a)' also selects values that only start with a."
    SelectorNotEqualsNeedsKey "selector-not-equals-needs-key" "The label selector 'key!=a' leaves out objects without the key."
    SelectorNotInNeedsKey "selector-notin-needs-key" "The label selector 'key notin (a)' leaves out objects without the key."
    SelectorExistsIgnored "selector-exists-ignored" "The label selectors 'key' and '!key' select everything."
    FieldSelectorNotEqualIgnored "field-selector-not-equal-ignored" "A field selector's '!=' selects everything."
    DiscoveryListsMissingVerb "discovery-lists-missing-verb" "Discovery lists the verb deletecollection for resources that do not have it."
    DiscoveryWithoutKind "discovery-without-kind" "Discovery documents have no kind."
    DiscoveryGroupWithoutVersions "discovery-group-without-versions" "The document of a group lists no versions."
    DiscoverySubresourcesUnscoped "discovery-subresources-unscoped" "Discovery calls every subresource cluster-scoped."
    DiscoveryScaleHasParentKind "discovery-scale-has-parent-kind" "Discovery gives scale subresources the kind and group of their parent."
    DiscoverySingularIsPlural "discovery-singular-is-plural" "Discovery repeats the plural as the singular name."
    DiscoveryListsUnserved "discovery-lists-unserved" "Discovery lists a resource that is not served."
    DiscoveryListsStatuses "discovery-lists-statuses" "Discovery lists a resource of kind Status."
    DiscoveryOddGroup "discovery-odd-group" "Discovery lists a group and a version in upper case."
    DiscoveryHidesList "discovery-hides-list" "Discovery leaves out the verb list for secrets."
    DiscoveryWithoutShortNames "discovery-without-short-names" "Discovery has no short names and no categories."
    AggregatedHidesResources "aggregated-hides-resources" "Aggregated discovery leaves out the last of the resources of a version."
    DiscoveryAllNamespaced "discovery-all-namespaced" "Discovery calls every resource namespaced."
    DiscoveryHidesSubresources "discovery-hides-subresources" "Discovery leaves out subresources."
    DiscoveryPrefersUnknownVersion "discovery-prefers-unknown-version" "The preferred version of a group is not one of its versions."
    DiscoveryListsUnservedVersion "discovery-lists-unserved-version" "Discovery lists a version of the group apps that is not served."
    ListedVerbUnserved "listed-verb-unserved" "PATCH of a lease is answered 405, although discovery lists it."
    UnlistedVerbServed "unlisted-verb-served" "DELETE of the collection of namespaces is carried out, although discovery does not list it."
    ClusterResourceInNamespaces "cluster-resource-in-namespaces" "Resources of the cluster are served inside of namespaces too."
    AggregatedVersionsReversed "aggregated-versions-reversed" "Aggregated discovery lists the versions of a group in reverse, the preferred one last."
    OpenApiPromisesOperations "openapi-promises-operations" "OpenAPI v3 describes a PUT of collections."
    OpenApiV2FallsBehind "openapi-v2-falls-behind" "OpenAPI v2 describes no PATCH."
    OpenApiIndexIncomplete "openapi-index-incomplete" "The index of OpenAPI v3 leaves out the group apps."
    TableRowsWithoutObject "table-rows-without-object" "The rows of a table have no object, whatever includeObject says."
    TableCellsMissing "table-cells-missing" "The rows of a table leave out empty cells, so that later ones slip under the wrong column."
    TableAlwaysFullObject "table-always-full-object" "The rows of a table carry the full object, whatever includeObject says."
    OpenApiWithoutKinds "openapi-without-kinds" "The schemas of OpenAPI documents do not say which group, version and kind they are of."
    DefaultsNotApplied "defaults-not-applied" "Defaults of the schema are published but never filled in."
    DefaultsSkipListItems "defaults-skip-list-items" "Defaults are filled in at the top but not in the items of lists."
    DefaultsOverrideValues "defaults-override-values" "Defaults replace values that the client gave."
    UnknownFieldsKept "unknown-fields-kept" "Fields that the schema does not know are stored."
    PruningTopLevelOnly "pruning-top-level-only" "Unknown fields are dropped at the top of an object only."
    NullableIgnored "nullable-ignored" "Null in a nullable field is treated as if the field were absent."
    RequiredNotEnforced "required-not-enforced" "Objects without a required field are accepted."
    MaximumOffByOne "maximum-off-by-one" "A number one above its maximum is accepted."
    EnumIgnored "enum-ignored" "A value outside the enumeration of its field is accepted."
    FormatIgnored "format-ignored" "The format of a string is not checked."
    PatternIgnored "pattern-ignored" "The pattern of a string is not checked."
    WrongTypesAccepted "wrong-types-accepted" "A value of the wrong JSON type in a custom resource is accepted."
    DuplicatesAccepted "duplicate-items-accepted" "A set or list map may have the same item twice."
    OneBasedIndexes "one-based-indexes" "Field paths of validation errors count list items from one."
    FieldPathLeafOnly "field-path-leaf-only" "Field paths of validation errors are the last name only."
    FirstErrorOnly "first-error-only" "Only the first of several validation errors is reported."
    LabelsNotValidated "labels-not-validated" "Label keys and values of any form are accepted."
    OwnersNotValidated "owners-not-validated" "Owner references without a name, kind or uid are accepted."
    FinalizersNotValidated "finalizers-not-validated" "Finalizers of any form are accepted."
    UppercaseNames "uppercase-names" "Names with upper case letters are accepted."
    LabelNamesMayHaveDots "label-names-may-have-dots" "Names that must be DNS labels, such as those of namespaces, may contain dots."
    ImmutableMayChange "immutable-may-change" "Data of an immutable ConfigMap or Secret can be changed."
    NonStructuralAccepted "non-structural-schemas-accepted" "A CRD whose schema is not structural is accepted."
    SelectorMismatchAccepted "selector-mismatch-accepted" "A workload whose selector does not match its template is accepted."
    UidWithoutDashes "uid-without-dashes" "The uid is 32 hexadecimal digits in a row."
    BoundTwice "bound-twice" "A pod that is bound to a node can be bound to another."
    BindingChangesNothing "binding-changes-nothing" "A binding is accepted and changes nothing."
    DeleteOptionsOfCoreOnly "delete-options-of-core-only" "DeleteOptions of any group but the core group are refused."
    ConditionStatusIsBoolean "condition-status-is-boolean" "A condition of every CRD has the boolean true for its status."
    ConditionTypesLowerCase "condition-types-lower-case" "A condition of every CRD has a type in lower case."
    TransitionTimeMoves "transition-time-moves" "lastTransitionTime of the conditions of a CRD moves with every update."
    PodNeedsNode "pod-needs-node" "A pod that names no node is refused."
    UnionMembersMixed "union-members-mixed" "A volume may have several sources."
    MessagesSayShould "messages-say-should" "Messages of validation errors say should instead of must."
    MessagesSayCannot "messages-say-cannot" "Messages of validation errors say cannot instead of may not."
    MessagesUseSymbols "messages-use-symbols" "Messages of validation errors write bounds with >= and <=."
    AccessReviewAllowsAll "access-review-allows-all" "Reviews of access say yes to everybody."
    ClusterIpUnchecked "cluster-ip-unchecked" "A clusterIP that is taken or outside the range is accepted as it stands."
    ClusterIpKept "cluster-ip-kept" "A service that becomes an ExternalName keeps its clusterIP."
    ClusterIpLeaks "cluster-ip-leaks" "The clusterIP of a service that becomes an ExternalName stays taken."
    DerivedDefaultsMissing "derived-defaults-missing" "Defaults that follow from other fields are not filled in."
    DefaultsOfOneVersion "defaults-of-one-version" "Every version of a custom resource has the schema of the first."
    ConversionDropsAnnotations "conversion-drops-annotations" "Objects served in another version than the stored one have no annotations."
    OldObjectsNotDefaulted "old-objects-not-defaulted" "Defaults that a CRD got later are not shown in older objects."
    EmptyListsDropped "empty-lists-dropped" "Empty lists in a new custom resource are dropped."
    ZeroesOmitted "zeroes-omitted" "Empty strings in a new custom resource are dropped, required or not."
    LargeIntegersRounded "large-integers-rounded" "Integers in a new custom resource pass through a double."
    StatusKeptOnCreate "status-kept-on-create" "The status in the body of a POST is stored."
    YamlQuotesIgnored "yaml-quotes-ignored" "Quoted numbers and booleans in YAML bodies are read as numbers and booleans."
    ExactVersionIgnored "exact-version-ignored" "A list with resourceVersionMatch=Exact shows the newest version."
    VersionMatchUnchecked "version-match-unchecked" "A resourceVersionMatch that is unknown, or has no resourceVersion to match, is accepted."
    ExpiredListShowsLatest "expired-list-shows-latest" "A list of a version that is forgotten shows the newest one."
    ExpiredContinueIsFinal "expired-continue-is-final" "An expired continue token is refused without one to go on with."
    WatchFromZeroIsFromNow "watch-from-zero-is-from-now" "A watch from version 0 does not begin with the objects that are there."
    InitialEventsEndEarly "initial-events-end-early" "The bookmark that ends the initial events comes before them."
    WatchIgnoresForm "watch-ignores-form" "A watch sends whole objects, whatever form was asked for."
    WatchInStoredVersion "watch-in-stored-version" "A watch sends objects in the version that they were written in."
    PartialMetadataIsWhole "partial-metadata-is-whole" "PartialObjectMetadata has the fields of the whole object."
    AcceptQualityIgnored "accept-quality-ignored" "Of the entries of an Accept header the first one counts, whatever their quality."
    AcceptParametersInOrder "accept-parameters-in-order" "The parameters of a form are not understood when v stands before the others."
    FieldSelectorMetadataOnly "field-selector-metadata-only" "A field selector on a field outside metadata selects everything."
    UnknownFieldsAtTopOnly "unknown-fields-at-top-only" "Unknown fields are told of at the top of an object only."
    PatchOfUnknownTypeIgnored "patch-of-unknown-type-ignored" "PATCH of an unknown media type answers 200 and changes nothing."
    PatchResultUnchecked "patch-result-unchecked" "What a patch makes of an object is stored without a look at the types of its fields."
    GzipUnasked "gzip-unasked" "Long answers are compressed, whatever Accept-Encoding says."
    EvictionIgnoresBudgets "eviction-ignores-budgets" "An eviction is carried out whatever the disruption budget says."
    EvictionForbidden "eviction-forbidden" "An eviction that a budget does not allow is answered 403."
    EvictionOfAnyName "eviction-of-any-name" "An eviction may name another pod than the URL."
    EvictionEvictsNothing "eviction-evicts-nothing" "An eviction is accepted and changes nothing."
    RetryAfterInBodyOnly "retry-after-in-body-only" "retryAfterSeconds of a Status comes without a Retry-After header."
    OrphanDependentsIgnored "orphan-dependents-ignored" "DELETE ignores orphanDependents."
    OrphanDependentsBesidePolicy "orphan-dependents-beside-policy" "DELETE takes orphanDependents beside a propagationPolicy, which wins."
    FirstPolicyStays "first-policy-stays" "The propagationPolicy of a second DELETE is ignored."
    DeleteOptionsUnread "delete-options-unread" "A body of DELETE that is no DeleteOptions is passed over."
    DryRunInBodyIgnored "dry-run-in-body-ignored" "DELETE reads dryRun in the query only."
    NotAcceptableAfterWrite "not-acceptable-after-write" "POST looks at the Accept header when the object is stored."
    MethodOverrideHonoured "method-override-honoured" "X-HTTP-Method-Override replaces the method of a request."
    PrettyIsText "pretty-is-text" "Indented answers are of the media type text/plain."
    GzipUndeclared "gzip-undeclared" "Compressed answers come without Content-Encoding."
    GzipQualityIgnored "gzip-quality-ignored" "gzip is sent to clients that give it the quality 0."
    AcceptParametersRefused "accept-parameters-refused" "An entry of an Accept header with a charset is passed over."
    UnknownPropagationAccepted "unknown-propagation-accepted" "DELETE with an unknown propagationPolicy is carried out."
    CoreVersionsMissing "core-versions-missing" "/api lists no versions."
    ContinueWithVersionAccepted "continue-with-version-accepted" "A continue token together with a resourceVersion is accepted."
    ContinueCarriesItsNamespace "continue-carries-its-namespace" "A continue token leads on in the namespace that it came from, whatever namespace is asked for."
    ContinueForgetsNamespace "continue-forgets-namespace" "The continue tokens of a list over all namespaces hold a name only."
    RemainingCountWithPage "remaining-count-with-page" "remainingItemCount counts the objects of the page, too."
    LimitZeroIsEmpty "limit-zero-is-empty" "A list with limit=0 is empty."
    MalformedVersionIgnored "malformed-version-ignored" "A resourceVersion that cannot be read is ignored."
    InitialEventsUnchecked "initial-events-unchecked" "A watch accepts sendInitialEvents and resourceVersionMatch in every combination."
    InitialEventsAlways "initial-events-always" "A watch with sendInitialEvents=false begins with the objects that are there."
    InitialEventsEndTwice "initial-events-end-twice" "The bookmark that ends the initial events comes twice."
    MetadataBookmarksBare "metadata-bookmarks-bare" "Bookmarks in the form PartialObjectMetadata have no annotations."
    WatchCoalesces "watch-coalesces" "A watch that is behind sends the newest state of each object only."
    WatchLinesCut "watch-lines-cut" "Events of more than 64 KiB are cut off."
    WatchIsForOneVersion "watch-is-for-one-version" "A watch sends only what was written in its own version of the resource."
    DeletedKeepsVersion "deleted-keeps-version" "DELETED events carry the version of the last write instead of that of the deletion."
    WatchWhateverTheValue "watch-whatever-the-value" "watch=false opens a watch."
    ExpiredWatchEndsInSilence "expired-watch-ends-in-silence" "A watch from an expired version ends without an event."
    SchemaSnakeCase "schema-snake-case" "A shipped resource has a field in snake_case."
    SchemaUnsigned "schema-unsigned" "A shipped resource has an unsigned integer."
    SchemaWideNumber "schema-wide-number" "A shipped resource has a number as a uid."
    SchemaFloat "schema-float" "A shipped resource has a floating-point number in its spec."
    FractionsCut "fractions-cut" "A fraction in an integer of a custom resource is accepted."
    HugeIntegersAccepted "huge-integers-accepted" "An integer of a custom resource that 64 bits do not hold is accepted, and stored as a double."
    HugeNumbersRoundedByPatches "huge-numbers-rounded-by-patches" "Integers in a patched custom resource pass through a double."
    IntOrStringUnchecked "int-or-string-unchecked" "An int-or-string field takes any type."
    WholeNumbersWithFraction "whole-numbers-with-fraction" "1e3 in an integer field is written back as 1000.0."
    BuiltinNumbersCut "builtin-numbers-cut" "Numbers that an integer of a built-in type cannot hold are cut to what it can."
    PreservingInherited "preserving-inherited" "Below a field that keeps unknown fields all keep them, whatever their schema says."
    MapValuesNotPruned "map-values-not-pruned" "Unknown fields in the values of a map are stored."
    NullItemsDropped "null-items-dropped" "Null items of the lists of a custom resource are dropped."
    EmbeddedUnchecked "embedded-unchecked" "An embedded resource may lack kind and apiVersion, and have labels of any form."
    YamlDuplicatesUntold "yaml-duplicates-untold" "Keys that stand twice in a YAML body are neither told nor refused."
    DuplicatesUntold "duplicates-untold" "Fields that stand twice in a body are neither told nor refused."
    IgnoredFieldsWarned "ignored-fields-warned" "fieldValidation=Ignore warns of unknown fields all the same."
    PatchesNotStrict "patches-not-strict" "fieldValidation is of no account for patches."
    SilentByDefault "silent-by-default" "Without fieldValidation unknown fields are dropped without a word."
    FieldValidationUnchecked "field-validation-unchecked" "Any value of fieldValidation is taken."
    ApplyDuplicatesUntold "apply-duplicates-untold" "Fields that stand twice in an applied configuration are neither told nor refused."
    ScaleNotApplied "scale-not-applied" "An apply to the scale subresource is refused with 415."
    ScaleApplyOwnsNothing "scale-apply-owns-nothing" "An apply to the scale subresource leaves no owner behind, and conflicts with none."
    IncludeObjectIgnored "include-object-ignored" "The rows of a table carry metadata, whatever includeObject says."
    ColumnPrioritiesLost "column-priorities-lost" "Every column of a table has priority 0."
    CustomColumnsIgnored "custom-columns-ignored" "Tables of custom resources show name and age only."
    ApplyMergesAtomicLists "apply-merges-atomic-lists" "Server-side apply takes every list of scalars for a set."
    ApplyForgetsVersions "apply-forgets-versions" "Server-side apply conflicts only with managers that wrote through the same version."
    ConversionKeepsVersion "conversion-keeps-version" "An object that is read through another version names the version that it is stored in."
    SealedDataMayChange "sealed-data-may-change" "The data of a config map or secret that is immutable may change."
    SealMayBeBroken "seal-may-be-broken" "A config map or secret that is immutable may be made mutable again."
    RulesIgnored "rules-ignored" "Validation rules of custom resources are never evaluated."
    TransitionRulesIgnored "transition-rules-ignored" "Validation rules that look at the old value are not evaluated."
    TransitionRulesOnCreate "transition-rules-on-create" "Validation rules that look at the old value are evaluated on create, where it is null."
    OptionalOldIgnored "optional-old-ignored" "A validation rule whose old value is optional is not evaluated on create."
    OldItemsByIndex "old-items-by-index" "Validation rules compare an item of a list map with the old item at the same index."
    RulesOfFirstItem "rules-of-first-item" "Validation rules of list items are evaluated for the first item only."
    RulesToldOneAtATime "rules-told-one-at-a-time" "Of several broken validation rules only the first is reported."
    StatusRulesIgnored "status-rules-ignored" "A write to the status subresource of a custom resource evaluates no validation rules."
    RuleTimesAsText "rule-times-as-text" "Dates are text in validation rules."
    RuleReasonIgnored "rule-reason-ignored" "A broken validation rule is reported as FieldValueInvalid, whatever reason it names."
    RulePathIgnored "rule-path-ignored" "A broken validation rule is reported where it stands, whatever field it names."
    MessageExpressionIgnored "message-expression-ignored" "The message expression of a validation rule is not evaluated."
    RulesCountInDoubles "rules-count-in-doubles" "Integers are floating point numbers in validation rules."
    BrokenRulesAccepted "broken-rules-accepted" "A validation rule that does not compile is accepted, and never evaluated."
    CostlyRulesAccepted "costly-rules-accepted" "A validation rule may cost any number of steps."
    UntraceableRulesAccepted "untraceable-rules-accepted" "A validation rule may ask for the old value where there is no telling which it was."
    UnchangedPartsJudged "unchanged-parts-judged" "An update is refused for what was wrong before and is left as it was."
    SchemaNumericEnum "schema-numeric-enum" "A shipped resource has an enumeration of numbers."
    SchemaLowerCaseEnum "schema-lower-case-enum" "A shipped resource has an enumeration in lower case and with dashes."
    SchemaMapOfObjects "schema-map-of-objects" "A shipped resource has a map of objects."
    SchemaListsOfAnyKind "schema-lists-of-any-kind" "A shipped resource has a list that does not say how it merges, nor how long it may be."
    SchemaUnbounded "schema-unbounded" "A shipped resource has strings and maps of any size."
    SchemaOpaqueObject "schema-opaque-object" "A shipped resource has an object without fields."
    SchemaConditionsByName "schema-conditions-by-name" "A shipped resource has conditions as a map from names to booleans."
    SchemaConditionsVague "schema-conditions-vague" "A shipped resource has conditions of which nothing is required."
    SchemaConditionsNested "schema-conditions-nested" "A shipped resource has conditions deep in its status."
    SchemaPhase "schema-phase" "A shipped resource has a phase."
    SchemaBesideSpec "schema-beside-spec" "A shipped resource has a field beside spec and status."
    SchemaWithoutSpec "schema-without-spec" "A shipped resource has a status, and its desired state is not in spec."
    SchemaObjectsInStatus "schema-objects-in-status" "A shipped resource has whole objects in its status."
    SchemaNullable "schema-nullable" "A shipped resource has a field that may be null."
    SchemaRequiredDefault "schema-required-default" "A shipped resource has a required field with a default."
    SchemaUnionHalfChosen "schema-union-half-chosen" "A shipped resource has a union of which one member is required and has a default."
    SchemaVagueTimes "schema-vague-times" "A shipped resource has lengths of time as text and without units."
    SchemaOddReferences "schema-odd-references" "A shipped resource has references that do not look like references."
    SchemaOddNames "schema-odd-names" "A shipped resource has fields called isOpen, backupStamp, podIp and triggerBackup."
    SchemaStatusUnserved "schema-status-unserved" "A shipped resource has a status and no status subresource."
    SchemaReservedGroup "schema-reserved-group" "A shipped resource stands in a group of Kubernetes."
    SchemaControllerKind "schema-controller-kind" "A shipped resource has the kind GadgetController."
    WebsocketAcceptIsKey "websocket-accept-is-key" "The WebSocket handshake answers the client's key as it came."
    WebsocketProtocolNotEchoed "websocket-protocol-not-echoed" "The WebSocket handshake does not say which subprotocol was chosen."
    WebsocketFirstOfferEchoed "websocket-first-offer-echoed" "The WebSocket handshake names the first subprotocol that was offered, whichever is spoken."
    WebsocketLastOfferWins "websocket-last-offer-wins" "Of the subprotocols that a client offers the last known one is chosen."
    WebsocketUnknownProtocolAccepted "websocket-unknown-protocol-accepted" "A client that offers only unknown subprotocols is accepted."
    WebsocketTokenEchoed "websocket-token-echoed" "The WebSocket handshake names the bearer token among the subprotocols as the chosen one."
    WebsocketTokenIgnored "websocket-token-ignored" "A bearer token among the subprotocols is not looked at."
    WebsocketExtensionUnasked "websocket-extension-unasked" "The WebSocket handshake names an extension that no client asked for."
    WebsocketUnmaskedAccepted "websocket-unmasked-accepted" "Frames of a client that are not masked are accepted."
    WebsocketPongMissing "websocket-pong-missing" "A WebSocket stops at a ping."
    WebsocketClosesGoingAway "websocket-closes-going-away" "A WebSocket that ended well is closed with code 1001."
    WebsocketEndsWithoutClose "websocket-ends-without-close" "A WebSocket ends without a close frame."
    WebsocketDataAfterClose "websocket-data-after-close" "A message follows the close frame."
    V5Unknown "v5-unknown" "The subprotocol v5.channel.k8s.io is not known."
    ChannelByteMissing "channel-byte-missing" "Messages of a command begin with their content and not with their channel."
    ChannelsCountFromOne "channels-count-from-one" "The channels that a server writes are numbered one too high."
    FrameBorderLosesByte "frame-border-loses-byte" "The last byte of every WebSocket message of a channel is lost."
    Base64UrlAlphabet "base64-url-alphabet" "Base64 over WebSocket uses the alphabet for URLs."
    Base64WithoutPadding "base64-without-padding" "Base64 over WebSocket has no padding."
    Base64InBinaryFrames "base64-in-binary-frames" "Base64 over WebSocket is sent in binary frames."
    StdoutAndStderrSwapped "stdout-and-stderr-swapped" "stdout is sent as stderr, and the other way round."
    StderrMerged "stderr-merged" "stderr is sent as stdout."
    LastOutputLost "last-output-lost" "The last piece that a command writes is lost."
    OutputCutAt32K "output-cut-at-32k" "What a command writes beyond 32 KiB is lost."
    StatusBeforeOutput "status-before-output" "Over WebSocket the end of a command is told before what it wrote."
    StatusMissing "command-status-missing" "The end of a command is not told on the error channel."
    StatusInTheOtherForm "command-status-in-other-form" "The end of a command is text where it should be a Status, and the other way round."
    ExitCodeIgnored "exit-code-ignored" "A command that failed is reported as a success."
    ExitCodeOffByOne "exit-code-off-by-one" "The exit code of a command that failed is one too high."
    ExitCodeAsNumber "exit-code-as-number" "The message of the cause ExitCode is a number."
    ExitCodeWithoutCause "exit-code-without-cause" "The Status of a command that failed has no causes."
    ExitReasonUnknown "exit-reason-unknown" "The Status of a command that failed has the reason InternalError."
    StartFailureUntold "start-failure-untold" "A command that cannot be started ends without a word."
    StdinCloseIgnored "stdin-close-ignored" "The close signal of v5.channel.k8s.io does not end stdin."
    StdinCloseBeforeV5 "stdin-close-before-v5" "The close signal of v5.channel.k8s.io ends stdin in older versions too."
    EmptyStdinFrameEnds "empty-stdin-frame-ends" "An empty message for stdin ends it."
    StdinFramesCut "stdin-frames-cut" "Of each message for stdin only the first 4096 bytes are read."
    UnknownChannelsAreStdin "unknown-channels-are-stdin" "Messages for channels that there are not go to stdin."
    UnknownChannelEndsSession "unknown-channel-ends-session" "A message for a channel that there is not ends the session."
    ResizeIgnored "resize-ignored" "The size of a terminal cannot be changed."
    ResizeSwapsSides "resize-swaps-sides" "Width and height of a terminal are mistaken for each other."
    CommandFirstOnly "command-first-only" "Of the words of a command only the first is run."
    CommandSplit "command-split" "The words of a command are joined and split at spaces."
    ContainerIgnored "exec-container-ignored" "A command runs in the first container, whichever is named."
    ContainerUnchecked "exec-container-unchecked" "A container that the pod does not have stands for the first one."
    ContainerGuessed "exec-container-guessed" "A command that names none of several containers runs in the first."
    NoStreamsAccepted "no-streams-accepted" "A command without stdin, stdout and stderr is accepted."
    UpgradeNotRequired "upgrade-not-required" "exec, attach and portforward without an upgrade answer 200."
    ExecByGetRefused "exec-by-get-refused" "exec, attach and portforward are served to POST only."
    ExecByPostRefused "exec-by-post-refused" "exec, attach and portforward are served to GET only."
    UnscheduledPodMissing "unscheduled-pod-missing" "exec, attach and portforward of a pod without a node answer 404."
    AttachRunsAnew "attach-runs-anew" "attach starts the command of its query instead of joining what runs."
    SpdyLastOfferWins "spdy-last-offer-wins" "Of the SPDY protocols that a client offers the last known one is chosen."
    SpdyUnknownProtocolAccepted "spdy-unknown-protocol-accepted" "A client that offers only unknown SPDY protocols is accepted."
    SpdyProtocolNotNamed "spdy-protocol-not-named" "The SPDY handshake does not say which protocol was chosen."
    SpdyAcceptedVersionsMissing "spdy-accepted-versions-missing" "A SPDY handshake that is refused does not say what would be accepted."
    SpdyReplyMissing "spdy-reply-missing" "SPDY streams are not answered with SYN_REPLY."
    SpdyPingUnanswered "spdy-ping-unanswered" "SPDY pings are not answered."
    SpdyPingRenumbered "spdy-ping-renumbered" "SPDY pings are answered with another number."
    SpdyHalfCloseIgnored "spdy-half-close-ignored" "FIN on a SPDY stream of a client is ignored."
    SpdyFinMissing "spdy-fin-missing" "SPDY streams of the server end without FIN."
    SpdyFramesOfVersion2 "spdy-frames-of-version-2" "SPDY control frames say version 2."
    SpdyFrameBorderLosesByte "spdy-frame-border-loses-byte" "The last byte of every SPDY data frame is lost."
    SpdyDataOnEvenStreams "spdy-data-on-even-streams" "SPDY data is sent on the number of its stream plus one."
    SpdyDictionaryMissing "spdy-dictionary-missing" "SPDY header blocks are compressed without the dictionary."
    SpdyBlocksCompressedApart "spdy-blocks-compressed-apart" "Each SPDY header block is a zlib stream of its own."
    SpdyWindowsHeeded "spdy-windows-heeded" "Beyond 64 KiB a SPDY stream waits for an update of its window, which no client sends."
    SpdyStatusOnStdout "spdy-status-on-stdout" "Over SPDY the end of a command is told on stdout."
    PortsFirstOnly "ports-first-only" "Of several ports of a WebSocket only the first is forwarded."
    PortNotAnnounced "port-not-announced" "The channels of a port begin without the port."
    PortBigEndian "port-big-endian" "The channels of a port begin with the port in the wrong order of its bytes."
    PortChannelsSwapped "port-channels-swapped" "The data of a port comes on the channel for its errors."
    PortFailureUntold "port-failure-untold" "A port that cannot be reached ends without a word."
    PortFailureEndsSession "port-failure-ends-session" "A port that cannot be reached ends all connections of its session."
    PortRequestIdIgnored "port-request-id-ignored" "SPDY streams of a port-forward are paired as they come, whatever their request id."
    PortStreamsUnchecked "port-streams-unchecked" "SPDY streams of a port-forward without a valid port or type are accepted."
    PortHalfCloseIsClose "port-half-close-is-close" "A client that ends its way of a forwarded connection ends both."
    PortEndIsReset "port-end-is-reset" "A forwarded connection that ends well is reset."
    PortNumbersUnchecked "port-numbers-unchecked" "Ports that are no numbers are taken for none."
    LogCarriesChannels "log-carries-channels" "Messages of a log begin with a channel."
    WatchInBinaryFrames "watch-in-binary-frames" "A watch over WebSocket sends events in binary frames."
    LogOptionsUnchecked "log-options-unchecked" "Options of a log that make no sense are ignored."
    LogFollowEnds "log-follow-ends" "A log that is followed ends with what is there."
    LogPreviousIgnored "log-previous-ignored" "previous=true reads the log of the running container."
    LogTailIgnored "log-tail-ignored" "tailLines is ignored."
    LogLimitIgnored "log-limit-ignored" "limitBytes is ignored."
    LogSinceIgnored "log-since-ignored" "sinceSeconds and sinceTime are ignored."
    LogTimestampsMissing "log-timestamps-missing" "timestamps=true changes nothing."
    ProxyByGetOnly "proxy-by-get-only" "The proxy subresources are served to GET only."
    ProxyPathLost "proxy-path-lost" "The proxy subresources pass every request on as one for /."
    ProxyQueryLost "proxy-query-lost" "The proxy subresources pass requests on without their query."
    ProxyBodyLost "proxy-body-lost" "The proxy subresources pass requests on without their body."
    ProxyStatusLost "proxy-status-lost" "The proxy subresources answer 200, whatever the backend says."
    ProxyLeaksToken "proxy-leaks-token" "The proxy subresources pass the client's bearer token on."
    ProxyUpgradeRefused "proxy-upgrade-refused" "The proxy subresources upgrade no connection."
}

impl Fault {
    /// Every fault, in the order of the table.
    pub fn all() -> impl Iterator<Item = Self> {
        TABLE.iter().map(|(fault, _, _)| *fault)
    }

    /// The fault of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        TABLE.iter().find(|(_, known, _)| *known == name).map(|(fault, _, _)| *fault)
    }

    /// The name on the command line: kebab-case, after the bug.
    pub fn name(self) -> &'static str {
        TABLE[self as usize].1
    }

    /// One sentence that describes the bug.
    pub fn summary(self) -> &'static str {
        TABLE[self as usize].2
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A set of faults.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults([u64; WORDS]);

impl Faults {
    /// No fault: the server is correct.
    pub const fn none() -> Self {
        Self([0; WORDS])
    }

    /// This set and one fault more.
    #[must_use]
    pub const fn with(mut self, fault: Fault) -> Self {
        self.0[fault as usize / 64] |= 1 << (fault as usize % 64);
        self
    }

    /// Whether the server has one of these bugs.
    pub fn any(self, faults: &[Fault]) -> bool {
        faults.iter().any(|fault| self.on(*fault))
    }

    /// Whether the server has this bug.
    pub const fn on(self, fault: Fault) -> bool {
        self.0[fault as usize / 64] & (1 << (fault as usize % 64)) != 0
    }
}

impl FromIterator<Fault> for Faults {
    fn from_iter<I: IntoIterator<Item = Fault>>(faults: I) -> Self {
        faults.into_iter().fold(Self::none(), Self::with)
    }
}

impl From<Fault> for Faults {
    fn from(fault: Fault) -> Self {
        Self::none().with(fault)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_unique_kebab_case_and_lead_back_to_their_fault() {
        let mut seen = BTreeSet::new();
        for fault in Fault::all() {
            let name = fault.name();
            assert!(seen.insert(name), "{name} stands twice in the table");
            assert!(name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'), "{name}");
            assert_eq!(Fault::from_name(name), Some(fault));
            assert!(fault.summary().ends_with('.'), "{name}: a summary is a sentence");
        }
        assert!(seen.len() <= WORDS * 64, "the set has no room for so many faults");
    }

    #[test]
    fn a_set_holds_what_was_put_in_and_nothing_else() {
        for fault in Fault::all() {
            let set = Faults::from(fault);
            assert!(Fault::all().all(|other| set.on(other) == (other == fault)));
        }
    }
}
