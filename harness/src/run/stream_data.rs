//! The data of streams: bytes to send, channels to open, and what a step waits for.

use kubeproof_cases::case::Arrival;
use serde_json::{Value, json};

use crate::exchange::{Frame, Transcript, shorten};
use crate::values::{Undefined, Values};
use crate::verdict::{matches, text_matches};

/// Bytes to send, generated on demand.
pub(super) enum Source {
    Bytes(Vec<u8>),
    Noise(usize),
}

impl Source {
    pub(super) fn size(&self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.len(),
            Self::Noise(size) => *size,
        }
    }

    pub(super) fn piece(&self, from: usize, to: usize) -> Vec<u8> {
        match self {
            Self::Bytes(bytes) => bytes.get(from..to).unwrap_or_default().to_vec(),
            Self::Noise(_) => (from..to).map(noise).collect(),
        }
    }
}

/// Returns a byte of a fixed sequence: all values in order, then a mix without short repetitions.
pub(super) fn noise(at: usize) -> u8 {
    if at < 256 {
        return u8::try_from(at).unwrap_or_default();
    }
    let mixed = (at as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed.to_be_bytes()[0]
}

/// Returns the channels that the query parameters request, in the order of other clients.
pub(super) fn asked_for(target: &str, protocol: &str) -> Vec<String> {
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

pub(super) fn port_name(kind: &str, index: usize) -> String {
    if index == 0 { kind.to_owned() } else { format!("{kind}{index}") }
}

/// Reports whether the awaited data arrived.
pub(super) fn arrived(
    until: &Arrival,
    transcript: &Transcript,
    taken: &mut usize,
    values: &Values,
) -> Result<bool, Undefined> {
    let received =
        |channel: &str| transcript.channels.get(channel).map(|channel| &channel.received);
    match until {
        Arrival::Text { channel, text } => match received(channel) {
            Some(flow) => text_matches(text, &flow.text(), values),
            None => Ok(false),
        },
        Arrival::Bytes { channel, bytes } => {
            Ok(received(channel).is_some_and(|flow| flow.size >= *bytes))
        }
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

/// Returns what arrived instead, for reports.
pub(super) fn seen(until: &Arrival, transcript: &Transcript) -> Value {
    match until {
        Arrival::Text { channel, .. }
        | Arrival::Bytes { channel, .. }
        | Arrival::End { channel } => {
            let flow = transcript.channels.get(channel).map(|channel| &channel.received);
            flow.map_or(
                Value::Null,
                |flow| json!({channel: {"size": flow.size, "text": shorten(&flow.text())}}),
            )
        }
        Arrival::Frame(_) => {
            let last = transcript.frames.iter().rev().filter(|frame| frame.from_server).take(3);
            last.map(Frame::value).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(
        "/exec?command=a&stdout=true&stdin=1",
        "v4.channel.k8s.io",
        &["error", "stdin", "stdout"]
    )]
    #[case(
        "/exec?stdout=true&stderr=true&tty=true",
        "v4.channel.k8s.io",
        &["error", "stdout", "resize"]
    )]
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
