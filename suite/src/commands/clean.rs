//! `kubeproof clean`: what runs left behind that could not end.

use std::io::{self, Write};
use std::time::Duration;

use kubeproof_harness::clean;
use kubeproof_harness::transport::{Client, Limits};
use tokio::time::Instant;

use crate::args::low;
use crate::error::Error;
use crate::exit_code::Exit;

/// For finding.
const PATIENCE: Duration = Duration::from_secs(30);

/// Finds and removes; with `--dry-run` finds only.
pub(super) async fn clean(asked: &low::Clean, out: &mut dyn Write) -> Result<Exit, Error> {
    let Some(target) = asked.target.config().await? else { return Err(Error::NoTarget) };
    let client = Client::new(&target, Limits::default())?;
    let deadline = Instant::now() + PATIENCE;
    let found = clean::find(&client, asked.namespace.as_deref(), asked.older_than, deadline).await?;
    for leftover in &found.leftovers {
        writeln!(out, "{}", leftover.path)?;
    }
    if found.leftovers.is_empty() && found.unseen.is_empty() {
        writeln!(io::stderr(), "nothing is left of earlier runs")?;
    }
    for (collection, why) in &found.unseen {
        writeln!(io::stderr(), "cannot look at {collection}: {why}")?;
    }
    // Who cleans one namespace may have no rights beyond it.
    let blind =
        found.unseen.iter().any(|(path, _)| asked.namespace.is_none() || path.contains("/namespaces/"));
    let notices = if asked.dry_run { Vec::new() } else { clean::remove(&client, &found).await };
    for notice in &notices {
        writeln!(io::stderr(), "{notice}")?;
    }
    Ok(if blind || !notices.is_empty() { Exit::FAILURES } else { Exit::CONFORMANT })
}
