//! Custom resource definitions whose schemas have less effect than they declare. The middleware
//! changes a definition on its way to the server and shows it as the client wrote it.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::edits::{definitions, everywhere, remove};
use crate::behaviours::Fault;
use crate::middleware::{Middleware, objects};

const PRESERVES: &str = "x-kubernetes-preserve-unknown-fields";
const RULES: &str = "x-kubernetes-validations";

/// Limits on a value other than its type.
const LIMITS: [&str; 7] =
    ["pattern", "enum", "minLength", "maxLength", "minimum", "maximum", "maxItems"];

/// Macros that loop with one or two variables.
const LOOPS: [&str; 5] = ["all", "exists", "existsOne", "transformList", "transformMap"];

/// The middleware of a fault of this file.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    if let Some(edit) = schema_edit(fault).or_else(|| rule_edit(fault)) {
        return Some(definitions(move |crd| edit_schemas(crd, edit)));
    }
    Some(match fault {
        Fault::StatusDefaultsMissing => definitions(|crd| {
            for version in crd["spec"]["versions"].as_array_mut().into_iter().flatten() {
                let status = version.pointer_mut("/schema/openAPIV3Schema/properties/status");
                if let Some(status) = status {
                    everywhere(status, &mut |schema| remove(schema, "default"));
                }
            }
        }),
        _ => return conditions(fault),
    })
}

fn edit_schemas(crd: &mut Value, edit: fn(&mut Value)) {
    for version in crd["spec"]["versions"].as_array_mut().into_iter().flatten() {
        if let Some(schema) = version.pointer_mut("/schema/openAPIV3Schema") {
            everywhere(schema, &mut |schema| edit(schema));
        }
    }
}

fn schema_edit(fault: Fault) -> Option<fn(&mut Value)> {
    let edit: fn(&mut Value) = match fault {
        Fault::DefaultsSkipListItems => |schema| {
            if let Some(items) = schema.get_mut("items") {
                everywhere(items, &mut |inner| remove(inner, "default"));
            }
        },
        Fault::FalsyDefaultsDropped => |schema| {
            let default = &schema["default"];
            if *default == false || *default == 0 || *default == "" {
                remove(schema, "default");
            }
        },
        Fault::ObjectDefaultsDropped => |schema| {
            if schema["default"].is_object() {
                remove(schema, "default");
            }
        },
        Fault::DefaultsSkipMapValues => |schema| {
            if let Some(values) = schema.get_mut("additionalProperties") {
                everywhere(values, &mut |inner| remove(inner, "default"));
            }
        },
        Fault::NullableIgnored => |schema| remove(schema, "nullable"),
        Fault::MaximumOffByOne => |schema| {
            if let Some(maximum) = schema["maximum"].as_i64() {
                schema["maximum"] = (maximum + 1).into();
            }
        },
        Fault::ApplyMergesAtomicMaps => |schema| remove(schema, "x-kubernetes-map-type"),
        Fault::ListMapsHaveOneKey => |schema| {
            if let Some(keys) = schema["x-kubernetes-list-map-keys"].as_array_mut() {
                keys.truncate(1);
            }
        },
        _ => return constraint_edit(fault),
    };
    Some(edit)
}

/// Faults that drop constraints, and the edits of schemas for fields that the server prunes.
fn constraint_edit(fault: Fault) -> Option<fn(&mut Value)> {
    let edit: fn(&mut Value) = match fault {
        Fault::ExclusiveBoundsInclusive => |schema| {
            remove(schema, "exclusiveMinimum");
            remove(schema, "exclusiveMaximum");
        },
        Fault::MultiplesUnchecked => |schema| remove(schema, "multipleOf"),
        Fault::OneOfUnchecked => |schema| remove(schema, "oneOf"),
        Fault::AnyOfUnchecked => |schema| remove(schema, "anyOf"),
        Fault::NotUnchecked => |schema| remove(schema, "not"),
        Fault::RequiredInItemsUnchecked => |schema| {
            if schema.get("x-kubernetes-list-map-keys").is_none()
                && let Some(items) = schema.get_mut("items")
            {
                remove(items, "required");
            }
        },
        Fault::PreservedFieldsPruned => |schema| {
            // A field without a type is valid only while it preserves what it holds.
            if schema.get("type").is_some() {
                remove(schema, PRESERVES);
            }
        },
        Fault::PreservingInherited => |schema| {
            if schema.get(PRESERVES).is_some() {
                everywhere(schema, &mut preserve);
            }
        },
        Fault::MapSizesUnchecked => {
            |schema| ["minProperties", "maxProperties"].iter().for_each(|name| remove(schema, name))
        }
        Fault::ListSizesUnchecked => {
            |schema| ["minItems", "maxItems"].iter().for_each(|name| remove(schema, name))
        }
        Fault::MapValuesUnchecked => |schema| {
            if let Some(values) = schema.get_mut("additionalProperties") {
                for name in LIMITS {
                    remove(values, name);
                }
            }
        },
        Fault::MapValuesNotPruned => |schema| {
            if let Some(values) = schema.get_mut("additionalProperties") {
                preserve(values);
            }
        },
        _ => return None,
    };
    Some(edit)
}

/// Faults in validation rules.
fn rule_edit(fault: Fault) -> Option<fn(&mut Value)> {
    let edit: fn(&mut Value) = match fault {
        Fault::RulesIgnored => |schema| remove(schema, RULES),
        Fault::TransitionRulesIgnored => |schema| {
            if let Some(rules) = schema[RULES].as_array_mut() {
                rules.retain(|rule| !rule["rule"].as_str().unwrap_or_default().contains("oldSelf"));
            }
        },
        Fault::RuleTimesAsText => |schema| {
            // A difference of strings does not exist, so it becomes a concatenation.
            for rule in schema[RULES].as_array_mut().into_iter().flatten() {
                if let Some(text) = rule["rule"].as_str().filter(|text| text.contains("duration("))
                {
                    rule["rule"] =
                        text.replace(" - ", " + ").replace("duration(", "string(").into();
                }
            }
            if schema["format"] == "date" || schema["format"] == "date-time" {
                remove(schema, "format");
            }
        },
        Fault::LoopVariablesSwapped => |schema| {
            for rule in schema[RULES].as_array_mut().into_iter().flatten() {
                let text = rule["rule"].as_str().map(with_swapped_variables);
                rule["rule"] = text.into();
            }
        },
        Fault::RulesCountInDoubles => |schema| {
            if schema["type"] == "integer" {
                for rule in schema[RULES].as_array_mut().into_iter().flatten() {
                    let text = rule["rule"].as_str().map(in_doubles);
                    rule["rule"] = text.into();
                }
            }
        },
        Fault::MessageExpressionIgnored => |schema| {
            let rules = schema[RULES].as_array_mut();
            rules.into_iter().flatten().for_each(|rule| remove(rule, "messageExpression"));
        },
        _ => return None,
    };
    Some(edit)
}

/// Conditions of definitions.
fn conditions(fault: Fault) -> Option<Box<dyn Middleware>> {
    let edit: fn(&mut Value) = match fault {
        Fault::ConditionStatusIsBoolean => |crd| set_condition(crd, "status", true.into()),
        Fault::ConditionTypesLowerCase => |crd| set_condition(crd, "type", "names_accepted".into()),
        Fault::ConditionsObserveAhead => |crd| {
            let ahead = crd["metadata"]["generation"].as_i64().unwrap_or_default() + 1;
            for condition in crd["status"]["conditions"].as_array_mut().into_iter().flatten() {
                condition["observedGeneration"] = ahead.into();
            }
        },
        Fault::ConditionsComeLate => |crd| {
            let is_new = crd["metadata"]["generation"].as_i64().unwrap_or_default() <= 1;
            if is_new && let Some(status) = crd["status"].as_object_mut() {
                status.remove("conditions");
            }
        },
        Fault::TransitionTimeMoves => return Some(moving_times()),
        _ => return None,
    };
    Some(objects(move |_, object| {
        if object["kind"] == "CustomResourceDefinition" {
            edit(object);
        }
    }))
}

fn set_condition(crd: &mut Value, field: &str, value: Value) {
    if let Some(condition) = crd.pointer_mut("/status/conditions/0") {
        condition[field] = value;
    }
}

/// Moves the times of all conditions by one second for each version of a definition after the
/// first.
fn moving_times() -> Box<dyn Middleware> {
    let seen: Mutex<HashMap<String, Vec<String>>> = Mutex::default();
    objects(move |_, object| {
        if object["kind"] != "CustomResourceDefinition" {
            return;
        }
        let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
        let (uid, version) = (text("uid"), text("resourceVersion"));
        let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
        let versions = seen.entry(uid).or_default();
        let index = versions.iter().position(|known| *known == version).unwrap_or_else(|| {
            versions.push(version);
            versions.len() - 1
        });
        let seconds = i64::try_from(index).unwrap_or_default();
        for condition in object["status"]["conditions"].as_array_mut().into_iter().flatten() {
            let time =
                condition["lastTransitionTime"].as_str().unwrap_or_default().parse::<Timestamp>();
            if let Ok(time) = time.map(|time| time + SignedDuration::from_secs(seconds)) {
                condition["lastTransitionTime"] = time.to_string().into();
            }
        }
    })
}

/// A rule on an integer as a rule on a double: `self / 2` becomes `double(self) / 2.0`.
fn in_doubles(rule: &str) -> String {
    let mut text = String::new();
    let mut word = String::new();
    for letter in rule.chars().chain([' ']) {
        if letter.is_alphanumeric() || letter == '_' || letter == '.' {
            word.push(letter);
            continue;
        }
        match word.as_str() {
            "self" | "oldSelf" => text.extend(["double(", &word, ")"]),
            number if !number.is_empty() && number.chars().all(|digit| digit.is_ascii_digit()) => {
                text.extend([number, ".0"]);
            }
            other => text += other,
        }
        word.clear();
        text.push(letter);
    }
    text.truncate(text.len() - 1);
    text
}

/// Swaps the variables of loops with two: `all(key, value, ..)` becomes `all(value, key, ..)`.
fn with_swapped_variables(rule: &str) -> String {
    let mut parts = rule.split('(');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let is_loop = LOOPS.iter().any(|name| text.ends_with(&format!(".{name}")));
        text.push('(');
        match part.split(", ").collect::<Vec<_>>()[..] {
            [first, second, ref rest @ ..] if is_loop && !rest.is_empty() => {
                text += &[&[second, first], rest].concat().join(", ");
            }
            _ => text += part,
        }
    }
    text
}

fn preserve(schema: &mut Value) {
    if schema["type"] == "object" {
        schema[PRESERVES] = json!(true);
    }
}

#[cfg(test)]
mod tests {
    use super::{in_doubles, with_swapped_variables};

    #[test]
    fn rules_on_integers_become_rules_on_doubles() {
        assert_eq!(in_doubles("self / 2 * 2 == self"), "double(self) / 2.0 * 2.0 == double(self)");
        assert_eq!(in_doubles("self.matches('x1')"), "self.matches('x1')");
    }

    #[test]
    fn the_variables_of_loops_with_two_are_swapped() {
        let swapped = with_swapped_variables("self.transformMap(k, v, f(k, v)).all(x, x > 0)");
        assert_eq!(swapped, "self.transformMap(v, k, f(k, v)).all(x, x > 0)");
        assert_eq!(with_swapped_variables("self.all(i, v, v > i)"), "self.all(v, i, v > i)");
    }
}
