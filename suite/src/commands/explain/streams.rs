//! Describes the steps of streams.

use std::io::Write;

use kubeproof_cases::case::Action;
use kubeproof_cases::case::{Arrival, Outbound, Payload, Stream};
use kubeproof_cases::plural;

use super::describe;
use super::steps::{asker, checks, line};
use crate::error::Error;

/// Prints a step that opens, uses or closes a stream. Ignores all other steps.
pub(super) fn write(action: &Action, depth: usize, out: &mut dyn Write) -> Result<(), Error> {
    match action {
        Action::Stream(stream) => {
            let request = &stream.request;
            line(out, depth, &format!("{}: {}{}", request.id, opening(stream), asker(request)))?;
            checks(&request.expect, depth + 1, out)
        }
        Action::OpenStream(creation) => {
            let end = if creation.end { ", half-closed" } else { "" };
            line(
                out,
                depth,
                &format!("{}: open the SPDY stream {}{end}", creation.stream, creation.channel),
            )
        }
        Action::Send(sending) => {
            line(out, depth, &format!("{}: send {}", sending.stream, sent(&sending.what)))
        }
        Action::Receive(receiving) => {
            let until = arrival(&receiving.until);
            line(
                out,
                depth,
                &format!("- {}: read {} until {until}", receiving.id, receiving.stream),
            )
        }
        Action::Finish(finish) => {
            let or = if finish.dropped { ", or drop the connection" } else { "" };
            line(
                out,
                depth,
                &format!(
                    "{}: expect the server to end the stream {}{or}",
                    finish.id, finish.stream
                ),
            )?;
            checks(&finish.expect, depth + 1, out)
        }
        _ => Ok(()),
    }
}

fn opening(stream: &Stream) -> String {
    let over = stream.over.map_or("the protocol".to_owned(), |over| over.to_string());
    let offers = stream.offers.as_ref().map(|offers| {
        let offers: Vec<String> = offers.iter().map(describe::text).collect();
        if offers.is_empty() {
            ", offering no protocol".to_owned()
        } else {
            format!(", offering {}", offers.join(", "))
        }
    });
    let ports: Vec<String> = stream.ports.iter().map(ToString::to_string).collect();
    let ports = if ports.is_empty() {
        String::new()
    } else {
        format!(" to the ports {}", ports.join(", "))
    };
    format!(
        "open {}{ports} over {over}{}",
        describe::text(&stream.request.path),
        offers.unwrap_or_default()
    )
}

fn sent(what: &Outbound) -> String {
    match what {
        Outbound::Data { channel, payload, end: true, .. } if is_empty(payload) => {
            format!("the end of {channel}")
        }
        Outbound::Data { channel, payload, end, .. } => {
            let end = if *end { ", and its end" } else { "" };
            format!("{} on {channel}{end}", describe_payload(payload))
        }
        Outbound::Resize { width, height } => {
            format!("a terminal of {width} columns and {height} rows")
        }
        Outbound::Frame { head, payload } => {
            let mut how = vec![format!("opcode {}", head.opcode)];
            how.extend((!head.fin).then(|| "not the last of its message".to_owned()));
            how.extend((!head.masked).then(|| "unmasked".to_owned()));
            how.extend((head.reserved > 0).then(|| format!("reserved bits {}", head.reserved)));
            how.extend(head.claims.map(|length| format!("claiming {}", plural(length, "byte"))));
            format!("a frame ({}) with {}", how.join(", "), describe_payload(payload))
        }
        Outbound::Ping(payload) => format!("a ping {payload:?}"),
        Outbound::Reset { channel, status } => format!("a reset of {channel} with status {status}"),
        Outbound::Raw(bytes) => plural(bytes.len(), "raw byte"),
    }
}

fn is_empty(payload: &Payload) -> bool {
    matches!(payload, Payload::Bytes(bytes) if bytes.is_empty())
}

fn describe_payload(payload: &Payload) -> String {
    match payload {
        Payload::Text(text) => format!("{:?}", describe::text(text)),
        Payload::Bytes(bytes) => plural(bytes.len(), "byte"),
        Payload::Noise(size) => format!("{} of all values", plural(*size, "byte")),
    }
}

fn arrival(until: &Arrival) -> String {
    match until {
        Arrival::Text { channel, text } => {
            format!("{channel} matches {}", describe::text_pattern(text))
        }
        Arrival::Bytes { channel, bytes } => format!("{channel} has {}", plural(*bytes, "byte")),
        Arrival::End { channel } => format!("{channel} ends"),
        Arrival::Frame(pattern) => format!("a frame matches {}", describe::pattern(pattern)),
    }
}
