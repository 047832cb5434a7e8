//! Validates the names of a resource.

use kubeproof_apimachinery::object::validation::names::rfc1035_label;
use kubeproof_apimachinery::schema::{FieldError, Path};
use serde_json::Value;

use super::super::text;

const REQUIRED: [&str; 4] = ["plural", "singular", "kind", "listKind"];

/// Returns the errors of `spec.names`.
pub(super) fn validate(names: &Value, path: Path<'_>) -> Vec<FieldError> {
    let missing = REQUIRED.iter().filter(|field| text(names, field).is_empty());
    let mut errors: Vec<_> =
        missing.map(|field| FieldError::required(path.field(field), "")).collect();
    for field in ["plural", "singular"] {
        let name = text(names, field);
        errors.extend(label(name, &names[field], path.field(field), "", name.is_empty()));
    }
    for field in ["kind", "listKind"] {
        let name = text(names, field).to_lowercase();
        let prefix = "may have mixed case, but should otherwise match: ";
        errors.extend(label(&name, &names[field], path.field(field), prefix, name.is_empty()));
    }
    errors.extend(labels(&names["shortNames"], path.field("shortNames")));
    let kind = &names["kind"];
    if !text(names, "kind").is_empty() && *kind == names["listKind"] {
        let why = "kind and listKind may not be the same";
        errors.push(FieldError::invalid(path.field("listKind"), kind, why));
    }
    errors.extend(labels(&names["categories"], path.field("categories")));
    errors
}

fn labels(list: &Value, path: Path<'_>) -> Vec<FieldError> {
    let items = list.as_array().into_iter().flatten().enumerate();
    let check = |(index, item): (usize, &Value)| {
        let name = item.as_str().unwrap_or_default();
        label(name, &Value::from(name), path.index(index), "", false)
    };
    items.filter_map(check).collect()
}

/// Returns all mistakes in a label as one error.
fn label(
    name: &str,
    shown: &Value,
    path: Path<'_>,
    prefix: &str,
    is_optional: bool,
) -> Option<FieldError> {
    let wrong = if is_optional { Vec::new() } else { rfc1035_label(name) };
    let why = format!("{prefix}{}", wrong.join(","));
    (!wrong.is_empty()).then(|| FieldError::invalid(path, shown, &why))
}
