//! The syntax of the command line. The doc comments here are the help texts.

mod catalogue;
mod clean;
mod envtest;
mod explore;
mod lint_api;
mod oracle;
mod report;
mod run;
mod self_test;
mod serve;
mod stress;
pub(in crate::args) mod values;

pub(super) use self::catalogue::{CasePages, Coverage, Explain, Lint, List, Schema, SchemaOf};
pub(super) use self::clean::Clean;
pub(super) use self::envtest::{EnvtestAssets, Launcher};
pub(super) use self::explore::Explore;
pub(super) use self::lint_api::LintApi;
pub(super) use self::oracle::Oracle;
pub(super) use self::report::{Matrix, Next, RenderOutput, Report, ReportCommand, ReportFiles};
pub(super) use self::run::{Cases, Reports, Run, Target};
pub(super) use self::self_test::{Part, SelfTest};
pub(super) use self::serve::{Audit, AuditMode, Controllers, Etcd, Serve, ServiceAccounts};
pub(super) use self::stress::{Scope, Stress};
pub(super) use self::values::{Color, Edition, Level};

use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;

/// Check whether an API server follows the Kubernetes API Conventions
#[derive(Debug, Parser)]
#[command(name = "kubeproof", version, max_term_width = 100, subcommand_required = true)]
pub(super) struct Cli {
    #[command(subcommand)]
    pub(super) command: Command,

    /// When to use colours
    #[arg(long, global = true, value_enum, default_value_t, value_name = "WHEN")]
    pub(super) color: Color,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Run the conformance cases against a server; without a target, against the bundled one
    Run(Box<Run>),
    /// Record what concurrent clients and watches observe, and check the history
    Stress(Box<Stress>),
    /// Generate objects from schemas, and check properties of every resource
    Explore(Box<Explore>),
    /// Remove objects that killed runs left behind
    Clean(Clean),
    /// List the cases
    List(List),
    /// Explain a case, a requirement, a profile, a level, a capability, a fault or a variation
    Explain(Explain),
    /// Show which requirements have cases, by section and level
    Coverage(Coverage),
    /// Write a Markdown page for each area of cases, with examples
    CasePages(CasePages),
    /// Check a directory of case files
    Lint(Lint),
    /// Check CRD and OpenAPI files against the API design rules
    LintApi(LintApi),
    /// Run the reference server until it is interrupted
    Serve(Box<Serve>),
    /// Write the programs that envtest starts, and print the value of `KUBEBUILDER_ASSETS`
    EnvtestAssets(EnvtestAssets),
    /// Run the reference server with the flags of kube-apiserver, until it is interrupted
    #[command(disable_help_flag = true)]
    KubeApiserver(Launcher),
    /// Serve the health endpoint of etcd with the flags of etcd, until it is interrupted
    #[command(disable_help_flag = true)]
    Etcd(Launcher),
    /// Test the suite itself against servers with known faults, variations and missing capabilities
    SelfTest(SelfTest),
    /// Render, merge or compare JSON reports
    Report(Report),
    /// Explain what to implement or fix next, from a JSON report
    Next(Next),
    /// Print the JSON Schema of a kind of file
    Schema(Schema),
    /// Print the completions for a shell
    #[command(alias = "completion", after_help = INSTALL_COMPLETIONS)]
    Completions(Completions),
    /// Print a manual page
    Man(Man),
}

const INSTALL_COMPLETIONS: &str = "\
Install the completions, and start a new shell:
  bash: kubeproof completions bash > ~/.local/share/bash-completion/completions/kubeproof
  zsh:  kubeproof completions zsh > \"${fpath[1]}/_kubeproof\"
  fish: kubeproof completions fish > ~/.config/fish/completions/kubeproof.fish";

#[derive(Debug, Args)]
pub(super) struct Completions {
    /// The shell
    #[arg(value_enum)]
    pub(super) shell: Shell,
}

#[derive(Debug, Args)]
pub(super) struct Man {
    /// Command to document [default: kubeproof itself]
    pub(super) command: Option<String>,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_definition_is_valid() {
        Cli::command().debug_assert();
    }

    #[test]
    fn the_kubeconfig_needs_no_file() {
        let run = |line: &str| {
            let cli = Cli::try_parse_from(line.split(' ')).expect("a valid command line");
            let Command::Run(run) = cli.command else { panic!("expected run") };
            run
        };
        let default = run("kubeproof run --kubeconfig --context staging");
        assert_eq!(default.target.kubeconfig, Some(None));
        assert_eq!(default.target.context.as_deref(), Some("staging"));
        let named = run("kubeproof run --kubeconfig a/b");
        assert_eq!(named.target.kubeconfig, Some(Some("a/b".into())));
    }

    /// Other programs rely on these names.
    #[test]
    fn every_option_of_the_contract_is_accepted() {
        for line in [
            "run --server http://a --token t --certificate-authority f --as u --second-token s",
            "run --server http://a --token-file f --insecure-skip-tls-verify",
            "run --server http://a --client-certificate f --client-key f",
            "run --kubeconfig f --context c",
            "run --only a/* b/* --skip c/* --area watch --level should --edition v1.3 --letter",
            "run --subject apps/v1/deployments=f --shard 1/2 --rerun r.json",
            "run --known-failures f --update-known-failures",
            "run --namespace n --read-only --max-rps 5 --dry-run",
            "run --jobs 2 --timeout 5m --case-timeout 10s --seed 1 --repeat 2",
            "run --max-fail 3 --strict",
            "run --junit f --json f --html f --markdown f --sarif f --tap f --github --trace d",
            "run -v --color never --no-progress",
            "run --profile crud lists",
            "run -q",
            "run --oracle https://b --oracle-token t --oracle-certificate-authority f",
            "list",
            "explain get/x",
            "coverage",
            "case-pages dir",
            "lint cases",
            "lint-api a.yaml b.yaml",
            "serve --listen 127.0.0.1:0 --tls --token t --user-token u --fault a b",
            "serve --tls-san api.example,10.1.2.3 --tls-san fd00::1",
            "serve --list-faults",
            "serve --vary 7 --kubeconfig-out f",
            "envtest-assets dir --kubectl f",
            "kube-apiserver --secure-port 1 --help",
            "etcd --data-dir=d",
            "self-test",
            "report diff a b",
            "next a --no-example",
            "clean --kubeconfig",
            "schema",
            "completions bash",
            "man run",
        ] {
            let line = format!("kubeproof {line}");
            if let Err(error) = Cli::try_parse_from(line.split(' ')) {
                panic!("{line}: {error}");
            }
        }
    }
}
