//! Restarts the server during a round.

use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;
use tokio::time::{Instant, sleep, timeout};

use crate::generated::GeneratedError;
use crate::transport::Client;

/// Time limit of the command.
const COMMAND_TIMEOUT: Duration = Duration::from_mins(2);

/// Time for the server to respond again.
const READY_TIMEOUT: Duration = Duration::from_mins(2);

/// The longest time of a request to a server that starts.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(2);

/// The time of the clients before a restart.
const BEFORE: Duration = Duration::from_millis(500);

const PAUSE: Duration = Duration::from_millis(50);

/// Lets the clients work for a moment, and then restarts the server.
pub(super) async fn restart_soon(client: &Client, command: &str) -> Result<(), GeneratedError> {
    sleep(BEFORE).await;
    restart(client, command).await
}

/// Runs the command in a shell, and waits until the server responds.
async fn restart(client: &Client, command: &str) -> Result<(), GeneratedError> {
    let failed = |problem: String| GeneratedError::Restart { command: command.to_owned(), problem };
    let status = Command::new("sh")
        .args(["-c", command])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .kill_on_drop(false)
        .status();
    let status = timeout(COMMAND_TIMEOUT, status)
        .await
        .map_err(|_| failed(format!("did not end in {COMMAND_TIMEOUT:?}")))?
        .map_err(|error| failed(format!("cannot be started: {error}")))?;
    if !status.success() {
        return Err(failed(format!("failed: {status}")));
    }
    let deadline = Instant::now() + READY_TIMEOUT;
    loop {
        match client.ping(Instant::now() + REQUEST_TIMEOUT).await {
            Ok(_) => return Ok(()),
            Err(error) if Instant::now() >= deadline => {
                return Err(failed(format!("ended, but the server does not respond: {error}")));
            }
            Err(_) => sleep(PAUSE).await,
        }
    }
}
