//! The resolved command line: the values that each command uses.
//!
//! Resolving reads the files that the options name, and reports unknown names. It opens no
//! connection.

mod catalogue;
mod credentials;
mod envtest;
mod explore;
mod lint_api;
mod output;
mod run;
mod self_test;
mod serve;
mod stress;
mod target;

pub(crate) use self::catalogue::{
    CasePages, CaseSelection, CatalogueSource, Coverage, Explain, Lint, List,
};
pub(crate) use self::envtest::{ApiserverOptions, EnvtestAssets, Etcd, EtcdOptions, KubeApiserver};
pub(crate) use self::explore::Explore;
pub(crate) use self::lint_api::LintApi;
pub(crate) use self::output::{
    MatrixOptions, Next, Progress, RenderOutput, Report, ReportFiles, RunReports,
};
pub(crate) use self::run::{NodeOptions, Run};
pub(crate) use self::self_test::{FaultOptions, SelfTest};
pub(crate) use self::serve::{Serve, ServerOptions};
pub(crate) use self::stress::Stress;
pub(crate) use self::target::{Clean, Target};

use clap_complete::Shell;

use super::low;
use crate::error::Error;

/// What the user asked for.
pub(crate) enum Command {
    Run(Box<Run>),
    Stress(Box<Stress>),
    Explore(Box<Explore>),
    Clean(Box<Clean>),
    List(List),
    Explain(Explain),
    Coverage(Coverage),
    CasePages(CasePages),
    Lint(Lint),
    LintApi(Box<LintApi>),
    Serve(Serve),
    EnvtestAssets(EnvtestAssets),
    KubeApiserver(KubeApiserver),
    Etcd(Etcd),
    SelfTest(Box<SelfTest>),
    Report(Report),
    Next(Next),
    Schema(FileKind),
    Completions(Shell),
    Man(Option<String>),
}

/// Kinds of files with a JSON Schema.
#[derive(Clone, Copy, Debug)]
pub(crate) enum FileKind {
    Case,
    Fragment,
    Subject,
    Requirements,
    Faults,
    Profiles,
    SchemaHistory,
    Report,
}

impl Command {
    pub(super) fn resolve(cli: low::Cli, command_line: &str) -> Result<Self, Error> {
        let color = cli.color;
        Ok(match cli.command {
            low::Command::Run(run) => Self::Run(Box::new(Run::resolve(&run, color, command_line)?)),
            low::Command::Stress(stress) => Self::Stress(Box::new(Stress::resolve(*stress)?)),
            low::Command::Explore(explore) => Self::Explore(Box::new(Explore::resolve(*explore)?)),
            low::Command::Clean(clean) => Self::Clean(Box::new(Clean::resolve(clean)?)),
            low::Command::List(list) => Self::List(List::resolve(&list)),
            low::Command::Explain(explain) => Self::Explain(Explain::resolve(explain)),
            low::Command::Coverage(coverage) => Self::Coverage(Coverage::resolve(coverage)),
            low::Command::CasePages(pages) => Self::CasePages(CasePages::resolve(pages)),
            low::Command::Lint(lint) => Self::Lint(Lint::resolve(lint, color)),
            low::Command::LintApi(lint) => {
                Self::LintApi(Box::new(LintApi::resolve(lint, color, command_line)?))
            }
            low::Command::Serve(serve) => Self::Serve(Serve::resolve(*serve)?),
            low::Command::EnvtestAssets(assets) => {
                Self::EnvtestAssets(EnvtestAssets::resolve(assets))
            }
            low::Command::KubeApiserver(launcher) => {
                Self::KubeApiserver(KubeApiserver::resolve(&launcher)?)
            }
            low::Command::Etcd(launcher) => Self::Etcd(Etcd::resolve(&launcher)?),
            low::Command::SelfTest(test) => Self::SelfTest(Box::new(SelfTest::resolve(test)?)),
            low::Command::Report(report) => Self::Report(Report::resolve(report, color)),
            low::Command::Next(next) => Self::Next(Next::resolve(next, color)),
            low::Command::Schema(schema) => Self::Schema(schema.of.into()),
            low::Command::Completions(completions) => Self::Completions(completions.shell),
            low::Command::Man(man) => Self::Man(man.command),
        })
    }
}

impl From<low::SchemaOf> for FileKind {
    fn from(of: low::SchemaOf) -> Self {
        match of {
            low::SchemaOf::Case => Self::Case,
            low::SchemaOf::Fragment => Self::Fragment,
            low::SchemaOf::Subject => Self::Subject,
            low::SchemaOf::Requirements => Self::Requirements,
            low::SchemaOf::Faults => Self::Faults,
            low::SchemaOf::Profiles => Self::Profiles,
            low::SchemaOf::SchemaHistory => Self::SchemaHistory,
            low::SchemaOf::Report => Self::Report,
        }
    }
}
