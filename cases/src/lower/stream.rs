//! Streams, and the steps that send on them and read them.

use std::collections::BTreeSet;
use std::ops::Range;

use super::check::Judged;
use super::scope::Kind;
use super::{Lowering, first_line};
use crate::case::{Arrival, Finish, Receiving, Request, Stream};
use crate::protocol::{Carrier, PROTOCOL_SETS, Protocol, StreamKind, TUNNEL, protocol};
use crate::raw::{RawFinish, RawReceive, RawStream, TokenPlace};
use crate::template::{Part, Template};
use crate::yaml::Located;

/// Members of streams in expressions, beside the channels.
pub(crate) const MEMBERS: [&str; 9] =
    ["body", "close", "ended", "frames", "headers", "protocol", "status", "text", "violations"];

/// The properties of a stream that steps depend on.
#[derive(Clone, Debug)]
pub(super) struct Shape {
    pub(super) channels: Vec<String>,
    /// All possible protocols have SPDY streams.
    pub(super) spdy: bool,
    /// All possible protocols have WebSocket frames.
    pub(super) websocket: bool,
    /// All possible protocols can end one side of a channel.
    pub(super) half_closes: bool,
    /// The carrier, if the step names it.
    pub(super) over: Option<Carrier>,
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
            let members =
                set.map_or_else(|| vec![name.value.as_str()], |(_, members)| members.to_vec());
            for member in members {
                match protocol(member) {
                    Some(found) if all.contains(&found) => {
                        self.error(&name.place, "duplicate", format!("`{member}` is named twice"));
                    }
                    Some(found) => all.push(found),
                    None => {
                        let sets = PROTOCOL_SETS.iter().map(|(set, _)| *set);
                        let members =
                            PROTOCOL_SETS.iter().flat_map(|(_, members)| *members).copied();
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

    #[expect(clippy::too_many_lines, reason = "one check for each key of the step")]
    pub(super) fn stream(&mut self, raw: &RawStream, place: &Range<usize>) -> Stream {
        let path = self.template(&raw.path);
        self.path_is_absolute(&raw.path, &path);
        self.is_served(&path, &raw.path.place);
        self.has_identity(raw.identity, place);
        let query = self.query(raw.query.as_ref());
        let headers =
            raw.headers.as_ref().map(|headers| self.pairs(&headers.0)).unwrap_or_default();
        let offers: Option<Vec<Template>> = raw
            .protocols
            .as_ref()
            .map(|names| names.iter().map(|name| self.template(name)).collect());
        if raw.over.is_none() && self.protocols.is_empty() {
            self.error(place, "missing-key", "this stream has no carrier").set_help(
                "add `over: websocket` or `over: spdy`, or `protocols: [command]` to the case",
            );
        }
        if raw.over == Some(Carrier::Http) && (raw.kind != StreamKind::Plain || offers.is_some()) {
            self.error(place, "unfit-protocol", "a stream over HTTP has one channel, `data`")
                .set_help("add `kind: plain`, and remove `protocols`");
        }
        let ports = self.ports(raw, place);
        let shape = self.shape(raw, offers.as_deref(), ports.len());
        for name in raw.open.iter().flatten() {
            if !shape.channels.contains(&name.value) {
                self.unknown_channel(name, &shape.channels.clone());
            }
        }
        if raw.open.is_some() && !shape.spdy {
            self.error(
                place,
                "unfit-protocol",
                "`open` is for SPDY streams, and this stream may not be SPDY",
            )
            .set_help("run the case over SPDY protocols only, or add `over: spdy` to the stream");
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
            expect: self.checks(&raw.expect, Judged::Response),
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
            open: raw
                .open
                .as_ref()
                .map(|names| names.iter().map(|name| name.value.clone()).collect()),
            token_in_protocols: raw.token == TokenPlace::Protocols,
        }
    }

    fn ports(&mut self, raw: &RawStream, place: &Range<usize>) -> Vec<u16> {
        let ports = raw.ports.as_ref().map_or(&[][..], |ports| &ports.value);
        if let Some(given) = &raw.ports
            && raw.kind != StreamKind::Ports
        {
            self.error(
                &first_line(&given.place),
                "one-of",
                "only a stream of `kind: ports` has `ports`",
            );
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
            offers
                .iter()
                .any(|offer| matches!(offer.parts.as_slice(), [Part::Text(name)] if name == TUNNEL))
        });
        let over = raw.over;
        match over {
            Some(Carrier::Spdy) => {
                Shape { channels, spdy: true, websocket: false, half_closes: true, over }
            }
            Some(Carrier::Websocket) => {
                Shape { channels, spdy: tunnelled, websocket: true, half_closes: true, over }
            }
            Some(Carrier::Http) => {
                Shape { channels, spdy: false, websocket: false, half_closes: false, over }
            }
            None => Shape {
                channels,
                spdy: self.protocols.iter().all(Protocol::is_spdy),
                websocket: self
                    .protocols
                    .iter()
                    .all(|protocol| protocol.over == Carrier::Websocket),
                half_closes: self.protocols.iter().all(Protocol::half_closes),
                over,
            },
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
                    self.error(&bytes.place, "cannot-fail", "zero bytes have always arrived");
                }
                Arrival::Bytes { channel, bytes: bytes.value }
            }
            (Some(channel), None, None, Some(Located { value: true, .. }), None) => {
                Arrival::End { channel }
            }
            (None, None, None, None, Some(frame)) => Arrival::Frame(self.pattern(frame)?),
            _ => {
                self.error(
                    place,
                    "one-of",
                    "`receive` takes a `channel` with one of `text`, `bytes` and `ended: true`, \
                     or a `frame`",
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
        let default = Located {
            value: format!("{}-finishes", raw.stream.value),
            place: raw.stream.place.clone(),
        };
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

    /// The members of a stream in expressions.
    pub(super) fn stream_members(&self, id: &str) -> Vec<String> {
        let channels = self.streams.get(id).map(|shape| shape.channels.clone()).unwrap_or_default();
        MEMBERS.into_iter().map(str::to_owned).chain(channels).collect()
    }

    pub(super) fn unknown_channel(&mut self, name: &Located<String>, known: &[String]) {
        self.error(
            &name.place,
            "unknown-name",
            format!("the stream has no channel `{}`", name.value),
        )
        .suggest_from(&name.value, known.iter().map(String::as_str));
    }

    /// A stream that is used, for the last time or not.
    pub(super) fn open_stream(&mut self, id: &Located<String>, last: bool) -> Option<Shape> {
        self.is_unconditional(&id.value, &id.place, &BTreeSet::new());
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
