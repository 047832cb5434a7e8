//! Port-forwarding: connections to ports of a pod, several over one.

mod pairs;
#[cfg(test)]
mod pressure;
mod spdy;
mod tunnel;
mod websocket;

use std::future::Future;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use http::StatusCode;
use tokio::io::DuplexStream;

use super::spdy::handshake as spdy_handshake;
use super::websocket::channels::Coding;
use super::websocket::handshake as websocket_handshake;
use super::websocket::socket::Socket;
use super::{Reply, Upgrade, Wish};
use crate::runtime::PortError;
use crate::{Fault, Faults};

/// The protocol of SPDY.
const SPDY_PROTOCOLS: &[&str] = &["portforward.k8s.io"];
/// The subprotocols of WebSocket with two channels a port.
const WEBSOCKET_PROTOCOLS: &[&str] = &["v4.channel.k8s.io", "v4.base64.channel.k8s.io"];
/// In front of the name of a SPDY protocol that is spoken inside of binary messages, and behind it.
const TUNNEL: (&str, &str) = ("SPDY/3.1+", ".k8s.io");

/// Connects to a port of the pod.
pub(crate) type Connect =
    Arc<dyn Fn(u16) -> BoxFuture<'static, Result<DuplexStream, PortError>> + Send + Sync>;

/// Makes a [`Connect`] of a function.
pub(crate) fn connector<F, W>(connect: F) -> Connect
where
    F: Fn(u16) -> W + Send + Sync + 'static,
    W: Future<Output = Result<DuplexStream, PortError>> + Send + 'static,
{
    Arc::new(move |port| Box::pin(connect(port)))
}

/// The pod whose ports are forwarded.
#[derive(Clone)]
pub(crate) struct Target {
    pub(crate) pod: String,
    pub(crate) uid: String,
    pub(crate) connect: Connect,
}

impl Target {
    /// What the client is told when a port cannot be reached.
    fn failure(&self, port: u16, error: &PortError) -> String {
        format!("error forwarding port {port} to pod {}, uid {}: {error}", self.pod, self.uid)
    }
}

/// Forwards ports. `ports` are those of the query, which only WebSocket with channels needs.
pub(crate) fn serve(upgrade: Upgrade, ports: &[String], target: Target, faults: Faults) -> Reply {
    match upgrade.wish() {
        Wish::Websocket => {
            if let Err(refusal) = websocket_handshake::check(upgrade.method(), upgrade.headers(), faults) {
                return refusal.into();
            }
            let tunnels =
                websocket_handshake::offers(upgrade.headers()).iter().any(|one| one.starts_with(TUNNEL.0));
            if tunnels {
                tunnelled(upgrade, target, faults)
            } else {
                over_websocket(upgrade, ports, target, faults)
            }
        }
        Wish::Spdy => match spdy_handshake::negotiate(upgrade.headers(), SPDY_PROTOCOLS, faults) {
            Ok(protocol) => {
                let answer = spdy_handshake::switch(protocol, faults);
                upgrade.switch(answer, move |connection| spdy::run(connection, target, faults))
            }
            Err(refusal) => refusal.into(),
        },
        Wish::Other => {
            let why = "unable to upgrade: missing upgrade headers in request";
            Reply::refused(StatusCode::BAD_REQUEST, why)
        }
    }
}

fn over_websocket(upgrade: Upgrade, ports: &[String], target: Target, faults: Faults) -> Reply {
    let protocol = match websocket_handshake::negotiate(upgrade.headers(), WEBSOCKET_PROTOCOLS, faults) {
        Ok(protocol) => protocol,
        Err(refusal) => return refusal.into(),
    };
    let mut ports = match parse(ports) {
        Ok(ports) => ports,
        Err(why) => return Reply::refused(StatusCode::BAD_REQUEST, &why),
    };
    if faults.on(Fault::PortsFirstOnly) {
        ports.truncate(1);
    }
    let coding = if protocol.contains("base64") { Coding::Base64 } else { Coding::Binary };
    let answer = websocket_handshake::switch(upgrade.headers(), protocol, faults);
    upgrade.switch(answer, move |connection| async move {
        websocket::run(Socket::new(connection, faults).await, coding, &ports, &target, faults).await;
    })
}

/// The ports of a query: several parameters, or several in one.
fn parse(ports: &[String]) -> Result<Vec<u16>, String> {
    let ports: Result<Vec<u16>, String> = ports
        .iter()
        .flat_map(|port| port.split(','))
        .filter(|port| !port.is_empty())
        .map(|port| match port.parse() {
            Ok(0) => Err(format!("port {port:?} must be > 0")),
            Ok(port) => Ok(port),
            Err(_) => Err(format!("unable to parse {port:?} as a port")),
        })
        .collect();
    match ports {
        // Two channels each, and a byte to tell them apart.
        Ok(ports) if ports.len() > 127 => {
            Err("at most 127 ports can be forwarded over one connection".to_owned())
        }
        Ok(ports) if ports.is_empty() => Err("query parameter \"port\" is required".to_owned()),
        ports => ports,
    }
}

fn tunnelled(upgrade: Upgrade, target: Target, faults: Faults) -> Reply {
    let (prefix, suffix) = TUNNEL;
    let offers: Vec<String> =
        websocket_handshake::offers(upgrade.headers()).into_iter().map(str::to_owned).collect();
    let inner: Vec<&str> = offers
        .iter()
        .filter_map(|offer| offer.strip_prefix(prefix))
        .filter(|offer| offer.ends_with(suffix))
        .collect();
    // The negotiation is that of SPDY, whose words for a refusal a client expects.
    let protocol = match spdy_handshake::choose(&inner, SPDY_PROTOCOLS, faults) {
        Ok(protocol) => protocol,
        Err(refusal) => return refusal.into(),
    };
    let answer = websocket_handshake::switch(upgrade.headers(), &format!("{prefix}{protocol}"), faults);
    upgrade.switch(answer, move |connection| async move {
        let socket = Socket::new(connection, faults).await;
        spdy::run(tunnel::Tunnel::new(socket.into_stream()), target, faults).await;
    })
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
    fn the_ports_of_a_query(#[case] query: &[&str], #[case] expected: Result<Vec<u16>, &str>) {
        let query: Vec<String> = query.iter().map(|port| (*port).to_owned()).collect();
        assert_eq!(parse(&query), expected.map_err(str::to_owned));
    }

    #[test]
    fn a_connection_has_channels_for_127_ports() {
        let ports = |count| parse(&vec!["7".to_owned(); count]).map(|ports| ports.len());
        assert_eq!(ports(127), Ok(127));
        assert_eq!(ports(128), Err("at most 127 ports can be forwarded over one connection".to_owned()));
    }
}
