//! Steps that open streams and send on them.

use std::sync::Arc;

use bytes::Bytes;
use kubeproof_cases::case::{Close, Creation, Level, Outbound, Payload, Sending, Stream};
use kubeproof_cases::protocol::{Carrier, StreamKind, TUNNEL};
use kubeproof_cases::template::Template;
use serde_json::json;
use tokio::time::Instant;

use super::request::{self, BuildError};
use super::scope::{Ended, Flow, Scope};
use super::steps::ALL_SLOW;
use super::stream_data::{Source, asked_for, port_name};
use crate::event::{CheckResult, Symptom, Verdict};
use crate::exchange::FrameError;
use crate::transport::stream::{
    Handshake, OpenStream, SendError, Shape, StreamTimeout, StreamWrite, TimeoutCause,
};
use crate::transport::{Outgoing, Upgrade};
use crate::values::Undefined;
use crate::verdict::{curl, failed_at};

/// A handshake, ready to send.
struct Opening {
    outgoing: Outgoing,
    handshake: Handshake,
    shape: Shape,
}

impl Scope<'_> {
    pub(super) async fn open_stream(&mut self, stream: &Stream) -> Flow {
        let id = &stream.request.id;
        let Opening { outgoing, handshake, shape } = match self.opening(stream) {
            Ok(opening) => opening,
            Err(error) => return Err(self.not_built(id, &error)),
        };
        let (target, over) = (outgoing.target.clone(), handshake.over);
        let client = &self.session.client;
        let token_in_protocols = stream.token_in_protocols;
        let upgrade = Upgrade { handshake: &handshake, shape: &shape, token_in_protocols };
        let begun = Instant::now();
        let open = client.stream(outgoing, upgrade, self.deadline).await;
        self.give_back(begun.elapsed());
        let open = self.opened_stream(id, open);
        let head = open.head.clone();
        self.refresh_stream(id, &open);
        self.require_response(id, &head).await?;

        let mut check = self.stream_check(&format!("{id}-opens"), id, &open);
        let expected = over.opening_status();
        check.expected = json!({"status": expected});
        if open.is_open() {
            self.pass(check);
        } else if head.status() == expected || !stream.judges_response() {
            check.actual = json!({"status": head.status(), "problems": open.problems});
            if head.status() != expected {
                check.symptom = Some(Symptom::StatusCode {
                    request: head.request.verb(),
                    expected: vec![expected],
                    got: head.status(),
                });
            }
            check.message = match open.problems.as_slice() {
                [] => {
                    format!("expected HTTP {expected} to open the stream, got {}", head.in_words())
                }
                problems => {
                    format!("the response to the handshake is invalid: {}", problems.join("; "))
                }
            };
            self.record.check(check);
            return Err(Ended);
        }
        self.judge(&stream.request.expect, id, Some(&head), &[]);
        if open.is_open() && open.is_spdy() {
            self.first_streams(stream, &target, &open).await?;
            self.refresh_stream(id, &open);
        }
        Ok(())
    }

    fn opening(&self, stream: &Stream) -> Result<Opening, BuildError> {
        let protocol = self.planned.protocol.as_ref();
        let over = stream.over.or(protocol.map(|protocol| protocol.over));
        let over = over.ok_or(BuildError::NoProtocol)?;
        let offers: Vec<String> = match &stream.offers {
            Some(offers) => {
                offers.iter().map(|offer| self.values.render(offer)).collect::<Result<_, _>>()?
            }
            None => protocol.iter().map(|protocol| protocol.name.clone()).collect(),
        };
        let mut request = stream.request.clone();
        if request.method.is_empty() {
            let method = if over == Carrier::Spdy { "POST" } else { "GET" };
            method.clone_into(&mut request.method);
        }
        // The default Accept header does not apply to streams.
        request.accept.get_or_insert_with(Template::default);
        let mut outgoing =
            request::outgoing(&request, self.planned.subject.as_deref(), &self.values)?;
        if over == Carrier::Websocket && !offers.iter().any(|offer| offer == TUNNEL) {
            for port in &stream.ports {
                outgoing.target.push(if outgoing.target.contains('?') { '&' } else { '?' });
                outgoing.target.push_str("ports=");
                outgoing.target.push_str(&port.to_string());
            }
        }
        let handshake = Handshake::new(over, offers);
        outgoing.headers = handshake.headers(outgoing.headers);
        Ok(Opening {
            outgoing,
            handshake,
            shape: Shape { kind: stream.kind, ports: stream.ports.clone() },
        })
    }

    /// Creates the SPDY streams that clients create at the start: those of the step, or those of
    /// the request.
    async fn first_streams(&mut self, stream: &Stream, target: &str, open: &OpenStream) -> Flow {
        let protocol = open.snapshot().response().and_then(|response| response.stream.clone());
        let protocol = protocol.map(|transcript| transcript.protocol.clone()).unwrap_or_default();
        let names = stream.open.clone().unwrap_or_else(|| match stream.kind {
            StreamKind::Command => asked_for(target, &protocol),
            StreamKind::Plain => vec!["data".to_owned()],
            StreamKind::Ports => (0..stream.ports.len())
                .flat_map(|n| {
                    if n == 0 {
                        [port_name("error", 0), port_name("data", 0)]
                    } else {
                        [port_name("error", n), port_name("data", n)]
                    }
                })
                .collect(),
        });
        for channel in names {
            let mut headers = vec![("streamtype".to_owned(), channel.clone())];
            let mut end = false;
            if stream.kind == StreamKind::Ports {
                let kind = channel.trim_end_matches(|c: char| c.is_ascii_digit());
                let index: usize = channel[kind.len()..].parse().unwrap_or(0);
                let port = stream.ports.get(index).copied().unwrap_or_default();
                headers = vec![
                    ("streamtype".to_owned(), kind.to_owned()),
                    ("port".to_owned(), port.to_string()),
                    ("requestid".to_owned(), index.to_string()),
                ];
                // Only the server writes errors.
                end = kind == "error";
            }
            let sent = StreamWrite::Create { channel, number: None, headers, end };
            self.transmit(open, sent, &stream.request.id).await?;
        }
        Ok(())
    }

    pub(super) async fn create_stream(&mut self, creation: &Creation) -> Flow {
        let open = self.stream(&creation.stream)?;
        let headers: Result<Vec<_>, Undefined> = creation
            .headers
            .iter()
            .map(|(name, value)| Ok((name.clone(), self.values.render(value)?)))
            .collect();
        let headers = match headers {
            Ok(headers) => headers,
            Err(undefined) => return Err(self.undefined(&creation.stream, &undefined)),
        };
        let channel = creation.channel.clone();
        let sent =
            StreamWrite::Create { channel, number: creation.number, headers, end: creation.end };
        self.transmit(&open, sent, &creation.stream).await?;
        self.refresh_stream(&creation.stream, &open);
        Ok(())
    }

    pub(super) async fn send_on_stream(&mut self, sending: &Sending) -> Flow {
        let (id, open) = (&sending.stream, self.stream(&sending.stream)?);
        match &sending.what {
            Outbound::Data { channel, payload, pieces, end } => {
                self.send_data(id, &open, (channel, payload, *pieces, *end)).await?;
            }
            Outbound::Resize { width, height } => {
                let size = json!({"Width": width, "Height": height}).to_string();
                let sent = StreamWrite::Data {
                    channel: "resize".to_owned(),
                    bytes: size.into(),
                    end: false,
                };
                self.transmit(&open, sent, id).await?;
            }
            Outbound::Frame { head, payload } => {
                let payload = self.payload(payload, id)?;
                self.transmit(
                    &open,
                    StreamWrite::Frame(*head, payload.piece(0, payload.size())),
                    id,
                )
                .await?;
            }
            Outbound::Ping(payload) => {
                self.transmit(&open, StreamWrite::Ping(payload.clone()), id).await?;
            }
            Outbound::Reset { channel, status } => {
                self.transmit(&open, StreamWrite::Reset(channel.clone(), *status), id).await?;
            }
            Outbound::Raw(bytes) => {
                self.transmit(&open, StreamWrite::Raw(bytes.clone()), id).await?;
            }
        }
        self.refresh_stream(id, &open);
        Ok(())
    }

    async fn send_data(
        &mut self,
        id: &str,
        open: &OpenStream,
        (channel, payload, pieces, end): (&str, &Payload, usize, bool),
    ) -> Flow {
        let source = self.payload(payload, id)?;
        let rides = match (end, open.ends_with_data()) {
            (true, None) => {
                return Err(self.unsupported(id, &FrameError::NoHalfClose));
            }
            (_, rides) => rides == Some(true),
        };
        let data = |bytes: Vec<u8>, end| StreamWrite::Data {
            channel: channel.to_owned(),
            bytes: Bytes::from(bytes),
            end,
        };
        let mut from = 0_usize;
        // An empty payload is one empty message, unless only the end is to be sent.
        let mut is_over = pieces == usize::MAX && source.size() == 0;
        while !is_over {
            let to = from.saturating_add(pieces).min(source.size());
            is_over = to == source.size();
            let last = is_over && end && rides;
            let begun = Instant::now();
            let piece = source.piece(from, to);
            // The time to generate data does not count against the server.
            self.give_back(begun.elapsed());
            self.transmit(open, data(piece, last), id).await?;
            from = to;
            if last {
                return Ok(());
            }
        }
        if end { self.transmit(open, data(Vec::new(), true), id).await } else { Ok(()) }
    }

    fn payload(&mut self, payload: &Payload, id: &str) -> Result<Source, Ended> {
        match payload {
            Payload::Bytes(bytes) => Ok(Source::Bytes(bytes.clone())),
            Payload::Noise(size) => Ok(Source::Noise(*size)),
            Payload::Text(text) => match self.values.render(text) {
                Ok(text) => Ok(Source::Bytes(text.into_bytes())),
                Err(undefined) => Err(self.undefined(id, &undefined)),
            },
        }
    }

    /// Ends the case at a write that the protocol cannot carry.
    fn unsupported(&mut self, id: &str, error: &FrameError) -> Ended {
        let actual = json!({"code": error.code()});
        self.ended_with(id, Verdict::Error, actual, error.to_string())
    }

    /// Sends data. Later steps report a closed connection.
    async fn transmit(&mut self, open: &OpenStream, sent: StreamWrite, id: &str) -> Flow {
        let mut timeout = self.timeout();
        let sent = open.send(sent, &mut timeout).await;
        self.deadline = timeout.deadline;
        match sent {
            Ok(()) | Err(SendError::Ended) => Ok(()),
            Err(SendError::Unsupported(error)) => Err(self.unsupported(id, &error)),
            Err(error @ SendError::TimedOut(why)) => {
                let mut check = self.stream_check(&format!("{id}-takes"), id, open);
                let (verdict, also) = self.timed_out(why, check.level).await;
                check.verdict = verdict;
                check.expected = json!("the server reads what is sent");
                check.message = format!("{error}: {why}{also}");
                self.record.check(check);
                Err(Ended)
            }
        }
    }

    pub(super) fn close_stream(&mut self, close: &Close) -> Flow {
        let open = self.stream(&close.of)?;
        open.hang_up();
        self.refresh_stream(&close.of, &open);
        Ok(())
    }

    /// A slow server sends data now and then. A stream stalls after half the case timeout without
    /// data.
    pub(super) fn timeout(&self) -> StreamTimeout {
        self.stream_timeout(self.session.fair_wait())
    }

    /// Returns the verdict on a timeout, and an addition to its message. A stalled server is wrong.
    /// A server that makes progress too slowly, or is slow everywhere, is not at fault.
    pub(super) async fn timed_out(
        &self,
        why: TimeoutCause,
        level: Level,
    ) -> (Verdict, &'static str) {
        match why {
            TimeoutCause::Deadline => (Verdict::Error, ""),
            TimeoutCause::Stalled(_) if self.session.is_slow().await => (Verdict::Error, ALL_SLOW),
            TimeoutCause::Stalled(_) => (failed_at(level), ""),
        }
    }

    pub(super) fn stream(&mut self, id: &str) -> Result<Arc<OpenStream>, Ended> {
        match self.streams.get(id) {
            Some(open) => Ok(Arc::clone(open)),
            None => Err(self.stuck(id, format!("the stream `{id}` is not open here"))),
        }
    }

    /// Creates a check of a stream that has failed so far.
    pub(super) fn stream_check(&self, check: &str, id: &str, open: &OpenStream) -> CheckResult {
        let mut check = self.own_check(check, id);
        check.verdict = failed_at(check.level);
        check.curl = Some(curl::line(&open.head.request, &self.session.judging.server));
        check.symptom = Some(Symptom::NoResponse { request: open.head.request.verb() });
        check
    }

    pub(super) fn pass(&mut self, mut check: CheckResult) {
        check.verdict = Verdict::Pass;
        check.symptom = None;
        check.curl = None;
        self.record.check(check);
    }
}
