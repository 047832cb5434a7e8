//! An open watch. A task reads its events, so that a busy case does not block the connection.
//! Without free memory, the server has to wait.

mod documents;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzing;
mod reader;
mod scanner;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Map, Value};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};

use crate::exchange::{
    Broken, BrokenKind, Exchange, Isolation, Outcome, Sent, WatchEnd, WatchEvent,
};
use crate::transport::Limits;
use crate::transport::body::kept as kept_with;
use crate::transport::exact::OpenBody;
use crate::transport::memory::{MemoryBudget, Reservation};

/// Limit on unread events. Beyond, the server has to wait.
const BACKLOG: usize = 4 << 10;

/// A watch, from its head to its end. Drop closes it.
#[derive(Debug)]
pub struct OpenWatch {
    /// The request and the head of the response; a complete response if it is not a 200.
    pub head: Exchange,
    events: Vec<WatchEvent>,
    end: Option<WatchEnd>,
    fault: Option<String>,
    opened: Instant,
    reader: Option<Reader>,
    /// JSON Pointers of the members to keep; empty to keep everything.
    keep: Vec<String>,
    /// Reserved memory of the events.
    held: Option<Reservation>,
    /// Remaining bytes without a reservation.
    free: usize,
    /// The head of the response, while it has not arrived.
    late: Option<LateHead>,
    /// The objects that the watch selects. Events of others are dropped.
    isolation: Option<Isolation>,
    /// When the last event of another object arrived.
    last_foreign: Option<Instant>,
}

#[derive(Debug)]
struct Reader {
    items: mpsc::Receiver<reader::Item>,
    task: JoinHandle<()>,
    origin: Instant,
    budget: MemoryBudget,
    /// True while an event waits for memory.
    starved: Arc<AtomicBool>,
}

/// A request whose response has not begun. Drop cancels it.
#[derive(Debug)]
struct LateHead(JoinHandle<OpenWatch>);

impl Drop for LateHead {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The next item of a watch.
#[derive(Clone, Debug)]
pub enum Next {
    /// An event.
    Event(WatchEvent),
    /// The watch has ended.
    End(WatchEnd),
    /// No event before the deadline.
    Deadline,
}

impl OpenWatch {
    /// Keeps only these members of each object, so that many watches fit into memory.
    #[must_use]
    pub fn keeping(mut self, pointers: &[String]) -> Self {
        self.keep = pointers.to_vec();
        self
    }

    /// Reports whether the watch is open.
    pub fn is_open(&self) -> bool {
        self.reader.is_some()
    }

    /// Sends a request without waiting for its response.
    pub(crate) fn sending(
        request: Sent,
        started: Duration,
        response: impl Future<Output = Self> + Send + 'static,
    ) -> Self {
        let message = "the response has not begun".to_owned();
        let outcome = Outcome::Broken(Broken { kind: BrokenKind::Deadline, message });
        let head = Exchange { request, outcome, started, took: Duration::ZERO };
        Self { late: Some(LateHead(tokio::spawn(response))), ..Self::rejected(head) }
    }

    /// Waits for the head of the response. Returns false if it does not arrive by the deadline.
    pub(crate) async fn arrived(&mut self, deadline: Instant) -> bool {
        let Some(LateHead(response)) = &mut self.late else { return true };
        let Ok(response) = timeout_at(deadline, response).await else { return false };
        self.late = None;
        match response {
            Ok(arrived) => *self = arrived,
            Err(error) => self.end = Some(WatchEnd::Broken(error.to_string())),
        }
        true
    }

    /// Reports whether the head of the response has not arrived.
    pub(crate) fn is_late(&self) -> bool {
        self.late.is_some()
    }

    /// Returns the next event by the deadline. Events that arrived earlier are returned even after
    /// it.
    pub async fn next(&mut self, deadline: Instant) -> Next {
        loop {
            if let Some(next) = self.next_or_foreign(deadline).await {
                return next;
            }
        }
    }

    /// Returns the next event. `None` for the event of an object that the watch does not select.
    async fn next_or_foreign(&mut self, deadline: Instant) -> Option<Next> {
        if !self.arrived(deadline).await {
            return Some(Next::Deadline);
        }
        let Some(reader) = &mut self.reader else {
            let unopened = || WatchEnd::Broken("the watch was not opened".to_owned());
            return Some(Next::End(self.end.clone().unwrap_or_else(unopened)));
        };
        // `timeout_at` polls the receiver first, so that the deadline loses no event.
        Some(match timeout_at(deadline, reader.items.recv()).await {
            // An event may have arrived without memory for it.
            Err(_) if reader.starved.load(Ordering::Relaxed) => {
                let spent = reader.budget.exhausted();
                self.ended(WatchEnd::Budget(spent))
            }
            Err(_) => Next::Deadline,
            Ok(Some(reader::Item::Document(document))) => {
                return self.take(&document, deadline).await;
            }
            Ok(Some(reader::Item::End(end))) => self.ended(end),
            Ok(None) => self.ended(WatchEnd::Broken("the reader of the watch panicked".to_owned())),
        })
    }

    async fn take(&mut self, document: &reader::Document, deadline: Instant) -> Option<Next> {
        let (weight, free) = (document.weight(), self.free);
        let reader = self.reader.as_ref()?;
        let held = timeout_at(deadline, reader.budget.hold_beyond(&mut self.free, weight)).await;
        let held = match held.unwrap_or_else(|_| Err(reader.budget.exhausted())) {
            Ok(held) => held,
            Err(spent) => return Some(self.ended(WatchEnd::Budget(spent))),
        };
        let (mut event, fault) = match document.event(reader.origin) {
            Ok(event) => event,
            Err(end) => return Some(self.ended(end)),
        };
        if self.isolation.as_ref().is_some_and(|own| own.is_foreign(&event.object)) {
            self.last_foreign = Some(Instant::now());
            self.free = free;
            return None;
        }
        if !self.keep.is_empty() && event.kind != "ERROR" {
            event.object = Arc::new(kept(&event.object, &self.keep));
            self.free = free;
        } else if let Some(held) = held {
            match &mut self.held {
                Some(all) => all.join(held),
                None => self.held = Some(held),
            }
        }
        self.fault = self.fault.take().or(fault);
        self.events.push(event.clone());
        Some(Next::Event(event))
    }

    /// Reports whether the server sent an event of an unselected object since `start`.
    pub(crate) fn met_foreign_events(&self, start: Instant) -> bool {
        self.last_foreign.is_some_and(|last| last >= start)
    }

    /// Continues with another watch that resumes this one.
    pub fn go_on(&mut self, mut other: Self) {
        self.end = other.end.take();
        self.reader = other.reader.take();
    }

    /// Returns the events read so far, including bookmarks.
    pub fn events(&self) -> &[WatchEvent] {
        &self.events
    }

    /// Closes the watch. Unread events are lost.
    pub fn close(&mut self) {
        self.late = None;
        if self.reader.take().is_some() {
            self.end.get_or_insert(WatchEnd::Client);
        }
    }

    /// Returns the exchange with the events read so far.
    pub fn snapshot(&self) -> Exchange {
        let mut exchange = self.head.clone();
        if let Outcome::Response(received) = &mut exchange.outcome
            && (self.end.is_some() || self.reader.is_some())
        {
            received.events.clone_from(&self.events);
            received.end.clone_from(&self.end);
            received.json_fault.clone_from(&self.fault);
            exchange.took = self.opened.elapsed();
        }
        exchange
    }

    /// Closes the watch. Returns the exchange with its reserved memory.
    pub(crate) fn finish(&mut self) -> Exchange {
        self.close();
        let mut exchange = self.snapshot();
        if let (Outcome::Response(received), Some(held)) = (&mut exchange.outcome, self.held.take())
        {
            received.body = kept_with(received.body.clone(), held);
        }
        exchange
    }

    fn ended(&mut self, end: WatchEnd) -> Next {
        self.reader = None;
        self.end = Some(end.clone());
        Next::End(end)
    }

    /// Creates a watch that did not open.
    pub(crate) fn rejected(head: Exchange) -> Self {
        Self {
            head,
            events: Vec::new(),
            end: None,
            fault: None,
            opened: Instant::now(),
            reader: None,
            keep: Vec::new(),
            held: None,
            free: reader::FREE,
            late: None,
            isolation: None,
            last_foreign: None,
        }
    }

    /// Creates a watch with these events.
    #[cfg(test)]
    pub(crate) fn seen(head: Exchange, events: Vec<WatchEvent>) -> Self {
        Self { events, ..Self::rejected(head) }
    }

    /// Starts to read a watch.
    pub(crate) fn reading(
        head: Exchange,
        body: OpenBody,
        origin: Instant,
        limits: &Limits,
        budget: &MemoryBudget,
    ) -> Self {
        let (to, items) = mpsc::channel(BACKLOG);
        let documents = documents::Documents::new(limits.max_event, limits.max_watch_bytes);
        let sender = reader::DocumentSender::new(budget, limits.max_event, to);
        let starved = sender.starved();
        let task = tokio::spawn(reader::read(body, documents, sender));
        let reader = Reader { items, task, origin, budget: budget.clone(), starved };
        let isolation = Isolation::of(&head.request.target);
        Self { reader: Some(reader), isolation, ..Self::rejected(head) }
    }
}

/// Returns an object with only these members.
fn kept(object: &Value, pointers: &[String]) -> Value {
    let mut kept = Value::Object(Map::new());
    for pointer in pointers {
        let Some(value) = object.pointer(pointer) else { continue };
        let mut place = &mut kept;
        for member in pointer.split('/').skip(1) {
            place = &mut place[member.replace("~1", "/").replace("~0", "~")];
        }
        *place = value.clone();
    }
    kept
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_kept_stands_where_it_stood() {
        let object = json!({
            "kind": "Pod", "metadata": {"name": "a", "uid": "u", "labels": {"x/y": "1", "z": "2"}},
        });
        let pointers =
            ["/metadata/name", "/metadata/labels/x~1y", "/metadata/missing"].map(str::to_owned);
        assert_eq!(
            kept(&object, &pointers),
            json!({"metadata": {"name": "a", "labels": {"x/y": "1"}}})
        );
    }
}
