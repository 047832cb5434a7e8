//! Files that are there whole or not at all, so that a CI never reads half a report.

use std::fs;
use std::io::{self, Write as _};
use std::path::Path;

use crate::ReportError;

/// Writes a file beside its place and moves it there; makes missing directories.
pub fn write(path: &Path, content: &[u8]) -> Result<(), ReportError> {
    put(path, content).map_err(|source| ReportError::Write { path: path.to_owned(), source })
}

/// Makes sure, before anything has run, that a file can be written here.
pub fn prepare(path: &Path) -> Result<(), ReportError> {
    let attempt = || {
        if path.is_dir() {
            return Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a directory"));
        }
        if is_special(path) {
            return Ok(());
        }
        let parent = parent(path);
        fs::create_dir_all(parent)?;
        tempfile::NamedTempFile::new_in(parent).map(drop)
    };
    attempt().map_err(|source| ReportError::Write { path: path.to_owned(), source })
}

fn put(path: &Path, content: &[u8]) -> io::Result<()> {
    if is_special(path) {
        return fs::OpenOptions::new().write(true).open(path)?.write_all(content);
    }
    let parent = parent(path);
    fs::create_dir_all(parent)?;
    let mut builder = tempfile::Builder::new();
    share(&mut builder);
    let mut file = builder.tempfile_in(parent)?;
    file.write_all(content)?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// A device or a pipe (`/dev/stdout`, a process substitution) cannot be replaced, only written to.
fn is_special(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|meta| !meta.is_file())
}

/// Temporary files are private by default, reports are not; the umask still applies.
fn share(builder: &mut tempfile::Builder<'_, '_>) {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    #[cfg(not(unix))]
    let _ = builder;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_replaces_the_old_one_and_its_directories_are_made() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("a/b/report.json");
        write(&path, b"old, and longer").expect("written");
        write(&path, b"new").expect("written again");
        assert_eq!(fs::read(&path).expect("read"), b"new");
        let left: Vec<_> = fs::read_dir(path.parent().expect("a parent")).expect("listed").collect();
        assert_eq!(left.len(), 1, "nothing temporary stays: {left:?}");
    }

    #[test]
    fn a_place_that_cannot_hold_a_file_is_known_before_the_run() {
        let dir = tempfile::tempdir().expect("a directory");
        let error = prepare(dir.path()).expect_err("a directory is no file");
        assert!(error.to_string().contains("it is a directory"), "{error}");
        let file = dir.path().join("file");
        fs::write(&file, "").expect("written");
        prepare(&file.join("below.json")).expect_err("a file has nothing below it");
    }
}
