//! Requests for certificates: a user needs permission for the signer to approve or sign them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::Attributes;
use crate::authentication::MASTERS;
use crate::certificates::CertificateRequest;
use crate::registry::builtin::certificates::GROUP;
use kubeproof_apimachinery::object::Object;
use kubeproof_apimachinery::request::ResourceInfo;
use kubeproof_apimachinery::status::ApiError;

const CLIENT_SIGNER: &str = "kubernetes.io/kube-apiserver-client";

/// Rejects a request for a certificate that would make its owner an administrator.
pub(crate) fn check_create(request: Attributes<'_>, new: &Value) -> Result<(), ApiError> {
    if !is_certificate(request) || signer(new) != CLIENT_SIGNER {
        return Ok(());
    }
    let text = new["spec"]["request"].as_str().unwrap_or_default();
    let parsed = CertificateRequest::from_pem(&STANDARD.decode(text).unwrap_or_default());
    if parsed.is_ok_and(|parsed| parsed.organizations.iter().any(|group| group == MASTERS)) {
        let why = format!("use of {CLIENT_SIGNER} signer with {MASTERS} group is not allowed");
        return Err(forbidden(request, new, &why));
    }
    Ok(())
}

/// Rejects a decision or a certificate of a user without permission for the signer.
pub(crate) fn check_update(
    request: Attributes<'_>,
    new: &Value,
    old: &Value,
) -> Result<(), ApiError> {
    let verb = match request.info.subresource.as_str() {
        "approval" => "approve",
        "status" if new["status"] != old["status"] => "sign",
        _ => return Ok(()),
    };
    if !is_certificate(request) || may(request, verb, signer(old)) {
        return Ok(());
    }
    let why = format!("user not permitted to {verb} requests with signerName {:?}", signer(old));
    Err(forbidden(request, new, &why))
}

/// Returns whether the user has permission for the signer, or for all signers of its domain.
fn may(request: Attributes<'_>, verb: &str, signer: &str) -> bool {
    let domain = signer.split('/').next().unwrap_or_default();
    [signer.to_owned(), format!("{domain}/*")].into_iter().any(|name| {
        let info = ResourceInfo {
            group: GROUP.to_owned(),
            version: "*".to_owned(),
            resource: "signers".to_owned(),
            name,
            ..ResourceInfo::default()
        };
        request.rights.may_access(request.user, verb, &info)
    })
}

fn is_certificate(request: Attributes<'_>) -> bool {
    request.ty.group == GROUP && request.ty.plural == "certificatesigningrequests"
}

fn signer(request: &Value) -> &str {
    request["spec"]["signerName"].as_str().unwrap_or_default()
}

fn forbidden(request: Attributes<'_>, object: &Value, why: &str) -> ApiError {
    ApiError::forbidden(request.ty.resource(), object.meta("name"), why)
}
