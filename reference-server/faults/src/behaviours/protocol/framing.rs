//! Requests that announce their body, or send it in chunks.

use http::StatusCode;

use crate::behaviours::Fault;
use crate::exchange::{Request, Response};
use crate::middleware::{Middleware, around};

/// The middleware of a fault of this file.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    Some(match fault {
        Fault::ExpectRejected => rejecting(StatusCode::EXPECTATION_FAILED, |request| {
            request.header("expect").eq_ignore_ascii_case("100-continue")
        }),
        Fault::ChunkedBodiesRejected => rejecting(StatusCode::LENGTH_REQUIRED, |request| {
            request.header("transfer-encoding").eq_ignore_ascii_case("chunked")
        }),
        _ => return None,
    })
}

/// Rejects the requests that `applies` is true for.
fn rejecting(status: StatusCode, applies: fn(&Request) -> bool) -> Box<dyn Middleware> {
    around(move |request, next| {
        Box::pin(async move {
            if applies(&request) {
                return Response::text(status, status.to_string());
            }
            next.send(request).await
        })
    })
}
