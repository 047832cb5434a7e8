//! Acting as somebody else: the `Impersonate-*` headers.
//!
//! Each name, group, uid and extra value is a right of its own, checked for the one who sends the request. From there on
//! the request is the other user's, with the rights of that user and no others.

use std::collections::BTreeMap;
use std::sync::Arc;

use http::HeaderMap;
use percent_encoding::percent_decode_str;

use super::{ANONYMOUS, AUTHENTICATED, Rights, UNAUTHENTICATED, User, denied};
use crate::request_info::ResourceInfo;
use crate::status::ApiError;
use crate::{Fault, Faults};

const USER: &str = "impersonate-user";
const GROUP: &str = "impersonate-group";
const UID: &str = "impersonate-uid";
const EXTRA: &str = "impersonate-extra-";
/// The group of uids and extras; users and groups stand in the core group.
const AUTHENTICATION: &str = "authentication.k8s.io";
const SERVICE_ACCOUNT: &str = "system:serviceaccount:";

/// The user that a request acts as: the one who sent it, unless it names another.
pub(crate) fn acting(
    user: Arc<User>,
    headers: &HeaderMap,
    rights: Rights<'_>,
) -> Result<Arc<User>, ApiError> {
    let faults = rights.faults;
    if faults.on(Fault::ImpersonationIgnored) {
        return Ok(user);
    }
    let Some(mut wanted) = wanted(headers, faults)? else { return Ok(user) };
    if !faults.on(Fault::ImpersonationUnchecked) {
        check(&user, &wanted, rights)?;
    }
    if faults.on(Fault::ImpersonationKeepsGroups) {
        wanted.groups.extend(user.groups.iter().cloned());
    }
    wanted.groups.extend(implied_groups(&wanted, faults));
    Ok(Arc::new(wanted))
}

/// The user that the headers describe; none when they name nobody.
fn wanted(headers: &HeaderMap, faults: Faults) -> Result<Option<User>, ApiError> {
    let text = |name: &str| -> String {
        headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned()
    };
    let all = |name: &str| -> Vec<String> {
        headers.get_all(name).iter().filter_map(|value| value.to_str().ok()).map(str::to_owned).collect()
    };
    let mut extra = BTreeMap::new();
    for key in headers.keys().filter_map(|name| name.as_str().strip_prefix(EXTRA)) {
        let decoded = percent_decode_str(key).decode_utf8_lossy().into_owned();
        let known_as = if faults.on(Fault::ImpersonationExtraEncoded) { key.to_owned() } else { decoded };
        extra.insert(known_as, all(&format!("{EXTRA}{key}")));
    }
    let mut user = User { name: text(USER), uid: text(UID), groups: all(GROUP), extra };
    if user.name.is_empty() {
        let nothing = user.uid.is_empty() && user.groups.is_empty() && user.extra.is_empty();
        return if nothing || faults.on(Fault::ImpersonationWithoutUser) {
            Ok(None)
        } else {
            Err(ApiError::bad_request("a group, uid or extra is to be impersonated, and no user is named"))
        };
    }
    if faults.on(Fault::ImpersonationOfNamesOnly) {
        user = User { name: user.name, ..User::default() };
    }
    Ok(Some(user))
}

/// Whether the one who asks may act as each part of that user.
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
    let authentication = |info: ResourceInfo| ResourceInfo { group: AUTHENTICATION.to_owned(), ..info };
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

/// The groups that a user is in without being told.
fn implied_groups(user: &User, faults: Faults) -> Vec<String> {
    let mut groups = Vec::new();
    if let Some((namespace, _)) = service_account(&user.name)
        && user.groups.is_empty()
        && !faults.on(Fault::ServiceAccountGroupsMissing)
    {
        groups.extend(["system:serviceaccounts".to_owned(), format!("system:serviceaccounts:{namespace}")]);
    }
    if user.name == ANONYMOUS {
        groups.push(UNAUTHENTICATED.to_owned());
    } else if !user.is_in(AUTHENTICATED)
        && !user.is_in(UNAUTHENTICATED)
        && !faults.on(Fault::ImpersonatedIsNotAuthenticated)
    {
        groups.push(AUTHENTICATED.to_owned());
    }
    groups
}

/// Namespace and name of a service account.
fn service_account(user: &str) -> Option<(&str, &str)> {
    let (namespace, name) = user.strip_prefix(SERVICE_ACCOUNT)?.split_once(':')?;
    (!namespace.is_empty() && !name.is_empty() && !name.contains(':')).then_some((namespace, name))
}

#[cfg(test)]
mod tests {
    use http::{HeaderName, HeaderValue};
    use rstest::rstest;
    use serde_json::json;

    use super::super::MASTERS;
    use super::*;
    use crate::builtin::rbac::{CLUSTER_BINDINGS, CLUSTER_ROLES, ROLE_BINDINGS};
    use crate::store::{Draft, Facts, Key, Store};

    fn act(groups: &[&str], headers: &[(&'static str, &'static str)]) -> Result<Arc<User>, ApiError> {
        act_by(&Store::new(1), groups, headers)
    }

    fn act_by(
        store: &Store,
        groups: &[&str],
        headers: &[(&'static str, &'static str)],
    ) -> Result<Arc<User>, ApiError> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        let rights = Rights { store, faults: Faults::none() };
        acting(Arc::new(User::known("me", groups)), &map, rights)
    }

    #[rstest]
    #[case(&[("impersonate-user", "jim")], &["system:authenticated"])]
    #[case(&[("impersonate-user", "jim"), ("impersonate-group", "a"), ("impersonate-group", "b")], &["a", "b", "system:authenticated"])]
    #[case(&[("impersonate-user", "system:anonymous")], &["system:unauthenticated"])]
    #[case(&[("impersonate-user", "system:serviceaccount:ns:sa")], &["system:serviceaccounts", "system:serviceaccounts:ns", "system:authenticated"])]
    #[case(&[("impersonate-user", "system:serviceaccount:ns:sa"), ("impersonate-group", "a")], &["a", "system:authenticated"])]
    #[case(&[("impersonate-user", "jim"), ("impersonate-group", "system:authenticated")], &["system:authenticated"])]
    #[case(&[("impersonate-user", "jim"), ("impersonate-group", "system:unauthenticated")], &["system:unauthenticated"])]
    #[case(&[("impersonate-user", "system:serviceaccount:ns:")], &["system:authenticated"])]
    fn groups_of_the_other_user(#[case] headers: &[(&'static str, &'static str)], #[case] groups: &[&str]) {
        assert_eq!(act(&[MASTERS], headers).expect("the masters may").groups, groups);
    }

    #[rstest]
    #[case(&[], &[("impersonate-user", "jim")], "403 Forbidden Forbidden: users \"jim\" is forbidden")]
    #[case(&[], &[("impersonate-user", "system:serviceaccount:ns:sa")], "403 Forbidden Forbidden: serviceaccounts \"sa\" is forbidden")]
    #[case(&[MASTERS], &[("impersonate-group", "a")], "400 Bad Request BadRequest")]
    #[case(&[MASTERS], &[("impersonate-extra-a", "a")], "400 Bad Request BadRequest")]
    fn refusals(
        #[case] own: &[&str],
        #[case] headers: &[(&'static str, &'static str)],
        #[case] expected: &str,
    ) {
        let refusal = act(own, headers).expect_err("must be refused").to_string();
        assert!(refusal.starts_with(expected), "{refusal}");
    }

    /// A store with one role of the cluster, bound to me: everywhere, or in a namespace.
    fn bound(namespace: Option<&str>, rules: &serde_json::Value) -> Store {
        let store = Store::new(10);
        let put = |table: &str, namespace: &str, rest: &serde_json::Value| {
            let draft = Draft {
                key: Key::new(namespace, "given"),
                facts: Facts::default(),
                before: r#"{"metadata":{"resourceVersion":""#.to_owned(),
                after: format!(r#""}},{}"#, &rest.to_string()[1..]),
                body: 1,
            };
            store.write(|write| write.put(table, draft));
        };
        put(CLUSTER_ROLES, "", &json!({ "rules": rules }));
        let subjects = json!([{"kind": "User", "name": "me"}]);
        let binding = json!({"roleRef": {"kind": "ClusterRole", "name": "given"}, "subjects": subjects});
        put(namespace.map_or(CLUSTER_BINDINGS, |_| ROLE_BINDINGS), namespace.unwrap_or_default(), &binding);
        store
    }

    const ACCOUNT: (&str, &str) = ("impersonate-user", "system:serviceaccount:ns:sa");
    const JIM: (&str, &str) = ("impersonate-user", "jim");

    /// Each part of the other user is a resource of its own.
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
    #[case(None, "authentication.k8s.io", "userextras/scopes", &[JIM, ("impersonate-extra-scopes", "a")], true)]
    #[case(None, "authentication.k8s.io", "userextras", &[JIM, ("impersonate-extra-scopes", "a")], false)]
    #[case(None, "authentication.k8s.io", "userextras/other", &[JIM, ("impersonate-extra-scopes", "a")], false)]
    fn who_may_be_acted_as_is_granted_in_parts(
        #[case] namespace: Option<&str>,
        #[case] group: &str,
        #[case] resource: &str,
        #[case] headers: &[(&'static str, &'static str)],
        #[case] expected: bool,
    ) {
        let rule = |group: &str, resource: &str, names: &[&str]| json!({"verbs": ["impersonate"], "apiGroups": [group], "resources": [resource], "resourceNames": names});
        let mut rules = vec![rule(group, resource, &[])];
        if headers.len() > 1 {
            rules.push(rule("", "users", &["jim"]));
        }
        let store = bound(namespace, &json!(rules));
        let acted = act_by(&store, &[], headers);
        assert_eq!(
            acted.map(|user| user.name != "me").map_err(|refusal| refusal.code),
            if expected { Ok(true) } else { Err(http::StatusCode::FORBIDDEN) }
        );
    }

    #[test]
    fn keys_of_extras_are_decoded_and_values_kept_in_order() {
        let name = "impersonate-extra-acme.com%2fproject";
        let user = act(&[MASTERS], &[("impersonate-user", "jim"), (name, "b"), (name, "a")]);
        let extra = user.expect("the masters may").extra.clone();
        assert_eq!(extra, BTreeMap::from([("acme.com/project".to_owned(), vec!["b".into(), "a".into()])]));
    }
}
