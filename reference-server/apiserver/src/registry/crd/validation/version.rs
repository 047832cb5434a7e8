//! Validates the parts of a version: the warning, the subresources, the columns and the fields for
//! selectors. The versions can share the last three.

use kubeproof_apimachinery::schema::{FieldError, Path};
use serde_json::{Value, json};

use super::super::text;
use super::field_path;

/// The most selectable fields of one version.
const MAX_SELECTABLE_FIELDS: usize = 8;
/// The longest warning in bytes.
const MAX_WARNING: usize = 256;

const COLUMN_TYPES: &str = "boolean,date,integer,number,string";
const COLUMN_FORMATS: &str = "byte,date,date-time,double,float,int32,int64,password";

/// Returns the errors of the warning of a deprecated version.
pub(super) fn validate_warning(version: &Value, path: Path<'_>) -> Vec<FieldError> {
    let Some(warning) = version["deprecationWarning"].as_str() else { return Vec::new() };
    let mut wrong = Vec::new();
    if version["deprecated"] == true {
        if warning.len() > MAX_WARNING {
            wrong.push(format!("must be <= {MAX_WARNING} characters long"));
        }
        if warning.is_empty() {
            wrong.push("must not be an empty string".to_owned());
        }
        if let Some((at, _)) = warning.char_indices().find(|(_, letter)| !is_printable(*letter)) {
            wrong.push(format!(
                "must only contain printable UTF-8 characters; non-printable character found at \
                 index {at}"
            ));
        }
    } else {
        wrong.push("can only be set for deprecated versions".to_owned());
    }
    let at = path.field("deprecationWarning");
    wrong.iter().map(|why| FieldError::invalid(at, &json!(warning), why)).collect()
}

/// In Go, no space but that of ASCII is printable.
fn is_printable(letter: char) -> bool {
    letter == ' ' || !(letter.is_control() || letter.is_whitespace())
}

/// Returns the errors of `subresources`.
pub(super) fn validate_subresources(subresources: &Value, path: Path<'_>) -> Vec<FieldError> {
    let scale = &subresources["scale"];
    if !scale.is_object() {
        return Vec::new();
    }
    let path = path.field("scale");
    let of_spec = (&[".spec."][..], "should be a json path under .spec");
    let of_status = (&[".status."][..], "should be a json path under .status");
    let of_both =
        (&[".spec.", ".status."][..], "should be a json path under either .spec or .status");
    let mut errors = Vec::new();
    for (field, (parents, why), is_required) in [
        ("specReplicasPath", of_spec, true),
        ("statusReplicasPath", of_status, true),
        ("labelSelectorPath", of_both, false),
    ] {
        let value = text(scale, field);
        let at = path.field(field);
        if value.is_empty() {
            errors.extend(is_required.then(|| FieldError::required(at, "")));
        } else if let Some(error) = unrooted(value, at) {
            errors.push(error);
        } else if !parents.iter().any(|parent| value.starts_with(parent)) {
            errors.push(FieldError::invalid(at, &json!(value), why));
        }
    }
    errors
}

/// Returns the errors of `additionalPrinterColumns`.
pub(super) fn validate_columns(columns: &Value, path: Path<'_>) -> Vec<FieldError> {
    let columns = columns.as_array().into_iter().flatten().enumerate();
    columns.flat_map(|(index, column)| validate_column(column, path.index(index))).collect()
}

fn validate_column(column: &Value, path: Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if text(column, "name").is_empty() {
        errors.push(FieldError::required(path.field("name"), ""));
    }
    let one_of = |words: &str| format!("must be one of {words}");
    let is_known = |word: &str, words: &str| words.split(',').any(|known| known == word);
    let (kind, format) = (text(column, "type"), text(column, "format"));
    if kind.is_empty() {
        errors.push(FieldError::required(path.field("type"), &one_of(COLUMN_TYPES)));
    } else if !is_known(kind, COLUMN_TYPES) {
        let why = one_of(COLUMN_TYPES);
        errors.push(FieldError::invalid(path.field("type"), &json!(kind), &why));
    }
    if !format.is_empty() && !is_known(format, COLUMN_FORMATS) {
        let why = one_of(COLUMN_FORMATS);
        errors.push(FieldError::invalid(path.field("format"), &json!(format), &why));
    }
    let expression = text(column, "jsonPath");
    let at = path.field("JSONPath");
    if expression.is_empty() {
        errors.push(FieldError::required(at, ""));
    }
    errors.extend(unrooted(expression, at).filter(|_| !expression.is_empty()));
    errors
}

fn unrooted(expression: &str, path: Path<'_>) -> Option<FieldError> {
    let why = "must be a simple json path starting with .";
    (!expression.starts_with('.')).then(|| FieldError::invalid(path, &json!(expression), why))
}

/// Returns the errors of `selectableFields`. They name fields of the schema `document`.
pub(super) fn validate_selectable(
    fields: &Value,
    document: &Value,
    path: Path<'_>,
) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut known: Vec<Vec<String>> = Vec::new();
    for (index, field) in fields.as_array().into_iter().flatten().enumerate() {
        let item = path.index(index);
        let at = item.field("jsonPath");
        let expression = text(field, "jsonPath");
        let invalid = |why: &str| FieldError::invalid(at, &json!(expression), why);
        if expression.is_empty() {
            errors.push(FieldError::required(at, ""));
            continue;
        }
        let (names, target) = match field_path::resolve(expression, document, false) {
            Ok(found) => found,
            Err(why) => {
                errors.push(invalid(&format!("is an invalid path: {why}")));
                continue;
            }
        };
        if names.first().is_some_and(|name| name == "metadata") {
            errors.push(invalid("must not point to fields in metadata"));
        }
        if !matches!(text(target, "type"), "string" | "boolean" | "integer") {
            errors.push(invalid(
                "must point to a field of type string, boolean or integer. Enum string fields and \
                 strings with formats are allowed.",
            ));
        }
        if known.contains(&names) {
            errors.push(FieldError::duplicate(at, &json!(expression)));
        } else {
            known.push(names);
        }
    }
    if known.len() > MAX_SELECTABLE_FIELDS {
        errors.push(FieldError::too_many(path, known.len(), MAX_SELECTABLE_FIELDS as u64));
    }
    errors
}
