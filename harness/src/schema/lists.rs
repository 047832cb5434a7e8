//! Lists, maps and bounds.

use serde_json::Value;

use super::fields::Field;
use super::model::Published;
use super::optional::is_required;

pub(super) fn maps_of_objects(published: &Published, field: &Field<'_>) -> Option<String> {
    let values = field.schema.get("additionalProperties").filter(|values| values.is_object())?;
    let values = published.resolve(values);
    (values["type"] == "object")
        .then(|| "a map of objects; use a list of objects with a name".to_owned())
}

pub(super) fn named(published: &Published, field: &Field<'_>) -> Option<String> {
    let item = published.resolve(field.used.get("items").filter(|_| field.is("array"))?);
    let named = published.resolve(item.pointer("/properties/name")?)["type"] == "string"
        && is_required(item, "name");
    // The author chose the merge strategy explicitly.
    let silent = field.used.get("x-kubernetes-list-type").is_none()
        && field.used.get("x-kubernetes-patch-merge-key").is_none();
    // Several references may have the same name.
    let are_references = field.name.ends_with("Refs");
    (named && silent && !are_references)
        .then(|| "the items have names, and the list is no map by them".to_owned())
}

pub(super) fn list_type(field: &Field<'_>) -> Option<String> {
    let silent = field.is("array") && field.used.get("x-kubernetes-list-type").is_none();
    silent.then(|| "the list has no x-kubernetes-list-type (atomic, set or map)".to_owned())
}

pub(super) fn bounded_lists(field: &Field<'_>) -> Option<String> {
    let boundless = field.is("array") && field.schema.get("maxItems").is_none();
    boundless.then(|| "the list has no maxItems".to_owned())
}

pub(super) fn bounded_maps(field: &Field<'_>) -> Option<String> {
    let is_map = field.schema.get("additionalProperties").is_some_and(Value::is_object);
    (is_map && field.schema.get("maxProperties").is_none())
        .then(|| "the map has no maxProperties".to_owned())
}

pub(super) fn bounded_strings(field: &Field<'_>) -> Option<String> {
    let bounds = ["maxLength", "enum", "format", "pattern"];
    let boundless =
        field.is("string") && bounds.iter().all(|bound| field.schema.get(bound).is_none());
    boundless.then(|| "the string has neither a format nor a greatest length".to_owned())
}

pub(super) fn described(field: &Field<'_>) -> Option<String> {
    let says = ["properties", "additionalProperties", "x-kubernetes-preserve-unknown-fields"];
    // The metadata of a template has the members of every object.
    let opaque = field.is("object")
        && field.name != "metadata"
        && says.iter().all(|says| field.schema.get(says).is_none());
    opaque.then(|| "the object has no fields".to_owned())
}
