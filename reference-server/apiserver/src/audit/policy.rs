//! Which requests the log contains, and how much of them.

use kubeproof_apimachinery::request::ResourceInfo;

use super::trail::Origin;
use crate::authentication::User;
use crate::config::audit::{AuditPolicy, GroupResources, Level, Rule, Stage};
use crate::http::request_info::RequestInfo;

/// What the log contains about a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Scope {
    pub(super) level: Level,
    pub(super) omit_stages: Vec<Stage>,
    pub(super) omit_managed_fields: bool,
}

impl AuditPolicy {
    /// Returns what the log contains about a request, or none if that is nothing.
    pub(super) fn scope(&self, origin: &Origin<'_>) -> Option<Scope> {
        let rule = self.rules.iter().find(|rule| rule.matches(origin))?;
        let omit_stages = self.omit_stages.iter().chain(&rule.omit_stages).copied().collect();
        (rule.level != Level::None).then(|| Scope {
            level: rule.level,
            omit_stages,
            omit_managed_fields: rule.omit_managed_fields.unwrap_or(self.omit_managed_fields),
        })
    }
}

impl Rule {
    fn matches(&self, origin: &Origin<'_>) -> bool {
        let Origin { user, verb, info, .. } = origin;
        if !self.matches_user(user) || !is_listed(&self.verbs, verb) {
            return false;
        }
        let about_resources = self.is_about_resources();
        match info {
            RequestInfo::Resource(info) if about_resources => self.matches_resource(info),
            RequestInfo::Resource(_) => self.non_resource_urls.is_empty(),
            RequestInfo::Path(path) if !self.non_resource_urls.is_empty() => {
                self.non_resource_urls.iter().any(|url| is_below(url, path))
            }
            RequestInfo::Path(_) => !about_resources,
        }
    }

    fn matches_user(&self, user: &User) -> bool {
        let in_group = |group: &String| user.is_in(group);
        (self.users.is_empty() || self.users.contains(&user.name))
            && (self.user_groups.is_empty() || self.user_groups.iter().any(in_group))
    }

    fn matches_resource(&self, info: &ResourceInfo) -> bool {
        let in_namespace = self.namespaces.is_empty() || self.namespaces.contains(&info.namespace);
        let is_named =
            self.resources.is_empty() || self.resources.iter().any(|it| it.matches(info));
        in_namespace && is_named
    }
}

impl GroupResources {
    fn matches(&self, info: &ResourceInfo) -> bool {
        let is_named = self.resource_names.is_empty() || self.resource_names.contains(&info.name);
        let is_listed = || {
            let mut listed = self.resources.iter();
            self.resources.is_empty() || listed.any(|pattern| is_resource(pattern, info))
        };
        self.group == info.group && is_named && is_listed()
    }
}

/// Returns whether a pattern is about a resource: `pods`, `pods/log`, `pods/*`, `*/scale` or `*`.
fn is_resource(pattern: &str, info: &ResourceInfo) -> bool {
    let (resource, subresource) = pattern.split_once('/').unwrap_or((pattern, ""));
    if pattern == "*" {
        return true;
    }
    (resource == "*" || resource == info.resource)
        && (subresource == info.subresource || (subresource == "*" && !info.subresource.is_empty()))
}

/// Returns whether a path is a pattern, or below one that ends with a star.
fn is_below(pattern: &str, path: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => path.starts_with(start),
        None => path == pattern,
    }
}

/// Returns whether a list has a verb. An empty list has all.
fn is_listed(verbs: &[String], verb: &str) -> bool {
    verbs.is_empty() || verbs.iter().any(|known| known == verb || known == "*")
}

#[cfg(test)]
mod tests {
    use http::HeaderMap;
    use rstest::rstest;

    use super::*;

    const POLICY: &str = r#"
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: None
  users: [system:probe]
- level: RequestResponse
  resources: [{group: "", resources: [pods, pods/log]}]
  omitStages: [ResponseStarted]
- level: Request
  verbs: [create, update]
  namespaces: [prod, ""]
- level: None
  nonResourceURLs: ["/healthz*", /version]
- level: Metadata
  userGroups: [devs]
"#;

    #[rstest]
    #[case("system:probe", "get", "/api/v1/namespaces/n/pods/p", None)]
    #[case("jane", "get", "/api/v1/namespaces/n/pods/p", Some(Level::RequestResponse))]
    #[case("jane", "get", "/api/v1/namespaces/n/pods/p/log", Some(Level::RequestResponse))]
    #[case("jane", "get", "/api/v1/namespaces/n/pods/p/exec", Some(Level::Metadata))]
    #[case("jane", "create", "/api/v1/namespaces/prod/secrets", Some(Level::Request))]
    #[case("jane", "create", "/api/v1/namespaces", Some(Level::Request))]
    #[case("jane", "create", "/api/v1/namespaces/test/secrets", Some(Level::Metadata))]
    #[case("jane", "get", "/healthz/ping", None)]
    #[case("jane", "get", "/version/", Some(Level::Metadata))]
    #[case("jane", "get", "/metrics", Some(Level::Metadata))]
    fn the_first_rule_that_matches_decides(
        #[case] user: &str,
        #[case] verb: &str,
        #[case] path: &str,
        #[case] level: Option<Level>,
    ) {
        let policy = AuditPolicy::parse(POLICY.as_bytes()).expect("a policy");
        let (user, info) = (User::known(user, &["devs"]), RequestInfo::parse(path));
        let (uri, headers) = (path.parse().expect("a path"), HeaderMap::new());
        let origin =
            Origin { user: &user, verb, info: &info, uri: &uri, headers: &headers, remote: None };
        let scope = policy.scope(&origin);
        assert_eq!(scope.as_ref().map(|scope| scope.level), level);
        if let Some(scope) = scope {
            let also = if level == Some(Level::RequestResponse) {
                vec![Stage::RequestReceived, Stage::ResponseStarted]
            } else {
                vec![Stage::RequestReceived]
            };
            assert_eq!(scope.omit_stages, also);
        }
    }

    #[rstest]
    #[case("pods", "pods", "", true)]
    #[case("pods", "pods", "log", false)]
    #[case("pods/*", "pods", "log", true)]
    #[case("pods/*", "pods", "", false)]
    #[case("*/scale", "deployments", "scale", true)]
    #[case("*", "pods", "log", true)]
    fn resources(
        #[case] pattern: &str,
        #[case] resource: &str,
        #[case] subresource: &str,
        #[case] expected: bool,
    ) {
        let info = ResourceInfo {
            resource: resource.to_owned(),
            subresource: subresource.to_owned(),
            ..ResourceInfo::default()
        };
        assert_eq!(is_resource(pattern, &info), expected);
    }
}
