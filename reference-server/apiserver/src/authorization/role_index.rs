//! The roles and bindings of the store, parsed.
//!
//! Each decision first applies the changes since the previous one, so a change applies to the next
//! request.

use std::sync::Arc;

use kubeproof_apimachinery::serializer::json;
use kubeproof_storage::{Key, Store};
use serde::Deserialize;

use super::roles::{self, Binding, Rule};
use crate::registry::builtin::rbac::{CLUSTER_BINDINGS, CLUSTER_ROLES, ROLE_BINDINGS, ROLES};
use crate::registry::follower::Follower;

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
        roles.read(store, |roles| roles.get(key).cloned())
    }

    /// Calls `visit` with the bindings of the cluster and of a namespace, unless that is empty.
    pub(super) fn bindings(
        &self,
        store: &Store,
        namespace: &str,
        mut visit: impl FnMut(&Key, &Binding),
    ) {
        if !namespace.is_empty() {
            self.bindings.read(store, |local| {
                let all = local.range(Key::new(namespace, "")..);
                for (key, binding) in all.take_while(|(key, _)| key.namespace == namespace) {
                    visit(key, binding);
                }
            });
        }
        self.cluster_bindings.read(store, |all| {
            for (key, binding) in all {
                visit(key, binding);
            }
        });
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

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use kubeproof_storage::Draft;
    use rstest::rstest;

    use super::*;

    fn put(store: &Store, namespace: &str, name: &str, subject: &str) {
        let before = br#"{"metadata":{"resourceVersion":""#.to_vec();
        let after = format!(
            r#""}},"roleRef":{{"kind":"Role","name":"r"}},
               "subjects":[{{"kind":"User","name":"{subject}"}}]}}"#
        )
        .into();
        let key = Key::new(namespace, name);
        let draft = Draft { key, facts: Arc::default(), before, after, body: 1 };
        let _ = store.write(|write| write.put(ROLE_BINDINGS, &draft)).now_or_never();
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
        let one = Key::new("a", "one");
        let _ = store.write(|write| write.delete(ROLE_BINDINGS, &one)).now_or_never();
        put(&store, "a", "four", "jane");
        assert_eq!(names(&index, &store, "a"), ["four=jane", "two=bob"]);
        assert_eq!(names(&index, &store, ""), [""; 0]);
    }
}
