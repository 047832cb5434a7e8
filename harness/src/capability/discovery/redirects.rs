//! Follows redirects of discovery documents. Only the server itself gets requests, because each
//! request carries the credential.

use url::Url;

use crate::capability::Requester;
use crate::exchange::Exchange;

/// Limit on the redirects of one document.
const MOST: usize = 3;

/// A document, and how the server returned it.
pub(super) struct Document {
    /// The last exchange.
    pub(super) exchange: Exchange,
    /// The status code and the location of the first redirect.
    pub(super) redirect: Option<(u16, String)>,
}

impl Document {
    /// Describes the response to the first request.
    pub(super) fn in_words(&self) -> String {
        match &self.redirect {
            Some((status, location)) => format!("{status} with the location {location}"),
            None => self.exchange.in_words(),
        }
    }
}

/// Requests a document, and follows redirects within the server.
pub(super) async fn get(requester: &Requester<'_>, path: &str, accept: &str) -> Document {
    let mut exchange = requester.get(path, accept).await;
    let redirect = location(&exchange).map(|to| (exchange.status(), to.to_owned()));
    for _ in 0..MOST {
        let Some(target) = local_target(requester.client.server(), &exchange) else { break };
        exchange = requester.get(&target, accept).await;
    }
    Document { exchange, redirect }
}

/// Returns the location of a redirect.
pub(crate) fn location(exchange: &Exchange) -> Option<&str> {
    let response = exchange.response()?;
    if !matches!(response.status, 301 | 302 | 303 | 307 | 308) {
        return None;
    }
    let (_, value) =
        response.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("location"))?;
    Some(value)
}

/// Returns the target of a redirect, relative to the URL of the server. `None` for other responses,
/// and for redirects that leave the server.
fn local_target(server: &str, exchange: &Exchange) -> Option<String> {
    let location = location(exchange)?;
    let server = Url::parse(server).ok()?;
    let prefix = server.path().trim_end_matches('/');
    let from = server.join(&format!("{prefix}{}", exchange.request.target)).ok()?;
    let to = from.join(location).ok()?;
    let path = to.path().strip_prefix(prefix)?;
    if to.origin() != server.origin() || !path.starts_with('/') || path.starts_with("//") {
        return None;
    }
    let query = to.query().map(|query| format!("?{query}")).unwrap_or_default();
    Some(format!("{path}{query}"))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::exchange::Outcome;
    use crate::testing::{exchange, received};

    fn redirect(to: &str) -> Exchange {
        let mut response = received(307);
        response.headers.push(("Location".to_owned(), to.to_owned()));
        exchange("/api/v1", Outcome::Response(response))
    }

    #[rstest]
    #[case::path("https://host:6443/", "/api/v1/", Some("/api/v1/"))]
    #[case::url("https://host:6443/", "https://host:6443/api/v1/?a=b", Some("/api/v1/?a=b"))]
    #[case::relative("https://host:6443/", "v1/", Some("/api/v1/"))]
    #[case::prefix("https://host/k8s", "/k8s/api/v1/", Some("/api/v1/"))]
    #[case::outside_of_the_prefix("https://host/k8s", "/login", None)]
    #[case::other_host("https://host:6443/", "https://other:6443/api/v1/", None)]
    #[case::other_host_by_path("https://host:6443/", "//other/api/v1/", None)]
    #[case::hidden_host("https://host:6443/", "/.//other/api", None)]
    #[case::other_port("https://host:6443/", "https://host/api/v1/", None)]
    #[case::other_scheme("https://host:6443/", "http://host:6443/api/v1/", None)]
    #[case::no_url("https://host:6443/", "https://[", None)]
    fn redirects_stay_on_the_server(
        #[case] server: &str,
        #[case] to: &str,
        #[case] target: Option<&str>,
    ) {
        assert_eq!(local_target(server, &redirect(to)).as_deref(), target);
    }

    #[test]
    fn other_responses_are_no_redirects() {
        let mut response = received(200);
        response.headers.push(("Location".to_owned(), "/api/v1/".to_owned()));
        let created = exchange("/api/v1", Outcome::Response(response));
        assert_eq!(local_target("https://host/", &created), None);
        assert_eq!(location(&exchange("/api/v1", Outcome::Response(received(307)))), None);
    }
}
