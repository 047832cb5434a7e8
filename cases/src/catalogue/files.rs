//! The files of a catalogue, embedded and from directories.

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use include_dir::{Dir, include_dir};
use sha2::{Digest, Sha256};

use super::{FRAGMENTS, LoadError, SUBJECTS};
use crate::yaml::Source;

static EMBEDDED: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/data");

/// Returns whether a case with this id is embedded. Cases of users are not.
pub fn is_embedded_case(id: &str) -> bool {
    let path = format!("{id}.yaml");
    let is_part = path.starts_with(SUBJECTS) || path.starts_with(FRAGMENTS);
    !is_part && path.contains('/') && EMBEDDED.contains(path)
}

/// Files by their path below the directory of cases, sorted by it.
#[derive(Clone, Debug, Default)]
pub(super) struct Files(Vec<(String, Source)>);

impl Files {
    pub(super) fn embedded() -> Self {
        let mut files = Self::default();
        files.collect(&EMBEDDED);
        files
    }

    fn collect(&mut self, directory: &Dir<'static>) {
        for file in directory.files() {
            let path = file.path().to_string_lossy().replace('\\', "/");
            if let (true, Some(text)) = (is_yaml(&path), file.contents_utf8()) {
                let name = format!("cases/data/{path}");
                self.add(&path, Source::new(name, text));
            }
        }
        directory.dirs().for_each(|inner| self.collect(inner));
    }

    /// Adds a file behind those with its path.
    pub(super) fn add(&mut self, path: &str, source: Source) {
        let index = self.0.partition_point(|(other, _)| other.as_str() <= path);
        self.0.insert(index, (path.to_owned(), source));
    }

    /// Replaces the files with this path.
    pub(super) fn replace(&mut self, path: &str, source: Source) {
        self.0.retain(|(other, _)| other != path);
        self.add(path, source);
    }

    pub(super) fn retain(&mut self, keep: impl Fn(&str) -> bool) {
        self.0.retain(|(path, _)| keep(path));
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &Source)> {
        self.0.iter().map(|(path, source)| (path.as_str(), source))
    }

    /// The file with a path that was added last.
    pub(super) fn last(&self, path: &str) -> Option<&Source> {
        self.0.iter().rev().find(|(other, _)| other == path).map(|(_, source)| source)
    }

    /// `sha256:` and the digest over the paths and contents.
    pub(super) fn digest(&self) -> String {
        let mut hash = Sha256::new();
        for (path, source) in &self.0 {
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
}

/// Passes the path, the name and the text of each file to `add`.
pub(super) fn read_directory(
    directory: &Path,
    prefix: &str,
    add: &mut impl FnMut(String, Arc<str>, String),
) -> Result<(), LoadError> {
    let unreadable =
        |path: &Path, source| LoadError::Unreadable { path: path.display().to_string(), source };
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
