//! What a request is about, read from its method and path alone, before anything is looked up.
//!
//! Authorization works on this, so it has an answer for every path, served or not.

use http::Method;
use percent_encoding::percent_decode_str;

/// What a request is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RequestInfo {
    /// A path outside the resources: discovery, health, documents. Decoded.
    Path(String),
    /// A resource, in the form of one or not.
    Resource(ResourceInfo),
}

/// The parts of a resource path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ResourceInfo {
    pub(crate) group: String,
    pub(crate) version: String,
    /// Empty for the cluster, and for all namespaces.
    pub(crate) namespace: String,
    pub(crate) resource: String,
    pub(crate) name: String,
    pub(crate) subresource: String,
    /// Segments follow that no resource has.
    pub(crate) excess: bool,
    /// A path of the old form, `/api/v1/watch/…`.
    pub(crate) legacy_watch: bool,
}

/// Subresources of a namespace, which `/namespaces/x/…` does not take for resources in it.
const NAMESPACE_SUBRESOURCES: [&str; 2] = ["status", "finalize"];

/// A path without its percent signs.
pub(crate) fn decode(path: &str) -> String {
    percent_decode_str(path).decode_utf8_lossy().into_owned()
}

impl RequestInfo {
    pub(crate) fn parse(path: &str) -> Self {
        // The path is decoded before it is split: an encoded slash separates like a plain one.
        let path = decode(path);
        let segments: Vec<&str> = path.trim_end_matches('/').split('/').skip(1).collect();
        let (group, version, rest) = match segments.as_slice() {
            ["api", version, rest @ ..] => ("", *version, rest),
            ["apis", group, version, rest @ ..] => (*group, *version, rest),
            _ => return Self::Path(path),
        };
        if rest.is_empty() {
            return Self::Path(path);
        }
        let mut info =
            ResourceInfo { group: group.to_owned(), version: version.to_owned(), ..ResourceInfo::default() };
        let rest = match rest {
            ["watch", rest @ ..] if !rest.is_empty() => {
                info.legacy_watch = true;
                rest
            }
            rest => rest,
        };
        let rest = match rest {
            ["namespaces", namespace, resource, ..] if !NAMESPACE_SUBRESOURCES.contains(resource) => {
                (*namespace).clone_into(&mut info.namespace);
                &rest[2..]
            }
            ["namespaces", name, ..] => {
                (*name).clone_into(&mut info.namespace);
                rest
            }
            rest => rest,
        };
        let part = |index: usize| rest.get(index).copied().unwrap_or_default().to_owned();
        info.resource = part(0);
        info.name = part(1);
        info.subresource = part(2);
        info.excess = rest.len() > 3 || rest.iter().any(|segment| matches!(*segment, "." | ".."));
        Self::Resource(info)
    }
}

impl ResourceInfo {
    /// The verb that authorization knows; empty for a method that is none.
    pub(crate) fn verb(&self, method: &Method, watch: bool) -> &'static str {
        let collection = self.name.is_empty();
        match *method {
            Method::POST => "create",
            Method::GET | Method::HEAD if self.legacy_watch || (collection && watch) => "watch",
            Method::GET | Method::HEAD if collection => "list",
            Method::GET | Method::HEAD => "get",
            Method::PUT => "update",
            Method::PATCH => "patch",
            Method::DELETE if collection => "deletecollection",
            Method::DELETE => "delete",
            _ => "",
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn resource(path: &str) -> [String; 6] {
        match RequestInfo::parse(path) {
            RequestInfo::Resource(info) => {
                [info.group, info.version, info.namespace, info.resource, info.name, info.subresource]
            }
            RequestInfo::Path(path) => panic!("{path} is no resource"),
        }
    }

    #[rstest]
    #[case("/api/v1/pods", ["", "v1", "", "pods", "", ""])]
    #[case("/api/v1/namespaces/a/pods/p/log", ["", "v1", "a", "pods", "p", "log"])]
    #[case("/api/v1/namespaces/a", ["", "v1", "a", "namespaces", "a", ""])]
    #[case("/api/v1/namespaces/a/status", ["", "v1", "a", "namespaces", "a", "status"])]
    #[case("/apis/apps/v1/namespaces/a/deployments/d/scale", ["apps", "v1", "a", "deployments", "d", "scale"])]
    #[case("/api/v1/namespaces/a%2Fpods", ["", "v1", "a", "pods", "", ""])]
    #[case("/api/v1/namespaces//pods", ["", "v1", "", "pods", "", ""])]
    #[case("/api/v1/watch/namespaces/a/pods/p", ["", "v1", "a", "pods", "p", ""])]
    #[case("/api/v1/namespaces/", ["", "v1", "", "namespaces", "", ""])]
    fn the_parts_of_a_path(#[case] path: &str, #[case] parts: [&str; 6]) {
        assert_eq!(resource(path), parts);
    }

    #[rstest]
    #[case("/")]
    #[case("/healthz/etcd")]
    #[case("/api/v1")]
    #[case("/apis/apps")]
    #[case("//api/v1/namespaces")]
    fn paths_outside_the_resources(#[case] path: &str) {
        assert!(matches!(RequestInfo::parse(path), RequestInfo::Path(_)));
    }

    #[rstest]
    #[case("/api/v1/pods/a/b", false)]
    #[case("/api/v1/pods/a/b/c", true)]
    #[case("/api/v1/pods/..", true)]
    #[case("/api/v1/pods/a/.", true)]
    fn segments_that_no_resource_has(#[case] path: &str, #[case] expected: bool) {
        let RequestInfo::Resource(info) = RequestInfo::parse(path) else { panic!("{path} is no resource") };
        assert_eq!(info.excess, expected);
    }

    /// What rights are asked for: the verbs of a collection, of one object, and of the old watch.
    #[rstest]
    #[case(Method::GET, ["list", "get", "watch"])]
    #[case(Method::HEAD, ["list", "get", "watch"])]
    #[case(Method::POST, ["create", "create", "create"])]
    #[case(Method::PUT, ["update", "update", "update"])]
    #[case(Method::PATCH, ["patch", "patch", "patch"])]
    #[case(Method::DELETE, ["deletecollection", "delete", "delete"])]
    #[case(Method::TRACE, ["", "", ""])]
    fn methods_are_verbs(#[case] method: Method, #[case] expected: [&str; 3]) {
        let verb = |path: &str, watch| match RequestInfo::parse(path) {
            RequestInfo::Resource(info) => info.verb(&method, watch),
            RequestInfo::Path(_) => panic!("{path} is no resource"),
        };
        let verbs =
            [verb("/api/v1/pods", false), verb("/api/v1/pods/a", false), verb("/api/v1/watch/pods/a", false)];
        assert_eq!(verbs, expected);
        let watched = if expected[0] == "list" { "watch" } else { expected[0] };
        assert_eq!((verb("/api/v1/pods", true), verb("/api/v1/pods/a", true)), (watched, expected[1]));
    }
}
