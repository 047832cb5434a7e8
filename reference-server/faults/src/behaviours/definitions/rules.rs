//! Validation rules of custom resources that are evaluated or reported in a wrong way.

use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::edits::everywhere;
use crate::behaviours::Fault;
use crate::behaviours::support::causes::{causes, field, is_rule_cause, message, rejection};
use crate::behaviours::support::served::schema_of;
use crate::exchange::{Request, Response};
use crate::middleware::{Middleware, Next, around};

/// The middleware of a fault of this file.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    Some(match fault {
        Fault::RuleReasonIgnored => {
            reported(|cause, _| cause["reason"] = "FieldValueInvalid".into())
        }
        Fault::RulePathIgnored => reported(|cause, rules| {
            let rule = rules.iter().find(|rule| {
                rule["message"].as_str().is_some_and(|text| message(cause).contains(text))
                    || rule["rule"].as_str().is_some_and(|text| message(cause).contains(text))
            });
            let path = rule.and_then(|rule| rule["fieldPath"].as_str()).unwrap_or_default();
            if let Some(place) = field(cause).strip_suffix(path) {
                cause["field"] = place.into();
            }
        }),
        Fault::TransitionRulesOnCreate => on_create(),
        Fault::OptionalOldIgnored => optional_old(),
        Fault::OldItemsByIndex => by_index(),
        Fault::UnchangedPartsJudged => whole_object(),
        _ => return None,
    })
}

/// Edits the causes that rules found, given all rules of the resource.
fn reported(edit: fn(&mut Value, &[Value])) -> Box<dyn Middleware> {
    around(move |request, next| {
        Box::pin(async move {
            let mut response = next.send(request.clone()).await;
            if response.status == StatusCode::UNPROCESSABLE_ENTITY && request.target().is_custom() {
                let rules = rules_of(&request, next).await;
                response.edit_value(|status| {
                    let causes =
                        status.pointer_mut("/details/causes").and_then(Value::as_array_mut);
                    let found = causes.into_iter().flatten().filter(|cause| is_rule_cause(cause));
                    found.for_each(|cause| edit(cause, &rules));
                });
            }
            response
        })
    })
}

/// Rejects a new object whose type has transition rules: their old value is null.
fn on_create() -> Box<dyn Middleware> {
    around(|request, next| {
        Box::pin(async move {
            let response = next.send(request.clone()).await;
            let creates = request.method == Method::POST && request.target().is_custom();
            if !creates || response.status != StatusCode::CREATED {
                return response;
            }
            let Some(object) = response.value() else { return response };
            let Some(schema) = schema_of(&request, next).await else { return response };
            let Some(place) = transition(&schema, &object, String::new()) else { return response };
            if !request.is_dry_run() {
                let path = request
                    .target()
                    .object(object["metadata"]["name"].as_str().unwrap_or_default());
                next.server.as_admin(Method::DELETE, &path, None).await;
            }
            rejection(&json!({ "reason": "FieldValueInvalid", "field": place,
                "message": "Invalid value: no such overload: the old value is null" }))
        })
    })
}

/// The first place of an object with a rule about the old value that is not optional.
fn transition(schema: &Value, object: &Value, place: String) -> Option<String> {
    let rules = schema["x-kubernetes-validations"].as_array().into_iter().flatten();
    let mut transitions = rules.filter(|rule| {
        rule["rule"].as_str().is_some_and(|text| text.contains("oldSelf"))
            && rule["optionalOldSelf"] != true
    });
    if transitions.next().is_some() {
        return Some(place);
    }
    let properties = schema["properties"].as_object()?;
    properties.iter().find_map(|(name, schema)| {
        let place = if place.is_empty() { name.clone() } else { format!("{place}.{name}") };
        transition(schema, object.get(name)?, place)
    })
}

/// Accepts a new object that breaks only rules whose old value is optional.
fn optional_old() -> Box<dyn Middleware> {
    around(|request, next| {
        Box::pin(async move {
            let response = next.send(request.clone()).await;
            let found = causes(&response);
            if request.method != Method::POST || found.is_empty() {
                return response;
            }
            let rules = rules_of(&request, next).await;
            let optional: Vec<&Value> =
                rules.iter().filter(|rule| rule["optionalOldSelf"] == true).collect();
            let is_optional = |cause: &Value| {
                optional.iter().any(|rule| {
                    let names = |field: &str| {
                        rule[field].as_str().is_some_and(|text| message(cause).contains(text))
                    };
                    names("message") || names("rule")
                })
            };
            if !found.iter().all(is_optional) {
                return response;
            }
            Response::json(StatusCode::CREATED, &request.json().unwrap_or_default())
        })
    })
}

/// Tries each write with the keys of its list items replaced by those of the old items at the same
/// index, and rejects it if that breaks a rule.
fn by_index() -> Box<dyn Middleware> {
    around(|request, next| {
        Box::pin(async move {
            let writes = matches!(request.method, Method::PUT | Method::PATCH)
                && request.target().is_custom();
            let before = if writes { next.server.read(&request.path).await } else { None };
            if let Some(before) = before {
                let mut tried = request.clone();
                tried.edit_query(|query| query.set("dryRun", "All"));
                tried.edit_json(|body| rename_items(body, &before));
                let tried = next.send(tried).await;
                if causes(&tried).iter().any(is_rule_cause) {
                    return tried;
                }
            }
            next.send(request).await
        })
    })
}

fn rename_items(body: &mut Value, before: &Value) {
    match (body, before) {
        (Value::Object(fields), Value::Object(before)) => {
            for (name, field) in fields.iter_mut().filter(|(name, _)| *name != "metadata") {
                if let Some(before) = before.get(name) {
                    rename_items(field, before);
                }
            }
        }
        (Value::Array(items), Value::Array(before)) => {
            let names: Vec<&Value> = before.iter().map(|item| &item["name"]).collect();
            for (index, item) in items.iter_mut().enumerate().filter(|(_, item)| item.is_object()) {
                item["name"] = match names.get(index) {
                    Some(name) => (*name).clone(),
                    None => format!("new-item-{index}").into(),
                };
            }
        }
        _ => {}
    }
}

/// Validates each update as if the object were new.
fn whole_object() -> Box<dyn Middleware> {
    around(|request, next| {
        Box::pin(async move {
            let response = next.send(request.clone()).await;
            let target = request.target();
            let writes =
                matches!(request.method, Method::PUT | Method::PATCH) && target.is_custom();
            let Some(mut object) =
                response.value().filter(|_| writes && response.status == StatusCode::OK)
            else {
                return response;
            };
            if let Some(metadata) = object["metadata"].as_object_mut() {
                metadata.retain(|field, _| {
                    ["labels", "annotations", "namespace"].contains(&field.as_str())
                });
            }
            object["metadata"]["name"] = "validated-as-new".into();
            let path = format!("{}?dryRun=All", target.collection());
            let media_type = "application/json";
            let judged =
                next.server.as_admin(Method::POST, &path, Some((media_type, &object))).await;
            if judged.status == StatusCode::UNPROCESSABLE_ENTITY { judged } else { response }
        })
    })
}

/// All rules of the resource of a request.
async fn rules_of(request: &Request, next: Next<'_>) -> Vec<Value> {
    let mut rules = Vec::new();
    if let Some(mut schema) = schema_of(request, next).await {
        everywhere(&mut schema, &mut |schema| {
            rules.extend(
                schema["x-kubernetes-validations"].as_array().into_iter().flatten().cloned(),
            );
        });
    }
    rules
}
