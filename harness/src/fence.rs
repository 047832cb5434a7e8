//! What a run may write at all, told by method and path.
//!
//! The plan leaves out the cases that need more, with the reason. The client holds every request to the same rule, so that the
//! promise does not hang on what case files say.

/// What may be written.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub enum Fence {
    /// Whatever cases ask for.
    #[default]
    Open,
    /// Nothing (`--read-only`): only methods that are safe by HTTP go out. A review stores nothing, but is a POST like another.
    Reads,
    /// What is in this namespace (`--namespace`), and reviews.
    Namespace(String),
}

impl Fence {
    /// Of the options of a run.
    pub fn new(read_only: bool, namespace: Option<&str>) -> Self {
        match namespace {
            _ if read_only => Self::Reads,
            Some(namespace) => Self::Namespace(namespace.to_owned()),
            None => Self::Open,
        }
    }

    /// Why a request is not to go out; `None`: it may.
    pub(crate) fn holds_back(&self, method: &str, target: &str) -> Option<String> {
        if is_safe(method) {
            return None;
        }
        let path = target.split('?').next().unwrap_or_default();
        match self {
            Self::Open => None,
            Self::Reads => Some(format!("{method} {path} writes, which --read-only forbids")),
            Self::Namespace(namespace) => {
                let may = is_review(method, target) || is_inside(target, namespace);
                (!may).then(|| {
                    format!("{method} {path} writes outside of {namespace}, where --namespace keeps the run")
                })
            }
        }
    }
}

/// Whether a method changes nothing, by RFC 9110.
pub(crate) fn is_safe(method: &str) -> bool {
    matches!(method, "GET" | "HEAD" | "OPTIONS" | "TRACE")
}

/// Whether a request asks a question that is answered and not stored.
fn is_review(method: &str, target: &str) -> bool {
    let segments: Vec<&str> = segments(target).collect();
    let (["apis", "authentication.k8s.io" | "authorization.k8s.io", _, resource]
    | ["apis", "authorization.k8s.io", _, "namespaces", _, resource]) = segments.as_slice()
    else {
        return false;
    };
    method == "POST" && resource.ends_with("reviews")
}

/// Whether a target is something in this namespace, however servers tidy paths up. The namespace itself is not in it.
fn is_inside(target: &str, namespace: &str) -> bool {
    let climbs =
        |segment: &str| matches!(segment.to_ascii_lowercase().replace("%2e", ".").as_str(), "." | "..");
    let segments: Vec<&str> = segments(target).collect();
    let (["api", _, rest @ ..] | ["apis", _, _, rest @ ..]) = segments.as_slice() else { return false };
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
        assert_eq!(Fence::Reads.holds_back(method, target).is_none(), expected);
        assert_eq!(Fence::Open.holds_back(method, target), None);
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
        let held = Fence::Namespace("a".to_owned()).holds_back(method, target);
        assert_eq!(held.is_none(), expected, "{held:?}");
    }

    #[test]
    fn what_forbids_more_goes_first() {
        assert_eq!(Fence::new(true, Some("a")), Fence::Reads);
        assert_eq!(Fence::new(false, Some("a")), Fence::Namespace("a".to_owned()));
        assert_eq!(Fence::new(false, None), Fence::Open);
        let held = Fence::Reads.holds_back("POST", "/api/v1/namespaces?dryRun=All");
        assert_eq!(held.as_deref(), Some("POST /api/v1/namespaces writes, which --read-only forbids"));
    }
}
