//! Rejections that say nothing about the server: of a user without a right, by an administrator's
//! quota or webhook, and of a busy server. They are errors of the run, not failures of the server.

use std::time::Duration;

use kubeproof_cases::case::Identity;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::case::Session;
use crate::capability::{Requester, dry_create};
use crate::event::{CaseResult, CheckResult, Judgement, NamedExchange, Verdict};
use crate::exchange::Exchange;
use crate::plan::PlannedRun;
use crate::transport::asks_to_wait;

const REVIEWS: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";

/// Time to find out why the server rejected a request.
const INQUIRY: Duration = Duration::from_secs(10);

impl Session {
    /// Turns failures by rejections that say nothing about the server into errors.
    pub(super) async fn without_excusable_rejections(
        &self,
        mut result: CaseResult,
        planned: &PlannedRun,
    ) -> CaseResult {
        let deadline = Instant::now() + INQUIRY;
        let mut excused = false;
        for check in &mut result.checks {
            let Some(rejected) = rejected(check, &result.exchanges) else { continue };
            if let Some(why) = self.excuse(rejected, planned, deadline).await {
                check.verdict = Verdict::Error;
                check.message = format!("{}; {why}", check.message);
                check.symptom = None;
                excused = true;
            }
        }
        if !excused {
            return result;
        }
        let judgement = Judgement::of(&result.checks, result.level);
        CaseResult { verdict: judgement.verdict, reason: judgement.reason, ..result }
    }

    /// Returns why a rejection says nothing about the server.
    pub(super) async fn excuse(
        &self,
        exchange: &Exchange,
        planned: &PlannedRun,
        deadline: Instant,
    ) -> Option<String> {
        if asks_to_wait(exchange) {
            return Some("the server was too busy for the request".to_owned());
        }
        if let Some(right) = self.missing_right(exchange, deadline).await {
            return Some(format!("the user of the run may not {right}"));
        }
        let denial = self.denial(exchange, planned, deadline).await?;
        Some(format!("the server denies a plain object too: {denial}"))
    }

    /// Returns what the user of the run may not do, if the server denied a request for this reason.
    /// The server confirms it in an access review.
    pub(super) async fn missing_right(
        &self,
        exchange: &Exchange,
        deadline: Instant,
    ) -> Option<String> {
        let request = &exchange.request;
        if !is_denied(exchange) || self.impersonates_another(exchange).await {
            return None;
        }
        let attributes = Attributes::of(&request.method, &request.target);
        // A read-only run sends no reviews, so it cannot find out.
        if !self.client.may_send("POST", REVIEWS) {
            return Some(attributes.in_words());
        }
        let requester = Requester { client: &self.client, deadline };
        let review = requester.send("POST", REVIEWS, Some(&attributes.review())).await;
        let allowed = review.json().map(|review| &review["status"]["allowed"]);
        (review.status() == 201 && allowed == Some(&json!(false))).then(|| attributes.in_words())
    }

    /// Reports whether the case, not the command line, chose the user of a request.
    async fn impersonates_another(&self, exchange: &Exchange) -> bool {
        let mut names = exchange.request.headers.iter().map(|(name, _)| name.to_ascii_lowercase());
        names.any(|name| name.starts_with("impersonate-")) && !self.client.impersonates().await
    }

    /// Returns how the server rejects a plain object of the subject, after it denied the create of
    /// another one. Quotas and webhooks deny it although the user has the right.
    async fn denial(
        &self,
        exchange: &Exchange,
        planned: &PlannedRun,
        deadline: Instant,
    ) -> Option<String> {
        let subject = planned.subject.as_deref()?;
        let collection = exchange.request.target.split('?').next().unwrap_or_default();
        let is_create = exchange.request.method == "POST"
            && collection == subject.collection(&self.namespace)
            && is_denied(exchange);
        if !is_create || !self.client.may_send("POST", collection) {
            return None;
        }
        let object = subject.object(&self.namespace, &format!("{}-plain", planned.name));
        let requester = Requester { client: &self.client, deadline };
        let plain = dry_create(&requester, collection, &object).await;
        (plain.status() == 403).then(|| plain.in_words())
    }
}

/// Returns the rejection that a failed check is about.
fn rejected<'a>(check: &CheckResult, exchanges: &'a [NamedExchange]) -> Option<&'a Exchange> {
    if !matches!(check.verdict, Verdict::Fail | Verdict::Warn) {
        return None;
    }
    let of_check = |named: &&NamedExchange| {
        check.steps.iter().any(|step| {
            let rest = named.step.strip_prefix(step.as_str());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['[', '.', '/']))
        })
    };
    let last = exchanges.iter().rfind(of_check)?;
    (is_denied(&last.exchange) || asks_to_wait(&last.exchange)).then_some(&*last.exchange)
}

fn is_denied(exchange: &Exchange) -> bool {
    exchange.status() == 403 && exchange.request.identity == Identity::Admin
}

/// What a request does, as authorization sees it.
#[derive(Debug, Eq, PartialEq)]
struct Attributes<'a> {
    verb: String,
    /// Empty for the core group, and for paths without a resource.
    group: &'a str,
    version: &'a str,
    namespace: &'a str,
    /// Empty for paths without a resource.
    resource: &'a str,
    name: &'a str,
    subresource: &'a str,
    path: &'a str,
}

impl<'a> Attributes<'a> {
    fn of(method: &str, target: &'a str) -> Self {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let segments: Vec<&str> = path.trim_matches('/').split('/').collect();
        let (group, version, rest) = match segments.as_slice() {
            ["api", version, rest @ ..] => ("", *version, rest),
            ["apis", group, version, rest @ ..] => (*group, *version, rest),
            _ => ("", "", [].as_slice()),
        };
        let (namespace, rest) = match rest {
            ["namespaces", name, "status" | "finalize", ..] => (*name, rest),
            ["namespaces", namespace, resource @ ..] if !resource.is_empty() => {
                (*namespace, resource)
            }
            ["namespaces", name] => (*name, rest),
            _ => ("", rest),
        };
        let part = |index: usize| rest.get(index).copied().unwrap_or_default();
        let (resource, name, subresource) = (part(0), part(1), part(2));
        let watches = query.split('&').any(|pair| matches!(pair, "watch=true" | "watch=1"));
        let verb = match (method, resource, name) {
            (_, "", _) => method.to_ascii_lowercase(),
            ("GET", _, "") if watches => "watch".to_owned(),
            ("GET" | "HEAD", _, "") => "list".to_owned(),
            ("GET" | "HEAD", ..) => "get".to_owned(),
            ("POST", ..) => "create".to_owned(),
            ("PUT", ..) => "update".to_owned(),
            ("DELETE", _, "") => "deletecollection".to_owned(),
            _ => method.to_ascii_lowercase(),
        };
        Self { verb, group, version, namespace, resource, name, subresource, path }
    }

    fn review(&self) -> Value {
        let spec = if self.resource.is_empty() {
            json!({"nonResourceAttributes": {"verb": self.verb, "path": self.path}})
        } else {
            json!({"resourceAttributes": {
                "verb": self.verb, "group": self.group, "version": self.version,
                "namespace": self.namespace, "resource": self.resource,
                "subresource": self.subresource, "name": self.name,
            }})
        };
        json!({
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": spec,
        })
    }

    fn in_words(&self) -> String {
        if self.resource.is_empty() {
            return format!("{} {}", self.verb, self.path);
        }
        let subresource = match self.subresource {
            "" => String::new(),
            name => format!("/{name}"),
        };
        let place = match self.namespace {
            "" => "in all namespaces".to_owned(),
            namespace => format!("in the namespace {namespace}"),
        };
        format!("{} {}{subresource} {place}", self.verb, self.resource)
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("GET", "/api/v1/configmaps?limit=1", "list configmaps in all namespaces")]
    #[case("GET", "/api/v1/configmaps?watch=true", "watch configmaps in all namespaces")]
    #[case("GET", "/api/v1/namespaces/a", "get namespaces in the namespace a")]
    #[case("PUT", "/api/v1/namespaces/a/status", "update namespaces/status in the namespace a")]
    #[case(
        "GET",
        "/apis/apps/v1/namespaces/a/deployments/b/scale",
        "get deployments/scale in the namespace a"
    )]
    #[case("DELETE", "/api/v1/namespaces/a/pods", "deletecollection pods in the namespace a")]
    #[case("POST", "/apis/g/v1/widgets", "create widgets in all namespaces")]
    #[case("GET", "/version", "get /version")]
    fn requests_have_the_attributes_of_authorization(
        #[case] method: &str,
        #[case] target: &str,
        #[case] expected: &str,
    ) {
        assert_eq!(Attributes::of(method, target).in_words(), expected);
    }

    #[test]
    fn reviews_ask_for_a_resource_or_a_path() {
        let review = Attributes::of("GET", "/apis/apps/v1/namespaces/a/deployments/b").review();
        let attributes = &review["spec"]["resourceAttributes"];
        assert_eq!((&attributes["group"], &attributes["name"]), (&json!("apps"), &json!("b")));
        let review = Attributes::of("GET", "/metrics").review();
        assert_eq!(review["spec"]["nonResourceAttributes"]["path"], "/metrics");
    }
}
