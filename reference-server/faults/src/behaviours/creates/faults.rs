//! The faults of this folder, by file: variant, name on the command line, and summary of the bug.

/// Passes the rows to a macro, after the arguments of that macro.
macro_rules! rows {
    ($then:ident $($arguments:tt)*) => {
        $then! {
            $($arguments)*
            new_objects {
                CreateOverwrites "create-overwrites"
                    "A POST with a taken name replaces the object and returns 201."
                ConflictAsCreated "already-exists-as-conflict-reason"
                    "A POST with a taken name returns 409 with reason Conflict instead of \
                     AlreadyExists."
                AlreadyExistsAsBadRequest "already-exists-as-bad-request"
                    "A POST with a taken name returns 400."
                CreateReturnsOk "create-returns-200" "A successful POST returns 200 instead of 201."
                CreateWithVersionAccepted "create-with-version-accepted"
                    "A POST of an object with a resourceVersion is accepted."
                NamespaceMismatchAccepted "namespace-mismatch-accepted"
                    "The server accepts a body with another namespace than the URL and uses the \
                     one in the URL."
                MissingNamespaceAccepted "missing-namespace-accepted"
                    "Objects can be created in a namespace that does not exist."
                TerminatingNamespaceAccepts "terminating-namespace-accepts"
                    "Objects can be created in a namespace that is being deleted."
                CreateReturnsTheRequest "create-returns-the-request"
                    "A POST returns the object as it was sent, before defaulting."
                NamesTakenEverywhere "names-taken-everywhere"
                    "A name that exists in one namespace counts as taken in all namespaces."
                DryRunUnchecked "dry-run-unchecked"
                    "A dry run of a create does not check whether the name is taken."
                DryRunValuesUnchecked "dry-run-values-unchecked"
                    "A create with an unknown dryRun value is carried out."
                EmptyLabelsDropped "empty-labels-dropped" "Labels with an empty value are dropped."
                AnnotationsTrimmed "annotations-trimmed"
                    "White space around the value of an annotation is removed."
                EmptyListsDropped "empty-lists-dropped"
                    "Empty lists in a new custom resource are dropped."
                ZeroesOmitted "zeroes-omitted"
                    "Empty strings in a new custom resource are dropped, even if required."
                LargeIntegersRounded "large-integers-rounded"
                    "Integers in a new custom resource are converted to doubles."
                StatusKeptOnCreate "status-kept-on-create"
                    "The status in the body of a POST is stored."
                NotAcceptableAfterWrite "not-acceptable-after-write"
                    "A POST checks the Accept header after it stored the object."
                NullItemsDropped "null-items-dropped"
                    "Null items of the lists of a custom resource are dropped."
                CreateStoresNothing "create-stores-nothing"
                    "A POST returns 201 and stores nothing, except for pods and cluster-scoped \
                     objects."
                BuiltinStatusKeptOnCreate "builtin-status-kept-on-create"
                    "A POST of an object of a built-in kind stores the status in the body."
                JobStatusKeptOnCreate "job-status-kept-on-create"
                    "A POST of a Job stores the status in the body."
            }
            generated_names {
                GeneratedNamesCollide "generated-names-collide"
                    "Names from generateName end in one random letter, and a taken name is \
                     overwritten."
                GeneratedNamesRunOut "generated-names-run-out"
                    "Names from generateName end in one random letter, and a taken name returns \
                     500."
                NamesMadeUp "names-made-up"
                    "A POST without name and generateName creates an object with an invented name."
                GenerateNameIgnored "generate-name-ignored"
                    "generateName is ignored, so a create without a name is rejected."
                GenerateNameWins "generate-name-wins"
                    "generateName is used even if the object has a name."
                GenerateNameIgnoresPrefix "generate-name-ignores-prefix"
                    "A generated name is fully random and lacks its prefix."
                GenerateNameAsItIs "generate-name-as-it-is"
                    "generateName is used as the name without a suffix."
                GenerateNameCutAtEnd "generate-name-cut-at-end"
                    "A generated name that is too long is truncated at its end, including the \
                     suffix."
                GenerateNamePrefixFixed "generate-name-prefix-fixed"
                    "An invalid generateName is changed into a valid prefix."
                GenerateNameNotStored "generate-name-not-stored"
                    "Only the response to a create shows generateName."
            }
            uids {
                UidFromClient "uid-from-client"
                    "uid and creationTimestamp in the body of a POST are kept."
                UidFromClock "uid-from-clock"
                    "The uid is derived from the time in seconds, so objects created in the same \
                     second share it."
                UidReused "uid-reused"
                    "The uid is derived from namespace and name, so an object that is created \
                     again has its old uid."
                UidWithoutDashes "uid-without-dashes"
                    "The uid has 32 hexadecimal digits without dashes."
            }
            overlays {
                ClusterIpUnchecked "cluster-ip-unchecked"
                    "A clusterIP that is taken or outside the range is accepted."
                DerivedDefaultsMissing "derived-defaults-missing"
                    "Defaults that are derived from other fields are not applied."
                DeletionMarkKeptOnCreate "deletion-mark-kept-on-create"
                    "A deletionTimestamp in the body of a POST is stored."
                ClusterIpUnallocated "cluster-ip-unallocated"
                    "Services without a clusterIP get none."
            }
            defaults {
                PodsWithoutDefaults "pods-without-defaults"
                    "Pods lack the defaults of several fields, such as restartPolicy and qosClass."
                JobsWithoutSelector "jobs-without-selector" "Jobs have no selector."
                CronJobsWithoutPolicy "cron-jobs-without-policy"
                    "Cron jobs have no default concurrencyPolicy."
                NetworkPoliciesWithoutTypes "network-policies-without-types"
                    "Network policies have no default of policyTypes."
                SetsWithoutStrategy "sets-without-strategy"
                    "Stateful sets and daemon sets have no default of updateStrategy."
                AutoscalersWithoutPolicies "autoscalers-without-policies"
                    "The behavior of an autoscaler has no default of selectPolicy."
                SlicePortsWithoutProtocol "slice-ports-without-protocol"
                    "The ports of an endpoint slice have no default of protocol."
                StorageClassesWithoutPolicy "storage-classes-without-policy"
                    "Storage classes have no default of reclaimPolicy."
                BindingSubjectsWithoutGroup "binding-subjects-without-group"
                    "The users and groups in a role binding have no apiGroup."
                WebhooksWithoutDefaults "webhooks-without-defaults"
                    "Webhooks have no defaults of failurePolicy and timeoutSeconds."
                DefinitionsWithoutConversion "definitions-without-conversion"
                    "Definitions have no default of conversion."
                LimitRangesWithoutDefaults "limit-ranges-without-defaults"
                    "A limit range derives no defaults from its maximum and minimum."
                ProbesWithoutDefaults "probes-without-defaults" "Probes have no defaults."
                RequestsIgnoreLimits "requests-ignore-limits"
                    "Containers have no default of requests from their limits."
                ServicesWithoutPolicies "services-without-policies"
                    "Services have no defaults of their traffic policies."
            }
        }
    };
}

pub(crate) use rows;
