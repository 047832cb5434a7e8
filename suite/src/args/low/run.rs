//! The arguments of `kubeproof run`: the target, what is selected, what keeps it from harm, and where reports go.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use kubeproof_harness::selection::{Pattern, Shard};

use super::{Edition, Level, duration, positive};

#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct Run {
    #[command(flatten)]
    pub(crate) target: Target,
    #[command(flatten)]
    pub(crate) pods: Pods,
    #[command(flatten)]
    pub(crate) cases: Cases,
    #[command(flatten)]
    pub(crate) selection: Selection,
    #[command(flatten)]
    pub(crate) safety: Safety,
    #[command(flatten)]
    pub(crate) execution: Execution,
    #[command(flatten)]
    pub(crate) reports: Reports,
}

const EXIT_CODES: &str = "\
Exit codes:
  0    conformant
  1    failures
  2    the command line, or a file that it names, is wrong
  3    the target cannot be reached, or does not accept the credential
  4    nothing ran: a pattern matches nothing, or every case was skipped
  5    no failures, but errors: the harness could not tell
  130  interrupted; what was created is removed, and the reports are written";

#[derive(Debug, Args)]
#[command(next_help_heading = "Target")]
pub(crate) struct Target {
    /// URL of the server to test
    #[arg(long, value_name = "URL", group = "address")]
    pub(crate) server: Option<String>,

    /// Bearer token of the run
    #[arg(long, value_name = "TOKEN", requires = "server", conflicts_with = "token_file")]
    pub(crate) token: Option<String>,

    /// File that holds the bearer token; read again while the run goes on
    #[arg(long, value_name = "FILE", requires = "server")]
    pub(crate) token_file: Option<PathBuf>,

    /// PEM file with the authorities to trust, instead of the system's
    #[arg(long, value_name = "FILE", requires = "server", conflicts_with = "insecure_skip_tls_verify")]
    pub(crate) certificate_authority: Option<PathBuf>,

    /// Trust any certificate
    #[arg(long, requires = "server")]
    pub(crate) insecure_skip_tls_verify: bool,

    /// PEM file with the client's certificate
    #[arg(long, value_name = "FILE", requires_all = ["server", "client_key"])]
    pub(crate) client_certificate: Option<PathBuf>,

    /// PEM file with the key of the client's certificate
    #[arg(long, value_name = "FILE", requires = "client_certificate")]
    pub(crate) client_key: Option<PathBuf>,

    /// Test the server of a kubeconfig; without FILE: of KUBECONFIG, else of ~/.kube/config
    #[arg(long, value_name = "FILE", num_args = 0..=1, group = "address")]
    #[expect(clippy::option_option, reason = "how clap tells a flag without its value from no flag")]
    pub(crate) kubeconfig: Option<Option<PathBuf>>,

    /// Context of the kubeconfig, instead of its current one
    #[arg(long, value_name = "NAME", requires = "kubeconfig")]
    pub(crate) context: Option<String>,

    /// User to act as (impersonation)
    #[arg(long = "as", value_name = "USER", requires = "address")]
    pub(crate) act_as: Option<String>,

    /// Bearer token of a user without rights, for the cases about 403
    #[arg(long, value_name = "TOKEN", requires = "address")]
    pub(crate) second_token: Option<String>,
}

/// Where pods run: what cases of streams need.
#[derive(Debug, Args)]
#[command(next_help_heading = "Pods")]
pub(crate) struct Pods {
    /// Bring a node to a target that has none: the pods of the run are bound to it, and it is removed afterwards
    #[arg(long, requires = "address", conflicts_with_all = ["read_only", "dry_run"])]
    pub(crate) with_node: bool,

    /// Address of this machine at which the target reaches the node [default: the one on the way to it]
    #[arg(long, value_name = "IP", requires = "with_node")]
    pub(crate) node_address: Option<IpAddr>,

    /// PEM file with the authority of the target's client certificate for nodes: nobody else is answered
    #[arg(long, value_name = "FILE", requires = "with_node")]
    pub(crate) node_client_ca: Option<PathBuf>,

    /// Image for the pods of the run, where real nodes run them: busybox, or one with its programs
    #[arg(long, value_name = "IMAGE")]
    pub(crate) pod_image: Option<String>,
}

/// Which cases: what `run`, `list` and others have in common.
#[derive(Debug, Args)]
#[command(next_help_heading = "Selection")]
pub(crate) struct Cases {
    /// Only cases whose id matches, as `watch/*`, or that match with their subject, as `create/*@secrets.v1`
    #[arg(long, value_name = "GLOB", num_args = 1..)]
    pub(crate) only: Vec<Pattern>,

    /// No case that matches
    #[arg(long, value_name = "GLOB", num_args = 1..)]
    pub(crate) skip: Vec<Pattern>,

    /// Only cases of these areas: the first part of their ids
    #[arg(long, value_name = "AREA", num_args = 1..)]
    pub(crate) area: Vec<String>,

    /// Only cases of this level or a stronger one
    #[arg(long, value_enum)]
    pub(crate) level: Option<Level>,

    /// The state of the conventions to judge by
    #[arg(long, value_enum, default_value_t)]
    pub(crate) edition: Edition,

    /// Directory of case files to add
    #[arg(long = "cases", value_name = "DIR")]
    pub(crate) directories: Vec<PathBuf>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Selection")]
pub(crate) struct Selection {
    /// Judge by the text alone: what deployed servers do instead is a failure
    #[arg(long)]
    pub(crate) letter: bool,

    /// Run the cases on this resource too; FILE holds an object of it that the server accepts
    #[arg(long, value_name = "GROUP/VERSION/RESOURCE[=FILE]", num_args = 1..)]
    pub(crate) subject: Vec<String>,

    /// Only the M-th of N parts of the run
    #[arg(long, value_name = "M/N")]
    pub(crate) shard: Option<Shard>,

    /// Only what failed in the run of this JSON report
    #[arg(long, value_name = "REPORT")]
    pub(crate) rerun: Option<PathBuf>,

    /// List of failures that do not fail the run
    #[arg(long, value_name = "FILE")]
    pub(crate) known_failures: Option<PathBuf>,

    /// Write what fails into the list of known failures, and remove what passes
    #[arg(long, requires = "known_failures")]
    pub(crate) update_known_failures: bool,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Safety")]
pub(crate) struct Safety {
    /// Use this namespace, and create none; write nothing outside of it
    #[arg(long, value_name = "NAMESPACE")]
    pub(crate) namespace: Option<String>,

    /// Run only the cases that write nothing
    #[arg(long)]
    pub(crate) read_only: bool,

    /// Requests a second, at most
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_rps: Option<u32>,

    /// Print what would run, what not and why, and what would be created; send only reads
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Execution")]
pub(crate) struct Execution {
    /// Cases at once
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = positive)]
    pub(crate) jobs: usize,

    /// Time for the whole run, as 90s or 5m; cases that it leaves no time for end as errors
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) timeout: Option<Duration>,

    /// Time for each case
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = duration)]
    pub(crate) case_timeout: Duration,

    /// Memory for large answers that are received or looked at, in MiB; what does not fit is an error
    #[arg(long, value_name = "MIB", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) answer_memory: u32,

    /// Order of the cases [default: random]
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,

    /// How much the cases about load do, as a multiple: 10 is 10000 objects in pages, and 500 watchers
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) load: u32,

    /// How often each case runs
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) repeat: u32,

    /// Skip the rest after this many results that fail the run
    #[arg(long, value_name = "N", value_parser = positive)]
    pub(crate) max_fail: Option<usize>,

    /// Warnings and deviations fail the run too
    #[arg(long)]
    pub(crate) strict: bool,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Reports")]
pub(crate) struct Reports {
    #[command(flatten)]
    pub(crate) files: ReportFiles,

    /// Print annotations for GitHub Actions
    #[arg(long)]
    pub(crate) github: bool,

    /// Write what was sent and received into a file per case in this directory
    #[arg(long, value_name = "DIR")]
    pub(crate) trace: Option<PathBuf>,

    /// Print the summary alone
    #[arg(long, short, conflicts_with = "verbose")]
    pub(crate) quiet: bool,

    /// Print every result; twice: every exchange too
    #[arg(long, short, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,

    /// Tell nothing while the run goes
    #[arg(long)]
    pub(crate) no_progress: bool,
}

/// Reports that are files.
#[derive(Debug, Args)]
#[command(next_help_heading = "Reports")]
pub(crate) struct ReportFiles {
    /// Write a JUnit report
    #[arg(long, value_name = "FILE")]
    pub(crate) junit: Option<PathBuf>,

    /// Write a JSON report
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,

    /// Write an HTML page
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,

    /// Write a Markdown summary
    #[arg(long, value_name = "FILE")]
    pub(crate) markdown: Option<PathBuf>,

    /// Write a SARIF report
    #[arg(long, value_name = "FILE")]
    pub(crate) sarif: Option<PathBuf>,

    /// Write a TAP report
    #[arg(long, value_name = "FILE")]
    pub(crate) tap: Option<PathBuf>,
}
