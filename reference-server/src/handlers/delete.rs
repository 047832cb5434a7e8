//! DELETE of one object, and of a collection.

use std::sync::Arc;

use http::StatusCode;
use hyper::body::Incoming;
use serde_json::Value;

use super::{Call, list};
use crate::body;
use crate::lifecycle::{self, DeleteOptions, Deleted};
use crate::negotiate::Target;
use crate::object::Object as _;
use crate::present;
use crate::respond::Answer;
use crate::status::{self, ApiError, Details};
use crate::store::Stored;
use crate::{Fault, Faults, Variation};

pub(super) async fn handle(call: &Call, body: &mut Incoming) -> Result<Answer, ApiError> {
    let representation = call.accept(Target::Object)?;
    let options = options(call, body).await?;
    let missing = |error: &ApiError| error.code == StatusCode::NOT_FOUND;
    let deleted = match lifecycle::delete(&call.api, &call.ty, &call.key(), &options) {
        Err(error) if missing(&error) && call.faults().on(Fault::DeleteMissingSucceeds) => {
            let status = status::success(&Details { name: call.info.name.clone(), ..Details::default() });
            return Ok(present::document(representation, StatusCode::OK, &status));
        }
        deleted => deleted?,
    };
    match deleted {
        Deleted::Waiting(object) if call.faults().on(Fault::DeletionAnswersUnmarked) => {
            let mut object = call.ty.load(&object, call.faults());
            object.unset_meta("deletionTimestamp");
            present::value(call, representation, StatusCode::OK, &object)
        }
        Deleted::Gone(_) if call.faults().on(Fault::DeleteAnswersNothing) => {
            Ok(Answer::bytes(StatusCode::OK, ""))
        }
        Deleted::Waiting(object) => present::stored(call, representation, StatusCode::OK, &object),
        Deleted::WouldWait(object) => present::value(call, representation, StatusCode::OK, &object),
        Deleted::Gone(object)
            if call.ty.deletion_returns_object() || call.api.variations.on(Variation::ObjectOnDelete) =>
        {
            present::stored(call, representation, StatusCode::OK, &object)
        }
        Deleted::Gone(object) => {
            let status = success(call, &object, call.faults());
            Ok(present::document(representation, StatusCode::OK, &status))
        }
    }
}

async fn options(call: &Call, body: &mut Incoming) -> Result<DeleteOptions, ApiError> {
    let bytes = call.body(body).await?;
    if !bytes.is_empty() {
        body::require_json(&call.headers, call.faults())?;
    }
    if call.faults().on(Fault::DeleteOptionsOfCoreOnly) {
        let given: Value = serde_json::from_slice(&bytes).unwrap_or_default();
        if given["apiVersion"].as_str().is_some_and(|version| version != "v1") {
            return Err(ApiError::bad_request("the body must be a DeleteOptions of v1"));
        }
    }
    DeleteOptions::parse(&call.query, &bytes, call.faults())
}

fn success(call: &Call, object: &Stored, faults: Faults) -> Value {
    let details = Details {
        name: object.key.name.clone(),
        group: call.ty.group.clone(),
        kind: call.ty.plural.clone(),
        uid: object.facts.uid.clone(),
        ..Details::default()
    };
    let mut status = status::success(&details);
    if faults.on(Fault::DeleteAnswersEmpty) {
        status = Value::Object(serde_json::Map::new());
    }
    status
}

/// Deletes what the selectors select, and answers with the list of it.
pub(super) async fn collection(call: &Call, body: &mut Incoming) -> Result<Answer, ApiError> {
    let representation = call.accept(Target::List)?;
    let options = options(call, body).await?;
    let (page, meta) = if call.faults().on(Fault::DeleteCollectionIgnoresSelector) {
        list::read_all(call)?
    } else {
        list::read(call)?
    };
    let mut deleted = Vec::new();
    for item in &page.items {
        match lifecycle::delete(&call.api, &call.ty, &item.key, &options) {
            Ok(Deleted::Gone(object) | Deleted::Waiting(object)) => deleted.push(object),
            Ok(Deleted::WouldWait(_)) => deleted.push(Arc::clone(item)),
            // Somebody else was faster, which is what was asked for.
            Err(error) if error.code == StatusCode::NOT_FOUND => {}
            Err(error) => return Err(error),
        }
    }
    present::list(call, representation, &deleted, &meta)
}
