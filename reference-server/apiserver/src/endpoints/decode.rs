//! Decodes the body of a request into an object of its type.
//!
//! A body that cannot be an object of the type is a bad request. Validation checks the values.
//! Unknown and duplicate fields are ignored, a warning, or an error, as the client requested.

use std::collections::HashSet;

use kubeproof_apimachinery::schema::{FieldError, Schema};
use kubeproof_apimachinery::serializer::json;
use kubeproof_apimachinery::status::ApiError;
use serde_json::{Map, Value};

use crate::http::query::FieldValidation;
use crate::registry::ResourceType;
use crate::registry::builtin::body_schema;

/// The decoded object of a client, and the warnings for the client.
#[derive(Debug)]
pub(crate) struct Decoded {
    pub(crate) object: Value,
    pub(crate) warnings: Vec<String>,
}

/// Decodes the body of POST or PUT.
pub(crate) fn decode(
    ty: &ResourceType,
    bytes: &[u8],
    validation: FieldValidation,
) -> Result<Decoded, ApiError> {
    let json::Decoded { value, duplicates } =
        json::decode(bytes).map_err(|error| unrecognized(&ty.kind, &error))?;
    let mut object = match value {
        Value::Object(fields) => Value::Object(fields),
        Value::Null if !ty.custom => Value::Object(Map::new()),
        other => {
            let what = format!("the body is {}, not an object", kind_of(&other));
            return Err(unrecognized(&ty.kind, &what));
        }
    };
    check_type_meta(ty, &mut object)?;
    let mut warnings = complaints(&ty.schema, &object, &duplicates, validation)
        .map_err(|why| cannot_handle(ty, &why))?;
    ty.schema.check_types(&object).map_err(|error| cannot_handle(ty, &error.message))?;
    ty.schema.prune(&mut object);
    warnings.extend(drop_duplicate_owners(&mut object));
    Ok(Decoded { object, warnings })
}

/// Decodes the body of a subresource that is no stored object. The first of the versions is that of
/// its kind.
pub(crate) fn decode_body(
    versions: &[&str],
    kind: &str,
    bytes: &[u8],
    validation: FieldValidation,
) -> Result<Decoded, ApiError> {
    let json::Decoded { value: mut object, duplicates } =
        json::decode(bytes).map_err(|error| unrecognized(kind, &error))?;
    if !object.is_object() {
        let what = format!("the body is {}, not an object", kind_of(&object));
        return Err(unrecognized(kind, &what));
    }
    let first = versions.first().copied().unwrap_or_default();
    let (group, version) = first.split_once('/').unwrap_or(("", first));
    let text = |field: &str| object[field].as_str().unwrap_or_default();
    let (given, api_version) = (text("kind"), text("apiVersion"));
    let is_known = api_version.is_empty() || versions.contains(&api_version);
    let is_kind = given.is_empty() || given == kind;
    let given = if given.is_empty() { kind } else { given };
    let cannot = format!("{given} in version {version:?} cannot be handled as a {kind}");
    if !is_known || !is_kind {
        return Err(ApiError::bad_request(cannot));
    }
    let reject = |why: &str| ApiError::bad_request(format!("{cannot}: {why}"));
    let schema = body_schema(group, version, kind);
    let warnings =
        complaints(&schema, &object, &duplicates, validation).map_err(|why| reject(&why))?;
    schema.check_types(&object).map_err(|error| reject(&error.message))?;
    schema.prune(&mut object);
    Ok(Decoded { object, warnings })
}

/// Decodes the result of a patch as an object of the type.
pub(crate) fn recast(
    ty: &ResourceType,
    object: Value,
    duplicates: &[String],
    validation: FieldValidation,
) -> Result<Decoded, ApiError> {
    let type_meta = (&*ty.api_version(), &*ty.kind);
    let mut decoded = recast_as(type_meta, &ty.schema, object, duplicates, validation)?;
    decoded.warnings.extend(drop_duplicate_owners(&mut decoded.object));
    Ok(decoded)
}

/// Decodes the result of a patch of a subresource that is no stored object.
pub(crate) fn recast_body(
    api_version: &str,
    kind: &str,
    object: Value,
    duplicates: &[String],
    validation: FieldValidation,
) -> Result<Decoded, ApiError> {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let schema = body_schema(group, version, kind);
    recast_as((api_version, kind), &schema, object, duplicates, validation)
}

fn recast_as(
    (api_version, kind): (&str, &str),
    schema: &Schema,
    mut object: Value,
    duplicates: &[String],
    validation: FieldValidation,
) -> Result<Decoded, ApiError> {
    let invalid = |object: &Value, why: &str| ApiError::patched_object_invalid(object, why);
    for (field, expected) in [("kind", kind), ("apiVersion", api_version)] {
        if object.get(field).and_then(Value::as_str) != Some(expected) {
            return Err(invalid(&object, &format!("{field} must be {expected}")));
        }
    }
    let warnings = complaints(schema, &object, duplicates, validation)
        .map_err(|why| invalid(&object, &why))?;
    schema.check_types(&object).map_err(|error| invalid(&object, &error.message))?;
    schema.prune(&mut object);
    Ok(Decoded { object, warnings })
}

/// Keeps the first of owners that are equal, and returns a warning about the others.
fn drop_duplicate_owners(object: &mut Value) -> Option<String> {
    let owners = object.get_mut("metadata")?.get_mut("ownerReferences")?.as_array_mut()?;
    let mut known = HashSet::new();
    let mut duplicates = Vec::new();
    owners.retain(|owner| {
        let is_new = known.insert(owner.clone());
        if !is_new {
            duplicates.push(owner["uid"].as_str().unwrap_or_default().to_owned());
        }
        is_new
    });
    let uids = duplicates.join(", ");
    let why = "metadata.ownerReferences contains duplicate entries, which the server removes";
    (!duplicates.is_empty()).then(|| format!("{why}; duplicate UIDs: {uids}"))
}

/// Reports unknown and duplicate fields: warnings, or the text of an error.
fn complaints(
    schema: &Schema,
    object: &Value,
    duplicates: &[String],
    validation: FieldValidation,
) -> Result<Vec<String>, String> {
    if validation == FieldValidation::Ignore {
        return Ok(Vec::new());
    }
    let unknown = schema.unknown_fields(object).into_iter();
    let unknown = unknown.map(|field| format!("unknown field {field:?}"));
    let complaints: Vec<_> = duplicates
        .iter()
        .map(|field| format!("duplicate field {field:?}"))
        .chain(unknown)
        .collect();
    if validation == FieldValidation::Strict && !complaints.is_empty() {
        return Err(format!("strict decoding error: {}", complaints.join(", ")));
    }
    Ok(complaints)
}

/// Checks kind and version of a body. If they are absent, those of the URL apply, but a custom
/// resource must have them.
fn check_type_meta(ty: &ResourceType, object: &mut Value) -> Result<(), ApiError> {
    let text = |field: &str| match object.get(field) {
        None | Some(Value::Null) => Ok(String::new()),
        Some(Value::String(text)) => Ok(text.clone()),
        Some(other) => {
            Err(unrecognized(&ty.kind, &format!("{field} is {}, not a string", kind_of(other))))
        }
    };
    let (kind, api_version) = (text("kind")?, text("apiVersion")?);
    if ty.custom && kind.is_empty() {
        return Err(unrecognized(&ty.kind, &"Object 'Kind' is missing"));
    }
    let expected = ty.api_version();
    if api_version != expected && (ty.custom || !api_version.is_empty()) {
        return Err(ApiError::bad_request(format!(
            "the API version in the data ({api_version}) does not match the expected API version \
             ({expected})"
        )));
    }
    if kind != ty.kind && !kind.is_empty() {
        if ty.custom {
            let name = object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
            let error =
                FieldError::invalid("kind", &kind.as_str().into(), &format!("must be {}", ty.kind));
            return Err(ApiError::invalid(ty.subject(), name, &[error]));
        }
        return Err(ApiError::bad_request(format!(
            "{kind} in version {expected:?} cannot be handled as a {}",
            ty.kind
        )));
    }
    object["kind"] = ty.kind.as_str().into();
    object["apiVersion"] = expected.into();
    Ok(())
}

fn cannot_handle(ty: &ResourceType, why: &str) -> ApiError {
    let (kind, version) = (&ty.kind, &ty.version);
    ApiError::bad_request(format!(
        "{kind} in version {version:?} cannot be handled as a {kind}: {why}"
    ))
}

fn unrecognized(kind: &str, why: &dyn std::fmt::Display) -> ApiError {
    ApiError::bad_request(format!(
        "the object provided is unrecognized (must be of type {kind}): {why}"
    ))
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn equal_owners_count_once() {
        let owner = |name: &str| json!({"kind": "Pod", "name": name, "uid": "u"});
        let owners = json!([owner("a"), owner("b"), owner("a")]);
        let mut object = json!({"metadata": {"ownerReferences": owners}});
        let warning = drop_duplicate_owners(&mut object).expect("a warning");
        assert!(warning.ends_with("duplicate UIDs: u"), "{warning}");
        assert_eq!(object["metadata"]["ownerReferences"], json!([owner("a"), owner("b")]));
        assert_eq!(drop_duplicate_owners(&mut object), None);
    }
}
