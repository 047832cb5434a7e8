//! Why a command ended before its time, and with which exit code.

use std::io;
use std::path::PathBuf;

use kubeproof::self_test::SelfTestError;
use kubeproof_cases::LoadError;
use kubeproof_harness::known_failures::KnownFailuresError;
use kubeproof_harness::plan::PlanError;
use kubeproof_harness::schema::ManifestError;
use kubeproof_harness::selection::{SelectionError, nearest};
use kubeproof_harness::subject::SubjectError;
use kubeproof_harness::target::TargetError;
use kubeproof_reference_server::StartError;
use kubeproof_reference_server::kubelet::EndpointError;
use kubeproof_reports::ReportError;
use kubeproof_reports::compare::MergeError;
use kubeproof_reports::document::LoadError as ReportLoadError;

use crate::exit_code::Exit;

/// Why a command ended before its time.
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
    /// The namespace of `--namespace` is not there.
    #[error(transparent)]
    NoNamespace(PlanError),
    /// Case files; diagnostics stand on lines of their own.
    #[error("{}", cases(.0))]
    Cases(#[from] LoadError),
    #[error(transparent)]
    Server(#[from] StartError),
    #[error(transparent)]
    Report(#[from] ReportError),
    #[error(transparent)]
    ReportLoad(#[from] ReportLoadError),
    #[error(transparent)]
    Merge(#[from] MergeError),
    #[error("no {what} is called {name:?}{}", nearest.as_ref().map(|n| format!("; did you mean {n:?}?")).unwrap_or_default())]
    Unknown { what: &'static str, name: String, nearest: Option<String> },
    #[error("cannot read {}: {source}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    #[error("nothing was checked: {} holds neither a CustomResourceDefinition nor an OpenAPI v3 document", .0.display())]
    NothingToLint(PathBuf),
    #[error("no server is named; expected --server URL or --kubeconfig")]
    NoTarget,
    #[error("no case is selected: the options leave nothing over; see `kubeproof list` for what there is")]
    NothingSelected,
    #[error("nothing ran, every case was skipped: {0}")]
    AllSkipped(String),
    #[error("cannot write {}: {source}; choose a place that exists and may be written", path.display())]
    Write { path: PathBuf, source: io::Error },
    /// Writing to standard output.
    #[error("cannot write to standard output: {0}")]
    Output(#[from] io::Error),
    #[error("the self-test could not go on: {0}")]
    SelfTest(#[from] SelfTestError),
    #[error("the node cannot be registered: {0}; --with-node needs the right to create nodes")]
    Node(String),
    #[error("the node {name} cannot be removed: {why}; remove it with `kubectl delete node {name}`")]
    NodeStays { name: String, why: String },
    #[error("no address for the node: no way to {host}: {source}; give one with --node-address")]
    NoAddress { host: String, source: io::Error },
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
    #[error("the program cannot start its runtime: {0}")]
    Runtime(io::Error),
    #[error("the run ended early, which is a fault of kubeproof: {0}")]
    Died(String),
}

impl Error {
    /// A name that nothing has.
    pub(crate) fn unknown<'a>(
        what: &'static str,
        name: &str,
        there_are: impl Iterator<Item = &'a str>,
    ) -> Self {
        Self::Unknown { what, name: name.to_owned(), nearest: nearest(name, there_are) }
    }

    /// The exit code it ends with.
    pub(crate) fn exit(&self) -> Exit {
        match self {
            Self::Selection(SelectionError::NoMatch { .. })
            | Self::NothingSelected
            | Self::NothingToLint(_)
            | Self::AllSkipped(_) => Exit::NOTHING_RAN,
            Self::Target(
                TargetError::Unreachable { .. }
                | TargetError::Unauthenticated { .. }
                | TargetError::Anonymous { .. },
            ) => Exit::UNREACHABLE,
            Self::Runtime(_) | Self::Died(_) | Self::SelfTest(_) => Exit::ERRORS,
            _ => Exit::USAGE,
        }
    }

    /// Whether the reader of our output has had enough, which is no error.
    pub(crate) fn is_broken_pipe(&self) -> bool {
        let (Self::Output(error) | Self::Report(ReportError::Output(error))) = self else { return false };
        error.kind() == io::ErrorKind::BrokenPipe
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

fn cases(error: &LoadError) -> String {
    match error {
        LoadError::Invalid(diagnostics) => format!("the case files are wrong\n\n{diagnostics}"),
        other => other.to_string(),
    }
}
