//! Watches: each one is a cursor on the log of a table.
//!
//! A watch has no buffer. It reads the log when its client reads more, so a slow client delays no
//! other client. If the log no longer contains the next version, the watch ends with an expired
//! error. A start from a version that is too old ends in the same way.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use kubeproof_streaming::{Protocol, websocket};
use rand::RngExt;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::yield_now;
use tokio::time::{Instant, Sleep, sleep_until};

use super::{Call, convert, get};
use crate::config::disabled::Capability;
use crate::config::disabled::DisabledCapabilities;
use crate::endpoints::present;
use crate::endpoints::selection::Selection;
use crate::http::negotiate::{Encoding, Form, Representation, Target};
use crate::http::protobuf;
use crate::http::respond::ApiResponse;
use crate::registry::ResourceType;
use crate::server::ApiServer;
use kubeproof_apimachinery::object::Object;
use kubeproof_apimachinery::request::Query;
use kubeproof_apimachinery::schema::FieldError;
use kubeproof_apimachinery::serializer::protobuf::STREAM_MEDIA_TYPE;
use kubeproof_apimachinery::status::ApiError;
use kubeproof_apimachinery::table::IncludeObject;
use kubeproof_apimachinery::table::MetaVersion;
use kubeproof_storage::{Change, EVENT_END, Event, Stored};

/// The number of events to read from the log at once.
const BATCH: usize = 128;
/// The default duration of a watch in seconds.
const LIFETIME: std::ops::Range<u64> = 1800..3600;
/// The size after which a chunk takes no more events, in bytes. It is that of a record of TLS.
const CHUNK: usize = 16 * 1024;
/// The interval of bookmarks for a watch without events.
const BOOKMARK_INTERVAL: Duration = Duration::from_millis(500);

pub(super) fn handle(mut call: Call) -> Result<ApiResponse, ApiError> {
    let disabled = call.api.disabled_capabilities;
    let upgrade = call.upgrade.take().filter(|upgrade| {
        upgrade.protocol() == Protocol::Websocket && !disabled.on(Capability::WebsocketWatches)
    });
    let call = &call;
    let representation = call.accept(Target::Watch)?;
    let options = WatchOptions::parse(&call.query, disabled)?;
    let selection = Selection::parse(&call.query, &call.ty)?;
    let mut watcher =
        Watcher::new(call, representation, selection, present::include(&call.query)?, &options);
    watcher.framed = upgrade.is_none();
    watcher.begin(&options);
    let ty = &call.ty;
    let sent = call.api.metrics.watch_events(&ty.group, &ty.version, &ty.plural);
    let chunks = futures_util::stream::unfold((watcher, sent), |(mut watcher, sent)| async move {
        let (chunk, events) = watcher.next_chunk().await?;
        sent.inc_by(events);
        Some((chunk, (watcher, sent)))
    });
    let chunks = Box::pin(chunks);
    let protobuf = representation.encoding == Encoding::Protobuf;
    Ok(match upgrade {
        None if protobuf => {
            ApiResponse { content_type: STREAM_MEDIA_TYPE, ..ApiResponse::stream(chunks) }
        }
        None => ApiResponse::stream(chunks),
        Some(upgrade) if protobuf => call.switch(websocket::serve_binary_watch(upgrade, chunks)),
        Some(upgrade) => call.switch(websocket::serve_watch(upgrade, chunks)),
    })
}

#[derive(Debug)]
struct WatchOptions {
    /// None and 0 start with the existing objects.
    version: Option<u64>,
    bookmarks: bool,
    initial_events: Option<bool>,
    timeout: Option<u64>,
}

impl WatchOptions {
    fn parse(query: &Query, disabled: DisabledCapabilities) -> Result<Self, ApiError> {
        let initial_events =
            query.get("sendInitialEvents").map(|_| query.flag("sendInitialEvents"));
        let mut errors = Vec::new();
        let mut forbid =
            |why: &str| errors.push(FieldError::forbidden("resourceVersionMatch", why));
        let found = query.text("resourceVersionMatch");
        match (initial_events, found) {
            (Some(_), Some("NotOlderThan")) | (None, None) => {}
            (Some(_), _) => {
                forbid("sendInitialEvents requires setting resourceVersionMatch to NotOlderThan");
            }
            (None, Some(_)) => {
                forbid(
                    "resourceVersionMatch is forbidden for watch unless sendInitialEvents is \
                     provided",
                );
            }
        }
        if initial_events.is_some() && disabled.on(Capability::StreamingLists) {
            let why =
                "sendInitialEvents is forbidden for watch: this server has no streaming lists";
            return Err(ApiError::invalid_options(
                "ListOptions",
                &[FieldError::forbidden("sendInitialEvents", why)],
            ));
        }
        if query.text("continue").is_some() {
            forbid("resourceVersionMatch is forbidden when continue is provided");
        }
        if let Some(found) = found.filter(|found| *found != "NotOlderThan") {
            let supported = ["NotOlderThan".into()];
            errors.push(FieldError::not_supported(
                "resourceVersionMatch",
                &found.into(),
                &supported,
            ));
        }
        if !errors.is_empty() {
            return Err(ApiError::invalid_options("ListOptions", &errors));
        }
        Ok(Self {
            version: get::version(query)?,
            bookmarks: query.flag("allowWatchBookmarks")
                && !disabled.on(Capability::WatchBookmarks),
            initial_events,
            timeout: query
                .number("timeoutSeconds")?
                .and_then(|seconds| u64::try_from(seconds).ok()),
        })
    }
}

struct Watcher {
    api: Arc<ApiServer>,
    ty: Arc<ResourceType>,
    form: Form,
    encoding: Encoding,
    /// Protobuf events have their length in front. The messages of WebSocket have a length.
    framed: bool,
    selection: Selection,
    namespace: Option<String>,
    /// A legacy watch path may name one object.
    name: Option<String>,
    /// The watch has sent everything up to this version.
    cursor: u64,
    pending: VecDeque<Pending>,
    wake: watch::Receiver<u64>,
    deadline: Pin<Box<Sleep>>,
    bookmarks: Option<Bookmarks>,
    ended: bool,
    /// The parts of an object in the rows of tables.
    include: IncludeObject,
    names_columns: bool,
}

/// An event that the watch sends next.
enum Pending {
    Event(Bytes),
    /// An object from before the watch, or one that a webhook must convert. It is encoded when the
    /// client reads.
    Object(Change, Arc<Stored>),
}

/// The time and version of the last bookmark.
struct Bookmarks {
    next: Instant,
    last: u64,
}

impl Watcher {
    fn new(
        call: &Call,
        representation: Representation,
        selection: Selection,
        include: IncludeObject,
        options: &WatchOptions,
    ) -> Self {
        let now = Instant::now();
        let seconds = match options.timeout {
            Some(seconds) if seconds > 0 => seconds,
            _ => rand::rng().random_range(LIFETIME),
        };
        let named = call.info.legacy_watch && !call.info.name.is_empty();
        Self {
            api: call.api.clone(),
            ty: call.ty.clone(),
            form: representation.form,
            encoding: representation.encoding,
            framed: true,
            selection,
            namespace: call.scope().map(str::to_owned),
            name: named.then(|| call.info.name.clone()),
            cursor: 0,
            pending: VecDeque::new(),
            wake: call.api.store.subscribe(&call.ty.table),
            deadline: Box::pin(sleep_until(now + Duration::from_secs(seconds))),
            bookmarks: options
                .bookmarks
                .then_some(Bookmarks { next: now + BOOKMARK_INTERVAL, last: 0 }),
            ended: false,
            include,
            names_columns: true,
        }
    }

    /// Starts at the requested version.
    fn begin(&mut self, options: &WatchOptions) {
        let version = options.version.filter(|version| *version > 0);
        let initial = options.initial_events.unwrap_or(version.is_none());
        if let (false, Some(version)) = (initial, version) {
            self.cursor = version;
            if let Some(bookmarks) = &mut self.bookmarks {
                bookmarks.last = version;
            }
            return;
        }
        let (objects, revision) =
            self.api.store.snapshot(&self.ty.table, self.namespace.as_deref());
        self.cursor = revision;
        if !initial {
            return;
        }
        let streams_a_list = options.initial_events == Some(true) && self.bookmarks.is_some();
        for object in objects {
            if self.selects(&object) {
                self.pending.push_back(Pending::Object(Change::Added, object));
            }
        }
        if streams_a_list {
            self.bookmark(true);
        }
    }

    /// Waits for an event. Returns it with all further events that are ready, and their number.
    /// A message of WebSocket has one event.
    async fn next_chunk(&mut self) -> Option<(Bytes, u64)> {
        let first = self.next().await?;
        if !self.framed || self.pending.is_empty() {
            return Some((first, 1));
        }
        let mut chunk = BytesMut::from(first);
        let mut events = 1;
        while chunk.len() < CHUNK {
            match self.pending.pop_front_if(|next| matches!(next, Pending::Event(_))) {
                Some(Pending::Event(event)) => chunk.extend_from_slice(&event),
                Some(Pending::Object(..)) | None => break,
            }
            events += 1;
        }
        Some((chunk.freeze(), events))
    }

    async fn next(&mut self) -> Option<Bytes> {
        loop {
            match self.pending.pop_front() {
                Some(Pending::Event(chunk)) => return Some(chunk),
                Some(Pending::Object(change, object)) => {
                    return Some(self.convert(change, &object).await);
                }
                None => {}
            }
            if self.ended {
                return None;
            }
            self.wake.mark_unchanged();
            if self.read() {
                continue;
            }
            let deadline = self.deadline.deadline();
            let bookmark_at = self.bookmarks.as_ref().map_or(deadline, |bookmarks| bookmarks.next);
            tokio::select! {
                () = &mut self.deadline => {
                    self.bookmark(false);
                    self.ended = true;
                }
                () = sleep_until(bookmark_at), if self.bookmarks.is_some() => self.bookmark(false),
                woken = self.wake.changed() => {
                    self.ended |= woken.is_err();
                    // Other writes that are ready go first, so that a chunk has their events, too.
                    yield_now().await;
                }
            }
        }
    }

    /// Reads new events from the log. Returns false if there are none.
    fn read(&mut self) -> bool {
        let Ok(news) = self.api.store.news(&self.ty.table, self.cursor, BATCH) else {
            let message = format!("too old resource version: {}", self.cursor);
            let status = ApiError::expired(message).to_status();
            let event = self.event("ERROR", &status);
            self.pending.push_back(Pending::Event(event));
            self.ended = true;
            return true;
        };
        self.cursor = news.revision;
        for event in &news.events {
            self.push(event);
        }
        !news.events.is_empty()
    }

    /// Sends an event if the watch selects its object, with the type that applies to this watch.
    fn push(&mut self, event: &Event) {
        let now = event.change != Change::Deleted && self.selects(&event.object);
        let before = event.previous.as_ref().is_some_and(|previous| self.selects(previous));
        let (change, object) = match (before, now) {
            (false, false) => return,
            (false, true) => (Change::Added, Arc::clone(&event.object)),
            (true, true) => (Change::Modified, Arc::clone(&event.object)),
            (true, false) if event.change == Change::Deleted => {
                (Change::Deleted, Arc::clone(&event.object))
            }
            // The object left the selection: send its last selected state with the version of the
            // change.
            (true, false) => match &event.previous {
                Some(previous) => {
                    (Change::Deleted, Arc::new(previous.at(event.revision, Change::Deleted)))
                }
                None => return,
            },
        };
        let pending = if self.ty.conversion_of(&object).is_some() {
            Pending::Object(change, object)
        } else {
            Pending::Event(self.encode(change, &object))
        };
        self.pending.push_back(pending);
    }

    /// Encodes an object, which a webhook may have to convert. An error ends the watch.
    async fn convert(&mut self, change: Change, object: &Stored) -> Bytes {
        if self.ty.conversion_of(object).is_none() {
            return self.encode(change, object);
        }
        match convert::load(&self.api, &self.ty, object).await {
            Ok(value) => self.encode_value(change, value),
            Err(error) => {
                self.ended = true;
                self.pending.clear();
                self.event("ERROR", &error.to_status())
            }
        }
    }

    fn selects(&self, object: &Stored) -> bool {
        let namespace =
            self.namespace.as_ref().is_none_or(|namespace| object.key.namespace == *namespace);
        let name = self.name.as_ref().is_none_or(|name| object.key.name == *name);
        let selected = self.selection.matches(object);
        namespace && name && selected
    }

    fn encode(&mut self, change: Change, object: &Stored) -> Bytes {
        let json = self.encoding == Encoding::Json;
        let is_plain = matches!(self.form, Form::Plain | Form::AggregatedDiscovery);
        if is_plain && json && self.ty.serves_as_stored(object) {
            // All watches share this text, unless the event has another type for this watch.
            return object.line_as(change);
        }
        let object = self.ty.load(object);
        self.encode_value(change, object)
    }

    fn encode_value(&mut self, change: Change, object: Value) -> Bytes {
        let shown = match self.form {
            Form::Plain | Form::AggregatedDiscovery => object,
            Form::Metadata(version) => present::partial(&object, version),
            Form::Table(version) => self.row(&object, version),
        };
        self.event(change.name(), &shown)
    }

    /// Encodes an event.
    fn event(&self, name: &str, object: &Value) -> Bytes {
        if self.encoding == Encoding::Json {
            return format!(r#"{{"type":"{name}","object":{object}{EVENT_END}"#).into();
        }
        let event = protobuf::watch_event(name, object).or_else(|error| {
            let error = ApiError::internal(format!("protobuf encoding failed: {error}"));
            protobuf::watch_event("ERROR", &error.to_status())
        });
        let event = event.unwrap_or_default();
        // An event fits into a request body and some metadata.
        let length = u32::try_from(event.len()).unwrap_or_default().to_be_bytes();
        if self.framed { [length.as_slice(), &event].concat().into() } else { event.into() }
    }

    /// Returns a table of one row. Only the first table of a stream contains the columns.
    fn row(&mut self, object: &Value, version: MetaVersion) -> Value {
        let meta = json!({ "resourceVersion": object.meta("resourceVersion") });
        let view = present::view(&self.ty, version, self.include);
        let mut table = view.render(&meta, [object]);
        if !std::mem::take(&mut self.names_columns) {
            table["columnDefinitions"] = Value::Null;
        }
        table
    }

    /// Sends a bookmark if there is a new version.
    fn bookmark(&mut self, initial_end: bool) {
        let Some(bookmarks) = &mut self.bookmarks else { return };
        bookmarks.next = Instant::now() + BOOKMARK_INTERVAL;
        if bookmarks.last >= self.cursor && !initial_end {
            return;
        }
        bookmarks.last = self.cursor;
        let mut metadata = json!({ "resourceVersion": self.cursor.to_string() });
        if initial_end {
            metadata["annotations"] = json!({ "k8s.io/initial-events-end": "true" });
        }
        let (kind, api_version) = match self.form {
            Form::Metadata(version) => ("PartialObjectMetadata", version.api_version().to_owned()),
            _ => (self.ty.kind.as_str(), self.ty.api_version()),
        };
        let mut object = json!({ "kind": kind, "apiVersion": api_version, "metadata": metadata });
        if let Form::Table(version) = self.form {
            object = self.row(&object, version);
        }
        let event = self.event("BOOKMARK", &object);
        self.pending.push_back(Pending::Event(event));
    }
}
