//! Conditions and phases.

use serde_json::Value;

use super::fields::Field;
use super::model::Published;
use super::optional::is_required;

/// The members of the shared Condition type, with their types.
const STANDARD: [(&str, &str); 5] = [
    ("type", "string"),
    ("status", "string"),
    ("lastTransitionTime", "string"),
    ("reason", "string"),
    ("message", "string"),
];

pub(super) fn lists(published: &Published, field: &Field<'_>) -> Option<String> {
    let conditions = is_conditions(field);
    (conditions && item(published, field).is_none())
        .then(|| "conditions are no list of objects".to_owned())
}

pub(super) fn require(published: &Published, field: &Field<'_>, names: &[&str]) -> Option<String> {
    let item = conditions(published, field)?;
    let missing: Vec<&str> =
        names.iter().copied().filter(|name| !is_required(item, name)).collect();
    (!missing.is_empty()).then(|| format!("conditions do not require {}", missing.join(" and ")))
}

pub(super) fn reason(published: &Published, field: &Field<'_>) -> Option<String> {
    let item = conditions(published, field)?;
    if !is_required(item, "reason") {
        return Some("conditions do not require reason".to_owned());
    }
    let reason = &item["properties"]["reason"];
    let bounded = reason["minLength"].as_u64().is_some_and(|least| least > 0)
        || ["pattern", "enum"].iter().any(|bound| reason.get(bound).is_some());
    // Documents of built-in types do not specify lengths.
    (field.status_member && field.path.contains('.') && !bounded)
        .then(|| "reason may be empty".to_owned())
}

pub(super) fn text(published: &Published, field: &Field<'_>) -> Option<String> {
    let item = conditions(published, field)?;
    if !is_required(item, "message") {
        return Some("conditions do not require message".to_owned());
    }
    let least = item["properties"]["message"]["minLength"].as_u64();
    least.is_some_and(|least| least > 0).then(|| "message may not be empty".to_owned())
}

pub(super) fn standard(published: &Published, field: &Field<'_>) -> Option<String> {
    let item = conditions(published, field)?;
    let wrong = STANDARD.iter().find(|(name, ty)| {
        let member = item["properties"].get(*name).map(|member| published.resolve(member));
        member.is_none_or(|member| member["type"] != *ty)
    });
    wrong.map(|(name, ty)| format!("conditions have no {name} that is a {ty}"))
}

pub(super) fn at_top(field: &Field<'_>) -> Option<String> {
    // Items of a list may have conditions of their own, like listeners of a gateway.
    let of_items = field.path.contains("[]");
    let deeper = field.in_status && field.name == "conditions" && !field.status_member && !of_items;
    deeper.then(|| "conditions are not directly below status".to_owned())
}

pub(super) fn map_by_type(field: &Field<'_>) -> Option<String> {
    let used = field.used;
    let by_list = used["x-kubernetes-list-type"] == "map"
        && used["x-kubernetes-list-map-keys"]
            .as_array()
            .is_some_and(|keys| keys.len() == 1 && keys[0] == "type");
    let by_patch = used["x-kubernetes-patch-merge-key"] == "type";
    (is_conditions(field) && !by_list && !by_patch)
        .then(|| "conditions are no map by type".to_owned())
}

pub(super) fn phase(field: &Field<'_>) -> Option<String> {
    (field.status_member && field.name == "phase")
        .then(|| "a phase; new types have conditions".to_owned())
}

fn is_conditions(field: &Field<'_>) -> bool {
    field.in_status && field.name == "conditions"
}

fn item<'a>(published: &'a Published, field: &Field<'a>) -> Option<&'a Value> {
    let item = published.resolve(field.used.get("items")?);
    (field.is("array") && item["type"] == "object").then_some(item)
}

/// Returns the schema of a condition, if the field is a list of conditions.
fn conditions<'a>(published: &'a Published, field: &Field<'a>) -> Option<&'a Value> {
    is_conditions(field).then(|| item(published, field)).flatten()
}
