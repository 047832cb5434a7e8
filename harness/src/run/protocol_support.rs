//! Probes which protocols a target supports, once each, by a handshake with the shared pod.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use kubeproof_cases::case::{Action, Case, Step};
use kubeproof_cases::protocol::{Carrier, Protocol, StreamKind, TUNNEL};
use tokio::sync::OnceCell;
use tokio::time::Instant;

use super::case::Session;
use crate::capability::outgoing;
use crate::event::SkipReason;
use crate::transport::Upgrade;
use crate::transport::stream::{Handshake, Shape};

/// Results of the probes so far.
#[derive(Debug, Default)]
pub(super) struct ProtocolSupport(Mutex<BTreeMap<ProbeKey, Arc<OnceCell<ProbeResult>>>>);

type ProbeKey = (Protocol, &'static str);

type ProbeResult = Result<(), SkipReason>;

impl Session {
    /// Returns why a case cannot use a protocol, or `None`.
    pub(super) async fn unsupported_protocol(
        &self,
        case: &Case,
        protocol: &Protocol,
        deadline: Instant,
    ) -> Option<SkipReason> {
        let subresource = match kind_of(&case.steps).unwrap_or_default() {
            StreamKind::Command => "exec?command=true&stdout=true",
            StreamKind::Ports if protocol.is_spdy() => "portforward",
            StreamKind::Ports => "portforward?ports=7",
            StreamKind::Plain => "log",
        };
        let cell = {
            let mut results =
                self.protocol_support.0.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(results.entry((protocol.clone(), subresource)).or_default())
        };
        let result = cell.get_or_init(|| self.probe(protocol, subresource, deadline)).await;
        result.clone().err()
    }

    /// Only a plain rejection means that the protocol is missing. Cases judge all other responses.
    async fn probe(
        &self,
        protocol: &Protocol,
        subresource: &str,
        deadline: Instant,
    ) -> ProbeResult {
        let path =
            format!("/api/v1/namespaces/{}/pods/{}/{subresource}", self.namespace, self.pod.name);
        let handshake = Handshake::new(protocol.over, vec![protocol.name.clone()]);
        let method = if protocol.over == Carrier::Spdy { "POST" } else { "GET" };
        let mut request = outgoing(method, &path, "", None);
        request.headers = handshake.headers(Vec::new());
        let kind = if protocol.name == TUNNEL { StreamKind::Ports } else { StreamKind::Plain };
        let shape = Shape { kind, ports: Vec::new() };
        let upgrade = Upgrade { handshake: &handshake, shape: &shape, token_in_protocols: false };
        let stream = self.client.stream(request, upgrade, deadline).await;
        match stream.head.status() {
            400 | 403 | 404 | 405 | 501 => Err(SkipReason::ProtocolNotSupported {
                protocol: protocol.clone(),
                response: stream.head.in_words(),
            }),
            _ => Ok(()),
        }
    }
}

/// Returns the kind of the first stream that uses the case's protocol.
fn kind_of(steps: &[Step]) -> Option<StreamKind> {
    steps.iter().find_map(|step| match &step.action {
        Action::Stream(stream) if stream.over.is_none() => Some(stream.kind),
        Action::Concurrently(inner) | Action::Repeat(inner) => kind_of(&inner.steps),
        Action::Until(until) => kind_of(&until.steps),
        Action::Together(together) => together.branches.iter().find_map(|branch| kind_of(branch)),
        _ => None,
    })
}
