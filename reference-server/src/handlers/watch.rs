//! A stream of events: a cursor on the log of the table.
//!
//! A watcher holds no buffer. It reads the log when its peer takes more, so a slow peer holds up nobody; when the log has gone on
//! without it, it hears that its version is expired and the stream ends, as for a version that was too old at the start.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use rand::RngExt;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::{Call, get};
use crate::api::Api;
use crate::negotiate::{Form, MetaVersion, Representation, Target};
use crate::object::Object;
use crate::present;
use crate::query::Query;
use crate::registry::ResourceType;
use crate::respond::Answer;
use crate::schema::FieldError;
use crate::selection::Selection;
use crate::status::ApiError;
use crate::store::{Change, EVENT_END, Event, Stored};
use crate::streams::{self, Wish};
use crate::table::IncludeObject;
use crate::{Cut, Cuts, Fault, Faults};

/// How many events are read from the log at once.
const BATCH: usize = 128;
/// How long a watch lasts when the client does not say, in seconds.
const LIFETIME: std::ops::Range<u64> = 1800..3600;
/// How often a watcher that saw nothing hears how far the log has come.
const BOOKMARK_INTERVAL: Duration = Duration::from_millis(500);

pub(super) fn handle(mut call: Call) -> Result<Answer, ApiError> {
    let mut upgrade = call.upgrade.take().filter(|upgrade| upgrade.wish() == Wish::Websocket);
    let call = &call;
    let representation = call.accept(Target::Watch)?;
    let options = WatchOptions::parse(&call.query, call.api.cuts, call.faults())?;
    let selection = Selection::parse(&call.query, &call.ty, call.faults());
    if let Err(error) = &selection
        && call.faults().on(Fault::RefusedWatchIsUpgraded)
        && let Some(upgrade) = upgrade.take()
    {
        let line = format!("{}\n", json!({ "type": "ERROR", "object": error.to_status() }));
        let chunks = Box::pin(futures_util::stream::iter([Bytes::from(line)]));
        return Ok(call.switch(streams::watch(upgrade, chunks, call.faults())));
    }
    let selection = selection?;
    let mut watcher = Watcher::new(call, representation, selection, present::include(&call.query)?, &options);
    watcher.begin(&options);
    let chunks = futures_util::stream::unfold(watcher, |mut watcher| async move {
        let chunk = watcher.next().await?;
        Some((chunk, watcher))
    });
    Ok(match upgrade {
        None => Answer::stream(Box::pin(chunks)),
        Some(upgrade) => call.switch(streams::watch(upgrade, Box::pin(chunks), call.faults())),
    })
}

/// What a watch is asked for.
#[derive(Debug)]
struct WatchOptions {
    /// None and 0 begin with what is there.
    version: Option<u64>,
    bookmarks: bool,
    initial_events: Option<bool>,
    timeout: Option<u64>,
}

impl WatchOptions {
    fn parse(query: &Query, cuts: Cuts, faults: Faults) -> Result<Self, ApiError> {
        let initial_events = query.get("sendInitialEvents").map(|_| query.flag("sendInitialEvents"));
        let mut errors = Vec::new();
        let mut forbid = |why: &str| errors.push(FieldError::forbidden("resourceVersionMatch", why));
        let found = query.text("resourceVersionMatch");
        match (initial_events, found) {
            (Some(_), Some("NotOlderThan")) | (None, None) => {}
            (Some(_), _) => forbid("sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"),
            (None, Some(_)) => {
                forbid("resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided");
            }
        }
        if initial_events.is_some() && cuts.on(Cut::StreamingLists) {
            let why = "sendInitialEvents is forbidden for watch: this server has no streaming lists";
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
            errors.push(FieldError::not_supported("resourceVersionMatch", &found.into(), &supported));
        }
        if !errors.is_empty() && !faults.on(Fault::InitialEventsUnchecked) {
            return Err(ApiError::invalid_options("ListOptions", &errors));
        }
        Ok(Self {
            version: get::version(query, faults)?,
            bookmarks: query.flag("allowWatchBookmarks") && !cuts.on(Cut::WatchBookmarks),
            initial_events,
            timeout: query.number("timeoutSeconds")?.and_then(|seconds| u64::try_from(seconds).ok()),
        })
    }
}

struct Watcher {
    api: Arc<Api>,
    ty: Arc<ResourceType>,
    form: Form,
    selection: Selection,
    namespace: Option<String>,
    /// A watch of the old form may name one object.
    name: Option<String>,
    /// Everything up to this version was sent.
    cursor: u64,
    pending: VecDeque<Pending>,
    wake: watch::Receiver<u64>,
    deadline: Instant,
    bookmarks: Option<Bookmarks>,
    ended: bool,
    /// The next event is left out.
    skips: bool,
    sent: u64,
    /// The version of the newest object among those sent.
    newest: u64,
    /// What the rows of tables carry besides their cells.
    include: IncludeObject,
    names_columns: bool,
    /// What the last event was.
    last: Option<Change>,
}

/// What is to be sent next.
enum Pending {
    Event(Bytes),
    /// An object that was there when the watch began: encoded when its turn comes, as they may be very many.
    Initial(Arc<Stored>),
}

/// When and what the last bookmark was.
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
            Some(seconds) if seconds > 0 && !call.faults().on(Fault::TimeoutSecondsIgnored) => seconds,
            _ => rand::rng().random_range(LIFETIME),
        };
        let named = call.info.legacy_watch && !call.info.name.is_empty();
        Self {
            api: call.api.clone(),
            ty: call.ty.clone(),
            form: representation.form,
            selection,
            namespace: call.scope().map(str::to_owned),
            name: named.then(|| call.info.name.clone()),
            cursor: 0,
            pending: VecDeque::new(),
            wake: call.api.store.subscribe(&call.ty.table),
            deadline: now + Duration::from_secs(seconds),
            bookmarks: options.bookmarks.then_some(Bookmarks { next: now + BOOKMARK_INTERVAL, last: 0 }),
            ended: false,
            skips: false,
            sent: 0,
            newest: 0,
            include,
            names_columns: true,
            last: None,
        }
    }

    fn faults(&self) -> Faults {
        self.api.faults
    }

    /// Goes to where the watch begins.
    fn begin(&mut self, options: &WatchOptions) {
        let version = options.version.filter(|version| *version > 0);
        let zero_is_now = options.version == Some(0) && self.faults().on(Fault::WatchFromZeroIsFromNow);
        let always = self.faults().on(Fault::InitialEventsAlways);
        let asked = options.initial_events.map(|asked| asked || always);
        let initial = asked.unwrap_or(version.is_none() && !zero_is_now);
        if let (false, Some(version)) = (initial, version) {
            self.cursor = version;
            if self.faults().on(Fault::WatchReplaysItsVersion) {
                self.cursor -= 1;
            }
            self.skips = self.faults().on(Fault::WatchSkipsFirstEvent);
            if let Some(bookmarks) = &mut self.bookmarks {
                bookmarks.last = version;
            }
            return;
        }
        let (objects, revision) = self.api.store.snapshot(&self.ty.table, self.namespace.as_deref());
        self.cursor = revision;
        if !initial || self.faults().on(Fault::WatchWithoutInitialEvents) {
            return;
        }
        let streams_a_list = options.initial_events == Some(true) && self.bookmarks.is_some();
        let early = streams_a_list && self.faults().on(Fault::InitialEventsEndEarly);
        if early {
            self.bookmark(true);
        }
        for object in objects {
            if self.selects(&object) {
                self.newest = self.newest.max(object.revision);
                self.pending.push_back(Pending::Initial(object));
            }
        }
        if streams_a_list && !early {
            self.bookmark(true);
        }
        if streams_a_list && self.faults().on(Fault::InitialEventsEndTwice) {
            self.bookmark(true);
        }
    }

    async fn next(&mut self) -> Option<Bytes> {
        loop {
            match self.pending.pop_front() {
                Some(Pending::Event(chunk)) => return Some(chunk),
                Some(Pending::Initial(object)) => return Some(self.encode(Change::Added, &object)),
                None => {}
            }
            if self.ended {
                return None;
            }
            self.wake.mark_unchanged();
            if self.read() {
                continue;
            }
            let bookmark_at = self.bookmarks.as_ref().map_or(self.deadline, |bookmarks| bookmarks.next);
            tokio::select! {
                () = sleep_until(self.deadline) => {
                    self.bookmark(false);
                    self.ended = true;
                }
                () = sleep_until(bookmark_at), if self.bookmarks.is_some() => self.bookmark(false),
                woken = self.wake.changed() => self.ended |= woken.is_err(),
            }
        }
    }

    /// Takes what is new from the log; false when that is nothing.
    fn read(&mut self) -> bool {
        let news = match self.api.store.news(&self.ty.table, self.cursor, BATCH) {
            Ok(news) => news,
            Err(_) if self.faults().on(Fault::ExpiredWatchContinues) => {
                self.cursor = self.api.store.revision();
                return true;
            }
            Err(_) if self.faults().on(Fault::ExpiredWatchEndsInSilence) => {
                self.ended = true;
                return true;
            }
            Err(_) => {
                let message = format!("too old resource version: {}", self.cursor);
                let status = ApiError::expired(message).to_status();
                let line = format!("{}\n", json!({ "type": "ERROR", "object": status }));
                self.pending.push_back(Pending::Event(line.into()));
                self.ended = true;
                return true;
            }
        };
        self.cursor = news.revision;
        for (index, event) in news.events.iter().enumerate() {
            let superseded = self.faults().on(Fault::WatchCoalesces)
                && news.events[index + 1..].iter().any(|later| later.object.key == event.object.key);
            if !superseded {
                self.push(event);
            }
        }
        !news.events.is_empty()
    }

    /// Sends an event if it concerns what is watched, as what it means to this watcher.
    fn push(&mut self, event: &Event) {
        let faults = self.faults();
        if faults.on(Fault::WatchIsForOneVersion) && !self.ty.serves_as_stored(&event.object) {
            return;
        }
        let now = event.change != Change::Deleted && self.selects(&event.object);
        let before = event.previous.as_ref().is_some_and(|previous| self.selects(previous));
        if before | now && std::mem::take(&mut self.skips) {
            return;
        }
        let chunk = match (before, now) {
            (false, false) => return,
            (false, true)
                if faults.on(Fault::SelectorEntryIsModified) && event.change == Change::Modified =>
            {
                self.encode(Change::Modified, &event.object)
            }
            (false, true) => self.encode(Change::Added, &event.object),
            (true, true) if faults.on(Fault::WatchMarksAsDeleted) && self.is_marked_by(event) => {
                self.encode(Change::Deleted, &event.object)
            }
            (true, true) if faults.on(Fault::WatchStatusBehind) => self.encode_behind(event),
            (true, false)
                if faults.on(Fault::WatchDeletionsInARow)
                    && (self.last, event.change) == (Some(Change::Deleted), Change::Deleted) =>
            {
                return;
            }
            (true, true) if faults.on(Fault::ModifiedIsAdded) => self.encode(Change::Added, &event.object),
            (true, true) => self.encode(Change::Modified, &event.object),
            (true, false) if event.change == Change::Deleted && faults.on(Fault::DeletedKeepsVersion) => {
                let last = event.previous.as_ref().unwrap_or(&event.object);
                self.encode(Change::Deleted, &last.at(last.revision, Change::Deleted))
            }
            (true, false) if event.change == Change::Deleted => self.encode(Change::Deleted, &event.object),
            (true, false) if faults.on(Fault::SelectorExitIsSilent) => return,
            // It left the selection: its last state in there, under the version of the change.
            (true, false) => match &event.previous {
                Some(previous) => {
                    let last = previous.at(event.revision, Change::Deleted);
                    self.encode(Change::Deleted, &last)
                }
                None => return,
            },
        };
        let chunk =
            if faults.on(Fault::WatchLinesCut) { chunk.slice(..chunk.len().min(1 << 16)) } else { chunk };
        self.sent += 1;
        self.newest = event.revision;
        self.last = Some(event.change);
        if faults.on(Fault::WatchLosesAnEvent) && self.sent.is_multiple_of(3) {
            return;
        }
        if faults.on(Fault::WatchLosesUnderLoad) && self.sent.is_multiple_of(16) {
            return;
        }
        if faults.on(Fault::WatchDoublesAnEvent) && self.sent.is_multiple_of(3) {
            self.pending.push_back(Pending::Event(chunk.clone()));
        }
        self.pending.push_back(Pending::Event(chunk));
    }

    fn selects(&self, object: &Stored) -> bool {
        let namespace = self.namespace.as_ref().is_none_or(|namespace| object.key.namespace == *namespace);
        let name = self.name.as_ref().is_none_or(|name| object.key.name == *name);
        let selected = if self.faults().on(Fault::WatchIgnoresFields) {
            self.selection.matches_labels(object)
        } else {
            self.selection.matches(object) || self.faults().on(Fault::WatchIgnoresSelector)
        };
        (namespace || self.faults().on(Fault::WatchIgnoresNamespace)) && name && selected
    }

    /// Whether the event is that an object was marked for deletion.
    fn is_marked_by(&self, event: &Event) -> bool {
        let is_marked =
            |object: &Stored| !self.ty.load(object, self.faults()).meta("deletionTimestamp").is_empty();
        is_marked(&event.object) && !event.previous.as_deref().is_some_and(is_marked)
    }

    /// A change, with the status of the state before it.
    fn encode_behind(&self, event: &Event) -> Bytes {
        let mut object = self.ty.load(&event.object, self.faults());
        let before = event.previous.as_ref().map(|previous| self.ty.load(previous, self.faults()));
        if let Some(fields) = object.as_object_mut() {
            match before.and_then(|before| before.get("status").cloned()) {
                Some(status) => drop(fields.insert("status".to_owned(), status)),
                None => drop(fields.remove("status")),
            }
        }
        format!("{}{object}{EVENT_END}", Change::Modified.prefix()).into()
    }

    fn encode(&mut self, change: Change, object: &Stored) -> Bytes {
        if change == Change::Deleted && self.faults().on(Fault::WatchDeletedIsBare) {
            let bare = json!({ "metadata": { "name": object.key.name, "namespace": object.key.namespace } });
            return format!("{}{bare}{EVENT_END}", change.prefix()).into();
        }
        let faults = self.faults();
        let form = if faults.on(Fault::WatchIgnoresForm) { Form::Plain } else { self.form };
        let text = match form {
            Form::Plain | Form::AggregatedDiscovery if faults.on(Fault::WatchInStoredVersion) => {
                return object.line_as(change);
            }
            Form::Plain | Form::AggregatedDiscovery if self.ty.serves_as_stored(object) => {
                // The text that all watchers share, unless this event is something else to this one.
                return object.line_as(change);
            }
            Form::Plain | Form::AggregatedDiscovery => self.ty.load(object, self.faults()),
            Form::Metadata(version) => present::partial(&self.ty.load(object, self.faults()), version),
            Form::Table(version) => self.row(object, version),
        };
        format!("{}{text}{EVENT_END}", change.prefix()).into()
    }

    /// An object as a table of one row. Only the first of a stream names the columns.
    fn row(&mut self, object: &Stored, version: MetaVersion) -> Value {
        let object = self.ty.load(object, self.faults());
        let meta = json!({ "resourceVersion": object.meta("resourceVersion") });
        let view = present::view(&self.ty, version, self.include, self.api.faults);
        let mut table = view.render(&meta, [&object]);
        if !std::mem::take(&mut self.names_columns) {
            table["columnDefinitions"] = Value::Null;
        }
        table
    }

    /// Tells how far the log has come, if that is news.
    fn bookmark(&mut self, initial_end: bool) {
        let faults = self.faults();
        let Some(bookmarks) = &mut self.bookmarks else { return };
        bookmarks.next = Instant::now() + BOOKMARK_INTERVAL;
        if bookmarks.last >= self.cursor && !initial_end {
            return;
        }
        bookmarks.last = self.cursor;
        let behind = faults.on(Fault::BookmarkBehind) && self.newest > 0;
        let version = if behind { self.newest - 1 } else { self.cursor };
        let mut metadata = json!({ "resourceVersion": version.to_string() });
        if faults.on(Fault::BookmarkWithoutVersion) {
            metadata = json!({});
        }
        if initial_end {
            metadata["annotations"] = json!({ "k8s.io/initial-events-end": "true" });
        }
        if matches!(self.form, Form::Metadata(_)) && faults.on(Fault::MetadataBookmarksBare) {
            metadata["annotations"] = json!(null);
        }
        let (kind, api_version) = match self.form {
            Form::Metadata(version) => ("PartialObjectMetadata", version.api_version().to_owned()),
            _ => (self.ty.kind.as_str(), self.ty.api_version()),
        };
        let object: Value = json!({ "kind": kind, "apiVersion": api_version, "metadata": metadata });
        let line = format!("{}\n", json!({ "type": "BOOKMARK", "object": object }));
        self.pending.push_back(Pending::Event(line.into()));
    }
}
