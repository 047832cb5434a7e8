//! The permissions that expressions of admission check.

use std::fmt;
use std::sync::Arc;

use kubeproof_apimachinery::schema::rules::authorizer::{Authorize, Decision, Subject, Target};
use kubeproof_storage::Store;

use super::{Rights, RoleIndex};
use crate::authentication::User;
use crate::config::AuthorizationMode;

/// The permissions of the user of one request, and of service accounts.
struct InExpressions {
    store: Arc<Store>,
    roles: Arc<RoleIndex>,
    mode: AuthorizationMode,
    user: User,
}

/// Returns what decides on permissions in the expressions of a request.
pub(crate) fn in_expressions(rights: Rights<'_>, user: &User) -> Arc<dyn Authorize> {
    let Rights { store, roles, mode } = rights;
    let (store, roles) = (Arc::clone(store), Arc::clone(roles));
    Arc::new(InExpressions { store, roles, mode, user: user.clone() })
}

impl Authorize for InExpressions {
    fn decide(&self, subject: &Subject, verb: &str, target: &Target) -> Decision {
        let account;
        let user = match subject {
            Subject::Requester => &self.user,
            Subject::ServiceAccount { namespace, name } => {
                account = User::service_account(namespace, name);
                &account
            }
        };
        let rights = Rights { store: &self.store, roles: &self.roles, mode: self.mode };
        let (allowed, reason) = match target {
            Target::Path(path) => {
                (rights.may_read(user, verb, path), rights.path_reason(user, verb, path))
            }
            Target::Resource(info) => {
                (rights.may_access(user, verb, info), rights.access_reason(user, verb, info))
            }
        };
        Decision { allowed, reason }
    }
}

impl fmt::Debug for InExpressions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InExpressions").field("user", &self.user.name).finish_non_exhaustive()
    }
}
