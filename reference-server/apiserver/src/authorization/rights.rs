//! Decisions on permissions. Those of roles add to those of groups.

use std::sync::Arc;

use super::role_index::RoleIndex;
use super::roles::{RoleRef, Rule};
use crate::authentication::User;
use crate::config::AuthorizationMode;
use kubeproof_apimachinery::request::ResourceInfo;
use kubeproof_storage::{Key, Store};

/// Decides on permissions with groups and bound roles.
#[derive(Clone, Copy)]
pub(crate) struct Rights<'a> {
    pub(crate) store: &'a Arc<Store>,
    pub(crate) roles: &'a Arc<RoleIndex>,
    pub(crate) mode: AuthorizationMode,
}

impl Rights<'_> {
    fn allows_all(self) -> bool {
        self.mode == AuthorizationMode::AlwaysAllow
    }

    /// Returns whether the user may do `verb` on the resource.
    pub(crate) fn may_access(self, user: &User, verb: &str, info: &ResourceInfo) -> bool {
        self.allows_all()
            || user.may_access(verb, info)
            || self.has(user, &info.namespace, |rule| rule.allows(verb, info))
    }

    /// Returns whether the user may do `verb` on a non-resource path. Only cluster roles contain
    /// such rules.
    pub(crate) fn may_read(self, user: &User, verb: &str, path: &str) -> bool {
        self.allows_all()
            || user.may_read(verb, path)
            || self.has(user, "", |rule| rule.allows_path(verb, path))
    }

    fn has(self, user: &User, namespace: &str, test: impl Fn(&Rule) -> bool) -> bool {
        self.granted(user, namespace).iter().any(|rules| rules.iter().any(&test))
    }

    /// Returns why the user may access a resource, in the words of kube-apiserver. It is empty if
    /// the user needs no role.
    pub(crate) fn access_reason(self, user: &User, verb: &str, info: &ResourceInfo) -> String {
        self.reason(user, &info.namespace, |rule| rule.allows(verb, info))
    }

    /// Returns the same for a non-resource path.
    pub(crate) fn path_reason(self, user: &User, verb: &str, path: &str) -> String {
        self.reason(user, "", |rule| rule.allows_path(verb, path))
    }

    fn reason(self, user: &User, namespace: &str, test: impl Fn(&Rule) -> bool) -> String {
        if self.allows_all() || user.is_master() {
            return String::new();
        }
        let mut bound = Vec::new();
        self.roles.bindings(self.store, namespace, |key, binding| {
            let mut subjects = binding.subjects.iter().flatten();
            let subject = subjects.find(|subject| subject.is(user, &key.namespace));
            if let Some(subject) = subject
                && let Some(rules) = self.find(&binding.role, &key.namespace)
            {
                let reason = format!(
                    "RBAC: allowed by {} of {} {:?} to {}",
                    binding_name(key),
                    binding.role.kind,
                    binding.role.name,
                    subject.described(&key.namespace),
                );
                bound.push((rules, reason));
            }
        });
        let permits = |(rules, _): &(Arc<[Rule]>, String)| rules.iter().any(&test);
        bound.into_iter().find(permits).map(|(_, reason)| reason).unwrap_or_default()
    }

    /// Returns the rules for the user in a namespace; without a namespace, those of the whole
    /// cluster.
    pub(crate) fn rules(self, user: &User, namespace: &str) -> Vec<Rule> {
        self.granted(user, namespace).iter().flat_map(|rules| rules.iter().cloned()).collect()
    }

    /// Returns the rules of each role that is bound to the user.
    fn granted(self, user: &User, namespace: &str) -> Vec<Arc<[Rule]>> {
        let mut bound = Vec::new();
        self.roles.bindings(self.store, namespace, |key, binding| {
            let mut subjects = binding.subjects.iter().flatten();
            if subjects.any(|subject| subject.is(user, &key.namespace)) {
                bound.extend(self.find(&binding.role, &key.namespace));
            }
        });
        bound
    }

    /// Returns the rules of the role of a binding in this namespace. A missing role has none.
    pub(crate) fn rules_of(self, role: &RoleRef, namespace: &str) -> Vec<Rule> {
        self.find(role, namespace).map_or_else(Vec::new, |rules| rules.to_vec())
    }

    fn find(self, role: &RoleRef, namespace: &str) -> Option<Arc<[Rule]>> {
        let namespace = if role.kind == "Role" { namespace } else { "" };
        self.roles.rules(self.store, &role.kind, &Key::new(namespace, role.name.as_str()))
    }
}

fn binding_name(Key { namespace, name }: &Key) -> String {
    if namespace.is_empty() {
        format!("ClusterRoleBinding {name:?}")
    } else {
        format!("RoleBinding \"{name}/{namespace}\"")
    }
}
