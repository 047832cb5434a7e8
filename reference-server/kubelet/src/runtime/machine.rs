//! The environment that the processes of one container share.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::watch;

use super::commands;
use super::files::Files;
use super::io::Io;
use super::network::Network;
use super::process::TerminalSize;

pub(super) type Environment = BTreeMap<String, String>;

/// The exit code of a process without a reader, as after SIGPIPE.
pub(super) const BROKEN_PIPE: i32 = 141;

/// A container as its processes see it.
pub(super) struct Machine {
    pub(super) hostname: String,
    pub(super) environment: Environment,
    /// The initial directory of programs.
    pub(super) directory: String,
    pub(super) files: Arc<Files>,
    pub(super) network: Arc<Network>,
}

/// A program before it starts.
#[derive(Clone)]
pub(super) struct Program {
    /// The name and the arguments. Never empty.
    pub(super) args: Vec<String>,
    pub(super) environment: Environment,
    pub(super) directory: String,
    pub(super) io: Io,
    /// None without a terminal.
    pub(super) terminal: Option<watch::Receiver<TerminalSize>>,
    pub(super) machine: Arc<Machine>,
}

impl Program {
    /// Returns the name without a directory of programs.
    pub(super) fn name(&self) -> &str {
        self.args.first().map(|name| base_name(name)).unwrap_or_default()
    }

    pub(super) fn arguments(&self) -> &[String] {
        self.args.get(1..).unwrap_or_default()
    }

    /// Runs the program until it ends. Returns none for an unknown program.
    pub(super) async fn run(self) -> Option<i32> {
        commands::run(self).await
    }

    /// Writes `name: what` to the error output.
    pub(super) async fn complain(&self, what: &str) -> std::io::Result<()> {
        self.io.stderr.write(format!("{}: {what}\n", self.name()).as_bytes()).await
    }
}

/// Removes a directory of programs, such as `/bin/`, from a path.
pub(super) fn base_name(path: &str) -> &str {
    ["/bin/", "/usr/bin/", "/usr/local/bin/"]
        .iter()
        .find_map(|directory| path.strip_prefix(directory))
        .filter(|name| !name.contains('/'))
        .unwrap_or(path)
}
