//! What the processes of one container share, and how a program is started in it.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::watch;

use super::commands;
use super::files::Files;
use super::io::Io;
use super::network::Network;
use super::process::TerminalSize;

/// The environment of a process.
pub(super) type Environment = BTreeMap<String, String>;

/// The exit code of a process whose reader is gone, as of one that SIGPIPE ended.
pub(super) const BROKEN_PIPE: i32 = 141;

/// A container from the inside.
pub(super) struct Machine {
    pub(super) hostname: String,
    pub(super) environment: Environment,
    /// Where programs start.
    pub(super) directory: String,
    pub(super) files: Arc<Files>,
    pub(super) network: Arc<Network>,
}

/// A program about to run.
#[derive(Clone)]
pub(super) struct Program {
    /// Its name and arguments; never empty.
    pub(super) args: Vec<String>,
    pub(super) environment: Environment,
    pub(super) directory: String,
    pub(super) io: Io,
    /// None without a terminal.
    pub(super) terminal: Option<watch::Receiver<TerminalSize>>,
    pub(super) machine: Arc<Machine>,
}

impl Program {
    /// The name without its directory, when that is one where programs are.
    pub(super) fn name(&self) -> &str {
        self.args.first().map(|name| base_name(name)).unwrap_or_default()
    }

    pub(super) fn arguments(&self) -> &[String] {
        self.args.get(1..).unwrap_or_default()
    }

    /// Runs it to its end. None when there is no such program.
    pub(super) async fn run(self) -> Option<i32> {
        commands::run(self).await
    }

    /// Writes `name: what` to the error output.
    pub(super) async fn complain(&self, what: &str) -> std::io::Result<()> {
        self.io.stderr.write(format!("{}: {what}\n", self.name()).as_bytes()).await
    }
}

/// The name of a program without its directory, when that is one where programs are.
pub(super) fn base_name(path: &str) -> &str {
    ["/bin/", "/usr/bin/", "/usr/local/bin/"]
        .iter()
        .find_map(|directory| path.strip_prefix(directory))
        .filter(|name| !name.contains('/'))
        .unwrap_or(path)
}
