//! Who asks, and whether they may: a fixed administrator, a user without rights, and anybody.

use http::{HeaderMap, Method, header};
use serde_json::{Value, json};

use crate::request_info::{RequestInfo, ResourceInfo};
use crate::status::{ApiError, Subject};
use crate::{Config, Fault, Faults};

/// Who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum User {
    /// May do everything.
    Admin,
    /// Is known, and may read discovery and ask about itself.
    Powerless,
    /// Gave no token, and may read what a load balancer reads.
    Anonymous,
}

impl User {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Admin => "kubeproof-admin",
            Self::Powerless => "kubeproof-user",
            Self::Anonymous => "system:anonymous",
        }
    }

    pub(crate) const fn groups(self) -> &'static [&'static str] {
        match self {
            Self::Admin => &["system:masters", "system:authenticated"],
            Self::Powerless => &["system:authenticated"],
            Self::Anonymous => &["system:unauthenticated"],
        }
    }

    /// `UserInfo` of the authentication API.
    pub(crate) fn info(self) -> Value {
        json!({ "username": self.name(), "uid": self.name(), "groups": self.groups() })
    }

    /// Whether this user may do `verb` on the resource.
    pub(crate) fn may_access(self, verb: &str, info: &ResourceInfo) -> bool {
        let about_self = matches!(
            info.resource.as_str(),
            "selfsubjectreviews" | "selfsubjectaccessreviews" | "selfsubjectrulesreviews"
        );
        match self {
            Self::Admin => true,
            Self::Powerless => verb == "create" && about_self,
            Self::Anonymous => false,
        }
    }

    /// Whether this user may read a path outside the resources.
    pub(crate) fn may_read(self, path: &str) -> bool {
        let path = path.trim_end_matches('/');
        let public = matches!(path, "/healthz" | "/livez" | "/readyz" | "/version");
        let discovery = ["/api", "/apis", "/openapi"]
            .iter()
            .any(|root| path == *root || path.starts_with(&format!("{root}/")));
        match self {
            Self::Admin => true,
            Self::Powerless => public || discovery,
            Self::Anonymous => public,
        }
    }
}

/// Knows the tokens.
pub(crate) struct Authenticator {
    admin: String,
    user: Option<String>,
}

impl Authenticator {
    pub(crate) fn new(config: &Config) -> Self {
        Self { admin: config.admin_token.clone(), user: config.user_token.clone() }
    }

    /// The user of a token.
    pub(crate) fn token(&self, token: &str) -> Option<User> {
        if token == self.admin {
            Some(User::Admin)
        } else if self.user.as_deref() == Some(token) {
            Some(User::Powerless)
        } else {
            None
        }
    }

    /// The user of a request. A scheme other than Bearer, and an empty token, count as no token.
    pub(crate) fn authenticate(&self, headers: &HeaderMap, faults: Faults) -> Result<User, ApiError> {
        let Some(value) = headers.get(header::AUTHORIZATION) else { return Ok(User::Anonymous) };
        let token =
            value.to_str().ok().and_then(|value| value.split_once(' ')).and_then(|(scheme, token)| {
                let token = token.trim();
                (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
            });
        let Some(token) = token else { return Ok(User::Anonymous) };
        match self.token(token) {
            Some(user) => Ok(user),
            None if faults.on(Fault::UnknownTokenIsAnonymous) => Ok(User::Anonymous),
            None => Err(ApiError::unauthorized()),
        }
    }
}

/// Refuses what the user may not do. This comes before everything else, so a refusal tells nothing about what exists.
pub(crate) fn authorize(
    user: User,
    method: &Method,
    info: &RequestInfo,
    watch: bool,
    faults: Faults,
) -> Result<(), ApiError> {
    if faults.on(Fault::EverybodyMayEverything) && user != User::Anonymous {
        return Ok(());
    }
    match info {
        RequestInfo::Path(path) if user.may_read(path) => Ok(()),
        RequestInfo::Path(path) => {
            let verb = method.as_str().to_ascii_lowercase();
            Err(ApiError::forbidden_path(&format!("User {:?} cannot {verb} path {path:?}", user.name())))
        }
        RequestInfo::Resource(resource) => {
            let verb = resource.verb(method, watch);
            if user.may_access(verb, resource) {
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

fn denied(user: User, verb: &str, info: &ResourceInfo) -> ApiError {
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
    let what = format!(
        "User {:?} cannot {verb} resource {path:?} in API group {:?} {place}",
        user.name(),
        info.group
    );
    ApiError::forbidden(Subject { group: &info.group, word: &info.resource }, &info.name, &what)
}
