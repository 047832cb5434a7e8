//! Documents about the server itself: the type of its discovery documents, and its release.

use http::header;
use serde_json::Value;

use crate::behaviours::Fault;
use crate::middleware::{Middleware, documents, only, responses};

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
        Fault::VersionWithoutNumbers => release(|info| {
            info["major"] = "".into();
            info["minor"] = "".into();
        }),
        Fault::VersionWithoutPrefix => release(|info| {
            let version = info["gitVersion"].as_str().unwrap_or_default();
            info["gitVersion"] = version.trim_start_matches('v').to_owned().into();
        }),
        _ => return None,
    })
}

/// Edits the document with the release of the server.
fn release(edit: fn(&mut Value)) -> Box<dyn Middleware> {
    only(|request| request.path == "/version", documents(move |_, info| edit(info)))
}
