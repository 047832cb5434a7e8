//! Steps that send on streams.

use std::ops::Range;

use super::Lowering;
use super::stream::Shape;
use crate::case::{Creation, FrameHead, Outbound, Payload, Sending};
use crate::protocol::Carrier;
use crate::raw::{RawFrame, RawOpenStream, RawPing, RawReset, RawSend, RawStep};
use crate::yaml::Located;

/// The most bytes of a message by default.
const PIECES: u32 = 32 << 10;

/// The most bytes of a payload.
const MAX_NOISE: u32 = 64 << 20;

/// The payload of a step: one of its keys at most.
#[derive(Clone, Copy)]
struct RawPayload<'a> {
    text: Option<&'a Located<String>>,
    hex: Option<&'a Located<String>>,
    noise: Option<&'a Located<u32>>,
}

impl Lowering<'_> {
    /// Returns `None` if the action is another one, or wrong.
    pub(super) fn sending(&mut self, raw: &RawStep, place: &Range<usize>) -> Option<Sending> {
        let (stream, what) = if let Some(send) = &raw.send {
            (&send.stream, self.data(send, place))
        } else if let Some(size) = &raw.resize {
            self.open_stream(&size.stream, false);
            (&size.stream, Outbound::Resize { width: size.width, height: size.height })
        } else if let Some(ping) = &raw.ping {
            (&ping.stream, self.ping(ping, place))
        } else if let Some(reset) = &raw.reset {
            (&reset.stream, self.reset(reset, place))
        } else if let Some(frame) = &raw.frame {
            (&frame.stream, self.frame(frame, place))
        } else {
            let bytes = raw.raw.as_ref()?;
            self.open_stream(&bytes.stream, false);
            (&bytes.stream, Outbound::Raw(self.hex(&bytes.hex)))
        };
        let over = self.streams.get(&stream.value).and_then(|shape| shape.over);
        if over == Some(Carrier::Http) {
            self.error(&stream.place, "unfit-protocol", "the body of a response takes no data")
                .set_help("send on a stream over WebSocket or SPDY");
        }
        let span = self.source.span(place.start);
        Some(Sending { stream: stream.value.clone(), what, span })
    }

    fn data(&mut self, raw: &RawSend, place: &Range<usize>) -> Outbound {
        let shape = self.open_stream(&raw.stream, false);
        self.has_channel(&raw.channel, shape.as_ref());
        let RawSend { text, hex, noise, .. } = raw;
        let given = RawPayload { text: text.as_ref(), hex: hex.as_ref(), noise: noise.as_ref() };
        let payload = self.payload(given, place);
        if payload.is_none() && !raw.end {
            self.error(place, "never-runs", "nothing is sent: neither data nor `end: true`");
        }
        if raw.end && shape.is_some_and(|shape| !shape.half_closes) {
            let message = "not all of the case's protocols can end a channel";
            self.error(place, "unfit-protocol", message)
                .set_help("name those that can: `protocols: [command-half-close]`");
        }
        if let Some(pieces) = raw.pieces.as_ref().filter(|pieces| pieces.value == 0) {
            self.error(&pieces.place, "out-of-range", "a message of no bytes carries nothing");
        }
        let pieces = raw.pieces.as_ref().map_or(PIECES, |pieces| pieces.value.max(1));
        let payload = payload.unwrap_or_else(|| Payload::Bytes(Vec::new()));
        // An end without data sends no message before it.
        let alone = matches!(&payload, Payload::Bytes(bytes) if bytes.is_empty()) && raw.end;
        Outbound::Data {
            channel: raw.channel.value.clone(),
            payload,
            pieces: if alone { usize::MAX } else { usize::try_from(pieces).unwrap_or(usize::MAX) },
            end: raw.end,
        }
    }

    fn ping(&mut self, raw: &RawPing, place: &Range<usize>) -> Outbound {
        let shape = self.open_stream(&raw.stream, false);
        let is_number = raw.payload.value.parse::<u32>().is_ok();
        if !is_number && shape.is_some_and(|shape| !is_websocket(&shape)) {
            self.error(place, "unfit-protocol", "the payload of a SPDY ping is a number")
                .set_help("write a number, such as `payload: 1`");
        }
        Outbound::Ping(raw.payload.value.clone())
    }

    fn reset(&mut self, raw: &RawReset, place: &Range<usize>) -> Outbound {
        let shape = self.open_stream(&raw.stream, false);
        self.has_channel(&raw.channel, shape.as_ref());
        if shape.is_some_and(|shape| !shape.spdy) {
            self.error(
                place,
                "unfit-protocol",
                "`reset` is for SPDY, and this stream may not be SPDY",
            )
            .set_help("run the case over SPDY protocols only, or add `over: spdy` to the stream");
        }
        Outbound::Reset { channel: raw.channel.value.clone(), status: raw.status }
    }

    fn frame(&mut self, raw: &RawFrame, place: &Range<usize>) -> Outbound {
        let shape = self.open_stream(&raw.stream, false);
        if shape.is_some_and(|shape| !is_websocket(&shape)) {
            let message = "`frame` is for WebSocket, and this stream may not be WebSocket";
            self.error(place, "unfit-protocol", message).set_help(
                "run the case over WebSocket protocols only, or add `over: websocket` to the \
                 stream",
            );
        }
        let RawFrame { text, hex, noise, .. } = raw;
        let given = RawPayload { text: text.as_ref(), hex: hex.as_ref(), noise: noise.as_ref() };
        let payload = self.payload(given, place).unwrap_or_else(|| Payload::Bytes(Vec::new()));
        Outbound::Frame { head: self.frame_head(raw), payload }
    }

    fn has_channel(&mut self, channel: &Located<String>, shape: Option<&Shape>) {
        let Some(shape) = shape else { return };
        let is_number = channel.value.parse::<u32>().is_ok();
        if !is_number && !shape.channels.contains(&channel.value) {
            self.unknown_channel(channel, &shape.channels);
        }
    }

    fn payload(&mut self, raw: RawPayload<'_>, place: &Range<usize>) -> Option<Payload> {
        let given = [raw.text.is_some(), raw.hex.is_some(), raw.noise.is_some()];
        if given.into_iter().filter(|given| *given).count() > 1 {
            self.error(place, "one-of", "data are one of `text`, `hex` and `noise`");
        }
        if let Some(text) = raw.text {
            return Some(Payload::Text(self.template(text)));
        }
        if let Some(hex) = raw.hex {
            return Some(Payload::Bytes(self.hex(hex)));
        }
        let noise = raw.noise?;
        if noise.value > MAX_NOISE {
            self.error(&noise.place, "out-of-range", format!("more than {MAX_NOISE} bytes"));
        }
        usize::try_from(noise.value).ok().map(Payload::Noise)
    }

    fn hex(&mut self, text: &Located<String>) -> Vec<u8> {
        let digits: Vec<u8> =
            text.value.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
        let pair = |pair: &[u8]| {
            let digits = std::str::from_utf8(pair).ok().filter(|digits| digits.len() == 2)?;
            u8::from_str_radix(digits, 16).ok()
        };
        let bytes: Option<Vec<u8>> = digits.chunks(2).map(pair).collect();
        if bytes.is_none() {
            self.error(
                &text.place,
                "malformed-bytes",
                "expected pairs of hexadecimal digits, as `00 ff 0a`",
            );
        }
        bytes.unwrap_or_default()
    }

    fn frame_head(&mut self, raw: &RawFrame) -> FrameHead {
        const NAMES: [(&str, u8); 6] = [
            ("continuation", 0),
            ("text", 1),
            ("binary", 2),
            ("close", 8),
            ("ping", 9),
            ("pong", 10),
        ];
        let name = raw.opcode.value.as_str();
        let named = NAMES.iter().find(|(known, _)| *known == name).map(|(_, opcode)| *opcode);
        let opcode = named.or_else(|| name.parse().ok().filter(|opcode| *opcode < 16));
        if opcode.is_none() {
            self.error(&raw.opcode.place, "unknown-value", format!("`{name}` is not an opcode"))
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

    pub(super) fn open_spdy_stream(
        &mut self,
        raw: &RawOpenStream,
        place: &Range<usize>,
    ) -> Creation {
        let shape = self.open_stream(&raw.stream, false);
        if shape.as_ref().is_some_and(|shape| !shape.spdy) {
            self.error(
                place,
                "unfit-protocol",
                "`open-stream` is for SPDY, and this stream may not be SPDY",
            )
            .set_help("run the case over SPDY protocols only, or add `over: spdy` to the stream");
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
}

fn is_websocket(shape: &Shape) -> bool {
    shape.websocket && !shape.spdy
}
