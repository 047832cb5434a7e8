//! The rules of `Role` and `ClusterRole`, and their bindings to subjects.

use serde::Deserialize;
use serde_json::Value;

use crate::authentication::User;
use kubeproof_apimachinery::request::ResourceInfo;

/// A rule of a role: verbs on resources, or on non-resource paths.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Rule {
    pub(crate) verbs: Vec<String>,
    pub(crate) api_groups: Vec<String>,
    pub(crate) resources: Vec<String>,
    /// Empty for all names.
    pub(crate) resource_names: Vec<String>,
    #[serde(rename = "nonResourceURLs")]
    pub(crate) paths: Vec<String>,
}

/// The role that a binding grants.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct RoleRef {
    pub(crate) kind: String,
    pub(crate) name: String,
}

/// A subject of a binding.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Subject {
    kind: String,
    name: String,
    namespace: String,
}

/// A binding of a role to subjects.
#[derive(Debug, Deserialize)]
pub(super) struct Binding {
    #[serde(rename = "roleRef")]
    pub(super) role: RoleRef,
    #[serde(default)]
    pub(super) subjects: Option<Vec<Subject>>,
}

/// Parses the rules of a role. Invalid rules grant nothing.
pub(crate) fn rules(role: &Value) -> Vec<Rule> {
    let rules = role["rules"].as_array().into_iter().flatten();
    rules.filter_map(|rule| Rule::deserialize(rule).ok()).collect()
}

impl Rule {
    /// Returns whether the rule permits `verb` on the resource.
    pub(crate) fn allows(&self, verb: &str, info: &ResourceInfo) -> bool {
        let names = self.resource_names.is_empty() || self.resource_names.contains(&info.name);
        let group = has(&self.api_groups, &info.group);
        let verb = has(&self.verbs, verb);
        verb && group && names && self.has_resource(info)
    }

    /// A permission for a resource does not include its subresources, nor the reverse.
    fn has_resource(&self, info: &ResourceInfo) -> bool {
        let ResourceInfo { resource, subresource, .. } = info;
        self.resources.iter().any(|own| match own.split_once('/') {
            _ if own == "*" => true,
            None => own == resource && subresource.is_empty(),
            Some(_) if subresource.is_empty() => false,
            Some((of, sub)) => (of == "*" || of == resource) && sub == subresource,
        })
    }

    /// Returns whether the rule permits `verb` on the path.
    pub(super) fn allows_path(&self, verb: &str, path: &str) -> bool {
        let fits = |own: &String| match own.strip_suffix('*') {
            Some(prefix) => path.starts_with(prefix),
            None => own == path,
        };
        has(&self.verbs, verb) && self.paths.iter().any(fits)
    }
}

impl Subject {
    /// Returns whether the subject is this user. A service account without a namespace belongs to
    /// the namespace of the binding.
    pub(super) fn is(&self, user: &User, namespace: &str) -> bool {
        match self.kind.as_str() {
            "User" => self.name == user.name,
            "Group" => user.is_in(&self.name),
            _ => {
                let namespace = if self.namespace.is_empty() { namespace } else { &self.namespace };
                // Each request compares many subjects, so this makes no text.
                let rest = user.name.strip_prefix("system:serviceaccount:");
                let account = rest.and_then(|rest| rest.strip_prefix(namespace));
                account.and_then(|rest| rest.strip_prefix(':')) == Some(&self.name)
            }
        }
    }

    /// Returns the subject in the words of kube-apiserver.
    pub(super) fn described(&self, namespace: &str) -> String {
        let Self { kind, name, .. } = self;
        if kind == "ServiceAccount" {
            let namespace = if self.namespace.is_empty() { namespace } else { &self.namespace };
            return format!("{kind} \"{name}/{namespace}\"");
        }
        format!("{kind} {name:?}")
    }
}

fn has(list: &[String], one: &str) -> bool {
    list.iter().any(|own| own == "*" || own == one)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;
    use crate::http::request_info::RequestInfo;

    fn allowed(rule: Value, verb: &str, path: &str) -> bool {
        let rule = Rule::deserialize(rule).expect("a rule");
        match RequestInfo::parse(path) {
            RequestInfo::Resource(info) => rule.allows(verb, &info),
            RequestInfo::Path(path) => rule.allows_path(verb, &path),
        }
    }

    #[rstest]
    #[case(&["pods"], "/api/v1/namespaces/a/pods/p", true)]
    #[case(&["pods"], "/api/v1/namespaces/a/pods/p/exec", false)]
    #[case(&["pods/exec"], "/api/v1/namespaces/a/pods/p/exec", true)]
    #[case(&["pods/exec"], "/api/v1/namespaces/a/pods/p", false)]
    #[case(&["pods/exec"], "/api/v1/namespaces/a/pods/p/log", false)]
    #[case(&["*/exec"], "/api/v1/namespaces/a/pods/p/exec", true)]
    #[case(&["*/exec"], "/api/v1/namespaces/a/pods/p", false)]
    #[case(&["*"], "/api/v1/namespaces/a/pods/p/exec", true)]
    #[case(&["services", "pods"], "/apis/apps/v1/namespaces/a/pods/p", false)]
    fn a_subresource_is_granted_by_its_own_name(
        #[case] resources: &[&str],
        #[case] path: &str,
        #[case] expected: bool,
    ) {
        let rule = json!({"verbs": ["get"], "apiGroups": [""], "resources": resources});
        assert_eq!(allowed(rule.clone(), "get", path), expected);
        assert!(!allowed(rule, "create", path), "a verb that is not listed");
    }

    #[rstest]
    #[case("get", "/api/v1/namespaces/a/configmaps/mine", true)]
    #[case("get", "/api/v1/namespaces/a/configmaps/other", false)]
    #[case("list", "/api/v1/namespaces/a/configmaps", false)]
    fn names_bound_a_rule(#[case] verb: &str, #[case] path: &str, #[case] expected: bool) {
        let rule = json!({
            "verbs": ["*"], "apiGroups": ["*"], "resources": ["configmaps"],
            "resourceNames": ["mine"],
        });
        assert_eq!(allowed(rule, verb, path), expected);
    }

    #[rstest]
    #[case("/metrics", true)]
    #[case("/debug/pprof", true)]
    #[case("/metricsx", false)]
    fn paths_end_in_a_star_or_are_whole(#[case] path: &str, #[case] expected: bool) {
        let rule = json!({"verbs": ["get"], "nonResourceURLs": ["/metrics", "/debug/*"]});
        assert_eq!(allowed(rule, "get", path), expected);
    }

    #[rstest]
    #[case(json!({"kind": "User", "name": "jane"}), "jane", true)]
    #[case(json!({"kind": "User", "name": "friends"}), "jane", false)]
    #[case(json!({"kind": "Group", "name": "friends"}), "jane", true)]
    #[case(json!({"kind": "Group", "name": "jane"}), "jane", false)]
    #[case(json!({"kind": "ServiceAccount", "name": "sa"}), "system:serviceaccount:here:sa", true)]
    #[case(
        json!({"kind": "ServiceAccount", "name": "sa", "namespace": "there"}),
        "system:serviceaccount:here:sa",
        false
    )]
    fn subjects_are_users_groups_and_accounts(
        #[case] subject: Value,
        #[case] name: &str,
        #[case] expected: bool,
    ) {
        let subject = Subject::deserialize(subject).expect("a subject");
        assert_eq!(subject.is(&User::known(name, &["friends"]), "here"), expected);
    }
}
