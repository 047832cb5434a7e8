//! `kubeproof clean`: removes objects that killed runs left behind.

use std::io::{self, Write};
use std::time::Duration;

use kubeproof_harness::run::leftovers;
use kubeproof_harness::transport::{Client, Limits};
use tokio::time::Instant;

use crate::args::high;
use crate::error::Error;
use crate::exit_code::Exit;

/// Time limit of the search.
const SEARCH_TIMEOUT: Duration = Duration::from_secs(30);

pub(super) async fn clean(options: high::Clean, out: &mut dyn Write) -> Result<Exit, Error> {
    let high::Clean { target, namespace, older_than, dry_run } = options;
    let Some(target) = target.config().await? else { return Err(Error::NoTarget) };
    let client = Client::new(&target, Limits::default())?;
    let deadline = Instant::now() + SEARCH_TIMEOUT;
    let found = leftovers::find(&client, namespace.as_deref(), older_than, deadline).await?;
    for leftover in &found.leftovers {
        writeln!(out, "{}", leftover.path)?;
    }
    if found.leftovers.is_empty() && found.unseen.is_empty() {
        writeln!(io::stderr(), "earlier runs left nothing behind")?;
    }
    for (collection, why) in &found.unseen {
        writeln!(io::stderr(), "cannot list {collection}: {why}")?;
    }
    // A user who cleans one namespace may have no permissions outside of it.
    let is_incomplete =
        found.unseen.iter().any(|(path, _)| namespace.is_none() || path.contains("/namespaces/"));
    let notices = if dry_run { Vec::new() } else { leftovers::remove(&client, &found).await };
    for notice in &notices {
        writeln!(io::stderr(), "{notice}")?;
    }
    let is_clean = !is_incomplete && notices.is_empty();
    Ok(if is_clean { Exit::CONFORMANT } else { Exit::FAILURES })
}
