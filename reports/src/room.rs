//! How much of the exchanges is kept until the end of a run. A server that fails every case with answers of a megabyte would
//! fill the memory with them, and no reader gets through a tenth of it. A trace has everything: it is written as cases finish.

use std::fmt::Write as _;

use serde_json::Value;

use crate::document::ExchangeRecord;

/// Bytes of a body or an event, at most.
const TEXT: usize = 64 << 10;

/// The same when the exchanges of many results are kept already.
const SHORT_TEXT: usize = 256;

/// Items of a list: headers, events, frames.
const ITEMS: usize = 1000;
const FEW_ITEMS: usize = 10;

/// Bytes of all exchanges after which little is kept of each further one, and after which nothing is.
const PLENTY: usize = 8 << 20;
const ALL: usize = 16 << 20;

/// What exchanges take so far.
#[derive(Debug, Default)]
pub(crate) struct Room {
    taken: usize,
}

impl Room {
    /// Cuts exchanges down to what there is room for.
    pub(crate) fn fit(&mut self, exchanges: &mut Vec<ExchangeRecord>) {
        if self.taken > ALL {
            exchanges.clear();
        }
        let (text, items) = if self.taken > PLENTY { (SHORT_TEXT, FEW_ITEMS) } else { (TEXT, ITEMS) };
        for exchange in exchanges {
            cut(exchange, text, items);
            self.taken += size(exchange);
        }
    }
}

fn cut(exchange: &mut ExchangeRecord, text: usize, items: usize) {
    shorten(&mut exchange.request_body, text);
    shorten(&mut exchange.response_body, text);
    exchange.response_headers.truncate(items);
    for (name, value) in &mut exchange.response_headers {
        shorten(name, text);
        shorten(value, text);
    }
    exchange.events.truncate(items);
    for event in &mut exchange.events {
        shorten(&mut event.kind, text);
        let object = event.object.to_string();
        if object.len() > text {
            event.object = Value::String(object);
            if let Value::String(object) = &mut event.object {
                shorten(object, text);
            }
        }
    }
    exchange.frames.truncate(items);
}

fn shorten(value: &mut String, most: usize) {
    if value.len() <= most {
        return;
    }
    let all = value.len();
    let cut = (0..=most).rev().find(|at| value.is_char_boundary(*at)).unwrap_or_default();
    value.truncate(cut);
    // Writing to a string cannot fail.
    let _ = write!(value, "... ({} more bytes)", all - cut);
}

/// About how many bytes it takes.
fn size(exchange: &ExchangeRecord) -> usize {
    let headers = exchange.request_headers.iter().chain(&exchange.response_headers);
    let headers: usize = headers.map(|(name, value)| name.len() + value.len() + 64).sum();
    let events: usize = exchange.events.iter().map(|event| 4 * event.object.to_string().len() + 128).sum();
    let frames: usize = exchange.frames.iter().map(|frame| frame.text.len() + 1024).sum();
    exchange.request_body.len() + exchange.response_body.len() + headers + events + frames + 512
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(bytes: usize) -> Vec<ExchangeRecord> {
        vec![ExchangeRecord { response_body: "é".repeat(bytes / 2), ..ExchangeRecord::default() }]
    }

    #[test]
    fn a_long_body_keeps_its_beginning() {
        let mut exchanges = of(1 << 20);
        Room::default().fit(&mut exchanges);
        assert!(exchanges[0].response_body.ends_with("é... (983040 more bytes)"));
    }

    #[test]
    fn many_long_bodies_are_not_kept_for_ever() {
        let mut room = Room::default();
        let kept: usize = (0..100_000)
            .map(|_| {
                let mut exchanges = of(2 * TEXT);
                room.fit(&mut exchanges);
                exchanges.iter().map(size).sum::<usize>()
            })
            .sum();
        assert!((PLENTY..ALL + TEXT).contains(&kept), "{kept}");
    }
}
