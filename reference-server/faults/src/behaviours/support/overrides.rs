//! Values that clients see instead of what the server behind has stored.
//!
//! The correct server rejects some values that a faulty one accepts. Middleware then stores the
//! rest of the object, and remembers the rejected values here. Responses show them as if they had
//! been stored.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use http::Method;
use serde_json::Value;

use crate::document;
use crate::exchange::{Body, Request, Response};
use crate::middleware::{Next, edit_events, uncompressed};
use crate::patch;

/// Values by JSON pointer. A member without a value is shown as absent.
pub(crate) type Values = BTreeMap<String, Option<Value>>;

/// The values of each object, by uid.
#[derive(Clone, Default)]
pub(crate) struct Overrides(Arc<Mutex<BTreeMap<String, Values>>>);

impl Overrides {
    /// Adds values to those of an object.
    pub(crate) fn remember(&self, object: &Value, values: Values) {
        if let Some(uid) = object["metadata"]["uid"].as_str() {
            let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            known.entry(uid.to_owned()).or_default().extend(values);
        }
    }

    /// Returns whether an object has a value at this pointer.
    pub(crate) fn has(&self, object: &Value, pointer: &str) -> bool {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let values = object["metadata"]["uid"].as_str().and_then(|uid| known.get(uid));
        values.is_some_and(|values| values.contains_key(pointer))
    }

    /// Edits an object to what clients see.
    pub(crate) fn show(&self, object: &mut Value) {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let values = object["metadata"]["uid"].as_str().and_then(|uid| known.get(uid));
        for (pointer, value) in values.into_iter().flatten() {
            patch::set(object, pointer, value.clone());
        }
    }

    /// Sends a request, and edits the objects and watch events of its response.
    pub(crate) async fn send(&self, mut request: Request, next: Next<'_>) -> Response {
        uncompressed(&mut request);
        let (watch, head) = (request.is_watch(), request.method == Method::HEAD);
        let mut response = next.send(request).await;
        if watch && matches!(response.body, Body::Stream(_)) {
            let overrides = self.clone();
            edit_events(&mut response, move |mut event| {
                overrides.show(&mut event["object"]);
                vec![event]
            });
        } else if !head && !self.is_empty() {
            self.edit(&mut response);
        }
        response
    }

    /// Edits the objects of a response.
    pub(crate) fn edit(&self, response: &mut Response) {
        response.edit_value(|document| {
            document::edit_objects(document, &mut |object| self.show(object));
        });
    }

    fn is_empty(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_shown_in_the_object_with_their_uid_only() {
        let overrides = Overrides::default();
        let object = |uid: &str| json!({ "metadata": { "uid": uid }, "data": { "a": 1 }, "b": 2 });
        let values = [("/data".to_owned(), Some(json!("x"))), ("/b".to_owned(), None)];
        overrides.remember(&object("1"), Values::from(values));
        let (mut first, mut second) = (object("1"), object("2"));
        overrides.show(&mut first);
        overrides.show(&mut second);
        assert_eq!(first, json!({ "metadata": { "uid": "1" }, "data": "x" }));
        assert_eq!(second, object("2"));
        assert!(overrides.has(&first, "/data") && !overrides.has(&second, "/data"));
    }
}
