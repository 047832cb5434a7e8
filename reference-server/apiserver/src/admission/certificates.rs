//! The plugins for requests of certificates: a user needs permission for the signer to approve or
//! sign them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::{Attributes, Decision, Operation, Plugin, decided};
use crate::authentication::MASTERS;
use crate::certificates::CertificateRequest;
use crate::registry::builtin::certificates::GROUP;
use kubeproof_apimachinery::request::ResourceInfo;
use kubeproof_apimachinery::status::ApiError;

const CLIENT_SIGNER: &str = "kubernetes.io/kube-apiserver-client";

/// Rejects an approval by a user without permission for the signer.
pub(super) struct CertificateApproval;

impl Plugin for CertificateApproval {
    fn name(&self) -> &'static str {
        "CertificateApproval"
    }

    fn handles(&self, request: &Attributes<'_>) -> bool {
        is_update(request, "approval")
    }

    fn validate<'a>(&'a self, request: Attributes<'a>, object: &'a Value) -> Decision<'a> {
        decided(check_permission(request, "approve", object))
    }
}

/// Rejects a certificate of a user without permission for the signer.
pub(super) struct CertificateSigning;

impl Plugin for CertificateSigning {
    fn name(&self) -> &'static str {
        "CertificateSigning"
    }

    fn handles(&self, request: &Attributes<'_>) -> bool {
        is_update(request, "status")
    }

    fn validate<'a>(&'a self, request: Attributes<'a>, object: &'a Value) -> Decision<'a> {
        let is_same = request.old.is_some_and(|old| old["status"] == object["status"]);
        decided(if is_same { Ok(()) } else { check_permission(request, "sign", object) })
    }
}

/// Rejects a request for a certificate that would make its owner an administrator.
pub(super) struct CertificateSubjectRestriction;

impl Plugin for CertificateSubjectRestriction {
    fn name(&self) -> &'static str {
        "CertificateSubjectRestriction"
    }

    fn handles(&self, request: &Attributes<'_>) -> bool {
        request.operation == Operation::Create && is_certificate(request, "")
    }

    fn validate<'a>(&'a self, request: Attributes<'a>, object: &'a Value) -> Decision<'a> {
        decided(check_subject(request, object))
    }
}

fn check_subject(request: Attributes<'_>, new: &Value) -> Result<(), ApiError> {
    if signer(new) != CLIENT_SIGNER {
        return Ok(());
    }
    let text = new["spec"]["request"].as_str().unwrap_or_default();
    let parsed = CertificateRequest::from_pem(&STANDARD.decode(text).unwrap_or_default());
    if parsed.is_ok_and(|parsed| parsed.organizations.iter().any(|group| group == MASTERS)) {
        let why = format!("use of {CLIENT_SIGNER} signer with {MASTERS} group is not allowed");
        return Err(request.forbidden(new, &why));
    }
    Ok(())
}

fn check_permission(request: Attributes<'_>, verb: &str, new: &Value) -> Result<(), ApiError> {
    let signer = request.old.map(signer).unwrap_or_default();
    if may(request, verb, signer) {
        return Ok(());
    }
    let why = format!("user not permitted to {verb} requests with signerName {signer:?}");
    Err(request.forbidden(new, &why))
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

fn is_update(request: &Attributes<'_>, subresource: &str) -> bool {
    request.operation == Operation::Update && is_certificate(request, subresource)
}

fn is_certificate(request: &Attributes<'_>, subresource: &str) -> bool {
    request.ty.group == GROUP
        && request.ty.plural == "certificatesigningrequests"
        && request.info.subresource == subresource
}

fn signer(request: &Value) -> &str {
    request["spec"]["signerName"].as_str().unwrap_or_default()
}
