//! Deletions and their options.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use kubeproof_apimachinery::request::Query;
use serde_json::{Map, Value, json};

use super::requests::rewrite;
use crate::exchange::Request;
use crate::middleware::{Middleware, requests};

/// Returns whether a request deletes one object.
pub(crate) fn is_delete(request: &Request) -> bool {
    request.verb() == "delete" && request.target().is_object()
}

/// Returns whether a deletion is a dry run.
pub(crate) fn is_dry_delete(request: &Request) -> bool {
    delete_options(request)
        .get("dryRun")
        .is_some_and(|values| values != &json!([]) && !values.is_null())
}

/// The options of a deletion, as the server reads them.
pub(crate) fn delete_options(request: &Request) -> Map<String, Value> {
    if request.body.is_empty() {
        return options_of_query(&request.query()).unwrap_or_default();
    }
    match request.json() {
        Some(Value::Object(options)) => options,
        _ => Map::new(),
    }
}

/// Edits the options of a deletion, in the query or in the body. Malformed options stay unchanged.
pub(crate) fn edit_delete_options(
    request: &mut Request,
    edit: impl FnOnce(&mut Map<String, Value>),
) {
    if !request.body.is_empty() {
        return rewrite(request, |options| {
            if let Some(options) = options.as_object_mut() {
                edit(options);
            }
        });
    }
    let mut query = request.query();
    let Some(sent) = options_of_query(&query) else { return };
    let mut options = sent.clone();
    edit(&mut options);
    if options == sent {
        return;
    }
    for name in ["dryRun", "gracePeriodSeconds", "propagationPolicy", "orphanDependents"] {
        query.remove(name);
    }
    request.set_query(&query);
    options.insert("kind".to_owned(), json!("DeleteOptions"));
    options.insert("apiVersion".to_owned(), json!("v1"));
    *request = request.clone().with_json("application/json", &options.into());
}

/// The options of a deletion in the form of a body; `None` if a value is invalid.
fn options_of_query(query: &Query) -> Option<Map<String, Value>> {
    let mut options = Map::new();
    let dry_run: Vec<&str> = query.all("dryRun").filter(|value| !value.is_empty()).collect();
    if !dry_run.is_empty() {
        options.insert("dryRun".to_owned(), json!(dry_run));
    }
    if let Some(seconds) = query.get("gracePeriodSeconds") {
        options.insert("gracePeriodSeconds".to_owned(), json!(seconds.parse::<i64>().ok()?));
    }
    if let Some(policy) = query.get("propagationPolicy") {
        options.insert("propagationPolicy".to_owned(), json!(policy));
    }
    if query.get("orphanDependents").is_some() {
        options.insert("orphanDependents".to_owned(), json!(query.flag("orphanDependents")));
    }
    Some(options)
}

/// Turns the first deletion of each object of a resource into a dry run. The second one deletes the
/// object, so that a run can clean up.
pub(crate) fn first_deletions_are_dry(resource: &'static str) -> Box<dyn Middleware> {
    let seen: Mutex<HashSet<String>> = Mutex::default();
    requests(move |request| {
        if is_delete(request) && request.target().resource == resource && request.body.is_empty() {
            let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
            if seen.insert(request.path.clone()) {
                request.edit_query(|query| query.set("dryRun", "All"));
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use http::Method;

    use super::*;

    #[test]
    fn options_of_a_deletion_move_from_the_query_to_the_body_when_they_change() {
        let mut request =
            Request::new(Method::DELETE, "/api/v1/pods/p?gracePeriodSeconds=5&pretty=true");
        edit_delete_options(&mut request, |_| {});
        assert!(request.body.is_empty());
        edit_delete_options(&mut request, |options| {
            options.insert("propagationPolicy".to_owned(), json!("Orphan"));
        });
        let body = request.json().expect("a body");
        assert_eq!(
            (&body["gracePeriodSeconds"], &body["propagationPolicy"]),
            (&json!(5), &json!("Orphan"))
        );
        assert_eq!(request.raw_query, "pretty=true");
    }
}
