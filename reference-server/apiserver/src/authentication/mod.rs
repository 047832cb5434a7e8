//! Authentication: identifies the user of a request by a client certificate or a bearer token.
//!
//! There are an administrator, a viewer, a user without permissions, and anonymous users.
//! Permissions follow from groups, as if roles were bound to them. Masters may do everything, and
//! viewers may read everything. Authenticated users may read discovery and review their own access.
//! Everybody may read the paths of load balancers. Roles in the store add permissions ([`Rights`]).

mod certificate;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use http::request::Parts;
use http::{HeaderMap, header};
use kubeproof_streaming::websocket;
use serde_json::{Value, json};

use crate::certificates::{ClientCa, PeerCertificates};
use crate::config::{AuthorizationMode, Options, TokenUser};
use crate::service_accounts::{self, Binding, Bindings, Claims, ServiceAccounts, TokenError};
use kubeproof_apimachinery::request::ResourceInfo;
use kubeproof_apimachinery::status::ApiError;
use kubeproof_storage::Store;

/// The group of administrators.
pub(crate) const MASTERS: &str = "system:masters";
/// The group of all users with a valid credential.
pub(crate) const AUTHENTICATED: &str = "system:authenticated";
/// The group of all users without a credential.
pub(crate) const UNAUTHENTICATED: &str = "system:unauthenticated";
/// The group of all service accounts.
pub(crate) const SERVICE_ACCOUNTS: &str = "system:serviceaccounts";
/// The group of users with read-only access to everything.
pub(crate) const VIEWERS: &str = "kubeproof:viewers";
/// The user of requests without a credential.
pub(crate) const ANONYMOUS: &str = "system:anonymous";

/// The key of the extra field that identifies the credential of a user.
const CREDENTIAL_ID: &str = "authentication.kubernetes.io/credential-id";

/// The user of a request, as `UserInfo` in the authentication API.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct User {
    pub(crate) name: String,
    pub(crate) uid: String,
    pub(crate) groups: Vec<String>,
    pub(crate) extra: BTreeMap<String, Vec<String>>,
}

impl User {
    pub(crate) fn known(name: &str, groups: &[&str]) -> Self {
        let groups = groups.iter().map(|group| (*group).to_owned()).collect();
        Self { name: name.to_owned(), uid: name.to_owned(), groups, extra: BTreeMap::new() }
    }

    /// Returns a service account without a token.
    pub(crate) fn service_account(namespace: &str, name: &str) -> Self {
        let groups = [SERVICE_ACCOUNTS, &format!("system:serviceaccounts:{namespace}")];
        let groups = groups.into_iter().chain([AUTHENTICATED]).map(str::to_owned).collect();
        let name = format!("system:serviceaccount:{namespace}:{name}");
        Self { name, groups, ..Self::default() }
    }

    /// Returns the `UserInfo` of the authentication API.
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

    pub(crate) fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|own| own == group)
    }

    /// Returns whether the user has all permissions.
    pub(crate) fn is_master(&self) -> bool {
        self.is_in(MASTERS)
    }

    /// Returns whether the user has a valid credential.
    pub(crate) fn is_authenticated(&self) -> bool {
        self.is_in(AUTHENTICATED)
    }

    /// Returns whether the groups of the user permit `verb` on the resource.
    pub(crate) fn may_access(&self, verb: &str, info: &ResourceInfo) -> bool {
        let about_self = matches!(
            info.resource.as_str(),
            "selfsubjectreviews" | "selfsubjectaccessreviews" | "selfsubjectrulesreviews"
        );
        // Reading these subresources acts inside the pod, so read access does not include them.
        let shows = matches!(info.subresource.as_str(), "" | "status" | "scale" | "log");
        let reads = self.is_in(VIEWERS) && shows && matches!(verb, "get" | "list" | "watch");
        self.is_master() || reads || (self.is_authenticated() && verb == "create" && about_self)
    }

    /// Returns whether the groups of the user permit `verb` on a non-resource path.
    pub(crate) fn may_read(&self, verb: &str, path: &str) -> bool {
        let path = path.trim_end_matches('/');
        let public = matches!(path, "/healthz" | "/livez" | "/readyz" | "/version");
        let keys = matches!(path, "/openid/v1/jwks" | "/.well-known/openid-configuration");
        let discovery = ["/api", "/apis", "/openapi"]
            .iter()
            .any(|root| path == *root || path.starts_with(&format!("{root}/")));
        let known = self.is_authenticated() || self.is_in(UNAUTHENTICATED);
        let reads = matches!(verb, "get" | "head");
        self.is_master()
            || (reads
                && ((public && known)
                    || (discovery && self.is_authenticated())
                    || (keys && self.is_in(SERVICE_ACCOUNTS))))
    }
}

/// Identifies users by their credentials.
pub(crate) struct Authenticator {
    tokens: HashMap<String, Arc<User>>,
    client_ca: Option<ClientCa>,
    /// The user of requests without a credential. Without it, they are rejected.
    anonymous: Option<Arc<User>>,
}

/// The result of one kind of credential.
enum Credential {
    Missing,
    Invalid,
    Valid(Arc<User>),
}

/// The user of a token, and the audiences that the token is for.
#[derive(Debug)]
pub(crate) struct TokenUserInfo {
    pub(crate) user: Arc<User>,
    pub(crate) audiences: Vec<String>,
}

/// What identifies the users of requests: fixed credentials, and service accounts in the store.
#[derive(Clone, Copy)]
pub(crate) struct Credentials<'a> {
    pub(crate) authenticator: &'a Authenticator,
    pub(crate) service_accounts: &'a ServiceAccounts,
    pub(crate) store: &'a Store,
}

impl Authenticator {
    pub(crate) fn new(options: &Options) -> Self {
        let own = [
            (Some(&options.admin_token), User::known("kubeproof-admin", &[MASTERS, AUTHENTICATED])),
            (options.user_token.as_ref(), User::known("kubeproof-user", &[AUTHENTICATED])),
            (
                options.viewer_token.as_ref(),
                User::known("kubeproof-viewer", &[VIEWERS, AUTHENTICATED]),
            ),
        ];
        let own = own.into_iter().filter_map(|(token, user)| Some((token?.clone(), user)));
        let listed = options.users.iter().map(|user| (user.token.clone(), listed(user)));
        let tokens = own.chain(listed).map(|(token, user)| (token, Arc::new(user))).collect();
        let anonymous = User { uid: String::new(), ..User::known(ANONYMOUS, &[UNAUTHENTICATED]) };
        // As in kube-apiserver, a server that allows everything admits no anonymous users.
        let anonymous = (options.authorization == AuthorizationMode::Rbac).then_some(anonymous);
        Self { tokens, client_ca: options.client_ca.clone(), anonymous: anonymous.map(Arc::new) }
    }

    fn certificate(&self, request: &Parts) -> Credential {
        let peer = request.extensions.get::<Arc<PeerCertificates>>();
        let (Some(authority), Some(peer)) = (&self.client_ca, peer) else {
            return Credential::Missing;
        };
        if !authority.has_signed(peer) {
            return Credential::Invalid;
        }
        match certificate::user(peer) {
            Some(user) => Credential::Valid(Arc::new(user)),
            None => Credential::Missing,
        }
    }
}

impl Credentials<'_> {
    /// Returns the user of a request. A valid certificate takes precedence over a token.
    pub(crate) fn authenticate(self, request: &Parts) -> Result<Arc<User>, ApiError> {
        let certificate = self.authenticator.certificate(request);
        if let Credential::Valid(user) = certificate {
            return Ok(user);
        }
        match (self.bearer_token(&request.headers), certificate) {
            (Credential::Valid(user), _) => Ok(user),
            (Credential::Missing, Credential::Missing) => {
                self.authenticator.anonymous.clone().ok_or_else(ApiError::unauthorized)
            }
            _ => Err(ApiError::unauthorized()),
        }
    }

    /// Returns the user of a token that is for one of the audiences. Without audiences, the token
    /// must be for this server. The error is the reason, if the server has issued the token.
    pub(crate) fn token(
        self,
        token: &str,
        audiences: &[String],
    ) -> Result<TokenUserInfo, Option<TokenError>> {
        let own = &self.service_accounts.audiences;
        let wanted = if audiences.is_empty() { own.as_slice() } else { audiences };
        if let Some(user) = self.authenticator.tokens.get(token) {
            // Fixed tokens have no audience. They are for this server.
            let audiences: Vec<_> =
                wanted.iter().filter(|one| own.contains(one)).cloned().collect();
            let user = Arc::clone(user);
            return if audiences.is_empty() {
                Err(None)
            } else {
                Ok(TokenUserInfo { user, audiences })
            };
        }
        let claims = self.service_accounts.claims(token).ok_or(None)?;
        let audiences = claims.check(wanted, service_accounts::now()).map_err(Some)?;
        claims.check_objects(self.store).map_err(Some)?;
        Ok(TokenUserInfo { user: Arc::new(service_account(&claims)), audiences })
    }

    /// Browsers cannot set the header, so they send the token as a WebSocket subprotocol. Other
    /// schemes than Bearer and empty tokens count as no token.
    fn bearer_token(self, headers: &HeaderMap) -> Credential {
        let token = match headers.get(header::AUTHORIZATION) {
            Some(value) => value.to_str().ok().and_then(bearer).map(str::to_owned),
            None => match websocket::bearer_token(headers) {
                Ok(token) => token,
                Err(_) => return Credential::Invalid,
            },
        };
        match token.map(|token| self.token(&token, &[])) {
            None => Credential::Missing,
            Some(Err(_)) => Credential::Invalid,
            Some(Ok(known)) => Credential::Valid(known.user),
        }
    }
}

/// Returns the user of a service account token.
fn service_account(claims: &Claims) -> User {
    let Bindings { namespace, node, pod, serviceaccount, .. } = &claims.kubernetes;
    let mut extra =
        BTreeMap::from([(CREDENTIAL_ID.to_owned(), vec![format!("JTI={}", claims.jti)])]);
    for (kind, binding) in [("node", node), ("pod", pod)] {
        let Some(Binding { name, uid }) = binding else { continue };
        for (field, value) in [("name", name), ("uid", uid)] {
            let key = format!("authentication.kubernetes.io/{kind}-{field}");
            extra.insert(key, vec![value.clone()]);
        }
    }
    let account = User::service_account(namespace, &serviceaccount.name);
    User { uid: serviceaccount.uid.clone(), extra, ..account }
}

/// Returns the token of a header with the scheme Bearer.
fn bearer(value: &str) -> Option<&str> {
    let (scheme, token) = value.split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

fn listed(user: &TokenUser) -> User {
    let groups = user.groups.iter().cloned().chain([AUTHENTICATED.to_owned()]).collect();
    User { name: user.name.clone(), uid: user.uid.clone(), groups, extra: BTreeMap::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_info_contains_only_what_is_set() {
        let nobody = User { name: "a".to_owned(), ..User::default() };
        assert_eq!(nobody.info(), json!({"username": "a"}));
        let extra = BTreeMap::from([("k".to_owned(), vec!["v".to_owned()])]);
        let somebody = User { extra, ..User::known("b", &["g"]) };
        let expected = json!({"username": "b", "uid": "b", "groups": ["g"], "extra": {"k": ["v"]}});
        assert_eq!(somebody.info(), expected);
    }
}
