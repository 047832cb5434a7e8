//! Validation of embedded objects (`x-kubernetes-embedded-resource`).
//!
//! An embedded object has a kind, a version and valid metadata, like any object. Its name is not
//! restricted, because the rules of its kind are unknown here.

use serde_json::{Map, Value};

use super::{FieldError, Path};
use crate::object::validation::metadata::validate_labels;
use crate::object::validation::names::{dns_subdomain, rfc1035_label};

/// Returns the mistakes of an embedded object that its schema does not cover.
pub(super) fn mistakes(fields: &Map<String, Value>, path: Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for field in ["apiVersion", "kind"] {
        let at = path.field(field);
        let text = match fields.get(field) {
            Some(Value::String(text)) if !text.is_empty() => text,
            // The schema reports a value of another type.
            Some(Value::String(_)) | None => {
                errors.push(FieldError::required(at, "must not be empty"));
                continue;
            }
            Some(_) => continue,
        };
        let wrong =
            if field == "kind" { rfc1035_label(&text.to_lowercase()) } else { api_version(text) };
        errors.extend(wrong.iter().map(|why| FieldError::invalid(at, &text.as_str().into(), why)));
    }
    let metadata = path.field("metadata");
    let labels = fields.get("metadata").and_then(|metadata| metadata.get("labels"));
    errors.extend(validate_labels(labels, metadata.field("labels")));
    errors
}

/// Checks an API version: `v1`, or a group and a version with one slash between them.
fn api_version(text: &str) -> Vec<String> {
    let (group, version) = text.rsplit_once('/').unwrap_or(("", text));
    let mut wrong = if group.is_empty() { Vec::new() } else { dns_subdomain(group) };
    wrong.extend(rfc1035_label(version));
    if text.starts_with('/') {
        wrong.push("must not have an empty group before its slash".to_owned());
    }
    wrong
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case(json!({"apiVersion": "v1", "kind": "Pod"}), &[])]
    #[case(
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "Any Name", "labels": {"a": "b"}},
        }),
        &[]
    )]
    #[case(json!({}), &["o.apiVersion", "o.kind"])]
    #[case(json!({"apiVersion": "a/b/c", "kind": "pod"}), &["o.apiVersion"])]
    #[case(json!({"apiVersion": "/v1", "kind": "no kind"}), &["o.apiVersion", "o.kind"])]
    #[case(
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": {"a b": "c"}}}),
        &["o.metadata.labels"]
    )]
    fn mistakes_have_their_paths(#[case] object: Value, #[case] expected: &[&str]) {
        let fields = object.as_object().expect("an object");
        let found: Vec<_> =
            mistakes(fields, Path::Root.field("o")).into_iter().map(|error| error.field).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn an_empty_field_counts_as_missing() {
        let fields =
            Map::from_iter(["apiVersion", "kind"].map(|name| (name.to_owned(), Value::from(""))));
        assert_eq!(mistakes(&fields, Path::Root), mistakes(&Map::new(), Path::Root));
    }
}
