//! Arguments of `kubeproof report`, and report files of other commands.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Debug, Args)]
pub(in crate::args) struct Report {
    #[command(subcommand)]
    pub(in crate::args) command: ReportCommand,
}

#[derive(Debug, Subcommand)]
pub(in crate::args) enum ReportCommand {
    /// Merge the reports of shards; exit with the code of the whole run
    Merge(Merge),
    /// Render a report in other formats
    Render(Render),
    /// Show the changes between two runs; exit with 1 if a result is worse
    Diff(Diff),
    /// Compare the reports of several servers or versions side by side
    Matrix(Matrix),
    /// Check the counts, verdicts and ids of a report; exit with 1 if one is wrong
    Verify(Verify),
}

#[derive(Debug, Args)]
pub(in crate::args) struct Merge {
    /// JSON reports of runs with the same cases, for example of --shard
    #[arg(required = true, value_name = "REPORT")]
    pub(in crate::args) reports: Vec<PathBuf>,

    /// Fail on warnings and deviations
    #[arg(long)]
    pub(in crate::args) strict: bool,

    #[command(flatten)]
    pub(in crate::args) output: RenderOutput,
}

#[derive(Debug, Args)]
pub(in crate::args) struct Render {
    /// JSON report
    pub(in crate::args) report: PathBuf,
    #[command(flatten)]
    pub(in crate::args) output: RenderOutput,
}

#[derive(Debug, Args)]
pub(in crate::args) struct Next {
    /// JSON report of a run
    pub(in crate::args) report: PathBuf,

    /// Print no example exchange
    #[arg(long)]
    pub(in crate::args) no_example: bool,
}

#[derive(Debug, Args)]
pub(in crate::args) struct Diff {
    /// JSON report of the earlier run
    pub(in crate::args) before: PathBuf,
    /// JSON report of the later run
    pub(in crate::args) after: PathBuf,
}

#[derive(Debug, Args)]
pub(in crate::args) struct Matrix {
    /// JSON reports, one for each column
    #[arg(required = true, value_name = "REPORT", num_args = 1..)]
    pub(in crate::args) reports: Vec<PathBuf>,

    /// Write an HTML page
    #[arg(long, value_name = "FILE")]
    pub(in crate::args) html: Option<PathBuf>,

    /// Write a Markdown page
    #[arg(long, value_name = "FILE")]
    pub(in crate::args) markdown: Option<PathBuf>,

    /// Print cases that pass in all reports too
    #[arg(long, short)]
    pub(in crate::args) verbose: bool,
}

#[derive(Debug, Args)]
pub(in crate::args) struct Verify {
    /// JSON report
    pub(in crate::args) report: PathBuf,

    /// Add a directory of case files that the run used
    #[arg(long = "cases", value_name = "DIR")]
    pub(in crate::args) directories: Vec<PathBuf>,
}

#[derive(Debug, Args)]
pub(in crate::args) struct RenderOutput {
    #[command(flatten)]
    pub(in crate::args) files: ReportFiles,

    /// Print only the summary
    #[arg(long, short, conflicts_with = "verbose")]
    pub(in crate::args) quiet: bool,

    /// Print every result
    #[arg(long, short, action = clap::ArgAction::Count)]
    pub(in crate::args) verbose: u8,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Reports")]
pub(in crate::args) struct ReportFiles {
    /// Write a JUnit report
    #[arg(long, value_name = "FILE")]
    pub(in crate::args) junit: Option<PathBuf>,

    /// Write a JSON report
    #[arg(long, value_name = "FILE")]
    pub(in crate::args) json: Option<PathBuf>,

    /// Write an HTML page
    #[arg(long, value_name = "FILE")]
    pub(in crate::args) html: Option<PathBuf>,

    /// Write a Markdown summary
    #[arg(long, value_name = "FILE")]
    pub(in crate::args) markdown: Option<PathBuf>,

    /// Write a SARIF report
    #[arg(long, value_name = "FILE")]
    pub(in crate::args) sarif: Option<PathBuf>,

    /// Write a TAP report
    #[arg(long, value_name = "FILE")]
    pub(in crate::args) tap: Option<PathBuf>,
}
