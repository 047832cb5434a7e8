//! Subresources that write a part of an object: ephemeral containers, resources and approvals.

use http::{Method, StatusCode};
use serde_json::Value;

use crate::behaviours::Fault;
use crate::behaviours::support::objects::remove_meta;
use crate::behaviours::support::requests::{is_create, is_update};
use crate::behaviours::support::server::also_writes;
use crate::exchange::Request;
use crate::middleware::{Middleware, around, requests, uncompressed};

const PARTS: [&str; 3] = ["approval", "ephemeralcontainers", "resize"];
const CERTIFICATES: &str = "certificatesigningrequests";
/// The fields of a request for a certificate that describe its user.
const USER: [&str; 3] = ["username", "uid", "groups"];

/// The middleware of a fault of this file.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    Some(match fault {
        Fault::PartsNotWritten => requests(|request| {
            if writes_part(request) {
                request.edit_query(|query| query.set("dryRun", "All"));
            }
        }),
        Fault::PartErrorsIgnored => around(|request, next| {
            Box::pin(async move {
                let response = next.send(request.clone()).await;
                if writes_part(&request) && response.status == StatusCode::UNPROCESSABLE_ENTITY {
                    return next.send(request.by_same_client(Method::GET, &request.path)).await;
                }
                response
            })
        }),
        Fault::PartsWriteMetadata => {
            also_writes(&["ephemeralcontainers", "resize"], "metadata", "")
        }
        Fault::StaleFinalizeAccepted => requests(|request| {
            if request.method == Method::PUT && request.target().subresource == "finalize" {
                request.edit_json(|namespace| drop(remove_meta(namespace, "resourceVersion")));
            }
        }),
        Fault::StatusApproves => requests(|request| {
            let target = request.target();
            let is_status = target.resource == CERTIFICATES && target.subresource == "status";
            if is_update(request) && is_status {
                request.path = format!("{}/approval", target.object(&target.name));
            }
        }),
        Fault::CertificateUserFromClient => around(|mut request, next| {
            Box::pin(async move {
                uncompressed(&mut request);
                let mut response = next.send(request.clone()).await;
                let is_request = request.target().resource == CERTIFICATES;
                if is_create(&request) && is_request && response.status.is_success() {
                    let sent = request.json().unwrap_or_default();
                    response.edit_value(|created| copy_user(&sent, created));
                }
                response
            })
        }),
        _ => return None,
    })
}

fn copy_user(sent: &Value, created: &mut Value) {
    for field in USER {
        if let Some(value) = sent["spec"].get(field) {
            created["spec"][field] = value.clone();
        }
    }
}

fn writes_part(request: &Request) -> bool {
    is_update(request) && PARTS.contains(&request.target().subresource.as_str())
}
