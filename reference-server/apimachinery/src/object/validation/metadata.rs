//! The rules for `metadata`, which are the same for every kind.

use serde_json::{Value, json};

use super::names::{NameRule, label_value, qualified_name};

use crate::field::{FieldError, Path};

/// The maximum total size of the keys and values of the annotations of an object, in bytes.
const ANNOTATIONS_LIMIT: usize = 256 * 1024;

/// Finalizers without a domain.
const STANDARD_FINALIZERS: [&str; 3] = ["orphan", "foregroundDeletion", "kubernetes"];
const UNQUALIFIED_FINALIZER: &str =
    "name is neither a standard finalizer name nor is it fully qualified";

/// The parameters of the checks of `metadata`.
#[derive(Clone, Copy, Debug)]
pub struct MetaRules {
    /// The rule for the name.
    pub name: NameRule,
    /// Finalizers must have a domain. For custom resources this is only a recommendation.
    pub qualified_finalizers: bool,
}

/// Returns the mistakes in the `metadata` of a new object. The name must already be set, even if it
/// is generated.
pub fn validate(object: &Value, rules: MetaRules) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if let Some(metadata) = object.get("metadata") {
        errors.extend(validate_prefix(object, rules.name));
        validate_names(metadata, rules.name, &mut errors);
        if metadata["generation"].as_i64().is_some_and(|generation| generation < 0) {
            let why = "must be greater than or equal to 0";
            let generation = &metadata["generation"];
            errors.push(FieldError::invalid("metadata.generation", generation, why));
        }
    }
    errors.extend(validate_changed(object, rules));
    errors
}

/// Returns the mistakes in the `metadata` of a changed object. Its name is final, so nothing uses
/// `generateName`.
pub fn validate_changed(object: &Value, rules: MetaRules) -> Vec<FieldError> {
    let Some(metadata) = object.get("metadata") else {
        return vec![FieldError::required("metadata", "")];
    };
    let mut errors = Vec::new();
    let path = Path::Root.field("metadata");
    errors.extend(validate_labels(metadata.get("labels"), path.field("labels")));
    errors.extend(validate_annotations(metadata.get("annotations"), path.field("annotations")));
    validate_owners(metadata.get("ownerReferences"), &mut errors);
    validate_finalizers(metadata.get("finalizers"), rules, &mut errors);
    errors
}

/// Returns the mistakes of an update in `metadata`: the fields that the client may not change. The
/// server must already have restored the fields that it restores silently (uid, creationTimestamp,
/// generation).
pub fn validate_update(new: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for field in [
        "name",
        "namespace",
        "uid",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
    ] {
        let pointer = format!("/metadata/{field}");
        let (new, old) = (new.pointer(&pointer), old.pointer(&pointer));
        if new != old {
            let place = format!("metadata.{field}");
            errors.push(FieldError::invalid(
                place,
                new.unwrap_or(&Value::Null),
                "field is immutable",
            ));
        }
    }
    errors
}

/// The maximum number of mistakes that are collected in the metadata of an object. It can have as
/// many labels, owners and finalizers as bytes.
const MAX_ERRORS: usize = 1_000;

/// Returns the mistakes in a map of labels, also in a pod template or a selector.
pub fn validate_labels(labels: Option<&Value>, path: Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (key, value) in labels.and_then(Value::as_object).into_iter().flatten() {
        if errors.len() >= MAX_ERRORS {
            break;
        }
        errors.extend(
            qualified_name(key).iter().map(|why| FieldError::invalid(path, &json!(key), why)),
        );
        let text = value.as_str().unwrap_or_default();
        errors.extend(label_value(text).iter().map(|why| FieldError::invalid(path, value, why)));
    }
    errors
}

/// Returns the mistakes in the prefix of a generated name. Some types check it on each update.
pub fn validate_prefix(object: &Value, rule: NameRule) -> Vec<FieldError> {
    let prefix = object["metadata"]["generateName"].as_str().unwrap_or_default();
    let wrong = if prefix.is_empty() { Vec::new() } else { rule.check(prefix, true) };
    let error = |why: &String| FieldError::invalid("metadata.generateName", &json!(prefix), why);
    wrong.iter().map(error).collect()
}

fn validate_names(metadata: &Value, rule: NameRule, errors: &mut Vec<FieldError>) {
    let name = metadata.get("name").and_then(Value::as_str).unwrap_or_default();
    if name.is_empty() {
        errors.push(FieldError::required("metadata.name", "name or generateName is required"));
    } else {
        let wrong = rule.check(name, false);
        errors.extend(
            wrong.iter().map(|why| FieldError::invalid("metadata.name", &json!(name), why)),
        );
    }
}

/// Returns the mistakes in a map of annotations, also in a pod template.
pub fn validate_annotations(annotations: Option<&Value>, path: Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut size = 0;
    for (key, value) in annotations.and_then(Value::as_object).into_iter().flatten() {
        if errors.len() >= MAX_ERRORS {
            break;
        }
        // Upper case is permitted, because annotation prefixes are older than the rule for them.
        let wrong = qualified_name(&key.to_lowercase());
        errors.extend(wrong.iter().map(|why| FieldError::invalid(path, &json!(key), why)));
        size += key.len() + value.as_str().map_or(0, str::len);
    }
    if size > ANNOTATIONS_LIMIT {
        errors.push(FieldError::too_long(path, ANNOTATIONS_LIMIT as u64));
    }
    errors
}

fn validate_owners(owners: Option<&Value>, errors: &mut Vec<FieldError>) {
    let owners = owners.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    for owner in owners {
        if errors.len() >= MAX_ERRORS {
            break;
        }
        let text = |field: &str| owner.get(field).and_then(Value::as_str).unwrap_or_default();
        let (api_version, kind) = (text("apiVersion"), text("kind"));
        if api_version.is_empty()
            || api_version.matches('/').count() > 1
            || api_version.ends_with('/')
        {
            let field = "metadata.ownerReferences.apiVersion";
            errors.push(FieldError::invalid(
                field,
                &json!(api_version),
                "version must not be empty",
            ));
        }
        for field in ["kind", "name", "uid"] {
            if text(field).is_empty() {
                let place = format!("metadata.ownerReferences.{field}");
                errors.push(FieldError::invalid(place, &json!(""), "must not be empty"));
            }
        }
        if kind == "Event" && (api_version == "v1" || api_version.starts_with("events.k8s.io/")) {
            let detail = format!("{api_version}, Kind=Event is disallowed from being an owner");
            errors.push(FieldError::invalid("metadata.ownerReferences", owner, &detail));
        }
    }
    let controllers =
        owners.iter().filter(|owner| owner.get("controller") == Some(&json!(true))).count();
    if controllers > 1 {
        let detail = format!(
            "Only one reference can have Controller set to true. Found {controllers} references"
        );
        errors.push(FieldError::invalid("metadata.ownerReferences", &json!(owners), &detail));
    }
}

/// Returns the errors in the name of a finalizer of a built-in type.
pub fn finalizer_name(name: &str) -> Vec<String> {
    let mut errors = qualified_name(name);
    errors.extend(is_unqualified(name).then(|| UNQUALIFIED_FINALIZER.to_owned()));
    errors
}

fn is_unqualified(name: &str) -> bool {
    !name.contains('/') && !STANDARD_FINALIZERS.contains(&name)
}

fn validate_finalizers(finalizers: Option<&Value>, rules: MetaRules, errors: &mut Vec<FieldError>) {
    let finalizers = finalizers.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    for (index, finalizer) in finalizers.iter().enumerate() {
        if errors.len() >= MAX_ERRORS {
            break;
        }
        let name = finalizer.as_str().unwrap_or_default();
        // kube-apiserver checks the syntax without the index, and then built-in types with it.
        for why in qualified_name(name) {
            errors.push(FieldError::invalid("metadata.finalizers", finalizer, &why));
        }
        if rules.qualified_finalizers && is_unqualified(name) {
            let place = format!("metadata.finalizers[{index}]");
            errors.push(FieldError::invalid(place, finalizer, UNQUALIFIED_FINALIZER));
        }
    }
    if finalizers.contains(&json!("orphan")) && finalizers.contains(&json!("foregroundDeletion")) {
        let why = "finalizer orphan and foregroundDeletion cannot be both set";
        errors.push(FieldError::invalid("metadata.finalizers", &json!(finalizers), why));
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    const RULES: MetaRules = MetaRules { name: NameRule::DnsSubdomain, qualified_finalizers: true };

    fn fields(metadata: &Value, rules: MetaRules) -> Vec<String> {
        let object = json!({ "metadata": metadata });
        validate(&object, rules).into_iter().map(|error| error.field).collect()
    }

    #[rstest]
    #[case(json!({"name": "a"}), &[])]
    #[case(json!({}), &["metadata.name"])]
    #[case(json!({"name": "A"}), &["metadata.name"])]
    #[case(json!({"name": "a", "generation": -1}), &["metadata.generation"])]
    #[case(json!({"name": "a", "generateName": "B-"}), &["metadata.generateName"])]
    #[case(json!({"name": "a", "labels": {"a b": "x"}}), &["metadata.labels"])]
    #[case(json!({"name": "a", "labels": {"a": "-x"}}), &["metadata.labels"])]
    #[case(json!({"name": "a", "annotations": {"a b": "x"}}), &["metadata.annotations"])]
    #[case(json!({"name": "a", "annotations": {"Example.com/a": "any text"}}), &[])]
    #[case(
        json!({"name": "a", "finalizers": ["example.com/ok", "foo"]}),
        &["metadata.finalizers[1]"]
    )]
    #[case(
        json!({"name": "a", "finalizers": ["orphan", "foregroundDeletion"]}),
        &["metadata.finalizers"]
    )]
    #[case(
        json!({"name": "a", "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p"}]}),
        &["metadata.ownerReferences.uid"]
    )]
    #[case(
        json!({
            "name": "a",
            "ownerReferences": [{"apiVersion": "v1", "kind": "Event", "name": "p", "uid": "u"}],
        }),
        &["metadata.ownerReferences"]
    )]
    fn mistakes_have_their_path(#[case] metadata: Value, #[case] expected: &[&str]) {
        assert_eq!(fields(&metadata, RULES), expected);
    }

    #[test]
    fn a_change_does_not_generate_a_name() {
        let object = json!({"metadata": {"name": "a", "generateName": "B-"}});
        assert_eq!(validate(&object, RULES).len(), 1);
        assert_eq!(validate_changed(&object, RULES), []);
    }

    #[test]
    fn annotations_have_a_limit_in_bytes() {
        let full = json!({"name": "a", "annotations": {"k": "x".repeat(ANNOTATIONS_LIMIT - 1)}});
        assert!(fields(&full, RULES).is_empty());
        let over = json!({"name": "a", "annotations": {"k": "x".repeat(ANNOTATIONS_LIMIT)}});
        assert_eq!(fields(&over, RULES), ["metadata.annotations"]);
    }

    #[test]
    fn immutable_fields_of_metadata_cannot_change() {
        let old = json!({"metadata": {"name": "a", "uid": "1"}});
        let new = json!({
            "metadata": {"name": "a", "uid": "2", "deletionTimestamp": "2001-01-01T00:00:00Z"},
        });
        let fields: Vec<_> =
            validate_update(&new, &old).into_iter().map(|error| error.field).collect();
        assert_eq!(fields, ["metadata.uid", "metadata.deletionTimestamp"]);
    }
}
