//! Bounds the memory of the exchanges that reports keep until the end of a run.
//!
//! A server that fails every case with responses of a megabyte would otherwise fill the memory. A
//! trace keeps everything, because it is written as each case finishes.

use std::fmt::Write as _;

use kubeproof_cases::plural;
use serde_json::Value;

use crate::document::ExchangeRecord;

/// Maximum bytes of one body or event.
const TEXT: usize = 64 << 10;

/// Maximum bytes of one body or event after the run has kept [`PLENTY`].
const SHORT_TEXT: usize = 256;

/// Maximum headers, events and frames of one exchange.
const ITEMS: usize = 1000;
const FEW_ITEMS: usize = 10;

/// Maximum depth of an event. Readers of JSON reports limit the depth, often to 128.
const DEPTH: usize = 64;

/// Bytes after which further exchanges are shortened to [`SHORT_TEXT`].
const PLENTY: usize = 8 << 20;

/// Bytes after which further exchanges are dropped.
const ALL: usize = 16 << 20;

#[derive(Debug, Default)]
pub(crate) struct ExchangeBudget {
    used: usize,
}

impl ExchangeBudget {
    /// Shortens or drops exchanges so that they fit into what is left of the budget.
    pub(crate) fn shorten(&mut self, exchanges: &mut Vec<ExchangeRecord>) {
        if self.used > ALL {
            exchanges.clear();
        }
        let plenty_used = self.used > PLENTY;
        let (text, items) = if plenty_used { (SHORT_TEXT, FEW_ITEMS) } else { (TEXT, ITEMS) };
        for exchange in exchanges {
            shorten_exchange(exchange, text, items);
            self.used += estimated_size(exchange);
        }
    }
}

fn shorten_exchange(exchange: &mut ExchangeRecord, text: usize, items: usize) {
    shorten_text(&mut exchange.request_body, text);
    shorten_text(&mut exchange.response_body, text);
    exchange.response_headers.truncate(items);
    for (name, value) in &mut exchange.response_headers {
        shorten_text(name, text);
        shorten_text(value, text);
    }
    exchange.events.truncate(items);
    for event in &mut exchange.events {
        shorten_text(&mut event.kind, text);
        let mut object = event.object.to_string();
        if object.len() > text || is_deeper(&event.object, DEPTH) {
            shorten_text(&mut object, text);
            event.object = Value::String(object);
        }
    }
    exchange.frames.truncate(items);
}

fn is_deeper(value: &Value, most: usize) -> bool {
    let is_below = |value: &Value| most == 0 || is_deeper(value, most - 1);
    match value {
        Value::Array(items) => items.iter().any(is_below),
        Value::Object(members) => members.values().any(is_below),
        _ => false,
    }
}

fn shorten_text(value: &mut String, most: usize) {
    if value.len() <= most {
        return;
    }
    let all = value.len();
    let end = (0..=most).rev().find(|at| value.is_char_boundary(*at)).unwrap_or_default();
    value.truncate(end);
    // Writing to a string cannot fail.
    let _ = write!(value, "... ({})", plural(all - end, "more byte"));
}

fn estimated_size(exchange: &ExchangeRecord) -> usize {
    let headers = exchange.request_headers.iter().chain(&exchange.response_headers);
    let headers: usize = headers.map(|(name, value)| name.len() + value.len() + 64).sum();
    let events = exchange.events.iter();
    let events: usize = events.map(|event| 4 * event.object.to_string().len() + 128).sum();
    let frames: usize = exchange.frames.iter().map(|frame| frame.text.len() + 1024).sum();
    exchange.request_body.len() + exchange.response_body.len() + headers + events + frames + 512
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::EventRecord;

    fn exchanges(bytes: usize) -> Vec<ExchangeRecord> {
        vec![ExchangeRecord { response_body: "é".repeat(bytes / 2), ..ExchangeRecord::default() }]
    }

    #[test]
    fn a_long_body_keeps_its_beginning() {
        let mut exchanges = exchanges(1 << 20);
        ExchangeBudget::default().shorten(&mut exchanges);
        assert!(exchanges[0].response_body.ends_with("é... (983040 more bytes)"));
    }

    #[test]
    fn a_deep_event_becomes_text() {
        let deep = |depth: usize| {
            let object = (0..depth).fold(Value::from(1), |inner, _| Value::from(vec![inner]));
            let event = EventRecord { kind: "ADDED".to_owned(), object, at_ms: 0.0 };
            let mut exchanges =
                vec![ExchangeRecord { events: vec![event], ..ExchangeRecord::default() }];
            ExchangeBudget::default().shorten(&mut exchanges);
            exchanges[0].events[0].object.is_string()
        };
        assert_eq!([DEPTH, DEPTH + 1, 1_000].map(deep), [false, true, true]);
    }

    #[test]
    fn many_long_bodies_stay_within_the_budget() {
        let mut budget = ExchangeBudget::default();
        let kept: usize = (0..100_000)
            .map(|_| {
                let mut exchanges = exchanges(2 * TEXT);
                budget.shorten(&mut exchanges);
                exchanges.iter().map(estimated_size).sum::<usize>()
            })
            .sum();
        assert!((PLENTY..ALL + TEXT).contains(&kept), "{kept}");
    }
}
