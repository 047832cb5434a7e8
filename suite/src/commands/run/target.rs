//! The server under test: the one that was named, or the bundled one.

use std::fs;

use kubeproof_harness::target::{Credential, TargetConfig};
use kubeproof_reference_server::{Config, Running, Server};

use crate::args::low;
use crate::error::Error;

/// Events that the bundled server keeps: few enough for cases about versions that are gone.
const HISTORY: usize = 1024;

/// Of the bundled server's second user, whom nobody but this run can reach.
const USER_TOKEN: &str = "a-user-without-rights";

/// A server to test.
pub(super) struct Opened {
    pub(super) config: TargetConfig,
    /// What no report may show.
    pub(super) secrets: Vec<String>,
    bundled: Option<Running>,
}

impl Opened {
    /// The server that was named; else the bundled one, which is started.
    pub(super) async fn open(target: &low::Target) -> Result<Self, Error> {
        if let Some(config) = target.config().await? {
            let file = target.token_file.as_deref().map(fs::read_to_string).transpose();
            let secrets = [target.token.clone(), file.ok().flatten(), target.second_token.clone()];
            let secrets = secrets.into_iter().flatten().map(|secret| secret.trim().to_owned());
            return Ok(Self { config, secrets: secrets.collect(), bundled: None });
        }
        let server = Server::start(Config {
            history: HISTORY,
            user_token: Some(USER_TOKEN.to_owned()),
            ..Config::default()
        })
        .await?;
        let mut config = TargetConfig::new(&server.url())?;
        config.credential = Credential::token(server.admin_token())?;
        config.second = Some(Credential::token(USER_TOKEN)?);
        let secrets = vec![server.admin_token().to_owned(), USER_TOKEN.to_owned()];
        Ok(Self { config, secrets, bundled: Some(server) })
    }

    /// Stops the bundled server.
    pub(super) async fn close(self) {
        if let Some(server) = self.bundled {
            server.shutdown().await;
        }
    }
}
