//! Limit ranges, resource quotas and templates of pods.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::amounts::round_up;
use super::pod::{complete_spec, validate_spec};
use crate::registry::builtin::checks::statuses::quota_amounts;
use crate::registry::builtin::data::{created_at, hooks, of_containers, resource};
use crate::registry::builtin::{BuiltinType, Hooks, warnings};
use kubeproof_apimachinery::object::Object;
use kubeproof_apimachinery::schema::{FieldError, Path};
use kubeproof_apimachinery::table::column::{Cell, age, column};

pub(super) fn types() -> Vec<BuiltinType> {
    vec![limit_ranges(), pod_templates(), resource_quotas()]
}

fn limit_ranges() -> BuiltinType {
    BuiltinType {
        has_generation: false,
        allows_create_on_update: true,
        columns: vec![created_at()],
        hooks: Hooks {
            default: complete_limits,
            validate: validate_limits,
            prepare_create: |range| {
                if range.meta("name").is_empty() && range.meta("generateName").is_empty() {
                    let uid = range.meta("uid").to_owned();
                    range.set_meta("name", uid);
                }
            },
            is_new_generation: |_, _| false,
            ..Hooks::NONE
        },
        ..resource("", "v1", "limitranges")
    }
}

/// A container without a limit gets the maximum, and without a request the limit or the minimum.
fn complete_limits(range: &mut Value) {
    for item in range["spec"]["limits"].as_array_mut().into_iter().flatten() {
        for list in ["default", "defaultRequest", "max", "maxLimitRequestRatio", "min"] {
            round_up(item.get_mut(list));
        }
        if item["type"] != "Container" {
            continue;
        }
        for (target, source) in
            [("default", "max"), ("defaultRequest", "default"), ("defaultRequest", "min")]
        {
            let amounts = item[source].as_object().cloned().unwrap_or_default();
            let Some(fields) = item.as_object_mut() else { continue };
            let known = fields.entry(target).or_insert_with(|| Value::Object(Map::new()));
            for (name, amount) in amounts {
                if known[&name].is_null() {
                    known[&name] = amount;
                }
            }
            if known.as_object().is_some_and(Map::is_empty) {
                fields.remove(target);
            }
        }
    }
}

fn validate_limits(range: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut known: Vec<&Value> = Vec::new();
    for (index, item) in range["spec"]["limits"].as_array().into_iter().flatten().enumerate() {
        let place = |field: &str| format!("spec.limits[{index}].{field}");
        if known.contains(&&item["type"]) {
            errors.push(FieldError::duplicate(place("type"), &item["type"]));
        }
        known.push(&item["type"]);
        if item["type"] == "Pod" {
            for field in ["default", "defaultRequest"] {
                if !item[field].is_null() {
                    let why = "may not be specified when `type` is 'Pod'";
                    errors.push(FieldError::forbidden(place(field), why));
                }
            }
        }
        let is_claim = item["type"] == "PersistentVolumeClaim";
        if is_claim && item["min"]["storage"].is_null() && item["max"]["storage"].is_null() {
            let why =
                "either minimum or maximum storage value is required, but neither was provided";
            errors.push(FieldError::required(format!("spec.limits[{index}].limits"), why));
        }
    }
    errors
}

fn pod_templates() -> BuiltinType {
    BuiltinType {
        has_generation: true,
        columns: vec![
            column(
                "Containers",
                "string",
                Cell::Computed(|it| of_containers(&it["template"], "name")),
            ),
            column(
                "Images",
                "string",
                Cell::Computed(|it| of_containers(&it["template"], "image")),
            ),
            column(
                "Pod Labels",
                "string",
                Cell::Computed(|it| super::selector_text(&it["template"]["metadata"]["labels"])),
            ),
        ],
        hooks: Hooks {
            default: |it| complete_spec(&mut it["template"]["spec"]),
            warn: warnings::workloads::pod_template,
            validate: |it| {
                let root = Path::Root;
                let template = root.field("template");
                validate_spec(&it["template"]["spec"], template.field("spec"))
            },
            is_new_generation: |new, old| new["template"] != old["template"],
            ..Hooks::NONE
        },
        ..resource("", "v1", "podtemplates")
    }
}

fn resource_quotas() -> BuiltinType {
    BuiltinType {
        has_generation: false,
        columns: vec![
            column("Request", "string", Cell::Computed(|quota| usage(quota, false))),
            column("Limit", "string", Cell::Computed(|quota| usage(quota, true))),
            age(),
        ],
        hooks: Hooks {
            default: |quota| {
                for list in ["/spec/hard", "/status/hard", "/status/used"] {
                    round_up(quota.pointer_mut(list));
                }
            },
            validate_update: |new, old| {
                let scopes = |quota: &Value| -> BTreeSet<String> {
                    let scopes = quota["spec"]["scopes"].as_array().into_iter().flatten();
                    scopes.filter_map(Value::as_str).map(str::to_owned).collect()
                };
                if scopes(new) == scopes(old) {
                    return Vec::new();
                }
                let value = &new["spec"]["scopes"];
                vec![FieldError::invalid("spec.scopes", value, "field is immutable")]
            },
            validate_status: quota_amounts,
            warn: warnings::cluster::resource_quota,
            is_new_generation: |_, _| false,
            ..hooks(true)
        },
        ..resource("", "v1", "resourcequotas")
    }
}

/// Returns the used and the permitted amounts of limits, or of all other resources.
fn usage(quota: &Value, of_limits: bool) -> Value {
    let hard = quota["status"]["hard"].as_object().into_iter().flatten();
    let used = &quota["status"]["used"];
    let texts: Vec<String> = hard
        .filter(|(name, _)| name.starts_with("limits.") == of_limits)
        .map(|(name, amount)| {
            let used = used[name].as_str().unwrap_or("0");
            format!("{name}: {used}/{}", amount.as_str().unwrap_or_default())
        })
        .collect();
    json!(texts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_of_limits_depend_on_each_other() {
        let item = json!({"type": "Container", "max": {"cpu": "2"}, "min": {"memory": "1Mi"}});
        let mut range = json!({"spec": {"limits": [item, {"type": "Pod", "max": {"cpu": "4"}}]}});
        complete_limits(&mut range);
        let limits = &range["spec"]["limits"];
        assert_eq!(limits[0]["default"], json!({"cpu": "2"}));
        assert_eq!(limits[0]["defaultRequest"], json!({"cpu": "2", "memory": "1Mi"}));
        assert_eq!(limits[1], json!({"type": "Pod", "max": {"cpu": "4"}}));
        assert_eq!(validate_limits(&range), []);
    }

    #[test]
    fn limits_are_validated() {
        let limits = json!([
            {"type": "Pod", "default": {"cpu": "1"}}, {"type": "Pod"},
            {"type": "PersistentVolumeClaim"},
        ]);
        let errors = validate_limits(&json!({"spec": {"limits": limits}}));
        let fields: Vec<_> = errors.iter().map(|error| &*error.field).collect();
        let expected = ["spec.limits[0].default", "spec.limits[1].type", "spec.limits[2].limits"];
        assert_eq!(fields, expected);
    }

    #[test]
    fn usage_is_grouped() {
        let hard = json!({"pods": "4", "limits.cpu": "2"});
        let quota = json!({"status": {"hard": hard, "used": {"pods": "1"}}});
        assert_eq!(
            (usage(&quota, false), usage(&quota, true)),
            (json!("pods: 1/4"), json!("limits.cpu: 0/2"))
        );
    }
}
