//! Non-resource paths: the version, and the documents that describe the API.

use std::collections::BTreeSet;

use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use serde_json::{Value, json};

use crate::config::KubernetesVersion;
use crate::config::disabled::Capability;
use crate::discovery;
use crate::endpoints::{aggregation, health, present};
use crate::http::metrics::{self, Counts};
use crate::http::negotiate::{Form, Representation, Target, negotiate};
use crate::http::respond::ApiResponse;
use crate::openapi;
use crate::server::{ApiServer, git_version};
use kubeproof_apimachinery::request::Query;
use kubeproof_apimachinery::status::ApiError;

pub(crate) fn handle(
    api: &ApiServer,
    method: &Method,
    path: &str,
    query: &Query,
    headers: &HeaderMap,
) -> Result<ApiResponse, ApiError> {
    if let Some(response) = health::handle(path, query, api.draining.is_cancelled()) {
        return response;
    }
    let trimmed = path.trim_end_matches('/');
    let document = match trimmed {
        "" => roots(api),
        "/version" => version(api.version),
        "/metrics" if method == Method::GET => {
            let (content_type, text) = (metrics::MEDIA_TYPE, metrics_text(api));
            return Ok(ApiResponse { content_type, ..ApiResponse::text(StatusCode::OK, text) });
        }
        "/metrics" => return Err(ApiError::method_not_allowed()),
        "/openid/v1/jwks" | "/.well-known/openid-configuration" => {
            return openid(api, method, trimmed);
        }
        "/openapi/v2" if api.disabled_capabilities.on(Capability::OpenapiV2) => {
            return Err(ApiError::no_such_path());
        }
        path if path.starts_with("/openapi/v3")
            && api.disabled_capabilities.on(Capability::OpenapiV3) =>
        {
            return Err(ApiError::no_such_path());
        }
        path if path.starts_with("/openapi/") => {
            return openapi::handle(
                &api.publisher,
                (api.documents.resources(&api.registry), aggregation::documents(api)),
                (method, &path["/openapi/".len()..]),
                query,
                headers,
            );
        }
        _ => return discovery(api, method, trimmed, headers),
    };
    if method != Method::GET {
        return Err(ApiError::method_not_allowed());
    }
    Ok(ApiResponse::json(StatusCode::OK, &document))
}

/// Serves the documents with which other servers verify tokens of service accounts.
fn openid(api: &ApiServer, method: &Method, path: &str) -> Result<ApiResponse, ApiError> {
    if method != Method::GET {
        return Err(ApiError::method_not_allowed());
    }
    let (document, content_type) = if path == "/openid/v1/jwks" {
        (api.service_accounts.key_set(), "application/jwk-set+json")
    } else {
        (api.service_accounts.configuration(&api.address), "application/json")
    };
    let cached = HeaderValue::from_static("public, max-age=3600");
    let response = ApiResponse { content_type, ..ApiResponse::json(StatusCode::OK, &document) };
    Ok(response.header(header::CACHE_CONTROL, cached))
}

fn metrics_text(api: &ApiServer) -> String {
    let tables = api.store.counts();
    let objects = tables.iter().map(|(table, count)| {
        let (resource, group) = metrics::group_and_resource(table);
        (group, resource, *count)
    });
    api.metrics.text(&Counts {
        objects: objects.collect(),
        storage_size: api.store.size(),
        audit_events: api.audit.as_ref().map_or(0, |log| log.events()),
        audit_losses: api.audit.as_ref().map_or(0, |log| log.lost()),
    })
}

/// Serves the documents about groups, versions and resources.
fn discovery(
    api: &ApiServer,
    method: &Method,
    path: &str,
    headers: &HeaderMap,
) -> Result<ApiResponse, ApiError> {
    let resources = api.documents.resources(&api.registry);
    let remotes = api.remotes.current();
    let remotes = aggregation::versions(&remotes);
    let segments: Vec<&str> = path.split('/').skip(1).collect();
    let target = if segments.len() == 1 { Target::DiscoveryRoot } else { Target::Document };
    let representation = || {
        negotiate(headers, target, api.disabled_capabilities, false)
            .map_err(|error| ApiError::not_acceptable(error.to_string()))
    };
    let document = match segments.as_slice() {
        [root @ ("api" | "apis")] => {
            let core = *root == "api";
            if core && !resources.iter().any(|resource| resource.group.is_empty()) {
                return Err(ApiError::no_such_path());
            }
            match representation()?.form {
                Form::AggregatedDiscovery if core => discovery::aggregated(&resources, core),
                Form::AggregatedDiscovery => {
                    let mut document = discovery::aggregated(&resources, core);
                    discovery::add_to_aggregated(&mut document, &remotes);
                    document
                }
                _ if core => discovery::versions(&resources, &api.address),
                _ => {
                    let mut document = discovery::groups(&resources);
                    discovery::add_to_groups(&mut document, &remotes);
                    document
                }
            }
        }
        ["api", version] => {
            discovery::resources(&resources, "", version).ok_or_else(ApiError::no_such_resource)?
        }
        ["apis", group] => {
            let own = discovery::group(&resources, group);
            discovery::group_with(own, group, &remotes).ok_or_else(ApiError::no_such_path)?
        }
        ["apis", group, version] => {
            let served =
                resources.iter().any(|resource| resource.group == *group && !resource.custom);
            discovery::resources(&resources, group, version).ok_or_else(|| {
                if served { ApiError::no_such_resource() } else { ApiError::no_such_path() }
            })?
        }
        _ => return Err(ApiError::no_such_path()),
    };
    if method != Method::GET && method != Method::HEAD {
        return Err(ApiError::method_not_allowed());
    }
    Ok(described(representation()?, headers, &document))
}

/// Returns the response of a document about groups, versions or resources.
fn described(representation: Representation, headers: &HeaderMap, document: &Value) -> ApiResponse {
    let response = present::document(representation, StatusCode::OK, document);
    if representation.form != Form::AggregatedDiscovery {
        return response;
    }
    // Clients poll this long document. The tag shows whether it has changed.
    let tag = discovery::etag(document.to_string().as_bytes());
    let known = headers.get(header::IF_NONE_MATCH).and_then(|value| value.to_str().ok());
    let response = match known {
        Some(known) if known.split(',').any(|one| one.trim() == tag) => {
            ApiResponse::bytes(StatusCode::NOT_MODIFIED, Vec::new())
        }
        _ => response,
    };
    let response = response.header(header::VARY, HeaderValue::from_static("Accept"));
    match HeaderValue::from_str(&tag) {
        Ok(tag) => response.header(header::ETAG, tag),
        Err(_) => response,
    }
}

/// Returns the document of `/`: the served paths.
fn roots(api: &ApiServer) -> Value {
    let mut paths: BTreeSet<String> = [
        "/.well-known/openid-configuration",
        "/apis",
        "/healthz",
        "/livez",
        "/metrics",
        "/openid/v1/jwks",
        "/readyz",
        "/version",
    ]
    .map(str::to_owned)
    .into();
    for (capability, path) in
        [(Capability::OpenapiV2, "/openapi/v2"), (Capability::OpenapiV3, "/openapi/v3")]
    {
        if !api.disabled_capabilities.on(capability) {
            paths.insert(path.to_owned());
        }
    }
    for resource in api.documents.resources(&api.registry).iter() {
        if resource.group.is_empty() {
            paths.extend(["/api".to_owned(), format!("/api/{}", resource.version)]);
        } else {
            paths.insert(format!("/apis/{}", resource.group));
            paths.insert(format!("/apis/{}/{}", resource.group, resource.version));
        }
    }
    for remote in api.remotes.current().iter() {
        paths.extend([format!("/apis/{}", remote.spec.group), remote.spec.path()]);
    }
    json!({ "paths": paths })
}

fn version(version: KubernetesVersion) -> Value {
    let (major, minor) = version.numbers();
    json!({
        "major": major,
        "minor": minor,
        "gitVersion": git_version(version),
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": "rustc",
        "platform": format!("{}/{}", std::env::consts::OS, std::env::consts::ARCH),
    })
}
