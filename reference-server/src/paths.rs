//! Paths outside the resources: health, version, and the documents that describe the API.

use std::collections::BTreeSet;

use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use serde_json::{Value, json};

use crate::api::Api;
use crate::negotiate::{Form, Representation, Target, negotiate};
use crate::query::Query;
use crate::respond::Answer;
use crate::status::ApiError;
use crate::{Cut, Fault, discovery, openapi, present};

/// The version that the server says it is of.
const MAJOR: &str = "1";
const MINOR: &str = "36";

/// The same in one word.
pub(crate) const SERVER_VERSION: &str = "1.36";

/// The checks behind the health endpoints; all of them are about this one process.
const CHECKS: [&str; 3] = ["ping", "log", "store"];

pub(crate) fn answer(
    api: &Api,
    method: &Method,
    path: &str,
    query: &Query,
    headers: &HeaderMap,
) -> Result<Answer, ApiError> {
    let trimmed = path.trim_end_matches('/');
    if let Some(answer) = health(trimmed, query) {
        return answer;
    }
    let document = match trimmed {
        "" => roots(api),
        "/version" => version(),
        "/openapi/v2" if api.cuts.on(Cut::OpenapiV2) => return Err(ApiError::no_such_path()),
        path if path.starts_with("/openapi/v3") && api.cuts.on(Cut::OpenapiV3) => {
            return Err(ApiError::no_such_path());
        }
        path if path.starts_with("/openapi/") => {
            return openapi::answer(api, method, &path["/openapi/".len()..], query, headers);
        }
        _ => return discovery(api, method, trimmed, headers),
    };
    if method != Method::GET {
        return Err(ApiError::method_not_allowed());
    }
    Ok(Answer::json(StatusCode::OK, &document))
}

/// The documents about groups, versions and resources.
fn discovery(api: &Api, method: &Method, path: &str, headers: &HeaderMap) -> Result<Answer, ApiError> {
    let (resources, faults) = (api.documents.resources(api), api.faults);
    let segments: Vec<&str> = path.split('/').skip(1).collect();
    let target = if segments.len() == 1 { Target::DiscoveryRoot } else { Target::Document };
    let representation = || {
        negotiate(headers, target, api.cuts, api.faults).or_else(|error| {
            if faults.on(Fault::AcceptIgnored) {
                Ok(Representation::JSON)
            } else {
                Err(ApiError::not_acceptable(error.to_string()))
            }
        })
    };
    let unknown = |error: ApiError| {
        if faults.on(Fault::UnknownAsBadRequest) {
            ApiError::bad_request("there is no such API")
        } else {
            error
        }
    };
    let mut document = match segments.as_slice() {
        [root @ ("api" | "apis")] => {
            let core = *root == "api";
            if core && !resources.iter().any(|resource| resource.group.is_empty()) {
                return Err(ApiError::no_such_path());
            }
            match representation()?.form {
                Form::AggregatedDiscovery => discovery::aggregated(&resources, core, faults),
                _ if core => discovery::versions(&resources, &api.address, api.faults),
                _ => discovery::groups(&resources, faults),
            }
        }
        ["api", version] => discovery::resources(&resources, "", version, faults)
            .ok_or_else(|| unknown(ApiError::no_such_resource()))?,
        ["apis", group] => {
            discovery::group(&resources, group, faults).ok_or_else(|| unknown(ApiError::no_such_path()))?
        }
        ["apis", group, version] => {
            let served = resources.iter().any(|resource| resource.group == *group && !resource.custom);
            discovery::resources(&resources, group, version, faults)
                .ok_or_else(|| if served { ApiError::no_such_resource() } else { ApiError::no_such_path() })
                .map_err(unknown)?
        }
        _ => return Err(ApiError::no_such_path()),
    };
    if faults.on(Fault::DiscoveryWithoutKind)
        && let Some(fields) = document.as_object_mut()
    {
        fields.remove("kind");
    }
    if method != Method::GET && method != Method::HEAD {
        return Err(ApiError::method_not_allowed());
    }
    let representation = representation()?;
    let answer = present::document(representation, StatusCode::OK, &document);
    if representation.form != Form::AggregatedDiscovery {
        return Ok(answer);
    }
    // Clients poll this one, and it is long: the tag says whether it has changed.
    let tag = discovery::etag(document.to_string().as_bytes());
    let known = headers.get(header::IF_NONE_MATCH).and_then(|value| value.to_str().ok());
    let answer = match known {
        Some(known) if known.split(',').any(|one| one.trim() == tag) => {
            Answer::bytes(StatusCode::NOT_MODIFIED, Vec::new())
        }
        _ => answer,
    };
    let answer = answer.header(header::VARY, HeaderValue::from_static("Accept"));
    match HeaderValue::from_str(&tag) {
        Ok(tag) => Ok(answer.header(header::ETAG, tag)),
        Err(_) => Ok(answer),
    }
}

/// `/`: what there is.
fn roots(api: &Api) -> Value {
    let mut paths: BTreeSet<String> =
        ["/apis", "/healthz", "/livez", "/readyz", "/version"].map(str::to_owned).into();
    for (cut, path) in [(Cut::OpenapiV2, "/openapi/v2"), (Cut::OpenapiV3, "/openapi/v3")] {
        if !api.cuts.on(cut) {
            paths.insert(path.to_owned());
        }
    }
    for resource in api.documents.resources(api).iter() {
        if resource.group.is_empty() {
            paths.extend(["/api".to_owned(), format!("/api/{}", resource.version)]);
        } else {
            paths.insert(format!("/apis/{}", resource.group));
            paths.insert(format!("/apis/{}/{}", resource.group, resource.version));
        }
    }
    json!({ "paths": paths })
}

fn version() -> Value {
    json!({
        "major": MAJOR,
        "minor": MINOR,
        "gitVersion": format!("v{MAJOR}.{MINOR}.0+kubeproof.{}", env!("CARGO_PKG_VERSION")),
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": "rustc",
        "platform": format!("{}/{}", std::env::consts::OS, std::env::consts::ARCH),
    })
}

/// None when the path is no health endpoint.
fn health(path: &str, query: &Query) -> Option<Result<Answer, ApiError>> {
    let mut segments = path.split('/').skip(1);
    let endpoint = segments.next().filter(|name| matches!(*name, "healthz" | "livez" | "readyz"))?;
    let text = match (segments.next(), segments.next()) {
        (None, _) if query.get("verbose").is_some() => {
            let excluded: Vec<&str> = query.all("exclude").collect();
            let lines = CHECKS.iter().map(|check| {
                let state = if excluded.contains(check) { "excluded: ok" } else { "ok" };
                format!("[+]{check} {state}\n")
            });
            format!("{}{endpoint} check passed\n", lines.collect::<String>())
        }
        (None, _) => "ok".to_owned(),
        (Some(check), None) if CHECKS.contains(&check) => "ok".to_owned(),
        _ => return Some(Err(ApiError::no_such_path())),
    };
    Some(Ok(Answer::text(StatusCode::OK, text)))
}
