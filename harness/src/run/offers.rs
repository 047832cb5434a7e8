//! Which protocols a target offers: asked once for each, by a handshake with the pod of the run.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use kubeproof_cases::case::{Case, Step};
use kubeproof_cases::stream::{Carrier, Protocol, StreamKind, TUNNEL};
use tokio::sync::OnceCell;
use tokio::time::Instant;

use super::case::Session;
use crate::capability::outgoing;
use crate::stream::{Handshake, Shape};
use crate::transport::Upgrade;

/// Answers so far.
#[derive(Debug, Default)]
pub(super) struct Offers(Mutex<BTreeMap<Question, Arc<OnceCell<Answer>>>>);

/// A protocol, and the subresource that is asked.
type Question = (Protocol, &'static str);

/// It does, or why not.
type Answer = Result<(), String>;

impl Session {
    /// Why a case cannot run over a protocol; `None`: it can.
    pub(super) async fn refuses(
        &self,
        case: &Case,
        protocol: &Protocol,
        deadline: Instant,
    ) -> Option<String> {
        let subresource = match kind_of(&case.steps).unwrap_or_default() {
            StreamKind::Command => "exec?command=true&stdout=true",
            StreamKind::Ports if protocol.is_spdy() => "portforward",
            StreamKind::Ports => "portforward?ports=7",
            StreamKind::Plain => "log",
        };
        let cell = {
            let mut answers = self.offers.0.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(answers.entry((protocol.clone(), subresource)).or_default())
        };
        let answer = cell.get_or_init(|| self.ask(protocol, subresource, deadline)).await;
        answer.clone().err()
    }

    /// Only a plain refusal is a no: what else a broken server may say is for cases to judge.
    async fn ask(&self, protocol: &Protocol, subresource: &str, deadline: Instant) -> Answer {
        let path = format!("/api/v1/namespaces/{}/pods/{}/{subresource}", self.namespace, self.pod.name);
        let handshake = Handshake::new(protocol.over, vec![protocol.name.clone()]);
        let method = if protocol.over == Carrier::Spdy { "POST" } else { "GET" };
        let mut request = outgoing(method, &path, "", None);
        request.headers = handshake.headers(Vec::new());
        let kind = if protocol.name == TUNNEL { StreamKind::Ports } else { StreamKind::Plain };
        let shape = Shape { kind, ports: Vec::new() };
        let upgrade = Upgrade { handshake: &handshake, shape: &shape, token_in_protocols: false };
        let stream = self.client.stream(request, upgrade, deadline).await;
        match stream.head.status() {
            400 | 403 | 404 | 405 | 501 => {
                Err(format!("the target does not offer {protocol}: {}", stream.head.in_words()))
            }
            _ => Ok(()),
        }
    }
}

/// The kind of the first stream that goes over the case's protocol.
fn kind_of(steps: &[Step]) -> Option<StreamKind> {
    steps.iter().find_map(|step| match step {
        Step::Stream(stream) if stream.over.is_none() => Some(stream.kind),
        Step::Concurrently(inner) | Step::Repeat(inner) => kind_of(&inner.steps),
        Step::Until(until) => kind_of(&until.steps),
        Step::Together(together) => together.branches.iter().find_map(|branch| kind_of(branch)),
        _ => None,
    })
}
