//! `/openapi/v2` and `/openapi/v3`: documents are written when they are first asked for, and kept until the API changes.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use jiff::{Timestamp, ToSpan};

use super::{Document, PROTOBUF_REQUEST, PROTOBUF_RESPONSE, v2, v2_protobuf, v3, v3_index};
use crate::Fault;
use crate::api::Api;
use crate::discovery::{Resource, etag};
use crate::negotiate::{Entry, preferred};
use crate::paths::SERVER_VERSION;
use crate::query::Query;
use crate::respond::Answer;
use crate::status::ApiError;

/// Keeps the documents about the current resources.
#[derive(Debug, Default)]
pub(crate) struct Publisher {
    current: RwLock<Option<Arc<Published>>>,
}

/// The documents about some resources, each written once.
#[derive(Debug)]
struct Published {
    of: Arc<Vec<Resource>>,
    v3: OnceLock<BTreeMap<String, Document>>,
    v2: OnceLock<Bytes>,
    v2_protobuf: OnceLock<Bytes>,
}

impl Publisher {
    fn published(&self, resources: Arc<Vec<Resource>>) -> Arc<Published> {
        let kept = self.current.read().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(kept) = kept.filter(|kept| Arc::ptr_eq(&kept.of, &resources)) {
            return kept;
        }
        let (v3, v2, v2_protobuf) = Default::default();
        let published = Arc::new(Published { of: resources, v3, v2, v2_protobuf });
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&published));
        published
    }
}

/// Answers a request for a path below `/openapi/`.
pub(crate) fn answer(
    api: &Api,
    method: &Method,
    path: &str,
    query: &Query,
    headers: &HeaderMap,
) -> Result<Answer, ApiError> {
    let published = api.publisher.published(api.documents.resources(api));
    let answer = match path {
        "v2" => version_2(api, &published, headers)?,
        "v3" => {
            let mut index = v3_index(published.version_3(api));
            if api.faults.on(Fault::OpenApiIndexIncomplete)
                && let Some(paths) = index["paths"].as_object_mut()
            {
                paths.retain(|path, _| path != "apis/apps/v1");
            }
            Answer::json(StatusCode::OK, &index)
        }
        path => {
            let group_version = path.strip_prefix("v3/").ok_or_else(ApiError::no_such_path)?;
            version_3(group_version, published.version_3(api), query)?
        }
    };
    if *method == Method::GET { Ok(answer) } else { Err(ApiError::method_not_allowed()) }
}

impl Published {
    fn version_3(&self, api: &Api) -> &BTreeMap<String, Document> {
        self.v3.get_or_init(|| v3(&self.of, SERVER_VERSION, api.faults))
    }
}

/// The whole API in one document, in the form that the client prefers.
fn version_2(api: &Api, published: &Published, headers: &HeaderMap) -> Result<Answer, ApiError> {
    let document = || v2(&published.of, SERVER_VERSION, api.faults);
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
    let mut answer = if wants_protobuf {
        let bytes = published.v2_protobuf.get_or_init(|| {
            let mut document = document();
            if api.faults.on(Fault::OpenapiProtobufFallsBehind)
                && let Some(definitions) = document["definitions"].as_object_mut()
            {
                definitions.retain(|name, _| !name.starts_with("io.k8s.api.apps."));
            }
            v2_protobuf(&document).into()
        });
        tagged(bytes, headers)
    } else {
        tagged(published.v2.get_or_init(|| document().to_string().into()), headers)
    };
    if wants_protobuf {
        answer.content_type = PROTOBUF_RESPONSE;
    }
    Ok(answer.header(header::VARY, HeaderValue::from_static("Accept")))
}

/// The document, or the news that the client has it already.
fn tagged(bytes: &Bytes, headers: &HeaderMap) -> Answer {
    let tag = etag(bytes);
    let known = headers.get(header::IF_NONE_MATCH).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let is_known = known.split(',').any(|one| one.trim() == tag);
    let answer = if is_known {
        Answer::bytes(StatusCode::NOT_MODIFIED, Vec::new())
    } else {
        Answer::bytes(StatusCode::OK, bytes.clone())
    };
    with_header(answer, header::ETAG, &tag)
}

/// One group and version. Its hash in the query makes the answer one that never changes.
fn version_3(
    group_version: &str,
    documents: &BTreeMap<String, Document>,
    query: &Query,
) -> Result<Answer, ApiError> {
    let document = documents.get(group_version).ok_or_else(ApiError::no_such_path)?;
    let answer = Answer::bytes(StatusCode::OK, document.bytes.clone());
    match query.get("hash") {
        None | Some("") => Ok(answer),
        Some(hash) if hash == document.hash => {
            let answer = with_header(answer, header::CACHE_CONTROL, "public, immutable");
            let next_year = Timestamp::now() + (365 * 24).hours();
            match jiff::fmt::rfc2822::DateTimePrinter::new().timestamp_to_rfc9110_string(&next_year) {
                Ok(date) => Ok(with_header(answer, header::EXPIRES, &date)),
                Err(_) => Ok(answer),
            }
        }
        Some(_) => {
            let url = format!("/openapi/v3/{group_version}?hash={}", document.hash);
            let answer = Answer::text(StatusCode::MOVED_PERMANENTLY, "");
            Ok(with_header(answer, header::LOCATION, &url))
        }
    }
}

/// Adds a header whose value this server made, of which all are plain text.
fn with_header(answer: Answer, name: header::HeaderName, value: &str) -> Answer {
    match HeaderValue::from_str(value) {
        Ok(value) => answer.header(name, value),
        Err(_) => answer,
    }
}
