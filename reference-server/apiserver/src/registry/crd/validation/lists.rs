//! Validates the keywords that say how the server merges lists and maps.

use kubeproof_apimachinery::schema::{FieldError, Path};
use serde_json::{Value, json};

use super::super::text;

const LIST_TYPE: &str = "x-kubernetes-list-type";
const MAP_TYPE: &str = "x-kubernetes-map-type";
const MAP_KEYS: &str = "x-kubernetes-list-map-keys";
const PRESERVE: &str = "x-kubernetes-preserve-unknown-fields";

/// Returns the errors in the extensions of one schema.
pub(super) fn validate(document: &Value, path: Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if document[PRESERVE] == false {
        let why = "must be true or undefined";
        errors.push(FieldError::invalid(path.field(PRESERVE), &json!(false), why));
    }
    errors.extend(wrong_type(document, (MAP_TYPE, "object"), path));
    errors.extend(unknown_word(document, MAP_TYPE, &["atomic", "granular"], path));
    match wrong_type(document, (LIST_TYPE, "array"), path) {
        Some(error) => errors.push(error),
        None => errors.extend(granular_set(document, path)),
    }
    errors.extend(unknown_word(document, LIST_TYPE, &["atomic", "set", "map"], path));
    errors.extend(keys_without_map(document, path));
    if document[LIST_TYPE] == "map" {
        errors.extend(validate_map(document, path));
    }
    errors.extend(validate_items(document, path));
    errors
}

/// Returns the error of a schema that has the keyword, but not the type that it requires.
fn wrong_type(
    document: &Value,
    (keyword, kind): (&str, &str),
    path: Path<'_>,
) -> Option<FieldError> {
    let found = text(document, "type");
    if document.get(keyword).is_none() || found == kind {
        return None;
    }
    let why = format!("must be {kind} if {keyword} is specified");
    let at = path.field("type");
    Some(match found {
        "" => FieldError::required(at, &why),
        found => FieldError::invalid(at, &json!(found), &why),
    })
}

fn unknown_word(
    document: &Value,
    keyword: &str,
    words: &[&str],
    path: Path<'_>,
) -> Option<FieldError> {
    let found = document.get(keyword)?;
    let known: Vec<Value> = words.iter().map(|word| Value::from(*word)).collect();
    (!known.contains(found)).then(|| FieldError::not_supported(path.field(keyword), found, &known))
}

/// The items of a set are atomic: the server compares them as a whole.
fn granular_set(document: &Value, path: Path<'_>) -> Option<FieldError> {
    let items = &document["items"];
    if document[LIST_TYPE] != "set" || !items.is_object() {
        return None;
    }
    let (keyword, is_atomic) = match text(items, "type") {
        "array" => (LIST_TYPE, matches!(text(items, LIST_TYPE), "" | "atomic")),
        "object" => (MAP_TYPE, items[MAP_TYPE] == "atomic"),
        _ => return None,
    };
    let why = "must be atomic as item of a list with x-kubernetes-list-type=set";
    let at = path.field("items");
    (!is_atomic).then(|| FieldError::invalid(at.field(keyword), &items[LIST_TYPE], why))
}

fn keys_without_map(document: &Value, path: Path<'_>) -> Option<FieldError> {
    document.get(MAP_KEYS)?;
    let why = "must be map if x-kubernetes-list-map-keys is non-empty";
    let at = path.field(LIST_TYPE);
    match document.get(LIST_TYPE) {
        None => Some(FieldError::required(at, why)),
        Some(list_type) if list_type != "map" => Some(FieldError::invalid(at, list_type, why)),
        Some(_) => None,
    }
}

fn validate_map(document: &Value, path: Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let keys = document[MAP_KEYS].as_array().map(Vec::as_slice).unwrap_or_default();
    let at = path.field("items");
    if keys.is_empty() {
        let why = "must not be empty if x-kubernetes-list-type is map";
        errors.push(FieldError::required(path.field(MAP_KEYS), why));
    }
    let items = match document.get("items") {
        None => {
            let why = "must have a schema if x-kubernetes-list-type is map";
            errors.push(FieldError::required(at, why));
            return errors;
        }
        Some(items) if items.is_array() => {
            let why = "must only have a single schema if x-kubernetes-list-type is map";
            errors.push(FieldError::invalid(at, items, why));
            return errors;
        }
        Some(items) => items,
    };
    if items["type"] == "object" {
        errors.extend(validate_keys(keys, items, path));
    } else {
        let why = "must be object if parent array's x-kubernetes-list-type is map";
        errors.push(FieldError::invalid(at.field("type"), &json!(text(items, "type")), why));
    }
    errors
}

fn validate_keys(keys: &[Value], items: &Value, path: Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let (place, at) = (path.field("items"), path.field(MAP_KEYS));
    let (properties, shown) = (place.field("properties"), json!(keys));
    for (index, key) in keys.iter().enumerate() {
        let name = key.as_str().unwrap_or_default();
        match items["properties"].get(name) {
            Some(property) if matches!(text(property, "type"), "array" | "object") => {
                let why = "must be a scalar type if parent array's x-kubernetes-list-type is map";
                let property = properties.key(name);
                errors.push(FieldError::invalid(property.field("type"), &items["type"], why));
            }
            Some(_) => {}
            None => {
                let why = "entries must all be names of item properties";
                errors.push(FieldError::invalid(at, &shown, why));
            }
        }
        if keys[..index].contains(key) {
            errors.push(FieldError::invalid(at, &shown, "must not contain duplicate entries"));
        }
    }
    errors
}

/// The items of a set or a map, and the keys of a map, are never null or absent.
fn validate_items(document: &Value, path: Path<'_>) -> Vec<FieldError> {
    let items = &document["items"];
    let list_type = text(document, LIST_TYPE);
    if !items.is_object() || !matches!(list_type, "set" | "map") {
        return Vec::new();
    }
    let mut errors = Vec::new();
    let at = path.field("items");
    if items["nullable"] == true {
        let why = format!("cannot be nullable when x-kubernetes-list-type is {list_type}");
        errors.push(FieldError::forbidden(at.field("nullable"), &why));
    }
    let keys = document[MAP_KEYS].as_array().filter(|_| list_type == "map");
    let properties = at.field("properties");
    for key in keys.into_iter().flatten() {
        let name = key.as_str().unwrap_or_default();
        let Some(property) = items["properties"].get(name) else { continue };
        let place = properties.key(name);
        let is_required = items["required"].as_array().is_some_and(|names| names.contains(key));
        if !is_required && property.get("default").is_none() {
            let why = "this property is in x-kubernetes-list-map-keys, so it must have a default \
                       or be a required property";
            errors.push(FieldError::required(place.field("default"), why));
        }
        if property["nullable"] == true {
            let why = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
            errors.push(FieldError::forbidden(place.field("nullable"), why));
        }
    }
    errors
}
