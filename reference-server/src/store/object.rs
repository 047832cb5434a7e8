//! Objects as the store keeps them: serialised once, with what filters need beside the bytes.
//!
//! The buffer of an object is the watch event that announced it, `{"type":"ADDED","object":{…}}` and a newline. The object
//! is a slice of it, so a write allocates once for every GET, LIST and WATCH that will copy it. The version stands in
//! the middle of the text and is known only when the write commits: a [`Draft`] is the text in two halves around it.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

use bytes::Bytes;

/// Where an object lives in its table; ordered by namespace, then name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Key {
    /// Empty for an object of the cluster.
    pub(crate) namespace: String,
    pub(crate) name: String,
}

impl Key {
    pub(crate) fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }
}

/// The kind of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Added,
    Modified,
    Deleted,
}

impl Change {
    /// What stands before the object in a watch event.
    pub(crate) const fn prefix(self) -> &'static str {
        match self {
            Self::Added => r#"{"type":"ADDED","object":"#,
            Self::Modified => r#"{"type":"MODIFIED","object":"#,
            Self::Deleted => r#"{"type":"DELETED","object":"#,
        }
    }
}

/// What stands after the object in a watch event.
pub(crate) const EVENT_END: &str = "}\n";

/// Facts about an object that are read without parsing it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Facts {
    pub(crate) uid: String,
    pub(crate) labels: BTreeMap<String, String>,
    /// Selectable fields, by their label.
    pub(crate) fields: Vec<(String, String)>,
    /// `metadata.deletionTimestamp` is set.
    pub(crate) deleting: bool,
    /// The uids of its owners.
    pub(crate) owners: Vec<String>,
    /// Its deletion waits for what it owns to go, or to be let go.
    pub(crate) awaits_dependents: bool,
    /// Which schema wrote it; objects of another schema are converted when they are read.
    pub(crate) schema: u64,
}

/// An object that is ready to be written, but for its version.
#[derive(Clone, Debug)]
pub(crate) struct Draft {
    pub(crate) key: Key,
    pub(crate) facts: Facts,
    /// The text up to the value of `metadata.resourceVersion`.
    pub(crate) before: String,
    /// The text after that value.
    pub(crate) after: String,
    /// Where in `before` the text behind `kind` and `apiVersion` begins.
    pub(crate) body: usize,
}

/// An object in the store, or the last state of a deleted one.
pub(crate) struct Stored {
    pub(crate) key: Key,
    pub(crate) revision: u64,
    pub(crate) facts: Facts,
    line: Bytes,
    object: Range<usize>,
    version: Range<usize>,
    body: usize,
}

impl Stored {
    pub(crate) fn new(draft: Draft, revision: u64, change: Change) -> Self {
        let Draft { key, facts, before, after, body } = draft;
        let prefix = change.prefix();
        let digits = revision.to_string();
        let mut line =
            String::with_capacity(prefix.len() + before.len() + digits.len() + after.len() + EVENT_END.len());
        line.push_str(prefix);
        line.push_str(&before);
        let version = line.len()..line.len() + digits.len();
        line.push_str(&digits);
        line.push_str(&after);
        let object = prefix.len()..line.len();
        line.push_str(EVENT_END);
        Self { key, revision, facts, line: line.into(), version, body: prefix.len() + body, object }
    }

    /// An event about it, newline included. The event that announced it is there already, and shared by all.
    pub(crate) fn line_as(&self, change: Change) -> Bytes {
        let prefix = change.prefix();
        if self.line.starts_with(prefix.as_bytes()) {
            return self.line.clone();
        }
        [prefix.as_bytes(), &self.line[self.object.start..]].concat().into()
    }

    /// The bytes that it holds.
    pub(crate) fn size(&self) -> usize {
        self.line.len()
    }

    /// The object as JSON.
    pub(crate) fn object(&self) -> &[u8] {
        &self.line[self.object.clone()]
    }

    /// What follows `kind` and `apiVersion` in the object, up to its closing brace.
    pub(crate) fn body(&self) -> &[u8] {
        &self.line[self.body..self.object.end]
    }

    /// The same object under another version, as it looks in an event of `change`.
    pub(crate) fn at(&self, revision: u64, change: Change) -> Self {
        let text = |range: Range<usize>| String::from_utf8_lossy(&self.line[range]).into_owned();
        let draft = Draft {
            key: self.key.clone(),
            facts: self.facts.clone(),
            before: text(self.object.start..self.version.start),
            after: text(self.version.end..self.object.end),
            body: self.body - self.object.start,
        };
        Self::new(draft, revision, change)
    }

    /// Whether two states differ in nothing but their version.
    pub(crate) fn same_content(&self, draft: &Draft) -> bool {
        self.line[self.object.start..self.version.start] == *draft.before.as_bytes()
            && self.line[self.version.end..self.object.end] == *draft.after.as_bytes()
    }
}

impl fmt::Debug for Stored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}@{}", self.key.namespace, self.key.name, self.revision)
    }
}
