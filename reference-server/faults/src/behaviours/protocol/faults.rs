//! The faults of this folder, by file: variant, name on the command line, and summary of the bug.

/// Passes the rows to a macro, after the arguments of that macro.
macro_rules! rows {
    ($then:ident $($arguments:tt)*) => {
        $then! {
            $($arguments)*
            paths {
                ListIgnoresNamespace "list-ignores-namespace"
                    "The list of one namespace returns the objects of all namespaces."
                NamesTrimmed "names-trimmed" "White space around a name in a path is ignored."
                AllNamespacesIsDefault "all-namespaces-is-default"
                    "The list over all namespaces shows the namespace default only."
                MethodNotAllowedAsNotFound "method-not-allowed-as-not-found"
                    "An unsupported method returns 404 instead of 405."
                YamlByDefault "yaml-by-default" "A request without an Accept header returns YAML."
                ListedVerbUnserved "listed-verb-unserved"
                    "A PATCH of a lease returns 405, although discovery lists it."
                UnlistedVerbServed "unlisted-verb-served"
                    "A GET of the collection of token reviews is carried out, although discovery \
                     does not list it."
                WatchWhateverTheValue "watch-whatever-the-value" "watch=false opens a watch."
                WatchTrueOnly "watch-true-only"
                    "Only watch=true opens a watch. watch=1 and watch=True return a list."
                WatchReturnsList "watch-returns-list" "A watch request returns a list."
                ElementsUnserved "elements-unserved"
                    "A GET of one secret returns 405, although secrets can be listed."
                WatchPrefixLists "watch-prefix-lists"
                    "The paths below /watch return lists, whatever the query requests."
                ReviewsReturnObjects "reviews-return-objects"
                    "A GET of a collection of reviews returns an empty review."
                OptionsReturnsOk "options-returns-200" "OPTIONS returns 200 with an empty object."
                PutOfCollectionCreates "put-of-collection-creates"
                    "A PUT of a collection creates the object of its body."
                StreamsByAnyMethod "streams-by-any-method"
                    "exec, attach and portforward accept every method."
                EncodedColonsNotDecoded "encoded-colons-not-decoded"
                    "A percent-encoded colon in a path is not decoded."
                LongQueriesRejected "long-queries-rejected"
                    "A request with a query of more than 2000 bytes returns 414."
            }
            routing {
                UnknownAsBadRequest "unknown-as-bad-request"
                    "Paths of unserved groups, versions and resources return 400."
                ClusterResourceInNamespaces "cluster-resource-in-namespaces"
                    "Cluster-scoped resources are also served in namespaces."
                NamespacesFromBodies "namespaces-from-bodies"
                    "A POST to the collection of all namespaces creates in the namespace of its \
                     body."
                MethodOverrideHonoured "method-override-honoured"
                    "X-HTTP-Method-Override replaces the method of a request."
            }
            spelling {
                PathsNormalised "paths-normalised"
                    "The server resolves '..', '.' and empty segments of a path."
                PathsInAnyCase "paths-in-any-case"
                    "Groups, versions and resources in paths are found in any case."
                PathsDecodedTwice "paths-decoded-twice"
                    "The server decodes the percent signs of a path twice."
                QueriesInAnyCase "queries-in-any-case"
                    "The server accepts the names of query parameters in lower case."
                LabelSelectorsInAnyCase "label-selectors-in-any-case"
                    "The value of a label selector is changed to lower case."
                FieldSelectorsInAnyCase "field-selectors-in-any-case"
                    "The value of a field selector is changed to lower case."
                WrittenNamesInAnyCase "written-names-in-any-case"
                    "Updates, patches and deletions find the object if the name differs in case."
                OptionsInAnyCase "options-in-any-case"
                    "Enumerated query parameters are accepted in any case, and with white space."
                ReadNamesInAnyCase "read-names-in-any-case"
                    "A GET finds the object if the name differs in case."
                NamespacesInAnyCase "namespaces-in-any-case"
                    "Namespaces in paths are found in any case."
                SubresourcesInAnyCase "subresources-in-any-case"
                    "Subresources in paths are found in any case."
                LabelKeysInAnyCase "label-keys-in-any-case"
                    "The key of a label selector is changed to lower case."
                UidsInAnyCase "uids-in-any-case" "A uid in a precondition matches in any case."
                VersionsInAnyNotation "versions-in-any-notation"
                    "A resourceVersion with zeros or white space around it matches."
                FieldSelectorValuesTrimmed "field-selector-values-trimmed"
                    "White space around the value of a field selector is removed."
                LabelPrefixesIgnored "label-prefixes-ignored"
                    "Label selectors ignore the prefix of a key."
                PlusIsNoSpace "plus-is-no-space" "A plus sign in a query stands for itself."
            }
            negotiation {
                AcceptIgnored "accept-ignored"
                    "An Accept header that the server cannot satisfy is ignored."
                CharsetRejected "charset-rejected" "A content type with a charset is rejected."
                ContentTypeIgnored "content-type-ignored"
                    "Bodies of every media type are parsed as JSON."
                AcceptQualityIgnored "accept-quality-ignored"
                    "The server uses the first entry of an Accept header and ignores the quality \
                     values."
                AcceptParametersInOrder "accept-parameters-in-order"
                    "The Accept parameters as, v and g are not recognized when v is first."
                GzipUnasked "gzip-unasked"
                    "Large responses are compressed, whatever Accept-Encoding contains."
                PrettyIsText "pretty-is-text" "Indented responses have the media type text/plain."
                GzipUndeclared "gzip-undeclared"
                    "Compressed responses have no Content-Encoding header."
                GzipQualityIgnored "gzip-quality-ignored"
                    "gzip is sent to clients that give it quality 0."
                AcceptParametersRejected "accept-parameters-rejected"
                    "An entry of an Accept header with a charset is ignored."
                DeletionsAcceptEverything "deletions-accept-everything"
                    "A DELETE with an unsupported Accept header is carried out."
                WatchesAcceptEverything "watches-accept-everything"
                    "A watch with an unsupported Accept header sends JSON."
                ListsIgnoreAccept "lists-ignore-accept"
                    "A list ignores an Accept header that the server cannot satisfy."
                DeletesReturnWholeObjects "deletes-return-whole-objects"
                    "A DELETE returns the whole object to clients that request \
                     PartialObjectMetadata or a Table."
                WritesIgnoreForm "writes-ignore-form"
                    "Writes return the whole object to clients that request PartialObjectMetadata \
                     or a Table."
                StatusIgnoresForm "status-ignores-form"
                    "The status subresource returns the whole object to clients that request \
                     PartialObjectMetadata or a Table."
                CreatesAndUpdatesReturnNoTables "creates-and-updates-return-no-tables"
                    "POST and PUT return the object to clients that request a Table."
                UnknownFormsIgnored "unknown-forms-ignored"
                    "A request for an unknown form of the response returns the object."
                AppliesIgnoreForm "applies-ignore-form"
                    "Server-side apply returns the whole object to clients that request \
                     PartialObjectMetadata or a Table."
                DiscoveryNeverChanges "discovery-never-changes"
                    "Aggregated discovery returns 304 to each request with an ETag."
                DiscoveryIgnoresEtags "discovery-ignores-etags"
                    "Aggregated discovery ignores If-None-Match."
                PartialFormsInterchangeable "partial-forms-interchangeable"
                    "Requests for PartialObjectMetadata and PartialObjectMetadataList get the one \
                     that fits."
                OlderFormsAnsweredAsV1 "older-forms-answered-as-v1"
                    "Requests for a v1beta1 Table or PartialObjectMetadata get the v1 form."
            }
            framing {
                ExpectRejected "expect-rejected" "A request with Expect: 100-continue returns 417."
                ChunkedBodiesRejected "chunked-bodies-rejected"
                    "A body in chunks, without a Content-Length, returns 411."
            }
            timeouts {
                InvalidTimeoutsIgnored "invalid-timeouts-ignored"
                    "A timeout in the query that is no duration is ignored."
                InvalidTimeoutSecondsIgnored "invalid-timeout-seconds-ignored"
                    "A timeoutSeconds that is no number is ignored."
            }
        }
    };
}

pub(crate) use rows;
