//! What was typed. The help texts are the comments here.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use kubeproof_reference_server::Cut;
use kubeproof_reports::console::Verbosity;

mod run;

pub(crate) use run::*;

/// Tests whether a server that speaks the Kubernetes API keeps the Kubernetes API Conventions
#[derive(Debug, Parser)]
#[command(name = "kubeproof", version, max_term_width = 100, subcommand_required = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,

    /// Colours in the output
    #[arg(long, global = true, value_enum, default_value_t, value_name = "WHEN")]
    pub(crate) color: Color,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Tests a server; without a target, the bundled one
    Run(Box<Run>),
    /// Removes what earlier runs left behind because they were killed
    Clean(Clean),
    /// Lists the cases
    List(List),
    /// Tells all about a case or a requirement
    Explain(Explain),
    /// Shows which requirements have cases, per section and level
    Coverage(Coverage),
    /// Checks a directory of case files
    Lint(Lint),
    /// Holds schemas in files against the design rules, without a server
    LintApi(LintApi),
    /// Runs the reference server until it is interrupted
    Serve(Serve),
    /// Proves the suite itself: wrong servers are caught, right ones are not
    SelfTest(SelfTest),
    /// Renders, merges or compares the JSON reports of earlier runs
    Report(Report),
    /// Prints the JSON Schema of a kind of file
    Schema(Schema),
    /// Prints the completions for a shell
    Completions(Completions),
    /// Prints a manual page
    Man(Man),
}

/// When to use colours.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, ValueEnum)]
pub(crate) enum Color {
    /// On a terminal, unless `NO_COLOR` is set
    #[default]
    Auto,
    /// Everywhere
    Always,
    /// Nowhere
    Never,
}

/// How strongly the conventions ask for something.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Level {
    /// A MUST: what breaks it fails
    Must,
    /// A SHOULD: what breaks it is a warning
    Should,
    /// A MAY: what breaks it is a warning
    May,
}

/// A state of the conventions.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(crate) enum Edition {
    /// Of Kubernetes 1.0
    #[value(name = "v1.0")]
    V1_0,
    /// Of Kubernetes 1.3
    #[value(name = "v1.3")]
    V1_3,
    /// Of March 2022
    #[value(name = "2022")]
    Y2022,
    /// Of 2024
    #[value(name = "2024")]
    Y2024,
    /// Of today
    #[default]
    #[value(name = "head")]
    Head,
}

#[derive(Debug, Args)]
pub(crate) struct List {
    #[command(flatten)]
    pub(crate) cases: Cases,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Explain {
    /// Id of a case, as `watch/resumes-from-every-version`, or of a requirement
    pub(crate) id: String,

    /// Show no example; without this the case is run against the bundled server
    #[arg(long)]
    pub(crate) no_example: bool,

    /// Directory of case files to add
    #[arg(long = "cases", value_name = "DIR")]
    pub(crate) directories: Vec<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Coverage {
    /// Only what this state of the conventions asks for
    #[arg(long, value_enum)]
    pub(crate) edition: Option<Edition>,

    /// Directory of case files to add
    #[arg(long = "cases", value_name = "DIR")]
    pub(crate) directories: Vec<PathBuf>,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Lint {
    /// Directory of case files, laid out as AREA/NAME.yaml
    pub(crate) directory: PathBuf,
}

#[derive(Debug, Args)]
#[command(
    override_usage = "kubeproof lint-api <FILE>... [OPTIONS]",
    after_help = LINT_EXIT_CODES
)]
pub(crate) struct LintApi {
    /// Custom resource definitions or OpenAPI v3 documents, in YAML or JSON; of a directory, all in it; - is standard input
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) cases: Cases,

    #[command(flatten)]
    pub(crate) judging: LintJudging,

    #[command(flatten)]
    pub(crate) output: RenderOutput,

    /// Print annotations for GitHub Actions, at the lines of the files
    #[arg(long, help_heading = "Reports")]
    pub(crate) github: bool,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Selection")]
pub(crate) struct LintJudging {
    /// Judge by the text alone: what Kubernetes keeps by history is a failure
    #[arg(long)]
    pub(crate) letter: bool,

    /// List of failures that do not fail the check
    #[arg(long, value_name = "FILE")]
    pub(crate) known_failures: Option<PathBuf>,

    /// Write what fails into the list of known failures, and remove what passes
    #[arg(long, requires = "known_failures")]
    pub(crate) update_known_failures: bool,

    /// Warnings and deviations fail the check too
    #[arg(long)]
    pub(crate) strict: bool,
}

const LINT_EXIT_CODES: &str = "\
Exit codes:
  0  no rule is broken that is a MUST
  1  failures
  2  the command line is wrong, or a file cannot be read or holds nothing to check
  4  nothing was checked: a pattern matches nothing, or a directory holds nothing to check";

#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own on the command line")]
pub(crate) struct Serve {
    /// Address to listen on; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    pub(crate) listen: SocketAddr,

    /// Serve TLS, with certificates made for this run
    #[arg(long)]
    pub(crate) tls: bool,

    /// Bearer token of the administrator [default: random]
    #[arg(long, value_name = "TOKEN")]
    pub(crate) token: Option<String>,

    /// Bearer token of a user without rights [default: there is none]
    #[arg(long, value_name = "TOKEN")]
    pub(crate) user_token: Option<String>,

    /// Bearer token of a user who may read everything and change nothing [default: there is none]
    #[arg(long, value_name = "TOKEN")]
    pub(crate) viewer_token: Option<String>,

    /// Deliberate bugs to switch on
    #[arg(long, value_name = "NAME", num_args = 1..)]
    pub(crate) fault: Vec<String>,

    /// List the deliberate bugs, and exit
    #[arg(long)]
    pub(crate) list_faults: bool,

    /// Differ from the usual in lawful ways that this number chooses, the same ones each time
    #[arg(long, value_name = "SEED")]
    pub(crate) vary: Option<u64>,

    /// Lawful differences to switch on by name
    #[arg(long, value_name = "NAME", num_args = 1..)]
    pub(crate) variation: Vec<String>,

    /// List the lawful differences, and exit
    #[arg(long)]
    pub(crate) list_variations: bool,

    /// Events to keep per resource; older versions are answered 410 Gone
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = positive)]
    pub(crate) history: usize,

    /// Capabilities to be without, lawfully: nothing that the server says promises them
    #[arg(long, value_name = "CAPABILITY", num_args = 1.., value_parser = cut())]
    pub(crate) without: Vec<Cut>,

    /// Serve one namespaced resource in one group, and nothing else; the same as --without other-resources
    #[arg(long)]
    pub(crate) only_resource: bool,

    /// Write a kubeconfig for the administrator to this file, which only its owner may read
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig_out: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Clean {
    #[command(flatten)]
    pub(crate) target: Target,

    /// Look into this namespace too, for runs that used it with --namespace
    #[arg(long, value_name = "NAME")]
    pub(crate) namespace: Option<String>,

    /// Only what is at least so old: a run that goes on leaves nothing behind yet
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = age)]
    pub(crate) older_than: Duration,

    /// Print what would be removed, and remove nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// What the suite is held against.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum Part {
    /// Servers with one deliberate bug each, which the cases that name it must catch
    Faults,
    /// Servers that are right and differ, of which no case may fail one
    Variations,
    /// Servers that are right and can do less, of which cases may skip what they lack and must fail none
    Cuts,
}

#[derive(Debug, Args)]
pub(crate) struct SelfTest {
    /// What to hold the suite against [default: everything]
    #[arg(value_enum, value_name = "PART")]
    pub(crate) parts: Vec<Part>,

    /// Only these deliberate bugs
    #[arg(long, value_name = "NAME", num_args = 1..)]
    pub(crate) fault: Vec<String>,

    /// Run every case against every deliberate bug, not those alone that name it; takes minutes
    #[arg(long)]
    pub(crate) full: bool,

    /// How many differing servers
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) seeds: u64,

    /// Only the differing servers of these seeds
    #[arg(long, value_name = "SEED", num_args = 1..)]
    pub(crate) seed: Vec<u64>,

    /// Only the servers without these capabilities; `writes` is the one that the run may only read
    #[arg(long, value_name = "NAME", num_args = 1..)]
    pub(crate) cut: Vec<String>,

    /// Tell the faults of each case too
    #[arg(long)]
    pub(crate) by_case: bool,

    #[command(flatten)]
    pub(crate) cases: Cases,
}

#[derive(Debug, Args)]
pub(crate) struct Report {
    #[command(subcommand)]
    pub(crate) command: ReportCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ReportCommand {
    /// Puts the reports of the parts of a run together
    Merge(Merge),
    /// Renders a report in other formats
    Render(Render),
    /// Shows what changed from one run to another; exits with 1 when something is worse
    Diff(Diff),
}

#[derive(Debug, Args)]
pub(crate) struct Merge {
    /// JSON reports of runs with the same cases, as those of --shard
    #[arg(required = true, value_name = "REPORT")]
    pub(crate) reports: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) output: RenderOutput,
}

#[derive(Debug, Args)]
pub(crate) struct Render {
    /// A JSON report
    pub(crate) report: PathBuf,
    #[command(flatten)]
    pub(crate) output: RenderOutput,
}

#[derive(Debug, Args)]
pub(crate) struct RenderOutput {
    #[command(flatten)]
    pub(crate) files: ReportFiles,

    /// Print the summary alone
    #[arg(long, short, conflicts_with = "verbose")]
    pub(crate) quiet: bool,

    /// Print every result
    #[arg(long, short, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
}

#[derive(Debug, Args)]
pub(crate) struct Diff {
    /// JSON report of the earlier run
    pub(crate) before: PathBuf,
    /// JSON report of the later run
    pub(crate) after: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct Schema {
    /// The kind of file
    #[arg(value_enum, default_value_t)]
    pub(crate) of: SchemaOf,
}

/// Kinds of files with a JSON Schema.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(crate) enum SchemaOf {
    /// Case files
    #[default]
    Case,
    /// Definitions of subjects
    Subject,
    /// The ledger of requirements
    Requirements,
    /// What each deliberate bug of the bundled server breaks
    Faults,
    /// Where Kubernetes breaks design rules by history
    SchemaHistory,
    /// JSON reports
    Report,
}

#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// The shell
    #[arg(value_enum)]
    pub(crate) shell: Shell,
}

#[derive(Debug, Args)]
pub(crate) struct Man {
    /// The command to print the page of, instead of that of kubeproof itself
    pub(crate) command: Option<String>,
}

/// How much the console tells.
pub(crate) fn verbosity(quiet: bool, verbose: u8) -> Verbosity {
    match verbose {
        _ if quiet => Verbosity::Quiet,
        0 => Verbosity::Normal,
        1 => Verbosity::Passes,
        _ => Verbosity::Exchanges,
    }
}

/// As `90s`, `5m`, `1m 30s`, `500ms`.
fn duration(text: &str) -> Result<Duration, String> {
    let duration: jiff::SignedDuration =
        text.parse().map_err(|_| "expected a number with its unit, as 500ms, 90s or 5m".to_owned())?;
    match Duration::try_from(duration) {
        Ok(duration) if !duration.is_zero() => Ok(duration),
        _ => Err("expected more than no time".to_owned()),
    }
}

/// A duration that may be no time at all.
fn age(text: &str) -> Result<Duration, String> {
    if text.trim() == "0" { Ok(Duration::ZERO) } else { duration(text) }
}

/// The name of a capability that the bundled server can be without.
fn cut() -> impl TypedValueParser<Value = Cut> {
    let names =
        Cut::all().map(|cut| PossibleValue::new(cut.name()).help(cut.summary().trim_end_matches('.')));
    PossibleValuesParser::new(names)
        .try_map(|name| Cut::from_name(&name).ok_or_else(|| format!("no capability is called {name}")))
}

fn positive(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|n| *n > 0).ok_or_else(|| "expected a number from 1".to_owned())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn durations_have_units() {
        assert_eq!(duration("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("1m 30s"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        for wrong in ["90", "", "0s", "-5s", "soon"] {
            assert!(duration(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn the_kubeconfig_needs_no_file() {
        let parse = |line: &str| Cli::try_parse_from(line.split(' ')).expect("parsed");
        let Command::Run(run) = parse("kubeproof run --kubeconfig --context staging").command else {
            panic!("expected run")
        };
        assert_eq!(run.target.kubeconfig, Some(None));
        assert_eq!(run.target.context.as_deref(), Some("staging"));
        let Command::Run(run) = parse("kubeproof run --kubeconfig a/b").command else {
            panic!("expected run")
        };
        assert_eq!(run.target.kubeconfig, Some(Some("a/b".into())));
    }
}
