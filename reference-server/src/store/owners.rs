//! Who owns whom: what the garbage collector needs to know, kept up with every write that concerns owners.
//!
//! A write of an object without owners, which owns nothing either, costs two looks at empty lists; a deletion one look into a map.

use std::collections::{BTreeSet, HashMap};
use std::mem;

use super::object::{Key, Stored};

/// A table, and an object in it.
pub(crate) type Place = (String, Key);

/// The references between the objects of a store.
#[derive(Default)]
pub(super) struct Owners {
    /// What each owner owns, by its uid. An owner need not exist.
    dependents: HashMap<String, BTreeSet<Place>>,
    /// Owners whose deletion waits for what they own, by their uid.
    waiting: HashMap<String, Place>,
    /// Owners that are to be looked at, by their uid.
    pending: BTreeSet<String>,
}

impl Owners {
    /// Takes notice of a write to a table: the object before it, and after it.
    pub(super) fn take_notice(&mut self, table: &str, old: Option<&Stored>, new: Option<&Stored>) {
        let Some(object) = new.or(old) else { return };
        let uid = &object.facts.uid;
        let (before, after) = (owners_of(old), owners_of(new));
        if before != after {
            let place = || (table.to_owned(), object.key.clone());
            for owner in before.iter().filter(|owner| !after.contains(owner)) {
                if let Some(owned) = self.dependents.get_mut(owner) {
                    owned.remove(&place());
                    if owned.is_empty() {
                        self.dependents.remove(owner);
                    }
                }
                self.pending.insert(owner.clone());
            }
            for owner in after.iter().filter(|owner| !before.contains(owner)) {
                self.dependents.entry(owner.clone()).or_default().insert(place());
                self.pending.insert(owner.clone());
            }
        }
        if new.is_some_and(|new| new.facts.awaits_dependents) {
            self.waiting.insert(uid.clone(), (table.to_owned(), object.key.clone()));
            self.pending.insert(uid.clone());
        } else if old.is_some_and(|old| old.facts.awaits_dependents) {
            self.waiting.remove(uid);
        }
        if new.is_none() && self.dependents.contains_key(uid) {
            self.pending.insert(uid.clone());
        }
    }

    pub(super) fn has_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    pub(super) fn take_pending(&mut self) -> BTreeSet<String> {
        mem::take(&mut self.pending)
    }

    pub(super) fn dependents(&self, owner: &str) -> Vec<Place> {
        self.dependents.get(owner).into_iter().flatten().cloned().collect()
    }

    pub(super) fn waiting(&self, owner: &str) -> Option<Place> {
        self.waiting.get(owner).cloned()
    }
}

fn owners_of(object: Option<&Stored>) -> &[String] {
    object.map_or(&[], |object| object.facts.owners.as_slice())
}
