//! Opens report files, and prepares the requirements that reports show.

use std::env;
use std::io::{self, Stdout};

use kubeproof_cases::Catalogue;
use kubeproof_reports::formats::FileReport;
use kubeproof_reports::requirements::{Requirement, Requirements};
use kubeproof_reports::{Github, Report};

use crate::args::high::ReportFiles;
use crate::error::Error;

/// Returns the requirements as reports show them.
pub(super) fn requirements(catalogue: &Catalogue) -> Requirements {
    catalogue.requirements.iter().map(|one| (one.id.clone(), requirement(one))).collect()
}

/// Returns a requirement as reports show it.
pub(super) fn requirement(requirement: &kubeproof_cases::requirements::Requirement) -> Requirement {
    Requirement {
        statement: requirement.statement.clone(),
        level: requirement.level,
        section: requirement.section.clone(),
        editions: requirement.editions.clone(),
    }
}

/// Opens the report files, and checks that they are writable.
pub(super) fn open(
    files: &ReportFiles,
    requirements: &Requirements,
) -> Result<Vec<Box<dyn Report>>, Error> {
    let mut reports: Vec<Box<dyn Report>> = Vec::new();
    for (at, (path, format)) in files.iter().enumerate() {
        if path.as_os_str() == "-" {
            return Err(Error::NoReportFile);
        }
        if files.iter().take(at).any(|(other, _)| other == path) {
            return Err(Error::SharedReportFile(path.clone()));
        }
        reports.push(Box::new(FileReport::new(path, *format, requirements)?));
    }
    Ok(reports)
}

/// Returns the report for GitHub Actions, which names the file of the job summary.
pub(super) fn github(requirements: &Requirements) -> Github<Stdout> {
    let summary = env::var_os("GITHUB_STEP_SUMMARY").filter(|path| !path.is_empty());
    Github::new(io::stdout(), requirements, summary.map(Into::into))
}
