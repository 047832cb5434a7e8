//! The server under test: the given one, or the bundled one.

use kubeproof::self_test::server_threads;
use kubeproof_harness::target::{Credential, TargetConfig};
use kubeproof_reference_server::{Config, Faults, Running};

use crate::args::high;
use crate::error::Error;

/// Events that the bundled server keeps: more than concurrent writers create between the list and
/// the watch of a case.
const HISTORY: usize = 4096;

/// The token of the second user of the bundled server, which only this process can reach.
const USER_TOKEN: &str = "a-user-without-rights";

/// The server under test.
pub(in crate::commands) struct RunTarget {
    pub(in crate::commands) config: TargetConfig,
    /// Stops when dropped. The end of the run does not wait for it, because a faulty server can
    /// hang.
    _bundled: Option<Running>,
}

impl RunTarget {
    /// Returns the given server, or starts the bundled one.
    pub(in crate::commands) async fn open(target: high::Target) -> Result<Self, Error> {
        match target.config().await? {
            Some(config) => Ok(Self { config, _bundled: None }),
            None => Self::bundled(Faults::none()).await,
        }
    }

    /// Starts the bundled server with these faults.
    pub(in crate::commands) async fn bundled(faults: Faults) -> Result<Self, Error> {
        let server = server_threads::start(Config {
            faults,
            history: HISTORY,
            node: true,
            sample: true,
            user_token: Some(USER_TOKEN.to_owned()),
            ..Config::default()
        })
        .await?;
        let mut config = TargetConfig::new(&server.url())?;
        config.credential = Credential::token(server.admin_token())?;
        config.second = Some(Credential::token(USER_TOKEN)?);
        Ok(Self { config, _bundled: Some(server) })
    }
}
