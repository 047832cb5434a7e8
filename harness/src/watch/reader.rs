//! The task that reads a watch.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;

use bytes::Bytes;
use http_body_util::BodyExt;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::lines::{Lines, Overrun};
use crate::exchange::{WatchEnd, WatchEvent};
use crate::transport::{Budget, Growth, Held, OpenBody, chain, json_of};

/// Bytes of a watch that are nobody's concern: there are hundreds of watches that see a little.
pub(super) const FREE: usize = 256 << 10;

/// What the task tells.
#[derive(Debug)]
pub(super) enum Item {
    /// A line.
    Line(Line),
    /// Last.
    End(WatchEnd),
}

/// A line as it came: what it becomes takes far more, and may never be looked at.
#[derive(Debug)]
pub(super) struct Line {
    bytes: Bytes,
    at: Instant,
    /// The stream ended without ending the line.
    unfinished: bool,
    _held: Option<Held>,
}

/// Where lines are told.
pub(super) struct Teller {
    budget: Budget,
    to: mpsc::Sender<Item>,
    /// Bytes of lines that nothing is held for yet.
    free: usize,
    /// For the line that is not complete.
    growth: Growth,
    max_line: usize,
    starves: Arc<AtomicBool>,
}

impl Teller {
    pub(super) fn new(budget: &Budget, max_line: usize, to: mpsc::Sender<Item>) -> Self {
        let (growth, budget) = (Growth::in_turn(budget, max_line), budget.clone());
        Self { budget, to, free: FREE, growth, max_line, starves: Arc::default() }
    }

    /// Whether there is a line that waits for room.
    pub(super) fn starves(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.starves)
    }

    /// Waits for room for a line of which there is so much; `Some` when there can be none.
    async fn make_room(&mut self, unfinished: usize) -> Option<WatchEnd> {
        let grown = told(&self.starves, self.growth.reach(unfinished)).await;
        grown.err().map(WatchEnd::Budget)
    }

    /// Tells a line; `Some` when that ends the watch.
    async fn tell(&mut self, bytes: Bytes, unfinished: bool) -> Option<WatchEnd> {
        let held = match told(&self.starves, self.budget.hold_beyond(&mut self.free, bytes.len())).await {
            Ok(held) => held,
            Err(spent) => return Some(WatchEnd::Budget(spent)),
        };
        self.growth = Growth::in_turn(&self.budget, self.max_line);
        let line = Line { bytes, at: Instant::now(), unfinished, _held: held };
        self.to.send(Item::Line(line)).await.err().map(|_| WatchEnd::Client)
    }
}

/// Waits for room, and tells for how long there is none.
async fn told<T>(starves: &AtomicBool, room: impl Future<Output = T>) -> T {
    tokio::pin!(room);
    if let Poll::Ready(room) = futures_util::poll!(&mut room) {
        return room;
    }
    starves.store(true, Ordering::Relaxed);
    let room = room.await;
    starves.store(false, Ordering::Relaxed);
    room
}

/// Reads to the end, or until nobody listens.
pub(super) async fn read(mut body: OpenBody, mut lines: Lines, mut teller: Teller) {
    let end = loop {
        let data = match body.incoming.frame().await {
            Some(Ok(frame)) => frame.into_data().unwrap_or_default(),
            Some(Err(error)) => break WatchEnd::Broken(format!("the stream broke: {}", chain(&error))),
            None => break last(lines, &mut teller).await,
        };
        lines.push(&data);
        if let Some(end) = complete(&mut lines, &mut teller).await {
            break end;
        }
    };
    // The server is let go before its end is told: whoever sees the end finds the connection closed.
    drop(body);
    let _ = teller.to.send(Item::End(end)).await;
}

/// Tells the lines that are complete. `Some` when their length ends the watch.
async fn complete(lines: &mut Lines, teller: &mut Teller) -> Option<WatchEnd> {
    loop {
        let line = match lines.next() {
            Ok(Some(line)) => line,
            Ok(None) => return teller.make_room(lines.unfinished()).await,
            // No object is that long, so this is no event. How many there are is the server's affair.
            Err(overrun @ Overrun::Line(_)) => return Some(WatchEnd::Broken(overrun.to_string())),
            Err(overrun @ Overrun::Total(_)) => return Some(WatchEnd::Budget(overrun.to_string())),
        };
        if line.trim_ascii().is_empty() {
            continue;
        }
        if let Some(end) = teller.tell(line, false).await {
            return Some(end);
        }
    }
}

/// The end of a stream that the server ended: in order, unless it stopped inside a line.
async fn last(lines: Lines, teller: &mut Teller) -> WatchEnd {
    let rest = lines.rest();
    if rest.trim_ascii().is_empty() {
        return WatchEnd::Server;
    }
    // Clients that read JSON rather than lines see a complete event here; only a cut one is lost to them.
    teller.tell(rest, true).await.unwrap_or(WatchEnd::Server)
}

impl Line {
    /// About how many bytes its event takes, and again where expressions are given it.
    pub(super) fn weight(&self) -> usize {
        2 * crate::json::weight(&self.bytes)
    }

    /// The event, and what is wrong with its JSON for all that it could be read.
    pub(super) fn event(&self, origin: Instant) -> Result<(WatchEvent, Option<String>), String> {
        let inside = if self.unfinished { "the stream ended inside a line: " } else { "" };
        let (value, fault) = json_of(&self.bytes);
        let Some(mut value) = value.map(Arc::unwrap_or_clone) else {
            let fault = fault.unwrap_or_default();
            let start = start(&self.bytes);
            return Err(format!("{inside}a line is not JSON: {fault}; it starts {start:?}"));
        };
        let object = value.get_mut("object").map(Value::take).filter(Value::is_object);
        match (value.get("type").and_then(Value::as_str), object) {
            (Some(kind), Some(object)) => {
                let at = self.at.saturating_duration_since(origin);
                Ok((WatchEvent { kind: kind.to_owned(), object: Arc::new(object), at }, fault))
            }
            _ => Err(format!(
                "{inside}a line is no event, which has a type and an object: {:?}",
                start(&self.bytes)
            )),
        }
    }
}

/// Enough of a line to know it by; nothing of an object that stands in it, which may be a Secret.
fn start(line: &[u8]) -> String {
    let braces = line.iter().enumerate().filter(|(_, byte)| **byte == b'{');
    let shown = braces.map(|(at, _)| at + 1).nth(1).unwrap_or(line.len()).min(120);
    String::from_utf8_lossy(&line[..shown]).into_owned()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(r#"{"type":"ADDED","object":{"data":{"a":"b"#, r#"{"type":"ADDED","object":{"#)]
    #[case("<html>", "<html>")]
    #[case("", "")]
    fn a_line_is_shown_up_to_the_object_in_it(#[case] line: &str, #[case] expected: &str) {
        assert_eq!(start(line.as_bytes()), expected);
    }
    #[test]
    fn an_event_weighs_what_it_takes_here_and_where_expressions_are_given_it() {
        let bytes = Bytes::from_static(br#"{"type":"ADDED","object":{}}"#);
        let weight = crate::json::weight(&bytes);
        let line = Line { bytes, at: Instant::now(), unfinished: false, _held: None };
        assert_eq!(line.weight(), weight + weight);
    }
}
