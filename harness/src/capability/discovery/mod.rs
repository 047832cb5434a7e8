//! Finds the resources of a server.
//!
//! Discovery lists them, aggregated or legacy. A server needs only one of /api and /apis. Cases
//! judge broken documents. One broken document must not hide the rest of the server. So the run
//! also follows redirects, reads the documents of group versions and OpenAPI, and requests the
//! objects of known resources.

mod documents;
mod evidence;
mod openapi;
mod redirects;
mod unlisted;

use std::collections::{BTreeMap, BTreeSet};

use futures_util::future::{join, join_all};
use kubeproof_cases::case::ResourceName;
use serde_json::Value;

pub(crate) use self::evidence::serves_anything;
use self::redirects::Document;
pub(crate) use self::unlisted::{Search, WantedResource};
use super::{Discovered, ProbeOptions, Requester, root_of};

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,\
    application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json";

/// Limit on the group versions to request. No cluster serves as many.
const MAX_LISTS: usize = 2000;

const AT_ONCE: usize = 64;

/// The verbs of a resource that can be read, written and watched.
pub(crate) const STANDARD_VERBS: [&str; 8] =
    ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

type Resources = BTreeMap<ResourceName, Discovered>;

/// The resources of a server, and the gaps of its discovery.
#[derive(Debug, Default)]
pub(crate) struct Discovery {
    /// Every resource, from discovery and from other sources.
    pub(crate) resources: Resources,
    /// True if the server returns aggregated documents of the stable version.
    pub(crate) is_aggregated: bool,
    /// What is wrong with discovery, in words.
    pub(crate) gaps: Vec<String>,
    /// Documents without the expected content, by path, with the response in words. A server may
    /// lack them, so they are gaps only if it serves resources there.
    broken: BTreeMap<String, String>,
}

impl Discovery {
    /// Reads discovery, and completes it from OpenAPI.
    pub(crate) async fn of(requester: &Requester<'_>, wanted: &[WantedResource]) -> Self {
        let (core, groups) = join(
            redirects::get(requester, "/api", AGGREGATED),
            redirects::get(requester, "/apis", AGGREGATED),
        )
        .await;
        let mut discovery = Self { is_aggregated: is_stable(&groups), ..Self::default() };
        let mut roots = BTreeSet::new();
        for (path, document) in [("/api", &core), ("/apis", &groups)] {
            roots.extend(discovery.read_document(path, document));
        }
        if !discovery.broken.is_empty() {
            roots.extend(discovery.hidden_roots(requester, wanted).await);
        }
        discovery.read_lists(requester, roots.into_iter().take(MAX_LISTS).collect()).await;
        discovery.complete_from_openapi(requester).await;
        discovery
    }

    /// Completes discovery by requests for the objects of wanted resources.
    pub(crate) async fn complete(
        mut self,
        requester: &Requester<'_>,
        options: Option<&ProbeOptions<'_>>,
    ) -> Self {
        if let Some(options) = options {
            unlisted::add(requester, &mut self, options).await;
        }
        unlisted::assume_verbs(requester, &mut self, options).await;
        let broken = std::mem::take(&mut self.broken);
        for (path, response) in broken {
            let below = |name: &ResourceName| {
                root_of(name)
                    .strip_prefix(&path)
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            };
            if self.resources.keys().any(below) {
                self.gaps.push(format!("GET {path} returned {response}"));
            }
        }
        self.gaps.sort();
        self.gaps.dedup();
        self
    }

    /// Reads the document of `/api` or `/apis`. Returns the paths of the lists to read.
    fn read_document(&mut self, path: &str, document: &Document) -> Vec<String> {
        self.note_redirect(path, document);
        match document.exchange.json() {
            Some(json) if documents::is_aggregated(json) && documents::names_groups(json, path) => {
                self.resources.append(&mut documents::aggregated(json));
                Vec::new()
            }
            json => json.and_then(documents::roots).unwrap_or_else(|| {
                self.broken.insert(path.to_owned(), document.in_words());
                Vec::new()
            }),
        }
    }

    /// Returns the paths of group versions that a broken document may hide.
    async fn hidden_roots(
        &self,
        requester: &Requester<'_>,
        wanted: &[WantedResource],
    ) -> BTreeSet<String> {
        let mut roots = openapi::roots(requester).await;
        roots.extend(wanted.iter().map(|wanted| root_of(&wanted.name)));
        roots.retain(|root| self.broken.keys().any(|path| root.starts_with(&format!("{path}/"))));
        roots
    }

    async fn read_lists(&mut self, requester: &Requester<'_>, roots: Vec<String>) {
        for some in roots.chunks(AT_ONCE) {
            let lists =
                join_all(some.iter().map(|root| redirects::get(requester, root, JSON))).await;
            for (root, document) in some.iter().zip(lists) {
                self.note_redirect(root, &document);
                match resources_of(&document, root) {
                    Some(resources) => self.resources.extend(resources),
                    None => drop(self.broken.insert(root.clone(), document.in_words())),
                }
            }
        }
    }

    /// Adds resources of broken lists, and missing verbs.
    async fn complete_from_openapi(&mut self, requester: &Requester<'_>) {
        let mut verbless = BTreeSet::new();
        for (name, _) in self.resources.iter().filter(|(_, found)| found.verbs.is_empty()) {
            if verbless.is_empty() {
                self.gaps.push(format!("discovery lists {name} without verbs"));
            }
            verbless.insert(root_of(name));
        }
        let lists = self.broken.keys().filter(|path| !matches!(path.as_str(), "/api" | "/apis"));
        let roots: BTreeSet<String> = lists.chain(&verbless).cloned().collect();
        if roots.is_empty() {
            return;
        }
        for (name, published) in openapi::resources(requester, &roots).await {
            if self.is_broken(&root_of(&name)) {
                self.resources.entry(name).or_insert(published);
            } else if let Some(found) = self.resources.get_mut(&name)
                && found.verbs.is_empty()
            {
                found.verbs = published.verbs;
            }
        }
    }

    fn note_redirect(&mut self, path: &str, document: &Document) {
        if document.redirect.is_some() {
            self.gaps.push(format!("GET {path} returned {}", document.in_words()));
        }
    }

    fn is_broken(&self, root: &str) -> bool {
        self.broken.contains_key(root)
    }
}

const JSON: &str = "application/json";

/// Returns the resources of one group version, by its path. Empty if the response is no such list.
pub(crate) async fn resource_list(requester: &Requester<'_>, root: &str) -> Resources {
    let document = redirects::get(requester, root, JSON).await;
    resources_of(&document, root).unwrap_or_default()
}

fn resources_of(document: &Document, root: &str) -> Option<Resources> {
    let list = document.exchange.json().filter(|_| document.exchange.status() == 200)?;
    documents::resource_list(list, root)
}

fn is_stable(groups: &Document) -> bool {
    let is_stable = |document: &Value| {
        documents::is_aggregated(document) && document["apiVersion"] == "apidiscovery.k8s.io/v2"
    };
    groups.redirect.is_none() && groups.exchange.json().is_some_and(is_stable)
}
