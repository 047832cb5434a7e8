//! Port-forwarding: several connections to ports of a pod over one connection of the client.

#[cfg(test)]
mod backpressure;
mod spdy;
mod stream_pair;
mod tunnel;
mod websocket;

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use http::StatusCode;
use tokio::io::DuplexStream;

use crate::spdy::handshake as spdy_handshake;
use crate::upgrade::{Handshake, Protocol, Upgrade};
use crate::websocket::channel::Coding;
use crate::websocket::handshake as websocket_handshake;
use crate::websocket::socket::Socket;

const SPDY_PROTOCOLS: &[&str] = &["portforward.k8s.io"];
/// The subprotocols with two channels per port.
const WEBSOCKET_PROTOCOLS: &[&str] = &["v4.channel.k8s.io", "v4.base64.channel.k8s.io"];
/// The prefix and the suffix of a SPDY protocol that is tunnelled through binary messages.
const TUNNEL: (&str, &str) = ("SPDY/3.1+", ".k8s.io");
/// Each port has two channels, and a channel is one byte.
const MAX_PORTS: usize = 127;

/// Why a port is unreachable.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PortError {
    /// The node runs no such pod.
    #[error("pod does not exist")]
    NoSuchPod,
    /// No container of the pod runs.
    #[error("pod is not running")]
    NotRunning,
    /// No process listens on the port.
    #[error("failed to connect to localhost:{port}: connection refused")]
    Refused {
        /// The port.
        port: u16,
    },
}

impl PortError {
    /// Returns the stable code of this error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NoSuchPod => "port-no-such-pod",
            Self::NotRunning => "port-not-running",
            Self::Refused { .. } => "port-refused",
        }
    }
}

type Connect =
    Arc<dyn Fn(u16) -> BoxFuture<'static, Result<DuplexStream, PortError>> + Send + Sync>;

/// The pod whose ports are forwarded. Clones share the connector.
#[derive(Clone)]
pub struct Target {
    pod: String,
    uid: String,
    connect: Connect,
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Target")
            .field("pod", &self.pod)
            .field("uid", &self.uid)
            .finish_non_exhaustive()
    }
}

impl Target {
    /// Returns a target for a pod. `connect` opens a connection to a port.
    pub fn new<F, W>(pod: impl Into<String>, uid: impl Into<String>, connect: F) -> Self
    where
        F: Fn(u16) -> W + Send + Sync + 'static,
        W: Future<Output = Result<DuplexStream, PortError>> + Send + 'static,
    {
        let connect: Connect = Arc::new(move |port| Box::pin(connect(port)));
        Self { pod: pod.into(), uid: uid.into(), connect }
    }

    /// The message for the client when a port is unreachable.
    fn failure(&self, port: u16, error: &PortError) -> String {
        format!("error forwarding port {port} to pod {}, uid {}: {error}", self.pod, self.uid)
    }
}

/// Serves port-forwarding. `ports` are those of the query, which only WebSocket with channels
/// needs.
pub fn serve(upgrade: Upgrade, ports: &[String], target: Target) -> Handshake {
    match upgrade.protocol() {
        Protocol::Websocket => {
            if let Err(error) = websocket_handshake::check(upgrade.method(), upgrade.headers()) {
                return error.into();
            }
            let mut protocols = websocket_handshake::protocols(upgrade.headers()).into_iter();
            if protocols.any(|one| one.starts_with(TUNNEL.0)) {
                over_tunnel(upgrade, target)
            } else {
                over_websocket(upgrade, ports, target)
            }
        }
        Protocol::Spdy => match spdy_handshake::negotiate(upgrade.headers(), SPDY_PROTOCOLS) {
            Ok(protocol) => {
                let response = spdy_handshake::switching_protocols(protocol);
                upgrade.accept(response, move |connection| spdy::run(connection, target))
            }
            Err(error) => error.into(),
        },
        Protocol::Other => Handshake::reject_protocol(),
    }
}

fn over_websocket(upgrade: Upgrade, ports: &[String], target: Target) -> Handshake {
    let protocol = match websocket_handshake::negotiate(upgrade.headers(), WEBSOCKET_PROTOCOLS) {
        Ok(protocol) => protocol,
        Err(error) => return error.into(),
    };
    let ports = match parse_ports(ports) {
        Ok(ports) => ports,
        Err(error) => return Handshake::reject(StatusCode::BAD_REQUEST, &error.to_string()),
    };
    let coding = Coding::of(protocol);
    let response = websocket_handshake::switching_protocols(upgrade.headers(), protocol);
    upgrade.accept(response, move |connection| async move {
        websocket::run(Socket::new(connection).await, coding, &ports, &target).await;
    })
}

fn over_tunnel(upgrade: Upgrade, target: Target) -> Handshake {
    let (prefix, suffix) = TUNNEL;
    let inner: Vec<&str> = websocket_handshake::protocols(upgrade.headers())
        .into_iter()
        .filter_map(|protocol| protocol.strip_prefix(prefix))
        .filter(|protocol| protocol.ends_with(suffix))
        .collect();
    // Clients expect the rejections of SPDY here.
    let protocol = match spdy_handshake::choose(&inner, SPDY_PROTOCOLS) {
        Ok(protocol) => format!("{prefix}{protocol}"),
        Err(error) => return error.into(),
    };
    let response = websocket_handshake::switching_protocols(upgrade.headers(), &protocol);
    upgrade.accept(response, move |connection| async move {
        let socket = Socket::new(connection).await;
        spdy::run(tunnel::Tunnel::new(socket.into_stream()), target).await;
    })
}

/// Why the ports of a query are invalid. The texts are those of kube-apiserver.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
enum QueryError {
    #[error("port {0:?} must be > 0")]
    Zero(String),
    #[error("unable to parse {0:?} as a port")]
    Invalid(String),
    #[error("at most {MAX_PORTS} ports can be forwarded over one connection")]
    TooMany,
    #[error("query parameter \"port\" is required")]
    Missing,
}

/// Parses the ports of a query, where each parameter is a port or a list with commas.
fn parse_ports(ports: &[String]) -> Result<Vec<u16>, QueryError> {
    let ports: Vec<u16> = ports
        .iter()
        .flat_map(|port| port.split(','))
        .filter(|port| !port.is_empty())
        .map(|port| match port.parse() {
            Ok(0) => Err(QueryError::Zero(port.to_owned())),
            Ok(port) => Ok(port),
            Err(_) => Err(QueryError::Invalid(port.to_owned())),
        })
        .collect::<Result<_, _>>()?;
    match ports.len() {
        0 => Err(QueryError::Missing),
        1..=MAX_PORTS => Ok(ports),
        _ => Err(QueryError::TooMany),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(&["7", "8080"], Ok(vec![7, 8080]))]
    #[case(&["7,8080"], Ok(vec![7, 8080]))]
    #[case(&[], Err("query parameter \"port\" is required"))]
    #[case(&["0"], Err("port \"0\" must be > 0"))]
    #[case(&["http"], Err("unable to parse \"http\" as a port"))]
    fn ports_come_from_the_query(#[case] query: &[&str], #[case] expected: Result<Vec<u16>, &str>) {
        let query: Vec<String> = query.iter().map(|port| (*port).to_owned()).collect();
        assert_eq!(
            parse_ports(&query).map_err(|error| error.to_string()),
            expected.map_err(str::to_owned)
        );
    }

    #[test]
    fn a_connection_has_channels_for_127_ports() {
        let ports = |count| parse_ports(&vec!["7".to_owned(); count]).map(|ports| ports.len());
        assert_eq!(ports(127), Ok(127));
        assert_eq!(ports(128), Err(QueryError::TooMany));
    }
}
