//! The errors of commands, and their exit codes.

use std::io;
use std::path::PathBuf;

use kubeproof::self_test::SelfTestError;
use kubeproof_cases::LoadError;
use kubeproof_cases::case::Edition;
use kubeproof_harness::generated::GeneratedError;
use kubeproof_harness::plan::{
    KnownFailuresError, PlanError, SelectionError, SubjectError, nearest,
};
use kubeproof_harness::run::leftovers::FindError;
use kubeproof_harness::schema::ManifestError;
use kubeproof_harness::target::TargetError;
use kubeproof_reference_server::kubelet::EndpointError;
use kubeproof_reference_server::{AdmissionPluginError, SnapshotError, StartError};
use kubeproof_reports::ReportError;
use kubeproof_reports::compare::MergeError;
use kubeproof_reports::formats::LoadError as ReportLoadError;

use crate::exit_code::Exit;

#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error(transparent)]
    Selection(#[from] SelectionError),
    #[error(transparent)]
    Subject(#[from] SubjectError),
    #[error(transparent)]
    KnownFailures(#[from] KnownFailuresError),
    #[error(transparent)]
    Target(#[from] TargetError),
    /// Objects of earlier runs cannot be found.
    #[error(transparent)]
    Leftovers(FindError),
    /// The namespace of `--namespace` does not exist.
    #[error(transparent)]
    NoNamespace(PlanError),
    #[error("{}", describe_invalid_cases(.0))]
    Cases(#[from] LoadError),
    #[error(transparent)]
    Server(#[from] StartError),
    /// The snapshot of a server could not be written.
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    #[error(transparent)]
    Report(#[from] ReportError),
    #[error(transparent)]
    ReportLoad(#[from] ReportLoadError),
    #[error(transparent)]
    Merge(#[from] MergeError),
    #[error("no {what} has the name {name:?}; {}", suggestion(nearest.as_deref(), list))]
    Unknown { what: &'static str, name: String, nearest: Option<String>, list: String },
    #[error("{0:?} is an area; `kubeproof list --area {0}` prints its cases")]
    Area(String),
    #[error("{}: {reason}", path.display())]
    Config { path: PathBuf, reason: String },
    #[error(
        "the report of --rerun is about {0}, but the run has no target; give --server or \
         --kubeconfig"
    )]
    RerunTarget(String),
    #[error("{0} are equal; each user needs a token of its own")]
    EqualTokens(String),
    #[error("{name} is {value:?}; expected true or false")]
    Variable { name: String, value: String },
    #[error("--{name} is {value:?}: {reason}")]
    Flag { name: &'static str, value: String, reason: String },
    #[error("cannot select admission plugins: {0}")]
    AdmissionPlugins(#[from] AdmissionPluginError),
    #[error("cannot listen on {address}: {source}; choose another address")]
    Listen { address: String, source: io::Error },
    #[error(
        "{} exists, and `kubeproof envtest-assets` did not write it; choose another directory",
        .0.display()
    )]
    ForeignFile(PathBuf),
    #[error("cannot read {}: {source}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    #[error(
        "nothing was checked: {} contains neither a CustomResourceDefinition nor an OpenAPI v3 \
         document",
        .0.display()
    )]
    NothingToLint(PathBuf),
    #[error("expected a server; give --server URL or --kubeconfig")]
    NoTarget,
    #[error("the options select no case; `kubeproof list` prints all cases")]
    NothingSelected,
    #[error("{case} is not part of the edition {edition}; add --edition {other}")]
    OtherEdition { case: String, edition: Edition, other: Edition },
    #[error("nothing ran, every case was skipped: {0}")]
    AllSkipped(String),
    #[error("cannot write {}: {source}; choose a path that exists and is writable", path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error("two reports would have the same file {}; give each its own", .0.display())]
    SharedReportFile(PathBuf),
    #[error("expected the file of a report, found \"-\"; use a name such as report.json")]
    NoReportFile,
    #[error("cannot write to standard output: {0}")]
    Output(#[from] io::Error),
    #[error("the self-test cannot continue: {0}")]
    SelfTest(#[from] SelfTestError),
    #[error("the node cannot be registered: {0}")]
    Node(String),
    #[error("the node cannot be registered: {0}; --with-node needs the permission to create nodes")]
    NodeForbidden(String),
    #[error(
        "the node {name} cannot be removed: {why}; remove it with `kubectl delete node {name}`"
    )]
    NodeStays { name: String, why: String },
    #[error(
        "cannot find an address for the node, no route to {host}: {source}; give --node-address"
    )]
    NoAddress { host: String, source: io::Error },
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
    /// A generated test cannot run.
    #[error(transparent)]
    Generated(GeneratedError),
    #[error("cannot start the async runtime: {0}")]
    Runtime(io::Error),
    #[error("the run ended early because of a bug in kubeproof: {0}")]
    Panicked(String),
}

impl Error {
    /// Returns the error for an unknown name. Its hint is the nearest valid name or the list.
    pub(crate) fn unknown<'a>(
        what: &'static str,
        name: &str,
        valid: impl Iterator<Item = &'a str>,
        list: &str,
    ) -> Self {
        let (name, nearest) = (name.to_owned(), nearest(name, valid));
        Self::Unknown { what, name, nearest, list: list.to_owned() }
    }

    /// Returns the error for a name that is not one of a few.
    pub(crate) fn unlisted<'a>(
        what: &'static str,
        name: &str,
        valid: impl Iterator<Item = &'a str>,
    ) -> Self {
        let list = format!("expected {}", valid.collect::<Vec<_>>().join(", "));
        Self::Unknown { what, name: name.to_owned(), nearest: None, list }
    }

    pub(crate) fn exit(&self) -> Exit {
        match self {
            Self::Selection(SelectionError::NoMatch { .. } | SelectionError::IsArea { .. })
            | Self::NothingSelected
            | Self::OtherEdition { .. }
            | Self::NothingToLint(_)
            | Self::Generated(GeneratedError::NothingToTest(_))
            | Self::AllSkipped(_) => Exit::NOTHING_RAN,
            Self::Target(
                TargetError::Failing { .. }
                | TargetError::Foreign { .. }
                | TargetError::Unreachable { .. }
                | TargetError::Unauthenticated { .. }
                | TargetError::SecondUnauthenticated { .. }
                | TargetError::Anonymous { .. },
            ) => Exit::UNREACHABLE,
            Self::Runtime(_) | Self::Panicked(_) | Self::SelfTest(_) | Self::Generated(_) => {
                Exit::ERRORS
            }
            _ => Exit::USAGE,
        }
    }

    /// Returns whether the reader of our output closed the pipe.
    pub(crate) fn is_broken_pipe(&self) -> bool {
        let (Self::Output(error) | Self::Report(ReportError::Output(error))) = self else {
            return false;
        };
        error.kind() == io::ErrorKind::BrokenPipe
    }
}

impl From<FindError> for Error {
    fn from(error: FindError) -> Self {
        match error {
            FindError::Target(error) => Self::Target(error),
            error @ FindError::NoNamespace(_) => Self::Leftovers(error),
        }
    }
}

impl From<PlanError> for Error {
    fn from(error: PlanError) -> Self {
        match error {
            PlanError::Selection(error) => Self::Selection(error),
            PlanError::Subject(error) => Self::Subject(error),
            PlanError::KnownFailures(error) => Self::KnownFailures(error),
            PlanError::Target(error) => Self::Target(error),
            error @ PlanError::NoNamespace(_) => Self::NoNamespace(error),
        }
    }
}

impl From<GeneratedError> for Error {
    fn from(error: GeneratedError) -> Self {
        match error {
            GeneratedError::Plan(error) => error.into(),
            other => Self::Generated(other),
        }
    }
}

fn suggestion(nearest: Option<&str>, list: &str) -> String {
    nearest.map_or_else(|| list.to_owned(), |name| format!("did you mean {name:?}?"))
}

fn describe_invalid_cases(error: &LoadError) -> String {
    match error {
        LoadError::Invalid(diagnostics) => format!("the case files are invalid\n\n{diagnostics}"),
        other => other.to_string(),
    }
}
