//! Atomic writes: a file is either complete or absent, so that CI never reads half a report.

use std::fs;
use std::io::{self, Write as _};
use std::path::Path;

use crate::report::ReportError;

/// Writes a temporary file and renames it to `path`. Creates missing directories.
pub fn write(path: &Path, content: &[u8]) -> Result<(), ReportError> {
    write_and_rename(path, content)
        .map_err(|source| ReportError::Write { path: path.to_owned(), source })
}

/// Like [`write()`], and makes the file executable.
pub fn write_script(path: &Path, content: &[u8]) -> Result<(), ReportError> {
    write(path, content)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        fs::set_permissions(path, fs::Permissions::from_mode(0o755))
            .map_err(|source| ReportError::Write { path: path.to_owned(), source })?;
    }
    Ok(())
}

/// Checks that a file can be written to this path. A run calls this before its first request.
pub fn check_writable(path: &Path) -> Result<(), ReportError> {
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

fn write_and_rename(path: &Path, content: &[u8]) -> io::Result<()> {
    if is_special(path) {
        return fs::OpenOptions::new().write(true).open(path)?.write_all(content);
    }
    let parent = parent(path);
    fs::create_dir_all(parent)?;
    let mut builder = tempfile::Builder::new();
    make_readable(&mut builder);
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

/// A device or a pipe (`/dev/stdout`, a process substitution) can be written to but not renamed.
fn is_special(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|meta| !meta.is_file())
}

/// Temporary files are private by default. Reports get the usual mode, limited by the umask.
fn make_readable(builder: &mut tempfile::Builder<'_, '_>) {
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
    fn a_report_replaces_an_older_one_and_missing_directories_are_created() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("a/b/report.json");
        write(&path, b"old, and longer").expect("written");
        write(&path, b"new").expect("written again");
        assert_eq!(fs::read(&path).expect("read"), b"new");
        let left: Vec<_> =
            fs::read_dir(path.parent().expect("a parent")).expect("listed").collect();
        assert_eq!(left.len(), 1, "a temporary file is left: {left:?}");
    }

    #[test]
    fn a_path_that_is_not_writable_is_an_error_before_the_run() {
        let dir = tempfile::tempdir().expect("a directory");
        let error = check_writable(dir.path()).expect_err("a directory is not a file");
        assert!(error.to_string().contains("it is a directory"), "{error}");
        let file = dir.path().join("file");
        fs::write(&file, "").expect("written");
        check_writable(&file.join("below.json")).expect_err("a file is not a directory");
    }
}
