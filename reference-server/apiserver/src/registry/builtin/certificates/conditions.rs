//! The status of a request for a certificate: who may set which condition, and the certificate.

use std::collections::HashSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls_pki_types::pem::{PemObject as _, SectionKind};
use serde_json::{Value, json};
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer as _;

use super::validate;
use crate::registry::builtin::{PartHooks, restore_all_but, take_status_and_metadata};
use kubeproof_apimachinery::object::timestamp;
use kubeproof_apimachinery::schema::FieldError;

const CONDITIONS: &str = "status.conditions";
const CERTIFICATE: &str = "status.certificate";
/// The conditions that only the approval sets.
const DECISIONS: [&str; 2] = ["Approved", "Denied"];
/// The conditions that stay, and that can only be true.
const FINAL: [&str; 3] = ["Approved", "Denied", "Failed"];

/// The subresource `approval`: the conditions and the metadata.
pub(super) static APPROVAL: PartHooks = PartHooks {
    prepare: |new, old| {
        set_times(new, old);
        let conditions = new["status"]["conditions"].take();
        let metadata = new["metadata"].take();
        restore_all_but(new, old, &[("status", "conditions", conditions)]);
        new["metadata"] = metadata;
    },
    validate: |new, old| {
        let mut errors = errors(new, old);
        if certificate(new) != certificate(old) {
            let why = "updates may not set certificate content";
            errors.push(FieldError::forbidden(CERTIFICATE, why));
        }
        errors
    },
    fields: &[&["metadata"], &["status", "conditions"]],
};

/// Prepares an update of the status. It cannot change decisions: if their number is the same, they
/// stay.
pub(super) fn prepare_status(new: &mut Value, old: &Value) {
    take_status_and_metadata(new, old);
    for kind in DECISIONS {
        let before: Vec<Value> = of_kind(old, kind).cloned().collect();
        if before.len() != of_kind(new, kind).count() {
            continue;
        }
        let conditions = new["status"]["conditions"].as_array_mut().into_iter().flatten();
        let after = conditions.filter(|condition| condition["type"] == kind);
        after.zip(before).for_each(|(after, before)| *after = before);
    }
    set_times(new, old);
}

/// Returns the errors of an update of the status.
pub(super) fn validate_status(new: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = errors(new, old);
    for kind in DECISIONS {
        if of_kind(new, kind).count() > of_kind(old, kind).count() {
            let why = format!("updates may not add a condition of type {kind:?}");
            errors.push(FieldError::forbidden(CONDITIONS, &why));
        }
    }
    if certificate(new) != certificate(old) && !certificate(old).is_empty() {
        let why = "updates may not modify existing certificate content";
        errors.push(FieldError::forbidden(CERTIFICATE, why));
    }
    errors
}

/// Returns the errors of an update of the status or of the approval.
fn errors(new: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = validate(new);
    errors.extend(invalid_conditions(new));
    if certificate(new) != certificate(old)
        && let Err(why) = check_certificate(certificate(new))
    {
        errors.push(FieldError::invalid(CERTIFICATE, &json!("<certificate data>"), why));
    }
    for kind in FINAL {
        if of_kind(new, kind).count() < of_kind(old, kind).count() {
            let why = format!("updates may not remove a condition of type {kind:?}");
            errors.push(FieldError::forbidden(CONDITIONS, &why));
        }
    }
    errors
}

fn invalid_conditions(request: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut kinds = HashSet::new();
    for (index, condition) in conditions(request).enumerate() {
        let place = |field: &str| format!("{CONDITIONS}[{index}].{field}");
        let text = |field: &str| condition[field].as_str().unwrap_or_default();
        let (kind, status) = (text("type"), text("status"));
        if kind.is_empty() {
            errors.push(FieldError::required(place("type"), ""));
        }
        let values: &[&str] =
            if FINAL.contains(&kind) { &["True"] } else { &["False", "True", "Unknown"] };
        if status.is_empty() {
            errors.push(FieldError::required(place("status"), ""));
        } else if !values.contains(&status) {
            let values: Vec<_> = values.iter().map(|value| (*value).into()).collect();
            let status = &condition["status"];
            errors.push(FieldError::not_supported(place("status"), status, &values));
        }
        let other = match kind {
            "Approved" => "Denied",
            _ => "Approved",
        };
        if DECISIONS.contains(&kind) && kinds.contains(other) {
            let why = "Approved and Denied conditions are mutually exclusive";
            errors.push(FieldError::invalid(CONDITIONS, &condition["type"], why));
        }
        if !kinds.insert(kind) {
            errors.push(FieldError::duplicate(place("type"), &condition["type"]));
        }
    }
    errors
}

fn check_certificate(text: &str) -> Result<(), &'static str> {
    let pem = STANDARD.decode(text).unwrap_or_default();
    if pem.is_empty() {
        return Ok(());
    }
    let mut blocks = 0;
    for block in <(SectionKind, Vec<u8>)>::pem_slice_iter(&pem) {
        let (kind, der) = block.map_err(|_| "the certificate is no valid PEM")?;
        if kind != SectionKind::Certificate {
            return Err("only CERTIFICATE PEM blocks are allowed");
        }
        X509Certificate::from_der(&der).map_err(|_| "the certificate cannot be parsed")?;
        blocks += 1;
    }
    if blocks == 0 { Err("must contain at least one CERTIFICATE PEM block") } else { Ok(()) }
}

/// Sets the missing times of conditions. A condition that keeps its status keeps its transition
/// time.
fn set_times(new: &mut Value, old: &Value) {
    let now = json!(timestamp(0));
    for condition in new["status"]["conditions"].as_array_mut().into_iter().flatten() {
        if condition["lastUpdateTime"].is_null() {
            condition["lastUpdateTime"] = now.clone();
        }
        if condition["lastTransitionTime"].is_null() {
            let mut same = conditions(old).filter(|old| {
                old["type"] == condition["type"] && old["status"] == condition["status"]
            });
            let since = same.find_map(|old| old.get("lastTransitionTime")).unwrap_or(&now);
            condition["lastTransitionTime"] = since.clone();
        }
    }
}

fn conditions(request: &Value) -> impl Iterator<Item = &Value> {
    request["status"]["conditions"].as_array().into_iter().flatten()
}

fn of_kind<'a>(request: &'a Value, kind: &str) -> impl Iterator<Item = &'a Value> {
    conditions(request).filter(move |condition| condition["type"] == kind)
}

fn certificate(request: &Value) -> &str {
    request["status"]["certificate"].as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn request(conditions: &[(&str, &str)]) -> Value {
        let conditions =
            conditions.iter().map(|(kind, status)| json!({"type": kind, "status": status}));
        json!({"status": {"conditions": conditions.collect::<Vec<_>>()}})
    }

    fn fields(errors: &[FieldError]) -> Vec<&str> {
        let of_status = errors.iter().map(|error| &*error.field);
        of_status.filter(|field| field.starts_with("status")).collect()
    }

    const APPROVED: (&str, &str) = ("Approved", "True");
    const DENIED: (&str, &str) = ("Denied", "True");

    #[rstest]
    #[case(&[], &[APPROVED], &[])]
    #[case(&[], &[("Approved", "False")], &["status.conditions[0].status"])]
    #[case(&[], &[("Other", "")], &["status.conditions[0].status"])]
    #[case(&[], &[("", "True")], &["status.conditions[0].type"])]
    #[case(&[], &[APPROVED, DENIED], &["status.conditions"])]
    #[case(&[], &[APPROVED, APPROVED], &["status.conditions[1].type"])]
    #[case(&[APPROVED], &[], &["status.conditions"])]
    #[case(&[APPROVED], &[APPROVED, ("Failed", "True")], &[])]
    fn the_approval_decides_once(
        #[case] old: &[(&str, &str)],
        #[case] new: &[(&str, &str)],
        #[case] expected: &[&str],
    ) {
        let errors = (APPROVAL.validate)(&request(new), &request(old));
        assert_eq!(fields(&errors), expected);
    }

    #[rstest]
    #[case(&[], &[APPROVED], &["status.conditions"])]
    #[case(&[APPROVED], &[APPROVED, ("Failed", "True")], &[])]
    #[case(&[APPROVED], &[], &["status.conditions"])]
    fn the_status_does_not_decide(
        #[case] old: &[(&str, &str)],
        #[case] new: &[(&str, &str)],
        #[case] expected: &[&str],
    ) {
        let old = request(old);
        let mut new = request(new);
        new["metadata"] = json!({});
        prepare_status(&mut new, &old);
        assert_eq!(fields(&validate_status(&new, &old)), expected);
    }

    #[test]
    fn a_certificate_is_set_once_and_is_pem() {
        let with = |text: &str| json!({"status": {"certificate": STANDARD.encode(text)}});
        let key = rcgen::KeyPair::generate().expect("a key");
        let params = rcgen::CertificateParams::new(Vec::new()).expect("parameters");
        let pem = params.self_signed(&key).expect("a certificate").pem();
        let errors = |new: &Value, old: &Value| validate_status(new, old).len();
        let base = errors(&json!({}), &json!({}));
        assert_eq!(errors(&with(&pem), &json!({})), base);
        assert_eq!(errors(&with("text"), &json!({})), base + 1);
        assert_eq!(errors(&with(&key.serialize_pem()), &json!({})), base + 1);
        assert_eq!(errors(&with(&pem.repeat(2)), &with(&pem)), base + 1);
        assert_eq!((APPROVAL.validate)(&with(&pem), &json!({})).len(), base + 1);
    }

    #[test]
    fn conditions_get_their_times() {
        let mut new = request(&[APPROVED, DENIED]);
        let mut old = request(&[APPROVED]);
        old["status"]["conditions"][0]["lastTransitionTime"] = json!("2020-01-01T00:00:00Z");
        set_times(&mut new, &old);
        let conditions = &new["status"]["conditions"];
        assert_eq!(conditions[0]["lastTransitionTime"], "2020-01-01T00:00:00Z");
        assert_eq!(conditions[1]["lastTransitionTime"], conditions[1]["lastUpdateTime"]);
    }
}
