//! The faults of this folder, by file: variant, name on the command line, and summary of the bug.

/// Passes the rows to a macro, after the arguments of that macro.
macro_rules! rows {
    ($then:ident $($arguments:tt)*) => {
        $then! {
            $($arguments)*
            evictions {
                EvictionIgnoresBudgets "eviction-ignores-budgets"
                    "An eviction ignores the disruption budget."
                EvictionForbidden "eviction-forbidden"
                    "An eviction that a budget does not allow returns 403."
                EvictionOfAnyName "eviction-of-any-name"
                    "The body of an eviction may name another pod than the URL."
                EvictionOfAnyNamespace "eviction-of-any-namespace"
                    "The body of an eviction may name another namespace than the URL."
                EvictionEvictsNothing "eviction-evicts-nothing"
                    "An eviction is accepted and changes nothing."
                EvictionIgnoresPreconditions "eviction-ignores-preconditions"
                    "An eviction ignores the preconditions in its options."
                EvictionIgnoresDryRunOfTheQuery "eviction-ignores-dry-run-of-the-query"
                    "An eviction ignores dryRun in the query."
            }
            logs {
                LogOptionsUnchecked "log-options-unchecked"
                    "Invalid options of a log request are ignored."
                LogFollowEnds "log-follow-ends" "A followed log ends after its current content."
                LogInOnePiece "log-in-one-piece"
                    "A followed log arrives as a whole, when the container ends."
                LogPreviousIgnored "log-previous-ignored"
                    "previous=true reads the log of the running container."
                LogTailIgnored "log-tail-ignored" "tailLines is ignored."
                LogLimitIgnored "log-limit-ignored" "limitBytes is ignored."
                LogSinceIgnored "log-since-ignored" "sinceSeconds and sinceTime are ignored."
                LogTimestampsMissing "log-timestamps-missing" "timestamps=true changes nothing."
                LogBytesAsText "log-bytes-as-text"
                    "Bytes of a log that are not UTF-8 are replaced by U+FFFD."
                LogBytesAsTextOverWebsocket "log-bytes-as-text-over-websocket"
                    "Over WebSocket, bytes of a log that are not UTF-8 are replaced by U+FFFD."
            }
            proxies {
                ProxyByGetOnly "proxy-by-get-only" "The proxy subresources accept only GET."
                ProxyPathLost "proxy-path-lost"
                    "The proxy subresources forward every request to the path /."
                ProxyQueryLost "proxy-query-lost"
                    "The proxy subresources forward requests without their query."
                ProxyBodyLost "proxy-body-lost"
                    "The proxy subresources forward requests without their body."
                ProxyStatusLost "proxy-status-lost"
                    "The proxy subresources return 200, whatever the backend returns."
                ProxyUpgradeRejected "proxy-upgrade-rejected"
                    "The proxy subresources upgrade no connection."
                NothingBehindIsInternal "nothing-behind-is-internal"
                    "A service without endpoints returns 500."
                ProxyHeadersLost "proxy-headers-lost"
                    "The proxy subresources forward requests without their headers."
                ServicePortNamesUnknown "service-port-names-unknown"
                    "The proxy of a service accepts ports only by number."
                UnknownNodeIsDown "unknown-node-is-down"
                    "The proxy of a node that does not exist returns the error for an unreachable \
                     node."
            }
            proxy_credentials {
                ProxyLeaksToken "proxy-leaks-token"
                    "The proxy of a pod forwards the client's bearer token."
            }
        }
    };
}

pub(crate) use rows;
