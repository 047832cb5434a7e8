//! Authorization: checks the permissions of a user for a request, and impersonation.

mod impersonate;
mod in_expressions;
mod rights;
mod role_index;
pub(crate) mod roles;

use std::borrow::Cow;

use http::Method;
use kubeproof_apimachinery::selector::FieldSelector;
use kubeproof_apimachinery::status::{ApiError, Subject};

pub(crate) use impersonate::acting;
pub(crate) use in_expressions::in_expressions;
pub(crate) use rights::Rights;
pub(crate) use role_index::RoleIndex;

use crate::authentication::User;
use crate::http::request_info::RequestInfo;
use kubeproof_apimachinery::request::Query;
use kubeproof_apimachinery::request::ResourceInfo;

/// Rejects a request that the user may not make. This check comes first, so a rejection does not
/// reveal which objects exist.
pub(crate) fn authorize(
    user: &User,
    method: &Method,
    info: &RequestInfo,
    query: &Query,
    rights: Rights<'_>,
) -> Result<(), ApiError> {
    match info {
        RequestInfo::Path(path) => {
            let verb = method.as_str().to_ascii_lowercase();
            if rights.may_read(user, &verb, path) {
                return Ok(());
            }
            Err(ApiError::forbidden_path(&format!(
                "User {:?} cannot {verb} path {path:?}",
                user.name
            )))
        }
        RequestInfo::Resource(resource) => {
            let verb = resource.verb(method, query.flag("watch"));
            if rights.may_access(user, verb, &selected(resource, verb, query)) {
                return Ok(());
            }
            Err(denied(user, verb, resource))
        }
    }
}

/// Rejects a PUT or an apply that would create an object, unless the user may create it. The
/// server checks it in addition to the verb of the request.
pub(crate) fn authorize_create(
    user: &User,
    info: &ResourceInfo,
    rights: Rights<'_>,
) -> Result<(), ApiError> {
    if rights.may_access(user, "create", info) {
        return Ok(());
    }
    Err(denied(user, "create", info))
}

/// Returns why a user may make a request, in the words of kube-apiserver.
pub(crate) fn reason(
    user: &User,
    method: &Method,
    info: &RequestInfo,
    query: &Query,
    rights: Rights<'_>,
) -> String {
    match info {
        RequestInfo::Path(path) => {
            rights.path_reason(user, &method.as_str().to_ascii_lowercase(), path)
        }
        RequestInfo::Resource(resource) => {
            let verb = resource.verb(method, query.flag("watch"));
            rights.access_reason(user, verb, &selected(resource, verb, query))
        }
    }
}

/// Returns the object name if a request for a collection selects one object by name.
fn selected<'a>(info: &'a ResourceInfo, verb: &str, query: &Query) -> Cow<'a, ResourceInfo> {
    let selects = info.name.is_empty() && matches!(verb, "list" | "watch" | "deletecollection");
    let selector = query
        .text("fieldSelector")
        .filter(|_| selects)
        .and_then(|text| FieldSelector::parse(text).ok());
    match selector.as_ref().and_then(|selector| selector.exact("metadata.name")) {
        Some(name) => Cow::Owned(ResourceInfo { name: name.to_owned(), ..info.clone() }),
        None => Cow::Borrowed(info),
    }
}

/// Builds 403 `Forbidden` for a verb on a resource.
pub(crate) fn denied(user: &User, verb: &str, info: &ResourceInfo) -> ApiError {
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
        user.name, info.group
    );
    ApiError::forbidden(Subject { group: &info.group, word: &info.resource }, &info.name, &what)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::authentication::{AUTHENTICATED, MASTERS, UNAUTHENTICATED, VIEWERS};

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

    /// The selector names an object only in requests for a collection.
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
        let info = ResourceInfo {
            name: name.to_owned(),
            resource: "pods".to_owned(),
            ..ResourceInfo::default()
        };
        let query = Query::parse(&format!("fieldSelector={selector}"));
        let selected = selected(&info, verb, &query);
        assert_eq!((selected.name.as_str(), selected.resource.as_str()), (expected, "pods"));
    }
}
