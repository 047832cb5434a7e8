//! Kinds: groups, spec and status, metadata.

use serde_json::Value;

use super::fields::{Field, OBJECT_META};
use super::model::{Published, TypeSchema, target};

const STATUS: &str = ".apis.meta.v1.Status";

/// Members that every object may have.
const COMMON: [&str; 3] = ["apiVersion", "kind", "metadata"];

pub(super) fn group(ty: &TypeSchema) -> Option<String> {
    let kind = ty.kind.as_ref().filter(|_| ty.custom)?;
    let group = &kind.group;
    if !group.contains('.') {
        return Some(format!("the group `{group}` is one word, which belongs to Kubernetes"));
    }
    let own = ["k8s.io", "kubernetes.io"]
        .iter()
        .any(|own| *group == *own || group.ends_with(&format!(".{own}")));
    (own && !kind.approved)
        .then(|| format!("the group `{group}` belongs to Kubernetes and needs approval"))
}

pub(super) fn beside(ty: &TypeSchema) -> Option<String> {
    let properties = properties(ty)?;
    if !(properties.contains_key("spec") && properties.contains_key("status")) {
        return None;
    }
    let known = |name: &str| COMMON.contains(&name) || matches!(name, "spec" | "status");
    let other: Vec<&str> =
        properties.keys().map(String::as_str).filter(|name| !known(name)).collect();
    (!other.is_empty()).then(|| format!("members beside spec and status: {}", other.join(", ")))
}

pub(super) fn status_subresource(ty: &TypeSchema) -> Option<String> {
    let has_status = properties(ty)?.contains_key("status");
    let kind = ty.kind.as_ref().filter(|_| ty.custom)?;
    match (has_status, kind.has_status) {
        (true, false) => Some("the type has a status and no status subresource".to_owned()),
        (false, true) => Some("the type has a status subresource and no status".to_owned()),
        _ => None,
    }
}

pub(super) fn desired_state(ty: &TypeSchema) -> Option<String> {
    let properties = properties(ty).filter(|_| ty.custom)?;
    let other = properties.keys().any(|name| !COMMON.contains(&name.as_str()) && name != "status");
    let strewn = properties.contains_key("status") && !properties.contains_key("spec") && other;
    strewn.then(|| "the type has a status, and its desired state is not in spec".to_owned())
}

pub(super) fn status_metadata(ty: &TypeSchema) -> Option<String> {
    if !ty.name.ends_with(STATUS) {
        return None;
    }
    let of_lists = target(&ty.schema["properties"]["metadata"])
        .is_some_and(|name| name.ends_with(".ListMeta"));
    (!of_lists).then(|| "the metadata of a Status is not that of a list".to_owned())
}

pub(super) fn objects_in_status(published: &Published, field: &Field<'_>) -> Option<String> {
    if !field.in_status {
        return None;
    }
    let members = &field.schema["properties"];
    let meta = members.get("metadata")?;
    let whole = target(meta).is_some_and(|name| name.ends_with(OBJECT_META))
        || published.resolve(meta)["type"] == "object" && members.get("spec").is_some();
    whole.then(|| "the status holds a whole object".to_owned())
}

fn properties(ty: &TypeSchema) -> Option<&serde_json::Map<String, Value>> {
    ty.kind.as_ref()?;
    ty.schema["properties"].as_object()
}
