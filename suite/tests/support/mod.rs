//! A reference server and a client for it, for the tests that run cases.

use anyhow::Context as _;
use kubeproof_cases::Catalogue;
use kubeproof_harness::event::{CaseResult, Event, Verdict};
use kubeproof_harness::plan::{Plan, plan};
use kubeproof_harness::run::{RunOptions, run};
use kubeproof_harness::target::{Credential, TargetConfig};
use kubeproof_harness::transport::{Client, Limits};
use kubeproof_reference_server::{Config, Faults, Running, Server};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

const USER_TOKEN: &str = "unprivileged";

/// A server with these faults that remembers so many events, and a client that knows its administrator and its user.
pub(crate) async fn serve(faults: Faults, history: usize) -> anyhow::Result<(Running, Client)> {
    let config = Config {
        faults,
        history,
        node: true,
        sample: true,
        user_token: Some(USER_TOKEN.into()),
        ..Config::default()
    };
    let server = Server::start(config).await?;
    let mut target = TargetConfig::new(&server.url())?;
    target.credential = Credential::token(server.admin_token())?;
    target.second = Some(Credential::token(USER_TOKEN)?);
    let client = Client::new(&target, Limits::default())?;
    Ok((server, client))
}

/// The plan of a run over a server.
pub(crate) async fn planned(
    catalogue: &Catalogue,
    client: &Client,
    options: &RunOptions,
) -> anyhow::Result<Plan> {
    plan(catalogue, client, options).await.context("failed to plan the run")
}

/// Runs a plan and gathers its results.
pub(crate) async fn results(
    plan: Plan,
    client: Client,
    options: &RunOptions,
) -> anyhow::Result<Vec<Arc<CaseResult>>> {
    let (events, mut heard) = tokio::sync::mpsc::unbounded_channel();
    run(plan, client, options, events, CancellationToken::new()).await;
    let mut results = Vec::new();
    while let Ok(event) = heard.try_recv() {
        if let Event::CaseFinished(result) = event {
            results.push(result);
        }
    }
    Ok(results)
}

/// What a failed result says, for a person.
pub(crate) fn explain(result: &CaseResult) -> String {
    let mut lines = vec![format!("{:?}: {}", result.verdict, result.reason)];
    for check in result.checks.iter().filter(|check| check.verdict > Verdict::Deviation) {
        lines
            .push(format!("  {:?} of check {} ({}): {}", check.verdict, check.id, check.step, check.message));
        lines.extend(check.diff.clone());
        lines.extend(check.curl.clone());
    }
    lines.join("\n")
}
