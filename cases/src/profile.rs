//! Profiles: the ladder of features that implementers of a server climb.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;

use globset::{Glob, GlobMatcher};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::yaml::{Located, Source};

/// Cases that belong to one step of an implementation. Ordered from the first step to the last.
#[derive(
    Clone, Copy, Debug, Deserialize, Eq, Hash, JsonSchema, Ord, PartialEq, PartialOrd, Serialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Profile {
    /// Discovery, GET and errors.
    Read,
    /// Create, update and delete.
    Crud,
    /// Lists, pages and selectors.
    Lists,
    /// Patches.
    Patch,
    /// Watches.
    Watch,
    /// The subresources status and scale.
    Status,
    /// Custom resources and their schemas.
    Crds,
    /// Server-side apply.
    Apply,
    /// Streams of pods.
    Streams,
}

impl Profile {
    /// From the first to the last.
    pub const ALL: [Self; 9] = [
        Self::Read,
        Self::Crud,
        Self::Lists,
        Self::Patch,
        Self::Watch,
        Self::Status,
        Self::Crds,
        Self::Apply,
        Self::Streams,
    ];

    /// Returns the name for the command line and reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Crud => "crud",
            Self::Lists => "lists",
            Self::Patch => "patch",
            Self::Watch => "watch",
            Self::Status => "status",
            Self::Crds => "crds",
            Self::Apply => "apply",
            Self::Streams => "streams",
        }
    }

    /// Returns the profile with a name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|profile| profile.name() == name)
    }

    /// Returns one sentence: what clients can do with a server that has the profile.
    pub fn summary(self) -> &'static str {
        match self {
            Self::Read => "Clients find resources, get objects, and understand errors",
            Self::Crud => "Clients create, update and delete objects, without lost updates",
            Self::Lists => "Clients list objects, in pages, by labels and by fields",
            Self::Patch => "Clients change parts of objects with the three patch types",
            Self::Watch => "Controllers watch objects and miss no change",
            Self::Status => "Controllers report status and scale through subresources",
            Self::Crds => "Users add resources, which the server validates by their schemas",
            Self::Apply => "Several writers own fields of one object with server-side apply",
            Self::Streams => "Users run commands, read logs and forward ports of pods",
        }
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The cases of one profile.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawProfile {
    /// The profile.
    profile: Profile,
    /// Areas whose cases belong to the profile, unless another profile names them in `cases`.
    #[serde(default)]
    areas: Vec<Located<String>>,
    /// Globs over the ids of single cases. They take precedence over areas.
    #[serde(default)]
    cases: Vec<Located<String>>,
}

/// The shape of a file: profiles in their order.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(title = "kubeproof profiles")]
pub(crate) struct RawProfiles(Vec<RawProfile>);

/// Which case belongs to which profile.
#[derive(Clone, Debug, Default)]
pub(crate) struct Profiles {
    areas: Vec<Entry<String>>,
    globs: Vec<Entry<GlobMatcher>>,
}

/// A line of the file.
#[derive(Clone, Debug)]
struct Entry<T> {
    profile: Profile,
    cases: T,
    source: Source,
    place: Range<usize>,
}

impl<T> Entry<T> {
    fn error(&self, code: &'static str, message: String) -> Diagnostic {
        Diagnostic::new(&self.source, self.place.clone(), code, message)
    }
}

impl Profiles {
    /// Adds the entries of a file.
    pub(crate) fn add(&mut self, source: &Source, raw: RawProfiles) -> Result<(), Vec<Diagnostic>> {
        let mut errors = Vec::new();
        for RawProfile { profile, areas, cases } in raw.0 {
            self.areas.extend(areas.into_iter().map(|Located { value, place }| Entry {
                profile,
                cases: value,
                source: source.clone(),
                place,
            }));
            for Located { value, place } in cases {
                match Glob::new(&value) {
                    Ok(glob) => self.globs.push(Entry {
                        profile,
                        cases: glob.compile_matcher(),
                        source: source.clone(),
                        place,
                    }),
                    Err(error) => {
                        let message = format!("`{value}` is not a glob: {}", error.kind());
                        errors.push(Diagnostic::new(source, place, "malformed-pattern", message));
                    }
                }
            }
        }
        if errors.is_empty() { Ok(()) } else { Err(errors) }
    }

    /// Returns the profile of a case, or an error if there are two.
    pub(crate) fn of(&self, id: &str) -> Result<Option<Profile>, Diagnostic> {
        let found = only(id, self.globs.iter().filter(|entry| entry.cases.is_match(id)))?;
        if found.is_some() {
            return Ok(found);
        }
        let area = id.split_once('/').map_or(id, |(area, _)| area);
        only(id, self.areas.iter().filter(|entry| entry.cases == area))
    }

    /// Returns the cases without a profile, and the entries without a case.
    pub(crate) fn gaps(&self, ids: &BTreeSet<&str>) -> Diagnostics {
        let mut errors = Diagnostics::default();
        let Some(file) = self.areas.first().map(|entry| &entry.source) else { return errors };
        let without = ids.iter().filter(|id| matches!(self.of(id), Ok(None)));
        errors.extend(without.map(|id| {
            let message = format!("`{id}` belongs to no profile");
            Diagnostic::new(file, 0..0, "no-profile", message)
                .help("add its area to `areas`, or the case to `cases`")
        }));
        let areas: BTreeSet<&str> =
            ids.iter().filter_map(|id| Some(id.split_once('/')?.0)).collect();
        errors.extend(
            self.areas
                .iter()
                .filter(|entry| !areas.contains(entry.cases.as_str()))
                .map(|entry| entry.error("no-case", format!("no area is `{}`", entry.cases))),
        );
        errors.extend(
            self.globs.iter().filter(|entry| !ids.iter().any(|id| entry.cases.is_match(id))).map(
                |entry| {
                    let glob = entry.cases.glob();
                    entry.error("no-case", format!("no case matches `{glob}`"))
                },
            ),
        );
        errors
    }
}

/// Returns the profile of all entries.
fn only<'a, T: 'a>(
    id: &str,
    mut entries: impl Iterator<Item = &'a Entry<T>>,
) -> Result<Option<Profile>, Diagnostic> {
    let Some(first) = entries.next() else { return Ok(None) };
    match entries.find(|entry| entry.profile != first.profile) {
        None => Ok(Some(first.profile)),
        Some(other) => {
            let message = format!(
                "`{id}` belongs to two profiles, `{}` and `{}`",
                first.profile, other.profile
            );
            Err(other.error("duplicate", message).help("name the case in one of them"))
        }
    }
}
