//! Arguments of `kubeproof stress`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::Target;
use super::values::{duration, number, positive};

#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(in crate::args) struct Stress {
    #[command(flatten)]
    pub(in crate::args) target: Target,
    #[command(flatten)]
    pub(in crate::args) scope: Scope,

    /// Number of concurrent clients
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = positive::<usize>)]
    pub(in crate::args) clients: usize,

    /// Number of objects that the clients share
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = positive::<usize>)]
    pub(in crate::args) objects: usize,

    /// Time for all resources together, for example 90s or 10m
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = duration)]
    pub(in crate::args) duration: Duration,

    /// Seed for the operations [default: random]
    #[arg(long, value_name = "N", value_parser = number::<u64>)]
    pub(in crate::args) seed: Option<u64>,

    /// Restart the server during the run with this shell command, and check that acknowledged
    /// writes survive; the command ends when the server has been started again
    #[arg(long, value_name = "COMMAND", requires = "address")]
    pub(in crate::args) restart_command: Option<String>,

    /// Write the history of the first violation to this file, as a timeline
    #[arg(long, value_name = "FILE")]
    pub(in crate::args) svg: Option<PathBuf>,

    /// Write the histories of the violations to this file, as JSON
    #[arg(long, value_name = "FILE")]
    pub(in crate::args) json: Option<PathBuf>,
}

/// What a generated test uses of the target.
#[derive(Debug, Args)]
pub(in crate::args) struct Scope {
    /// Test these resources, for example `deployments.v1.apps` or `apps/v1/deployments`; FILE
    /// contains an object that the server accepts [default: a built-in type and a custom resource]
    #[arg(long, value_name = "RESOURCE.VERSION[.GROUP][=FILE]", num_args = 1..)]
    pub(in crate::args) subject: Vec<String>,

    /// Write only to this existing namespace
    #[arg(long, value_name = "NAMESPACE")]
    pub(in crate::args) namespace: Option<String>,

    /// Limit the requests per second
    #[arg(long, value_name = "N", value_parser = positive::<u32>)]
    pub(in crate::args) max_rps: Option<u32>,
}

pub(super) const EXIT_CODES: &str = "\
Exit codes:
  0    no violation
  1    violations
  2    usage error, including files that cannot be read
  3    the target cannot be reached, rejects the credential, or is no Kubernetes API
  4    nothing ran: no resource can be tested
  5    the run could not decide: the server went away, or rejects what the run needs
  130  interrupted, after cleanup";
