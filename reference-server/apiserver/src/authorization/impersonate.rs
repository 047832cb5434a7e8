//! Impersonation: the `Impersonate-*` headers.
//!
//! The original user needs permission for each name, group, UID and extra value. After these
//! checks, the request has the permissions of the impersonated user only.

use std::collections::BTreeMap;
use std::sync::Arc;

use http::HeaderMap;

use super::{Rights, denied};
use crate::authentication::{ANONYMOUS, AUTHENTICATED, UNAUTHENTICATED, User};
use kubeproof_apimachinery::request::{ResourceInfo, decode};
use kubeproof_apimachinery::status::ApiError;

const USER: &str = "impersonate-user";
const GROUP: &str = "impersonate-group";
const UID: &str = "impersonate-uid";
const EXTRA: &str = "impersonate-extra-";
/// The API group of the resources for UIDs and extra values. Users and groups belong to the core
/// group.
const AUTHENTICATION: &str = "authentication.k8s.io";
const SERVICE_ACCOUNT: &str = "system:serviceaccount:";

/// Returns the impersonated user, or the original user if no header names another.
pub(crate) fn acting(
    user: Arc<User>,
    headers: &HeaderMap,
    rights: Rights<'_>,
) -> Result<Arc<User>, ApiError> {
    let Some(mut wanted) = wanted(headers)? else { return Ok(user) };
    check(&user, &wanted, rights)?;
    wanted.groups.extend(implied_groups(&wanted));
    Ok(Arc::new(wanted))
}

/// Returns the user that the headers describe, or none.
fn wanted(headers: &HeaderMap) -> Result<Option<User>, ApiError> {
    let text = |name: &str| -> String {
        headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned()
    };
    let all = |name: &str| -> Vec<String> {
        headers
            .get_all(name)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .map(str::to_owned)
            .collect()
    };
    let mut extra = BTreeMap::new();
    for key in headers.keys().filter_map(|name| name.as_str().strip_prefix(EXTRA)) {
        let known_as = decode(key);
        extra.insert(known_as, all(&format!("{EXTRA}{key}")));
    }
    let user = User { name: text(USER), uid: text(UID), groups: all(GROUP), extra };
    if user.name.is_empty() {
        let nothing = user.uid.is_empty() && user.groups.is_empty() && user.extra.is_empty();
        return if nothing {
            Ok(None)
        } else {
            Err(ApiError::bad_request(
                "a group, uid or extra is to be impersonated, and no user is named",
            ))
        };
    }
    Ok(Some(user))
}

/// Checks the permission to impersonate each part of that user.
fn check(user: &User, wanted: &User, rights: Rights<'_>) -> Result<(), ApiError> {
    let core = |resource: &str, name: &str| ResourceInfo {
        resource: resource.to_owned(),
        name: name.to_owned(),
        ..ResourceInfo::default()
    };
    let named = match service_account(&wanted.name) {
        Some((namespace, name)) => {
            ResourceInfo { namespace: namespace.to_owned(), ..core("serviceaccounts", name) }
        }
        None => core("users", &wanted.name),
    };
    let groups = wanted.groups.iter().map(|group| core("groups", group));
    let authentication =
        |info: ResourceInfo| ResourceInfo { group: AUTHENTICATION.to_owned(), ..info };
    let uid = (!wanted.uid.is_empty()).then(|| authentication(core("uids", &wanted.uid)));
    let extra = wanted.extra.iter().flat_map(|(key, values)| {
        values.iter().map(move |value| {
            let info = core("userextras", value);
            authentication(ResourceInfo { subresource: key.clone(), ..info })
        })
    });
    let mut parts = std::iter::once(named).chain(groups).chain(uid).chain(extra);
    match parts.find(|part| !rights.may_access(user, "impersonate", part)) {
        Some(part) => Err(denied(user, "impersonate", &part)),
        None => Ok(()),
    }
}

/// Returns the groups that follow from the user name.
fn implied_groups(user: &User) -> Vec<String> {
    let mut groups = Vec::new();
    if let Some((namespace, _)) = service_account(&user.name)
        && user.groups.is_empty()
    {
        groups.extend([
            "system:serviceaccounts".to_owned(),
            format!("system:serviceaccounts:{namespace}"),
        ]);
    }
    if user.name == ANONYMOUS {
        groups.push(UNAUTHENTICATED.to_owned());
    } else if !user.is_in(AUTHENTICATED) && !user.is_in(UNAUTHENTICATED) {
        groups.push(AUTHENTICATED.to_owned());
    }
    groups
}

/// Returns namespace and name of a service account.
fn service_account(user: &str) -> Option<(&str, &str)> {
    let (namespace, name) = user.strip_prefix(SERVICE_ACCOUNT)?.split_once(':')?;
    (!namespace.is_empty() && !name.is_empty() && !name.contains(':')).then_some((namespace, name))
}

#[cfg(test)]
mod tests {
    use http::{HeaderName, HeaderValue};
    use rstest::rstest;
    use serde_json::json;

    use super::*;
    use crate::authentication::MASTERS;
    use crate::authorization::RoleIndex;
    use crate::config::AuthorizationMode;
    use crate::registry::builtin::rbac::{CLUSTER_BINDINGS, CLUSTER_ROLES, ROLE_BINDINGS};
    use futures_util::FutureExt as _;
    use kubeproof_storage::{Draft, Key, Store};

    fn act(
        groups: &[&str],
        headers: &[(&'static str, &'static str)],
    ) -> Result<Arc<User>, ApiError> {
        act_by(&Arc::new(Store::new(1)), groups, headers)
    }

    fn act_by(
        store: &Arc<Store>,
        groups: &[&str],
        headers: &[(&'static str, &'static str)],
    ) -> Result<Arc<User>, ApiError> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        let roles = &Arc::new(RoleIndex::default());
        let rights = Rights { store, roles, mode: AuthorizationMode::Rbac };
        acting(Arc::new(User::known("me", groups)), &map, rights)
    }

    #[rstest]
    #[case(&[("impersonate-user", "jim")], &["system:authenticated"])]
    #[case(
        &[("impersonate-user", "jim"), ("impersonate-group", "a"), ("impersonate-group", "b")],
        &["a", "b", "system:authenticated"]
    )]
    #[case(&[("impersonate-user", "system:anonymous")], &["system:unauthenticated"])]
    #[case(
        &[("impersonate-user", "system:serviceaccount:ns:sa")],
        &["system:serviceaccounts", "system:serviceaccounts:ns", "system:authenticated"]
    )]
    #[case(
        &[("impersonate-user", "system:serviceaccount:ns:sa"), ("impersonate-group", "a")],
        &["a", "system:authenticated"]
    )]
    #[case(
        &[("impersonate-user", "jim"), ("impersonate-group", "system:authenticated")],
        &["system:authenticated"]
    )]
    #[case(
        &[("impersonate-user", "jim"), ("impersonate-group", "system:unauthenticated")],
        &["system:unauthenticated"]
    )]
    #[case(&[("impersonate-user", "system:serviceaccount:ns:")], &["system:authenticated"])]
    fn groups_of_the_other_user(
        #[case] headers: &[(&'static str, &'static str)],
        #[case] groups: &[&str],
    ) {
        assert_eq!(act(&[MASTERS], headers).expect("the masters may").groups, groups);
    }

    #[rstest]
    #[case(
        &[],
        &[("impersonate-user", "jim")],
        "403 Forbidden Forbidden: users \"jim\" is forbidden"
    )]
    #[case(
        &[],
        &[("impersonate-user", "system:serviceaccount:ns:sa")],
        "403 Forbidden Forbidden: serviceaccounts \"sa\" is forbidden"
    )]
    #[case(&[MASTERS], &[("impersonate-group", "a")], "400 Bad Request BadRequest")]
    #[case(&[MASTERS], &[("impersonate-extra-a", "a")], "400 Bad Request BadRequest")]
    fn rejections(
        #[case] own: &[&str],
        #[case] headers: &[(&'static str, &'static str)],
        #[case] expected: &str,
    ) {
        let rejection = act(own, headers).expect_err("must be rejected").to_string();
        assert!(rejection.starts_with(expected), "{rejection}");
    }

    /// Creates a store with one cluster role that is bound to `me` in a namespace or in the
    /// cluster.
    fn bound(namespace: Option<&str>, rules: &serde_json::Value) -> Store {
        let store = Store::new(10);
        let put = |table: &str, namespace: &str, rest: &serde_json::Value| {
            let draft = Draft {
                key: Key::new(namespace, "given"),
                facts: Arc::default(),
                before: br#"{"metadata":{"resourceVersion":""#.to_vec(),
                after: format!(r#""}},{}"#, &rest.to_string()[1..]).into(),
                body: 1,
            };
            let _ = store.write(|write| write.put(table, &draft)).now_or_never();
        };
        put(CLUSTER_ROLES, "", &json!({ "rules": rules }));
        let subjects = json!([{"kind": "User", "name": "me"}]);
        let binding =
            json!({"roleRef": {"kind": "ClusterRole", "name": "given"}, "subjects": subjects});
        put(
            namespace.map_or(CLUSTER_BINDINGS, |_| ROLE_BINDINGS),
            namespace.unwrap_or_default(),
            &binding,
        );
        store
    }

    const ACCOUNT: (&str, &str) = ("impersonate-user", "system:serviceaccount:ns:sa");
    const JIM: (&str, &str) = ("impersonate-user", "jim");

    /// Each part of the impersonated user is a resource of its own.
    #[rstest]
    #[case(None, "", "users", &[JIM], true)]
    #[case(None, "", "groups", &[JIM], false)]
    #[case(None, "authentication.k8s.io", "users", &[JIM], false)]
    #[case(None, "", "serviceaccounts", &[ACCOUNT], true)]
    #[case(Some("ns"), "", "serviceaccounts", &[ACCOUNT], true)]
    #[case(Some("other"), "", "serviceaccounts", &[ACCOUNT], false)]
    #[case(None, "", "users", &[ACCOUNT], false)]
    #[case(None, "", "groups", &[JIM, ("impersonate-group", "a")], true)]
    #[case(None, "", "uids", &[JIM, ("impersonate-group", "a")], false)]
    #[case(None, "authentication.k8s.io", "uids", &[JIM, ("impersonate-uid", "u")], true)]
    #[case(None, "", "uids", &[JIM, ("impersonate-uid", "u")], false)]
    #[case(
        None,
        "authentication.k8s.io",
        "userextras/scopes",
        &[JIM, ("impersonate-extra-scopes", "a")],
        true
    )]
    #[case(
        None,
        "authentication.k8s.io",
        "userextras",
        &[JIM, ("impersonate-extra-scopes", "a")],
        false
    )]
    #[case(
        None,
        "authentication.k8s.io",
        "userextras/other",
        &[JIM, ("impersonate-extra-scopes", "a")],
        false
    )]
    fn who_may_be_acted_as_is_granted_in_parts(
        #[case] namespace: Option<&str>,
        #[case] group: &str,
        #[case] resource: &str,
        #[case] headers: &[(&'static str, &'static str)],
        #[case] expected: bool,
    ) {
        let rule = |group: &str, resource: &str, names: &[&str]| {
            json!({
                "verbs": ["impersonate"], "apiGroups": [group], "resources": [resource],
                "resourceNames": names,
            })
        };
        let mut rules = vec![rule(group, resource, &[])];
        if headers.len() > 1 {
            rules.push(rule("", "users", &["jim"]));
        }
        let store = Arc::new(bound(namespace, &json!(rules)));
        let acted = act_by(&store, &[], headers);
        assert_eq!(
            acted.map(|user| user.name != "me").map_err(|rejection| rejection.code),
            if expected { Ok(true) } else { Err(http::StatusCode::FORBIDDEN) }
        );
    }

    #[test]
    fn keys_of_extras_are_decoded_and_values_kept_in_order() {
        let name = "impersonate-extra-acme.com%2fproject";
        let user = act(&[MASTERS], &[("impersonate-user", "jim"), (name, "b"), (name, "a")]);
        let extra = user.expect("the masters may").extra.clone();
        assert_eq!(
            extra,
            BTreeMap::from([("acme.com/project".to_owned(), vec!["b".into(), "a".into()])])
        );
    }
}
