//! The bundled server and a client that knows its users: what everything here runs against.

use std::sync::Arc;

use kubeproof_cases::Catalogue;
use kubeproof_harness::event::CaseResult;
use kubeproof_harness::plan::{Plan, PlanError, plan};
use kubeproof_harness::run::{RunOptions, results};
use kubeproof_harness::selection::SelectionError;
use kubeproof_harness::target::{Credential, TargetConfig, TargetError};
use kubeproof_harness::transport::{Client, Limits};
use kubeproof_reference_server::{Config, Running, StartError};

use super::threads;

/// Events that a server keeps on which few cases run: so few that a case makes it forget in no time.
pub const FORGETFUL: usize = 1_024;

/// Events that a server keeps on which all cases run: more than they write while one of them reads.
pub const MINDFUL: usize = 4_096;

/// Of the user without rights, whom nobody but this process can reach.
const USER_TOKEN: &str = "unprivileged";

/// A bundled server that was started for a test, with a client for it.
#[derive(Debug)]
pub struct Bundled {
    server: Running,
    /// The client, which knows the administrator and the user without rights.
    pub client: Client,
}

/// Why the self-test could not go on.
#[derive(Debug, thiserror::Error)]
pub enum SelfTestError {
    /// No server.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The server cannot be spoken to.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// The run has no plan.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The id of a case is no pattern.
    #[error(transparent)]
    Selection(#[from] SelectionError),
}

impl Bundled {
    /// Starts a server that runs pods, has a second user, and the sample that schema cases judge. The client is its
    /// administrator, or its viewer where it has one.
    pub async fn start(config: Config) -> Result<Self, SelfTestError> {
        let config = Config { node: true, sample: true, user_token: Some(USER_TOKEN.to_owned()), ..config };
        let viewer = config.viewer_token.clone();
        let server = threads::start(config).await?;
        let mut target = TargetConfig::new(&server.url())?;
        target.credential = Credential::token(viewer.as_deref().unwrap_or(server.admin_token()))?;
        target.second = Some(Credential::token(USER_TOKEN)?);
        // A wrong server has cases ask over and over, and what they keep of it must not be the end of them before they judge.
        let limits = Limits { max_held: 2 << 30, ..Limits::default() };
        let client = Client::new(&target, limits)?;
        Ok(Self { server, client })
    }

    /// The plan of a run against it.
    pub async fn plan(&self, catalogue: &Catalogue, options: &RunOptions) -> Result<Plan, SelfTestError> {
        Ok(plan(catalogue, &self.client, options).await?)
    }

    /// Runs cases against it.
    pub async fn run(
        &self,
        catalogue: &Catalogue,
        options: &RunOptions,
    ) -> Result<Vec<Arc<CaseResult>>, SelfTestError> {
        let plan = self.plan(catalogue, options).await?;
        Ok(results(plan, self.client.clone(), options).await)
    }

    /// Stops the server, and waits until it has.
    pub async fn stop(self) {
        self.server.shutdown().await;
    }
}
