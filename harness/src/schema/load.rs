//! Reads the schemas that a server publishes: OpenAPI documents and custom resource definitions.

use futures_util::future::{join, join_all};
use serde_json::Value;
use tokio::time::Instant;

use super::model::Published;
use crate::capability::Requester;
use crate::event::Verdict;
use crate::transport::Client;

/// Concurrent requests. Documents are large, and only their types are kept.
const AT_ONCE: usize = 4;

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// The group suffix of resources that runs install. They do not belong to the target.
const OWN: &str = ".kubeproof.dev";

/// Why no schema can be judged.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum LoadError {
    /// The list of documents is missing.
    #[error("/openapi/v3 does not list documents: {0}")]
    NoIndex(String),
    /// A document is missing.
    #[error("{0} does not return a document: {1}")]
    NoDocument(String, String),
    /// A document cannot be parsed.
    #[error("{0} returns 200 without a valid OpenAPI document")]
    Unreadable(String),
}

impl LoadError {
    /// A server with an unreadable document is wrong. A server without documents may be conformant.
    pub(crate) const fn verdict(&self) -> Verdict {
        match self {
            Self::NoIndex(_) | Self::NoDocument(..) => Verdict::Error,
            Self::Unreadable(_) => Verdict::Fail,
        }
    }
}

/// Loads all published schemas, except those that runs install.
pub(crate) async fn published(client: &Client, deadline: Instant) -> Result<Published, LoadError> {
    let requester = Requester { client, deadline };
    let json = "application/json";
    let (index, crds) = join(requester.get("/openapi/v3", json), requester.get(CRDS, json)).await;
    let paths = index.json().and_then(|index| index["paths"].as_object());
    let paths = paths.ok_or_else(|| LoadError::NoIndex(index.in_words()))?;
    let of_versions = paths.iter().filter(|(path, _)| {
        let parts: Vec<&str> = path.split('/').collect();
        matches!(parts.as_slice(), ["api", _] | ["apis", _, _]) && !path.ends_with(OWN)
    });
    let urls: Vec<&str> = of_versions
        .filter(|(path, _)| path.split('/').nth(1).is_none_or(|group| !group.ends_with(OWN)))
        .filter_map(|(_, entry)| entry["serverRelativeURL"].as_str())
        .collect();
    let crds = crds.json().and_then(|list| list["items"].as_array()).cloned().unwrap_or_default();
    let crds: Vec<Value> = crds.into_iter().filter(|crd| !group(crd).ends_with(OWN)).collect();
    let by_crd = |name: &str| name.ends_with(OWN) || crds.iter().any(|crd| group(crd) == name);
    let mut published = Published::default();
    for some in urls.chunks(AT_ONCE) {
        let documents = join_all(some.iter().map(|url| requester.get(url, json))).await;
        for (url, document) in some.iter().zip(documents) {
            let body = document.json().filter(|body| body["openapi"].is_string());
            let body = body.ok_or_else(|| match document.status() {
                200 => LoadError::Unreadable((*url).to_owned()),
                _ => LoadError::NoDocument((*url).to_owned(), document.in_words()),
            })?;
            published.add_document(body, &by_crd);
        }
    }
    published.finish();
    for mut crd in crds {
        // Items of a list may omit the apiVersion.
        crd["apiVersion"] = "apiextensions.k8s.io/v1".into();
        // A stored definition has all required members.
        let _ = published.add_crd(&crd);
    }
    Ok(published)
}

fn group(crd: &Value) -> &str {
    crd["spec"]["group"].as_str().unwrap_or_default()
}
