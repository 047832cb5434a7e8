//! Streams, and the steps that send on them and read them.

use std::ops::Range;

use super::check::Judged;
use super::scope::Kind;
use super::{Lowering, first_line};
use crate::case::Request;
use crate::raw_stream::{RawCreate, RawFinish, RawFrame, RawReceive, RawSend, RawStream, TokenPlace};
use crate::stream::{
    Arrival, Carrier, Creation, Finish, FrameHead, Outbound, PROTOCOL_SETS, Payload, Protocol, Receiving,
    Sending, Stream, StreamKind, TUNNEL, protocol,
};
use crate::syntax::Located;
use crate::template::{Part, Template};

/// The most bytes of a message, unless a step says otherwise.
const PIECES: u32 = 32 << 10;

/// More than any case has to send.
const MAX_NOISE: u32 = 64 << 20;

/// What is known of a stream while a file is read.
#[derive(Clone, Debug)]
pub(super) struct Shape {
    channels: Vec<String>,
    /// Whatever is negotiated, channels are SPDY streams.
    spdy: bool,
    /// Whatever is negotiated, frames are those of WebSocket.
    websocket: bool,
    /// Whatever is negotiated, one side of a channel can be ended.
    half_closes: bool,
}

impl Lowering<'_> {
    /// The protocols that a case names, sets resolved.
    pub(super) fn protocols(&mut self, raw: &Located<Vec<Located<String>>>) -> Vec<Protocol> {
        if raw.value.is_empty() {
            self.error(&raw.place, "empty", "`protocols` is an empty list");
        }
        let mut all: Vec<Protocol> = Vec::new();
        for name in &raw.value {
            let set = PROTOCOL_SETS.iter().find(|(set, _)| *set == name.value);
            let members = set.map_or_else(|| vec![name.value.as_str()], |(_, members)| members.to_vec());
            for member in members {
                match protocol(member) {
                    Some(found) if all.contains(&found) => {
                        self.error(&name.place, "duplicate", format!("`{member}` is named twice"));
                    }
                    Some(found) => all.push(found),
                    None => {
                        let sets = PROTOCOL_SETS.iter().map(|(set, _)| *set);
                        let members = PROTOCOL_SETS.iter().flat_map(|(_, members)| *members).copied();
                        self.error(
                            &name.place,
                            "unknown-protocol",
                            format!("no stream has the protocol `{member}`"),
                        )
                        .suggest_from(member, sets.chain(members));
                    }
                }
            }
        }
        if self.subject.is_some() {
            self.error(&raw.place, "one-of", "a case runs on subjects or over protocols, not both")
                .set_help("name the protocol in the step: `over: websocket`, `protocols: [..]`");
        }
        all
    }

    pub(super) fn stream(&mut self, raw: &RawStream, place: &Range<usize>) -> Stream {
        let path = self.template(&raw.path);
        self.path_is_absolute(&raw.path, &path);
        self.is_served(&path, &raw.path.place);
        self.has_identity(raw.identity, place);
        let query = self.query(raw.query.as_ref());
        let headers = raw.headers.as_ref().map(|headers| self.pairs(&headers.0)).unwrap_or_default();
        let offers: Option<Vec<Template>> =
            raw.protocols.as_ref().map(|names| names.iter().map(|name| self.template(name)).collect());
        if raw.over.is_none() && self.protocols.is_empty() {
            self.error(place, "missing-key", "nothing says what this stream is carried over")
                .set_help("add `over: websocket` or `over: spdy`, or `protocols: [command]` to the case");
        }
        let ports = self.ports(raw, place);
        let shape = self.shape(raw, offers.as_deref(), ports.len());
        for name in raw.create.iter().flatten() {
            if !shape.channels.contains(&name.value) {
                self.unknown_channel(name, &shape.channels.clone());
            }
        }
        if raw.create.is_some() && !shape.spdy {
            self.error(place, "unfit-protocol", "`create` makes SPDY streams, and this may be none")
                .set_help("run the case over SPDY protocols alone, or say `over: spdy`");
        }
        self.step_id(&raw.id, Kind::Stream { open: true });
        self.streams.insert(raw.id.value.clone(), shape);
        let request = Request {
            id: raw.id.value.clone(),
            method: raw.method.as_ref().map(|method| method.value.clone()).unwrap_or_default(),
            path,
            query,
            headers,
            content_type: None,
            accept: None,
            body: None,
            identity: raw.identity,
            exact: true,
            capture: Vec::new(),
            expect: self.checks(&raw.expect, Judged::Answer),
            span: self.source.span(place.start),
        };
        // The step itself checks that the stream opens.
        self.checks += 1;
        self.judges_all(&raw.id.place);
        Stream {
            request,
            kind: raw.kind,
            over: raw.over,
            offers,
            ports,
            create: raw.create.as_ref().map(|names| names.iter().map(|name| name.value.clone()).collect()),
            token_in_protocols: raw.token == TokenPlace::Protocols,
        }
    }

    fn ports(&mut self, raw: &RawStream, place: &Range<usize>) -> Vec<u16> {
        let ports = raw.ports.as_ref().map_or(&[][..], |ports| &ports.value);
        if let Some(given) = &raw.ports
            && raw.kind != StreamKind::Ports
        {
            self.error(&first_line(&given.place), "one-of", "only a stream of `kind: ports` has `ports`");
        }
        if raw.kind == StreamKind::Ports && raw.ports.is_none() {
            self.error(place, "missing-key", "a stream of `kind: ports` names its `ports`")
                .set_help("`ports: []` forwards none at first");
        }
        ports.iter().map(|port| port.value).collect()
    }

    fn shape(&self, raw: &RawStream, offers: Option<&[Template]>, ports: usize) -> Shape {
        let own = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let channels = match raw.kind {
            StreamKind::Command => own(&["stdin", "stdout", "stderr", "error", "resize"]),
            StreamKind::Plain => own(&["data"]),
            StreamKind::Ports => (0..ports)
                .flat_map(|n| match n {
                    0 => own(&["data", "error"]),
                    n => vec![format!("data{n}"), format!("error{n}")],
                })
                .collect(),
        };
        let tunnelled = offers.is_some_and(|offers| {
            offers.iter().any(|offer| matches!(offer.parts.as_slice(), [Part::Text(name)] if name == TUNNEL))
        });
        match raw.over {
            Some(Carrier::Spdy) => Shape { channels, spdy: true, websocket: false, half_closes: true },
            Some(Carrier::Websocket) => {
                Shape { channels, spdy: tunnelled, websocket: true, half_closes: true }
            }
            None => Shape {
                channels,
                spdy: self.protocols.iter().all(Protocol::is_spdy),
                websocket: self.protocols.iter().all(|protocol| protocol.over == Carrier::Websocket),
                half_closes: self.protocols.iter().all(Protocol::half_closes),
            },
        }
    }

    pub(super) fn create(&mut self, raw: &RawCreate, place: &Range<usize>) -> Creation {
        let shape = self.open_stream(&raw.stream, false);
        if shape.as_ref().is_some_and(|shape| !shape.spdy) {
            self.error(place, "unfit-protocol", "`create` makes a SPDY stream, and this may be none")
                .set_help("run the case over SPDY protocols alone, or say `over: spdy`");
        }
        let name = &raw.channel;
        let well_formed = name.value.starts_with(|c: char| c.is_ascii_lowercase())
            && name.value.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
        if !well_formed {
            self.error(
                &name.place,
                "malformed-id",
                format!("`{}` cannot be the name of a channel", name.value),
            )
            .set_help("expected lower-case letters and digits, as `data2`");
        }
        if let Some(shape) = self.streams.get_mut(&raw.stream.value)
            && !shape.channels.contains(&name.value)
        {
            shape.channels.push(name.value.clone());
        }
        Creation {
            stream: raw.stream.value.clone(),
            channel: name.value.clone(),
            headers: raw.headers.as_ref().map(|headers| self.pairs(&headers.0)).unwrap_or_default(),
            end: raw.end,
            number: raw.number,
            span: self.source.span(place.start),
        }
    }

    pub(super) fn send(&mut self, raw: &RawSend, place: &Range<usize>) -> Option<Sending> {
        let shape = self.open_stream(&raw.stream, false);
        if let (Some(channel), Some(shape)) = (&raw.channel, &shape) {
            let is_number = channel.value.parse::<u32>().is_ok();
            if !is_number && !shape.channels.contains(&channel.value) {
                self.unknown_channel(channel, &shape.channels);
            }
        }
        let fits = |lowering: &mut Self, holds: fn(&Shape) -> bool, message: &str, help: &str| {
            if shape.as_ref().is_some_and(|shape| !holds(shape)) {
                lowering.error(place, "unfit-protocol", message).set_help(help);
            }
        };
        let payload = self.payload(raw, place);
        let channel = || raw.channel.as_ref().map(|channel| channel.value.clone());
        let others = [
            raw.resize.is_some(),
            raw.frame.is_some(),
            raw.ping.is_some(),
            raw.reset.is_some(),
            raw.raw.is_some(),
        ];
        let what = match others.iter().filter(|given| **given).count() {
            0 => {
                let Some(channel) = channel() else {
                    self.error(
                        place,
                        "missing-key",
                        "data are sent on a channel: the key `channel` is missing",
                    );
                    return None;
                };
                if payload.is_none() && !raw.end {
                    self.error(place, "never-runs", "nothing is sent: neither data nor `end: true`");
                }
                if raw.end {
                    fits(
                        self,
                        |shape| shape.half_closes,
                        "not all of the case's protocols can end a channel",
                        "name those that can: `protocols: [command-half-close]`",
                    );
                }
                let pieces = raw.pieces.as_ref().map_or(PIECES, |pieces| pieces.value);
                if let Some(pieces) = raw.pieces.as_ref().filter(|pieces| pieces.value == 0) {
                    self.error(&pieces.place, "out-of-range", "a message of no bytes brings nothing forward");
                }
                let pieces = usize::try_from(pieces.max(1)).unwrap_or(usize::MAX);
                let payload = payload.unwrap_or_else(|| Payload::Bytes(Vec::new()));
                // An end that stands alone sends no message before it.
                let alone = matches!(&payload, Payload::Bytes(bytes) if bytes.is_empty()) && raw.end;
                Outbound::Data {
                    channel,
                    payload,
                    pieces: if alone { usize::MAX } else { pieces },
                    end: raw.end,
                }
            }
            1 => {
                let websocket: fn(&Shape) -> bool = |shape| shape.websocket && !shape.spdy;
                if let Some(size) = raw.resize {
                    Outbound::Resize { width: size.width, height: size.height }
                } else if let Some(frame) = &raw.frame {
                    fits(
                        self,
                        websocket,
                        "`frame` is a frame of WebSocket, and this may be none",
                        "run the case over WebSocket protocols alone, or say `over: websocket`",
                    );
                    let payload = payload.unwrap_or_else(|| Payload::Bytes(Vec::new()));
                    Outbound::Frame { head: self.frame_head(&frame.value), payload }
                } else if let Some(ping) = &raw.ping {
                    if ping.value.parse::<u32>().is_err() {
                        fits(self, websocket, "the payload of a SPDY ping is a number", "as `ping: 1`");
                    }
                    Outbound::Ping(ping.value.clone())
                } else if let Some(status) = raw.reset {
                    fits(
                        self,
                        |shape| shape.spdy,
                        "`reset` is a frame of SPDY, and this may be none",
                        "run the case over SPDY protocols alone, or say `over: spdy`",
                    );
                    let Some(channel) = channel() else {
                        self.error(place, "missing-key", "`reset` says which `channel`");
                        return None;
                    };
                    Outbound::Reset { channel, status }
                } else {
                    Outbound::Raw(raw.raw.as_ref().map(|raw| self.hex(raw)).unwrap_or_default())
                }
            }
            _ => {
                self.error(
                    place,
                    "one-of",
                    "`send` takes one of data, `resize`, `frame`, `ping`, `reset` and `raw`",
                );
                return None;
            }
        };
        Some(Sending { stream: raw.stream.value.clone(), what, span: self.source.span(place.start) })
    }

    fn payload(&mut self, raw: &RawSend, place: &Range<usize>) -> Option<Payload> {
        let given = [raw.text.is_some(), raw.hex.is_some(), raw.noise.is_some()];
        if given.into_iter().filter(|given| *given).count() > 1 {
            self.error(place, "one-of", "data are one of `text`, `hex` and `noise`");
        }
        if let Some(text) = &raw.text {
            return Some(Payload::Text(self.template(text)));
        }
        if let Some(hex) = &raw.hex {
            return Some(Payload::Bytes(self.hex(hex)));
        }
        let noise = raw.noise.as_ref()?;
        if noise.value > MAX_NOISE {
            self.error(&noise.place, "out-of-range", format!("more than {MAX_NOISE} bytes"));
        }
        usize::try_from(noise.value).ok().map(Payload::Noise)
    }

    fn hex(&mut self, text: &Located<String>) -> Vec<u8> {
        let digits: Vec<u8> = text.value.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
        let pair = |pair: &[u8]| {
            let digits = std::str::from_utf8(pair).ok().filter(|digits| digits.len() == 2)?;
            u8::from_str_radix(digits, 16).ok()
        };
        let bytes: Option<Vec<u8>> = digits.chunks(2).map(pair).collect();
        if bytes.is_none() {
            self.error(&text.place, "malformed-bytes", "expected pairs of hexadecimal digits, as `00 ff 0a`");
        }
        bytes.unwrap_or_default()
    }

    fn frame_head(&mut self, raw: &RawFrame) -> FrameHead {
        const NAMES: [(&str, u8); 6] =
            [("continuation", 0), ("text", 1), ("binary", 2), ("close", 8), ("ping", 9), ("pong", 10)];
        let name = raw.opcode.value.as_str();
        let named = NAMES.iter().find(|(known, _)| *known == name).map(|(_, opcode)| *opcode);
        let opcode = named.or_else(|| name.parse().ok().filter(|opcode| *opcode < 16));
        if opcode.is_none() {
            self.error(&raw.opcode.place, "unknown-value", format!("`{name}` is no opcode"))
                .suggest_from(name, NAMES.iter().map(|(known, _)| *known));
        }
        if let Some(reserved) = raw.reserved.as_ref().filter(|reserved| reserved.value > 7) {
            self.error(&reserved.place, "out-of-range", "three reserved bits hold 0 to 7");
        }
        FrameHead {
            opcode: opcode.unwrap_or_default(),
            fin: raw.fin.unwrap_or(true),
            masked: raw.masked.unwrap_or(true),
            reserved: raw.reserved.as_ref().map_or(0, |reserved| reserved.value),
            claims: raw.claims,
        }
    }

    pub(super) fn receive(&mut self, raw: &RawReceive, place: &Range<usize>) -> Option<Receiving> {
        let shape = self.open_stream(&raw.stream, false);
        self.implied_check(&raw.id);
        if let (Some(channel), Some(shape)) = (&raw.channel, &shape)
            && !shape.channels.contains(&channel.value)
        {
            self.unknown_channel(channel, &shape.channels);
        }
        let channel = raw.channel.as_ref().map(|channel| channel.value.clone());
        let until = match (channel, &raw.text, &raw.bytes, &raw.ended, &raw.frame) {
            (Some(channel), Some(text), None, None, None) => {
                Arrival::Text { channel, text: self.regex(text) }
            }
            (Some(channel), None, Some(bytes), None, None) => {
                if bytes.value == 0 {
                    self.error(&bytes.place, "cannot-fail", "no bytes have always come");
                }
                Arrival::Bytes { channel, bytes: bytes.value }
            }
            (Some(channel), None, None, Some(Located { value: true, .. }), None) => Arrival::End { channel },
            (None, None, None, None, Some(frame)) => Arrival::Frame(self.pattern(frame)?),
            _ => {
                self.error(
                    place,
                    "one-of",
                    "`receive` takes a `channel` with one of `text`, `bytes` and `ended: true`, or a `frame`",
                );
                return None;
            }
        };
        Some(Receiving {
            stream: raw.stream.value.clone(),
            id: raw.id.value.clone(),
            until,
            span: self.source.span(place.start),
        })
    }

    pub(super) fn finish(&mut self, raw: &RawFinish, place: &Range<usize>) -> Finish {
        self.open_stream(&raw.stream, true);
        let default =
            Located { value: format!("{}-finishes", raw.stream.value), place: raw.stream.place.clone() };
        let id = raw.id.as_ref().unwrap_or(&default);
        self.implied_check(id);
        Finish {
            stream: raw.stream.value.clone(),
            id: id.value.clone(),
            dropped: raw.dropped,
            expect: self.checks(&raw.expect, Judged::Earlier),
            span: self.source.span(place.start),
        }
    }

    /// What an expression can read of a stream.
    pub(super) fn stream_members(&self, id: &str) -> Vec<String> {
        let own = ["body", "close", "ended", "frames", "headers", "protocol", "status", "text", "violations"];
        let channels = self.streams.get(id).map(|shape| shape.channels.clone()).unwrap_or_default();
        own.into_iter().map(str::to_owned).chain(channels).collect()
    }

    fn unknown_channel(&mut self, name: &Located<String>, known: &[String]) {
        self.error(&name.place, "unknown-name", format!("the stream has no channel `{}`", name.value))
            .suggest_from(&name.value, known.iter().map(String::as_str));
    }

    /// A stream that is used, for the last time or not.
    pub(super) fn open_stream(&mut self, id: &Located<String>, last: bool) -> Option<Shape> {
        let streams: Vec<String> = self
            .scopes
            .names()
            .filter(|name| matches!(name.kind, Kind::Stream { .. }))
            .map(|name| name.text.clone())
            .collect();
        match self.scopes.get_mut(&id.value).map(|name| &mut name.kind) {
            Some(Kind::Stream { open }) => {
                let was_open = *open;
                *open = was_open && !last;
                if !was_open {
                    self.error(
                        &id.place,
                        "never-runs",
                        format!("the stream `{}` has ended before", id.value),
                    );
                }
            }
            Some(_) => {
                self.error(&id.place, "unknown-name", format!("`{}` is not a stream", id.value))
                    .suggest_from(&id.value, streams.iter().map(String::as_str));
            }
            None => {
                self.error(
                    &id.place,
                    "unknown-name",
                    format!("no earlier stream has the name `{}`", id.value),
                )
                .suggest_from(&id.value, streams.iter().map(String::as_str));
            }
        }
        self.streams.get(&id.value).cloned()
    }
}
