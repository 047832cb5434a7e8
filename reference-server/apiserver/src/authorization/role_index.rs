//! The roles and bindings of the store, parsed.
//!
//! Each decision first applies the changes since the previous one, so a change applies to the next
//! request.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use kubeproof_apimachinery::serializer::json;
use kubeproof_storage::{Change, Key, Store, Stored};
use serde::Deserialize;

use super::roles::{self, Binding, Rule};
use crate::registry::builtin::rbac::{CLUSTER_BINDINGS, CLUSTER_ROLES, ROLE_BINDINGS, ROLES};

/// The number of changes to read at once.
const BATCH: usize = 1_000;

/// All roles and bindings.
#[derive(Debug)]
pub(crate) struct RoleIndex {
    roles: Follower<Arc<[Rule]>>,
    cluster_roles: Follower<Arc<[Rule]>>,
    bindings: Follower<Arc<Binding>>,
    cluster_bindings: Follower<Arc<Binding>>,
}

impl Default for RoleIndex {
    fn default() -> Self {
        Self {
            roles: Follower::new(ROLES, parse_rules),
            cluster_roles: Follower::new(CLUSTER_ROLES, parse_rules),
            bindings: Follower::new(ROLE_BINDINGS, parse_binding),
            cluster_bindings: Follower::new(CLUSTER_BINDINGS, parse_binding),
        }
    }
}

impl RoleIndex {
    /// Returns the rules of a role, or of a cluster role. A missing role has none.
    pub(super) fn rules(&self, store: &Store, kind: &str, key: &Key) -> Option<Arc<[Rule]>> {
        let roles = if kind == "Role" { &self.roles } else { &self.cluster_roles };
        roles.current(store).items.get(key).cloned()
    }

    /// Calls `visit` with the bindings of the cluster and of a namespace, unless that is empty.
    pub(super) fn bindings(
        &self,
        store: &Store,
        namespace: &str,
        mut visit: impl FnMut(&Key, &Binding),
    ) {
        if !namespace.is_empty() {
            let local = self.bindings.current(store);
            let all = local.items.range(Key::new(namespace, "")..);
            for (key, binding) in all.take_while(|(key, _)| key.namespace == namespace) {
                visit(key, binding);
            }
        }
        for (key, binding) in &self.cluster_bindings.current(store).items {
            visit(key, binding);
        }
    }
}

/// An object that cannot be parsed grants nothing.
fn parse_rules(text: &[u8]) -> Option<Arc<[Rule]>> {
    json::parse(text).ok().map(|role| roles::rules(&role).into())
}

fn parse_binding(text: &[u8]) -> Option<Arc<Binding>> {
    let binding = json::parse(text).ok()?;
    Binding::deserialize(&binding).ok().map(Arc::new)
}

/// The parsed objects of one table, which follow the table.
#[derive(Debug)]
struct Follower<T> {
    table: &'static str,
    parse: fn(&[u8]) -> Option<T>,
    state: RwLock<State<T>>,
}

#[derive(Debug)]
struct State<T> {
    items: BTreeMap<Key, T>,
    revision: u64,
}

impl<T> Follower<T> {
    fn new(table: &'static str, parse: fn(&[u8]) -> Option<T>) -> Self {
        // The version before the first one is expired, so the first read is a list.
        Self { table, parse, state: RwLock::new(State { items: BTreeMap::new(), revision: 0 }) }
    }

    /// Returns the objects, which are at least as new as the start of the call.
    fn current(&self, store: &Store) -> RwLockReadGuard<'_, State<T>> {
        let read = || self.state.read().unwrap_or_else(PoisonError::into_inner);
        let state = read();
        if store.news(self.table, state.revision, 1).is_ok_and(|news| news.events.is_empty())
            && state.revision > 0
        {
            return state;
        }
        drop(state);
        // A panic leaves an older state, which the next call completes.
        self.catch_up(store, &mut self.state.write().unwrap_or_else(PoisonError::into_inner));
        read()
    }

    fn catch_up(&self, store: &Store, state: &mut State<T>) {
        while state.revision > 0 {
            let Ok(news) = store.news(self.table, state.revision, BATCH) else { break };
            let is_complete = news.events.is_empty();
            for event in news.events {
                let key = &event.object.key;
                let parsed = match event.change {
                    Change::Deleted => None,
                    Change::Added | Change::Modified => (self.parse)(event.object.object()),
                };
                match parsed {
                    Some(parsed) => state.items.insert(key.clone(), parsed),
                    None => state.items.remove(key),
                };
            }
            state.revision = news.revision;
            if is_complete {
                return;
            }
        }
        let (objects, revision) = store.snapshot(self.table, None);
        let parse = |object: &Stored| Some((object.key.clone(), (self.parse)(object.object())?));
        state.items = objects.iter().filter_map(|object| parse(object)).collect();
        state.revision = revision;
    }
}

#[cfg(test)]
mod tests {
    use kubeproof_storage::{Draft, Facts};
    use rstest::rstest;

    use super::*;

    fn put(store: &Store, namespace: &str, name: &str, subject: &str) {
        let before = r#"{"metadata":{"resourceVersion":""#.to_owned();
        let after = format!(
            r#""}},"roleRef":{{"kind":"Role","name":"r"}},
               "subjects":[{{"kind":"User","name":"{subject}"}}]}}"#
        );
        let key = Key::new(namespace, name);
        let draft = Draft { key, facts: Facts::default(), before, after, body: 1 };
        store.write(|write| write.put(ROLE_BINDINGS, draft));
    }

    fn names(index: &RoleIndex, store: &Store, namespace: &str) -> Vec<String> {
        let mut all = Vec::new();
        index.bindings(store, namespace, |key, binding| {
            all.push(format!("{}:{binding:?}", key.name).replace('"', ""));
        });
        let short = |text: &String| {
            let subject = text.split("kind: User, name: ").nth(1).unwrap_or_default();
            let name = text.split(':').next().unwrap_or_default();
            format!("{name}={}", subject.split(',').next().unwrap_or_default())
        };
        all.iter().map(short).collect()
    }

    /// The log of the second store is shorter than the number of changes.
    #[rstest]
    #[case::log(100)]
    #[case::expired_log(1)]
    fn an_index_follows_the_store(#[case] history: usize) {
        let store = Store::new(history);
        let index = RoleIndex::default();
        assert_eq!(names(&index, &store, "a"), [""; 0]);
        put(&store, "a", "one", "jane");
        put(&store, "a", "two", "bob");
        put(&store, "b", "three", "bob");
        assert_eq!(names(&index, &store, "a"), ["one=jane", "two=bob"]);
        assert_eq!(names(&index, &store, "b"), ["three=bob"]);
        put(&store, "a", "one", "eve");
        assert_eq!(names(&index, &store, "a"), ["one=eve", "two=bob"]);
        store.write(|write| write.delete(ROLE_BINDINGS, &Key::new("a", "one")));
        put(&store, "a", "four", "jane");
        assert_eq!(names(&index, &store, "a"), ["four=jane", "two=bob"]);
        assert_eq!(names(&index, &store, ""), [""; 0]);
    }
}
