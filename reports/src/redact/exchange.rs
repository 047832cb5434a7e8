//! Converts exchanges to text, without credentials and the data of Secrets.

use bytes::Bytes;
use kubeproof_cases::case::Identity;
use kubeproof_cases::plural;
use kubeproof_harness::event::NamedExchange;
use kubeproof_harness::exchange::{
    Frame, Outcome, Received, StreamEnd, Transcript, WatchEnd, parse_json,
};
use serde_json::Value;

use super::REDACTED;
use super::secret_values::SecretValues;
use crate::document::{EventRecord, ExchangeRecord, FrameRecord, milliseconds};

/// Maximum events of a watch in a report.
const EVENTS: usize = 1000;

/// Maximum frames of a stream in a report, each from its beginning and its end.
const FRAMES: usize = 100;

/// Maximum bytes of a binary frame in a report.
const HEX: usize = 32;

const CREDENTIAL_HEADERS: [&str; 4] =
    ["authorization", "proxy-authorization", "cookie", "set-cookie"];

/// Converts an exchange, and collects its secret values.
pub(super) fn record(named: &NamedExchange, secrets: &mut SecretValues) -> ExchangeRecord {
    let exchange = &named.exchange;
    let mut record = ExchangeRecord {
        step: named.step.clone(),
        method: exchange.request.method.clone(),
        target: exchange.request.target.clone(),
        identity: identity(exchange.request.identity).to_owned(),
        request_headers: headers(&exchange.request.headers),
        request_body: body(&exchange.request.body, None, secrets),
        started_ms: milliseconds(exchange.started),
        took_ms: milliseconds(exchange.took),
        ..ExchangeRecord::default()
    };
    match &exchange.outcome {
        Outcome::Response(received) => add_response(received, &mut record, secrets),
        Outcome::Broken(broken) => record.broken = Some(broken.message.clone()),
    }
    record
}

fn add_response(received: &Received, record: &mut ExchangeRecord, secrets: &mut SecretValues) {
    record.status = Some(received.status);
    received.version.clone_into(&mut record.http_version);
    record.response_headers = headers(&received.headers);
    record.response_body = body(&received.body, received.json.as_deref(), secrets);
    record.json_error.clone_from(&received.json_fault);
    for (at, event) in received.events.iter().enumerate() {
        // All events can contain secrets that other texts repeat. Only the first are kept.
        let mut object = Value::clone(&event.object);
        secrets.strip(&mut object);
        if at < EVENTS {
            let at_ms = milliseconds(event.at);
            record.events.push(EventRecord { kind: event.kind.clone(), object, at_ms });
        }
    }
    if let Some(more) = received.events.len().checked_sub(EVENTS).filter(|more| *more > 0) {
        let kind = format!("({})", plural(more, "more event"));
        record.events.push(EventRecord { kind, object: Value::Null, at_ms: 0.0 });
    }
    record.end = received.end.as_ref().map(|end| match end {
        WatchEnd::Server => "the server ended it".to_owned(),
        WatchEnd::Client => "the client closed it".to_owned(),
        WatchEnd::List(kind) => format!("the server sent a list instead of events: {kind}"),
        WatchEnd::Broken(why) => format!("broken: {why}"),
        WatchEnd::Budget(why) => format!("over the memory budget: {why}"),
    });
    if let Some(stream) = &received.stream {
        add_stream(stream, record, secrets);
    }
}

fn add_stream(stream: &Transcript, record: &mut ExchangeRecord, secrets: &SecretValues) {
    let frames = &stream.frames;
    let left_out = frames.len().saturating_sub(2 * FRAMES);
    let first = if left_out == 0 { frames.len() } else { FRAMES };
    record.frames = frames[..first].iter().map(|one| frame(one, secrets)).collect();
    if left_out + stream.omitted > 0 {
        record.frames.push(FrameRecord {
            from: String::new(),
            kind: format!("({})", plural(left_out + stream.omitted, "more frame")),
            channel: None,
            size: 0,
            text: String::new(),
            detail: Value::Null,
            at_ms: 0.0,
        });
        record.frames.extend(frames[first + left_out..].iter().map(|one| frame(one, secrets)));
    }
    record.end = stream.end.as_ref().map(|end| match end {
        StreamEnd::Server => "the server ended it".to_owned(),
        StreamEnd::Client => "the client closed it".to_owned(),
        StreamEnd::Dropped(why) => format!("the connection ended without a close: {why}"),
        StreamEnd::Broken(error) => format!("broken ({}): {error}", error.code()),
    });
}

fn frame(frame: &Frame, secrets: &SecretValues) -> FrameRecord {
    let hidden = secrets.about_secrets && !frame.start.is_empty();
    FrameRecord {
        from: if frame.from_server { "server" } else { "client" }.to_owned(),
        kind: frame.kind.clone(),
        channel: frame.channel.clone(),
        size: frame.size,
        text: if hidden { REDACTED.to_owned() } else { text_or_hex(&frame.start) },
        detail: Value::Object(frame.detail.clone()),
        at_ms: milliseconds(frame.at),
    }
}

fn body(body: &Bytes, json: Option<&Value>, secrets: &mut SecretValues) -> String {
    let Ok(text) = std::str::from_utf8(body) else {
        return format!("({} that are not UTF-8)", plural(body.len(), "byte"));
    };
    let parsed = json.cloned().or_else(|| parse_json(body));
    let Some(mut value) = parsed else {
        // The data of a Secret cannot be found in a body that is not JSON.
        let hidden = secrets.about_secrets && !text.is_empty();
        return if hidden {
            format!("{REDACTED} ({})", plural(text.len(), "byte"))
        } else {
            text.to_owned()
        };
    };
    if secrets.strip(&mut value) { value.to_string() } else { text.to_owned() }
}

fn headers(headers: &[(String, String)]) -> Vec<(String, String)> {
    let is_secret =
        |name: &str| CREDENTIAL_HEADERS.iter().any(|secret| name.eq_ignore_ascii_case(secret));
    let shown = headers.iter().map(|(name, value)| {
        let value = if is_secret(name) { REDACTED.to_owned() } else { value.clone() };
        (name.clone(), value)
    });
    shown.collect()
}

fn identity(identity: Identity) -> &'static str {
    match identity {
        Identity::Admin => "admin",
        Identity::Second => "second",
        Identity::Anonymous => "anonymous",
        Identity::Invalid => "invalid",
    }
}

/// Returns the beginning of a frame: text if it is UTF-8, or else hexadecimal bytes.
fn text_or_hex(bytes: &[u8]) -> String {
    let end = match std::str::from_utf8(bytes) {
        Ok(_) => bytes.len(),
        // The recorded beginning can end inside of a character.
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        Err(_) => {
            let hex = bytes.iter().take(HEX).map(|byte| format!("{byte:02x}"));
            return hex.collect::<Vec<_>>().join(" ");
        }
    };
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}
