//! The steps of streams in words.

use std::io::Write;

use kubeproof_cases::case::Step;
use kubeproof_cases::stream::{Arrival, Outbound, Payload, Stream};

use super::steps::{asker, checks, line};
use super::words;
use crate::error::Error;

/// Writes a step that opens, uses or ends a stream; any other is none of its business.
pub(super) fn write(step: &Step, depth: usize, out: &mut dyn Write) -> Result<(), Error> {
    match step {
        Step::Stream(stream) => {
            let request = &stream.request;
            line(out, depth, &format!("{}: {}{}", request.id, opening(stream), asker(request)))?;
            checks(&request.expect, depth + 1, out)
        }
        Step::Create(creation) => {
            let end = if creation.end { ", with nothing to send" } else { "" };
            line(
                out,
                depth,
                &format!("{}: create the SPDY stream {}{end}", creation.stream, creation.channel),
            )
        }
        Step::Send(sending) => line(out, depth, &format!("{}: send {}", sending.stream, sent(&sending.what))),
        Step::Receive(receiving) => {
            let until = arrival(&receiving.until);
            line(out, depth, &format!("- {}: {} is read until {until}", receiving.id, receiving.stream))
        }
        Step::Finish(finish) => {
            let or = if finish.dropped { ", or drops the connection" } else { "" };
            line(out, depth, &format!("{}: the server ends the stream {}{or}", finish.id, finish.stream))?;
            checks(&finish.expect, depth + 1, out)
        }
        _ => Ok(()),
    }
}

fn opening(stream: &Stream) -> String {
    let over = stream.over.map_or("the protocol".to_owned(), |over| over.to_string());
    let offers = stream.offers.as_ref().map(|offers| {
        let offers: Vec<String> = offers.iter().map(words::text).collect();
        if offers.is_empty() {
            ", offering nothing".to_owned()
        } else {
            format!(", offering {}", offers.join(", "))
        }
    });
    let ports: Vec<String> = stream.ports.iter().map(ToString::to_string).collect();
    let ports = if ports.is_empty() { String::new() } else { format!(" to the ports {}", ports.join(", ")) };
    format!("open {}{ports} over {over}{}", words::text(&stream.request.path), offers.unwrap_or_default())
}

fn sent(what: &Outbound) -> String {
    match what {
        Outbound::Data { channel, payload, end: true, .. } if is_empty(payload) => {
            format!("the end of {channel}")
        }
        Outbound::Data { channel, payload, end, .. } => {
            let end = if *end { ", and its end" } else { "" };
            format!("{} on {channel}{end}", words_of(payload))
        }
        Outbound::Resize { width, height } => format!("a terminal of {width} columns and {height} rows"),
        Outbound::Frame { head, payload } => {
            let mut how = vec![format!("opcode {}", head.opcode)];
            how.extend((!head.fin).then(|| "not the last of its message".to_owned()));
            how.extend((!head.masked).then(|| "unmasked".to_owned()));
            how.extend((head.reserved > 0).then(|| format!("reserved bits {}", head.reserved)));
            how.extend(head.claims.map(|length| format!("claiming {length} bytes")));
            format!("a frame ({}) with {}", how.join(", "), words_of(payload))
        }
        Outbound::Ping(payload) => format!("a ping {payload:?}"),
        Outbound::Reset { channel, status } => format!("a reset of {channel} with status {status}"),
        Outbound::Raw(bytes) => format!("{} bytes as they stand", bytes.len()),
    }
}

fn is_empty(payload: &Payload) -> bool {
    matches!(payload, Payload::Bytes(bytes) if bytes.is_empty())
}

fn words_of(payload: &Payload) -> String {
    match payload {
        Payload::Text(text) => format!("{:?}", words::text(text)),
        Payload::Bytes(bytes) => format!("{} bytes", bytes.len()),
        Payload::Noise(size) => format!("{size} bytes of all values"),
    }
}

fn arrival(until: &Arrival) -> String {
    match until {
        Arrival::Text { channel, text } => format!("{channel} matches {}", words::text_pattern(text)),
        Arrival::Bytes { channel, bytes } => format!("{channel} has brought {bytes} bytes"),
        Arrival::End { channel } => format!("{channel} ends"),
        Arrival::Frame(pattern) => format!("a frame comes that is {}", words::pattern(pattern)),
    }
}
