//! Wrong label and field selectors. The server behind receives another selector instead.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use http::{Method, StatusCode};
use kubeproof_apimachinery::request::Query;
use serde_json::Value;

use crate::behaviours::Fault;
use crate::behaviours::support::objects::meta;
use crate::behaviours::support::requests::is_create;
use crate::behaviours::support::selector_terms::{Term, field_terms, label_terms, parse};
use crate::exchange::{Request, Response};
use crate::middleware::{Middleware, Next, around, requests, uncompressed};

const LABELS: &str = "labelSelector";
const FIELDS: &str = "fieldSelector";

/// The middleware of a fault of this file.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    Some(match fault {
        Fault::LabelSelectorIgnored => requests(|request| set(request, LABELS, &[])),
        Fault::FieldSelectorIgnored => requests(|request| set(request, FIELDS, &[])),
        Fault::LabelsSelectedAsCreated => Box::new(LabelIndex::default()),
        Fault::SelectorsIgnored => requests(|request| {
            if request.method == Method::GET {
                set(request, LABELS, &[]);
                set(request, FIELDS, &[]);
            }
        }),
        Fault::MalformedSelectorSelectsAll => around(|request, next| {
            Box::pin(async move {
                let mut lenient = request.clone();
                set(&mut lenient, LABELS, &[]);
                unless_rejected(request, lenient, next).await
            })
        }),
        Fault::MalformedSelectorBesideFieldsIgnored => around(|request, next| {
            Box::pin(async move {
                if request.query().get("fieldSelector").is_none() {
                    return next.send(request).await;
                }
                let mut lenient = request.clone();
                set(&mut lenient, LABELS, &[]);
                unless_rejected(request, lenient, next).await
            })
        }),
        Fault::UnknownFieldSelectorMatchesAll => around(|request, next| {
            Box::pin(async move {
                let mut lenient = request.clone();
                keep_fields(&mut lenient, is_metadata);
                unless_rejected(request, lenient, next).await
            })
        }),
        Fault::FieldSelectorMetadataOnly => {
            around(|request, next| Box::pin(without_fields(request, next, is_metadata)))
        }
        Fault::EmptyFieldValuesIgnored => around(|request, next| {
            Box::pin(without_fields(request, next, |term| !term.ends_with('=')))
        }),
        Fault::FieldSelectorNotEqualIgnored => around(|request, next| {
            Box::pin(without_fields(request, next, |term| !term.contains("!=")))
        }),
        _ => return set_based(fault),
    })
}

/// Faults of selectors with sets.
fn set_based(fault: Fault) -> Option<Box<dyn Middleware>> {
    Some(match fault {
        Fault::SelectorNotEqualsNeedsKey => requests(|request| {
            edit_labels(request, |term| match parse(term) {
                Term::NotEquals(key) => vec![key.to_owned(), term.to_owned()],
                _ => vec![term.to_owned()],
            });
        }),
        Fault::SelectorNotInNeedsKey => requests(|request| {
            edit_labels(request, |term| match parse(term) {
                Term::NotIn(key) => vec![key.to_owned(), term.to_owned()],
                _ => vec![term.to_owned()],
            });
        }),
        Fault::CollectionNegationNeedsKey => requests(|request| {
            if request.verb() == "deletecollection" {
                edit_labels(request, |term| match parse(term) {
                    Term::NotEquals(key) | Term::NotIn(key) => {
                        vec![key.to_owned(), term.to_owned()]
                    }
                    _ => vec![term.to_owned()],
                });
            }
        }),
        Fault::SelectorExistsIgnored => requests(|request| {
            edit_labels(request, |term| match parse(term) {
                Term::Exists => Vec::new(),
                _ => vec![term.to_owned()],
            });
        }),
        Fault::SelectorInMatchesPrefix => {
            around(|request, next| Box::pin(in_matches_prefix(request, next)))
        }
        Fault::SelectorComparisonIgnored => requests(|request| {
            edit_labels(request, |term| match parse(term) {
                Term::Compares { .. } => Vec::new(),
                _ => vec![term.to_owned()],
            });
        }),
        Fault::SelectorComparisonOfText => {
            around(|request, next| Box::pin(compare_text(request, next)))
        }
        Fault::SelectorSpacesRejected => around(|request, next| {
            Box::pin(async move {
                if request.query().get(LABELS).is_some_and(has_odd_spaces) {
                    let message = "unable to parse requirement: found ' '";
                    return Response::failure(StatusCode::BAD_REQUEST, "BadRequest", message);
                }
                next.send(request).await
            })
        }),
        _ => return None,
    })
}

/// Returns whether a selector has spaces other than those around `in` and `notin`.
fn has_odd_spaces(selector: &str) -> bool {
    selector.replace(" in (", "(").replace(" notin (", "(").contains(' ')
}

/// An index of labels that no update changes.
#[derive(Default)]
struct LabelIndex {
    /// The labels of each created object, by its path.
    labels: Mutex<HashMap<String, Value>>,
}

impl LabelIndex {
    fn labels(&self) -> MutexGuard<'_, HashMap<String, Value>> {
        self.labels.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes the items that the selector did not select when they were created.
    fn filter(&self, request: &Request, selector: &str, list: &mut Value) {
        let target = request.target();
        let known = self.labels();
        let had = |path: &str, term: &str| match (term.split_once('='), known.get(path)) {
            (Some((key, value)), Some(labels)) => labels[key] == value,
            _ => true,
        };
        if let Some(items) = list["items"].as_array_mut() {
            items.retain(|item| {
                let path = target.object(meta(item, "name"));
                label_terms(selector).into_iter().all(|term| had(&path, term))
            });
        }
    }
}

impl Middleware for LabelIndex {
    fn handle<'a>(&'a self, mut request: Request, next: Next<'a>) -> BoxFuture<'a, Response> {
        async move {
            uncompressed(&mut request);
            let mut response = next.send(request.clone()).await;
            let selector = request.query().get(LABELS).map(str::to_owned);
            match selector {
                None if is_create(&request) && response.status == StatusCode::CREATED => {
                    if let Some(object) = response.value() {
                        let path = request.target().object(meta(&object, "name"));
                        self.labels().insert(path, object["metadata"]["labels"].clone());
                    }
                }
                Some(selector) if request.method == Method::GET && !request.is_watch() => {
                    response.edit_value(|list| self.filter(&request, &selector, list));
                }
                _ => {}
            }
            response
        }
        .boxed()
    }
}

/// Sends a request, and a lenient form of it if the server rejects it with 400.
async fn unless_rejected(request: Request, lenient: Request, next: Next<'_>) -> Response {
    let response = next.send(request.clone()).await;
    if response.status == StatusCode::BAD_REQUEST && lenient.raw_query != request.raw_query {
        return next.send(lenient).await;
    }
    response
}

/// Drops the terms of a field selector that `keep` rejects, if the server supports all their
/// fields.
async fn without_fields(mut request: Request, next: Next<'_>, keep: fn(&str) -> bool) -> Response {
    let Some(selector) = request.query().get(FIELDS).map(str::to_owned) else {
        return next.send(request).await;
    };
    let mut query = Query::default();
    query.set(FIELDS, selector);
    query.set("limit", "1");
    let trial =
        request.by_same_client(Method::GET, &format!("{}?{query}", request.target().collection()));
    if next.send(trial).await.status != StatusCode::BAD_REQUEST {
        keep_fields(&mut request, keep);
    }
    next.send(request).await
}

fn is_metadata(term: &str) -> bool {
    term.trim().starts_with("metadata.")
}

fn keep_fields(request: &mut Request, keep: fn(&str) -> bool) {
    if let Some(selector) = request.query().get(FIELDS) {
        let kept: Vec<_> = field_terms(selector)
            .into_iter()
            .filter(|term| keep(term))
            .map(str::to_owned)
            .collect();
        set(request, FIELDS, &kept);
    }
}

/// The label selector `key in (a)` also gets the values of existing objects that start with `a`.
async fn in_matches_prefix(mut request: Request, next: Next<'_>) -> Response {
    let selector = request.query().get(LABELS).unwrap_or_default().to_owned();
    let mut terms = Vec::new();
    for term in label_terms(&selector) {
        match parse(term) {
            Term::In(key, values) => {
                let wanted = |known: &String| values.iter().any(|value| known.starts_with(value));
                let known = known_values(&request, next, key).await.into_iter().filter(wanted);
                let all: BTreeSet<_> =
                    values.iter().map(|value| (*value).to_owned()).chain(known).collect();
                let all: Vec<_> = all.into_iter().collect();
                terms.push(format!("{key} in ({})", all.join(",")));
            }
            _ => terms.push(term.to_owned()),
        }
    }
    if !terms.is_empty() {
        set(&mut request, LABELS, &terms);
    }
    next.send(request).await
}

/// The label selectors `key>a` and `key<a` compare the values of existing objects as text.
async fn compare_text(mut request: Request, next: Next<'_>) -> Response {
    let selector = request.query().get(LABELS).unwrap_or_default().to_owned();
    let mut terms = Vec::new();
    for term in label_terms(&selector) {
        match parse(term) {
            Term::Compares { key, order, bound } => {
                let known = known_values(&request, next, key).await;
                let chosen: Vec<_> =
                    known.into_iter().filter(|value| value.as_str().cmp(bound) == order).collect();
                terms.push(if chosen.is_empty() {
                    format!("{key},!{key}")
                } else {
                    format!("{key} in ({})", chosen.join(","))
                });
            }
            _ => terms.push(term.to_owned()),
        }
    }
    if !terms.is_empty() {
        set(&mut request, LABELS, &terms);
    }
    next.send(request).await
}

/// The values of a label in the collection of a request.
async fn known_values(request: &Request, next: Next<'_>, key: &str) -> BTreeSet<String> {
    let mut query = Query::default();
    query.set(LABELS, key);
    let list = next.server.read(&format!("{}?{query}", request.target().collection())).await;
    let list = list.unwrap_or_default();
    let items = list["items"].as_array().into_iter().flatten();
    items.filter_map(|item| item["metadata"]["labels"][key].as_str()).map(str::to_owned).collect()
}

fn edit_labels(request: &mut Request, edit: impl Fn(&str) -> Vec<String>) {
    if let Some(selector) = request.query().get(LABELS) {
        let terms: Vec<_> = label_terms(selector).into_iter().flat_map(edit).collect();
        set(request, LABELS, &terms);
    }
}

/// Replaces a selector, or removes the parameter if no terms are left.
fn set(request: &mut Request, parameter: &str, terms: &[String]) {
    if request.query().get(parameter).is_some() {
        request.edit_query(|query| {
            query.remove(parameter);
            if !terms.is_empty() {
                query.set(parameter, terms.join(","));
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(Fault::SelectorNotEqualsNeedsKey, "a!=b,c=d", Some("a,a!=b,c=d"))]
    #[case(Fault::SelectorNotInNeedsKey, "a notin (b)", Some("a,a notin (b)"))]
    #[case(Fault::SelectorExistsIgnored, "a,!b", None)]
    #[case(Fault::SelectorComparisonIgnored, "a>1,b", Some("b"))]
    #[case(Fault::LabelSelectorIgnored, "a=b", None)]
    #[tokio::test]
    async fn selectors_are_rewritten(
        #[case] fault: Fault,
        #[case] selector: &str,
        #[case] expected: Option<&str>,
    ) {
        let mut query = Query::default();
        query.set(LABELS, selector);
        let request = Request::new(Method::GET, &format!("/api/v1/pods?{query}"));
        let seen = crate::behaviours::sent(of(fault), request).await.expect("a fault of this file");
        assert_eq!(seen.query().get(LABELS), expected);
    }
}
