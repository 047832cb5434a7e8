//! The resource that a path names.

use http::Method;
use percent_encoding::percent_decode_str;

/// The subresources of a namespace: `/namespaces/x/…` with them names no resource in the namespace.
const NAMESPACE_SUBRESOURCES: [&str; 2] = ["status", "finalize"];

/// Decodes the percent encoding of a path or a parameter.
pub fn decode(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

/// The parts of a resource path. The resource may not exist.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResourceInfo {
    /// The API group. It is empty for the core group.
    pub group: String,
    /// The version of the group.
    pub version: String,
    /// Empty for the cluster, and for all namespaces.
    pub namespace: String,
    /// The plural name of the resource.
    pub resource: String,
    /// The name of the object. It is empty for a collection.
    pub name: String,
    /// The subresource. It is empty for the object itself.
    pub subresource: String,
    /// The path has more segments than any resource.
    pub excess: bool,
    /// A legacy watch path, `/api/v1/watch/…`.
    pub legacy_watch: bool,
}

impl ResourceInfo {
    /// Parses a path. Returns none for a non-resource path: discovery, health, documents.
    pub fn parse(path: &str) -> Option<Self> {
        // Decoding comes before splitting, so an encoded slash separates segments, too.
        let path = decode(path);
        let segments: Vec<&str> = path.trim_end_matches('/').split('/').skip(1).collect();
        let (group, version, rest) = match segments.as_slice() {
            ["api", version, rest @ ..] => ("", *version, rest),
            ["apis", group, version, rest @ ..] => (*group, *version, rest),
            _ => return None,
        };
        if rest.is_empty() {
            return None;
        }
        let mut info =
            Self { group: group.to_owned(), version: version.to_owned(), ..Self::default() };
        let rest = match rest {
            ["watch", rest @ ..] if !rest.is_empty() => {
                info.legacy_watch = true;
                rest
            }
            rest => rest,
        };
        let rest = match rest {
            ["namespaces", namespace, resource, ..]
                if !NAMESPACE_SUBRESOURCES.contains(resource) =>
            {
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
        Some(info)
    }

    /// Returns whether the path names a resource, a collection or a subresource.
    pub fn is_resource(&self) -> bool {
        !self.resource.is_empty()
    }

    /// Returns whether the path names a collection.
    pub fn is_collection(&self) -> bool {
        self.is_resource() && self.name.is_empty()
    }

    /// Returns whether the path names one object, without a subresource.
    pub fn is_object(&self) -> bool {
        !self.name.is_empty() && self.subresource.is_empty()
    }

    /// Returns whether the path names this resource of the core group, its objects or subresources.
    pub fn is_core(&self, resource: &str) -> bool {
        self.group.is_empty() && self.resource == resource
    }

    /// Returns whether the group has a domain of its own, as groups of custom resources have.
    pub fn is_custom(&self) -> bool {
        self.group.contains('.') && !self.group.ends_with(".k8s.io")
    }

    /// Returns `v1` or `apps/v1`.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.clone()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// Returns the path of the collection in this namespace.
    pub fn collection(&self) -> String {
        let root = if self.group.is_empty() { "/api" } else { "/apis" };
        let namespace = match self.namespace.as_str() {
            "" => String::new(),
            _ if self.is_core("namespaces") => String::new(),
            namespace => format!("/namespaces/{namespace}"),
        };
        format!("{root}/{}{namespace}/{}", self.api_version(), self.resource)
    }

    /// Returns the path of an object of the collection.
    pub fn object(&self, name: &str) -> String {
        format!("{}/{name}", self.collection())
    }

    /// Returns whether the path names a namespace itself, which counts as inside the namespace.
    pub fn is_namespace(&self) -> bool {
        self.group.is_empty() && self.resource == "namespaces" && self.name == self.namespace
    }

    /// Returns the verb for authorization. It is empty for an unknown method.
    pub fn verb(&self, method: &Method, watch: bool) -> &'static str {
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

    fn info(path: &str) -> ResourceInfo {
        ResourceInfo::parse(path).expect("a resource path")
    }

    #[rstest]
    #[case("/api/v1/pods", ["", "v1", "", "pods", "", ""])]
    #[case("/api/v1/namespaces/a/pods/p/log", ["", "v1", "a", "pods", "p", "log"])]
    #[case("/api/v1/namespaces/a", ["", "v1", "a", "namespaces", "a", ""])]
    #[case("/api/v1/namespaces/a/status", ["", "v1", "a", "namespaces", "a", "status"])]
    #[case(
        "/apis/apps/v1/namespaces/a/deployments/d/scale",
        ["apps", "v1", "a", "deployments", "d", "scale"]
    )]
    #[case("/api/v1/namespaces/a%2Fpods", ["", "v1", "a", "pods", "", ""])]
    #[case("/api/v1/namespaces//pods", ["", "v1", "", "pods", "", ""])]
    #[case("/api/v1/watch/namespaces/a/pods/p", ["", "v1", "a", "pods", "p", ""])]
    #[case("/api/v1/namespaces/", ["", "v1", "", "namespaces", "", ""])]
    fn the_parts_of_a_path(#[case] path: &str, #[case] parts: [&str; 6]) {
        let info = info(path);
        let found =
            [info.group, info.version, info.namespace, info.resource, info.name, info.subresource];
        assert_eq!(found, parts);
    }

    #[rstest]
    #[case("/")]
    #[case("/healthz/etcd")]
    #[case("/api/v1")]
    #[case("/apis/apps")]
    #[case("//api/v1/namespaces")]
    fn paths_outside_the_resources(#[case] path: &str) {
        assert_eq!(ResourceInfo::parse(path), None);
    }

    #[rstest]
    #[case("/api/v1/pods/a/b", false)]
    #[case("/api/v1/pods/a/b/c", true)]
    #[case("/api/v1/pods/..", true)]
    #[case("/api/v1/pods/a/.", true)]
    fn segments_that_no_resource_has(#[case] path: &str, #[case] expected: bool) {
        assert_eq!(info(path).excess, expected);
    }

    #[rstest]
    #[case("/api/v1/pods", "/api/v1/pods/x")]
    #[case("/api/v1/namespaces/a/status", "/api/v1/namespaces/x")]
    #[case(
        "/apis/apps/v1/namespaces/a/deployments/d/scale",
        "/apis/apps/v1/namespaces/a/deployments/x"
    )]
    fn an_object_has_a_path(#[case] path: &str, #[case] expected: &str) {
        assert_eq!(info(path).object("x"), expected);
    }

    /// The verbs of a collection, of one object, and of a legacy watch.
    #[rstest]
    #[case(Method::GET, ["list", "get", "watch"])]
    #[case(Method::HEAD, ["list", "get", "watch"])]
    #[case(Method::POST, ["create", "create", "create"])]
    #[case(Method::PUT, ["update", "update", "update"])]
    #[case(Method::PATCH, ["patch", "patch", "patch"])]
    #[case(Method::DELETE, ["deletecollection", "delete", "delete"])]
    #[case(Method::TRACE, ["", "", ""])]
    fn methods_are_verbs(#[case] method: Method, #[case] expected: [&str; 3]) {
        let verb = |path: &str, watch| info(path).verb(&method, watch);
        let verbs = [
            verb("/api/v1/pods", false),
            verb("/api/v1/pods/a", false),
            verb("/api/v1/watch/pods/a", false),
        ];
        assert_eq!(verbs, expected);
        let watched = if expected[0] == "list" { "watch" } else { expected[0] };
        assert_eq!(
            (verb("/api/v1/pods", true), verb("/api/v1/pods/a", true)),
            (watched, expected[1])
        );
    }
}
