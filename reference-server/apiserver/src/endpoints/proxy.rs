//! The proxy subresources of pods, services and nodes.
//!
//! They forward any request to a port of a pod, or to the kubelet of a node.

use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri, header,
};
use hyper::body::Incoming;
use rand::seq::IndexedRandom as _;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream};

use super::Call;
use super::kubelets::Kubelet;
use crate::http::client::Connection;
use crate::http::forward::{self, Upgraded};
use crate::http::respond::ApiResponse;
use crate::kubelet_client::PodRef;
use crate::registry::backends::{self, PodPort, number, ports};
use crate::registry::strategy::ProxyTarget;
use kubeproof_apimachinery::object::Object as _;
use kubeproof_apimachinery::status::ApiError;
use kubeproof_storage::Key;

/// The name in the URL, as `[scheme:]name[:port]`.
struct Target<'a> {
    https: bool,
    name: &'a str,
    /// Empty for the first port.
    port: &'a str,
}

impl<'a> Target<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let parts: Vec<&str> = text.split(':').collect();
        let (scheme, name, port) = match parts.as_slice() {
            [name] => ("", *name, ""),
            [name, port] => ("", *name, *port),
            [scheme @ ("" | "http" | "https"), name, port] => (*scheme, *name, *port),
            _ => return None,
        };
        (!name.is_empty()).then_some(Self { https: scheme == "https", name, port })
    }
}

/// The destination of a request.
struct Backend {
    /// None for the kubelet of a node.
    pod: Option<PodRef>,
    /// None if the requested port is invalid.
    port: Option<u16>,
    host: String,
}

impl From<PodPort> for Backend {
    fn from(PodPort { pod, ip, port, .. }: PodPort) -> Self {
        Self { pod: Some(pod), port: Some(port), host: format!("{ip}:{port}") }
    }
}

/// Forwards a request.
pub(super) async fn handle(
    mut call: Call,
    method: &Method,
    body: &mut Incoming,
) -> Result<ApiResponse, ApiError> {
    let asked = call.info.name.clone();
    let name = Target::parse(&asked).ok_or_else(|| {
        ApiError::bad_request(format!("invalid {} request {asked:?}", call.ty.singular))
    })?;
    name.name.clone_into(&mut call.info.name);
    let stored = call.api.store.get(&call.ty.table, &call.key()).ok_or_else(|| call.not_found())?;
    let object = call.ty.load(&stored);
    let backend = match call.ty.strategy.proxy_target() {
        Some(ProxyTarget::Service) => of_service(&call, &object, &name)?.into(),
        Some(ProxyTarget::Node) => of_node(&object, &name),
        Some(ProxyTarget::Pod) => of_pod(&object, &name)?,
        None => return Err(ApiError::no_such_resource()),
    };
    let (prefix, rest) = split(&call.uri);
    if rest.is_empty() && matches!(*method, Method::GET | Method::HEAD) {
        return Ok(to_directory(&call.uri));
    }
    let connection: Box<dyn Connection> =
        if let Some(kubelet) = far_kubelet(&call, &object, &backend)? {
            kubelet.open().await.map_err(|why| unreachable(&why))?
        } else {
            let https = name.https && backend.pod.is_some();
            Box::new(connect(&call, &backend, https).await?)
        };
    let request = request(&call, method, &backend, rest)?;
    let prefix = prefix.to_owned();
    exchange(call, connection, request, body, &prefix).await
}

/// Sends the request and passes the response on. Redirects get the prefix.
pub(super) async fn exchange<S>(
    mut call: Call,
    connection: S,
    request: Request<()>,
    body: &mut Incoming,
    prefix: &str,
) -> Result<ApiResponse, ApiError>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let failed = |error: hyper::Error| {
        ApiError::unavailable(format!("error trying to reach service: {error}"))
    };
    if let Some(upgrade) = call.upgrade.take() {
        let upgraded = forward::switch(upgrade, connection, request).await.map_err(failed)?;
        return Ok(match upgraded {
            Upgraded::Switched(handshake) => call.switch(handshake),
            Upgraded::Rejected(response) => to_response(response, prefix),
        });
    }
    let response = forward::exchange(connection, request, body).await.map_err(failed)?;
    Ok(to_response(response, prefix))
}

/// Splits the path after `/proxy`.
pub(super) fn split(uri: &Uri) -> (&str, &str) {
    let path = uri.path();
    // The prefix is `/api/v1/namespaces/…/pods/…/proxy` or `/api/v1/nodes/…/proxy`.
    let segments = if path.starts_with("/api/v1/namespaces/") { 7 } else { 5 };
    let end = path.match_indices('/').nth(segments).map_or(path.len(), |(at, _)| at);
    path.split_at(end)
}

/// Redirects to the path with a slash, so that relative links of the backend work.
fn to_directory(uri: &Uri) -> ApiResponse {
    let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    let response = ApiResponse::bare(StatusCode::MOVED_PERMANENTLY);
    match HeaderValue::try_from(format!("{}/{query}", uri.path())) {
        Ok(location) => response.header(header::LOCATION, location),
        Err(_) => response,
    }
}

fn of_pod(pod: &Value, name: &Target<'_>) -> Result<Backend, ApiError> {
    let ip = pod["status"]["podIP"].as_str().unwrap_or_default();
    if ip.is_empty() {
        return Err(ApiError::bad_request("address not allowed"));
    }
    let port =
        if name.port.is_empty() { first_port(pod).or(Some(80)) } else { name.port.parse().ok() };
    let host = port.map_or_else(|| format!("{ip}:{}", name.port), |port| format!("{ip}:{port}"));
    Ok(Backend { pod: Some(backends::pod_ref(pod)), port, host })
}

/// Returns the kubelet of a node. It has one port.
fn of_node(node: &Value, name: &Target<'_>) -> Backend {
    let mut addresses = node["status"]["addresses"].as_array().into_iter().flatten();
    let ip = addresses.find_map(|address| address["address"].as_str()).unwrap_or_default();
    let own = node.pointer("/status/daemonEndpoints/kubeletEndpoint/Port").and_then(number);
    let port = own.filter(|own| name.port.is_empty() || name.port == own.to_string());
    Backend { pod: None, port, host: format!("{ip}:{}", port.unwrap_or_default()) }
}

fn first_port(pod: &Value) -> Option<u16> {
    ports(pod).find_map(|port| number(&port["containerPort"]))
}

/// Returns one of the ready pods of a service.
fn of_service(call: &Call, service: &Value, name: &Target<'_>) -> Result<PodPort, ApiError> {
    let all = service["spec"]["ports"].as_array().into_iter().flatten();
    let mut wanted = all.filter(|port| match name.port {
        "" => true,
        text => port["name"] == text || text.parse().is_ok_and(|text: u64| port["port"] == text),
    });
    let Some(port) = wanted.next() else {
        let why = format!("no service port {} found for service {:?}", name.port, name.name);
        return Err(ApiError::unavailable(why));
    };
    let node = call.api.kubelet.get().map(|kubelet| kubelet.node());
    let pods = backends::of_service(call.api.context(), node, service, port);
    pods.choose(&mut rand::rng()).cloned().ok_or_else(|| {
        let why = format!("no endpoints available for service {:?}", service.meta("name"));
        ApiError::unavailable(why)
    })
}

/// Returns the name of the object in `[scheme:]name[:port]`.
pub(super) fn object_name(call: &Call) -> Option<&str> {
    Target::parse(&call.info.name).map(|target| target.name)
}

/// Returns the node that runs a pod of the service of a request.
pub(super) fn node_of_service(call: &Call) -> Option<String> {
    let name = Target::parse(&call.info.name)?;
    let key = Key::new(call.info.namespace.as_str(), name.name);
    let service = call.ty.load(&*call.api.store.get(&call.ty.table, &key)?);
    of_service(call, &service, &name).ok().map(|pod| pod.node)
}

fn unreachable(why: &str) -> ApiError {
    ApiError::unavailable(format!("error trying to reach service: {why}"))
}

/// Returns the kubelet of a node that this server did not create. As in kube-apiserver, it must not
/// be on the host of the server.
fn far_kubelet(call: &Call, node: &Value, backend: &Backend) -> Result<Option<Kubelet>, ApiError> {
    let is_own = call.api.kubelet.get().is_some_and(|own| own.node() == call.info.name);
    if backend.pod.is_some() || is_own {
        return Ok(None);
    }
    let kubelet = Kubelet::of_node(node)?;
    if kubelet.is_local() {
        return Err(ApiError::bad_request("address not allowed"));
    }
    Ok(backend.port.is_some().then_some(kubelet))
}

async fn connect(call: &Call, backend: &Backend, https: bool) -> Result<DuplexStream, ApiError> {
    if https {
        return Err(unreachable("tls: first record does not look like a TLS handshake"));
    }
    let nobody =
        || unreachable(&format!("dial tcp {}: connect: no such host or port", backend.host));
    let (Some(kubelet), Some(port)) = (call.api.kubelet.get(), backend.port) else {
        return Err(nobody());
    };
    let Some(pod) = backend.pod.clone() else {
        let dialled = (kubelet.node() == call.info.name).then(|| kubelet.dial()).flatten();
        return dialled.ok_or_else(nobody);
    };
    let connected = kubelet.connect(pod, port).await;
    connected.map_err(|error| unreachable(&format!("dial tcp {}: {error}", backend.host)))
}

/// Returns the request for the backend.
fn request(
    call: &Call,
    method: &Method,
    backend: &Backend,
    rest: &str,
) -> Result<Request<()>, ApiError> {
    let path = if rest.is_empty() { "/" } else { rest };
    let query = call.uri.query();
    let target = query.map_or_else(|| path.to_owned(), |query| format!("{path}?{query}"));
    let uri = Uri::try_from(target).map_err(|error| ApiError::bad_request(error.to_string()))?;
    let mut headers = forwarded_headers(call);
    // The backend must not see the credential of the client.
    headers.remove(header::AUTHORIZATION);
    let host = call.headers.get(header::HOST).cloned();
    for (name, value) in [
        ("x-forwarded-uri", HeaderValue::try_from(call.uri.path()).ok()),
        (
            "x-forwarded-host",
            host.or_else(|| HeaderValue::try_from(call.api.address.as_str()).ok()),
        ),
        ("x-forwarded-proto", Some(HeaderValue::from_static("http"))),
    ] {
        if let Some(value) = value {
            headers.insert(name, value);
        }
    }
    if let Ok(host) = HeaderValue::try_from(backend.host.as_str()) {
        headers.insert(header::HOST, host);
    }
    let mut request = Request::new(());
    *request.method_mut() = method.clone();
    *request.uri_mut() = uri;
    *request.headers_mut() = headers;
    Ok(request)
}

/// Returns the headers of the client without those of its connection, except for an upgrade.
pub(super) fn forwarded_headers(call: &Call) -> HeaderMap {
    let mut headers = forward::without_hops(&call.headers);
    if call.upgrade.is_some() {
        forward::ask_to_switch(&call.headers, &mut headers);
    }
    headers
}

/// Returns the response for the client.
fn to_response(response: Response<Incoming>, prefix: &str) -> ApiResponse {
    forward::to_response(response, |name, value| relocated(name, value, prefix))
}

/// Adds the prefix of the proxy to a redirect of the backend.
fn relocated(name: &HeaderName, value: &HeaderValue, prefix: &str) -> HeaderValue {
    let place =
        value.to_str().ok().filter(|place| *name == header::LOCATION && place.starts_with('/'));
    let moved = place.and_then(|place| HeaderValue::try_from(format!("{prefix}{place}")).ok());
    moved.unwrap_or_else(|| value.clone())
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("p", Some((false, "p", "")))]
    #[case("p:80", Some((false, "p", "80")))]
    #[case("https:p:", Some((true, "p", "")))]
    #[case(":p:web", Some((false, "p", "web")))]
    #[case("a:b:c:d", None)]
    #[case("ftp:p:1", None)]
    #[case("", None)]
    fn names(#[case] text: &str, #[case] parts: Option<(bool, &str, &str)>) {
        assert_eq!(Target::parse(text).map(|name| (name.https, name.name, name.port)), parts);
    }

    #[rstest]
    #[case("/api/v1/namespaces/n/pods/p/proxy", "")]
    #[case("/api/v1/namespaces/n/pods/p:80/proxy/", "/")]
    #[case("/api/v1/nodes/n/proxy", "")]
    #[case("/api/v1/nodes/n:10250/proxy/healthz", "/healthz")]
    #[case("/api/v1/namespaces/n/services/s/proxy/a%2Fb//c/", "/a%2Fb//c/")]
    fn what_follows_the_proxy(#[case] uri: &str, #[case] rest: &str) {
        assert_eq!(split(&uri.parse().unwrap()).1, rest);
    }
}
