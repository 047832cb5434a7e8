//! The group `certificates.k8s.io/v1`: requests for certificates.

mod conditions;

use std::collections::HashSet;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::data::{hooks, resource};
use super::{BuiltinType, FieldLabel, Hooks, NameRule, PART_VERBS, Subresource, restore};
use crate::authentication::User;
use crate::certificates::CertificateRequest;
use crate::registry::strategy::Strategy;
use kubeproof_apimachinery::object::validation::names::{dns_label, dns_subdomain};
use kubeproof_apimachinery::schema::FieldError;
use kubeproof_apimachinery::table::column::{Cell, age, column};
use kubeproof_apimachinery::table::human_duration;

const LABELS: &[FieldLabel] =
    &[FieldLabel { label: "spec.signerName", pointer: "/spec/signerName", absent: "" }];

/// The group of the type.
pub(crate) const GROUP: &str = "certificates.k8s.io";
/// Its signer accepts no new requests in this version.
const LEGACY_SIGNER: &str = "kubernetes.io/legacy-unknown";

const SUBRESOURCES: &[Subresource] = &[Subresource {
    name: "approval",
    verbs: PART_VERBS,
    group: GROUP,
    version: "v1",
    kind: "CertificateSigningRequest",
    part: Some(&conditions::APPROVAL),
}];

pub(super) fn types() -> Vec<BuiltinType> {
    vec![BuiltinType {
        name_rule: NameRule::PathSegment,
        has_generation: false,
        subresources: SUBRESOURCES,
        strategy: || Arc::new(RequestStrategy),
        field_labels: LABELS,
        columns: vec![
            age(),
            column("SignerName", "string", Cell::Pointer("/spec/signerName")),
            column(
                "Requestor",
                "string",
                Cell::Computed(|request| {
                    json!(request["spec"]["username"].as_str().unwrap_or_default())
                }),
            ),
            column(
                "RequestedDuration",
                "string",
                Cell::Computed(|request| {
                    let seconds = request["spec"]["expirationSeconds"].as_i64();
                    json!(seconds.map_or_else(|| "<none>".to_owned(), human_duration))
                }),
            ),
            column("Condition", "string", Cell::Computed(condition)),
        ],
        hooks: Hooks {
            validate,
            prepare_update: |new, old| {
                restore(new, old, "spec");
                restore(new, old, "status");
            },
            prepare_status_update: conditions::prepare_status,
            validate_status: conditions::validate_status,
            // As in kube-apiserver, the spec has no manager, because no update changes it.
            owned: &[&["metadata"]],
            is_new_generation: |_, _| false,
            ..hooks(true)
        },
        ..resource(GROUP, "v1", "certificatesigningrequests")
    }]
}

#[derive(Debug)]
struct RequestStrategy;

impl Strategy for RequestStrategy {
    /// The signer decides by the user, so a client cannot choose it.
    fn set_user(&self, request: &mut Value, user: &User) {
        let Some(spec) = request["spec"].as_object_mut() else { return };
        let Value::Object(mut info) = user.info() else { return };
        for field in ["username", "uid", "groups", "extra"] {
            match info.remove(field) {
                Some(value) => spec.insert(field.to_owned(), value),
                None => spec.remove(field),
            };
        }
    }
}

fn validate(request: &Value) -> Vec<FieldError> {
    let spec = &request["spec"];
    let mut errors = Vec::new();
    let text = spec["request"].as_str().unwrap_or_default();
    let pem = STANDARD.decode(text).unwrap_or_default();
    if let Err(error) = CertificateRequest::from_pem(&pem) {
        errors.push(FieldError::invalid("spec.request", &spec["request"], &error.to_string()));
    }
    if spec["usages"].as_array().is_none_or(Vec::is_empty) {
        errors.push(FieldError::required("spec.usages", ""));
    }
    let mut usages = HashSet::new();
    for (index, usage) in spec["usages"].as_array().into_iter().flatten().enumerate() {
        if !usages.insert(usage.as_str()) {
            errors.push(FieldError::duplicate(format!("spec.usages[{index}]"), usage));
        }
    }
    errors.extend(validate_signer(spec["signerName"].as_str().unwrap_or_default()));
    errors
}

fn validate_signer(name: &str) -> Vec<FieldError> {
    let error = |value: &str, why: &str| FieldError::invalid("spec.signerName", &json!(value), why);
    if name.is_empty() {
        return vec![FieldError::required("spec.signerName", "")];
    }
    if name == LEGACY_SIGNER {
        return vec![error(name, "the legacy signerName is not allowed via this API version")];
    }
    let (Some((domain, path)), 2) = (name.split_once('/'), name.split('/').count()) else {
        let why = "must be a fully qualified domain and path of the form \
                   'example.com/signer-name'";
        return vec![error(name, why)];
    };
    let mut errors = Vec::new();
    for label in domain.split('.') {
        errors.extend(dns_label(label).iter().map(|why| error(domain, why)));
    }
    if !domain.contains('.') {
        let why = "should be a domain with at least two segments separated by dots";
        errors.push(error(domain, why));
    }
    errors.extend(dns_subdomain(path).iter().map(|why| error(path, why)));
    errors
}

fn condition(request: &Value) -> Value {
    let conditions = request["status"]["conditions"].as_array().into_iter().flatten();
    let kinds: Vec<&str> = conditions.filter_map(|condition| condition["type"].as_str()).collect();
    let mut texts: Vec<&str> = Vec::new();
    for kind in ["Approved", "Denied", "Failed"] {
        if kinds.contains(&kind) {
            texts.push(kind);
        }
    }
    if texts.is_empty() {
        texts.push("Pending");
    }
    if request["status"]["certificate"].as_str().is_some_and(|text| !text.is_empty()) {
        texts.push("Issued");
    }
    json!(texts.join(","))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(|_: &mut Value| (), &[])]
    #[case(|s: &mut Value| s["request"] = json!("QQ=="), &["spec.request"])]
    #[case(|s: &mut Value| s["usages"] = json!([]), &["spec.usages"])]
    #[case(|s: &mut Value| s["usages"] = json!(["odd"]), &["spec.usages[0]"])]
    #[case(|s: &mut Value| s["usages"] = json!(["any", "any"]), &["spec.usages[1]"])]
    #[case(|s: &mut Value| s["signerName"] = json!("a"), &["spec.signerName"])]
    #[case(|s: &mut Value| s["signerName"] = json!("a/b"), &["spec.signerName"])]
    #[case(|s: &mut Value| s["signerName"] = json!("A.b/c"), &["spec.signerName"])]
    #[case(|s: &mut Value| s["signerName"] = json!("a.b/"), &["spec.signerName"])]
    #[case(|s: &mut Value| s["signerName"] = json!(LEGACY_SIGNER), &["spec.signerName"])]
    #[case(|s: &mut Value| s["expirationSeconds"] = json!(1), &["spec.expirationSeconds"])]
    fn requests_are_validated(#[case] vary: fn(&mut Value), #[case] expected: &[&str]) {
        let key = rcgen::KeyPair::generate().expect("a key");
        let params = rcgen::CertificateParams::new(Vec::new()).expect("parameters");
        let pem = params.serialize_request(&key).and_then(|it| it.pem()).expect("a request");
        let mut spec = json!({
            "request": STANDARD.encode(pem), "usages": ["client auth"], "signerName": "a.b/c",
        });
        vary(&mut spec);
        let request = json!({ "spec": spec });
        let ty = &types()[0];
        let mut errors = ty.schema().validate(&request, None);
        errors.extend(validate(&request));
        assert_eq!(errors.iter().map(|error| &*error.field).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn conditions_are_a_cell() {
        let status = json!({"conditions": [{"type": "Approved"}], "certificate": "QQ=="});
        assert_eq!(condition(&json!({ "status": status })), "Approved,Issued");
        assert_eq!(condition(&json!({})), "Pending");
    }
}
