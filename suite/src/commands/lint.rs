//! `kubeproof lint`: what is wrong with case files.

use std::io::Write;

use kubeproof_cases::LoadError;
use kubeproof_reference_server::Fault;

use crate::args::low;
use crate::error::Error;
use crate::exit_code::Exit;

/// Checks a directory.
pub(super) fn lint(lint: &low::Lint, color: low::Color, out: &mut dyn Write) -> Result<Exit, Error> {
    match kubeproof_cases::lint(&lint.directory, Fault::all().map(Fault::name)) {
        Ok(catalogue) => {
            writeln!(
                out,
                "nothing is wrong: {} cases, {} requirements, {} subjects with those of the program",
                catalogue.cases.len(),
                catalogue.requirements.len(),
                catalogue.subjects.len()
            )?;
            Ok(Exit::CONFORMANT)
        }
        Err(LoadError::Invalid(diagnostics)) => {
            writeln!(out, "{}", diagnostics.render(color.on_stdout()))?;
            let errors = if diagnostics.len() == 1 { "error" } else { "errors" };
            writeln!(out, "{} {errors}", diagnostics.len())?;
            Ok(Exit::FAILURES)
        }
        Err(error) => Err(error.into()),
    }
}
