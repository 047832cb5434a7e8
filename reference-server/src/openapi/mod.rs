//! OpenAPI documents: v3 by group and version, and v2 for all, as JSON and as the protobuf that older clients read.
//!
//! Clients take more from them than field names: kubectl finds merge keys, group-version-kinds and the query parameters that
//! an operation supports. Both versions are written from one model of paths and operations (`operations`).

mod bends;
mod common;
mod definitions;
mod gnostic;
mod operations;
mod serve;
mod v2;
mod v3;
mod wire;
mod words;

use std::collections::BTreeMap;

use bytes::Bytes;
use serde_json::{Value, json};

pub use gnostic::encode as v2_protobuf;
pub(crate) use serve::{Publisher, answer};
pub use v2::document as v2;

use crate::discovery::{Resource, hash};
use crate::faults::Faults;

/// The media type under which clients ask for OpenAPI v2 as protobuf.
pub const PROTOBUF_REQUEST: &str = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";

/// The media type under which it is answered: an `@` is no legal part of one.
pub const PROTOBUF_RESPONSE: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

/// The OpenAPI v3 documents by their place below `/openapi/v3/`, such as `api/v1` and `apis/apps/v1`.
pub fn v3(resources: &[Resource], server_version: &str, faults: Faults) -> BTreeMap<String, Document> {
    let mut by_path: BTreeMap<String, Vec<&Resource>> = BTreeMap::new();
    for resource in resources {
        by_path.entry(prefix(resource)).or_default().push(resource);
    }
    by_path
        .into_iter()
        .map(|(path, resources)| {
            let document = v3::document(&resources, server_version, faults);
            let bytes = Bytes::from(document.to_string());
            let hash = hash(&bytes);
            (path, Document { bytes, hash })
        })
        .collect()
}

/// One document, written out.
#[derive(Clone, Debug)]
pub struct Document {
    /// Its JSON.
    pub bytes: Bytes,
    /// The hash in its URL: as long as that is the same, so is the document.
    pub hash: String,
}

/// `/openapi/v3`: where the documents are.
pub fn v3_index(documents: &BTreeMap<String, Document>) -> Value {
    let entry = |(path, document): (&String, &Document)| {
        let url = format!("/openapi/v3/{path}?hash={}", document.hash);
        (path.clone(), json!({"serverRelativeURL": url}))
    };
    json!({"paths": documents.iter().map(entry).collect::<serde_json::Map<_, _>>()})
}

/// `api/v1` or `apis/apps/v1`.
fn prefix(resource: &Resource) -> String {
    let root = if resource.group.is_empty() { "api" } else { "apis" };
    format!("{root}/{}", resource.api_version())
}

/// What the documents say about the whole API.
fn info(server_version: &str) -> Value {
    json!({"title": "kubeproof reference server", "version": server_version})
}

#[cfg(test)]
mod tests;
