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

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::super::object::{Change, Draft, Facts};
    use super::*;

    const TABLE: &str = "things";

    fn stored(name: &str, owners: &[&str], awaits_dependents: bool) -> Stored {
        let owners = owners.iter().map(ToString::to_string).collect();
        let facts = Facts { uid: name.to_owned(), owners, awaits_dependents, ..Facts::default() };
        let draft =
            Draft { key: Key::new("", name), facts, before: String::new(), after: String::new(), body: 0 };
        Stored::new(draft, 1, Change::Modified)
    }

    fn place(name: &str) -> Place {
        (TABLE.to_owned(), Key::new("", name))
    }

    /// The owners to be looked at.
    fn pending(owners: &mut Owners) -> Vec<String> {
        let any = owners.has_pending();
        let pending = owners.take_pending();
        assert_eq!(any, !pending.is_empty());
        assert!(!owners.has_pending(), "they are told once");
        pending.into_iter().collect()
    }

    /// The owners of an object before and after, those that are looked at then, and those that own it.
    #[rstest]
    #[case::born(None, Some("a b"), "a b", "a b")]
    #[case::free(None, Some(""), "", "")]
    #[case::taken(Some("a"), Some("a b"), "b", "a b")]
    #[case::let_go(Some("a b"), Some("b"), "a", "b")]
    #[case::handed_over(Some("a"), Some("b"), "a b", "b")]
    #[case::kept(Some("a b"), Some("a b"), "", "a b")]
    #[case::gone(Some("a b"), None, "a b", "")]
    fn owners_that_get_or_lose_a_dependent_are_looked_at(
        #[case] before: Option<&'static str>,
        #[case] after: Option<&'static str>,
        #[case] looked_at: &'static str,
        #[case] owned_by: &'static str,
    ) {
        let words = |text: &'static str| text.split_whitespace().collect::<Vec<_>>();
        let state = |owners| stored("child", &words(owners), false);
        let (before, after) = (before.map(state), after.map(state));
        let mut owners = Owners::default();
        owners.take_notice(TABLE, None, before.as_ref());
        owners.take_pending();
        owners.take_notice(TABLE, before.as_ref(), after.as_ref());
        assert_eq!(pending(&mut owners), words(looked_at));
        for owner in ["a", "b"] {
            let owned = if words(owned_by).contains(&owner) { vec![place("child")] } else { vec![] };
            assert_eq!(owners.dependents(owner), owned, "{owner}");
        }
        assert_eq!(owners.dependents.len(), words(owned_by).len(), "nothing is kept of who owns nothing");
    }

    #[test]
    fn an_owner_of_something_is_looked_at_when_it_goes() {
        let mut owners = Owners::default();
        let [owner, other] = ["owner", "other"].map(|name| stored(name, &[], false));
        owners.take_notice(TABLE, None, Some(&stored("child", &["owner"], false)));
        owners.take_pending();
        owners.take_notice(TABLE, Some(&owner), Some(&owner));
        assert_eq!(pending(&mut owners), [""; 0], "it stays");
        owners.take_notice(TABLE, Some(&other), None);
        assert_eq!(pending(&mut owners), [""; 0], "it owns nothing");
        owners.take_notice(TABLE, Some(&owner), None);
        assert_eq!(pending(&mut owners), ["owner"]);
        assert_eq!(owners.dependents("owner"), [place("child")], "it need not exist");
    }

    #[test]
    fn an_owner_waits_until_it_goes_or_need_not() {
        let [waits, rests] = [true, false].map(|waits| stored("owner", &[], waits));
        for end in [Some(&rests), None] {
            let mut owners = Owners::default();
            owners.take_notice(TABLE, None, Some(&rests));
            assert_eq!(owners.waiting("owner"), None);
            owners.take_notice(TABLE, Some(&rests), Some(&waits));
            assert_eq!(
                (pending(&mut owners), owners.waiting("owner")),
                (vec!["owner".to_owned()], Some(place("owner")))
            );
            owners.take_notice(TABLE, Some(&waits), end);
            assert_eq!((pending(&mut owners), owners.waiting("owner")), (vec![], None));
        }
    }
}
