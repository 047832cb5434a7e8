//! What the clients and the watches of one round observed. Checks need nothing else.

use std::collections::BTreeMap;
use std::time::Duration;

/// The entries that the clients write into an object.
pub type Content = BTreeMap<String, String>;

/// One round of operations on a few objects.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// Whether versions can be compared as numbers. Otherwise the first watch orders them.
    pub numeric: bool,
    /// The state before the round.
    pub initial: Snapshot,
    /// In any order.
    pub operations: Vec<Operation>,
    /// Those of the first watcher continue each other.
    pub watches: Vec<Watch>,
}

/// The objects of a list.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Snapshot {
    /// The version of the list.
    pub version: String,
    /// In the order of the list.
    pub objects: Vec<State>,
}

/// An object at a version.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct State {
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
    /// Its version.
    pub version: String,
    /// The entries of the clients.
    pub content: Content,
}

/// A request of a client and its response.
#[derive(Clone, Debug)]
pub struct Operation {
    /// The number of the client.
    pub client: usize,
    /// When the request began. All times have the same monotonic origin.
    pub start: Duration,
    /// When the response was complete.
    pub end: Duration,
    /// The request.
    pub action: Action,
    /// The response.
    pub outcome: Outcome,
}

/// A request.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Action {
    /// POST.
    Create(String, Content),
    /// PUT, with an optional version.
    Update(String, Option<String>, Content),
    /// A merge patch that sets entries.
    MergePatch(String, Content),
    /// A JSON patch that sets entries.
    JsonPatch(String, Content),
    /// Server-side apply with force.
    Apply(String, Content),
    /// DELETE, with an optional version as precondition.
    Delete(String, Option<String>),
    /// GET of the newest version.
    Get(String),
    /// LIST of the newest version, in pages if there is a limit.
    List(Option<usize>),
}

/// A response.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Outcome {
    /// The object after a write, or of a GET.
    Object(State),
    /// The object was deleted; with its uid, if the response has it.
    Deleted(Option<String>),
    /// The list, and the number of objects on each page.
    Listed(Snapshot, Vec<usize>),
    /// The server rejected the request, and nothing happened.
    Rejected(u16, String),
    /// No response, or a 5xx: the request may have been processed.
    Unknown(String),
}

/// A watch from its start to its end.
#[derive(Clone, Debug)]
pub struct Watch {
    /// The number of the watcher. The first one is 0, and follows the whole round.
    pub watcher: usize,
    /// When its request was sent.
    pub start: Duration,
    /// The version in its request.
    pub from: String,
    /// The version before its first event: `from`, if no events are left out.
    pub after: String,
    /// Its events, in order.
    pub events: Vec<Event>,
    /// How it ended.
    pub end: WatchEnd,
}

/// An event of a watch.
#[derive(Clone, Debug)]
pub struct Event {
    /// When it arrived.
    pub at: Duration,
    /// Its type.
    pub kind: EventKind,
    /// The object. A bookmark has only a version.
    pub state: State,
}

/// The type of an event.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum EventKind {
    /// ADDED.
    Added,
    /// MODIFIED.
    Modified,
    /// DELETED.
    Deleted,
    /// BOOKMARK.
    Bookmark,
}

/// How a watch ended.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum WatchEnd {
    /// The client closed it. It had received the last event of the round, or enough events.
    Complete,
    /// The server or the connection closed it.
    Closed(String),
    /// The version is compacted: 410 Gone.
    Expired,
    /// The server rejected the request.
    Rejected(u16, String),
    /// The last event of the round did not arrive in time.
    Silent,
}

impl Action {
    /// Returns the object, or `None` for a list.
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::Create(name, _)
            | Self::Update(name, ..)
            | Self::MergePatch(name, _)
            | Self::JsonPatch(name, _)
            | Self::Apply(name, _)
            | Self::Delete(name, _)
            | Self::Get(name) => Some(name),
            Self::List(_) => None,
        }
    }

    /// Returns the entries that it writes.
    pub fn content(&self) -> Option<&Content> {
        match self {
            Self::Create(_, content)
            | Self::Update(_, _, content)
            | Self::MergePatch(_, content)
            | Self::JsonPatch(_, content)
            | Self::Apply(_, content) => Some(content),
            Self::Delete(..) | Self::Get(_) | Self::List(_) => None,
        }
    }

    /// Returns the version that the client requires.
    pub fn precondition(&self) -> Option<&str> {
        match self {
            Self::Update(_, version, _) | Self::Delete(_, version) => version.as_deref(),
            _ => None,
        }
    }

    /// Reports whether it can change an object.
    pub fn writes(&self) -> bool {
        !matches!(self, Self::Get(_) | Self::List(_))
    }

    /// Returns what it is called in reports.
    pub fn verb(&self) -> &'static str {
        match self {
            Self::Create(..) => "create",
            Self::Update(_, Some(_), _) => "update with a version",
            Self::Update(_, None, _) => "update without a version",
            Self::MergePatch(..) => "merge patch",
            Self::JsonPatch(..) => "JSON patch",
            Self::Apply(..) => "apply",
            Self::Delete(_, Some(_)) => "delete with a version",
            Self::Delete(_, None) => "delete",
            Self::Get(_) => "get",
            Self::List(None) => "list",
            Self::List(Some(_)) => "paged list",
        }
    }
}

impl EventKind {
    /// Returns its name in the API.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::Deleted => "DELETED",
            Self::Bookmark => "BOOKMARK",
        }
    }
}

impl Outcome {
    /// Reports whether the server acknowledged the operation.
    pub fn is_success(&self) -> bool {
        matches!(self, Self::Object(_) | Self::Deleted(_) | Self::Listed(..))
    }
}
