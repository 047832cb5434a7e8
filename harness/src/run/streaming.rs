//! Steps that open streams, send on them and read them.

use std::sync::Arc;

use bytes::Bytes;
use kubeproof_cases::case::{Close, Level};
use kubeproof_cases::stream::{
    Arrival, Carrier, Creation, Finish, Outbound, Payload, Receiving, Sending, Stream, StreamKind, TUNNEL,
};
use kubeproof_cases::template::Template;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::build;
use super::scope::{Ended, Flow, Scope};
use crate::event::{CheckResult, Verdict};
use crate::stream::{
    Handshake, Impatience, OpenStream, Patience, SendError, Sent, Shape, StreamEnd, Transcript, Waited,
};
use crate::transport::{Outgoing, Upgrade};
use crate::values::Undefined;
use crate::verdict::{curl, describe, describe_text, failed_at, matches, shorten, text_matches};

/// A handshake that is ready to be sent.
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
            Err(why) => return Err(self.stuck(id, why)),
        };
        let target = outgoing.target.clone();
        let client = &self.session.client;
        let token_in_protocols = stream.token_in_protocols;
        let upgrade = Upgrade { handshake: &handshake, shape: &shape, token_in_protocols };
        let begun = Instant::now();
        let open = client.stream(outgoing, upgrade, self.deadline).await;
        self.give_back(begun.elapsed());
        let open = self.opened_stream(id, open);
        let head = open.head.clone();
        self.refresh_stream(id, &open);
        self.answered(id, &head)?;

        let mut check = self.stream_check(&format!("{id}-opens"), id, &open);
        check.expected = json!({"status": 101});
        if open.is_open() {
            self.pass(check);
        } else if head.status() == 101 || !stream.judges_answer() {
            check.actual = json!({"status": head.status(), "problems": open.problems});
            check.message = match open.problems.as_slice() {
                [] => format!("the connection is not upgraded: {}", head.in_words()),
                problems => format!("the answer to the handshake is wrong: {}", problems.join("; ")),
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

    fn opening(&self, stream: &Stream) -> Result<Opening, String> {
        let protocol = self.planned.protocol.as_ref();
        let over = stream.over.or(protocol.map(|protocol| protocol.over));
        let over = over.ok_or("nothing says what the stream is carried over")?;
        let offers = match &stream.offers {
            Some(offers) => offers.iter().map(|offer| self.values.render(offer)).collect::<Result<_, _>>(),
            None => Ok(protocol.iter().map(|protocol| protocol.name.clone()).collect()),
        };
        let offers: Vec<String> = offers.map_err(|error: Undefined| error.to_string())?;
        let mut request = stream.request.clone();
        if request.method.is_empty() {
            let method = if over == Carrier::Spdy { "POST" } else { "GET" };
            method.clone_into(&mut request.method);
        }
        // Nothing that is asked for has a media type.
        request.accept.get_or_insert_with(Template::default);
        let mut outgoing = build::outgoing(&request, self.planned.subject.as_deref(), &self.values)
            .map_err(|error| error.to_string())?;
        if over == Carrier::Websocket && !offers.iter().any(|offer| offer == TUNNEL) {
            for port in &stream.ports {
                outgoing.target.push(if outgoing.target.contains('?') { '&' } else { '?' });
                outgoing.target.push_str("ports=");
                outgoing.target.push_str(&port.to_string());
            }
        }
        let handshake = Handshake::new(over, offers);
        outgoing.headers = handshake.headers(outgoing.headers);
        Ok(Opening { outgoing, handshake, shape: Shape { kind: stream.kind, ports: stream.ports.clone() } })
    }

    /// Creates the SPDY streams that a client creates at once: those that the step names, or that the request asks for.
    async fn first_streams(&mut self, stream: &Stream, target: &str, open: &OpenStream) -> Flow {
        let protocol = open.snapshot().answer().and_then(|answer| answer.stream.clone());
        let protocol = protocol.map(|transcript| transcript.protocol.clone()).unwrap_or_default();
        let names = stream.create.clone().unwrap_or_else(|| match stream.kind {
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
                // Errors go one way only.
                end = kind == "error";
            }
            let sent = Sent::Create { channel, number: None, headers, end };
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
            Err(undefined) => return Err(self.stuck(&creation.stream, undefined.to_string())),
        };
        let channel = creation.channel.clone();
        let sent = Sent::Create { channel, number: creation.number, headers, end: creation.end };
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
                let sent = Sent::Data { channel: "resize".to_owned(), bytes: size.into(), end: false };
                self.transmit(&open, sent, id).await?;
            }
            Outbound::Frame { head, payload } => {
                let payload = self.payload(payload, id)?;
                self.transmit(&open, Sent::Frame(*head, payload.piece(0, payload.size())), id).await?;
            }
            Outbound::Ping(payload) => self.transmit(&open, Sent::Ping(payload.clone()), id).await?,
            Outbound::Reset { channel, status } => {
                self.transmit(&open, Sent::Reset(channel.clone(), *status), id).await?;
            }
            Outbound::Raw(bytes) => self.transmit(&open, Sent::Raw(bytes.clone()), id).await?,
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
                return Err(self.stuck(id, "the negotiated protocol cannot end a channel".to_owned()));
            }
            (_, rides) => rides == Some(true),
        };
        let data =
            |bytes: Vec<u8>, end| Sent::Data { channel: channel.to_owned(), bytes: Bytes::from(bytes), end };
        let mut from = 0_usize;
        // Without data, an empty message goes out, unless there is only an end to be told.
        let mut is_over = pieces == usize::MAX && source.size() == 0;
        while !is_over {
            let to = from.saturating_add(pieces).min(source.size());
            is_over = to == source.size();
            let last = is_over && end && rides;
            let begun = Instant::now();
            let piece = source.piece(from, to);
            // What it costs us to make it is not the server's time.
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
                Err(undefined) => Err(self.stuck(id, undefined.to_string())),
            },
        }
    }

    /// Sends. A connection that has ended is not told here: how it ended is for later steps to say.
    async fn transmit(&mut self, open: &OpenStream, sent: Sent, id: &str) -> Flow {
        let mut patience = self.patience();
        let sent = open.send(sent, &mut patience).await;
        self.deadline = patience.deadline;
        match sent {
            Ok(()) | Err(SendError::Ended) => Ok(()),
            Err(SendError::Unfit(why)) => Err(self.stuck(id, why)),
            Err(untaken @ SendError::Untaken(why)) => {
                let mut check = self.stream_check(&format!("{id}-takes"), id, open);
                check.verdict = out_of_patience(why, check.level);
                check.expected = json!("the server takes what is sent");
                check.message = format!("{untaken}: {why}");
                self.record.check(check);
                Err(Ended)
            }
        }
    }

    pub(super) async fn receive_on_stream(&mut self, receiving: &Receiving) -> Flow {
        let (id, open) = (&receiving.stream, self.stream(&receiving.stream)?);
        let mut undefined = None;
        let (until, values) = (&receiving.until, &self.values);
        let mut patience = self.patience();
        let waited = open
            .wait(&mut patience, |transcript, seen| match arrived(until, transcript, seen, values) {
                Ok(true) => Some(()),
                Ok(false) => None,
                Err(error) => {
                    undefined = Some(error);
                    Some(())
                }
            })
            .await;
        self.deadline = patience.deadline;
        if let Some(undefined) = undefined {
            return Err(self.stuck(&receiving.id, undefined.to_string()));
        }
        self.refresh_stream(id, &open);
        let mut check = self.stream_check(&receiving.id, id, &open);
        check.expected = self.awaited(until).unwrap_or_default();
        if waited == Waited::Came(()) {
            self.pass(check);
            return Ok(());
        }
        let snapshot = open.snapshot();
        let transcript = snapshot.answer().and_then(|answer| answer.stream.clone()).unwrap_or_default();
        if let Waited::Not(why) = waited {
            check.verdict = out_of_patience(why, check.level);
        }
        check.actual = seen(until, &transcript);
        check.message = format!("it does not come: {}", in_words(&waited, &transcript));
        self.record.check(check);
        Err(Ended)
    }

    /// What a step waits for, as a report shows it.
    fn awaited(&self, until: &Arrival) -> Result<Value, Undefined> {
        Ok(match until {
            Arrival::Text { channel, text } => json!({channel: describe_text(text, &self.values)?}),
            Arrival::Bytes { channel, bytes } => json!({channel: format!("{bytes} bytes")}),
            Arrival::End { channel } => json!({channel: "its end"}),
            Arrival::Frame(pattern) => json!({"frame": describe(pattern, &self.values)?}),
        })
    }

    pub(super) async fn finish_stream(&mut self, finish: &Finish) -> Flow {
        let (id, open) = (&finish.stream, self.stream(&finish.stream)?);
        if open.is_open() {
            let mut patience = self.patience();
            let waited = open.finish(&mut patience).await;
            self.deadline = patience.deadline;
            let mut check = self.stream_check(&finish.id, id, &open);
            check.expected = json!("the server ends the stream");
            let snapshot = open.snapshot();
            let transcript = snapshot.answer().and_then(|answer| answer.stream.clone()).unwrap_or_default();
            match &waited {
                Waited::Came(StreamEnd::Server) => self.pass(check),
                Waited::Came(StreamEnd::Dropped(_)) if finish.dropped => self.pass(check),
                waited => {
                    if let Waited::Not(why) = waited {
                        check.verdict = out_of_patience(*why, check.level);
                    }
                    check.message = format!("the stream does not end: {}", in_words(waited, &transcript));
                    self.record.check(check);
                }
            }
            open.hang_up();
        }
        self.refresh_stream(id, &open);
        self.judge(&finish.expect, id, None, &[]);
        Ok(())
    }

    pub(super) fn close_stream(&mut self, close: &Close) -> Flow {
        let open = self.stream(&close.of)?;
        open.hang_up();
        self.refresh_stream(&close.of, &open);
        Ok(())
    }

    /// A server that is slow says something now and then; one that is silent for half the time of a case has stalled.
    fn patience(&self) -> Patience {
        self.patience_of(self.session.patience())
    }

    fn stream(&mut self, id: &str) -> Result<Arc<OpenStream>, Ended> {
        match self.streams.get(id) {
            Some(open) => Ok(Arc::clone(open)),
            None => Err(self.stuck(id, format!("the stream `{id}` is not open here"))),
        }
    }

    /// A check of a stream, not passed yet.
    fn stream_check(&self, check: &str, id: &str, open: &OpenStream) -> CheckResult {
        let mut check = self.own_check(check, id);
        check.verdict = failed_at(check.level);
        check.curl = Some(curl::line(&open.head.request, &self.session.judging.server));
        check
    }

    fn pass(&mut self, mut check: CheckResult) {
        check.verdict = Verdict::Pass;
        check.curl = None;
        self.record.check(check);
    }
}

/// Bytes to send, made when they are needed.
enum Source {
    Bytes(Vec<u8>),
    Noise(usize),
}

impl Source {
    fn size(&self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.len(),
            Self::Noise(size) => *size,
        }
    }

    fn piece(&self, from: usize, to: usize) -> Vec<u8> {
        match self {
            Self::Bytes(bytes) => bytes.get(from..to).unwrap_or_default().to_vec(),
            Self::Noise(_) => (from..to).map(noise).collect(),
        }
    }
}

/// A byte of the fixed sequence: all values in order, then a mix that repeats nowhere near.
fn noise(at: usize) -> u8 {
    if at < 256 {
        return u8::try_from(at).unwrap_or_default();
    }
    let mixed = (at as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed.to_be_bytes()[0]
}

/// The channels that the parameters of a command ask for, in the order in which clients create them.
fn asked_for(target: &str, protocol: &str) -> Vec<String> {
    let query = target.split_once('?').map_or("", |(_, query)| query);
    let is_on = |name: &str| {
        let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        pairs.any(|(key, value)| key == name && matches!(value, "true" | "1"))
    };
    let resizes = is_on("tty") && (protocol.starts_with("v3.") || protocol.starts_with("v4."));
    let all = [
        ("error", true),
        ("stdin", is_on("stdin")),
        ("stdout", is_on("stdout")),
        ("stderr", is_on("stderr") && !is_on("tty")),
        ("resize", resizes),
    ];
    all.into_iter().filter(|(_, asked)| *asked).map(|(name, _)| name.to_owned()).collect()
}

fn port_name(kind: &str, index: usize) -> String {
    if index == 0 { kind.to_owned() } else { format!("{kind}{index}") }
}

/// Whether something has come that a step waits for.
fn arrived(
    until: &Arrival,
    transcript: &Transcript,
    taken: &mut usize,
    values: &crate::values::Values,
) -> Result<bool, Undefined> {
    let received = |channel: &str| transcript.channels.get(channel).map(|channel| &channel.received);
    match until {
        Arrival::Text { channel, text } => match received(channel) {
            Some(flow) => text_matches(text, &flow.text(), values),
            None => Ok(false),
        },
        Arrival::Bytes { channel, bytes } => Ok(received(channel).is_some_and(|flow| flow.size >= *bytes)),
        Arrival::End { channel } => Ok(transcript.has_ended(channel)),
        Arrival::Frame(pattern) => {
            for (n, frame) in transcript.frames.iter().enumerate().skip(*taken) {
                if frame.from_server && matches(pattern, Some(&frame.value()), values)?.is_ok() {
                    *taken = n + 1;
                    return Ok(true);
                }
            }
            Ok(false)
        }
    }
}

/// What has come instead.
fn seen(until: &Arrival, transcript: &Transcript) -> Value {
    match until {
        Arrival::Text { channel, .. } | Arrival::Bytes { channel, .. } | Arrival::End { channel } => {
            let flow = transcript.channels.get(channel).map(|channel| &channel.received);
            flow.map_or(
                Value::Null,
                |flow| json!({channel: {"size": flow.size, "text": shorten(&flow.text())}}),
            )
        }
        Arrival::Frame(_) => {
            let last = transcript.frames.iter().rev().filter(|frame| frame.from_server).take(3);
            last.map(crate::stream::Frame::value).collect()
        }
    }
}

/// A server that stands still is wrong. Of one that moves, and not quickly enough, nothing can be told.
fn out_of_patience(why: Impatience, level: Level) -> Verdict {
    match why {
        Impatience::Silence(_) => failed_at(level),
        Impatience::Deadline => Verdict::Error,
    }
}

fn in_words<T>(waited: &Waited<T>, transcript: &Transcript) -> String {
    match (waited, &transcript.end) {
        (Waited::Not(why), _) => why.to_string(),
        (_, Some(StreamEnd::Server)) => "the server ended the stream".to_owned(),
        (_, Some(StreamEnd::Client)) => "the client hung up".to_owned(),
        (_, Some(StreamEnd::Dropped(why))) => format!("the connection ended without a close: {why}"),
        (_, Some(StreamEnd::Broken(why))) => format!("what came cannot be read: {why}"),
        (_, None) => match transcript.violations.first() {
            Some(violation) => violation.clone(),
            None => "the stream was not opened".to_owned(),
        },
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("/exec?command=a&stdout=true&stdin=1", "v4.channel.k8s.io", &["error", "stdin", "stdout"])]
    #[case("/exec?stdout=true&stderr=true&tty=true", "v4.channel.k8s.io", &["error", "stdout", "resize"])]
    #[case("/exec?stdout=true&tty=true", "v2.channel.k8s.io", &["error", "stdout"])]
    fn streams_are_those_that_the_parameters_ask_for(
        #[case] target: &str,
        #[case] protocol: &str,
        #[case] names: &[&str],
    ) {
        assert_eq!(asked_for(target, protocol), names);
    }

    #[test]
    fn noise_holds_every_value_and_is_the_same_however_it_is_cut() {
        let source = Source::Noise(100_000);
        let whole = source.piece(0, 100_000);
        assert!((0..=255).eq(whole[..256].iter().map(|byte| u32::from(*byte))));
        assert_eq!([source.piece(0, 777), source.piece(777, 100_000)].concat(), whole);
    }
}
