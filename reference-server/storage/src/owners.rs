//! The owner references of the store, for the garbage collector. Each write updates them.
//!
//! A write of an object without owners and dependents costs two checks of empty lists. A deletion
//! costs one lookup in a map.

use std::collections::{BTreeSet, HashMap};
use std::mem;

use super::object::{Key, Stored};

/// A table and the key of an object in it.
pub type Place = (String, Key);

#[derive(Default)]
pub(super) struct Owners {
    /// The dependents of each owner, by its uid. The owner may not exist.
    dependents: HashMap<String, BTreeSet<Place>>,
    /// Owners whose deletion waits for their dependents, by their uid.
    waiting: HashMap<String, Place>,
    /// The uids of owners that the garbage collector must process.
    pending: BTreeSet<String>,
}

impl Owners {
    /// Records a write to a table: the object before it and after it.
    pub(super) fn record(&mut self, table: &str, old: Option<&Stored>, new: Option<&Stored>) {
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

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::super::object::{Change, Draft, Facts};
    use super::*;

    const TABLE: &str = "things";

    fn stored(name: &str, owners: &[&str], awaits_dependents: bool) -> Stored {
        let owners = owners.iter().map(ToString::to_string).collect();
        let facts = Facts { uid: name.to_owned(), owners, awaits_dependents, ..Facts::default() };
        let draft = Draft {
            key: Key::new("", name),
            facts: facts.into(),
            before: Vec::new(),
            after: Vec::new(),
            body: 0,
        };
        Stored::new(&draft, 1, Change::Modified)
    }

    fn place(name: &str) -> Place {
        (TABLE.to_owned(), Key::new("", name))
    }

    /// Returns the owners to process.
    fn pending(owners: &mut Owners) -> Vec<String> {
        let any = owners.has_pending();
        let pending = owners.take_pending();
        assert_eq!(any, !pending.is_empty());
        assert!(!owners.has_pending(), "each owner is reported once");
        pending.into_iter().collect()
    }

    /// The owners of an object before and after a write, the owners to process, and the owners that
    /// have it as a dependent.
    #[rstest]
    #[case::born(None, Some("a b"), "a b", "a b")]
    #[case::free(None, Some(""), "", "")]
    #[case::taken(Some("a"), Some("a b"), "b", "a b")]
    #[case::let_go(Some("a b"), Some("b"), "a", "b")]
    #[case::handed_over(Some("a"), Some("b"), "a b", "b")]
    #[case::kept(Some("a b"), Some("a b"), "", "a b")]
    #[case::gone(Some("a b"), None, "a b", "")]
    fn owners_that_gain_or_lose_a_dependent_are_pending(
        #[case] before: Option<&'static str>,
        #[case] after: Option<&'static str>,
        #[case] looked_at: &'static str,
        #[case] owned_by: &'static str,
    ) {
        let words = |text: &'static str| text.split_whitespace().collect::<Vec<_>>();
        let state = |owners| stored("child", &words(owners), false);
        let (before, after) = (before.map(state), after.map(state));
        let mut owners = Owners::default();
        owners.record(TABLE, None, before.as_ref());
        owners.take_pending();
        owners.record(TABLE, before.as_ref(), after.as_ref());
        assert_eq!(pending(&mut owners), words(looked_at));
        for owner in ["a", "b"] {
            let owned =
                if words(owned_by).contains(&owner) { vec![place("child")] } else { vec![] };
            assert_eq!(owners.dependents(owner), owned, "{owner}");
        }
        assert_eq!(
            owners.dependents.len(),
            words(owned_by).len(),
            "nothing is kept of who owns nothing"
        );
    }

    #[test]
    fn a_deleted_owner_with_dependents_is_pending() {
        let mut owners = Owners::default();
        let [owner, other] = ["owner", "other"].map(|name| stored(name, &[], false));
        owners.record(TABLE, None, Some(&stored("child", &["owner"], false)));
        owners.take_pending();
        owners.record(TABLE, Some(&owner), Some(&owner));
        assert_eq!(pending(&mut owners), [""; 0], "it stays");
        owners.record(TABLE, Some(&other), None);
        assert_eq!(pending(&mut owners), [""; 0], "it owns nothing");
        owners.record(TABLE, Some(&owner), None);
        assert_eq!(pending(&mut owners), ["owner"]);
        assert_eq!(owners.dependents("owner"), [place("child")], "it need not exist");
    }

    #[test]
    fn an_owner_waits_until_it_is_deleted_or_released() {
        let [waits, rests] = [true, false].map(|waits| stored("owner", &[], waits));
        for end in [Some(&rests), None] {
            let mut owners = Owners::default();
            owners.record(TABLE, None, Some(&rests));
            assert_eq!(owners.waiting("owner"), None);
            owners.record(TABLE, Some(&rests), Some(&waits));
            assert_eq!(
                (pending(&mut owners), owners.waiting("owner")),
                (vec!["owner".to_owned()], Some(place("owner")))
            );
            owners.record(TABLE, Some(&waits), end);
            assert_eq!((pending(&mut owners), owners.waiting("owner")), (vec![], None));
        }
    }
}
