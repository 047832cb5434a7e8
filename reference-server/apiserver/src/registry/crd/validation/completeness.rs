//! Checks that `allOf`, `anyOf`, `oneOf` and `not` restrict only fields that the structure has.

use kubeproof_apimachinery::schema::{FieldError, Path};
use serde_json::Value;

/// Returns the errors of a schema at `path`.
pub(super) fn validate(document: &Value, path: Path<'_>) -> Vec<FieldError> {
    parts(document, Some(document), path, path)
}

/// Compares the parts of `document` at `place` with the structure at `path`.
fn parts(
    document: &Value,
    structure: Option<&Value>,
    path: Path<'_>,
    place: Path<'_>,
) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if let Some(part) = document.get("not") {
        errors.extend(part_of(part, structure, path, place.field("not")));
    }
    for keyword in ["allOf", "anyOf", "oneOf"] {
        let place = place.field(keyword);
        for (index, part) in document[keyword].as_array().into_iter().flatten().enumerate() {
            errors.extend(part_of(part, structure, path, place.index(index)));
        }
    }
    errors
}

fn part_of(
    part: &Value,
    structure: Option<&Value>,
    path: Path<'_>,
    place: Path<'_>,
) -> Vec<FieldError> {
    let Some(structure) = structure else {
        let why = format!("because it is defined in {place}");
        return vec![FieldError::required(path, &why)];
    };
    let mut errors = parts(part, Some(structure), path, place);
    if let Some(items) = part.get("items") {
        let declared = structure.get("items");
        errors.extend(part_of(items, declared, path.field("items"), place.field("items")));
    }
    let (properties, given) = (path.field("properties"), place.field("properties"));
    for (name, child) in part["properties"].as_object().into_iter().flatten() {
        let declared = structure["properties"].get(name);
        errors.extend(part_of(child, declared, properties.key(name), given.key(name)));
    }
    errors
}
