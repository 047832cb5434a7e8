//! Finds the data that a case itself sent.
//!
//! It comes from the file of the case, so it is public. A failure about it would be unreadable
//! without it.

use std::collections::BTreeSet;
use std::time::Duration;

use kubeproof_harness::event::NamedExchange;
use kubeproof_harness::exchange::{Exchange, parse_json};
use kubeproof_harness::transport::data_forms;
use serde_json::Value;

/// In bytes. A second parsed copy of a larger body would take too much memory.
const LARGE: usize = 256 << 10;

/// Returns the data of the requests of a case, in plain text and base64. A value that a response
/// had before is not the case's own.
pub(super) fn own_values(exchanges: &[NamedExchange]) -> BTreeSet<String> {
    let mut bodies: Vec<(Duration, bool, Vec<String>)> = Vec::new();
    for named in exchanges {
        let exchange = &named.exchange;
        let sent = parse_json(&exchange.request.body).map(|body| data_of(&body));
        bodies.push((exchange.started, true, sent.unwrap_or_default()));
        bodies.push((exchange.started + exchange.took, false, received(exchange)));
    }
    bodies.sort();
    let (mut own, mut others) = (BTreeSet::new(), BTreeSet::new());
    for (_, is_sent, texts) in bodies {
        for text in texts {
            if !is_sent {
                others.insert(text);
            } else if !others.contains(&text) {
                own.extend(data_forms(&text));
            }
        }
    }
    own
}

fn received(exchange: &Exchange) -> Vec<String> {
    let Some(response) = exchange.response() else { return Vec::new() };
    // No case copies the data of such a large response.
    let is_large = response.body.len() > LARGE;
    let body = if is_large { None } else { parse_json(&response.body) };
    let body = body.map(|body| data_of(&body)).unwrap_or_default();
    let events = response.events.iter().flat_map(|event| data_of(&event.object));
    body.into_iter().chain(events).collect()
}

fn data_of(body: &Value) -> Vec<String> {
    let mut texts = Vec::new();
    collect(body, false, &mut texts);
    texts
}

fn collect(value: &Value, is_data: bool, texts: &mut Vec<String>) {
    match value {
        Value::String(text) if is_data => texts.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| collect(item, is_data, texts)),
        Value::Object(members) => {
            for (name, member) in members {
                let is_data = is_data || matches!(name.as_str(), "data" | "stringData" | "value");
                collect(member, is_data, texts);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bytes::Bytes;
    use kubeproof_cases::case::Identity;
    use kubeproof_harness::exchange::{Outcome, Received, Sent};
    use serde_json::json;

    use super::*;

    fn exchange(millis: u64, sent: &Value, received: &Value) -> NamedExchange {
        let request = Sent {
            method: "POST".to_owned(),
            target: "/api/v1/namespaces/a/secrets".to_owned(),
            headers: Vec::new(),
            body: sent.to_string().into(),
            identity: Identity::Admin,
        };
        let response = Received {
            status: 200,
            version: "HTTP/1.1",
            headers: Vec::new(),
            body: received.to_string().into(),
            json: None,
            json_fault: None,
            events: Vec::new(),
            end: None,
            stream: None,
        };
        let exchange = Exchange {
            request,
            outcome: Outcome::Response(response),
            started: Duration::from_millis(millis),
            took: Duration::from_millis(1),
        };
        NamedExchange { step: "step".to_owned(), exchange: Arc::new(exchange) }
    }

    #[test]
    fn values_are_own_until_a_response_has_them_first() {
        let none = json!({});
        let of_others = json!({"items": [{"data": {"a": "cGFzcw=="}}]});
        let exchanges = [
            exchange(5, &of_others["items"][0], &none),
            exchange(1, &json!({"stringData": {"a": "two"}, "kind": "Secret"}), &of_others),
            exchange(9, &json!([{"path": "/data/b", "value": "dGhyZWU="}]), &none),
        ];
        let own = own_values(&exchanges);
        let expected = ["two", "dHdv", "three", "dGhyZWU="].map(str::to_owned);
        for text in &expected {
            assert!(own.contains(text), "{text} is not in {own:?}");
        }
        assert!(!own.contains("cGFzcw=="), "{own:?}");
    }

    #[test]
    fn a_body_that_is_no_json_has_no_values() {
        let mut broken = exchange(1, &json!({}), &json!({}));
        let inner = Arc::make_mut(&mut broken.exchange);
        inner.request.body = Bytes::from_static(b"{\"data\": {\"a\": \"b\"");
        assert!(own_values(&[broken]).is_empty());
    }
}
