//! Names requests as the Kubernetes API does: `create`, `update status`, `watch`.

use super::Sent;

/// Media type of server-side apply.
const APPLY: &str = "application/apply-patch";

impl Sent {
    /// Returns the verb of the request and its subresource, such as `create`, `apply` or
    /// `update status`. Requests outside of resources have method and path: `GET /version`.
    pub fn verb(&self) -> String {
        let Some(place) = Place::of(&self.target) else {
            return format!("{} {}", self.method, self.path());
        };
        let verb = self.verb_at(&place);
        match place.subresource {
            Some(subresource) => format!("{verb} {subresource}"),
            None => verb.to_owned(),
        }
    }

    /// Returns the verb with its resource, such as `create configmaps` or `update pods/status`.
    pub fn kind(&self) -> String {
        let Some(place) = Place::of(&self.target) else {
            return format!("{} {}", self.method, self.path());
        };
        let verb = self.verb_at(&place);
        match place.subresource {
            Some(subresource) => format!("{verb} {}/{subresource}", place.resource),
            None => format!("{verb} {}", place.resource),
        }
    }

    /// Returns method and path without query, such as `POST /api/v1/namespaces`.
    pub fn line(&self) -> String {
        format!("{} {}", self.method, self.path())
    }

    fn path(&self) -> &str {
        self.target.split('?').next().unwrap_or_default()
    }

    fn verb_at(&self, place: &Place<'_>) -> &str {
        let query = self.target.split_once('?').map_or("", |(_, query)| query);
        let watches = query.split('&').any(|pair| matches!(pair, "watch=true" | "watch=1"));
        match self.method.as_str() {
            "GET" if watches => "watch",
            "GET" | "HEAD" if place.name.is_some() => "get",
            "GET" | "HEAD" => "list",
            "POST" => "create",
            "PUT" => "update",
            "PATCH" if self.media_type().starts_with(APPLY) => "apply",
            "PATCH" => "patch",
            "DELETE" if place.name.is_some() => "delete",
            "DELETE" => "delete collection",
            method => method,
        }
    }

    fn media_type(&self) -> &str {
        let given = self.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("content-type"));
        given.map_or("", |(_, value)| value.as_str())
    }
}

/// The parts of a path of a resource.
struct Place<'a> {
    resource: &'a str,
    name: Option<&'a str>,
    subresource: Option<&'a str>,
}

impl<'a> Place<'a> {
    fn of(target: &'a str) -> Option<Self> {
        let path = target.split('?').next()?;
        let segments: Vec<&str> = path.strip_prefix('/')?.split('/').collect();
        let (["api", _, rest @ ..] | ["apis", _, _, rest @ ..]) = segments.as_slice() else {
            return None;
        };
        let rest = match rest {
            ["namespaces", _, resource, rest @ ..] if !is_namespace_part(resource) => {
                return Some(Self::new(resource, rest));
            }
            rest => rest,
        };
        let (resource, rest) = rest.split_first()?;
        Some(Self::new(resource, rest))
    }

    fn new(resource: &'a str, rest: &[&'a str]) -> Self {
        Self { resource, name: rest.first().copied(), subresource: rest.get(1).copied() }
    }
}

/// A path has the subresource of a namespace where other paths have a resource.
fn is_namespace_part(segment: &str) -> bool {
    matches!(segment, "status" | "finalize")
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use kubeproof_cases::case::Identity;
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("POST", "/api/v1/namespaces/a/configmaps", "create", "create configmaps")]
    #[case("POST", "/api/v1/namespaces?dryRun=All", "create", "create namespaces")]
    #[case("GET", "/api/v1/namespaces/a", "get", "get namespaces")]
    #[case("PUT", "/api/v1/namespaces/a/finalize", "update finalize", "update namespaces/finalize")]
    #[case("GET", "/apis/g/v1/widgets", "list", "list widgets")]
    #[case("GET", "/apis/g/v1/widgets?limit=1&watch=true", "watch", "watch widgets")]
    #[case("PUT", "/apis/g/v1/gauges/a/status", "update status", "update gauges/status")]
    #[case("GET", "/api/v1/namespaces/a/pods/b/log", "get log", "get pods/log")]
    #[case("DELETE", "/apis/g/v1/gauges/a", "delete", "delete gauges")]
    #[case("DELETE", "/apis/g/v1/gauges", "delete collection", "delete collection gauges")]
    #[case("PATCH", "/apis/g/v1/gauges/a", "apply", "apply gauges")]
    #[case("GET", "/version?timeout=1", "GET /version", "GET /version")]
    #[case("GET", "/apis", "GET /apis", "GET /apis")]
    #[case("GET", "/apis/g/v1", "GET /apis/g/v1", "GET /apis/g/v1")]
    #[case("OPTIONS", "/api/v1/pods", "OPTIONS", "OPTIONS pods")]
    fn requests_have_the_verbs_of_the_api(
        #[case] method: &str,
        #[case] target: &str,
        #[case] verb: &str,
        #[case] kind: &str,
    ) {
        let sent = Sent {
            method: method.to_owned(),
            target: target.to_owned(),
            headers: vec![("Content-Type".to_owned(), "application/apply-patch+yaml".to_owned())],
            body: Bytes::new(),
            identity: Identity::Admin,
        };
        assert_eq!((sent.verb().as_str(), sent.kind().as_str()), (verb, kind));
    }
}
