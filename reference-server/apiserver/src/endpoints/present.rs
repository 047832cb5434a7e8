//! Presents objects and lists in the form that the client requested.

use std::sync::Arc;

use http::StatusCode;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::endpoints::{Call, convert};
use crate::http::items::Items;
use crate::http::negotiate::{Form, Representation};
use crate::http::respond::ApiResponse;
use crate::registry::ResourceType;
use kubeproof_apimachinery::object::Object as _;
use kubeproof_apimachinery::request::Query;
use kubeproof_apimachinery::status::ApiError;
use kubeproof_apimachinery::table::MetaVersion;
use kubeproof_apimachinery::table::{IncludeObject, View};
use kubeproof_storage::Stored;

/// The `metadata` of a list.
#[derive(Clone, Debug, Default)]
pub(crate) struct ListMeta {
    pub(crate) revision: Option<u64>,
    pub(crate) resume: Option<String>,
    pub(crate) remaining: Option<usize>,
}

impl ListMeta {
    pub(crate) fn to_value(&self) -> Value {
        let mut meta = json!({});
        if let Some(revision) = self.revision {
            meta["resourceVersion"] = revision.to_string().into();
        }
        if let Some(resume) = &self.resume {
            meta["continue"] = resume.as_str().into();
        }
        if let Some(remaining) = self.remaining {
            meta["remainingItemCount"] = remaining.into();
        }
        meta
    }
}

/// Presents a stored object. In plain JSON this copies its bytes.
pub(crate) async fn stored(
    call: &Call,
    representation: Representation,
    status: StatusCode,
    object: &Stored,
) -> Result<ApiResponse, ApiError> {
    if representation == Representation::JSON && call.ty.serves_as_stored(object) {
        let text = object.object();
        let mut bytes = Vec::with_capacity(text.len() + 1);
        bytes.extend_from_slice(text);
        bytes.push(b'\n');
        return Ok(ApiResponse::bytes(status, bytes));
    }
    let object = convert::load(&call.api, &call.ty, object).await?;
    value(call, representation, status, &object)
}

/// Presents an object that is not in the store.
pub(crate) fn value(
    call: &Call,
    representation: Representation,
    status: StatusCode,
    object: &Value,
) -> Result<ApiResponse, ApiError> {
    let shown = match representation.form {
        Form::Table(version) => {
            tables(call, std::slice::from_ref(object), &ListMeta::of(object), version)?
        }
        Form::Metadata(version) => partial(object, version),
        Form::Plain | Form::AggregatedDiscovery => {
            return Ok(document(representation, status, object));
        }
    };
    Ok(document(representation, status, &shown))
}

/// Presents a list of stored objects. In plain JSON this copies their bytes.
pub(crate) async fn list(
    call: &Call,
    representation: Representation,
    items: &[Arc<Stored>],
    meta: &ListMeta,
) -> Result<ApiResponse, ApiError> {
    let ty = &call.ty;
    let is_converted = items.iter().any(|item| ty.conversion_of(item).is_some());
    if representation == Representation::JSON && !is_converted {
        let head = format!(
            r#"{{"kind":"{}","apiVersion":"{}","metadata":{},"items":["#,
            ty.list_kind,
            ty.api_version(),
            meta.to_value()
        );
        // Items of a built-in list have no kind. Items of a custom resource have one.
        let item_head = if ty.custom { ty.head.clone() } else { "{".to_owned() };
        let mut text = Items::new(head, item_head, "]}\n");
        for item in items {
            if ty.serves_as_stored(item) {
                text.stored(item.clone());
            } else {
                text.bytes(ty.load(item).to_string().into());
            }
        }
        return Ok(ApiResponse::items(text));
    }
    let objects = convert::load_all(&call.api, ty, items).await?;
    let shown = match representation.form {
        Form::Table(version) => tables(call, &objects, meta, version)?,
        Form::Metadata(version) => json!({
            "kind": "PartialObjectMetadataList",
            "apiVersion": version.api_version(),
            "metadata": meta.to_value(),
            "items": objects.iter().map(|object| partial(object, version)).collect::<Vec<_>>(),
        }),
        Form::Plain | Form::AggregatedDiscovery => json!({
            "kind": ty.list_kind,
            "apiVersion": ty.api_version(),
            "metadata": meta.to_value(),
            "items": objects,
        }),
    };
    Ok(document(representation, StatusCode::OK, &shown))
}

/// Presents a document in the encoding of the representation.
pub(crate) fn document(
    representation: Representation,
    status: StatusCode,
    document: &Value,
) -> ApiResponse {
    ApiResponse::document(representation, status, document)
}

/// Returns type and metadata of an object.
pub(crate) fn partial(object: &Value, version: MetaVersion) -> Value {
    json!({
        "kind": "PartialObjectMetadata",
        "apiVersion": version.api_version(),
        "metadata": object["metadata"],
    })
}

impl ListMeta {
    /// Returns the list metadata for the table of one object: its version.
    fn of(object: &Value) -> Self {
        Self {
            revision: Some(object.revision()).filter(|revision| *revision > 0),
            ..Self::default()
        }
    }
}

/// Returns a table of objects.
fn tables(
    call: &Call,
    objects: &[Value],
    meta: &ListMeta,
    version: MetaVersion,
) -> Result<Value, ApiError> {
    let include = include(&call.query)?;
    Ok(view(&call.ty, version, include).render(&meta.to_value(), objects))
}

/// Parses `includeObject`: what the rows of a table contain besides their cells.
pub(crate) fn include(query: &Query) -> Result<IncludeObject, ApiError> {
    IncludeObject::parse(query.get("includeObject").unwrap_or_default())
        .map_err(|error| ApiError::bad_request(error.to_string()))
}

/// Returns the view that converts objects of a type to tables.
pub(crate) fn view(ty: &ResourceType, version: MetaVersion, include: IncludeObject) -> View<'_> {
    View { columns: &ty.columns, version, include, now: Timestamp::now() }
}
