//! The catalogue: all case files, the ledger they refer to, and the subjects they run on.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;
use std::{fs, io};

use include_dir::{Dir, include_dir};
use sha2::{Digest, Sha256};

use crate::breakage::{Breakage, RawBreakage};
use crate::case::{Case, ResourceName};
use crate::coverage;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::ledger::{Ledger, Requirement};
use crate::lower::{self, Known};
use crate::parallel;
use crate::raw::RawCase;
use crate::rule::Exemption;
use crate::shape;
use crate::subject::{RawSubjectDefinition, SubjectDefinition};
use crate::syntax::Source;

static EMBEDDED: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/data");

/// Where the ledger stands in a directory of cases.
const LEDGER: &str = "requirements.yaml";
/// Where the places stand at which Kubernetes breaks design rules by history.
const HISTORY: &str = "schema-history.yaml";
/// Where it stands what each deliberate bug of the reference server breaks.
const BREAKAGE: &str = "faults.yaml";
/// Where definitions of subjects stand.
const SUBJECTS: &str = "subjects/";

/// Everything that can be run.
#[derive(Clone, Debug)]
pub struct Catalogue {
    /// Sorted by id.
    pub cases: Vec<Case>,
    /// What they prove.
    pub requirements: Ledger,
    /// What they run on, sorted by name.
    pub subjects: Vec<SubjectDefinition>,
    /// What the faults that they catch break.
    pub breakage: Breakage,
    digest: String,
    ledger: Option<Source>,
}

impl Catalogue {
    /// The cases that the program carries.
    pub fn embedded() -> Result<Self, Diagnostics> {
        Loader::embedded().load()
    }

    /// The cases that the program carries, and over them those of a directory of the same layout.
    pub fn load_dir(directory: &Path) -> Result<Self, LoadError> {
        Ok(Loader::embedded().directory(directory)?.load()?)
    }

    /// `sha256:` and the digest over the names and contents of all files.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// What is wrong between the ledger and the cases: a requirement has a case or a reason for having none, never both.
    pub fn ledger_errors(&self) -> Diagnostics {
        let coverage = coverage::compute(self);
        let mut errors = Diagnostics::default();
        let Some(source) = &self.ledger else { return errors };
        for requirement in &self.requirements {
            let entry = format!("- id: {}\n", requirement.id);
            let start = source.text.find(&entry).map_or(0, |start| start + "- id: ".len());
            let place = start..start + requirement.id.len();
            let error = |code, message: String| Diagnostic::new(source, place.clone(), code, message);
            match (coverage.cases.get(&requirement.id), &requirement.without) {
                (None, None) => errors.extend([error(
                    "no-row",
                    format!("no case names `{}`, and no reason is given", requirement.id),
                )
                .help("name it in a case, or add `without: {kind: planned, reason: ..}`")]),
                (Some(cases), Some(_)) => errors.extend([error(
                    "stale-reason",
                    format!("`{}` says why it has no case, but `{}` proves it", requirement.id, cases[0]),
                )
                .help(
                    "remove the `without` entry; `KUBEPROOF_BLESS=1 cargo test -p kubeproof-cases` does it",
                )]),
                _ => {}
            }
        }
        errors
    }

    /// A case by its id.
    pub fn case(&self, id: &str) -> Option<&Case> {
        self.cases.binary_search_by(|case| case.id.as_str().cmp(id)).ok().map(|index| &self.cases[index])
    }
}

/// Everything that is wrong with the files of a directory; with the whole catalogue, if its ledger lies there.
pub fn lint(
    directory: &Path,
    known_faults: impl IntoIterator<Item = impl Into<String>>,
) -> Result<Catalogue, LoadError> {
    let catalogue = Loader::embedded().known_faults(known_faults).directory(directory)?.load()?;
    let errors =
        if directory.join(LEDGER).exists() { catalogue.ledger_errors() } else { Diagnostics::default() };
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
    #[error("no case files in {0}: expected AREA/NAME.yaml, subjects/NAME.yaml or requirements.yaml")]
    Empty(String),
    /// Files are wrong.
    #[error(transparent)]
    Invalid(#[from] Diagnostics),
}

/// Files on their way into a catalogue.
#[derive(Clone, Debug)]
pub struct Loader {
    /// By path below the directory of cases.
    files: BTreeMap<String, Source>,
    faults: Option<BTreeSet<String>>,
}

impl Loader {
    /// Starts with the files that the program carries.
    pub fn embedded() -> Self {
        let mut files = BTreeMap::new();
        collect(&EMBEDDED, &mut files);
        Self { files, faults: None }
    }

    /// Starts with the ledger and the subjects that the program carries, and without cases.
    pub fn without_cases() -> Self {
        let mut loader = Self::embedded();
        loader.files.retain(|path, _| path == LEDGER || path == HISTORY || path.starts_with(SUBJECTS));
        loader
    }

    /// Adds a file at a path below the directory of cases, or replaces the one there.
    #[must_use]
    pub fn file(mut self, path: &str, name: &str, text: &str) -> Self {
        self.files.insert(path.to_owned(), Source::new(name, text));
        self
    }

    /// Adds the files of a directory; a file with the path of an embedded one replaces it.
    pub fn directory(mut self, directory: &Path) -> Result<Self, LoadError> {
        let mut found = 0;
        read_directory(directory, "", &mut |path, name, text| {
            found += 1;
            self.files.insert(path, Source::new(name, text));
        })?;
        if found == 0 {
            return Err(LoadError::Empty(directory.display().to_string()));
        }
        Ok(self)
    }

    /// Names the faults that `catches` can speak of; without this they are not checked.
    #[must_use]
    pub fn known_faults(mut self, faults: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.faults = Some(faults.into_iter().map(Into::into).collect());
        self
    }

    /// Reads everything; reports all that is wrong in all files.
    pub fn load(self) -> Result<Catalogue, Diagnostics> {
        let mut files: Vec<(&str, &Source)> =
            self.files.iter().map(|(path, source)| (path.as_str(), source)).collect();
        files.sort_by_key(|(_, source)| std::cmp::Reverse(source.text.len()));
        let mut errors = Diagnostics::default();
        let mut requirements = Vec::new();
        let mut subjects = Vec::new();
        let mut cases = Vec::new();
        let mut history = Vec::new();
        let mut broken = None;
        let mut nameless = false;
        for (read, (path, source)) in
            parallel::map(&files, |(path, source)| read(path, source)).into_iter().zip(&files)
        {
            match read {
                Ok(File::Ledger(read)) => requirements.extend(read),
                Ok(File::History(read)) => history.extend(read),
                Ok(File::Breakage(read)) => broken = Some((*source, read)),
                Ok(File::Subject(subject)) => subjects.push(*subject),
                Ok(File::Case(id, raw)) => cases.push((id, *source, raw)),
                Err(found) => {
                    nameless |= *path == LEDGER || path.starts_with(SUBJECTS);
                    errors.extend(found);
                }
            }
        }
        if nameless {
            // Without the ledger and the subjects, every name in a case would be reported as unknown.
            errors.sort();
            return Err(errors);
        }
        let ledger = Ledger::new(requirements);
        let resources: BTreeSet<ResourceName> = subjects.iter().map(|subject| subject.name.clone()).collect();
        let faults = self.faults.as_ref();
        let known = Known { ledger: &ledger, resources: &resources, history: &history, faults };
        let lowered = parallel::map(&cases, |(id, source, raw)| lower::lower(source, id, raw, known));
        let mut cases = Vec::with_capacity(lowered.len());
        for result in lowered {
            match result {
                Ok(case) => cases.push(case),
                Err(found) => errors.extend(found),
            }
        }
        let breakage = match broken.map(|(source, raw)| Breakage::lower(source, &raw, &ledger, faults)) {
            None => Breakage::default(),
            Some(Ok(breakage)) => breakage,
            Some(Err(found)) => {
                errors.extend(found);
                Breakage::default()
            }
        };
        if !errors.is_empty() {
            errors.sort();
            return Err(errors);
        }
        cases.sort_by(|a, b| a.id.cmp(&b.id));
        subjects.sort_by(|a, b| a.name.cmp(&b.name));
        let digest = digest(&self.files);
        let source = self.files.get(LEDGER).cloned();
        Ok(Catalogue { cases, requirements: ledger, subjects, breakage, digest, ledger: source })
    }
}

/// A file that has the right shape.
enum File<'a> {
    Ledger(Vec<Requirement>),
    History(Vec<Exemption>),
    Breakage(RawBreakage),
    Subject(Box<SubjectDefinition>),
    /// With its id.
    Case(&'a str, Box<RawCase>),
}

fn read<'a>(path: &'a str, source: &Source) -> Result<File<'a>, Vec<Diagnostic>> {
    if path == LEDGER {
        return shape::read(source).map(File::Ledger);
    }
    if path == HISTORY {
        return shape::read(source).map(File::History);
    }
    if path == BREAKAGE {
        return shape::read(source).map(File::Breakage);
    }
    if path.starts_with(SUBJECTS) {
        let raw: RawSubjectDefinition = shape::read(source)?;
        return raw.lower(source).map(|subject| File::Subject(Box::new(subject)));
    }
    let id = case_id(path)
        .map_err(|(message, help)| vec![Diagnostic::new(source, 0..0, "file-name", message).help(help)])?;
    shape::read(source).map(|raw| File::Case(id, Box::new(raw)))
}

/// The id that the place of a file gives.
fn case_id(path: &str) -> Result<&str, (String, &'static str)> {
    let id = path
        .strip_suffix(".yaml")
        .ok_or_else(|| (format!("`{path}` does not end in `.yaml`"), "rename the file"))?;
    let Some((area, name)) = id.split_once('/') else {
        return Err((
            format!("`{path}` lies in no area"),
            "move the file into a directory, as `create/name.yaml`",
        ));
    };
    let kebab = |word: &str| {
        !word.is_empty()
            && word.split('-').all(|part| {
                !part.is_empty() && part.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit())
            })
    };
    if !kebab(area) || !kebab(name) {
        return Err((
            format!("`{path}` is not named in lower-case words joined by `-`"),
            "rename it, as `create/taken-name-is-refused.yaml`; its id is `create/taken-name-is-refused`",
        ));
    }
    Ok(id)
}

fn digest(files: &BTreeMap<String, Source>) -> String {
    let mut hash = Sha256::new();
    for (path, source) in files {
        for part in [path.as_bytes(), source.text.as_bytes()] {
            hash.update(part.len().to_le_bytes());
            hash.update(part);
        }
    }
    hash.finalize().iter().fold("sha256:".to_owned(), |mut digest, byte| {
        // Writing to a string cannot fail.
        let _ = write!(digest, "{byte:02x}");
        digest
    })
}

fn collect(directory: &Dir<'static>, files: &mut BTreeMap<String, Source>) {
    for file in directory.files() {
        let path = file.path().to_string_lossy().replace('\\', "/");
        if let (true, Some(text)) = (is_yaml(&path), file.contents_utf8()) {
            let name = format!("cases/data/{path}");
            files.insert(path, Source::new(name, text));
        }
    }
    directory.dirs().for_each(|inner| collect(inner, files));
}

fn read_directory(
    directory: &Path,
    prefix: &str,
    add: &mut impl FnMut(String, Arc<str>, String),
) -> Result<(), LoadError> {
    let unreadable = |path: &Path, source| LoadError::Unreadable { path: path.display().to_string(), source };
    let entries = fs::read_dir(directory).map_err(|error| unreadable(directory, error))?;
    for entry in entries {
        let entry = entry.map_err(|error| unreadable(directory, error))?;
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with('.') {
            continue;
        }
        if path.is_dir() {
            read_directory(&path, &format!("{prefix}{name}/"), add)?;
        } else if is_yaml(&name) {
            let text = fs::read_to_string(&path).map_err(|error| unreadable(&path, error))?;
            add(format!("{prefix}{name}"), path.display().to_string().into(), text);
        }
    }
    Ok(())
}

/// `.yml` too, so that a file so named is reported and not passed over.
fn is_yaml(path: &str) -> bool {
    Path::new(path).extension().is_some_and(|extension| extension == "yaml" || extension == "yml")
}
