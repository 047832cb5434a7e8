//! The server under test: the one that was named, or the bundled one.

use kubeproof::self_test::threads;
use kubeproof_harness::target::{Credential, TargetConfig};
use kubeproof_reference_server::{Config, Faults, Running};

use crate::args::low;
use crate::error::Error;

/// Events that the bundled server keeps: more than heavy writers make between the list and the watch of a case beside them.
const HISTORY: usize = 4096;

/// Of the bundled server's second user, whom nobody but this run can reach.
const USER_TOKEN: &str = "a-user-without-rights";

/// A server to test.
pub(in crate::commands) struct Opened {
    pub(in crate::commands) config: TargetConfig,
    /// Dropped, it stops; nobody waits for it, since one that hangs would hold up the end of the run.
    _bundled: Option<Running>,
}

impl Opened {
    /// The server that was named; else the bundled one, which is started.
    pub(super) async fn open(target: &low::Target) -> Result<Self, Error> {
        if let Some(config) = target.config().await? {
            return Ok(Self { config, _bundled: None });
        }
        Self::bundled(Faults::none()).await
    }

    /// The bundled server with these faults, which is started.
    pub(in crate::commands) async fn bundled(faults: Faults) -> Result<Self, Error> {
        let server = threads::start(Config {
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
