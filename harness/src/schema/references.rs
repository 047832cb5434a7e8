//! References to other objects.

use serde_json::Value;

use super::fields::Field;
use super::model::{Published, TypeSchema};

/// Members that references may have.
const MEMBERS: [&str; 11] = [
    "name",
    "namespace",
    "kind",
    "group",
    "apiGroup",
    "apiVersion",
    "version",
    "resource",
    "uid",
    "fieldPath",
    "resourceVersion",
];

/// Members of the former shared reference type.
const SHARED: [&str; 7] =
    ["apiVersion", "fieldPath", "kind", "name", "namespace", "resourceVersion", "uid"];

/// Members that name the kind of the target.
const SORTS: [&str; 2] = ["kind", "resource"];

/// References within a namespace, by the name suffix of their type.
const LOCAL: [&str; 4] = [
    ".meta.v1.OwnerReference",
    ".core.v1.LocalObjectReference",
    ".core.v1.TypedLocalObjectReference",
    ".autoscaling.v2.CrossVersionObjectReference",
];

/// Members that name the group of the target.
const GROUPS: [&str; 3] = ["group", "apiGroup", "apiVersion"];

pub(super) fn suffix(published: &Published, field: &Field<'_>) -> Option<String> {
    let (object, expected) = match field.schema["type"].as_str()? {
        "object" => (field.schema, "Ref"),
        "array" => (published.resolve(field.used.get("items")?), "Refs"),
        _ => return None,
    };
    let members = object["properties"].as_object()?;
    let is_reference = members.contains_key("name")
        && members.keys().all(|name| MEMBERS.contains(&name.as_str()))
        && SORTS.iter().any(|sort| members.contains_key(*sort));
    let good = field.name.is_empty()
        || field.name.ends_with(expected)
        || field.name.eq_ignore_ascii_case(expected);
    (is_reference && !good)
        .then(|| format!("the reference `{}` is not called `foo{expected}`", field.name))
}

pub(super) fn name_or_reference(field: &Field<'_>) -> Option<String> {
    let name = field.name;
    let ty = field.schema["type"].as_str()?;
    if name.ends_with("Ref") && matches!(ty, "string" | "integer" | "boolean" | "number") {
        return Some(format!("`{name}` is called a reference, and is a {ty}"));
    }
    let members = field.schema["properties"].as_object();
    let refers =
        |member: &str| MEMBERS.contains(&member) || member == "key" || member.ends_with("Name");
    if name.ends_with("Ref") && members.is_some_and(|all| !all.keys().any(|member| refers(member)))
    {
        return Some(format!(
            "`{name}` is called a reference, and has no member that refers to anything"
        ));
    }
    let names = name.ends_with("Name")
        && matches!(ty, "object" | "array" | "boolean" | "number" | "integer");
    names.then(|| format!("`{name}` is called a name, and is of the type {ty}"))
}

pub(super) fn complete(published: &Published, field: &Field<'_>) -> Option<String> {
    let members = reference(published, field)?;
    if members.contains_key("fieldPath")
        || members.contains_key("key")
        || field.name.ends_with("FieldRef")
    {
        return None;
    }
    if !members.contains_key("name") {
        return Some("the reference has no name".to_owned());
    }
    let has = |names: &[&str]| names.iter().any(|name| members.contains_key(*name));
    (has(&SORTS) && !has(&GROUPS)).then(|| "the reference names a kind, and no group".to_owned())
}

pub(super) fn shared(published: &Published, field: &Field<'_>) -> Option<String> {
    let members = reference(published, field)?;
    let others: Vec<&str> =
        members.keys().map(String::as_str).filter(|name| !SHARED.contains(name)).collect();
    (!others.is_empty())
        .then(|| format!("the reference has members of its own: {}", others.join(", ")))
}

pub(super) fn same_namespace(
    published: &Published,
    ty: &TypeSchema,
    field: &Field<'_>,
) -> Option<String> {
    let namespaced = ty.kind.as_ref().is_some_and(|kind| kind.namespaced);
    let members = reference(published, field).filter(|_| namespaced)?;
    members.contains_key("namespace").then(|| "the reference leads out of its namespace".to_owned())
}

pub(super) fn owners(ty: &TypeSchema, field: &Field<'_>) -> Option<String> {
    let local = LOCAL.iter().any(|end| ty.name.ends_with(end)) && field.path == "namespace";
    local.then(|| "the reference can lead to another namespace".to_owned())
}

pub(super) fn of_fields(published: &Published, field: &Field<'_>) -> Option<String> {
    let members = reference(published, field)?;
    // It refers to a resource of a container, such as limits.cpu.
    if members.contains_key("resource") && members.contains_key("divisor") {
        return None;
    }
    if !(field.name.ends_with("FieldRef")
        || field.name == "fieldRef"
        || members.contains_key("fieldPath"))
    {
        return None;
    }
    let versioned = members.contains_key("apiVersion") || members.contains_key("version");
    match (versioned, members.contains_key("fieldPath")) {
        (true, true) => None,
        (false, _) => Some("the reference to a field has no version".to_owned()),
        (true, false) => Some("the reference to a field has no fieldPath".to_owned()),
    }
}

/// Returns the members of a reference field.
fn reference<'a>(
    published: &'a Published,
    field: &Field<'a>,
) -> Option<&'a serde_json::Map<String, Value>> {
    let is = |end: &str| field.name.ends_with(end) || field.name.eq_ignore_ascii_case(end);
    let object = if is("Refs") {
        published.resolve(field.used.get("items")?)
    } else if is("Ref") {
        field.schema
    } else {
        return None;
    };
    object["properties"].as_object()
}
