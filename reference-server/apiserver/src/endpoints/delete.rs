//! DELETE of one object, and of a collection.

use std::sync::Arc;

use http::StatusCode;
use hyper::body::Incoming;
use serde_json::Value;

use super::admit::Admission;
use super::{Call, list};
use crate::config::disabled::Capability;
use crate::endpoints::lifecycle::{DeleteOptions, Deleted, Deletion};
use crate::endpoints::present;
use crate::http::body;
use crate::http::negotiate::Target;
use crate::http::protobuf::to_json;
use crate::http::respond::ApiResponse;
use kubeproof_apimachinery::request::yaml;
use kubeproof_apimachinery::status::{self, ApiError, Details};
use kubeproof_storage::{Key, Stored};

pub(super) async fn handle(call: &Call, body: &mut Incoming) -> Result<ApiResponse, ApiError> {
    let representation = call.accept(Target::Object)?;
    let options = options(call, body).await?;
    match delete(call, &call.key(), &options).await? {
        Deleted::Waiting(object) => {
            present::stored(call, representation, StatusCode::OK, &object).await
        }
        Deleted::WouldWait(object) => present::value(call, representation, StatusCode::OK, &object),
        Deleted::Gone(object)
            if call.ty.deletion_returns_object() || call.api.deletion_returns_object =>
        {
            present::stored(call, representation, StatusCode::OK, &object).await
        }
        Deleted::Gone(object) => {
            let status = success(call, &object);
            Ok(present::document(representation, StatusCode::OK, &status))
        }
    }
}

/// Deletes an object, or begins its deletion, if admission permits it.
async fn delete(call: &Call, key: &Key, options: &DeleteOptions) -> Result<Deleted, ApiError> {
    let admission = Admission::delete(call, options);
    loop {
        let deletion = Deletion::read(&call.api, &call.ty, key, options)?;
        let object = deletion.object(&call.api, &call.ty).await?;
        admission.admit(&mut Value::Null, Some(&object)).await?;
        if let Some(deleted) = deletion.execute(&call.api, options).await? {
            return Ok(deleted);
        }
    }
}

async fn options(call: &Call, body: &mut Incoming) -> Result<DeleteOptions, ApiError> {
    let mut bytes = call.body(body).await?;
    let protobuf = !call.api.disabled_capabilities.on(Capability::Protobuf);
    if protobuf && call.sends_protobuf() && !bytes.is_empty() {
        bytes = to_json(&bytes, ("v1", "DeleteOptions")).map_err(|error| {
            ApiError::bad_request(format!("the body is no DeleteOptions: {error}"))
        })?;
    } else if call.sends_yaml() && !bytes.is_empty() {
        bytes = yaml::to_json(&bytes)?;
    } else if !bytes.is_empty() {
        body::require_json(&call.headers, &call.ty.body_types)?;
    }
    DeleteOptions::parse(&call.query, &bytes)
}

fn success(call: &Call, object: &Stored) -> Value {
    let details = Details {
        name: object.key.name.clone(),
        group: call.ty.group.clone(),
        kind: call.ty.plural.clone(),
        uid: object.facts.uid.clone(),
        ..Details::default()
    };
    status::success(&details)
}

/// Deletes the selected objects and returns them as a list.
pub(super) async fn collection(call: &Call, body: &mut Incoming) -> Result<ApiResponse, ApiError> {
    let representation = call.accept(Target::List)?;
    let options = options(call, body).await?;
    let (page, meta) = list::read(call).await?;
    let mut deleted = Vec::new();
    for item in &page.items {
        match delete(call, &item.key, &options).await {
            Ok(Deleted::Gone(object) | Deleted::Waiting(object)) => deleted.push(object),
            Ok(Deleted::WouldWait(_)) => deleted.push(Arc::clone(item)),
            // Another client deleted the object first.
            Err(error) if error.code == StatusCode::NOT_FOUND => {}
            Err(error) => return Err(error),
        }
    }
    present::list(call, representation, &deleted, &meta).await
}
