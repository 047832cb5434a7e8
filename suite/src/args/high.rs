//! What was typed, as the harness and the reports want it; files that it names are read here.

use std::io::{self, IsTerminal as _};
use std::path::{Path, PathBuf};

use kubeproof_cases::case;
use kubeproof_cases::{Catalogue, Loader};
use kubeproof_harness::known_failures::KnownFailures;
use kubeproof_harness::run::RunOptions;
use kubeproof_harness::selection::{Rerun, Selection};
use kubeproof_harness::target::{Credential, TargetConfig, TlsConfig};
use kubeproof_harness::tls::TlsOptions;
use kubeproof_reports::console::Verbosity;
use kubeproof_reports::file::{FileReport, Format};
use kubeproof_reports::paint::Paint;
use kubeproof_reports::requirements::{Requirement, Requirements};
use kubeproof_reports::{Report, ReportError};

use super::low;
use crate::error::Error;

/// The options of a run.
pub(crate) fn run_options(run: &low::Run) -> Result<RunOptions, Error> {
    let low::Run { cases, selection, safety, execution, .. } = run;
    let rerun = selection.rerun.as_deref().map(Rerun::from_report).transpose()?;
    Ok(RunOptions {
        selection: Selection { shard: selection.shard, rerun, ..cases.selection() },
        subjects: selection.subject.iter().map(|subject| subject.parse()).collect::<Result<_, _>>()?,
        edition: cases.edition.into(),
        letter: selection.letter,
        namespace: safety.namespace.clone(),
        read_only: safety.read_only,
        dry_run: safety.dry_run,
        known_failures: known_failures(selection.known_failures.as_deref(), selection.update_known_failures)?,
        strict: execution.strict,
        jobs: execution.jobs,
        timeout: execution.timeout,
        case_timeout: execution.case_timeout,
        // Readers of JSON lose digits of greater numbers.
        seed: execution.seed.unwrap_or_else(|| u64::from(rand::random::<u32>())),
        load: execution.load,
        repeat: execution.repeat,
        pod_image: run.pods.pod_image.clone(),
        max_fail: execution.max_fail,
        ..RunOptions::default()
    })
}

/// The embedded cases, and those of these directories.
pub(crate) fn catalogue(directories: &[PathBuf]) -> Result<Catalogue, Error> {
    let mut loader = Loader::embedded();
    for directory in directories {
        loader = loader.directory(directory)?;
    }
    Ok(loader.load().map_err(kubeproof_cases::LoadError::from)?)
}

/// What reports say of requirements.
pub(crate) fn requirements(catalogue: &Catalogue) -> Requirements {
    let told = |requirement: &kubeproof_cases::Requirement| Requirement {
        statement: requirement.statement.clone(),
        level: requirement.level,
        section: requirement.section.clone(),
    };
    catalogue.requirements.iter().map(|r| (r.id.clone(), told(r))).collect()
}

impl low::Target {
    /// The target that was named; `None`: the bundled server is meant.
    pub(crate) async fn config(&self) -> Result<Option<TargetConfig>, Error> {
        let mut config = match (&self.server, &self.kubeconfig) {
            (Some(server), _) => self.by_url(server)?,
            (None, Some(file)) => {
                TargetConfig::from_kubeconfig(file.as_deref(), self.context.as_deref()).await?
            }
            (None, None) => return Ok(None),
        };
        config.impersonate.clone_from(&self.act_as);
        config.second = self.second_token.as_deref().map(Credential::token).transpose()?;
        Ok(Some(config))
    }

    fn by_url(&self, server: &str) -> Result<TargetConfig, Error> {
        let mut config = TargetConfig::new(server)?;
        config.credential = match (&self.token, &self.token_file) {
            (Some(token), _) => Credential::token(token)?,
            (None, Some(file)) => Credential::token_file(file)?,
            (None, None) => Credential::None,
        };
        config.tls = TlsConfig::Options(TlsOptions {
            certificate_authority: self.certificate_authority.clone(),
            insecure_skip_verify: self.insecure_skip_tls_verify,
            client_certificate: self.client_certificate.clone().zip(self.client_key.clone()),
        });
        Ok(config)
    }
}

impl low::Cases {
    /// Which cases.
    pub(crate) fn selection(&self) -> Selection {
        Selection {
            only: self.only.clone(),
            skip: self.skip.clone(),
            areas: self.area.clone(),
            level: self.level.map(Into::into),
            ..Selection::default()
        }
    }
}

/// The list of known failures, which need not be there when it is to be written.
pub(crate) fn known_failures(path: Option<&Path>, update: bool) -> Result<Option<KnownFailures>, Error> {
    let load = |path: &Path| {
        if update && !path.exists() { Ok(KnownFailures::empty(path)) } else { KnownFailures::load(path) }
    };
    Ok(path.map(load).transpose()?)
}

impl low::Reports {
    /// How much the console tells.
    pub(crate) fn verbosity(&self) -> Verbosity {
        low::verbosity(self.quiet, self.verbose)
    }
}

impl low::ReportFiles {
    /// The reports, their places known to be writable.
    pub(crate) fn open(&self, requirements: &Requirements) -> Result<Vec<Box<dyn Report>>, ReportError> {
        let open = |(path, format): (&Path, Format)| -> Result<Box<dyn Report>, ReportError> {
            Ok(Box::new(FileReport::new(path, format, requirements)?))
        };
        self.named().map(open).collect()
    }

    /// The files that were named.
    pub(crate) fn named(&self) -> impl Iterator<Item = (&Path, Format)> {
        let all = [
            (&self.junit, Format::Junit),
            (&self.json, Format::Json),
            (&self.html, Format::Html),
            (&self.markdown, Format::Markdown),
            (&self.sarif, Format::Sarif),
            (&self.tap, Format::Tap),
        ];
        all.into_iter().filter_map(|(path, format)| Some((path.as_deref()?, format)))
    }
}

impl low::Color {
    /// For standard output.
    pub(crate) fn on_stdout(self) -> bool {
        self.is_on(io::stdout().is_terminal())
    }

    /// For standard error.
    pub(crate) fn on_stderr(self) -> Paint {
        Paint::new(self.is_on(io::stderr().is_terminal()))
    }

    fn is_on(self, terminal: bool) -> bool {
        match self {
            Self::Always => true,
            Self::Never => false,
            // As https://no-color.org has it: set, and not empty.
            Self::Auto => terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()),
        }
    }
}

impl From<low::Level> for case::Level {
    fn from(level: low::Level) -> Self {
        match level {
            low::Level::Must => Self::Must,
            low::Level::Should => Self::Should,
            low::Level::May => Self::May,
        }
    }
}

impl From<low::Edition> for case::Edition {
    fn from(edition: low::Edition) -> Self {
        match edition {
            low::Edition::V1_0 => Self::V1_0,
            low::Edition::V1_3 => Self::V1_3,
            low::Edition::Y2022 => Self::Y2022,
            low::Edition::Y2024 => Self::Y2024,
            low::Edition::Head => Self::Head,
        }
    }
}
