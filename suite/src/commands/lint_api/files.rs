//! Reads the schemas of files, directories and standard input.

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use kubeproof_harness::schema::{Manifest, ManifestError, read};

use crate::error::Error;

/// Extensions of files that can contain schemas.
const EXTENSIONS: [&str; 3] = ["yaml", "yml", "json"];

pub(super) fn read_all(files: &[PathBuf]) -> Result<Vec<Manifest>, Error> {
    let mut found = Vec::new();
    for file in files {
        if file.as_os_str() == "-" {
            found.extend(read_stdin(file)?);
        } else if file.is_dir() {
            found.extend(read_directory(file)?);
        } else {
            found.extend(read_file(file)?);
        }
    }
    Ok(found)
}

fn read_stdin(file: &Path) -> Result<Vec<Manifest>, Error> {
    let mut text = String::new();
    io::stdin().read_to_string(&mut text).map_err(|source| unreadable(file, source))?;
    Ok(read("stdin", &text)?)
}

fn read_directory(directory: &Path) -> Result<Vec<Manifest>, Error> {
    let mut found = Vec::new();
    for path in files_below(directory)? {
        match read_file(&path) {
            // A directory may contain files of other kinds, such as templates of Helm.
            Err(Error::Manifest(ManifestError::Nothing { .. })) => {}
            Err(error) if is_unparsable(&error) => {
                // If standard error is closed, the results must suffice.
                let _ = writeln!(io::stderr(), "warning: skipped a file that is no YAML: {error}");
            }
            manifests => found.extend(manifests?),
        }
    }
    if found.is_empty() {
        return Err(Error::NothingToLint(directory.to_owned()));
    }
    Ok(found)
}

/// Returns true if a file is neither text nor YAML nor JSON.
fn is_unparsable(error: &Error) -> bool {
    match error {
        Error::Manifest(ManifestError::Syntax(..)) => true,
        Error::Read { source, .. } => source.kind() == io::ErrorKind::InvalidData,
        _ => false,
    }
}

fn read_file(path: &Path) -> Result<Vec<Manifest>, Error> {
    let text = fs::read_to_string(path).map_err(|source| unreadable(path, source))?;
    Ok(read(&path.to_string_lossy(), &text)?)
}

/// Returns the sorted files below a directory that can contain schemas. Hidden files and symbolic
/// links are left out.
fn files_below(directory: &Path) -> Result<Vec<PathBuf>, Error> {
    let mut files = Vec::new();
    let mut open = vec![directory.to_owned()];
    while let Some(directory) = open.pop() {
        let entries = fs::read_dir(&directory).and_then(Iterator::collect::<Result<Vec<_>, _>>);
        for entry in entries.map_err(|source| unreadable(&directory, source))? {
            let entry: fs::DirEntry = entry;
            let path = entry.path();
            let file_type = entry.file_type().map_err(|source| unreadable(&path, source))?;
            let extension = path.extension().and_then(|extension| extension.to_str());
            let is_schema = extension.is_some_and(|extension| EXTENSIONS.contains(&extension));
            if entry.file_name().to_string_lossy().starts_with('.') {
                continue;
            }
            if file_type.is_dir() {
                open.push(path);
            } else if file_type.is_file() && is_schema {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}

fn unreadable(path: &Path, source: io::Error) -> Error {
    Error::Read { path: path.to_owned(), source }
}
