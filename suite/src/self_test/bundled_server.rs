//! A bundled server for tests, with a client for its users.

use std::sync::Arc;

use kubeproof_cases::Catalogue;
use kubeproof_harness::event::CaseResult;
use kubeproof_harness::generated::GeneratedError;
use kubeproof_harness::plan::{Plan, PlanError, RunOptions, SelectionError, plan};
use kubeproof_harness::run::results;
use kubeproof_harness::target::{Credential, TargetConfig, TargetError};
use kubeproof_harness::transport::{Client, Limits};
use kubeproof_reference_server::{Config, Running, StartError};

use super::server_threads;

/// Events that a server keeps for a few cases. A case can exceed this number quickly, and then
/// watch from a compacted version.
pub const SHORT_HISTORY: usize = 1_024;

/// Events that a server keeps for all cases: more than they write while one case reads.
pub const LONG_HISTORY: usize = 4_096;

/// The token of the user without permissions, which only this process can reach.
const USER_TOKEN: &str = "unprivileged";

/// A bundled server for a test, with a client.
#[derive(Debug)]
pub struct Bundled {
    server: Running,
    /// A client with the credentials of the administrator and of the user without permissions.
    pub client: Client,
}

/// Why the self-test cannot continue.
#[derive(Debug, thiserror::Error)]
pub enum SelfTestError {
    /// The server does not start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The server cannot be reached.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// The run cannot be planned.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The server rejects an object of the test.
    #[error("the bundled server rejects a POST to {path}: {response}")]
    Preparation {
        /// The path.
        path: String,
        /// The response.
        response: String,
    },
    /// A generated test cannot run.
    #[error(transparent)]
    Generated(#[from] GeneratedError),
    /// The id of a case is not a valid pattern.
    #[error(transparent)]
    Selection(#[from] SelectionError),
}

impl Bundled {
    /// Starts a server with a node, a second user, and the sample CRD of the schema cases. The
    /// client uses the credential of the viewer if there is one, and else that of the
    /// administrator.
    pub async fn start(config: Config) -> Result<Self, SelfTestError> {
        let config =
            Config { node: true, sample: true, user_token: Some(USER_TOKEN.to_owned()), ..config };
        let viewer = config.viewer_token.clone();
        let server = server_threads::start(config).await?;
        let token = viewer.as_deref().unwrap_or(server.admin_token());
        let client = client(&server, token, Some(USER_TOKEN))?;
        Ok(Self { server, client })
    }

    /// Returns a client with the credential of the user without permissions, and no other one.
    pub fn user(&self) -> Result<Client, SelfTestError> {
        client(&self.server, USER_TOKEN, None)
    }

    /// Plans a run against this server.
    pub async fn plan(
        &self,
        catalogue: &Catalogue,
        options: &RunOptions,
    ) -> Result<Plan, SelfTestError> {
        Ok(plan(catalogue, &self.client, options).await?)
    }

    /// Runs cases against this server.
    pub async fn run(
        &self,
        catalogue: &Catalogue,
        options: &RunOptions,
    ) -> Result<Vec<Arc<CaseResult>>, SelfTestError> {
        let plan = self.plan(catalogue, options).await?;
        Ok(results(plan, self.client.clone(), options).await)
    }

    /// Stops the server, and waits for its end.
    pub async fn stop(self) {
        self.server.shutdown().await;
    }
}

fn client(server: &Running, token: &str, second: Option<&str>) -> Result<Client, SelfTestError> {
    let mut target = TargetConfig::new(&server.url())?;
    target.credential = Credential::token(token)?;
    target.second = second.map(Credential::token).transpose()?;
    // On faulty servers cases repeat requests. The memory of all responses must not end a case
    // before its verdict.
    let limits = Limits { max_held: 2 << 30, ..Limits::default() };
    Ok(Client::new(&target, limits)?)
}
