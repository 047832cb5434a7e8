//! The group `certificates.k8s.io/v1`: requests for certificates.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::data::{hooks, resource};
use super::{BuiltinType, FieldLabel, Hooks, immutable};
use kubeproof_apimachinery::schema::FieldError;
use kubeproof_apimachinery::table::column::{Cell, age, column};
use kubeproof_apimachinery::table::human_duration;

const LABELS: &[FieldLabel] =
    &[FieldLabel { label: "spec.signerName", pointer: "/spec/signerName", absent: "" }];

pub(super) fn types() -> Vec<BuiltinType> {
    vec![BuiltinType {
        has_generation: false,
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
            validate_update: |new, old| immutable(new, old, &["spec"]),
            is_new_generation: |_, _| false,
            ..hooks(true)
        },
        ..resource("certificates.k8s.io", "v1", "certificatesigningrequests")
    }]
}

fn validate(request: &Value) -> Vec<FieldError> {
    let spec = &request["spec"];
    let mut errors = Vec::new();
    let text = spec["request"].as_str().unwrap_or_default();
    let pem = STANDARD.decode(text).unwrap_or_default();
    let header = b"-----BEGIN CERTIFICATE REQUEST-----";
    if !text.is_empty() && !pem.windows(header.len()).any(|window| window == header) {
        let why = "PEM block type must be CERTIFICATE REQUEST";
        errors.push(FieldError::invalid("spec.request", &spec["request"], why));
    }
    if spec["usages"].as_array().is_none_or(Vec::is_empty) {
        errors.push(FieldError::required("spec.usages", ""));
    }
    let signer = spec["signerName"].as_str().unwrap_or_default();
    if !signer.is_empty() && signer.split('/').count() != 2 {
        let why = "must be a fully qualified domain and path of the form \
                   'example.com/signer-name'";
        errors.push(FieldError::invalid("spec.signerName", &spec["signerName"], why));
    }
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
    #[case(|s: &mut Value| s["signerName"] = json!("a"), &["spec.signerName"])]
    #[case(|s: &mut Value| s["expirationSeconds"] = json!(1), &["spec.expirationSeconds"])]
    fn requests_are_validated(#[case] vary: fn(&mut Value), #[case] expected: &[&str]) {
        let pem = STANDARD.encode("-----BEGIN CERTIFICATE REQUEST-----");
        let mut spec = json!({"request": pem, "usages": ["client auth"], "signerName": "a.b/c"});
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
