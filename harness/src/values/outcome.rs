//! The members of a response that expressions and templates read.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::variable::Variable;
use crate::exchange::{Outcome, Received, WatchEnd, WatchEvent, sha256};

impl Variable {
    /// Creates the variable of a step: `status`, `headers`, `body`, `text`, `sha256`, `events`,
    /// `ended`, `error`, and the channels of a stream. `status` replaces that of the response.
    pub(crate) fn of_outcome(outcome: Outcome, status: Option<u16>) -> Self {
        Self::deferred(move || {
            let mut members = match outcome {
                Outcome::Broken(broken) => broken_members(broken.message),
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

fn broken_members(message: String) -> Members {
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
        members.extend(stream.value().into_iter().map(|(name, value)| (name, value.into())));
    }
    members
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
    use crate::exchange::{Broken, BrokenKind};
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
    fn a_reported_code_is_replaced() {
        assert_eq!(value(Outcome::Response(received(200)), Some(201))["status"], 201);
    }

    #[test]
    fn without_response_the_error_is_known() {
        let broken = Broken { kind: BrokenKind::Connect, message: "refused".to_owned() };
        let value = value(Outcome::Broken(broken), None);
        assert_eq!((&value["status"], &value["error"]), (&json!(0), &json!("refused")));
        assert_eq!(value["body"], Value::Null);
    }
}
