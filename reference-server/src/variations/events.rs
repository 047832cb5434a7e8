//! The stream of a watch in another lawful form: its events dressed, more bookmarks, an early end.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::Stream;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use rand::RngExt;
use rand::rngs::StdRng;
use serde_json::{Value, json};
use tokio::time::{Instant, timeout_at};

use super::answer::Dresser;
use super::{Variation, Variations};
use crate::query::Query;

/// Events after which a watch may end.
const LAST_EVENT: std::ops::Range<usize> = 4..40;
/// Milliseconds after which a watch may end.
const LAST_MOMENT: std::ops::Range<u64> = 150..1500;

/// A stream of events on its way through the front.
pub(super) struct Events {
    variations: Variations,
    dresser: Arc<Dresser>,
    body: Incoming,
    /// The beginning of a line whose end has not come.
    rest: BytesMut,
    pending: VecDeque<Bytes>,
    /// Bookmarks were asked for.
    bookmarks: bool,
    /// The initial events are being sent, whose end the client waits for.
    initial: bool,
    /// When the stream ends before its time: after so many events, or at this moment.
    end: Option<(usize, Instant)>,
}

impl Events {
    pub(super) fn new(
        variations: Variations,
        dresser: Arc<Dresser>,
        body: Incoming,
        query: &Query,
        random: &mut StdRng,
    ) -> Self {
        let end = variations.on(Variation::WatchesEnd).then(|| {
            let moment = Duration::from_millis(random.random_range(LAST_MOMENT));
            (random.random_range(LAST_EVENT), Instant::now() + moment)
        });
        Self {
            variations,
            dresser,
            body,
            rest: BytesMut::new(),
            pending: VecDeque::new(),
            bookmarks: query.flag("allowWatchBookmarks"),
            initial: query.flag("sendInitialEvents"),
            end,
        }
    }

    /// The chunks that the client gets.
    pub(super) fn into_stream(self) -> impl Stream<Item = Bytes> + Send {
        futures_util::stream::unfold(self, |mut events| async move {
            let chunk = events.next().await?;
            Some((chunk, events))
        })
    }

    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(line) = self.pending.pop_front() {
                if let Some((left, _)) = &mut self.end {
                    *left = left.saturating_sub(1);
                }
                return Some(line);
            }
            let end = self.end.filter(|_| !self.initial);
            let frame = match end {
                Some((0, _)) => return None,
                Some((_, moment)) => timeout_at(moment, self.body.frame()).await.ok()??,
                None => self.body.frame().await?,
            };
            // What went wrong behind the front ends the stream, as it would without it.
            let Ok(data) = frame.ok()?.into_data() else { continue };
            self.rest.extend_from_slice(&data);
            while let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
                let line = self.rest.split_to(end + 1).freeze();
                self.line(&line);
            }
        }
    }

    fn line(&mut self, line: &Bytes) {
        let Ok(mut event) = serde_json::from_slice::<Value>(line) else {
            self.pending.push_back(line.clone());
            return;
        };
        self.dresser.document(&mut event["object"]);
        let ends_initial = event.pointer("/object/metadata/annotations/k8s.io~1initial-events-end").is_some();
        if ends_initial {
            self.initial = false;
        }
        let is_bookmark = event["type"] == "BOOKMARK";
        if is_bookmark && !ends_initial && self.variations.on(Variation::FewBookmarks) {
            return;
        }
        let bookmark = self.bookmark(&event);
        self.pending.push_back(format!("{event}\n").into());
        self.pending.extend(bookmark);
    }

    /// How far the stream has come. Not after ADDED, which may be of what was there before and tells no order.
    fn bookmark(&self, event: &Value) -> Option<Bytes> {
        let wanted = self.variations.on(Variation::ManyBookmarks) && self.bookmarks && !self.initial;
        let object = &event["object"];
        let orders =
            matches!(event["type"].as_str(), Some("MODIFIED" | "DELETED")) && object["kind"] != "Table";
        (wanted && orders).then(|| {
            let metadata = json!({ "resourceVersion": object["metadata"]["resourceVersion"] });
            let bare =
                json!({ "kind": object["kind"], "apiVersion": object["apiVersion"], "metadata": metadata });
            format!("{}\n", json!({ "type": "BOOKMARK", "object": bare })).into()
        })
    }
}
