//! Reads what a server publishes: its OpenAPI documents and, where there are any, its custom resource definitions.

use futures_util::future::{join, join_all};
use serde_json::Value;
use tokio::time::Instant;

use super::model::Published;
use crate::capability::Asker;
use crate::event::Verdict;
use crate::transport::Client;

/// Documents at once. They are large, and nothing of one is kept but its types.
const AT_ONCE: usize = 4;

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// Groups of resources that runs of this suite install end so: they are not the target's.
const OWN: &str = ".kubeproof.dev";

/// Why nothing can be judged.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum LoadError {
    /// The list of documents.
    #[error("/openapi/v3 does not tell where the documents are: {0}")]
    NoIndex(String),
    /// One of them.
    #[error("{0} does not answer with a document: {1}")]
    NoDocument(String, String),
    /// One of them came, and cannot be read.
    #[error("{0} answers 200, and no OpenAPI document that can be read")]
    Unreadable(String),
}

impl LoadError {
    /// What it says of the server: one that hands out what nobody can read is wrong, one that hands out nothing may be lawful.
    pub(crate) const fn verdict(&self) -> Verdict {
        match self {
            Self::NoIndex(_) | Self::NoDocument(..) => Verdict::Error,
            Self::Unreadable(_) => Verdict::Fail,
        }
    }
}

/// All that is published, but for what runs of this suite install.
pub(crate) async fn published(client: &Client, deadline: Instant) -> Result<Published, LoadError> {
    let asker = Asker { client, deadline };
    let json = "application/json";
    let (index, crds) = join(asker.get("/openapi/v3", json), asker.get(CRDS, json)).await;
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
        let documents = join_all(some.iter().map(|url| asker.get(url, json))).await;
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
        // Items of a list may lack what all of them share.
        crd["apiVersion"] = "apiextensions.k8s.io/v1".into();
        // What the server stored has all that is read.
        let _ = published.add_crd(&crd);
    }
    Ok(published)
}

fn group(crd: &Value) -> &str {
    crd["spec"]["group"].as_str().unwrap_or_default()
}
