//! OpenAPI documents: v3 by group and version, and v2 for all, as JSON and as protobuf for older
//! clients.
//!
//! kubectl reads merge keys, group-version-kinds and the supported query parameters in them. Both
//! versions are written from one model of paths and operations (`operations`).

mod common;
mod definitions;
mod descriptions;
mod gnostic;
mod operations;
mod published;
mod remote;
mod serve;
mod v2;
mod v3;
mod wire;

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Value, json};

pub(crate) use gnostic::encode as v2_protobuf;
pub(crate) use remote::RemoteDocument;
pub(crate) use serve::{Publisher, handle};
pub(crate) use v2::document as v2;

use crate::config::KubernetesVersion;
use crate::discovery::{Resource, hash};

/// The media type in requests for OpenAPI v2 as protobuf.
pub(crate) const PROTOBUF_REQUEST: &str =
    "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";

/// The media type in responses. `@` is not valid in a media type.
pub(crate) const PROTOBUF_RESPONSE: &str =
    "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

/// Returns the resources of each OpenAPI v3 document, by its path below `/openapi/v3/`.
pub(crate) fn by_path(resources: &[Arc<Resource>]) -> BTreeMap<String, Vec<Arc<Resource>>> {
    let mut by_path: BTreeMap<String, Vec<_>> = BTreeMap::new();
    for resource in resources {
        by_path.entry(prefix(resource)).or_default().push(Arc::clone(resource));
    }
    by_path
}

/// Returns the OpenAPI v3 document of the resources of one group and version.
pub(crate) fn v3(resources: &[Arc<Resource>], version: KubernetesVersion) -> Document {
    let bytes = Bytes::from(v3::document(resources, version).to_string());
    let hash = hash(&bytes);
    Document { bytes, hash }
}

/// A serialised document.
#[derive(Clone, Debug)]
pub(crate) struct Document {
    /// The JSON text.
    pub bytes: Bytes,
    /// The hash in the URL. It changes with the document.
    pub hash: String,
}

/// Returns the document of `/openapi/v3`: the URLs of the documents.
pub(crate) fn v3_index<'d>(documents: impl Iterator<Item = (&'d String, &'d Document)>) -> Value {
    let entry = |(path, document): (&String, &Document)| {
        let url = format!("/openapi/v3/{path}?hash={}", document.hash);
        (path.clone(), json!({"serverRelativeURL": url}))
    };
    json!({"paths": documents.map(entry).collect::<serde_json::Map<_, _>>()})
}

/// Returns the path of the document of a resource below `/openapi/v3/`: `api/v1` or `apis/apps/v1`.
fn prefix(resource: &Resource) -> String {
    let root = if resource.group.is_empty() { "api" } else { "apis" };
    format!("{root}/{}", resource.api_version())
}

/// Returns the information about the whole API.
fn info(version: KubernetesVersion) -> Value {
    json!({"title": "kubeproof reference server", "version": version.as_str()})
}

#[cfg(test)]
mod tests;
