//! Stored objects: serialized once, with the fields that filters need.
//!
//! The buffer of an object is its watch event, `{"type":"ADDED","object":{…}}` and a newline. The
//! object is a slice of it, so one allocation serves every GET, LIST and WATCH. The version is in
//! the middle of the text and is assigned when the write commits. Therefore a [`Draft`] holds the
//! text before and after it.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

/// The key of an object in its table. Keys are ordered by namespace, then by name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// The namespace; empty for a cluster-scoped object.
    pub namespace: String,
    /// The name of the object.
    pub name: String,
}

impl Key {
    /// Creates a key. Cluster-scoped objects have an empty namespace.
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }
}

/// The kind of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The object was created.
    Added,
    /// The object was changed.
    Modified,
    /// The object was removed.
    Deleted,
}

impl Change {
    /// Returns the type of the watch event.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::Deleted => "DELETED",
        }
    }

    /// Returns the text before the object in a watch event.
    pub const fn prefix(self) -> &'static str {
        match self {
            Self::Added => r#"{"type":"ADDED","object":"#,
            Self::Modified => r#"{"type":"MODIFIED","object":"#,
            Self::Deleted => r#"{"type":"DELETED","object":"#,
        }
    }
}

/// The text after the object in a watch event.
pub const EVENT_END: &str = "}\n";

/// The fields of an object that are available without parsing it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// `metadata.uid`
    pub uid: String,
    /// `metadata.labels`
    pub labels: BTreeMap<String, String>,
    /// The selectable fields, by their label.
    pub fields: Vec<(String, String)>,
    /// `metadata.deletionTimestamp` is set.
    pub deleting: bool,
    /// The uids of the owners.
    pub owners: Vec<String>,
    /// The deletion waits until the dependents are deleted or orphaned.
    pub awaits_dependents: bool,
    /// Values that only one object of the store can hold, such as an IP address. Only an engine
    /// that several servers share checks them.
    pub claims: Vec<String>,
    /// The identifier of the schema that wrote the object. An object of another schema is converted
    /// on read.
    pub schema: u64,
}

/// An object that is ready to be written, except for its version.
#[derive(Clone, Debug)]
pub struct Draft {
    /// The key of the object.
    pub key: Key,
    /// The fields that selectors and controllers read without parsing.
    pub facts: Arc<Facts>,
    /// The text up to the value of `metadata.resourceVersion`.
    pub before: Vec<u8>,
    /// The text after that value.
    pub after: Vec<u8>,
    /// The offset in `before` of the text after `kind` and `apiVersion`.
    pub body: usize,
}

/// An object in the store, or the last state of a deleted one.
pub struct Stored {
    /// The key of the object.
    pub key: Key,
    /// The version of the write that stored it.
    pub revision: u64,
    /// The fields that selectors and controllers read without parsing.
    pub facts: Arc<Facts>,
    line: Bytes,
    object: Range<usize>,
    version: Range<usize>,
    body: usize,
}

impl Stored {
    /// Completes a draft with the version of its write.
    pub fn new(draft: &Draft, revision: u64, change: Change) -> Self {
        let Draft { key, facts, before, after, body } = draft;
        let (key, facts) = (key.clone(), facts.clone());
        let prefix = change.prefix();
        let digits = revision.to_string();
        let mut line = Vec::with_capacity(
            prefix.len() + before.len() + digits.len() + after.len() + EVENT_END.len(),
        );
        line.extend_from_slice(prefix.as_bytes());
        line.extend_from_slice(before);
        let version = line.len()..line.len() + digits.len();
        line.extend_from_slice(digits.as_bytes());
        line.extend_from_slice(after);
        let object = prefix.len()..line.len();
        line.extend_from_slice(EVENT_END.as_bytes());
        Self { key, revision, facts, line: line.into(), version, body: prefix.len() + body, object }
    }

    /// Returns a watch event of the given type with this object, including the newline. The event
    /// of its own write shares the stored buffer.
    pub fn line_as(&self, change: Change) -> Bytes {
        let prefix = change.prefix();
        if self.line.starts_with(prefix.as_bytes()) {
            return self.line.clone();
        }
        [prefix.as_bytes(), &self.line[self.object.start..]].concat().into()
    }

    /// Returns the size of the buffer in bytes.
    pub fn size(&self) -> usize {
        self.line.len()
    }

    /// Returns the object as JSON.
    pub fn object(&self) -> &[u8] {
        &self.line[self.object.clone()]
    }

    /// Returns the text after `kind` and `apiVersion`, up to the closing brace.
    pub fn body(&self) -> &[u8] {
        &self.line[self.body..self.object.end]
    }

    /// Returns the same object under another version, as an event of `change` shows it.
    #[must_use]
    pub fn at(&self, revision: u64, change: Change) -> Self {
        let draft = Draft {
            key: self.key.clone(),
            facts: self.facts.clone(),
            before: self.line[self.object.start..self.version.start].to_vec(),
            after: self.line[self.version.end..self.object.end].to_vec(),
            body: self.body - self.object.start,
        };
        Self::new(&draft, revision, change)
    }

    /// Reports whether a draft differs from this object only in its version.
    pub fn same_content(&self, draft: &Draft) -> bool {
        self.line[self.object.start..self.version.start] == *draft.before
            && self.line[self.version.end..self.object.end] == *draft.after
    }
}

impl fmt::Debug for Stored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}@{}", self.key.namespace, self.key.name, self.revision)
    }
}
