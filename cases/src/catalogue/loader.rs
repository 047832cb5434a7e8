//! Files on their way into a catalogue.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::files::{Files, read_directory};
use super::parallel;
use super::{BREAKAGE, Catalogue, FRAGMENTS, HISTORY, LoadError, PROFILES, REQUIREMENTS, SUBJECTS};
use crate::case::{Case, Prerequisite, ResourceName};
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::lower::{self, Fragment, Known, Programs};
use crate::profile::{Profiles, RawProfiles};
use crate::raw::{RawCase, RawFragment};
use crate::requirements::{Breakage, RawBreakage, Requirement, Requirements};
use crate::rule::Exemption;
use crate::shape;
use crate::subject::{RawSubjectDefinition, SubjectDefinition};
use crate::yaml::{Located, Source};

/// Files on their way into a catalogue.
#[derive(Clone, Debug)]
pub struct Loader {
    files: Files,
    /// The paths of cases that are not read.
    left_out: BTreeSet<String>,
    faults: Option<BTreeSet<String>>,
}

impl Loader {
    /// Starts with the files that the program carries.
    pub fn embedded() -> Self {
        Self { files: Files::embedded(), left_out: BTreeSet::new(), faults: None }
    }

    /// Reads only the cases whose ids `takes` accepts, and every case that is added later.
    /// [`Catalogue::ids`] and the digest cover all cases.
    #[must_use]
    pub fn only(mut self, takes: impl Fn(&str) -> bool) -> Self {
        let paths = self.files.iter().map(|(path, _)| path).filter(|path| is_case(path));
        let rejected = paths.filter(|path| case_id(path).is_ok_and(|id| !takes(id)));
        self.left_out = rejected.map(str::to_owned).collect();
        self
    }

    /// Starts with the files that the program carries, except for cases and faults.
    pub fn without_cases() -> Self {
        let mut loader = Self::embedded();
        loader.files.retain(|path| {
            path == REQUIREMENTS
                || path == HISTORY
                || path == PROFILES
                || path.starts_with(SUBJECTS)
                || path.starts_with(FRAGMENTS)
        });
        loader
    }

    /// Adds a file at a path below the directory of cases, or replaces the one there.
    #[must_use]
    pub fn file(mut self, path: &str, name: &str, text: &str) -> Self {
        self.files.replace(path, Source::new(name, text));
        self.left_out.remove(path);
        self
    }

    /// Adds the files of a directory. Requirements and profiles are added to those of the program;
    /// every other file replaces the one with its path.
    pub fn directory(mut self, directory: &Path) -> Result<Self, LoadError> {
        let mut found = 0;
        read_directory(directory, "", &mut |path, name, text| {
            found += 1;
            self.left_out.remove(&path);
            let source = Source::new(name, text);
            if [REQUIREMENTS, HISTORY, PROFILES].contains(&path.as_str()) {
                self.files.add(&path, source);
            } else {
                self.files.replace(&path, source);
            }
        })?;
        if found == 0 {
            return Err(LoadError::Empty(directory.display().to_string()));
        }
        Ok(self)
    }

    /// Names the faults that `catches` may name. Without this, they are not checked.
    #[must_use]
    pub fn known_faults(mut self, faults: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.faults = Some(faults.into_iter().map(Into::into).collect());
        self
    }

    /// Reads all files and reports everything that is wrong in any of them.
    pub fn load(self) -> Result<Catalogue, Diagnostics> {
        let mut read = Read::of(&self.files, &self.left_out);
        if read.is_nameless {
            // Without requirements and subjects, every name in a case would be reported as unknown.
            let shapes = parallel::map(&read.cases, |(path, source)| read_case(path, source).err());
            read.errors.extend(shapes.into_iter().flatten().flatten());
            read.errors.sort();
            return Err(read.errors);
        }
        let Read { mut errors, mut subjects, fragments, history, .. } = read;
        let requirements = Requirements::new(read.requirements);
        let resources: BTreeSet<ResourceName> =
            subjects.iter().map(|subject| subject.name.clone()).collect();
        let faults = self.faults.as_ref();
        let programs = Programs::default();
        let known = Known {
            catalogue: &requirements,
            fragments: &fragments,
            resources: &resources,
            history: &history,
            faults,
            programs: &programs,
        };
        // Each file is lowered as soon as it is read, so that few raw forms are in memory.
        let lowered =
            parallel::map(&read.cases, |file| LoweredCase::of(*file, known, &read.profiles));
        errors.extend(provided_twice(&lowered));
        let mut cases: Vec<Case> = Vec::with_capacity(lowered.len());
        for LoweredCase { result, .. } in lowered {
            match result {
                Ok(case) => cases.push(case),
                Err(found) => errors.extend(found),
            }
        }
        let breakage = read.breakage.map_or(Ok(Breakage::default()), |(source, raw)| {
            Breakage::lower(source, &raw, &requirements, faults)
        });
        let breakage = breakage.map_err(|found| errors.extend(found)).unwrap_or_default();
        if !errors.is_empty() {
            errors.sort();
            return Err(errors);
        }
        cases.sort_by(|a, b| a.id.cmp(&b.id));
        subjects.sort_by(|a, b| a.name.cmp(&b.name));
        let digest = self.files.digest();
        let requirements_file = self.files.last(REQUIREMENTS).cloned();
        let fragments = fragments
            .into_iter()
            .map(|(name, fragment)| (name, fragment.raw.summary.value))
            .collect();
        Ok(Catalogue {
            cases,
            ids: read.ids,
            requirements,
            subjects,
            fragments,
            breakage,
            digest,
            profiles: read.profiles,
            requirements_file,
        })
    }
}

/// A case, or everything that is wrong in its file.
struct LoweredCase<'a> {
    path: &'a str,
    source: &'a Source,
    provides: Option<Located<Prerequisite>>,
    result: Result<Case, Vec<Diagnostic>>,
}

impl<'a> LoweredCase<'a> {
    fn of((path, source): (&'a str, &'a Source), known: Known<'_>, profiles: &Profiles) -> Self {
        let (provides, lowered) = match read_case(path, source) {
            Ok((id, raw)) => (raw.provides.clone(), lower::lower(source, id, &raw, known)),
            Err(found) => (None, Err(found)),
        };
        let result = lowered.and_then(|case| match profiles.of(&case.id) {
            Ok(profile) => Ok(Case { profile, ..case }),
            Err(found) => Err(vec![found]),
        });
        Self { path, source, provides, result }
    }
}

/// Returns an error for each prerequisite that a second case provides.
fn provided_twice(cases: &[LoweredCase<'_>]) -> Vec<Diagnostic> {
    let mut providers: BTreeMap<Prerequisite, &str> = BTreeMap::new();
    let mut errors = Vec::new();
    for LoweredCase { path, source, provides, .. } in cases {
        let (Some(provided), Ok(id)) = (provides, case_id(path)) else { continue };
        if let Some(first) = providers.insert(provided.value, id) {
            let message = format!("`{first}` provides `{}` too", provided.value);
            errors.push(
                Diagnostic::new(source, provided.place.clone(), "duplicate", message)
                    .help("one case judges a prerequisite"),
            );
        }
    }
    errors
}

/// The files in their shapes.
#[derive(Default)]
struct Read<'a> {
    errors: Diagnostics,
    requirements: Vec<Requirement>,
    history: Vec<Exemption>,
    breakage: Option<(&'a Source, RawBreakage)>,
    profiles: Profiles,
    subjects: Vec<SubjectDefinition>,
    fragments: BTreeMap<String, Fragment>,
    /// The files of cases, with their paths.
    cases: Vec<(&'a str, &'a Source)>,
    /// The ids of these cases and of the cases that are left out. Sorted.
    ids: Vec<String>,
    /// A file is wrong that gives names to others.
    is_nameless: bool,
}

impl<'a> Read<'a> {
    fn of(files: &'a Files, left_out: &BTreeSet<String>) -> Self {
        let mut largest_first: Vec<(&str, &Source)> = files.iter().collect();
        largest_first.sort_by_key(|(_, source)| std::cmp::Reverse(source.text.len()));
        let (mut cases, others): (Vec<_>, Vec<_>) =
            largest_first.into_iter().partition(|(path, _)| is_case(path));
        let ids = cases.iter().filter_map(|(path, _)| case_id(path).ok());
        let ids: BTreeSet<String> = ids.map(str::to_owned).collect();
        cases.retain(|(path, _)| !left_out.contains(*path));
        let shapes = parallel::map(&others, |(path, source)| read(path, source));
        let mut all = Self { cases, ids: ids.into_iter().collect(), ..Self::default() };
        for (shape, (path, source)) in shapes.into_iter().zip(&others) {
            match shape {
                Ok(File::Requirements(read)) => all.requirements.extend(read),
                Ok(File::History(read)) => all.history.extend(read),
                Ok(File::Breakage(read)) => all.breakage = Some((source, read)),
                Ok(File::Profiles(read)) => {
                    all.errors.extend(all.profiles.add(source, read).err().unwrap_or_default());
                }
                Ok(File::Subject(subject)) => all.subjects.push(*subject),
                Ok(File::Fragment(name, raw)) => {
                    let fragment = Fragment { source: (*source).clone(), raw: *raw };
                    all.fragments.insert(name.to_owned(), fragment);
                }
                Err(found) => {
                    all.is_nameless |= *path == REQUIREMENTS
                        || path.starts_with(SUBJECTS)
                        || path.starts_with(FRAGMENTS);
                    all.errors.extend(found);
                }
            }
        }
        all
    }
}

/// A file that has the right shape.
enum File<'a> {
    Requirements(Vec<Requirement>),
    History(Vec<Exemption>),
    Breakage(RawBreakage),
    Profiles(RawProfiles),
    Subject(Box<SubjectDefinition>),
    /// With its name.
    Fragment(&'a str, Box<RawFragment>),
}

/// Reports whether a file is a case. A file that is none of the others should be one.
fn is_case(path: &str) -> bool {
    ![REQUIREMENTS, HISTORY, BREAKAGE, PROFILES].contains(&path)
        && !path.starts_with(SUBJECTS)
        && fragment_name(path).is_none()
}

fn fragment_name(path: &str) -> Option<&str> {
    path.strip_prefix(FRAGMENTS)?.strip_suffix(".yaml")
}

fn read<'a>(path: &'a str, source: &Source) -> Result<File<'a>, Vec<Diagnostic>> {
    if path == REQUIREMENTS {
        return shape::read(source).map(File::Requirements);
    }
    if path == HISTORY {
        return shape::read(source).map(File::History);
    }
    if path == BREAKAGE {
        return shape::read(source).map(File::Breakage);
    }
    if path == PROFILES {
        return shape::read(source).map(File::Profiles);
    }
    if let Some(name) = fragment_name(path) {
        return shape::read(source).map(|raw| File::Fragment(name, Box::new(raw)));
    }
    let raw: RawSubjectDefinition = shape::read(source)?;
    raw.lower(source).map(|subject| File::Subject(Box::new(subject)))
}

/// Returns the id and the content of a case.
fn read_case<'a>(path: &'a str, source: &Source) -> Result<(&'a str, RawCase), Vec<Diagnostic>> {
    let id = case_id(path).map_err(|(message, help)| {
        vec![Diagnostic::new(source, 0..0, "file-name", message).help(help)]
    })?;
    shape::read(source).map(|raw| (id, raw))
}

/// The id that the place of a file gives.
fn case_id(path: &str) -> Result<&str, (String, &'static str)> {
    let id = path
        .strip_suffix(".yaml")
        .ok_or_else(|| (format!("`{path}` does not end in `.yaml`"), "rename the file"))?;
    let Some((area, name)) = id.split_once('/') else {
        return Err((
            format!("`{path}` is not in an area"),
            "move the file into a directory, as `create/name.yaml`",
        ));
    };
    let kebab = |word: &str| {
        !word.is_empty()
            && word.split('-').all(|part| {
                !part.is_empty()
                    && part.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit())
            })
    };
    if !kebab(area) || !kebab(name) {
        return Err((
            format!("`{path}` is not named in lower-case words joined by `-`"),
            "rename it, as `create/taken-name-is-rejected.yaml`; its id is \
             `create/taken-name-is-rejected`",
        ));
    }
    Ok(id)
}
