//! Limits what a run may write, by method and path.
//!
//! The plan skips cases that need more. The client also checks every request, so that the guarantee
//! does not depend on case files.

/// What a run may write.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub enum WritePolicy {
    /// Everything that cases write.
    #[default]
    AllowAll,
    /// Nothing (`--read-only`): only safe HTTP methods. A review stores nothing, but counts as a
    /// write.
    ReadOnly,
    /// Objects in this namespace (`--namespace`), and reviews.
    Namespace(String),
}

impl WritePolicy {
    /// Returns the policy of the options.
    pub fn new(read_only: bool, namespace: Option<&str>) -> Self {
        match namespace {
            _ if read_only => Self::ReadOnly,
            Some(namespace) => Self::Namespace(namespace.to_owned()),
            None => Self::AllowAll,
        }
    }

    /// Returns why a request is denied, or `None`.
    pub(crate) fn denial(&self, method: &str, target: &str) -> Option<String> {
        if is_safe(method) {
            return None;
        }
        let path = target.split('?').next().unwrap_or_default();
        match self {
            Self::AllowAll => None,
            Self::ReadOnly => {
                Some(format!("{method} {path} is a write, which --read-only forbids"))
            }
            Self::Namespace(namespace) => {
                let may = is_review(method, target) || is_inside(target, namespace);
                (!may).then(|| {
                    format!(
                        "{method} {path} writes outside of {namespace}, which --namespace forbids"
                    )
                })
            }
        }
    }
}

/// Reports whether RFC 9110 calls a method safe.
pub(crate) fn is_safe(method: &str) -> bool {
    matches!(method, "GET" | "HEAD" | "OPTIONS" | "TRACE")
}

/// Reports whether a request is a review, which stores nothing.
fn is_review(method: &str, target: &str) -> bool {
    let segments: Vec<&str> = segments(target).collect();
    let (["apis", "authentication.k8s.io" | "authorization.k8s.io", _, resource]
    | ["apis", "authorization.k8s.io", _, "namespaces", _, resource]) = segments.as_slice()
    else {
        return false;
    };
    method == "POST" && resource.ends_with("reviews")
}

/// Reports whether a target is inside the namespace, even if the server normalises paths. The
/// namespace itself is outside.
fn is_inside(target: &str, namespace: &str) -> bool {
    let climbs = |segment: &str| {
        matches!(segment.to_ascii_lowercase().replace("%2e", ".").as_str(), "." | "..")
    };
    let segments: Vec<&str> = segments(target).collect();
    let (["api", _, rest @ ..] | ["apis", _, _, rest @ ..]) = segments.as_slice() else {
        return false;
    };
    let within = matches!(rest, ["namespaces", inside, _, ..] if *inside == namespace);
    let of_the_namespace = matches!(segments.as_slice(), ["api", _, _, _, "status" | "finalize"]);
    within && !of_the_namespace && !segments.iter().any(|segment| climbs(segment))
}

fn segments(target: &str) -> impl Iterator<Item = &str> {
    target.split('?').next().and_then(|path| path.strip_prefix('/')).unwrap_or_default().split('/')
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("GET", "/api/v1/secrets", true)]
    #[case("HEAD", "/api", true)]
    #[case("OPTIONS", "/api", true)]
    #[case("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", false)]
    #[case("PATCH", "/api/v1/namespaces/a/configmaps/b?dryRun=All", false)]
    #[case("get", "/api", false)]
    fn only_reads_are_safe(#[case] method: &str, #[case] target: &str, #[case] expected: bool) {
        assert_eq!(WritePolicy::ReadOnly.denial(method, target).is_none(), expected);
        assert_eq!(WritePolicy::AllowAll.denial(method, target), None);
    }

    #[rstest]
    #[case("POST", "/api/v1/namespaces/a/configmaps", true)]
    #[case("DELETE", "/apis/apps/v1/namespaces/a/deployments/b?dryRun=All", true)]
    #[case("PUT", "/api/v1/namespaces/a/pods/b:8080/proxy/in/side/", true)]
    #[case("PUT", "/api/v1/namespaces/a/pods/b/status", true)]
    #[case("POST", "/apis/authentication.k8s.io/v1/tokenreviews", true)]
    #[case("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", true)]
    #[case("POST", "/apis/authorization.k8s.io/v1/namespaces/b/localsubjectaccessreviews", true)]
    #[case("GET", "/api/v1/namespaces/b/configmaps", true)]
    #[case("DELETE", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", false)]
    #[case("POST", "/apis/example.com/v1/reviews", false)]
    #[case("POST", "/api/v1/namespaces", false)]
    #[case("DELETE", "/api/v1/namespaces/a", false)]
    #[case("PUT", "/api/v1/namespaces/a/finalize", false)]
    #[case("PATCH", "/api/v1/namespaces/a/status", false)]
    #[case("POST", "/api/v1/namespaces/ab/configmaps", false)]
    #[case("POST", "/api/v1/namespaces/*/configmaps", false)]
    #[case("POST", "/api/v1/configmaps", false)]
    #[case("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", false)]
    #[case("DELETE", "/api/v1/namespaces/a/configmaps/../../b/configmaps/c", false)]
    #[case("DELETE", "/api/v1/namespaces/a/configmaps/%2E%2e/%2e./b", false)]
    #[case("POST", "*", false)]
    #[case("POST", "http://elsewhere/api/v1/namespaces/a/configmaps", false)]
    fn writes_stay_inside(#[case] method: &str, #[case] target: &str, #[case] expected: bool) {
        let held = WritePolicy::Namespace("a".to_owned()).denial(method, target);
        assert_eq!(held.is_none(), expected, "{held:?}");
    }

    #[test]
    fn what_forbids_more_goes_first() {
        assert_eq!(WritePolicy::new(true, Some("a")), WritePolicy::ReadOnly);
        assert_eq!(WritePolicy::new(false, Some("a")), WritePolicy::Namespace("a".to_owned()));
        assert_eq!(WritePolicy::new(false, None), WritePolicy::AllowAll);
        let held = WritePolicy::ReadOnly.denial("POST", "/api/v1/namespaces?dryRun=All");
        assert_eq!(
            held.as_deref(),
            Some("POST /api/v1/namespaces is a write, which --read-only forbids")
        );
    }
}
