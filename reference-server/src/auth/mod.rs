//! Who asks, and whether they may: a fixed administrator, a user who reads, one without rights, anybody, and whom the administrator acts as.
//!
//! Rights follow from groups, as if five roles were bound: the masters may do everything, viewers read everything, the authenticated read discovery and
//! ask about themselves, everybody reads what a load balancer reads. So a user that nobody knows has the rights of its groups. What roles in the
//! store give comes on top ([`Rights`]).

mod impersonate;
pub(crate) mod roles;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use http::{HeaderMap, Method, header};
use serde_json::{Value, json};

use crate::query::Query;
use crate::request_info::{RequestInfo, ResourceInfo};
use crate::selector::FieldSelector;
use crate::status::{ApiError, Subject};
use crate::streams;
use crate::{Config, Fault, Faults};

pub(crate) use impersonate::acting;
pub(crate) use roles::Rights;

/// The group of those who may do everything.
const MASTERS: &str = "system:masters";
/// The group of all who have shown a credential.
const AUTHENTICATED: &str = "system:authenticated";
/// The group of all who have not.
const UNAUTHENTICATED: &str = "system:unauthenticated";
/// The group of those who may read everything.
const VIEWERS: &str = "kubeproof:viewers";
/// Who gave no credential.
const ANONYMOUS: &str = "system:anonymous";

/// Who asks: `UserInfo` of the authentication API.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct User {
    pub(crate) name: String,
    pub(crate) uid: String,
    pub(crate) groups: Vec<String>,
    pub(crate) extra: BTreeMap<String, Vec<String>>,
}

impl User {
    fn known(name: &str, groups: &[&str]) -> Self {
        let groups = groups.iter().map(|group| (*group).to_owned()).collect();
        Self { name: name.to_owned(), uid: name.to_owned(), groups, extra: BTreeMap::new() }
    }

    /// As the authentication API writes it.
    pub(crate) fn info(&self) -> Value {
        let mut info = json!({ "username": self.name });
        if !self.uid.is_empty() {
            info["uid"] = self.uid.as_str().into();
        }
        if !self.groups.is_empty() {
            info["groups"] = json!(self.groups);
        }
        if !self.extra.is_empty() {
            info["extra"] = json!(self.extra);
        }
        info
    }

    fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|own| own == group)
    }

    /// Whether this user may do everything.
    pub(crate) fn is_master(&self) -> bool {
        self.is_in(MASTERS)
    }

    /// Whether this user has shown who they are.
    pub(crate) fn is_authenticated(&self) -> bool {
        self.is_in(AUTHENTICATED)
    }

    /// Whether the groups of this user let it do `verb` on the resource.
    fn may_access(&self, verb: &str, info: &ResourceInfo) -> bool {
        let about_self = matches!(
            info.resource.as_str(),
            "selfsubjectreviews" | "selfsubjectaccessreviews" | "selfsubjectrulesreviews"
        );
        // To read what leads into a pod is to act there.
        let shows = matches!(info.subresource.as_str(), "" | "status" | "scale" | "log");
        let reads = self.is_in(VIEWERS) && shows && matches!(verb, "get" | "list" | "watch");
        self.is_master() || reads || (self.is_authenticated() && verb == "create" && about_self)
    }

    /// Whether the groups of this user let it do `verb` on a path outside the resources.
    fn may_read(&self, verb: &str, path: &str) -> bool {
        let path = path.trim_end_matches('/');
        let public = matches!(path, "/healthz" | "/livez" | "/readyz" | "/version");
        let discovery = ["/api", "/apis", "/openapi"]
            .iter()
            .any(|root| path == *root || path.starts_with(&format!("{root}/")));
        let known = self.is_authenticated() || self.is_in(UNAUTHENTICATED);
        let reads = matches!(verb, "get" | "head");
        self.is_master() || (reads && ((public && known) || (discovery && self.is_authenticated())))
    }
}

/// Knows the tokens.
pub(crate) struct Authenticator {
    admin: (String, Arc<User>),
    user: Option<(String, Arc<User>)>,
    viewer: Option<(String, Arc<User>)>,
    anonymous: Arc<User>,
}

impl Authenticator {
    pub(crate) fn new(config: &Config) -> Self {
        let admin = User::known("kubeproof-admin", &[MASTERS, AUTHENTICATED]);
        let user = Arc::new(User::known("kubeproof-user", &[AUTHENTICATED]));
        let viewer = Arc::new(User::known("kubeproof-viewer", &[VIEWERS, AUTHENTICATED]));
        let anonymous = User { uid: String::new(), ..User::known(ANONYMOUS, &[UNAUTHENTICATED]) };
        Self {
            admin: (config.admin_token.clone(), Arc::new(admin)),
            user: config.user_token.clone().map(|token| (token, user)),
            viewer: config.viewer_token.clone().map(|token| (token, viewer)),
            anonymous: Arc::new(anonymous),
        }
    }

    /// The administrator.
    pub(crate) fn admin(&self) -> &User {
        &self.admin.1
    }

    /// The user of a token.
    pub(crate) fn token(&self, token: &str) -> Option<Arc<User>> {
        let mut known = [Some(&self.admin), self.user.as_ref(), self.viewer.as_ref()].into_iter().flatten();
        known.find(|(own, _)| own == token).map(|(_, user)| Arc::clone(user))
    }

    /// The user of a request. A browser can set no header, so its token stands among its subprotocols. A scheme other than Bearer, and an empty token, count as no token.
    pub(crate) fn authenticate(&self, headers: &HeaderMap, faults: Faults) -> Result<Arc<User>, ApiError> {
        let anonymous = || Ok(Arc::clone(&self.anonymous));
        let Some(value) = headers.get(header::AUTHORIZATION) else {
            return match streams::bearer_token(headers) {
                Ok(None) => anonymous(),
                _ if faults.on(Fault::WebsocketTokenIgnored) => anonymous(),
                Ok(Some(token)) => self.token(&token).ok_or_else(ApiError::unauthorized),
                Err(_) => Err(ApiError::unauthorized()),
            };
        };
        let token =
            value.to_str().ok().and_then(|value| value.split_once(' ')).and_then(|(scheme, token)| {
                let token = token.trim();
                (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
            });
        if token.is_none() && faults.on(Fault::OddCredentialsAsServerError) {
            return Err(ApiError::internal("no authenticator for these credentials"));
        }
        let Some(token) = token else { return anonymous() };
        match self.token(token) {
            Some(user) => Ok(user),
            None if faults.on(Fault::UnknownTokenIsAnonymous) => anonymous(),
            None => Err(ApiError::unauthorized()),
        }
    }
}

/// Refuses what the user may not do. This comes before everything else, so a refusal tells nothing about what exists.
pub(crate) fn authorize(
    user: &User,
    method: &Method,
    info: &RequestInfo,
    query: &Query,
    rights: Rights<'_>,
) -> Result<(), ApiError> {
    let faults = rights.faults;
    if faults.on(Fault::EverybodyMayEverything) && user.is_authenticated() {
        return Ok(());
    }
    match info {
        RequestInfo::Path(path) => {
            let verb = method.as_str().to_ascii_lowercase();
            if rights.may_read(user, &verb, path) {
                return Ok(());
            }
            Err(ApiError::forbidden_path(&format!("User {:?} cannot {verb} path {path:?}", user.name)))
        }
        RequestInfo::Resource(resource) => {
            let streams = ["exec", "attach", "portforward"].contains(&resource.subresource.as_str());
            if streams && method == Method::GET && faults.on(Fault::StreamRightsOfPostOnly) {
                return Ok(());
            }
            let verb = resource.verb(method, query.flag("watch"));
            if rights.may_access(user, verb, &selected(resource, verb, query)) {
                return Ok(());
            }
            if faults.on(Fault::ForbiddenAsNotFound) {
                let subject = Subject { group: &resource.group, word: &resource.resource };
                return Err(ApiError::not_found(subject, &resource.name));
            }
            Err(denied(user, verb, resource))
        }
    }
}

/// A collection of which one object is asked for by name counts as that object.
fn selected<'a>(info: &'a ResourceInfo, verb: &str, query: &Query) -> Cow<'a, ResourceInfo> {
    let selects = info.name.is_empty() && matches!(verb, "list" | "watch" | "deletecollection");
    let selector =
        query.text("fieldSelector").filter(|_| selects).and_then(|text| FieldSelector::parse(text).ok());
    match selector.as_ref().and_then(|selector| selector.exact("metadata.name")) {
        Some(name) => Cow::Owned(ResourceInfo { name: name.to_owned(), ..info.clone() }),
        None => Cow::Borrowed(info),
    }
}

fn denied(user: &User, verb: &str, info: &ResourceInfo) -> ApiError {
    let path = if info.subresource.is_empty() {
        info.resource.clone()
    } else {
        format!("{}/{}", info.resource, info.subresource)
    };
    let place = if info.namespace.is_empty() {
        "at the cluster scope".to_owned()
    } else {
        format!("in the namespace {:?}", info.namespace)
    };
    let what =
        format!("User {:?} cannot {verb} resource {path:?} in API group {:?} {place}", user.name, info.group);
    ApiError::forbidden(Subject { group: &info.group, word: &info.resource }, &info.name, &what)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(&[MASTERS], "delete", "/metrics", true)]
    #[case(&[AUTHENTICATED], "get", "/apis/apps/v1", true)]
    #[case(&[AUTHENTICATED], "get", "/apisx", false)]
    #[case(&[AUTHENTICATED], "post", "/apis", false)]
    #[case(&[UNAUTHENTICATED], "get", "/healthz/", true)]
    #[case(&[UNAUTHENTICATED], "get", "/apis", false)]
    #[case(&["friends"], "get", "/healthz", false)]
    fn rights_on_paths_follow_from_groups(
        #[case] groups: &[&str],
        #[case] verb: &str,
        #[case] path: &str,
        #[case] expected: bool,
    ) {
        assert_eq!(User::known("somebody", groups).may_read(verb, path), expected);
    }

    #[rstest]
    #[case(&[MASTERS], "delete", "pods", "", true)]
    #[case(&[VIEWERS], "get", "pods", "", true)]
    #[case(&[VIEWERS], "list", "pods", "", true)]
    #[case(&[VIEWERS], "watch", "pods", "", true)]
    #[case(&[VIEWERS], "get", "deployments", "status", true)]
    #[case(&[VIEWERS], "get", "deployments", "scale", true)]
    #[case(&[VIEWERS], "get", "pods", "log", true)]
    #[case(&[VIEWERS], "get", "pods", "exec", false)]
    #[case(&[VIEWERS], "create", "pods", "", false)]
    #[case(&[AUTHENTICATED], "get", "pods", "", false)]
    #[case(&[AUTHENTICATED], "create", "pods", "", false)]
    #[case(&[AUTHENTICATED], "create", "selfsubjectreviews", "", true)]
    #[case(&[AUTHENTICATED], "create", "selfsubjectaccessreviews", "", true)]
    #[case(&[AUTHENTICATED], "get", "selfsubjectrulesreviews", "", false)]
    #[case(&[UNAUTHENTICATED], "create", "selfsubjectreviews", "", false)]
    fn rights_on_resources_follow_from_groups(
        #[case] groups: &[&str],
        #[case] verb: &str,
        #[case] resource: &str,
        #[case] subresource: &str,
        #[case] expected: bool,
    ) {
        let info = ResourceInfo {
            resource: resource.to_owned(),
            subresource: subresource.to_owned(),
            ..ResourceInfo::default()
        };
        assert_eq!(User::known("somebody", groups).may_access(verb, &info), expected);
    }

    #[test]
    fn a_user_is_told_by_what_they_have() {
        let nobody = User { name: "a".to_owned(), ..User::default() };
        assert_eq!(nobody.info(), json!({"username": "a"}));
        let extra = BTreeMap::from([("k".to_owned(), vec!["v".to_owned()])]);
        let somebody = User { extra, ..User::known("b", &["g"]) };
        let expected = json!({"username": "b", "uid": "b", "groups": ["g"], "extra": {"k": ["v"]}});
        assert_eq!(somebody.info(), expected);
    }

    /// What a selector names is what is asked for where a collection is, and nowhere else.
    #[rstest]
    #[case("list", "", "metadata.name%3Da", "a")]
    #[case("watch", "", "metadata.name%3Da", "a")]
    #[case("deletecollection", "", "metadata.name%3Da", "a")]
    #[case("list", "", "metadata.name!%3Da", "")]
    #[case("create", "", "metadata.name%3Da", "")]
    #[case("get", "b", "metadata.name%3Da", "b")]
    #[case("watch", "b", "metadata.name%3Da", "b")]
    fn a_name_in_a_selector_counts_as_the_name(
        #[case] verb: &str,
        #[case] name: &str,
        #[case] selector: &str,
        #[case] expected: &str,
    ) {
        let info =
            ResourceInfo { name: name.to_owned(), resource: "pods".to_owned(), ..ResourceInfo::default() };
        let query = Query::parse(&format!("fieldSelector={selector}"));
        let selected = selected(&info, verb, &query);
        assert_eq!((selected.name.as_str(), selected.resource.as_str()), (expected, "pods"));
    }
}
