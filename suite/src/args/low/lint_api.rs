//! Arguments of `kubeproof lint-api`.

use std::path::PathBuf;

use clap::Args;

use super::{Cases, RenderOutput};

#[derive(Debug, Args)]
#[command(
    override_usage = "kubeproof lint-api <FILE>... [OPTIONS]",
    after_help = EXIT_CODES
)]
pub(in crate::args) struct LintApi {
    /// CRDs or OpenAPI v3 documents in YAML or JSON; a directory includes all its YAML and JSON
    /// files; - reads standard input
    #[arg(required = true, value_name = "FILE")]
    pub(in crate::args) files: Vec<PathBuf>,

    #[command(flatten)]
    pub(in crate::args) cases: Cases,

    #[command(flatten)]
    pub(in crate::args) judging: Judging,

    #[command(flatten)]
    pub(in crate::args) output: RenderOutput,

    /// Print annotations for GitHub Actions at the lines of the files
    #[arg(long, help_heading = "Reports")]
    pub(in crate::args) github: bool,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Selection")]
pub(in crate::args) struct Judging {
    /// Fail on deviations: judge by the strict text of the conventions
    #[arg(long)]
    pub(in crate::args) letter: bool,

    /// Accept the failures in this list
    #[arg(long, value_name = "FILE")]
    pub(in crate::args) known_failures: Option<PathBuf>,

    /// Add failures to the list of known failures, and remove entries that pass
    #[arg(long, requires = "known_failures")]
    pub(in crate::args) update_known_failures: bool,

    /// Fail on warnings and deviations
    #[arg(long)]
    pub(in crate::args) strict: bool,
}

const EXIT_CODES: &str = "\
Exit codes:
  0  no MUST rule is broken
  1  failures
  2  usage error, or a file that is unreadable or has nothing to check
  4  nothing was checked: a pattern matches nothing, or a directory has nothing to check";
