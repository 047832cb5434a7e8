//! A write: what it reads, and the operations that it makes.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::object::{Change, Draft, Key, Stored};
use super::owners::Place;
use super::state::{Operation, State};

/// Writes that are ordered, and not in the cache yet. The value of a deleted object is absent.
pub(crate) type Pending = HashMap<String, BTreeMap<Key, (u64, Option<Arc<Stored>>)>>;

/// What happened to an object since the version of the cache.
enum Newer<'a> {
    Unchanged,
    Deleted,
    Put(&'a Arc<Stored>),
}

/// Access to the store during a write.
///
/// A write that loses a race starts again: the store calls its closure a second time. The closure
/// therefore derives everything from what it reads here.
pub struct Write<'a> {
    state: &'a State,
    pending: Option<&'a Pending>,
    revision: u64,
    operations: Vec<Operation>,
    /// The objects that the closure has read, for engines that need them.
    reads: Option<RefCell<BTreeSet<Place>>>,
}

impl<'a> Write<'a> {
    /// Starts a write. `pending` has the writes between the state and `revision`.
    pub(crate) fn new(state: &'a State, pending: Option<&'a Pending>, revision: u64) -> Self {
        Self { state, pending, revision, operations: Vec::new(), reads: None }
    }

    /// Starts a write that records what it reads.
    pub(crate) fn tracked(state: &'a State) -> Self {
        Self { reads: Some(RefCell::default()), ..Self::new(state, None, state.revision) }
    }

    /// Returns an object.
    pub fn get(&self, table: &str, key: &Key) -> Option<&Arc<Stored>> {
        if let Some(reads) = &self.reads {
            reads.borrow_mut().insert((table.to_owned(), key.clone()));
        }
        self.find(table, key)
    }

    fn find(&self, table: &str, key: &Key) -> Option<&Arc<Stored>> {
        match self.newer(table, key) {
            Newer::Put(object) => Some(object),
            Newer::Deleted => None,
            Newer::Unchanged => self.state.get(table, key),
        }
    }

    /// Returns what happened to an object since the version of the cache.
    fn newer(&self, table: &str, key: &Key) -> Newer<'_> {
        let is_same = |own: &&Operation| own.table == table && own.object.key == *key;
        if let Some(own) = self.operations.iter().rev().find(is_same) {
            return match own.change {
                Change::Deleted => Newer::Deleted,
                Change::Added | Change::Modified => Newer::Put(&own.object),
            };
        }
        let pending = self.pending.and_then(|pending| pending.get(table)?.get(key));
        match pending {
            None => Newer::Unchanged,
            Some((_, None)) => Newer::Deleted,
            Some((_, Some(object))) => Newer::Put(object),
        }
    }

    /// Reports whether any table has an object in this namespace.
    pub fn has_namespace(&self, namespace: &str) -> bool {
        let own = self.operations.iter().map(|own| (own.table.as_str(), &own.object.key));
        let pending = self.pending.into_iter().flatten();
        let pending = pending
            .flat_map(|(table, objects)| objects.keys().map(move |key| (table.as_str(), key)));
        let is_put =
            |table: &str, key: &Key| key.namespace == namespace && self.find(table, key).is_some();
        own.chain(pending).any(|(table, key)| is_put(table, key))
            || self.state.tables.iter().any(|(table, objects)| {
                objects.keys_in(namespace).any(|key| self.find(table, key).is_some())
            })
    }

    /// Creates or replaces an object under a new version.
    pub fn put(&mut self, table: &str, draft: &Draft) {
        let exists = self.find(table, &draft.key).is_some();
        self.add(table, draft, if exists { Change::Modified } else { Change::Added });
    }

    /// Creates an object under a new version. The closure has read that no object has its key.
    pub fn create(&mut self, table: &str, draft: &Draft) {
        self.add(table, draft, Change::Added);
    }

    fn add(&mut self, table: &str, draft: &Draft, change: Change) {
        self.revision += 1;
        let object = Arc::new(Stored::new(draft, self.revision, change));
        self.operations.push(Operation { table: table.to_owned(), change, object });
    }

    /// Removes an object, if it exists. Its last state gets the version of the removal.
    pub fn delete(&mut self, table: &str, key: &Key) {
        let Some(last) = self.find(table, key) else { return };
        let object = Arc::new(last.at(self.revision + 1, Change::Deleted));
        self.revision += 1;
        self.operations.push(Operation {
            table: table.to_owned(),
            change: Change::Deleted,
            object,
        });
    }

    /// Returns the table and the change of the last operation.
    pub(crate) fn last(&self) -> Option<(&str, Change)> {
        self.operations.last().map(|operation| (operation.table.as_str(), operation.change))
    }

    pub(crate) fn into_operations(self) -> Vec<Operation> {
        self.operations
    }

    /// Returns the operations, and the objects that the closure has read.
    pub(crate) fn into_parts(self) -> (Vec<Operation>, BTreeSet<Place>) {
        (self.operations, self.reads.map(RefCell::into_inner).unwrap_or_default())
    }
}
