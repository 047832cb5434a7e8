//! The task that reads a watch.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;

use bytes::Bytes;
use http_body_util::BodyExt;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::documents::{Documents, Overrun};
use crate::exchange::{WatchEnd, WatchEvent};
use crate::target::error_chain;
use crate::transport::exact::OpenBody;
use crate::transport::memory::{GrowingReservation, MemoryBudget, Reservation};
use crate::transport::response::json_of;

/// Bytes per watch without a reservation. Hundreds of watches have only a few events.
pub(super) const FREE: usize = 256 << 10;

/// An item of the task.
#[derive(Debug)]
pub(super) enum Item {
    Document(Document),
    /// The end of the watch. Comes last.
    End(WatchEnd),
}

/// An unparsed event. The parsed one would need far more memory, and cases may never read it.
#[derive(Debug)]
pub(super) struct Document {
    bytes: Bytes,
    at: Instant,
    /// True if the stream ended inside the document.
    unfinished: bool,
    _held: Option<Reservation>,
}

/// Sends documents to the watch, within the memory budget.
pub(super) struct DocumentSender {
    budget: MemoryBudget,
    to: mpsc::Sender<Item>,
    /// Remaining bytes without a reservation.
    free: usize,
    /// Memory of the incomplete document.
    growth: GrowingReservation,
    max_document: usize,
    starved: Arc<AtomicBool>,
}

impl DocumentSender {
    pub(super) fn new(budget: &MemoryBudget, max_document: usize, to: mpsc::Sender<Item>) -> Self {
        let (growth, budget) = (GrowingReservation::in_turn(budget, max_document), budget.clone());
        Self { budget, to, free: FREE, growth, max_document, starved: Arc::default() }
    }

    /// Returns the flag for a document that waits for memory.
    pub(super) fn starved(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.starved)
    }

    /// Reserves memory for the incomplete document. Returns the end of the watch on failure.
    async fn make_room(&mut self, unfinished: usize) -> Option<WatchEnd> {
        let grown = flag_starvation(&self.starved, self.growth.reach(unfinished)).await;
        grown.err().map(WatchEnd::Budget)
    }

    /// Sends a document. Returns the end of the watch on failure.
    async fn send_document(&mut self, bytes: Bytes, unfinished: bool) -> Option<WatchEnd> {
        let held = match flag_starvation(
            &self.starved,
            self.budget.hold_beyond(&mut self.free, bytes.len()),
        )
        .await
        {
            Ok(held) => held,
            Err(spent) => return Some(WatchEnd::Budget(spent)),
        };
        self.growth = GrowingReservation::in_turn(&self.budget, self.max_document);
        let document = Document { bytes, at: Instant::now(), unfinished, _held: held };
        self.to.send(Item::Document(document)).await.err().map(|_| WatchEnd::Client)
    }
}

/// Waits for memory, and sets the flag in the meantime.
async fn flag_starvation<T>(starved: &AtomicBool, room: impl Future<Output = T>) -> T {
    tokio::pin!(room);
    if let Poll::Ready(room) = futures_util::poll!(&mut room) {
        return room;
    }
    starved.store(true, Ordering::Relaxed);
    let room = room.await;
    starved.store(false, Ordering::Relaxed);
    room
}

/// Reads to the end, or until the receiver is dropped.
pub(super) async fn read(mut body: OpenBody, mut documents: Documents, mut sender: DocumentSender) {
    let end = loop {
        let data = match body.incoming.frame().await {
            Some(Ok(frame)) => frame.into_data().unwrap_or_default(),
            Some(Err(error)) => {
                break WatchEnd::Broken(format!("the stream broke: {}", error_chain(&error)));
            }
            None => break last(documents, &mut sender).await,
        };
        documents.push(&data);
        if let Some(end) = complete(&mut documents, &mut sender).await {
            break end;
        }
    };
    // Closes the connection before it reports the end.
    drop(body);
    let _ = sender.to.send(Item::End(end)).await;
}

/// Sends the complete documents. Returns the end of the watch if a limit is exceeded.
async fn complete(documents: &mut Documents, sender: &mut DocumentSender) -> Option<WatchEnd> {
    loop {
        let document = match documents.next() {
            Ok(Some(document)) => document,
            Ok(None) => return sender.make_room(documents.unfinished()).await,
            // No object is as long, so the document is no event. The number of events is up to the
            // server.
            Err(overrun @ Overrun::Document(_)) => {
                return Some(WatchEnd::Broken(overrun.to_string()));
            }
            Err(overrun @ Overrun::Total(_)) => return Some(WatchEnd::Budget(overrun.to_string())),
        };
        if let Some(end) = sender.send_document(document, false).await {
            return Some(end);
        }
    }
}

/// Handles the end of the stream, which may be inside a document.
async fn last(documents: Documents, sender: &mut DocumentSender) -> WatchEnd {
    let rest = documents.rest();
    if rest.trim_ascii().is_empty() {
        return WatchEnd::Server;
    }
    sender.send_document(rest, true).await.unwrap_or(WatchEnd::Server)
}

impl Document {
    /// Estimates the memory of the event, doubled for its CEL value.
    pub(super) fn weight(&self) -> usize {
        2 * crate::json::weight(&self.bytes)
    }

    /// Parses the event. Returns it with the fault of its JSON, if any. Another document ends the
    /// watch.
    pub(super) fn event(&self, origin: Instant) -> Result<(WatchEvent, Option<String>), WatchEnd> {
        let inside = if self.unfinished { "the stream ended inside an event: " } else { "" };
        let (value, fault) = json_of(&self.bytes);
        let Some(mut value) = value.map(Arc::unwrap_or_clone) else {
            let fault = fault.unwrap_or_default();
            let start = start(&self.bytes);
            let reason = format!("{inside}an event is not JSON: {fault}; it starts {start:?}");
            return Err(WatchEnd::Broken(reason));
        };
        let object = value.get_mut("object").map(Value::take).filter(Value::is_object);
        match (value.get("type").and_then(Value::as_str), object) {
            (Some(kind), Some(object)) => {
                let at = self.at.saturating_duration_since(origin);
                Ok((WatchEvent { kind: kind.to_owned(), object: Arc::new(object), at }, fault))
            }
            _ if value["items"].is_array() => {
                Err(WatchEnd::List(value["kind"].as_str().unwrap_or("no kind").to_owned()))
            }
            _ => Err(WatchEnd::Broken(format!(
                "{inside}a document of the stream is no event, which has a type and an object: \
                 {:?}",
                start(&self.bytes)
            ))),
        }
    }
}

/// Returns the beginning of an event without its object, which may be a Secret.
fn start(event: &[u8]) -> String {
    let braces = event.iter().enumerate().filter(|(_, byte)| **byte == b'{');
    let shown = braces.map(|(at, _)| at + 1).nth(1).unwrap_or(event.len()).min(120);
    String::from_utf8_lossy(&event[..shown]).into_owned()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(r#"{"type":"ADDED","object":{"data":{"a":"b"#, r#"{"type":"ADDED","object":{"#)]
    #[case("<html>", "<html>")]
    #[case("", "")]
    fn an_event_is_shown_up_to_its_object(#[case] event: &str, #[case] expected: &str) {
        assert_eq!(start(event.as_bytes()), expected);
    }

    #[test]
    fn an_event_weighs_what_it_takes_here_and_where_expressions_are_given_it() {
        let bytes = Bytes::from_static(br#"{"type":"ADDED","object":{}}"#);
        let weight = crate::json::weight(&bytes);
        let document = Document { bytes, at: Instant::now(), unfinished: false, _held: None };
        assert_eq!(document.weight(), weight + weight);
    }
}
