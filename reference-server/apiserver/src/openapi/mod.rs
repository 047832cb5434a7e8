//! OpenAPI documents: v3 by group and version, and v2 for all, as JSON and as protobuf for older
//! clients.
//!
//! kubectl reads merge keys, group-version-kinds and the supported query parameters in them. Both
//! versions are written from one model of paths and operations (`operations`). The paths follow
//! from the resources (`resource_paths`), and the parameters from the options types (`parameters`).
//!
//! The documents are those of kube-apiserver, with few differences. The descriptions and the title
//! are our own, and version 2 repeats shared parameters. Documents of custom resources have the
//! kind `Scale` at `/scale`, the group of the resource at `DeleteOptions`, and the authentication.

mod common;
mod definitions;
mod descriptions;
mod gnostic;
mod naming;
mod operations;
mod other_paths;
mod parameters;
mod published;
mod remote;
mod resource_paths;
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

use self::definitions::{Dialect, KINDS};
use self::operations::{Content, Operation, PathItem};
use self::parameters::Parameter;
use crate::config::KubernetesVersion;
use crate::discovery::{Resource, hash};

/// The media type in requests for OpenAPI v2 as protobuf.
pub(crate) const PROTOBUF_REQUEST: &str =
    "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";

/// The media type in responses. `@` is not valid in a media type.
pub(crate) const PROTOBUF_RESPONSE: &str =
    "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

/// Returns the resources of each OpenAPI v3 document, by its path below `/openapi/v3/`. Documents
/// such as `apis` and `version` have no resources.
pub(crate) fn by_path(resources: &[Arc<Resource>]) -> BTreeMap<String, Vec<Arc<Resource>>> {
    let others = other_paths::documents(resources).into_iter();
    let mut by_path: BTreeMap<String, Vec<_>> = others.map(|path| (path, Vec::new())).collect();
    for resource in resources {
        by_path.entry(prefix(resource)).or_default().push(Arc::clone(resource));
    }
    by_path
}

/// Returns the OpenAPI v3 document with this path.
pub(crate) fn v3(path: &str, resources: &[Arc<Resource>], version: KubernetesVersion) -> Document {
    let bytes = Bytes::from(v3::document(path, resources, version).to_string());
    let hash = hash(&bytes);
    Document { bytes, hash }
}

/// Returns the paths in a document of version 3.
fn items(path: &str, resources: &[Arc<Resource>], version: KubernetesVersion) -> Vec<PathItem> {
    let is_custom = resources.iter().any(|resource| resource.custom);
    let own = if is_custom { None } else { other_paths::item(path) };
    let definitions = version.definitions();
    let paths = |resource: &Arc<Resource>| resource_paths::paths(resource, definitions);
    own.into_iter().chain(resources.iter().flat_map(paths)).collect()
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

/// Returns how clients authenticate.
fn security_schemes() -> Value {
    json!({"BearerToken": {
        "type": "apiKey", "in": "header", "name": "authorization",
        "description": "A token after the word Bearer.",
    }})
}

/// Returns the schema of a body.
fn schema(content: &Content, dialect: Dialect) -> Value {
    match content {
        Content::Definition(name) => json!({"$ref": dialect.pointer(name)}),
        Content::Text => json!({"type": "string"}),
        Content::Object => json!({"type": "object"}),
    }
}

/// Adds the action and the kind of an operation.
fn add_extensions(operation: &Operation, written: &mut Value) {
    if let Some(action) = operation.action {
        written["x-kubernetes-action"] = action.into();
    }
    if let Some([group, version, kind]) = &operation.kind {
        written[KINDS] = json!({"group": group, "version": version, "kind": kind});
    }
}

/// Adds the keywords that a parameter may lack. Kubernetes writes `required` only if it is true.
fn add_keywords(parameter: &Parameter, written: &mut Value) {
    if parameter.place == "path" {
        written["required"] = true.into();
    }
    if let Some(text) = parameter.description() {
        written["description"] = text.into();
    }
}

#[cfg(test)]
mod tests;
