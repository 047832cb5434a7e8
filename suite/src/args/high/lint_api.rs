//! The options of `kubeproof lint-api`.

use std::path::PathBuf;

use kubeproof_harness::plan::KnownFailures;

use super::run::known_failures;
use super::{CaseSelection, CatalogueSource, RenderOutput};
use crate::args::low;
use crate::error::Error;

/// The options of `kubeproof lint-api`.
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own on the command line")]
pub(crate) struct LintApi {
    pub(crate) files: Vec<PathBuf>,
    pub(crate) catalogue: CatalogueSource,
    pub(crate) cases: CaseSelection,
    pub(crate) letter: bool,
    pub(crate) strict: bool,
    pub(crate) known_failures: Option<KnownFailures>,
    pub(crate) update_known_failures: bool,
    pub(crate) output: RenderOutput,
    pub(crate) github: bool,
    /// The command line for reports.
    pub(crate) command: String,
}

impl LintApi {
    pub(super) fn resolve(
        lint: low::LintApi,
        color: low::Color,
        command_line: &str,
    ) -> Result<Self, Error> {
        let judging = lint.judging;
        let update = judging.update_known_failures;
        Ok(Self {
            cases: CaseSelection::resolve(&lint.cases),
            catalogue: CatalogueSource::new(lint.cases.directories),
            letter: judging.letter,
            strict: judging.strict,
            known_failures: known_failures(judging.known_failures.as_deref(), update)?,
            update_known_failures: update,
            output: RenderOutput::resolve(&lint.output, color, judging.strict),
            github: lint.github,
            command: command_line.to_owned(),
            files: lint.files,
        })
    }
}
