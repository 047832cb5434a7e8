//! Properties of the readers that must be true for any input.
//!
//! No input may cause a panic or unbounded memory, and results must not depend on packet
//! boundaries. Tests use random input; the targets in `fuzz/` use coverage-guided input.

use kubeproof_cases::protocol::{Carrier, StreamKind, TUNNEL};
use serde_json::Value;

use crate::json::{self, Kind, Node};
use crate::transport::stream::fuzzing::{Seen, fed};
use crate::transport::watch::fuzzing::documents;

/// The strict reader accepts only what `serde_json` accepts, and spans match the text.
pub fn json(text: &[u8]) {
    let weight = json::weight(text);
    assert!(weight <= 1000 * text.len(), "{weight} for {} bytes", text.len());
    let read = json::read(text);
    let theirs: Result<Value, _> = serde_json::from_slice(text);
    match (read, theirs) {
        (Ok(document), theirs) => {
            spans(text, &document.root, 0);
            let (parsed, duplicate) = json::parse(text).expect("the reader accepts it");
            assert_eq!(duplicate.as_ref(), document.duplicates.first());
            let ours = document.into_value();
            assert_eq!(parsed, ours);
            if let Ok(theirs) = theirs {
                assert_eq!(ours, theirs);
            }
        }
        (Err(fault), theirs) => {
            assert!(fault.at.byte <= text.len() && !fault.message.is_empty(), "{fault}");
            assert!(theirs.is_err(), "{fault}, but others read {theirs:?}");
            assert_eq!(json::parse(text), Err(fault));
        }
    }
}

/// A value parsed alone has the same kind.
fn spans(text: &[u8], node: &Node<'_>, depth: usize) {
    if depth > 8 {
        return;
    }
    let alone = json::read(&text[node.span.clone()]).expect("it has been read");
    assert_eq!(std::mem::discriminant(&alone.root.kind), std::mem::discriminant(&node.kind));
    match &node.kind {
        Kind::Array(items) => items.iter().take(4).for_each(|item| spans(text, item, depth + 1)),
        Kind::Object(members) => {
            members.iter().take(4).for_each(|m| spans(text, &m.value, depth + 1));
        }
        _ => {}
    }
}

/// A watch has the same documents, whatever the packet boundaries.
pub fn watch(input: &[u8]) {
    let (pieces, stream) = cuts(input);
    assert_eq!(documents(&[stream], 64), documents(&pieces, 64));
}

/// A stream has the same transcript, whatever the packet boundaries, over every protocol.
pub fn streams(input: &[u8]) {
    let (pieces, stream) = cuts(input);
    for (over, kind, protocol) in [
        (Carrier::Websocket, StreamKind::Command, "v5.channel.k8s.io"),
        (Carrier::Websocket, StreamKind::Command, "base64.channel.k8s.io"),
        (Carrier::Websocket, StreamKind::Ports, "v4.channel.k8s.io"),
        (Carrier::Websocket, StreamKind::Plain, ""),
        (Carrier::Websocket, StreamKind::Ports, TUNNEL),
        (Carrier::Spdy, StreamKind::Command, "v4.channel.k8s.io"),
    ] {
        let whole = fed(over, kind, protocol, &[stream]);
        let Seen { kept, frames, .. } = &whole;
        assert!(*kept < 1 << 20 && *frames < 3000, "{kept} bytes and {frames} frames are kept");
        assert_eq!(whole, fed(over, kind, protocol, &pieces));
    }
}

/// Takes the sizes of pieces from the first bytes of the input, and splits the rest.
fn cuts(input: &[u8]) -> (Vec<&[u8]>, &[u8]) {
    let Some((count, rest)) = input.split_first() else { return (Vec::new(), input) };
    let (lengths, stream) = rest.split_at(rest.len().min(usize::from(count % 8)));
    let mut lengths = lengths.iter().map(|length| usize::from(*length) + 1).cycle();
    let (mut pieces, mut left) = (Vec::new(), stream);
    while !left.is_empty() {
        let (piece, more) = left.split_at(lengths.next().unwrap_or(1).min(left.len()));
        pieces.push(piece);
        left = more;
    }
    (pieces, stream)
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    /// Texts that resemble JSON.
    fn nearly_json() -> impl Strategy<Value = Vec<u8>> {
        let token = prop_oneof![
            4 => prop::sample::select(vec![
                "{", "}", "[", "]", ",", ":", "\"a\"", "\"", "\\", "\\u00e9", "\\ud83d\\ude00",
            ]),
            2 => prop::sample::select(vec![
                "0", "-1", "1.5e3", "1e999", "017", "true", "null", " ", "\n", "é", "\u{feff}",
            ]),
        ];
        let text = vec(token, 0..40).prop_map(|tokens| tokens.concat().into_bytes());
        prop_oneof![
            text,
            vec(any::<u8>(), 0..200),
            value().prop_map(|value| value.to_string().into_bytes())
        ]
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            any::<String>().prop_map(Value::from),
        ];
        leaf.prop_recursive(6, 64, 8, |inner| {
            prop_oneof![
                vec(inner.clone(), 0..8).prop_map(Value::from),
                prop::collection::btree_map(any::<String>(), inner, 0..8)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    /// Frames of both protocols, valid and invalid, mixed with random bytes.
    fn nearly_frames() -> impl Strategy<Value = Vec<u8>> {
        let websocket = (any::<[bool; 2]>(), 0..16_u8, vec(any::<u8>(), 0..140)).prop_map(
            |([fin, masked], opcode, payload)| {
                let head = kubeproof_cases::case::FrameHead {
                    opcode,
                    fin,
                    masked,
                    reserved: 0,
                    claims: None,
                };
                crate::transport::stream::fuzzing::websocket_frame(head, &payload)
            },
        );
        let spdy = (0..12_u8, any::<u8>(), 0..6_u8, vec(any::<u8>(), 0..40)).prop_map(
            |(kind, flags, stream, payload)| {
                let length = u8::try_from(payload.len()).unwrap_or_default();
                let control = [0x80, 3, 0, kind, flags, 0, 0, length];
                let data = [0, 0, 0, stream, flags, 0, 0, length];
                [if kind > 9 { &data[..] } else { &control[..] }, &payload].concat()
            },
        );
        let piece = prop_oneof![4 => websocket, 4 => spdy, 1 => vec(any::<u8>(), 0..20)];
        (vec(any::<u8>(), 1..8), vec(piece, 0..12)).prop_map(|(mut input, pieces)| {
            input.extend(pieces.concat());
            input
        })
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_rejected(text in nearly_json()) {
            json(&text);
        }

        #[test]
        fn what_is_written_is_read(value in value()) {
            let text = value.to_string();
            prop_assert_eq!(json::read(text.as_bytes()).expect("it is JSON").into_value(), value);
        }

        #[test]
        fn a_watch_may_be_cut_anywhere(
            input in vec(prop_oneof![Just(b'\n'), Just(b'\r'), any::<u8>()], 0..400)
        ) {
            watch(&input);
        }

        #[test]
        fn a_stream_may_be_cut_anywhere(input in nearly_frames()) {
            streams(&input);
        }
    }
}
