//! Validates a definition in the order of kube-apiserver, with its words.

mod completeness;
mod conversion;
mod defaults;
mod field_path;
mod lists;
mod names;
mod rules;
mod schema;
mod shared;
mod spec;
mod structural;
mod version;

use kubeproof_apimachinery::schema::{FieldError, Format, Path};
use serde_json::{Value, json};

use super::text;

/// The annotation that a protected group requires.
const APPROVAL: &str = "api-approved.kubernetes.io";

/// Returns the errors in a manifest with defaults from [`super::complete`].
pub(crate) fn validate(definition: &Value) -> Vec<FieldError> {
    let root = Path::Root;
    let path = root.field("spec");
    let spec = shared::internal(&definition["spec"]);
    let mut errors = validate_name(definition);
    errors.extend(spec::validate(&spec, path));
    errors.extend(validate_storage(&spec["versions"]));
    errors.extend(validate_approval(definition));
    if spec["preserveUnknownFields"] == true {
        let why = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in \
                   spec.versions[*].schema instead";
        errors.push(FieldError::invalid(path.field("preserveUnknownFields"), &json!(true), why));
    }
    errors
}

/// Returns the errors of an update. Existing objects and clients depend on some fields.
pub(crate) fn validate_update(new: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for pointer in ["/spec/scope", "/spec/names/kind", "/spec/group", "/spec/names/plural"] {
        let now = new.pointer(pointer).unwrap_or(&Value::Null);
        if Some(now) != old.pointer(pointer) {
            let place = pointer.trim_start_matches('/').replace('/', ".");
            errors.push(FieldError::invalid(place, now, "field is immutable"));
        }
    }
    let stored = old["status"]["storedVersions"].as_array().into_iter().flatten();
    for (index, name) in stored.enumerate() {
        let mut versions = new["spec"]["versions"].as_array().into_iter().flatten();
        if !versions.any(|version| version["name"] == *name) {
            let version = name.as_str().unwrap_or_default();
            let why = format!(
                "missing from spec.versions; {version} was previously a storage version, and must \
                 remain in spec.versions until a storage migration ensures no data remains \
                 persisted in {version} and removes {version} from status.storedVersions"
            );
            errors.push(FieldError::invalid(format!("status.storedVersions[{index}]"), name, &why));
        }
    }
    errors
}

fn validate_name(definition: &Value) -> Vec<FieldError> {
    let spec = &definition["spec"];
    let name = &definition["metadata"]["name"];
    let expected = format!("{}.{}", text(&spec["names"], "plural"), text(spec, "group"));
    let why = "must be spec.names.plural+\".\"+spec.group";
    // Another check reports an absent name.
    let wrong = !text(&definition["metadata"], "name").is_empty() && *name != expected;
    wrong.then(|| FieldError::invalid("metadata.name", name, why)).into_iter().collect()
}

/// The first storage version is the stored one. It must be the only one.
fn validate_storage(versions: &Value) -> Vec<FieldError> {
    let versions = versions.as_array().into_iter().flatten();
    let mut stored = versions.filter(|version| version["storage"] == true);
    let path = "status.storedVersions";
    let Some(first) = stored.next() else {
        let why = "must have at least one stored version";
        return vec![FieldError::invalid(path, &Value::Null, why)];
    };
    let shown = json!([first["name"]]);
    let missing = |other: &Value| {
        let why = format!("must have the storage version {}", text(other, "name"));
        FieldError::invalid(path, &shown, &why)
    };
    stored.filter(|other| other["name"] != first["name"]).map(missing).collect()
}

fn validate_approval(definition: &Value) -> Option<FieldError> {
    let group = text(&definition["spec"], "group");
    let protected = ["k8s.io", "kubernetes.io"];
    let is_protected = |domain: &str| {
        group.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    };
    if !protected.into_iter().any(is_protected) {
        return None;
    }
    let path = format!("metadata.annotations[{APPROVAL}]");
    let link = "https://github.com/kubernetes/enhancements/pull/1111";
    let is_url = |text: &str| {
        let host = text.split_once("://").map(|(_, rest)| rest);
        Format::from_name("uri").accepts(text)
            && host.is_some_and(|host| !host.is_empty() && !host.starts_with('/'))
    };
    match text(&definition["metadata"]["annotations"], APPROVAL) {
        "" => {
            let why = format!(
                "protected groups must have approval annotation \"{APPROVAL}\", see {link}"
            );
            Some(FieldError::required(path, &why))
        }
        approval if approval.starts_with("unapproved") || is_url(approval) => None,
        approval => {
            let why = format!(
                "protected groups must have approval annotation \"{APPROVAL}\" with either a URL \
                 or a reason starting with \"unapproved\", see {link}"
            );
            Some(FieldError::invalid(path, &json!(approval), &why))
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::registry::crd::tests::manifest;
    use kubeproof_apimachinery::schema::CauseReason::{self, *};

    fn mistakes(vary: fn(&mut Value)) -> Vec<(String, CauseReason)> {
        let mut definition = manifest();
        vary(&mut definition);
        crate::registry::crd::complete(&mut definition);
        validate(&definition).into_iter().map(|error| (error.field, error.reason)).collect()
    }

    #[rstest]
    #[case(|_: &mut Value| (), &[])]
    #[case(
        |d: &mut Value| d["metadata"]["name"] = json!("other.example.com"),
        &[("metadata.name", FieldValueInvalid)]
    )]
    #[case(
        |d: &mut Value| {
            d["spec"]["group"] = json!("x.k8s.io");
            d["metadata"]["name"] = json!("widgets.x.k8s.io");
        },
        &[("metadata.annotations[api-approved.kubernetes.io]", FieldValueRequired)]
    )]
    #[case(
        |d: &mut Value| {
            d["spec"]["group"] = json!("x");
            d["metadata"]["name"] = json!("widgets.x");
        },
        &[("spec.group", FieldValueInvalid)]
    )]
    #[case(
        |d: &mut Value| {
            d["spec"]["group"] = json!("k8s.io");
            d["metadata"]["name"] = json!("widgets.k8s.io");
            d["metadata"]["annotations"] = json!({"api-approved.kubernetes.io": "later"});
        },
        &[("metadata.annotations[api-approved.kubernetes.io]", FieldValueInvalid)]
    )]
    #[case(
        |d: &mut Value| {
            d["spec"]["group"] = json!("k8s.io");
            d["metadata"]["name"] = json!("widgets.k8s.io");
            d["metadata"]["annotations"] = json!({"api-approved.kubernetes.io": "unapproved"});
        },
        &[]
    )]
    // kube-apiserver does not look for the schema that the versions share.
    #[case(
        |d: &mut Value| {
            let mut version = d["spec"]["versions"][0].clone();
            version["name"] = json!("v2");
            version["storage"] = json!(false);
            version["selectableFields"] = Value::Null;
            d["spec"]["versions"].as_array_mut().unwrap().push(version);
        },
        &[("spec.versions[0].selectableFields", FieldValueInvalid)]
    )]
    #[case(
        |d: &mut Value| d["spec"]["names"]["shortNames"] = json!([""]),
        &[("spec.names.shortNames[0]", FieldValueInvalid)]
    )]
    #[case(
        |d: &mut Value| d["spec"]["versions"][0]["deprecationWarning"] = json!("old"),
        &[("spec.versions[0].deprecationWarning", FieldValueInvalid)]
    )]
    #[case(
        |d: &mut Value| d["spec"]["names"]["shortNames"] = json!(["ok", "No_"]),
        &[("spec.names.shortNames[1]", FieldValueInvalid)]
    )]
    #[case(
        |d: &mut Value| d["spec"]["names"]["listKind"] = json!("Widget"),
        &[("spec.names.listKind", FieldValueInvalid)]
    )]
    #[case(
        |d: &mut Value| d["spec"]["versions"][0]["storage"] = json!(false),
        &[("spec.versions", FieldValueInvalid), ("status.storedVersions", FieldValueInvalid)]
    )]
    #[case(
        |d: &mut Value| {
            let version = d["spec"]["versions"][0].clone();
            d["spec"]["versions"] = json!([version, version]);
        },
        &[("spec.versions", FieldValueInvalid), ("spec.versions", FieldValueInvalid)]
    )]
    #[case(
        |d: &mut Value| d["spec"]["preserveUnknownFields"] = json!(true),
        &[
            ("spec.preserveUnknownFields", FieldValueInvalid),
            ("spec.preserveUnknownFields", FieldValueInvalid),
        ]
    )]
    #[case(
        |d: &mut Value| d["spec"]["conversion"] = json!({"strategy": "Webhook"}),
        &[
            ("spec.conversion.webhookClientConfig", FieldValueRequired),
            ("spec.conversion.conversionReviewVersions", FieldValueRequired),
        ]
    )]
    #[case(|d: &mut Value| d["spec"]["versions"][0]["schema"] = Value::Null,
           &[
               ("spec.versions[0].schema.openAPIV3Schema", FieldValueRequired),
               ("spec.selectableFields", FieldValueInvalid),
           ])]
    #[case(
        |d: &mut Value| {
            let scale = &mut d["spec"]["versions"][0]["subresources"]["scale"];
            scale["specReplicasPath"] = json!("spec.replicas");
        },
        &[("spec.subresources.scale.specReplicasPath", FieldValueInvalid)]
    )]
    #[case(
        |d: &mut Value| {
            let columns = json!([{"name": "A", "type": "text", "jsonPath": "a"}]);
            d["spec"]["versions"][0]["additionalPrinterColumns"] = columns;
        },
        &[
            ("spec.additionalPrinterColumns[0].type", FieldValueInvalid),
            ("spec.additionalPrinterColumns[0].JSONPath", FieldValueInvalid),
        ]
    )]
    #[case(
        |d: &mut Value| {
            d["spec"]["versions"][0]["selectableFields"] = json!([{"jsonPath": ".spec"}]);
        },
        &[("spec.selectableFields[0].jsonPath", FieldValueInvalid)]
    )]
    fn mistakes_name_their_field(
        #[case] vary: fn(&mut Value),
        #[case] expected: &[(&str, CauseReason)],
    ) {
        let expected: Vec<_> =
            expected.iter().map(|(field, reason)| ((*field).to_owned(), *reason)).collect();
        assert_eq!(mistakes(vary), expected);
    }

    #[rstest]
    #[case(|d: &mut Value| d["spec"]["scope"] = json!("Cluster"), &["spec.scope"])]
    #[case(|d: &mut Value| d["spec"]["group"] = json!("other.example.com"), &["spec.group"])]
    #[case(
        |d: &mut Value| d["spec"]["versions"][0]["name"] = json!("v2"),
        &["status.storedVersions[0]"]
    )]
    #[case(|d: &mut Value| d["spec"]["names"]["shortNames"] = json!(["wd"]), &[])]
    fn what_clients_rely_on_stays(#[case] vary: fn(&mut Value), #[case] expected: &[&str]) {
        let mut old = manifest();
        old["status"] = json!({"storedVersions": ["v1"]});
        let mut new = old.clone();
        vary(&mut new);
        let errors = validate_update(&new, &old);
        assert_eq!(errors.into_iter().map(|error| error.field).collect::<Vec<_>>(), expected);
    }
}
