//! `kubeproof lint`: checks case files.

use std::io::Write;

use kubeproof_cases::{LoadError, plural};
use kubeproof_reference_server::Fault;

use crate::args::high;
use crate::error::Error;
use crate::exit_code::Exit;

pub(super) fn lint(lint: &high::Lint, out: &mut dyn Write) -> Result<Exit, Error> {
    match kubeproof_cases::lint(&lint.directory, Fault::all().map(Fault::name)) {
        Ok(catalogue) => {
            let cases = plural(catalogue.cases.len(), "case");
            let requirements = plural(catalogue.requirements.len(), "requirement");
            let subjects = plural(catalogue.subjects.len(), "subject");
            writeln!(
                out,
                "no errors in {cases}, {requirements} and {subjects}, embedded ones included"
            )?;
            Ok(Exit::CONFORMANT)
        }
        Err(LoadError::Invalid(diagnostics)) => {
            writeln!(out, "{}", diagnostics.render(lint.colors))?;
            writeln!(out, "{}", plural(diagnostics.len(), "error"))?;
            Ok(Exit::FAILURES)
        }
        Err(error) => Err(error.into()),
    }
}
