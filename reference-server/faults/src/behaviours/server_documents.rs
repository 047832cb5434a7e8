//! Documents about the server itself: the type of its discovery documents.

use http::header;

use crate::middleware::{Middleware, responses};
use crate::set::Fault;

/// The middleware of a fault of this file.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    Some(match fault {
        Fault::AggregatedTypeWithoutParameters => responses(|_, response| {
            let media_type = response.headers.get(header::CONTENT_TYPE);
            let is_aggregated = media_type
                .and_then(|media_type| media_type.to_str().ok())
                .is_some_and(|text| text.starts_with("application/json;") && text.contains("as="));
            if is_aggregated {
                response.set_header(header::CONTENT_TYPE, "application/json");
            }
        }),
        _ => return None,
    })
}
