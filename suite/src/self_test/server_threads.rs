//! The threads of bundled servers.
//!
//! On the threads of the run, computations of cases would delay the many small steps of a server,
//! for example those of its scripted shell.

use std::io;
use std::panic::resume_unwind;
use std::sync::LazyLock;

use kubeproof_reference_server::{Config, Running, Server, StartError};
use tokio::runtime::{Builder, Runtime};

/// The threads end with the process. If they cannot be started, servers run on the threads of their
/// callers.
static THREADS: LazyLock<io::Result<Runtime>> =
    LazyLock::new(|| Builder::new_multi_thread().thread_name("server").enable_all().build());

/// Starts a server on these threads.
pub async fn start(config: Config) -> Result<Running, StartError> {
    match &*THREADS {
        Ok(threads) => match threads.spawn(Server::start(config)).await {
            Ok(started) => started,
            Err(error) => resume_unwind(error.into_panic()),
        },
        Err(_) => Server::start(config).await,
    }
}
