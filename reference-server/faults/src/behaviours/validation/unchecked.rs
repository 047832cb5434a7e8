//! Validation that a faulty server leaves out: immutable fields, results of patches, and the size
//! of bodies.

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use http::{Method, StatusCode};
use serde_json::Value;

use crate::behaviours::Fault;
use crate::behaviours::support::overrides::{Overrides, Values};
use crate::exchange::{Request, Response};
use crate::middleware::{Middleware, Next};
use crate::patch;

/// The middleware of a fault of this file.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    let overrides = Overrides::default();
    Some(match fault {
        Fault::ImmutableMayChange
        | Fault::SealedDataMayChange
        | Fault::SealMayBeBroken
        | Fault::SealRemovedByPut
        | Fault::RoleOfBindingMayChange => Box::new(Immutable { fault, overrides }),
        Fault::PatchResultUnchecked => Box::new(PatchResult { overrides }),
        Fault::BodyLimitMissing => Box::new(BodyLimit { overrides }),
        _ => return None,
    })
}

/// An update or patch that the server rejected.
struct Rejected {
    /// The object as the server stores it.
    stored: Value,
    /// The object as the client sees it.
    current: Value,
    /// The object with the changes of the request.
    wanted: Value,
}

/// Computes what a rejected request would store; `None` for strategic patches and apply.
async fn rejected(request: &Request, overrides: &Overrides, next: Next<'_>) -> Option<Rejected> {
    let target = request.target();
    if !target.is_object() {
        return None;
    }
    let get = request.by_same_client(Method::GET, &request.path);
    let response = next.send(get).await;
    let stored = response.value().filter(|_| response.status == StatusCode::OK)?;
    let mut current = stored.clone();
    overrides.show(&mut current);
    let body = request.json()?;
    let wanted = match (&request.method, request.media_type().as_str()) {
        (&Method::PUT, _) => body,
        (&Method::PATCH, "application/merge-patch+json") => {
            let mut wanted = current.clone();
            patch::merge(&mut wanted, &body);
            wanted
        }
        (&Method::PATCH, "application/json-patch+json") => patch::json_patch(&current, &body)?,
        _ => return None,
    };
    wanted.is_object().then_some(Rejected { stored, current, wanted })
}

/// Immutable fields that may change.
struct Immutable {
    fault: Fault,
    overrides: Overrides,
}

impl Middleware for Immutable {
    fn handle<'a>(&'a self, request: Request, next: Next<'a>) -> BoxFuture<'a, Response> {
        async move {
            let response = self.overrides.send(request.clone(), next).await;
            let needs_put = self.fault == Fault::SealRemovedByPut;
            if response.status != StatusCode::UNPROCESSABLE_ENTITY
                || (needs_put && request.method != Method::PUT)
            {
                return response;
            }
            let status = response.value().unwrap_or_default();
            self.accept(&request, &status, next).await.unwrap_or(response)
        }
        .boxed()
    }
}

impl Immutable {
    /// Stores the rest of the object, and shows the immutable fields as the client changed them.
    async fn accept(&self, request: &Request, status: &Value, next: Next<'_>) -> Option<Response> {
        let Rejected { stored, current, mut wanted } =
            rejected(request, &self.overrides, next).await?;
        let mut values = Values::new();
        for cause in status["details"]["causes"].as_array()? {
            let (field, message) = (cause["field"].as_str()?, cause["message"].as_str()?);
            if !self.may_change(field, message, &current) {
                return None;
            }
            let pointer = format!("/{}", field.replace('.', "/"));
            values.insert(pointer.clone(), wanted.pointer(&pointer).cloned());
            patch::set(&mut wanted, &pointer, stored.pointer(&pointer).cloned());
        }
        let mut put = request.clone().with_json("application/json", &wanted);
        put.method = Method::PUT;
        put.edit_query(|query| {
            query.remove("force");
        });
        let mut response = next.send(put).await;
        if response.status == StatusCode::OK {
            response.edit_value(|object| {
                for (pointer, value) in &values {
                    patch::set(object, pointer, value.clone());
                }
            });
            if !request.is_dry_run() {
                self.overrides.remember(&stored, values);
            }
        }
        Some(response)
    }

    fn may_change(&self, field: &str, message: &str, current: &Value) -> bool {
        let immutable = message.contains("immutable") || message.contains("may not change fields");
        let unsealed = self.overrides.has(current, "/immutable");
        if self.fault == Fault::RoleOfBindingMayChange {
            return field == "roleRef" && message.contains("must not change");
        }
        immutable
            && match self.fault {
                Fault::SealedDataMayChange => matches!(field, "data" | "binaryData"),
                Fault::SealMayBeBroken | Fault::SealRemovedByPut => {
                    field == "immutable" || unsealed
                }
                _ => true,
            }
    }
}

/// Patches whose result may have fields of any type.
struct PatchResult {
    overrides: Overrides,
}

impl Middleware for PatchResult {
    fn handle<'a>(&'a self, request: Request, next: Next<'a>) -> BoxFuture<'a, Response> {
        async move {
            let response = self.overrides.send(request.clone(), next).await;
            let invalid = matches!(
                response.status,
                StatusCode::BAD_REQUEST | StatusCode::UNPROCESSABLE_ENTITY
            );
            if !invalid || request.method != Method::PATCH || request.is_dry_run() {
                return response;
            }
            self.accept(&request, next).await.unwrap_or(response)
        }
        .boxed()
    }
}

impl PatchResult {
    async fn accept(&self, request: &Request, next: Next<'_>) -> Option<Response> {
        let Rejected { current, wanted, .. } = rejected(request, &self.overrides, next).await?;
        let fields = wanted.as_object()?.iter();
        let changed: Values = fields
            .filter(|(name, value)| current.get(name.as_str()) != Some(*value))
            .map(|(name, value)| (format!("/{name}"), Some(value.clone())))
            .collect();
        if changed.is_empty()
            || ["/kind", "/apiVersion", "/metadata"]
                .iter()
                .any(|field| changed.contains_key(*field))
        {
            return None;
        }
        self.overrides.remember(&current, changed);
        Some(Response::json(StatusCode::OK, &wanted))
    }
}

/// The longest body that servers accept, in bytes.
const LIMIT: usize = 3 * 1024 * 1024;

/// The length to which all long strings of a body together are cut, in bytes.
const REST: usize = 2 * 1024 * 1024;

/// The shortest string that is cut, in bytes.
const LONG: usize = 64 * 1024;

/// Bodies of any size.
struct BodyLimit {
    overrides: Overrides,
}

impl Middleware for BodyLimit {
    fn handle<'a>(&'a self, mut request: Request, next: Next<'a>) -> BoxFuture<'a, Response> {
        async move {
            let mut values = Values::new();
            if request.body.len() > LIMIT && request.media_type() != "application/json-patch+json" {
                request.edit_json(|body| shorten(body, &mut values));
            }
            let mut response = self.overrides.send(request.clone(), next).await;
            if response.status.is_success() && !values.is_empty() && !request.is_dry_run() {
                self.overrides.remember(&response.value().unwrap_or_default(), values);
                self.overrides.edit(&mut response);
            }
            response
        }
        .boxed()
    }
}

/// Cuts long strings so that the server reads the body, and validates it as a long one.
fn shorten(body: &mut Value, values: &mut Values) {
    let mut long = Vec::new();
    find_long(body, "", &mut long);
    let length = REST / long.len().max(1);
    for pointer in long {
        if let Some(Value::String(text)) = body.pointer_mut(&pointer) {
            values.insert(pointer, Some(text.clone().into()));
            let end = (0..=length.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
            text.truncate(end.unwrap_or_default());
        }
    }
}

fn find_long(value: &Value, pointer: &str, found: &mut Vec<String>) {
    match value {
        Value::String(text) if text.len() >= LONG => found.push(pointer.to_owned()),
        Value::Object(fields) => {
            for (name, value) in fields {
                let name = name.replace('~', "~0").replace('/', "~1");
                find_long(value, &format!("{pointer}/{name}"), found);
            }
        }
        Value::Array(items) => {
            for (index, value) in items.iter().enumerate() {
                find_long(value, &format!("{pointer}/{index}"), found);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[test]
    fn long_strings_are_cut_and_remembered() {
        let mut body = json!({ "data": { "a/b": "x".repeat(4_000_000), "c": "short" } });
        let mut values = Values::new();
        shorten(&mut body, &mut values);
        assert_eq!(body["data"]["a/b"].as_str().map(str::len), Some(REST));
        let whole = values.get("/data/a~1b").and_then(Option::as_ref).and_then(Value::as_str);
        assert_eq!(whole.map(str::len), Some(4_000_000));
        assert_eq!(values.len(), 1);
    }

    #[rstest]
    #[case(Fault::ImmutableMayChange, "spec.selector", true)]
    #[case(Fault::SealedDataMayChange, "data", true)]
    #[case(Fault::SealedDataMayChange, "immutable", false)]
    #[case(Fault::SealMayBeBroken, "immutable", true)]
    #[case(Fault::SealMayBeBroken, "data", false)]
    fn each_fault_lets_its_fields_change(
        #[case] fault: Fault,
        #[case] field: &str,
        #[case] expected: bool,
    ) {
        let immutable = Immutable { fault, overrides: Overrides::default() };
        assert_eq!(immutable.may_change(field, "field is immutable", &json!({})), expected);
        assert!(!immutable.may_change(field, "must be at least 1", &json!({})));
    }
}
