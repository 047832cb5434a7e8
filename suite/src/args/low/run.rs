//! Arguments of `kubeproof run`.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use kubeproof_cases::Profile;
use kubeproof_cases::case::Capability;
use kubeproof_harness::plan::{Pattern, Shard};

use super::values::{duration, load, needed_capability, number, positive, profile};
use super::{Edition, Level, Oracle, ReportFiles};

#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(in crate::args) struct Run {
    #[command(flatten)]
    pub(in crate::args) target: Target,
    #[command(flatten)]
    pub(in crate::args) oracle: Oracle,
    #[command(flatten)]
    pub(in crate::args) pods: Pods,
    #[command(flatten)]
    pub(in crate::args) cases: Cases,
    #[command(flatten)]
    pub(in crate::args) selection: Selection,
    #[command(flatten)]
    pub(in crate::args) safety: Safety,
    #[command(flatten)]
    pub(in crate::args) execution: Execution,
    #[command(flatten)]
    pub(in crate::args) reports: Reports,

    /// Read options from this file [default: kubeproof.toml, if it exists]
    #[arg(long, value_name = "FILE")]
    pub(in crate::args) config: Option<PathBuf>,
}

const EXIT_CODES: &str = "\
Exit codes:
  0    conformant
  1    failures
  2    usage error, including files that cannot be read
  3    the target cannot be reached, rejects the credential, or is no Kubernetes API
  4    nothing ran: a pattern matches nothing, or every case was skipped
  5    no failures, but errors: the harness could not decide; or the server went away or hangs
  130  interrupted, after cleanup and reports";

#[derive(Debug, Args)]
#[command(next_help_heading = "Target")]
pub(in crate::args) struct Target {
    /// URL of the server to test
    #[arg(long, value_name = "URL", group = "address")]
    pub(in crate::args) server: Option<String>,

    /// Bearer token
    #[arg(long, value_name = "TOKEN", requires = "address", conflicts_with = "token_file")]
    pub(in crate::args) token: Option<String>,

    /// File with the bearer token; it is read again during the run
    #[arg(long, value_name = "FILE", requires = "address")]
    pub(in crate::args) token_file: Option<PathBuf>,

    /// PEM file with the trusted authorities [default: those of the system]
    #[arg(
        long,
        value_name = "FILE",
        requires = "address",
        conflicts_with = "insecure_skip_tls_verify"
    )]
    pub(in crate::args) certificate_authority: Option<PathBuf>,

    /// Trust any certificate
    #[arg(long, requires = "address")]
    pub(in crate::args) insecure_skip_tls_verify: bool,

    /// PEM file with the client certificate
    #[arg(long, value_name = "FILE", requires_all = ["address", "client_key"])]
    pub(in crate::args) client_certificate: Option<PathBuf>,

    /// PEM file with the key of the client certificate
    #[arg(long, value_name = "FILE", requires = "client_certificate")]
    pub(in crate::args) client_key: Option<PathBuf>,

    /// Test the server of a kubeconfig [default FILE: KUBECONFIG or ~/.kube/config]; the options
    /// for credentials replace its settings
    #[arg(long, value_name = "FILE", num_args = 0..=1, group = "address")]
    #[expect(clippy::option_option, reason = "clap's type for an option with an optional value")]
    pub(in crate::args) kubeconfig: Option<Option<PathBuf>>,

    /// Context of the kubeconfig [default: its current context]
    #[arg(long, value_name = "NAME", requires = "kubeconfig")]
    pub(in crate::args) context: Option<String>,

    /// User to impersonate
    #[arg(long = "as", value_name = "USER", requires = "address")]
    pub(in crate::args) act_as: Option<String>,

    /// Bearer token of a user without permissions, for the cases about 403 Forbidden
    #[arg(long, value_name = "TOKEN", requires = "address")]
    pub(in crate::args) second_token: Option<String>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Pods")]
pub(in crate::args) struct Pods {
    /// Register a node for the run, for targets without nodes; it runs only the pods of the run
    #[arg(long, requires = "address", conflicts_with_all = ["read_only", "dry_run"])]
    pub(in crate::args) with_node: bool,

    /// Address of this machine at which the target reaches the node [default: the source address of
    /// connections to the target]
    #[arg(long, value_name = "IP", requires = "with_node")]
    pub(in crate::args) node_address: Option<IpAddr>,

    /// PEM file with the authority of the target's client certificate for nodes; the node rejects
    /// other clients
    #[arg(long, value_name = "FILE", requires = "with_node")]
    pub(in crate::args) node_client_ca: Option<PathBuf>,

    /// Image of the pods for targets with real nodes: busybox, or an image with its programs
    #[arg(long, value_name = "IMAGE")]
    pub(in crate::args) pod_image: Option<String>,
}

/// The selection of cases that several commands share.
#[derive(Debug, Args)]
#[command(next_help_heading = "Selection")]
pub(in crate::args) struct Cases {
    /// Include only cases that match, for example `watch/*` or `create/*@secrets.v1`
    #[arg(long, value_name = "GLOB", num_args = 1..)]
    pub(in crate::args) only: Vec<Pattern>,

    /// Exclude cases that match
    #[arg(long, value_name = "GLOB", num_args = 1..)]
    pub(in crate::args) skip: Vec<Pattern>,

    /// Include only cases of these areas, the first part of their ids
    #[arg(long, value_name = "AREA", num_args = 1..)]
    pub(in crate::args) area: Vec<String>,

    /// Include only cases of these profiles
    #[arg(long, value_name = "PROFILE", num_args = 1.., value_parser = profile())]
    pub(in crate::args) profile: Vec<Profile>,

    /// Include only cases of this level or a stronger one
    #[arg(long, value_enum)]
    pub(in crate::args) level: Option<Level>,

    /// Judge by this edition of the conventions
    #[arg(long, value_enum, default_value_t)]
    pub(in crate::args) edition: Edition,

    /// Add a directory of case files
    #[arg(long = "cases", value_name = "DIR")]
    pub(in crate::args) directories: Vec<PathBuf>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Selection")]
pub(in crate::args) struct Selection {
    /// Fail on deviations: judge by the strict text of the conventions
    #[arg(long)]
    pub(in crate::args) letter: bool,

    /// Add a resource to the subjects, for example `deployments.v1.apps` or `apps/v1/deployments`;
    /// FILE contains an object that the server accepts
    #[arg(long, value_name = "RESOURCE.VERSION[.GROUP][=FILE]", num_args = 1..)]
    pub(in crate::args) subject: Vec<String>,

    /// Run only part M of N
    #[arg(long, value_name = "M/N")]
    pub(in crate::args) shard: Option<Shard>,

    /// Run only the results that failed in this JSON report
    #[arg(long, value_name = "REPORT")]
    pub(in crate::args) rerun: Option<PathBuf>,

    /// Accept the failures in this list
    #[arg(long, value_name = "FILE")]
    pub(in crate::args) known_failures: Option<PathBuf>,

    /// Fail if the target lacks one of these capabilities
    #[arg(long, value_name = "CAPABILITY", num_args = 1.., value_parser = needed_capability())]
    pub(in crate::args) require: Vec<Capability>,

    /// Fail if the target lacks one of these profiles: most of its cases are skipped
    #[arg(long, value_name = "PROFILE", num_args = 1.., value_parser = profile())]
    pub(in crate::args) require_profile: Vec<Profile>,

    /// Add failures to the list of known failures, and remove entries that pass
    #[arg(long, requires = "known_failures")]
    pub(in crate::args) update_known_failures: bool,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Safety")]
pub(in crate::args) struct Safety {
    /// Write only to this existing namespace
    #[arg(long, value_name = "NAMESPACE")]
    pub(in crate::args) namespace: Option<String>,

    /// Run only cases that write nothing
    #[arg(long)]
    pub(in crate::args) read_only: bool,

    /// Leave the objects of failed cases in place, and print the command that removes them
    #[arg(long, requires = "address", conflicts_with_all = ["read_only", "dry_run"])]
    pub(in crate::args) keep: bool,

    /// Limit the requests per second
    #[arg(long, value_name = "N", value_parser = positive::<u32>)]
    pub(in crate::args) max_rps: Option<u32>,

    /// Print the cases, the skips with their reasons, and the objects to create; send only reads
    #[arg(long)]
    pub(in crate::args) dry_run: bool,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Execution")]
pub(in crate::args) struct Execution {
    /// Number of concurrent cases; as many more may wait for the server's clock
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = positive::<usize>)]
    pub(in crate::args) jobs: usize,

    /// Time limit of the run, for example 90s or 5m; unfinished cases end in errors
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(in crate::args) timeout: Option<Duration>,

    /// Time limit of each case
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = duration)]
    pub(in crate::args) case_timeout: Duration,

    /// Memory for responses in MiB; larger responses end in errors
    #[arg(long, value_name = "MIB", default_value_t = 96, value_parser = positive::<u32>)]
    pub(in crate::args) response_memory: u32,

    /// Seed for the order of the cases and for generated names [default: random]
    #[arg(long, value_name = "N", value_parser = number::<u64>)]
    pub(in crate::args) seed: Option<u64>,

    /// Multiply the work of the cases about load; 10 means 10000 objects and 500 watchers
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = load)]
    pub(in crate::args) load: u32,

    /// Run each case this often
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = positive::<u32>)]
    pub(in crate::args) repeat: u32,

    /// Skip the remaining cases after this many results that fail the run
    #[arg(long, value_name = "N", value_parser = positive::<usize>)]
    pub(in crate::args) max_fail: Option<usize>,

    /// Fail on warnings and deviations
    #[arg(long)]
    pub(in crate::args) strict: bool,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Reports")]
pub(in crate::args) struct Reports {
    #[command(flatten)]
    pub(in crate::args) files: ReportFiles,

    /// Print annotations for GitHub Actions
    #[arg(long)]
    pub(in crate::args) github: bool,

    /// Write the requests and responses of each case to a file in this directory
    #[arg(long, value_name = "DIR")]
    pub(in crate::args) trace: Option<PathBuf>,

    /// Print only the summary
    #[arg(long, short, conflicts_with = "verbose")]
    pub(in crate::args) quiet: bool,

    /// Print every result; given twice, every exchange too
    #[arg(long, short, action = clap::ArgAction::Count)]
    pub(in crate::args) verbose: u8,

    /// Print nothing during the run
    #[arg(long)]
    pub(in crate::args) no_progress: bool,
}
