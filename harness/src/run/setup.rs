//! What a run needs before cases can run: its namespace, and the suite's own resources.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::future::join_all;
use kubeproof_cases::case::ResourceName;
use serde_json::json;
use tokio::time::Instant;

use super::record::Record;
use crate::capability::{Asker, resource_list};
use crate::event::{CheckResult, Verdict};
use crate::exchange::Exchange;
use crate::plan::Install;
use crate::transport::Client;
use crate::verdict::synthetic;

/// How long a server may take to serve a resource that was installed.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

/// What of it failed. Cases that need it end with the check that says so.
#[derive(Clone, Debug, Default)]
pub(super) struct Obstacles {
    pub(super) namespace: Option<Obstacle>,
    pub(super) installs: BTreeMap<ResourceName, Obstacle>,
}

/// Something that failed before the cases.
#[derive(Clone, Debug)]
pub(super) struct Obstacle {
    check: CheckResult,
    exchange: Exchange,
}

impl Obstacle {
    /// For something that was expected of an exchange.
    pub(super) fn new(id: &str, exchange: Exchange, expected: &str) -> Self {
        let message = format!("{expected}, but got {}", exchange.in_words());
        let verdict = refusal_verdict(&exchange);
        let actual = exchange.json().cloned().unwrap_or_else(|| json!(exchange.status()));
        Self { check: synthetic(id.to_owned(), verdict, id, json!(expected), actual, message), exchange }
    }

    /// With this verdict, whatever the answer was.
    pub(super) fn at(mut self, verdict: Verdict) -> Self {
        self.check.verdict = verdict;
        self
    }

    /// As if the case had made the exchange itself.
    pub(super) fn tell(&self, record: &mut Record) {
        record.sent(self.check.step.clone(), self.exchange.clone());
        record.check(self.check.clone());
    }
}

/// The verdict on a refusal of what a case takes for granted: without rights, or with a server that is busy, nothing
/// can be told.
pub(super) fn refusal_verdict(exchange: &Exchange) -> Verdict {
    match exchange.status() {
        0 | 401 | 403 | 429 | 503 => Verdict::Error,
        _ => Verdict::Fail,
    }
}

/// Makes the namespace of the run.
pub(super) async fn namespace(client: &Client, name: &str, deadline: Instant) -> Option<Obstacle> {
    let asker = Asker { client, deadline };
    let manifest = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    let exchange = asker.send("POST", "/api/v1/namespaces", Some(&manifest)).await;
    if exchange.status() != 201 {
        return Some(Obstacle::new(
            "namespace-created",
            exchange,
            "the namespace of the run must be created with 201",
        ));
    }
    // Where pods are admitted only with a service account, its controller may not be as fast as the cases, or not run.
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}});
    asker.send("POST", &format!("/api/v1/namespaces/{name}/serviceaccounts"), Some(&account)).await;
    None
}

/// Installs the suite's own resources, all at once, and waits until they are served.
pub(super) async fn install(
    client: &Client,
    installs: &[Install],
    deadline: Instant,
) -> BTreeMap<ResourceName, Obstacle> {
    let asker = Asker { client, deadline };
    let obstacles = join_all(installs.iter().map(async |install| {
        let obstacle = install_one(&asker, install).await?;
        Some((install.name.clone(), obstacle))
    }));
    obstacles.await.into_iter().flatten().collect()
}

async fn install_one(asker: &Asker<'_>, install: &Install) -> Option<Obstacle> {
    let collection = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let created = asker.send("POST", collection, Some(&install.manifest)).await;
    if created.status() != 201 {
        return Some(Obstacle::new(
            "resource-installed",
            created,
            "the CustomResourceDefinition must be created with 201",
        ));
    }
    let mut pause = Duration::from_millis(1);
    loop {
        let listed = resource_list(asker, &install.root).await;
        let in_discovery = listed.keys().any(|name| name.resource == install.name.resource);
        let list = asker.get(&format!("{}?limit=1", install.collection), "application/json").await;
        if in_discovery && list.status() == 200 {
            return None;
        }
        pause = (pause * 2).min(Duration::from_millis(250));
        if Instant::now() + pause > asker.deadline {
            let expected = if list.status() == 200 { "be in discovery" } else { "be served" };
            let expected = format!("the resource of the CustomResourceDefinition must {expected}");
            return Some(Obstacle::new("resource-installed", list, &expected));
        }
        tokio::time::sleep(pause).await;
    }
}
