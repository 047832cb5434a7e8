//! The threads of bundled servers.
//!
//! A run keeps its own busy with whatever cases compute, and a task that yields waits for the thread that it yielded on: what a server
//! does in many small steps, as its scripted shell does, would stand still for as long as a case computes beside it.

use std::io;
use std::panic::resume_unwind;
use std::sync::LazyLock;

use kubeproof_reference_server::{Config, Running, Server, StartError};
use tokio::runtime::{Builder, Runtime};

/// They end with the process. Where they cannot be had, servers run on the threads of whoever starts them.
static THREADS: LazyLock<io::Result<Runtime>> =
    LazyLock::new(|| Builder::new_multi_thread().thread_name("server").enable_all().build());

/// Starts a server on them.
pub async fn start(config: Config) -> Result<Running, StartError> {
    match &*THREADS {
        Ok(threads) => match threads.spawn(Server::start(config)).await {
            Ok(started) => started,
            Err(error) => resume_unwind(error.into_panic()),
        },
        Err(_) => Server::start(config).await,
    }
}
