//! How WebSocket messages carry channels: with a channel byte, with a digit and base64, or as plain
//! data.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use kubeproof_cases::protocol::{StreamKind, TUNNEL};

use crate::exchange::{FrameError, Transcript};

/// The channel byte that closes another channel, since v5.
const CLOSE: u8 = 255;

/// The content of messages.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Framing {
    /// A channel byte, then bytes.
    Channels {
        kind: StreamKind,
        closes: bool,
    },
    /// A digit, then base64.
    Base64Channels {
        kind: StreamKind,
    },
    Plain,
    Base64,
    /// SPDY with arbitrary boundaries.
    Tunnel,
}

impl Framing {
    /// Returns the framing of a negotiated protocol.
    pub(super) fn of(kind: StreamKind, protocol: &str) -> Self {
        match (kind, protocol) {
            (_, TUNNEL) => Self::Tunnel,
            (StreamKind::Plain, "base64.binary.k8s.io") => Self::Base64,
            (StreamKind::Plain, _) => Self::Plain,
            (_, name) if name.contains("base64.") => Self::Base64Channels { kind },
            (_, name) => Self::Channels { kind, closes: name.starts_with("v5.") },
        }
    }

    pub(super) fn is_text(self) -> bool {
        matches!(self, Self::Base64Channels { .. } | Self::Base64)
    }

    /// Reports whether one side of a channel can be closed.
    pub(super) fn closes(self) -> bool {
        matches!(self, Self::Channels { closes: true, .. })
    }

    /// Encodes data of a channel.
    pub(super) fn encode(self, channel: &str, bytes: &[u8]) -> Result<Vec<u8>, FrameError> {
        match self {
            Self::Channels { kind, .. } => Ok([&[number(kind, channel)?], bytes].concat()),
            Self::Base64Channels { kind } => {
                let number = number(kind, channel)?;
                if number > 9 {
                    return Err(FrameError::ChannelWithoutDigit(channel.to_owned()));
                }
                Ok(format!("{number}{}", BASE64_STANDARD.encode(bytes)).into_bytes())
            }
            Self::Base64 => Ok(BASE64_STANDARD.encode(bytes).into_bytes()),
            Self::Plain | Self::Tunnel => Ok(bytes.to_vec()),
        }
    }

    /// Encodes the end of a channel.
    pub(super) fn end(self, channel: &str) -> Result<Vec<u8>, FrameError> {
        match self {
            Self::Channels { kind, closes: true } => Ok(vec![CLOSE, number(kind, channel)?]),
            _ => Err(FrameError::NoHalfClose),
        }
    }

    /// Returns the channel of a payload, for the transcript.
    pub(super) fn channel(self, payload: &[u8]) -> Option<String> {
        let first = *payload.first()?;
        match self {
            Self::Channels { kind, .. } => Some(name(kind, first)),
            Self::Base64Channels { kind } => Some(name(kind, first.wrapping_sub(b'0'))),
            Self::Plain | Self::Base64 => Some("data".to_owned()),
            Self::Tunnel => None,
        }
    }

    /// Records a message of the server.
    pub(super) fn receive(self, message: &[u8], ports: &[u16], transcript: &mut Transcript) {
        let (kind, number, bytes) = match (self, message) {
            (Self::Plain | Self::Tunnel, bytes) => {
                transcript.channel("data").received.push(bytes);
                return;
            }
            (Self::Base64, text) => {
                match BASE64_STANDARD.decode(text) {
                    Ok(bytes) => transcript.channel("data").received.push(&bytes),
                    Err(error) => transcript.violation(format!("a message is not base64: {error}")),
                }
                return;
            }
            (Self::Channels { kind, closes }, [CLOSE, closed]) if closes => {
                transcript.channel(&name(kind, *closed)).ended = true;
                return;
            }
            (Self::Channels { kind, .. }, [number, bytes @ ..]) => (kind, *number, bytes.to_vec()),
            (Self::Base64Channels { kind }, [digit @ b'0'..=b'9', text @ ..]) => {
                match BASE64_STANDARD.decode(text) {
                    Ok(bytes) => (kind, digit - b'0', bytes),
                    Err(error) => {
                        transcript.violation(format!("a message is not base64: {error}"));
                        return;
                    }
                }
            }
            _ => {
                transcript.violation("a message does not begin with its channel");
                return;
            }
        };
        receive_on_channel(kind, number, &bytes, ports, transcript);
    }
}

fn receive_on_channel(
    kind: StreamKind,
    number: u8,
    bytes: &[u8],
    ports: &[u16],
    transcript: &mut Transcript,
) {
    let name = name(kind, number);
    let known = match kind {
        StreamKind::Command => matches!(number, 1..=3),
        StreamKind::Ports | StreamKind::Plain => usize::from(number) < 2 * ports.len(),
    };
    if !known {
        transcript.violation(format!(
            "a message arrives on channel {number}, which the server does not write"
        ));
        // Data of invalid channels is dropped, so that memory stays bounded.
        return;
    }
    if transcript.channels.get(&name).is_some_and(|channel| channel.ended) {
        transcript.violation(format!("a message arrives on channel {number} after its end"));
    }
    if kind != StreamKind::Ports || transcript.channel(&name).port.is_some() {
        transcript.channel(&name).received.push(bytes);
        return;
    }
    let Some((port, rest)) = bytes.split_first_chunk::<2>() else {
        transcript.violation(format!("channel {number} does not begin with its port"));
        return;
    };
    let port = u16::from_le_bytes(*port);
    transcript.channel(&name).port = Some(port);
    if ports.get(usize::from(number) / 2).is_some_and(|requested| *requested != port) {
        transcript.violation(format!(
            "channel {number} begins with the port {port}, not the requested one"
        ));
    }
    if !rest.is_empty() {
        transcript.channel(&name).received.push(rest);
    }
}

fn number(kind: StreamKind, channel: &str) -> Result<u8, FrameError> {
    let unknown = || FrameError::UnknownChannel(channel.to_owned());
    if let Ok(number) = channel.parse() {
        return Ok(number);
    }
    match (kind, channel) {
        (StreamKind::Command, "stdin") => Ok(0),
        (StreamKind::Command, "stdout") => Ok(1),
        (StreamKind::Command, "stderr") => Ok(2),
        (StreamKind::Command, "error") => Ok(3),
        (StreamKind::Command, "resize") => Ok(4),
        (StreamKind::Ports, channel) => {
            let (index, odd) = match channel.strip_prefix("error") {
                Some(index) => (index, 1),
                None => (channel.strip_prefix("data").ok_or_else(unknown)?, 0),
            };
            let index: u8 =
                if index.is_empty() { 0 } else { index.parse().map_err(|_| unknown())? };
            index.checked_mul(2).and_then(|even| even.checked_add(odd)).ok_or_else(unknown)
        }
        _ => Err(unknown()),
    }
}

fn name(kind: StreamKind, number: u8) -> String {
    match (kind, number) {
        (StreamKind::Command, 0) => "stdin".to_owned(),
        (StreamKind::Command, 1) => "stdout".to_owned(),
        (StreamKind::Command, 2) => "stderr".to_owned(),
        (StreamKind::Command, 3) => "error".to_owned(),
        (StreamKind::Command, 4) => "resize".to_owned(),
        (StreamKind::Ports, number) => {
            let index = if number < 2 { String::new() } else { (number / 2).to_string() };
            format!("{}{index}", if number % 2 == 0 { "data" } else { "error" })
        }
        (_, number) => number.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn received(framing: Framing, ports: &[u16], messages: &[&[u8]]) -> Transcript {
        let mut transcript = Transcript::default();
        for message in messages {
            framing.receive(message, ports, &mut transcript);
        }
        transcript
    }

    /// Recorded from a real server for `echo hi`.
    #[rstest]
    #[case(
        "v5.channel.k8s.io",
        ["\x01", "\x01hi\n", "\x03{\"metadata\":{},\"status\":\"Success\"}"]
    )]
    #[case("v4.base64.channel.k8s.io", ["1", "1aGkK", "3eyJzdGF0dXMiOiJTdWNjZXNzIn0="])]
    fn a_recorded_command_is_parsed(#[case] protocol: &str, #[case] messages: [&str; 3]) {
        let messages = messages.map(str::as_bytes);
        let seen = received(Framing::of(StreamKind::Command, protocol), &[], &messages);
        assert_eq!(seen.channels["stdout"].received.text(), "hi\n");
        assert_eq!(seen.channels["stdout"].received.messages, 2);
        assert!(seen.channels["error"].received.text().contains("Success"));
        assert!(seen.violations.is_empty(), "{:?}", seen.violations);
    }

    /// Recorded from a real server for the ports 7 and 8080.
    #[test]
    fn recorded_ports_are_parsed() {
        let messages: [&[u8]; 5] = [
            b"\0\x07\0",
            b"\x01\x07\0",
            b"\x02\x90\x1f",
            b"\x03\x90\x1f",
            b"\x02hello from 8080\n",
        ];
        let seen =
            received(Framing::of(StreamKind::Ports, "v4.channel.k8s.io"), &[7, 8080], &messages);
        assert_eq!(seen.channels["data1"].received.text(), "hello from 8080\n");
        assert_eq!(seen.channels["error"].port, Some(7));
        assert!(seen.violations.is_empty(), "{:?}", seen.violations);
    }

    #[rstest]
    #[case::no_channel("v5.channel.k8s.io", b"")]
    #[case::stdin("v5.channel.k8s.io", b"\0x")]
    #[case::unknown("v4.channel.k8s.io", b"\xff\0")]
    #[case::url_alphabet("base64.channel.k8s.io", b"1-_-_")]
    #[case::no_digit("base64.channel.k8s.io", b"\x01aGkK")]
    fn what_no_server_may_send_is_recorded(#[case] protocol: &str, #[case] message: &[u8]) {
        let seen = received(Framing::of(StreamKind::Command, protocol), &[], &[message]);
        assert_eq!(seen.violations.len(), 1, "{:?}", seen.violations);
    }

    #[test]
    fn ports_in_the_wrong_order_of_bytes_are_recorded() {
        let seen = received(
            Framing::of(StreamKind::Ports, "v4.channel.k8s.io"),
            &[8080],
            &[b"\0\x1f\x90"],
        );
        assert_eq!(seen.violations.len(), 1);
    }

    #[test]
    fn the_client_writes_as_recorded() {
        let framing = Framing::of(StreamKind::Command, "v5.channel.k8s.io");
        assert_eq!(framing.encode("stdin", b"hello ").as_deref(), Ok(&b"\0hello "[..]));
        assert_eq!(framing.end("stdin").as_deref(), Ok(&[0xff, 0][..]));
        let base64 = Framing::of(StreamKind::Command, "v4.base64.channel.k8s.io");
        assert_eq!(base64.encode("stdin", b"hello").as_deref(), Ok(&b"0aGVsbG8="[..]));
        assert!(base64.end("stdin").is_err());
        assert_eq!(
            Framing::of(StreamKind::Ports, "").encode("error1", b"").as_deref(),
            Ok(&[3][..])
        );
    }
}
