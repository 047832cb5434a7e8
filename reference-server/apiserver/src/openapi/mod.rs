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
mod serve;
mod v2;
mod v3;
mod wire;

use std::collections::BTreeMap;

use bytes::Bytes;
use serde_json::{Value, json};

pub(crate) use gnostic::encode as v2_protobuf;
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

/// Returns the OpenAPI v3 documents by their path below `/openapi/v3/`, such as `api/v1` and
/// `apis/apps/v1`.
pub(crate) fn v3(resources: &[Resource], version: KubernetesVersion) -> BTreeMap<String, Document> {
    let mut by_path: BTreeMap<String, Vec<&Resource>> = BTreeMap::new();
    for resource in resources {
        by_path.entry(prefix(resource)).or_default().push(resource);
    }
    by_path
        .into_iter()
        .map(|(path, resources)| {
            let document = v3::document(&resources, version);
            let bytes = Bytes::from(document.to_string());
            let hash = hash(&bytes);
            (path, Document { bytes, hash })
        })
        .collect()
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
pub(crate) fn v3_index(documents: &BTreeMap<String, Document>) -> Value {
    let entry = |(path, document): (&String, &Document)| {
        let url = format!("/openapi/v3/{path}?hash={}", document.hash);
        (path.clone(), json!({"serverRelativeURL": url}))
    };
    json!({"paths": documents.iter().map(entry).collect::<serde_json::Map<_, _>>()})
}

/// Returns `api/v1` or `apis/apps/v1`.
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
