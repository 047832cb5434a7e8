//! GET of one object: returns the stored bytes.

use http::StatusCode;

use super::Call;
use crate::endpoints::present;
use crate::http::negotiate::Target;
use crate::http::respond::ApiResponse;
use kubeproof_apimachinery::request::Query;
use kubeproof_apimachinery::status::ApiError;

pub(super) async fn handle(call: &Call) -> Result<ApiResponse, ApiError> {
    let representation = call.accept(Target::Object)?;
    if let Some(asked) = version(&call.query)? {
        // The store has no lag, so waiting for a later version would be useless.
        let current = call.api.store.revision();
        if asked > current {
            return Err(ApiError::future_version(asked, current));
        }
    }
    match call.api.store.get(&call.ty.table, &call.key()) {
        Some(stored) => present::stored(call, representation, StatusCode::OK, &stored).await,
        None => Err(call.not_found()),
    }
}

/// Parses the parameter `resourceVersion`. Returns none if it is absent or leaves the choice to the
/// server.
pub(super) fn version(query: &Query) -> Result<Option<u64>, ApiError> {
    match query.text("resourceVersion") {
        None => Ok(None),
        Some(text) => match text.parse() {
            Ok(version) => Ok(Some(version)),
            Err(error) => Err(ApiError::bad_request(format!(
                "invalid resource version: resourceVersion: Invalid value: {text:?}: {error}"
            ))),
        },
    }
}
