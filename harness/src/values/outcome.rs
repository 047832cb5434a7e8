//! The members of a response that expressions and templates read.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::variable::Variable;
use crate::exchange::{
    Channel, Flow, Frame, Outcome, Received, Transcript, WatchEnd, WatchEvent, sha256,
};

impl Variable {
    /// Creates the variable of a step: `status`, `headers`, `body`, `text`, `sha256`, `events`,
    /// `ended`, `error`, and the channels of a stream. `status` replaces that of the response.
    pub(crate) fn of_outcome(outcome: Outcome, status: Option<u16>) -> Self {
        Self::deferred(move || {
            let mut members = match outcome {
                Outcome::Broken(broken) => broken_members(&broken.message),
                Outcome::Response(received) => members(received),
            };
            if let Some(status) = status {
                members.insert("status".to_owned(), json!(status).into());
            }
            Self::object(members)
        })
    }
}

type Members = BTreeMap<String, Variable>;

fn broken_members(message: &str) -> Members {
    let members = [
        ("status", json!(0)),
        ("headers", json!({})),
        ("body", Value::Null),
        ("text", json!("")),
        ("sha256", json!("")),
        ("events", json!([])),
        ("ended", json!(false)),
        ("error", json!(message)),
    ];
    members.into_iter().map(|(name, value)| (name.to_owned(), value.into())).collect()
}

fn members(received: Received) -> Members {
    let Received { status, headers, body, json, events, end, stream, .. } = received;
    let bytes = body.clone();
    let digest = match &json {
        Some(_) => json!("").into(),
        None => Variable::deferred(move || json!(sha256(&bytes)).into()),
    };
    let text = Variable::deferred(move || json!(String::from_utf8_lossy(&body)).into());
    let members = [
        ("status", json!(status).into()),
        ("headers", Variable::deferred(move || joined(&headers).into())),
        ("body", json.map_or_else(|| Value::Null.into(), Variable::from)),
        ("text", text),
        ("sha256", digest),
        ("events", Variable::deferred(move || Variable::list(events.iter().map(event).collect()))),
        ("ended", json!(end == Some(WatchEnd::Server)).into()),
        ("error", json!("").into()),
    ];
    let mut members: Members =
        members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    // Channel names of a stream are members, and `error` is one of them.
    if let Some(stream) = stream {
        members.extend(stream_members(&stream));
    }
    members
}

fn stream_members(stream: &Arc<Transcript>) -> Members {
    let channels = stream.channels.keys().map(|name| {
        let (stream, channel) = (Arc::clone(stream), name.clone());
        (
            name.clone(),
            Variable::deferred(move || Variable::object(channel_members(&stream, &channel))),
        )
    });
    let mut members: Members = channels.collect();
    let shared = Arc::clone(stream);
    let frames = move || shared.frames.iter().map(Frame::value).collect::<Value>().into();
    let close = stream.close.as_ref();
    let close = close.map(|close| json!({"code": close.code, "reason": close.reason}));
    let of_stream = [
        ("close", close.unwrap_or_default().into()),
        ("ended", json!(stream.is_ended_by_server()).into()),
        ("frames", Variable::deferred(frames)),
        ("protocol", json!(stream.protocol).into()),
        ("violations", json!(stream.violations).into()),
    ];
    members.extend(of_stream.map(|(name, value)| (name.to_owned(), value)));
    members
}

fn channel_members(stream: &Arc<Transcript>, name: &str) -> Members {
    let mut members = flow_members(stream, name, |channel| &channel.received);
    let sent = Variable::object(flow_members(stream, name, |channel| &channel.sent));
    let port = stream.channels.get(name).and_then(|channel| channel.port);
    members.extend([
        ("sent".to_owned(), sent),
        ("ended".to_owned(), json!(stream.has_ended(name)).into()),
        ("port".to_owned(), json!(port).into()),
    ]);
    members
}

fn flow_members(stream: &Arc<Transcript>, name: &str, flow: fn(&Channel) -> &Flow) -> Members {
    let member = |value: fn(&Flow) -> Value| {
        let (stream, name) = (Arc::clone(stream), name.to_owned());
        let read = move || stream.channels.get(&name).map(|channel| value(flow(channel)));
        Variable::deferred(move || read().unwrap_or_default().into())
    };
    let members = [
        ("text", member(|flow| json!(flow.text()))),
        ("json", member(Flow::json)),
        ("size", member(|flow| json!(flow.size))),
        ("sha256", member(|flow| json!(flow.sha256()))),
        ("messages", member(|flow| json!(flow.messages))),
        ("parts", member(Flow::parts)),
    ];
    members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Returns headers by their names in lower case. Several of one name become one.
fn joined(headers: &[(String, String)]) -> Value {
    let mut joined: BTreeMap<String, String> = BTreeMap::new();
    for (name, value) in headers {
        joined
            .entry(name.to_ascii_lowercase())
            .and_modify(|all| {
                all.push_str(", ");
                all.push_str(value);
            })
            .or_insert_with(|| value.clone());
    }
    json!(joined)
}

fn event(event: &WatchEvent) -> Variable {
    let members: [(_, Variable); 2] =
        [("object", Arc::clone(&event.object).into()), ("type", json!(event.kind).into())];
    Variable::object(members.map(|(name, value)| (name.to_owned(), value)).into())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use bytes::Bytes;

    use super::*;
    use crate::exchange::{Broken, BrokenKind, StreamEnd};
    use crate::testing::received;

    fn value(outcome: Outcome, status: Option<u16>) -> Value {
        Variable::of_outcome(outcome, status).value().clone()
    }

    #[test]
    fn a_response_has_its_parts() {
        let headers = [("Warning", "299 - \"a\""), ("A", "b"), ("warning", "299 - \"c\"")];
        let object = Arc::new(json!({"kind": "Pod"}));
        let outcome = Outcome::Response(Received {
            headers: headers.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
            body: Bytes::from_static(b"\xff"),
            events: vec![WatchEvent { kind: "ADDED".to_owned(), object, at: Duration::ZERO }],
            end: Some(WatchEnd::Server),
            ..received(200)
        });
        assert_eq!(
            value(outcome, None),
            json!({
                "status": 200,
                "headers": {"a": "b", "warning": "299 - \"a\", 299 - \"c\""},
                "body": null,
                "text": "\u{fffd}",
                "sha256": "a8100ae6aa1940d0b663bb31cd466142ebbdbd5187131b92d93818987832eb89",
                "events": [{"type": "ADDED", "object": {"kind": "Pod"}}],
                "ended": true,
                "error": "",
            })
        );
    }

    #[test]
    fn a_stream_has_its_channels() {
        let mut stream = Transcript::new("v5".to_owned());
        stream.channel("stdout").received.push(b"{}");
        stream.channel("error").sent.push(b"no");
        stream.channel("error").port = Some(80);
        stream.frame(Frame { kind: "binary".to_owned(), ..Frame::default() }, b"{}");
        stream.end = Some(StreamEnd::Server);
        let stream = Some(Arc::new(stream));
        let all = value(Outcome::Response(Received { stream, ..received(101) }), None);
        let digest = |bytes: &[u8]| sha256(bytes);
        assert_eq!(
            all["stdout"],
            json!({
                "text": "{}", "json": {}, "size": 2, "messages": 1, "parts": ["{}"],
                "sha256": digest(b"{}"), "ended": true, "port": null,
                "sent": {
                    "text": "", "json": null, "size": 0, "messages": 0, "parts": [],
                    "sha256": digest(b""),
                },
            })
        );
        assert_eq!(
            (&all["error"]["sent"]["text"], &all["error"]["port"]),
            (&json!("no"), &json!(80))
        );
        assert_eq!((&all["protocol"], &all["close"]), (&json!("v5"), &Value::Null));
        assert_eq!(all["frames"][0]["type"], "binary");
    }

    #[test]
    fn a_reported_code_is_replaced() {
        assert_eq!(value(Outcome::Response(received(200)), Some(201))["status"], 201);
    }

    #[test]
    fn without_response_the_error_is_known() {
        let broken = Broken { kind: BrokenKind::Connect, message: "rejected".to_owned() };
        let value = value(Outcome::Broken(broken), None);
        assert_eq!((&value["status"], &value["error"]), (&json!(0), &json!("rejected")));
        assert_eq!(value["body"], Value::Null);
    }
}
