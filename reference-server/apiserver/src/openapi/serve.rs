//! Serves `/openapi/v2` and `/openapi/v3`. The first request writes a document, which is cached
//! until the API changes.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use jiff::{Timestamp, ToSpan};
use serde_json::Value;

use super::{
    Document, PROTOBUF_REQUEST, PROTOBUF_RESPONSE, RemoteDocument, by_path, v2, v2_protobuf, v3,
    v3_index,
};

use crate::config::KubernetesVersion;
use crate::discovery::{Resource, etag};
use crate::http::negotiate::{Entry, preferred};
use crate::http::respond::ApiResponse;
use kubeproof_apimachinery::request::Query;
use kubeproof_apimachinery::status::ApiError;

#[derive(Debug)]
pub(crate) struct Publisher {
    version: KubernetesVersion,
    current: Mutex<Option<Arc<Published>>>,
}

/// The documents about some resources. Each is written once.
#[derive(Debug)]
struct Published {
    version: KubernetesVersion,
    of: Arc<Vec<Arc<Resource>>>,
    remotes: Vec<RemoteDocument>,
    /// By their path below `/openapi/v3/`.
    v3: BTreeMap<String, Arc<GroupVersion>>,
    v2: OnceLock<Bytes>,
    v2_protobuf: OnceLock<Bytes>,
}

/// A document of version 3. Most of them describe one group and version.
#[derive(Debug)]
struct GroupVersion {
    path: String,
    version: KubernetesVersion,
    of: Vec<Arc<Resource>>,
    document: OnceLock<Document>,
}

impl Publisher {
    /// Creates the publisher of a server of this version.
    pub(crate) fn new(version: KubernetesVersion) -> Self {
        Self { version, current: Mutex::default() }
    }

    fn published(
        &self,
        resources: Arc<Vec<Arc<Resource>>>,
        remotes: Vec<RemoteDocument>,
    ) -> Arc<Published> {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(published) = &*current
            && published.is_about(&resources, &remotes)
        {
            return Arc::clone(published);
        }
        let published = Published::new(self.version, (resources, remotes), current.as_deref());
        let published = Arc::new(published);
        *current = Some(Arc::clone(&published));
        published
    }
}

/// Serves a path below `/openapi/`.
pub(crate) fn handle(
    publisher: &Publisher,
    (resources, remotes): (Arc<Vec<Arc<Resource>>>, Vec<RemoteDocument>),
    (method, path): (&Method, &str),
    query: &Query,
    headers: &HeaderMap,
) -> Result<ApiResponse, ApiError> {
    let documents = publisher.published(resources, remotes.clone());
    let response = match path {
        "v2" => version_2(&documents, headers)?,
        "v3" => {
            let own = documents.v3.iter().map(|(path, it)| (path, it.document()));
            let mut index = v3_index(own);
            for remote in &remotes {
                remote.add_to_index(&mut index);
            }
            ApiResponse::json(StatusCode::OK, &index)
        }
        path => {
            let group_version = path.strip_prefix("v3/").ok_or_else(ApiError::no_such_path)?;
            version_3(group_version, &documents.v3, query, headers)?
        }
    };
    match *method {
        Method::GET | Method::HEAD => Ok(response),
        _ => Err(ApiError::method_not_allowed()),
    }
}

impl Published {
    /// Keeps the documents of groups whose resources are the same as before.
    fn new(
        version: KubernetesVersion,
        (resources, remotes): (Arc<Vec<Arc<Resource>>>, Vec<RemoteDocument>),
        before: Option<&Self>,
    ) -> Self {
        let group_version = |(path, of): (String, Vec<Arc<Resource>>)| {
            let before = before.and_then(|before| before.v3.get(&path));
            let same = before.filter(|before| before.describes(&of)).cloned();
            let document = OnceLock::new();
            let new = || GroupVersion { path: path.clone(), version, of, document };
            let entry = same.unwrap_or_else(|| Arc::new(new()));
            (path, entry)
        };
        let v3 = by_path(&resources).into_iter().map(group_version).collect();
        let (v2, v2_protobuf) = (OnceLock::new(), OnceLock::new());
        Self { version, of: resources, remotes, v3, v2, v2_protobuf }
    }

    fn is_about(&self, resources: &Arc<Vec<Arc<Resource>>>, remotes: &[RemoteDocument]) -> bool {
        Arc::ptr_eq(&self.of, resources)
            && self.remotes.len() == remotes.len()
            && self.remotes.iter().zip(remotes).all(|(one, other)| one.has_same_v2(other))
    }

    /// Writes the document of version 2.
    fn document_2(&self) -> Value {
        let mut document = v2(&self.of, self.version);
        for remote in &self.remotes {
            remote.add_to_v2(&mut document);
        }
        document
    }
}

impl GroupVersion {
    fn describes(&self, resources: &[Arc<Resource>]) -> bool {
        self.of.len() == resources.len()
            && self.of.iter().zip(resources).all(|(one, other)| Arc::ptr_eq(one, other))
    }

    fn document(&self) -> &Document {
        self.document.get_or_init(|| v3(&self.path, &self.of, self.version))
    }
}

/// Serves the complete API in one document, in the form that the client prefers.
fn version_2(published: &Published, headers: &HeaderMap) -> Result<ApiResponse, ApiError> {
    let wants_protobuf = |entry: &Entry<'_>| match entry.media_range {
        "*/*" | "application/*" | "application/json" => Some(false),
        PROTOBUF_REQUEST | PROTOBUF_RESPONSE => Some(true),
        _ => None,
    };
    let wants_protobuf = preferred(headers, false, wants_protobuf).ok_or_else(|| {
        ApiError::not_acceptable(format!(
            "only the following media types are accepted: application/json, {PROTOBUF_REQUEST}"
        ))
    })?;
    let mut response = if wants_protobuf {
        let bytes =
            published.v2_protobuf.get_or_init(|| v2_protobuf(&published.document_2()).into());
        tagged(bytes, headers)
    } else {
        tagged(published.v2.get_or_init(|| published.document_2().to_string().into()), headers)
    };
    if wants_protobuf {
        response.content_type = PROTOBUF_RESPONSE;
    }
    Ok(response.header(header::VARY, HeaderValue::from_static("Accept")))
}

/// Returns the document, or 304 if the client has it already.
fn tagged(bytes: &Bytes, headers: &HeaderMap) -> ApiResponse {
    tagged_as(&etag(bytes), bytes, headers)
}

fn tagged_as(tag: &str, bytes: &Bytes, headers: &HeaderMap) -> ApiResponse {
    let known = headers
        .get(header::IF_NONE_MATCH)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let is_known = known.split(',').any(|one| one.trim() == tag);
    let response = if is_known {
        ApiResponse::bytes(StatusCode::NOT_MODIFIED, Vec::new())
    } else {
        ApiResponse::bytes(StatusCode::OK, bytes.clone())
    };
    with_header(response, header::ETAG, tag)
}

/// Serves one group and version. With a hash in the query, clients may cache the response for ever.
fn version_3(
    group_version: &str,
    documents: &BTreeMap<String, Arc<GroupVersion>>,
    query: &Query,
    headers: &HeaderMap,
) -> Result<ApiResponse, ApiError> {
    let document = documents.get(group_version).ok_or_else(ApiError::no_such_path)?.document();
    let response = tagged_as(&format!("\"{}\"", document.hash), &document.bytes, headers);
    match query.get("hash") {
        None | Some("") => Ok(response),
        Some(hash) if hash == document.hash => {
            let response = with_header(response, header::CACHE_CONTROL, "public, immutable");
            let next_year = Timestamp::now() + (365 * 24).hours();
            match jiff::fmt::rfc2822::DateTimePrinter::new().timestamp_to_rfc9110_string(&next_year)
            {
                Ok(date) => Ok(with_header(response, header::EXPIRES, &date)),
                Err(_) => Ok(response),
            }
        }
        Some(_) => {
            let url = format!("/openapi/v3/{group_version}?hash={}", document.hash);
            let response = ApiResponse::text(StatusCode::MOVED_PERMANENTLY, "");
            Ok(with_header(response, header::LOCATION, &url))
        }
    }
}

/// Adds a header with a value of this server, which is always plain text.
fn with_header(response: ApiResponse, name: header::HeaderName, value: &str) -> ApiResponse {
    match HeaderValue::from_str(value) {
        Ok(value) => response.header(name, value),
        Err(_) => response,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::disabled::DisabledCapabilities;
    use crate::discovery::Documents;
    use crate::registry::Registry;

    #[test]
    fn a_change_of_the_api_rewrites_only_the_documents_of_its_groups() {
        let version = KubernetesVersion::default();
        let registry = Registry::new(version, DisabledCapabilities::default());
        let (documents, publisher) = (Documents::default(), Publisher::new(version));
        let current = || publisher.published(documents.resources(&registry), Vec::new());
        let before = current();
        assert!(Arc::ptr_eq(&before, &current()), "nothing changed");
        registry.replace("apps", "deployments", Vec::new());
        let after = current();
        let is_same = |path: &str| Arc::ptr_eq(&before.v3[path], &after.v3[path]);
        assert!(is_same("api/v1") && is_same("apis/batch/v1") && !is_same("apis/apps/v1"));
        let paths = [&before, &after].map(|published| published.v3["apis/apps/v1"].of.len());
        assert_eq!(paths[0], paths[1] + 1);
    }
}
