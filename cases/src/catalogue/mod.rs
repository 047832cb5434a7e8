//! The catalogue: all case files, the requirements they refer to, and the subjects they run on.

mod files;
mod loader;
mod parallel;

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use crate::case::{Case, Edition};
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::profile::{Profile, Profiles};
use crate::requirements::{Breakage, Coverage, Requirements};
use crate::subject::SubjectDefinition;
use crate::yaml::Source;

pub use files::is_embedded_case;
pub use loader::Loader;

/// The requirements catalogue in a directory of cases.
const REQUIREMENTS: &str = "requirements.yaml";
/// Places at which Kubernetes itself breaks design rules.
const HISTORY: &str = "schema-history.yaml";
/// The requirements that each fault of the reference server breaks.
const BREAKAGE: &str = "faults.yaml";
/// The profile of each case.
const PROFILES: &str = "profiles.yaml";
/// Definitions of subjects.
const SUBJECTS: &str = "subjects/";
/// Steps that cases share.
const FRAGMENTS: &str = "fragments/";

/// Everything that can be run.
#[derive(Clone, Debug)]
pub struct Catalogue {
    /// Sorted by id.
    pub cases: Vec<Case>,
    /// The ids of these cases, and of the cases that [`Loader::only`] left out. Sorted.
    pub ids: Vec<String>,
    /// What they prove.
    pub requirements: Requirements,
    /// What they run on, sorted by name.
    pub subjects: Vec<SubjectDefinition>,
    /// Fragments by name, with their summaries.
    pub fragments: BTreeMap<String, String>,
    /// What the faults that they catch break.
    pub breakage: Breakage,
    digest: String,
    profiles: Profiles,
    /// The file of the requirements, for errors in it.
    requirements_file: Option<Source>,
}

impl Catalogue {
    /// Loads the cases that the program carries.
    pub fn embedded() -> Result<Self, Diagnostics> {
        Loader::embedded().load()
    }

    /// Loads the cases that the program carries and those of a directory with the same layout.
    pub fn load_dir(directory: &Path) -> Result<Self, LoadError> {
        Ok(Loader::embedded().directory(directory)?.load()?)
    }

    /// `sha256:` and the digest over the names and contents of all files.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// Returns the contradictions between the requirements and the cases. A requirement has a case,
    /// or a reason for having none, never both.
    pub fn requirement_errors(&self) -> Diagnostics {
        let coverage = self.coverage(None);
        let mut errors = Diagnostics::default();
        let Some(source) = &self.requirements_file else { return errors };
        for requirement in &self.requirements {
            let entry = format!("- id: {}\n", requirement.id);
            let Some(start) = source.text.find(&entry) else { continue };
            let start = start + "- id: ".len();
            let place = start..start + requirement.id.len();
            let error =
                |code, message: String| Diagnostic::new(source, place.clone(), code, message);
            match (coverage.cases.get(&requirement.id), &requirement.without) {
                (None, None) => errors.extend([error(
                    "no-case",
                    format!("no case names `{}`, and it has no `without`", requirement.id),
                )
                .help("name it in a case, or add `without: {kind: planned, reason: ..}`")]),
                (Some(cases), Some(_)) => errors.extend([error(
                    "stale-reason",
                    format!(
                        "`{}` has a `without`, but the case `{}` names it",
                        requirement.id, cases[0]
                    ),
                )
                .help(
                    "remove `without`; `KUBEPROOF_BLESS=1 cargo test -p kubeproof-cases` does it",
                )]),
                _ => {}
            }
        }
        errors
    }

    /// Returns the mistakes in the assignment of cases to profiles: cases without a profile, and
    /// entries without a case.
    pub fn profile_errors(&self) -> Diagnostics {
        self.profiles.gaps(&self.cases.iter().map(|case| case.id.as_str()).collect())
    }

    /// Returns the cases of a profile.
    pub fn cases_of(&self, profile: Profile) -> impl Iterator<Item = &Case> {
        self.cases.iter().filter(move |case| case.profile == Some(profile))
    }

    /// Counts the requirements of an edition that have cases; `None`: those of any edition.
    pub fn coverage(&self, edition: Option<Edition>) -> Coverage {
        Coverage::of(&self.requirements, &self.cases, edition)
    }

    /// A case by its id.
    pub fn case(&self, id: &str) -> Option<&Case> {
        self.cases
            .binary_search_by(|case| case.id.as_str().cmp(id))
            .ok()
            .map(|index| &self.cases[index])
    }
}

/// Checks the files of a directory. If it has requirements, each of them needs a case or a reason.
/// If it has profiles, each case needs one.
pub fn lint(
    directory: &Path,
    known_faults: impl IntoIterator<Item = impl Into<String>>,
) -> Result<Catalogue, LoadError> {
    let catalogue = Loader::embedded().known_faults(known_faults).directory(directory)?.load()?;
    let mut errors = Diagnostics::default();
    if directory.join(REQUIREMENTS).exists() {
        errors.extend(catalogue.requirement_errors());
    }
    if directory.join(PROFILES).exists() {
        errors.extend(catalogue.profile_errors());
    }
    if errors.is_empty() { Ok(catalogue) } else { Err(errors.into()) }
}

/// No catalogue could be made.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// A file cannot be read.
    #[error("cannot read {path}: {source}")]
    Unreadable {
        /// The file or directory.
        path: String,
        /// Why.
        source: io::Error,
    },
    /// There is nothing to read.
    #[error(
        "no case files in {0}: expected AREA/NAME.yaml, subjects/NAME.yaml or requirements.yaml"
    )]
    Empty(String),
    /// Files are wrong.
    #[error(transparent)]
    Invalid(#[from] Diagnostics),
}
