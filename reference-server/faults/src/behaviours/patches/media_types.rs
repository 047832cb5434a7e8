//! Patches of all types: their media types, their options and their numbers.

use http::{Method, StatusCode, header};

use crate::behaviours::Fault;
use crate::behaviours::support::failures::unsupported_media_type;
use crate::behaviours::support::objects::everywhere;
use crate::behaviours::support::requests::{
    MERGE_PATCH, STRATEGIC_PATCH, is_apply, set_media_type,
};
use crate::exchange::Request;
use crate::middleware::{Middleware, around, requests};

pub(super) const JSON: &str = "application/json-patch+json";

/// The middleware of a fault of this file.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    Some(match fault {
        Fault::MergePatchAsStrategic => requests(|request| {
            if is_patch(request, MERGE_PATCH) && !request.target().is_custom() {
                set_media_type(request, STRATEGIC_PATCH);
            }
        }),
        Fault::StrategicPatchAsMerge => requests(|request| {
            if is_patch(request, STRATEGIC_PATCH) {
                set_media_type(request, MERGE_PATCH);
            }
        }),
        Fault::MergePatchRejected => around(|request, next| {
            Box::pin(async move {
                if is_patch(&request, MERGE_PATCH) {
                    return unsupported_media_type();
                }
                next.send(request).await
            })
        }),
        Fault::PatchOfUnknownTypeIgnored => unknown_types_ignored(),
        Fault::PatchParametersRejected => around(|request, next| {
            Box::pin(async move {
                let has_parameters = request.header(header::CONTENT_TYPE.as_str()).contains(';');
                if request.method == Method::PATCH && has_parameters {
                    return unsupported_media_type();
                }
                next.send(request).await
            })
        }),
        Fault::UntypedPatchIsAMergePatch => requests(|request| {
            if request.method == Method::PATCH && request.media_type().is_empty() {
                set_media_type(request, MERGE_PATCH);
            }
        }),
        Fault::ForceOfPatchesIgnored => requests(|request| {
            if request.method == Method::PATCH && !is_apply(request) {
                request.edit_query(|query| drop(query.remove("force")));
            }
        }),
        Fault::HugeNumbersRoundedByPatches => doubles(),
        _ => return None,
    })
}

pub(super) fn is_patch(request: &Request, media_type: &str) -> bool {
    request.method == Method::PATCH && request.media_type() == media_type
}

/// Returns the object unchanged where the server rejects the media type.
fn unknown_types_ignored() -> Box<dyn Middleware> {
    around(|request, next| {
        Box::pin(async move {
            let response = next.send(request.clone()).await;
            if request.method != Method::PATCH
                || response.status != StatusCode::UNSUPPORTED_MEDIA_TYPE
            {
                return response;
            }
            next.send(request.by_same_client(Method::GET, &request.path)).await
        })
    })
}

/// Passes the integers of a patch for a custom resource through doubles.
fn doubles() -> Box<dyn Middleware> {
    requests(|request| {
        if request.method == Method::PATCH && request.target().is_custom() {
            request.edit_json(|patch| {
                everywhere(patch, &mut |value| {
                    if let Some(number) = value.as_i64() {
                        #[expect(
                            clippy::cast_precision_loss,
                            clippy::cast_possible_truncation,
                            reason = "the loss is the fault"
                        )]
                        let rounded = (number as f64) as i64;
                        *value = rounded.into();
                    }
                });
            });
        }
    })
}
