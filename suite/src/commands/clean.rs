//! `kubeproof clean`: removes objects that killed runs left behind.

use std::io::{self, Write};
use std::time::Duration;

use jiff::SignedDuration;
use kubeproof_cases::plural;
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
    if found.younger > 0 {
        let line = younger(found.leftovers.is_empty(), found.younger, older_than);
        writeln!(io::stderr(), "{line}")?;
    } else if found.leftovers.is_empty() && found.unseen.is_empty() {
        writeln!(io::stderr(), "found no objects of earlier runs")?;
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

/// Describes the objects that stay because of their age.
fn younger(nothing_removed: bool, count: usize, older_than: Duration) -> String {
    let age = SignedDuration::try_from(older_than).unwrap_or(SignedDuration::MAX);
    let start = if nothing_removed { "nothing removed: " } else { "" };
    let (verb, them) = if count == 1 { ("is", "it") } else { ("are", "them") };
    format!(
        "{start}{} {verb} younger than {age:#} and may belong to an active run; --older-than 0 \
         removes {them} too",
        plural(count, "object"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn young_objects_are_counted() {
        assert_eq!(
            younger(true, 1, Duration::from_mins(10)),
            "nothing removed: 1 object is younger than 10m and may belong to an active run; \
             --older-than 0 removes it too"
        );
        assert_eq!(
            younger(false, 2, Duration::from_secs(90)),
            "2 objects are younger than 1m 30s and may belong to an active run; --older-than 0 \
             removes them too"
        );
    }
}
