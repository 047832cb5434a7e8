//! A watcher: follows the objects from many versions until the last event of the round.

use std::sync::Arc;
use std::time::Duration;

use kubeproof_cases::case::Identity;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tokio::sync::watch;
use tokio::time::Instant;

use super::history::{Event, EventKind, Watch, WatchEnd};
use super::workload::Workload;
use crate::exchange::WatchEvent;
use crate::transport::Outgoing;
use crate::transport::watch::{Next, OpenWatch};

/// Time limit for the head of a response.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);

/// How often a watcher looks whether the round has ended.
const TICK: Duration = Duration::from_millis(100);

/// The pause after a watch that did not open.
const PAUSE: Duration = Duration::from_millis(20);

/// Most events of a watch that starts again at another version.
const EVENTS: usize = 120;

/// Follows the objects of a workload.
#[derive(Debug)]
pub(super) struct Watcher {
    pub(super) workload: Arc<Workload>,
    /// The first watcher is 0. It misses nothing if the server does not.
    pub(super) number: usize,
    /// The object that is created at the end of the round.
    pub(super) last: String,
    /// When the last object was created, and how long its event may take.
    pub(super) ended: watch::Receiver<Option<Instant>>,
    pub(super) stall: Duration,
    pub(super) seed: u64,
}

/// How a watcher goes on after a watch.
enum After {
    /// From the version of the last event.
    Resume,
    /// From any version that the server returned.
    Elsewhere,
    /// The round is over.
    Stop,
}

impl Watcher {
    /// Watches until the last event. Returns all watches in order.
    pub(super) async fn follow(self, from: String) -> Vec<Watch> {
        let mut random = StdRng::seed_from_u64(self.seed.wrapping_add(self.number as u64));
        let mut watches: Vec<Watch> = Vec::new();
        let mut from = from;
        loop {
            let most = if self.number == 0 { usize::MAX } else { random.random_range(1..EVENTS) };
            let (watch, after) = self.watch(&from, most).await;
            let last = watch.events.last().map(|event| event.state.version.clone());
            let is_resumed = random.random_ratio(1, 2);
            let is_fruitless = watch.events.is_empty();
            watches.push(watch);
            let any = self.workload.known_version(random.random_range(0..1024));
            from = match after {
                After::Stop => return watches,
                After::Resume if self.number == 0 || is_resumed => last.unwrap_or(from),
                After::Resume | After::Elsewhere => any.unwrap_or(from),
            };
            if is_fruitless {
                tokio::time::sleep(PAUSE).await;
            }
        }
    }

    async fn watch(&self, from: &str, most: usize) -> (Watch, After) {
        let start = self.workload.now();
        let target = format!(
            "{}?watch=true&allowWatchBookmarks=true&resourceVersion={from}",
            self.workload.collection
        );
        let request = Outgoing {
            method: "GET".to_owned(),
            target,
            headers: vec![("accept".to_owned(), "application/json".to_owned())],
            body: bytes::Bytes::new(),
            identity: Identity::Admin,
            exact: false,
        };
        let kept = ["/metadata/name", "/metadata/uid", "/metadata/resourceVersion"];
        let kept = kept.into_iter().chain([self.workload.field.pointer()]).map(str::to_owned);
        let open = self.workload.client.watch(request, Instant::now() + HEAD_TIMEOUT).await;
        let open = open.keeping(&kept.collect::<Vec<_>>());
        let mut watch = Watch {
            watcher: self.number,
            start,
            from: from.to_owned(),
            after: from.to_owned(),
            events: Vec::new(),
            end: WatchEnd::Complete,
        };
        let (end, after) = if open.is_open() {
            self.read(open, most, &mut watch.events).await
        } else {
            self.rejected(&open)
        };
        watch.end = end;
        (watch, after)
    }

    fn rejected(&self, open: &OpenWatch) -> (WatchEnd, After) {
        let words = open.head.in_words();
        match open.head.status() {
            _ if self.is_over() => (WatchEnd::Closed(words), After::Stop),
            410 => (WatchEnd::Expired, After::Elsewhere),
            0 | 429 | 500.. => (WatchEnd::Closed(words), After::Resume),
            code => (WatchEnd::Rejected(code, words), After::Stop),
        }
    }

    async fn read(
        &self,
        mut open: OpenWatch,
        most: usize,
        events: &mut Vec<Event>,
    ) -> (WatchEnd, After) {
        loop {
            let event = match open.next(Instant::now() + TICK).await {
                Next::Event(event) => event,
                Next::Deadline if self.is_over() => return (WatchEnd::Silent, After::Stop),
                Next::Deadline => continue,
                Next::End(_) if self.is_over() => {
                    return (WatchEnd::Closed("closed".to_owned()), After::Stop);
                }
                Next::End(end) => return (WatchEnd::Closed(format!("{end:?}")), After::Resume),
            };
            if event.kind == "ERROR" {
                let expired = event.object["code"] == 410;
                return if expired {
                    let after = if self.is_over() { After::Stop } else { After::Elsewhere };
                    (WatchEnd::Expired, after)
                } else {
                    (WatchEnd::Closed(event.object.to_string()), After::Resume)
                };
            }
            let Some(event) = self.event(&event) else { continue };
            let is_last = event.state.name == self.last;
            events.push(event);
            if is_last {
                return (WatchEnd::Complete, After::Stop);
            }
            if events.len() >= most {
                return (WatchEnd::Complete, After::Resume);
            }
        }
    }

    /// Returns an event of the workload. Others may use the namespace, too.
    fn event(&self, event: &WatchEvent) -> Option<Event> {
        let kind = match event.kind.as_str() {
            "ADDED" => EventKind::Added,
            "DELETED" => EventKind::Deleted,
            "BOOKMARK" => EventKind::Bookmark,
            _ => EventKind::Modified,
        };
        let state = self.workload.state(&event.object);
        let is_own = kind == EventKind::Bookmark || self.workload.is_own(&state);
        is_own.then_some(Event { at: event.at, kind, state })
    }

    /// Reports whether the last event is overdue.
    fn is_over(&self) -> bool {
        self.ended.borrow().is_some_and(|ended| ended.elapsed() >= self.stall)
    }
}
