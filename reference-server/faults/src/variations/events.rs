//! Changes the events of a watch: other forms of the objects, more bookmarks, an early end.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream};
use kubeproof_apimachinery::request::Query;
use rand::RngExt;
use rand::rngs::StdRng;
use serde_json::{Value, json};
use tokio::time::{Instant, timeout_at};

use super::responses::ResponseRewriter;
use super::{Variation, Variations};
use crate::document::ends_initial_events;

/// The number of events after which a watch may end.
const LAST_EVENT: std::ops::Range<usize> = 4..40;
/// The number of milliseconds after which a watch may end.
const LAST_MOMENT: std::ops::Range<u64> = 150..1500;

pub(super) struct Events {
    variations: Variations,
    rewriter: Arc<ResponseRewriter>,
    body: BoxStream<'static, Bytes>,
    /// The beginning of an incomplete line.
    rest: BytesMut,
    pending: VecDeque<Bytes>,
    /// The client requested bookmarks.
    bookmarks: bool,
    /// The initial events are not complete. The client waits for the bookmark at their end.
    initial: bool,
    /// The early end of the stream: after this number of events, or at this time.
    end: Option<(usize, Instant)>,
}

impl Events {
    pub(super) fn new(
        variations: Variations,
        rewriter: Arc<ResponseRewriter>,
        body: BoxStream<'static, Bytes>,
        query: &Query,
        random: &mut StdRng,
    ) -> Self {
        let end = variations.on(Variation::WatchesEnd).then(|| {
            let moment = Duration::from_millis(random.random_range(LAST_MOMENT));
            (random.random_range(LAST_EVENT), Instant::now() + moment)
        });
        Self {
            variations,
            rewriter,
            body,
            rest: BytesMut::new(),
            pending: VecDeque::new(),
            bookmarks: query.flag("allowWatchBookmarks"),
            initial: query.flag("sendInitialEvents"),
            end,
        }
    }

    /// Returns the chunks for the client.
    pub(super) fn into_stream(self) -> BoxStream<'static, Bytes> {
        stream::unfold(self, |mut events| async move {
            let chunk = events.next().await?;
            Some((chunk, events))
        })
        .boxed()
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
            let chunk = match end {
                Some((0, _)) => return None,
                Some((_, moment)) => timeout_at(moment, self.body.next()).await.ok()??,
                None => self.body.next().await?,
            };
            self.rest.extend_from_slice(&chunk);
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
        self.rewriter.document(&mut event["object"]);
        let ends_initial = ends_initial_events(&event);
        if ends_initial {
            self.initial = false;
        }
        let is_bookmark = event["type"] == "BOOKMARK";
        if is_bookmark && !ends_initial && self.variations.on(Variation::FewBookmarks) {
            return;
        }
        let bookmark = self.bookmark(&event);
        self.pending.push_back(self.framed(&event));
        self.pending.extend(bookmark);
    }

    /// Returns the text of an event. A watch is a stream of JSON documents, so the newline is
    /// optional.
    fn framed(&self, event: &Value) -> Bytes {
        let end = if self.variations.on(Variation::EventsConcatenated) { "" } else { "\n" };
        format!("{event}{end}").into()
    }

    /// Returns a bookmark after an event. ADDED events get none: initial events come in no order of
    /// versions.
    fn bookmark(&self, event: &Value) -> Option<Bytes> {
        let wanted =
            self.variations.on(Variation::ManyBookmarks) && self.bookmarks && !self.initial;
        let object = &event["object"];
        let orders = matches!(event["type"].as_str(), Some("MODIFIED" | "DELETED"))
            && object["kind"] != "Table";
        (wanted && orders).then(|| {
            let metadata = json!({ "resourceVersion": object["metadata"]["resourceVersion"] });
            let bare = json!({
                "kind": object["kind"], "apiVersion": object["apiVersion"],
                "metadata": metadata,
            });
            self.framed(&json!({ "type": "BOOKMARK", "object": bare }))
        })
    }
}
