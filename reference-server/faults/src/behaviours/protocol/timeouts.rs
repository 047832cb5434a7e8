//! The timeouts in the query of a request.

use crate::behaviours::Fault;
use crate::middleware::{Middleware, requests};

/// The middleware of a fault of this file.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    match fault {
        Fault::InvalidTimeoutsIgnored => Some(requests(|request| {
            if request.query().get("timeout").is_some() {
                request.edit_query(|query| {
                    query.remove("timeout");
                });
            }
        })),
        Fault::InvalidTimeoutSecondsIgnored => Some(requests(|request| {
            let query = request.query();
            if query.get("timeoutSeconds").is_some_and(|seconds| seconds.parse::<i64>().is_err()) {
                request.edit_query(|query| {
                    query.remove("timeoutSeconds");
                });
            }
        })),
        _ => None,
    }
}
