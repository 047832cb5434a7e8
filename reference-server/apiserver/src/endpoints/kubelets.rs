//! Requests to the kubelets of nodes that this server did not create.
//!
//! As in kube-apiserver, such a kubelet serves the logs, commands and ports of the pods of its
//! node. The server does not verify its certificate, because it has no authority for kubelets. The
//! bytes after an upgrade pass through unchanged.

use std::fmt::Write as _;
use std::net::IpAddr;
use std::time::Duration;

use http::{HeaderValue, Method, Request, StatusCode, Uri, header};
use http_body_util::{BodyExt as _, Collected, Limited};
use kubeproof_apimachinery::status::ApiError;
use kubeproof_storage::Key;
use serde_json::{Value, json};

use super::Call;
use crate::http::client::{Client, ClientError, Connection, Security};
use crate::http::forward::{self, Upgraded};
use crate::http::respond::ApiResponse;
use crate::registry::backends::number;

/// The types of addresses of a node, the preferred one first. kubeadm configures kube-apiserver in
/// the same way.
const PREFERRED: [&str; 5] = ["InternalIP", "InternalDNS", "ExternalIP", "ExternalDNS", "Hostname"];
/// The port of a kubelet whose node does not have it in its status.
const DEFAULT_PORT: u16 = 10_250;
/// The time that a connection may take.
const TIMEOUT: Duration = Duration::from_secs(30);
/// The largest message of a kubelet that rejects a request, in bytes.
const MAX_MESSAGE: usize = 50_000;

/// The kubelet of a node.
pub(super) struct Kubelet {
    /// The host and port.
    address: String,
}

impl Kubelet {
    /// Returns the kubelet of the node of a pod, or none if this server runs the pod.
    pub(super) fn of_pod(call: &Call, pod: &Value) -> Result<Option<Self>, ApiError> {
        let name = pod["spec"]["nodeName"].as_str().unwrap_or_default();
        if call.api.kubelet.get().is_some_and(|kubelet| kubelet.node() == name) {
            return Ok(None);
        }
        let nodes = call.api.find_core("nodes")?;
        let stored = call.api.store.get(&nodes.table, &Key::new("", name));
        // As in kube-apiserver, the error has the resource of the request.
        let stored = stored.ok_or_else(|| ApiError::not_found(call.ty.resource(), name))?;
        Self::of_node(&nodes.load(&stored)).map(Some)
    }

    /// Returns the kubelet of a node from the status of the node.
    pub(super) fn of_node(node: &Value) -> Result<Self, ApiError> {
        let addresses = node["status"]["addresses"].as_array();
        let addresses = addresses.map(Vec::as_slice).unwrap_or_default();
        let of_type = |kind: &&str| addresses.iter().find(|address| address["type"] == **kind);
        let found = PREFERRED.iter().find_map(of_type);
        let Some(host) = found.and_then(|address| address["address"].as_str()) else {
            let shown = |address: &Value| {
                let text = |field: &str| address[field].as_str().unwrap_or_default().to_owned();
                format!("{{{} {}}}", text("type"), text("address"))
            };
            let known: Vec<_> = addresses.iter().map(shown).collect();
            let why =
                format!("no preferred addresses found; known addresses: [{}]", known.join(" "));
            return Err(ApiError::unreachable_node(why));
        };
        let port = node.pointer("/status/daemonEndpoints/kubeletEndpoint/Port").and_then(number);
        let port = port.filter(|port| *port != 0).unwrap_or(DEFAULT_PORT);
        let host = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
        Ok(Self { address: format!("{host}:{port}") })
    }

    /// Reports whether the address is on the host of the server, or on its link.
    pub(super) fn is_local(&self) -> bool {
        let host = self.address.rsplit_once(':').map_or("", |(host, _)| host);
        match host.trim_matches(['[', ']']).parse() {
            Ok(IpAddr::V4(ip)) => ip.is_loopback() || ip.is_link_local() || ip.is_unspecified(),
            Ok(IpAddr::V6(ip)) => ip.is_loopback() || ip.is_unicast_link_local(),
            Err(_) => host == "localhost",
        }
    }

    /// Opens a connection. The error is the text that kube-apiserver reports.
    pub(super) async fn open(&self) -> Result<Box<dyn Connection>, String> {
        let url = format!("https://{}", self.address);
        let url: Uri = url.parse().map_err(|error| format!("parse {url:?}: {error}"))?;
        let security = Security { insecure: true, ..Security::default() };
        let client = Client::secured(&url, security, None).map_err(|error| error.to_string())?;
        match tokio::time::timeout(TIMEOUT, client.open()).await {
            Ok(Ok(stream)) => Ok(Box::new(stream)),
            Ok(Err(ClientError::Tls(why))) if why.contains("eof") => Err("EOF".to_owned()),
            Ok(Err(ClientError::Tls(why))) => Err(format!("tls: {why}")),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err(format!("dial tcp {}: i/o timeout", self.address)),
        }
    }

    /// Passes a request for another protocol on, and connects the client with the kubelet.
    pub(super) async fn stream(
        &self,
        mut call: Call,
        method: Method,
        target: &str,
    ) -> Result<ApiResponse, ApiError> {
        let Some(upgrade) = call.upgrade.take() else {
            return Err(ApiError::bad_request("Upgrade request required"));
        };
        let failed = |why: String| ApiError::unreachable_node(why);
        let connection = self.open().await;
        let connection =
            connection.map_err(|why| failed(format!("error dialing backend: {why}")))?;
        let mut request = self.request(method, target)?;
        let headers = request.headers_mut();
        headers.extend(forward::without_hops(&call.headers));
        headers.remove(header::AUTHORIZATION);
        forward::ask_to_switch(&call.headers, headers);
        if let Ok(host) = HeaderValue::try_from(self.address.as_str()) {
            headers.insert(header::HOST, host);
        }
        let upgraded = forward::switch(upgrade, connection, request).await;
        match upgraded.map_err(|error| failed(error.to_string()))? {
            Upgraded::Switched(handshake) => Ok(call.switch(handshake)),
            Upgraded::Rejected(response) if response.status().as_u16() >= 400 => {
                Ok(forward::to_response(response, |_, value| value.clone()))
            }
            Upgraded::Rejected(response) => {
                let code = response.status().as_u16();
                Err(failed(format!("invalid upgrade response: status code {code}")))
            }
        }
    }

    /// Requests a log, and returns it as text.
    pub(super) async fn log(&self, call: &Call, target: &str) -> Result<ApiResponse, ApiError> {
        let failed = |why: &dyn std::fmt::Display| {
            let url = format!("https://{}{target}", self.address);
            ApiError::unreachable_node(format!("Get {url:?}: {why}"))
        };
        let connection = self.open().await.map_err(|why| failed(&why))?;
        let request = self.request(Method::GET, target)?;
        let response = forward::get(connection, request).await.map_err(|error| failed(&error))?;
        let status = response.status();
        if (200..=206).contains(&status.as_u16()) {
            let response = forward::to_response(response, |_, value| value.clone());
            return Ok(ApiResponse {
                status: StatusCode::OK,
                content_type: "text/plain",
                headers: Vec::new(),
                ..response
            });
        }
        let body = Limited::new(response.into_body(), MAX_MESSAGE).collect().await;
        let body = body.map(Collected::to_bytes).unwrap_or_default();
        let message = String::from_utf8_lossy(&body);
        Err(match status {
            StatusCode::INTERNAL_SERVER_ERROR => ApiError::internal_cause(&message),
            StatusCode::BAD_REQUEST => ApiError::bad_request(message),
            _ => rejected(status, &call.info.name, &message),
        })
    }

    fn request(&self, method: Method, target: &str) -> Result<Request<()>, ApiError> {
        let request = Request::builder().method(method).uri(target);
        let request = request.header(header::HOST, self.address.as_str());
        request.body(()).map_err(|error| ApiError::bad_request(error.to_string()))
    }
}

/// Returns the path of the kubelet for a subresource of a pod, with its parameters.
pub(super) fn target<'a>(
    endpoint: &str,
    call: &Call,
    container: &str,
    parameters: impl IntoIterator<Item = (&'a str, String)>,
) -> String {
    let info = &call.info;
    let mut path = format!("/{endpoint}/{}/{}", info.namespace, info.name);
    if !container.is_empty() {
        path.push('/');
        path.push_str(container);
    }
    for (index, (name, value)) in parameters.into_iter().enumerate() {
        path.push(if index == 0 { '?' } else { '&' });
        path.push_str(name);
        path.push('=');
        escape(&value, &mut path);
    }
    path
}

/// Adds a value to a query.
fn escape(value: &str, query: &mut String) {
    for byte in value.bytes() {
        match byte {
            b' ' => query.push('+'),
            _ if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) => {
                query.push(char::from(byte));
            }
            // Writing to a string does not fail.
            _ => _ = write!(query, "%{byte:02X}"),
        }
    }
}

/// Returns the parameters of a command, of an attached terminal, or of forwarded ports.
pub(super) fn parameters(call: &Call, ports: &[String]) -> Vec<(&'static str, String)> {
    let query = &call.query;
    let commands = query.all("command").map(|command| ("command", command.to_owned()));
    let mut parameters: Vec<_> = commands.filter(|_| call.info.subresource == "exec").collect();
    let flags = [("stderr", "error"), ("stdin", "input"), ("stdout", "output"), ("tty", "tty")];
    let set = flags.into_iter().filter(|(flag, _)| ports.is_empty() && query.flag(flag));
    parameters.extend(set.map(|(_, name)| (name, "1".to_owned())));
    if !ports.is_empty() {
        parameters.push(("port", ports.join(",")));
    }
    parameters
}

/// Returns the error of a kubelet that rejects the request for a log.
fn rejected(status: StatusCode, name: &str, message: &str) -> ApiError {
    let (reason, why) = match status.as_u16() {
        401 => {
            ("Unauthorized", "the server has asked for the client to provide credentials".into())
        }
        403 => ("Forbidden", message.to_owned()),
        404 => ("NotFound", "the server could not find the requested resource".into()),
        503 => {
            ("ServiceUnavailable", "the server is currently unable to handle the request".into())
        }
        500.. => (
            "InternalError",
            format!(
                "an error on the server ({message:?}) has prevented the request from succeeding"
            ),
        ),
        code => (
            "Unknown",
            format!(
                "the server responded with the status code {code} but did not return more \
                 information"
            ),
        ),
    };
    ApiError::of_status(json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": format!("{why} ( pods/log {name})"), "reason": reason,
        "details": {"name": name, "kind": "pods/log"}, "code": status.as_u16(),
    }))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn address(status: &Value) -> Option<String> {
        Kubelet::of_node(&json!({ "status": status })).ok().map(|kubelet| kubelet.address)
    }

    #[rstest]
    #[case(json!([]), None)]
    #[case(json!([{"type": "Odd", "address": "a"}]), None)]
    #[case(json!([{"type": "Hostname", "address": "a"}]), Some("a:10250"))]
    #[case(json!([{"type": "Hostname", "address": "a"}, {"type": "InternalIP", "address": "::1"}]),
           Some("[::1]:10250"))]
    fn a_node_has_a_preferred_address(#[case] addresses: Value, #[case] expected: Option<&str>) {
        assert_eq!(address(&json!({ "addresses": addresses })).as_deref(), expected);
    }

    #[test]
    fn a_node_can_have_a_port() {
        let mut status = json!({"addresses": [{"type": "InternalIP", "address": "10.0.0.1"}]});
        for (port, expected) in [(7, "10.0.0.1:7"), (0, "10.0.0.1:10250")] {
            status["daemonEndpoints"] = json!({"kubeletEndpoint": {"Port": port}});
            assert_eq!(address(&status).as_deref(), Some(expected));
        }
    }

    #[test]
    fn values_of_a_query_are_escaped() {
        let mut query = String::new();
        escape("sh -c 'é&=%'", &mut query);
        assert_eq!(query, "sh+-c+%27%C3%A9%26%3D%25%27");
    }
}
