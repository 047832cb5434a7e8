//! Aggregation: groups that extension servers serve, as `APIService` objects configure.
//!
//! The monitor checks the servers and collects their documents. Requests for their groups go on to
//! them after authorization, with the name of the user in headers.

mod check;
mod content;
mod documents;
mod monitor;

use std::sync::Arc;

use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Request, StatusCode, header};
use hyper::body::Incoming;
use kubeproof_apimachinery::request::ResourceInfo;
use kubeproof_streaming::Upgrade;

pub use self::content::RemoteContent;
pub(crate) use self::content::delete_content;
pub(crate) use self::monitor::start;
use crate::authentication::User;
use crate::discovery::RemoteVersion;
use crate::http::forward::{self, Upgraded};
use crate::http::request_info::RequestInfo;
use crate::http::respond::ApiResponse;
use crate::openapi::RemoteDocument;
use crate::registry::remote::Remote;
use crate::server::ApiServer;

/// The beginning of the names of all headers that name a user.
const USER_HEADERS: [&str; 2] = ["x-remote-", "impersonate-"];
const REMOTE_USER: HeaderName = HeaderName::from_static("x-remote-user");
const REMOTE_UID: HeaderName = HeaderName::from_static("x-remote-uid");
const REMOTE_GROUP: HeaderName = HeaderName::from_static("x-remote-group");
const REMOTE_EXTRA: &str = "x-remote-extra-";

/// Returns the extension server of a request, if it is for one.
pub(crate) fn find(api: &ApiServer, info: &RequestInfo) -> Option<Remote> {
    match info {
        RequestInfo::Resource(ResourceInfo { group, version, .. }) => {
            api.remotes.find(group, version)
        }
        RequestInfo::Path(path) => {
            let path = path.strip_prefix("/openapi/v3").unwrap_or(path);
            let (group, version) =
                path.strip_prefix("/apis/")?.trim_end_matches('/').split_once('/')?;
            api.remotes.find(group, version)
        }
    }
}

/// Returns what discovery says about the groups of extension servers.
pub(super) fn versions(remotes: &[Remote]) -> Vec<RemoteVersion<'_>> {
    let versions = remotes.iter().map(|remote| RemoteVersion {
        group: &remote.spec.group,
        version: &remote.spec.version,
        resources: remote.documents.resources.as_ref(),
        is_fresh: remote.is_available,
    });
    versions.collect()
}

/// Returns what extension servers publish with OpenAPI.
pub(super) fn documents(api: &ApiServer) -> Vec<RemoteDocument> {
    let remotes = api.remotes.current();
    let documents = remotes.iter().map(|remote| RemoteDocument {
        path: remote.spec.path().trim_start_matches('/').to_owned(),
        v3: remote.documents.openapi_v3.clone(),
        v2: remote.documents.openapi_v2.clone(),
    });
    documents.collect()
}

/// Sends a request to an extension server. As in kube-apiserver, errors on the way are plain text.
pub(crate) async fn forward(
    api: &Arc<ApiServer>,
    remote: &Remote,
    user: &User,
    (parts, upgrade): (&Parts, Option<Upgrade>),
    body: &mut Incoming,
) -> ApiResponse {
    if !remote.is_available {
        return unavailable("service unavailable");
    }
    let client = match &remote.client {
        Ok(client) => client,
        Err(why) => return ApiResponse::text(StatusCode::INTERNAL_SERVER_ERROR, why.to_string()),
    };
    let (connection, host) = match (client.open().await, client.host_header()) {
        (Ok(connection), Ok(host)) => (connection, host),
        (Err(error), _) | (_, Err(error)) => return unavailable(&error.to_string()),
    };
    let mut request = Request::new(());
    *request.method_mut() = parts.method.clone();
    if let Some(target) = parts.uri.path_and_query() {
        *request.uri_mut() = target.clone().into();
    }
    *request.headers_mut() = headers(&parts.headers, user, host);
    let response = match upgrade {
        Some(upgrade) => {
            forward::ask_to_switch(&parts.headers, request.headers_mut());
            match forward::switch(upgrade, connection, request).await {
                Ok(Upgraded::Switched(handshake)) => return api.switch(handshake),
                Ok(Upgraded::Rejected(response)) => Ok(response),
                Err(error) => Err(error),
            }
        }
        None => forward::exchange(connection, request, body).await,
    };
    match response {
        Ok(response) => forward::to_response(response, |_, value| value.clone()),
        Err(error) => unavailable(&error.to_string()),
    }
}

fn unavailable(why: &str) -> ApiResponse {
    ApiResponse::text(StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n"))
}

/// Returns the headers for an extension server. They name the user, and contain no credential.
fn headers(original: &HeaderMap, user: &User, host: HeaderValue) -> HeaderMap {
    let mut headers = forward::without_hops(original);
    let about_users: Vec<HeaderName> = headers
        .keys()
        .filter(|name| USER_HEADERS.iter().any(|start| name.as_str().starts_with(start)))
        .cloned()
        .collect();
    for name in about_users.iter().chain([&header::AUTHORIZATION, &header::EXPECT]) {
        headers.remove(name);
    }
    headers.insert(header::HOST, host);
    let extra = user.extra.iter().filter_map(|(key, values)| {
        let name = HeaderName::try_from(format!("{REMOTE_EXTRA}{}", escaped(key))).ok()?;
        Some(values.iter().map(move |value| (name.clone(), value)))
    });
    let groups = user.groups.iter().map(|group| (REMOTE_GROUP, group));
    let uid = (!user.uid.is_empty()).then_some((REMOTE_UID, &user.uid));
    let named = [(REMOTE_USER, &user.name)].into_iter().chain(uid).chain(groups);
    for (name, value) in named.chain(extra.flatten()) {
        if let Ok(value) = HeaderValue::try_from(value) {
            headers.append(name, value);
        }
    }
    headers
}

/// Escapes the characters of a key that the name of a header cannot contain.
fn escaped(key: &str) -> String {
    let mut text = String::with_capacity(key.len());
    for byte in key.bytes() {
        if byte.is_ascii_alphanumeric() || b"!#$&'*+-.^_`|~".contains(&byte) {
            text.push(byte.to_ascii_lowercase().into());
        } else {
            text.extend(['%', hex(byte >> 4), hex(byte & 15)]);
        }
    }
    text
}

fn hex(digit: u8) -> char {
    char::from_digit(digit.into(), 16).unwrap_or_default().to_ascii_uppercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_name_the_user_and_hide_the_credential() {
        let mut original = HeaderMap::new();
        for (name, value) in [
            ("authorization", "Bearer secret"),
            ("x-remote-user", "root"),
            ("impersonate-user", "root"),
            ("connection", "close"),
            ("accept", "application/json"),
        ] {
            original.append(name, HeaderValue::from_static(value));
        }
        let mut user = User::known("jane", &["devs", "ops"]);
        user.extra.insert("example.com/Scopes".to_owned(), vec!["a".to_owned(), "b".to_owned()]);
        let headers = headers(&original, &user, HeaderValue::from_static("s.n.svc"));
        let mut shown: Vec<String> = headers
            .iter()
            .map(|(name, value)| format!("{name}: {}", value.to_str().expect("text")))
            .collect();
        shown.sort();
        let expected = [
            "accept: application/json",
            "host: s.n.svc",
            "x-remote-extra-example.com%2fscopes: a",
            "x-remote-extra-example.com%2fscopes: b",
            "x-remote-group: devs",
            "x-remote-group: ops",
            "x-remote-uid: jane",
            "x-remote-user: jane",
        ];
        assert_eq!(shown, expected);
    }
}
