//! What a run needs before cases can run: its namespace, and the suite's own resources.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures_util::future::join_all;
use kubeproof_cases::case::{ResourceName, SubjectFilter};
use serde_json::{Value, json};
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
    /// What the target made of the resources that it did install.
    pub(super) granted: BTreeMap<ResourceName, Granted>,
}

/// What a target offers of a resource whose definition it took.
#[derive(Clone, Debug, Default)]
pub(super) struct Granted {
    /// As discovery lists them.
    verbs: BTreeSet<String>,
    /// As they stand in the definition that the target kept. One that stands there and is not served is for cases to judge.
    subresources: BTreeSet<String>,
}

impl Granted {
    /// Why a case that asks for this of its subject cannot run on the resource.
    pub(super) fn lacks(&self, name: &ResourceName, filter: &SubjectFilter) -> Option<String> {
        if let Some(verb) = filter.verbs.iter().find(|verb| !self.verbs.contains(*verb)) {
            return Some(format!("{name} does not list the verb {verb}"));
        }
        let missing = filter.subresources.iter().find(|sub| !self.subresources.contains(*sub))?;
        Some(format!("the server dropped the subresource {missing} from the definition of {name}"))
    }
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
pub(super) async fn install(client: &Client, installs: &[Install], deadline: Instant) -> Obstacles {
    // Cases run meanwhile, and what a server does to their connections is no reason to do without a resource.
    let asker = Asker { client: &client.apart(), deadline };
    let all = installs.iter().map(async |install| (install.name.clone(), install_one(&asker, install).await));
    let mut outcome = Obstacles::default();
    for (name, installed) in join_all(all).await {
        match installed {
            Ok(granted) => drop(outcome.granted.insert(name, granted)),
            Err(obstacle) => drop(outcome.installs.insert(name, *obstacle)),
        }
    }
    outcome
}

async fn install_one(asker: &Asker<'_>, install: &Install) -> Result<Granted, Box<Obstacle>> {
    let collection = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let created = asker.send("POST", collection, Some(&install.manifest)).await;
    if created.status() != 201 {
        let expected = "the CustomResourceDefinition must be created with 201";
        return Err(Box::new(Obstacle::new("resource-installed", created, expected)));
    }
    let mut pause = Duration::from_millis(1);
    loop {
        let listed = resource_list(asker, &install.root).await;
        let in_discovery = listed.into_iter().find(|(name, _)| name.resource == install.name.resource);
        let list = asker.get(&format!("{}?limit=1", install.collection), "application/json").await;
        if let Some((_, found)) = in_discovery
            && list.status() == 200
        {
            let subresources = kept_subresources(created.json(), &install.name.version);
            return Ok(Granted { verbs: found.verbs, subresources });
        }
        pause = (pause * 2).min(Duration::from_millis(250));
        if Instant::now() + pause > asker.deadline {
            let expected = if list.status() == 200 { "be in discovery" } else { "be served" };
            let expected = format!("the resource of the CustomResourceDefinition must {expected}");
            return Err(Box::new(Obstacle::new("resource-installed", list, &expected)));
        }
        tokio::time::sleep(pause).await;
    }
}

/// The subresources of a version, as a definition has them.
fn kept_subresources(definition: Option<&Value>, version: &str) -> BTreeSet<String> {
    let versions = definition.and_then(|definition| definition["spec"]["versions"].as_array());
    let of_version = versions.into_iter().flatten().filter(|kept| kept["name"] == version);
    of_version
        .filter_map(|kept| kept["subresources"].as_object())
        .flat_map(|subresources| subresources.keys().cloned())
        .collect()
}
