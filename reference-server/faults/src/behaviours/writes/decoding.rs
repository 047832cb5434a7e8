//! Bodies that a server reads too leniently, or rejects without need.

use http::{Method, StatusCode};
use kubeproof_apimachinery::request::ResourceInfo;
use serde_json::{Number, Value};

use crate::behaviours::Fault;
use crate::behaviours::support::failures::unsupported_media_type;
use crate::behaviours::support::requests::{is_create, is_post_or_put, rewrite};
use crate::behaviours::support::served;
use crate::exchange::{Request, Response};
use crate::middleware::{Middleware, Next, around, requests};

/// The middleware of a fault of this file.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    Some(match fault {
        Fault::KindNotChecked => around(|request, next| Box::pin(kind_not_checked(request, next))),
        Fault::ListsCreateTheirItems => requests(create_first_item),
        Fault::VersionsOfTheGroupUnchecked => requests(fix_version),
        Fault::ApiVersionNotChecked => requests(|request| {
            let target = request.target();
            if is_whole_object(request) && target.is_resource() {
                edit_body(request, |body| {
                    replace(body, "apiVersion", &target.api_version());
                });
            }
        }),
        Fault::LabelsStringified => requests(|request| {
            if is_post_or_put(request) {
                edit_body(request, stringify_labels);
            }
        }),
        Fault::NullsRejected => requests(|request| {
            let builtin = request.target().is_resource() && !request.target().is_custom();
            if builtin
                && is_post_or_put(request)
                && request.json().is_some_and(|body| has_null(&body))
            {
                // The server rejects what it cannot parse with the same code and reason.
                request.body = "null is not allowed".into();
            }
        }),
        Fault::FieldNamesInAnyCase => {
            around(|request, next| Box::pin(field_names_in_any_case(request, next)))
        }
        Fault::BuiltinNumbersCut => {
            around(|request, next| Box::pin(builtin_numbers_cut(request, next)))
        }
        Fault::YamlUpdatesRejected => around(|request, next| {
            Box::pin(async move {
                if request.method == Method::PUT && request.media_type().ends_with("yaml") {
                    return unsupported_media_type();
                }
                next.send(request).await
            })
        }),
        Fault::YamlQuotesIgnored => requests(|request| {
            if request.media_type().ends_with("yaml") {
                edit_body(request, unquote);
            }
        }),
        _ => return None,
    })
}

/// Replaces a list in a create by its first item.
fn create_first_item(request: &mut Request) {
    if is_create(request) {
        rewrite(request, |body| {
            let first = body["items"].as_array().and_then(|items| items.first()).cloned();
            if let Some(first) = first {
                *body = first;
            }
        });
    }
}

/// Replaces the version in a body, if its group is that of the path.
fn fix_version(request: &mut Request) {
    let target = request.target();
    if is_post_or_put(request) && target.is_resource() {
        rewrite(request, |body| {
            let sent = body["apiVersion"].as_str().unwrap_or_default();
            let group = sent.rsplit_once('/').map_or("", |(group, _)| group);
            if !sent.is_empty() && group == target.group {
                body["apiVersion"] = target.api_version().into();
            }
        });
    }
}

/// Returns whether the body is an object of the resource in the path, not that of a subresource.
fn is_whole_object(request: &Request) -> bool {
    is_post_or_put(request) && matches!(request.target().subresource.as_str(), "" | "status")
}

/// Edits a body. One that the edit does not change stays as it was sent, with its duplicate fields.
fn edit_body(request: &mut Request, edit: impl Fn(&mut Value)) {
    if let Some(body) = request.json() {
        let mut edited = body.clone();
        edit(&mut edited);
        if edited != body {
            request.set_json(&edited);
        }
    }
}

/// Replaces a field that is text or missing.
fn replace(body: &mut Value, field: &str, text: &str) {
    if let Some(fields) = body.as_object_mut()
        && fields.get(field).is_none_or(Value::is_string)
    {
        fields.insert(field.to_owned(), text.into());
    }
}

async fn kind_not_checked(mut request: Request, next: Next<'_>) -> Response {
    let body = request.json().filter(|_| is_whole_object(&request)).unwrap_or_default();
    if body["kind"].as_str().is_some_and(|kind| !kind.is_empty()) {
        let resource = ResourceInfo { subresource: String::new(), ..request.target() };
        let entry = served::entry(&resource, next).await.unwrap_or_default();
        if let Some(kind) = entry["kind"].as_str() {
            edit_body(&mut request, |body| replace(body, "kind", kind));
        }
    }
    next.send(request).await
}

fn stringify_labels(body: &mut Value) {
    for map in ["/metadata/labels", "/metadata/annotations"] {
        for (_, value) in body.pointer_mut(map).and_then(Value::as_object_mut).into_iter().flatten()
        {
            if value.is_number() {
                *value = value.to_string().into();
            }
        }
    }
}

fn has_null(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(fields) => fields.values().any(has_null),
        Value::Array(items) => items.iter().any(has_null),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// Turns quoted numbers and booleans into numbers and booleans.
fn unquote(value: &mut Value) {
    match value {
        Value::String(text) => {
            if let Ok(scalar @ (Value::Number(_) | Value::Bool(_))) = serde_json::from_str(text) {
                *value = scalar;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(unquote),
        Value::Object(fields) => fields.values_mut().for_each(unquote),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Fields that every object may have, and whose spelling needs no look into the schema.
const COMMON: [&str; 5] = ["apiVersion", "kind", "metadata", "spec", "status"];

async fn field_names_in_any_case(mut request: Request, next: Next<'_>) -> Response {
    let body = request.json().filter(|_| is_whole_object(&request)).unwrap_or_default();
    let names = body.as_object().into_iter().flat_map(|fields| fields.keys());
    if names.clone().any(|name| !COMMON.contains(&name.as_str())) {
        let known =
            field_names(&request.target(), body["kind"].as_str().unwrap_or_default(), next).await;
        edit_body(&mut request, |body| fold_names(body, &known));
    }
    next.send(request).await
}

/// The names of the fields at the top of a kind, by OpenAPI.
async fn field_names(target: &ResourceInfo, kind: &str, next: Next<'_>) -> Vec<String> {
    let root = if target.group.is_empty() { "api" } else { "apis" };
    let path = format!("/openapi/v3/{root}/{}", target.api_version());
    let document = next.server.read(&path).await.unwrap_or_default();
    let schemas = document.pointer("/components/schemas").and_then(Value::as_object);
    let is_kind = |schema: &&Value| {
        let kinds = schema["x-kubernetes-group-version-kind"].as_array().into_iter().flatten();
        kinds
            .into_iter()
            .any(|known| known["kind"] == kind && known["group"] == target.group.as_str())
    };
    let schema = schemas.and_then(|schemas| schemas.values().find(is_kind));
    let properties = schema.and_then(|schema| schema["properties"].as_object());
    properties.map(|properties| properties.keys().cloned().collect()).unwrap_or_default()
}

/// Gives fields the known name that differs in case only.
fn fold_names(body: &mut Value, known: &[String]) {
    let Some(fields) = body.as_object_mut() else { return };
    for known in known {
        let other =
            fields.keys().find(|name| *name != known && name.eq_ignore_ascii_case(known)).cloned();
        if let Some(value) = other.and_then(|other| fields.remove(&other)) {
            fields.insert(known.clone(), value);
        }
    }
}

/// Sends a rejected object of a built-in type again, with its numbers reduced to 32 bits.
async fn builtin_numbers_cut(mut request: Request, next: Next<'_>) -> Response {
    let response = next.send(request.clone()).await;
    let rejected =
        matches!(response.status, StatusCode::BAD_REQUEST | StatusCode::UNPROCESSABLE_ENTITY);
    if !rejected || !is_post_or_put(&request) || request.target().is_custom() {
        return response;
    }
    let sent = request.body.clone();
    edit_body(&mut request, cut_numbers);
    if request.body == sent { response } else { next.send(request).await }
}

fn cut_numbers(value: &mut Value) {
    match value {
        Value::Object(fields) => fields.values_mut().for_each(cut_numbers),
        Value::Array(items) => items.iter_mut().for_each(cut_numbers),
        Value::Number(number) => *number = cut(number),
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

#[expect(clippy::cast_possible_truncation, reason = "that is the fault")]
fn cut(number: &Number) -> Number {
    let whole = number.as_i64().or_else(|| number.as_f64().map(|number| number as i64));
    (whole.unwrap_or_default() as i32).into()
}

#[cfg(test)]
mod tests {
    use http::Method;
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case(json!(2_147_483_648_i64), -2_147_483_648)]
    #[case(json!(4_294_967_297_i64), 1)]
    #[case(json!(1.5), 1)]
    #[case(json!(7), 7)]
    fn numbers_keep_their_lowest_32_bits(#[case] number: Value, #[case] expected: i32) {
        let mut body = json!({ "spec": [number] });
        cut_numbers(&mut body);
        assert_eq!(body, json!({ "spec": [expected] }));
    }

    #[test]
    fn quoted_scalars_lose_their_quotes() {
        let mut body = json!({ "a": "1", "b": ["true", "text"] });
        unquote(&mut body);
        assert_eq!(body, json!({ "a": 1, "b": [true, "text"] }));
    }

    #[test]
    fn names_in_another_case_replace_the_known_ones() {
        let mut body = json!({ "Data": 1, "data": 2, "other": 3 });
        fold_names(&mut body, &["data".to_owned()]);
        assert_eq!(body, json!({ "data": 1, "other": 3 }));
    }

    #[test]
    fn an_unchanged_body_keeps_its_bytes() {
        let mut request = Request::new(Method::POST, "/api/v1/pods");
        request.body = r#"{"a":1,"a":2}"#.into();
        edit_body(&mut request, stringify_labels);
        assert_eq!(request.body, r#"{"a":1,"a":2}"#);
    }
}
