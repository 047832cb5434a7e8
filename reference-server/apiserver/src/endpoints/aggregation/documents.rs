//! Collects the documents of an extension server.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, header};
use http_body_util::Full;
use serde_json::Value;

use super::{REMOTE_GROUP, REMOTE_USER};
use crate::authentication::MASTERS;
use crate::discovery::from_legacy;
use crate::http::client::{Client, ClientError};
use crate::registry::remote::{ApiService, RemoteDocuments};

/// The time that a document may take.
pub(super) const TIMEOUT: Duration = Duration::from_secs(5);
const AGGREGATED: &str = concat!(
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,",
    "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"
);
const JSON: &str = "application/json";

/// Requests all documents of a group and version. If the server does not send a document, the
/// known one stays.
pub(super) async fn collect(
    client: &Client,
    spec: &ApiService,
    before: &RemoteDocuments,
) -> RemoteDocuments {
    let (resources, v3, v2) = tokio::join!(
        resources(client, spec),
        document(client, "/openapi/v3", JSON),
        document(client, "/openapi/v2", JSON)
    );
    let path = spec.path();
    let url = |index: Value| {
        let entry = &index["paths"][path.trim_start_matches('/')];
        entry["serverRelativeURL"].as_str().map(str::to_owned)
    };
    let same = |new: &Value| before.openapi_v2.as_ref().filter(|old| ***old == *new).cloned();
    let v2 = v2.map(|new| same(&new).unwrap_or_else(|| Arc::new(new)));
    RemoteDocuments {
        resources: resources.or_else(|| before.resources.clone()),
        openapi_v3: v3.and_then(url).or_else(|| before.openapi_v3.clone()),
        openapi_v2: v2.or_else(|| before.openapi_v2.clone()),
    }
}

/// Sends a request as the server itself, which extension servers trust.
pub(super) async fn get(
    client: &Client,
    path: &str,
    accept: &'static str,
    timeout: Duration,
) -> Result<Response<Bytes>, ClientError> {
    send(client, Method::GET, path, accept, timeout).await
}

/// Sends a request without a body as the server itself.
pub(super) async fn send(
    client: &Client,
    method: Method,
    path: &str,
    accept: &'static str,
    timeout: Duration,
) -> Result<Response<Bytes>, ClientError> {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header(header::ACCEPT, HeaderValue::from_static(accept))
        .header(REMOTE_USER, HeaderValue::from_static("system:kube-aggregator"))
        .header(REMOTE_GROUP, HeaderValue::from_static(MASTERS))
        .body(Full::new(Bytes::new()))
        .map_err(|error| ClientError::Exchange(error.to_string()))?;
    client.exchange(request, timeout).await
}

/// Returns the resources of a group and version in the form of aggregated discovery.
async fn resources(client: &Client, spec: &ApiService) -> Option<Value> {
    if let Some(all) = document(client, "/apis", AGGREGATED).await
        && all["kind"] == "APIGroupDiscoveryList"
    {
        let groups = all["items"].as_array()?;
        let group = groups.iter().find(|group| group["metadata"]["name"] == spec.group)?;
        let versions = group["versions"].as_array()?;
        let version = versions.iter().find(|version| version["version"] == spec.version)?;
        return Some(version["resources"].clone());
    }
    document(client, &spec.path(), JSON).await.map(|document| from_legacy(&document))
}

async fn document(client: &Client, path: &str, accept: &'static str) -> Option<Value> {
    let response = get(client, path, accept, TIMEOUT).await.ok()?;
    let is_found = response.status().is_success();
    is_found.then(|| serde_json::from_slice(response.body()).ok()).flatten()
}
