//! Pages of lists: limits, continue tokens and counts.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::{StatusCode, header};
use kubeproof_apimachinery::request::ResourceInfo;
use serde_json::{Value, json};

use super::lists::is_list;
use crate::behaviours::Fault;
use crate::behaviours::support::objects::remove_meta;
use crate::behaviours::support::server::admin_headers;
use crate::exchange::{Request, Response};
use crate::middleware::{Middleware, Next, around, documents, requests, responses, uncompressed};

/// The middleware of a fault of this file.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    limits(fault).or_else(|| tokens(fault))
}

/// Faults in limits and counts.
fn limits(fault: Fault) -> Option<Box<dyn Middleware>> {
    Some(match fault {
        Fault::LimitOffByOne => requests(|request| {
            let mut query = request.query();
            let limit = query.get("limit").and_then(|limit| limit.parse::<u64>().ok());
            if let (true, Some(limit @ 1..)) = (is_list(request), limit) {
                query.set("limit", (limit + 1).to_string());
                request.set_query(&query);
            }
        }),
        Fault::LimitZeroIsEmpty => documents(|request, list| {
            if is_list(request) && request.query().get("limit") == Some("0") {
                for field in ["items", "rows"] {
                    if list[field].is_array() {
                        list[field] = json!([]);
                    }
                }
            }
        }),
        Fault::RemainingCountWithSelector => {
            around(|request, next| Box::pin(count_rest(request, next)))
        }
        Fault::RemainingCountWithPage => documents(|request, list| {
            if is_list(request) {
                count_page(list);
            }
        }),
        Fault::RemainingCountWithLaterPage => documents(|request, list| {
            if is_list(request) && request.query().get("continue").is_some() {
                count_page(list);
            }
        }),
        _ => return None,
    })
}

/// Adds the objects of a page to the number of objects after it.
fn count_page(list: &mut Value) {
    let page = list["items"].as_array().map_or(0, Vec::len) as u64;
    if let Some(rest) = list["metadata"]["remainingItemCount"].as_u64() {
        list["metadata"]["remainingItemCount"] = (rest + page).into();
    }
}

/// Faults in continue tokens.
fn tokens(fault: Fault) -> Option<Box<dyn Middleware>> {
    Some(match fault {
        Fault::ContinueReadsLatest => edited_tokens(|token| token["rv"] = json!(-1)),
        Fault::ContinueDropsFieldSelector => requests(|request| {
            if is_list(request) && request.query().get("continue").is_some() {
                request.edit_query(|query| drop(query.remove("fieldSelector")));
            }
        }),
        Fault::ContinueSkipsAnObject => edited_tokens(|token| {
            let start = token["start"].as_str().unwrap_or_default();
            token["start"] = start.replace('\0', "zzzz").into();
        }),
        Fault::ContinueDropsNamespace => edited_tokens(|token| {
            let start = token["start"].as_str().unwrap_or_default();
            token["start"] = start.split_once('/').map_or(start, |(_, name)| name).into();
            token["start"] = format!("/{}", token["start"].as_str().unwrap_or_default()).into();
        }),
        Fault::ContinueCarriesItsNamespace => around(|mut request, next| {
            let target = request.target();
            let namespace = continue_of(&request).and_then(|token| namespace_of(&token));
            if let (false, Some(namespace)) = (target.namespace.is_empty(), namespace)
                && namespace != target.namespace
            {
                request.headers = admin_headers(&request, next.server);
                request.path = ResourceInfo { namespace, ..target }.collection();
            }
            next.send(request)
        }),
        Fault::ContinueStartsOver => around(|request, next| Box::pin(start_over(request, next))),
        Fault::ContinueWithVersionAccepted => requests(|request| {
            if is_list(request)
                && request.query().get("continue").is_some_and(|token| !token.is_empty())
            {
                request.edit_query(|query| drop(query.remove("resourceVersion")));
            }
        }),
        Fault::ContinueWithMatchAccepted => requests(|request| {
            let query = request.query();
            if is_list(request)
                && query.get("continue").is_some_and(|token| !token.is_empty())
                && query.get("resourceVersion").is_none()
            {
                request.edit_query(|query| drop(query.remove("resourceVersionMatch")));
            }
        }),
        Fault::ExpiredContinueIsFinal => responses(|request, response| {
            if is_list(request) && response.status == StatusCode::GONE {
                response.edit_value(|status| drop(remove_meta(status, "continue")));
            }
        }),
        _ => return None,
    })
}

/// Edits the continue token of every request for a further page.
fn edited_tokens(edit: impl Fn(&mut Value) + Send + Sync + 'static) -> Box<dyn Middleware> {
    requests(move |request| {
        if let Some(mut token) = continue_of(request) {
            edit(&mut token);
            let token = URL_SAFE_NO_PAD.encode(token.to_string());
            request.edit_query(|query| query.set("continue", token));
        }
    })
}

/// The decoded continue token of a list request.
fn continue_of(request: &Request) -> Option<Value> {
    if !is_list(request) {
        return None;
    }
    let query = request.query();
    let token = query.get("continue")?;
    let bytes = URL_SAFE_NO_PAD.decode(token.trim_end_matches('=')).ok()?;
    serde_json::from_slice(&bytes).ok()
}

/// The namespace of the object after which a list continues.
fn namespace_of(token: &Value) -> Option<String> {
    let (namespace, _) = token["start"].as_str()?.split_once('/')?;
    (!namespace.is_empty()).then(|| namespace.to_owned())
}

/// Lists from the beginning if the token is malformed.
async fn start_over(mut request: Request, next: Next<'_>) -> Response {
    let response = next.send(request.clone()).await;
    if !is_list(&request) || response.status != StatusCode::BAD_REQUEST {
        return response;
    }
    request.edit_query(|query| drop(query.remove("continue")));
    next.send(request).await
}

/// Adds the number of remaining objects to a page of a selection.
async fn count_rest(mut request: Request, next: Next<'_>) -> Response {
    uncompressed(&mut request);
    let mut response = next.send(request.clone()).await;
    let page = response.value().unwrap_or_default();
    let metadata = &page["metadata"];
    let (Some(token), true) = (metadata["continue"].as_str(), is_list(&request)) else {
        return response;
    };
    if token.is_empty() || metadata.get("remainingItemCount").is_some() {
        return response;
    }
    request.headers.remove(header::ACCEPT);
    request.edit_query(|query| {
        query.remove("limit");
        query.remove("resourceVersion");
        query.remove("resourceVersionMatch");
        query.set("continue", token);
    });
    let rest = next.send(request).await.value();
    if let Some(count) = rest.and_then(|rest| rest["items"].as_array().map(Vec::len)) {
        response.edit_value(|list| list["metadata"]["remainingItemCount"] = json!(count));
    }
    response
}

#[cfg(test)]
mod tests {
    use http::Method;

    use super::*;

    #[test]
    fn a_token_shows_its_namespace() {
        let token = json!({ "v": "meta.k8s.io/v1", "rv": 7, "start": "a/b\0" });
        let path = format!("/api/v1/pods?continue={}", URL_SAFE_NO_PAD.encode(token.to_string()));
        let request = Request::new(Method::GET, &path);
        assert_eq!(continue_of(&request), Some(token.clone()));
        assert_eq!(namespace_of(&token).as_deref(), Some("a"));
    }
}
