//! Forwards requests for the pods and nodes of other servers that share the storage.
//!
//! Each server runs the pods of its own node, so it serves their logs, commands and ports.

use http::{HeaderName, HeaderValue, Method, Request, header};
use hyper::body::Incoming;
use kubeproof_apimachinery::object::Object as _;
use kubeproof_apimachinery::status::ApiError;
use kubeproof_storage::Key;
use tokio::net::TcpStream;

use super::{Call, proxy};
use crate::http::client::{Client, ClientError, Connection};
use crate::http::respond::ApiResponse;
use crate::registry::strategy::ProxyTarget;

/// The annotation of a node with the address of its server.
pub const SERVER: &str = "kubeproof.io/server";
/// The annotation of a node with the authority of the certificate of its server, as PEM. A server
/// without TLS has none.
pub const AUTHORITY: &str = "kubeproof.io/server-authority";

/// The subresources that need the node.
const SUBRESOURCES: [&str; 5] = ["exec", "attach", "portforward", "log", "proxy"];

/// Marks a forwarded request, so that it is never forwarded again.
const FORWARDED: HeaderName = HeaderName::from_static("x-kubeproof-forwarded");

/// Another server of the same storage.
pub(super) struct Peer {
    /// The host and port.
    address: String,
    /// The authority of its certificate. Without it, the server has no TLS.
    ca_pem: Option<String>,
}

/// Returns the server that must handle a request, if it is another one.
pub(super) fn owner(call: &Call) -> Option<Peer> {
    let is_own = !call.api.store.is_shared() || call.headers.contains_key(FORWARDED);
    if is_own || !SUBRESOURCES.contains(&call.info.subresource.as_str()) {
        return None;
    }
    let node = match call.ty.strategy.proxy_target()? {
        ProxyTarget::Service => proxy::node_of_service(call)?,
        ProxyTarget::Node => proxy::object_name(call)?.to_owned(),
        ProxyTarget::Pod => {
            let key = Key::new(call.info.namespace.as_str(), proxy::object_name(call)?);
            let pod = call.ty.load(&*call.api.store.get(&call.ty.table, &key)?);
            pod["spec"]["nodeName"].as_str()?.to_owned()
        }
    };
    if call.api.kubelet.get().is_some_and(|kubelet| kubelet.node() == node) {
        return None;
    }
    let nodes = call.api.find_core("nodes").ok()?;
    let node = nodes.load(&*call.api.store.get(&nodes.table, &Key::new("", node))?);
    let annotations = node.metadata()?.get("annotations")?;
    let text = |name: &str| annotations[name].as_str().map(str::to_owned);
    Some(Peer { address: text(SERVER)?, ca_pem: text(AUTHORITY) })
}

/// Sends the request to another server, with the bearer token of the client.
pub(super) async fn handle(
    call: Call,
    Peer { address, ca_pem }: &Peer,
    method: &Method,
    body: &mut Incoming,
) -> Result<ApiResponse, ApiError> {
    let unreachable = |error: &dyn std::fmt::Display| {
        ApiError::unreachable_node(format!("error dialing backend: dial tcp {address}: {error}"))
    };
    let stream = connect(address, ca_pem.as_deref()).await.map_err(|error| unreachable(&error))?;
    let mut request = Request::new(());
    *request.method_mut() = method.clone();
    let target = call.uri.path_and_query().map_or("/", |target| target.as_str());
    *request.uri_mut() = target.parse().map_err(|error| unreachable(&error))?;
    *request.headers_mut() = proxy::forwarded_headers(&call);
    let host = HeaderValue::try_from(address.as_str()).map_err(|error| unreachable(&error))?;
    request.headers_mut().insert(header::HOST, host);
    request.headers_mut().insert(FORWARDED, HeaderValue::from_static("true"));
    proxy::exchange(call, stream, request, body, "").await
}

/// Opens a connection, with TLS if the server has an authority.
async fn connect(address: &str, ca_pem: Option<&str>) -> Result<Box<dyn Connection>, ClientError> {
    let Some(ca_pem) = ca_pem else {
        let failed = |error: std::io::Error| ClientError::Exchange(error.to_string());
        return Ok(Box::new(TcpStream::connect(address).await.map_err(failed)?));
    };
    let url = format!("https://{address}");
    let url = url.parse().map_err(|_| ClientError::Host(url))?;
    Ok(Box::new(Client::new(&url, ca_pem.as_bytes(), None)?.open().await?))
}
