//! An open watch: its events are read by a task of their own, so that a case which looks away holds up neither
//! the connection nor the server, until there is no room for more: then the server is made to wait.

#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzing;
mod lines;
mod reader;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Map, Value};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};

use crate::exchange::{Exchange, Outcome, WatchEnd, WatchEvent};
use crate::transport::{Budget, Held, Limits, OpenBody, kept as kept_with};

/// Events that wait to be looked at. Beyond, the server is made to wait.
const BACKLOG: usize = 4 << 10;

/// A watch, from the head of its answer to its end. Dropping it hangs up.
#[derive(Debug)]
pub struct OpenWatch {
    /// What was sent, and the head of the answer; a complete answer if it is not a 200.
    pub head: Exchange,
    events: Vec<WatchEvent>,
    end: Option<WatchEnd>,
    fault: Option<String>,
    opened: Instant,
    reader: Option<Reader>,
    /// Pointers of what is kept of each object; all of it when there are none.
    keep: Vec<String>,
    /// Memory for the events.
    held: Option<Held>,
    /// Bytes of events that nothing is held for yet.
    free: usize,
}

#[derive(Debug)]
struct Reader {
    items: mpsc::Receiver<reader::Item>,
    task: JoinHandle<()>,
    origin: Instant,
    budget: Budget,
    /// The task has a line that there is no room for.
    starves: Arc<AtomicBool>,
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// What comes next on a watch.
#[derive(Clone, Debug)]
pub enum Next {
    /// An event.
    Event(WatchEvent),
    /// Nothing more, ever.
    End(WatchEnd),
    /// Nothing before the deadline.
    Deadline,
}

impl OpenWatch {
    /// Keeps of each object only what these JSON Pointers lead to, so that many watches fit into memory.
    #[must_use]
    pub fn keeping(mut self, pointers: &[String]) -> Self {
        self.keep = pointers.to_vec();
        self
    }

    /// Whether the server answered with a stream.
    pub fn is_open(&self) -> bool {
        self.reader.is_some()
    }

    /// The next event, waited for until the deadline. Events that came before are given after it, too.
    pub async fn next(&mut self, deadline: Instant) -> Next {
        let Some(reader) = &mut self.reader else {
            let end = self.end.clone();
            return Next::End(end.unwrap_or_else(|| WatchEnd::Broken("the watch was not opened".to_owned())));
        };
        // The timeout polls what it waits for first, so what is there already is never lost to a deadline.
        match timeout_at(deadline, reader.items.recv()).await {
            // Something may have come that there was no room for.
            Err(_) if reader.starves.load(Ordering::Relaxed) => {
                let spent = reader.budget.spent();
                self.ended(WatchEnd::Budget(spent))
            }
            Err(_) => Next::Deadline,
            Ok(Some(reader::Item::Line(line))) => self.take(&line, deadline).await,
            Ok(Some(reader::Item::End(end))) => self.ended(end),
            Ok(None) => self.ended(WatchEnd::Broken("the reader of the watch died".to_owned())),
        }
    }

    async fn take(&mut self, line: &reader::Line, deadline: Instant) -> Next {
        let (weight, free) = (line.weight(), self.free);
        let Some(reader) = &self.reader else { return Next::Deadline };
        let held = timeout_at(deadline, reader.budget.hold_beyond(&mut self.free, weight)).await;
        let held = match held.unwrap_or_else(|_| Err(reader.budget.spent())) {
            Ok(held) => held,
            Err(spent) => return self.ended(WatchEnd::Budget(spent)),
        };
        let (mut event, fault) = match line.event(reader.origin) {
            Ok(event) => event,
            Err(reason) => return self.ended(WatchEnd::Broken(reason)),
        };
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
        Next::Event(event)
    }

    /// Goes on with the stream of another, which was opened where this one ended.
    pub fn go_on(&mut self, mut other: Self) {
        self.end = other.end.take();
        self.reader = other.reader.take();
    }

    /// The events read so far, bookmarks included.
    pub fn events(&self) -> &[WatchEvent] {
        &self.events
    }

    /// Hangs up. What was not read is gone.
    pub fn close(&mut self) {
        if self.reader.take().is_some() {
            self.end.get_or_insert(WatchEnd::Client);
        }
    }

    /// What was sent, the head, the events read, and the end if there was one.
    pub fn snapshot(&self) -> Exchange {
        let mut exchange = self.head.clone();
        if let Outcome::Answered(received) = &mut exchange.outcome
            && (self.end.is_some() || self.reader.is_some())
        {
            received.events.clone_from(&self.events);
            received.end.clone_from(&self.end);
            received.json_fault.clone_from(&self.fault);
            exchange.took = self.opened.elapsed();
        }
        exchange
    }

    /// Hangs up, and gives what there was, with the memory that it takes.
    pub(crate) fn finish(&mut self) -> Exchange {
        self.close();
        let mut exchange = self.snapshot();
        if let (Outcome::Answered(received), Some(held)) = (&mut exchange.outcome, self.held.take()) {
            received.body = kept_with(received.body.clone(), held);
        }
        exchange
    }

    fn ended(&mut self, end: WatchEnd) -> Next {
        self.reader = None;
        self.end = Some(end.clone());
        Next::End(end)
    }

    /// A watch that the server did not begin: the exchange broke, or is an ordinary answer.
    pub(crate) fn refused(head: Exchange) -> Self {
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
        }
    }

    /// A watch that has given these events.
    #[cfg(test)]
    pub(crate) fn seen(head: Exchange, events: Vec<WatchEvent>) -> Self {
        Self { events, ..Self::refused(head) }
    }

    /// A stream whose head has come.
    pub(crate) fn reading(
        head: Exchange,
        body: OpenBody,
        origin: Instant,
        limits: &Limits,
        budget: &Budget,
    ) -> Self {
        let (to, items) = mpsc::channel(BACKLOG);
        let lines = lines::Lines::new(limits.max_line, limits.max_watch_bytes);
        let teller = reader::Teller::new(budget, limits.max_line, to);
        let starves = teller.starves();
        let task = tokio::spawn(reader::read(body, lines, teller));
        let reader = Reader { items, task, origin, budget: budget.clone(), starves };
        Self { reader: Some(reader), ..Self::refused(head) }
    }
}

/// The members of an object at these pointers, where they stand.
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
        let object =
            json!({"kind": "Pod", "metadata": {"name": "a", "uid": "u", "labels": {"x/y": "1", "z": "2"}}});
        let pointers = ["/metadata/name", "/metadata/labels/x~1y", "/metadata/missing"].map(str::to_owned);
        assert_eq!(kept(&object, &pointers), json!({"metadata": {"name": "a", "labels": {"x/y": "1"}}}));
    }
}
