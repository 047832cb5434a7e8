//! A log file that the server replaces when it is too large.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use jiff::Timestamp;

use crate::config::audit::Rotation;

/// A file with a limited size. Its backups have the names that kube-apiserver gives them, such as
/// `audit-2026-01-31T12-00-00.000.log`.
#[derive(Debug)]
pub(super) struct LogFile {
    path: PathBuf,
    rotation: Rotation,
    file: File,
    size: u64,
}

impl LogFile {
    /// Opens a file, and appends to it.
    pub(super) fn open(path: &Path, rotation: Rotation) -> io::Result<Self> {
        let file = append_to(path)?;
        let size = file.metadata()?.len();
        Ok(Self { path: path.to_owned(), rotation, file, size })
    }

    /// Renames the file, and begins a new one.
    fn rotate(&mut self) -> io::Result<()> {
        self.file.flush()?;
        let mut backup = backup_path(&self.path, Timestamp::now());
        while backup.exists() {
            backup = backup_path(&self.path, Timestamp::now());
        }
        fs::rename(&self.path, backup)?;
        self.file = append_to(&self.path)?;
        self.size = 0;
        self.remove_old()
    }

    /// Removes the backups beyond the number and the age of the options.
    fn remove_old(&self) -> io::Result<()> {
        let mut backups = backups(&self.path)?;
        backups.sort();
        let Rotation { max_backups, max_age, .. } = self.rotation;
        let excess = max_backups.map_or(0, |max| backups.len().saturating_sub(max));
        let now = SystemTime::now();
        let is_old = |path: &Path| {
            let age = fs::metadata(path).and_then(|metadata| metadata.modified());
            let age = age.ok().and_then(|time| now.duration_since(time).ok());
            max_age.zip(age).is_some_and(|(max, age)| age > max)
        };
        for (index, path) in backups.iter().enumerate() {
            if index < excess || is_old(path) {
                fs::remove_file(path)?;
            }
        }
        Ok(())
    }
}

impl Write for LogFile {
    /// Writes a whole line. It never continues in another file.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let length = line.len() as u64;
        if self.size > 0 && self.size + length > self.rotation.max_bytes {
            self.rotate()?;
        }
        self.file.write_all(line)?;
        self.size += length;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

fn append_to(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).open(path)
}

fn backup_path(path: &Path, time: Timestamp) -> PathBuf {
    let (stem, end) = name_parts(path);
    path.with_file_name(format!("{stem}-{}{end}", time.strftime("%Y-%m-%dT%H-%M-%S%.3f")))
}

/// Returns the name of a file before and after the time of a backup.
fn name_parts(path: &Path) -> (String, String) {
    let text = |part: Option<&std::ffi::OsStr>| {
        part.map(|part| part.to_string_lossy().into_owned()).unwrap_or_default()
    };
    let end = text(path.extension());
    (text(path.file_stem()), if end.is_empty() { end } else { format!(".{end}") })
}

fn backups(path: &Path) -> io::Result<Vec<PathBuf>> {
    let (stem, end) = name_parts(path);
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let entries = fs::read_dir(directory.unwrap_or_else(|| Path::new(".")))?;
    let is_backup = |path: &PathBuf| {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        let time = name.as_deref().and_then(|name| {
            name.strip_prefix(&stem)?.strip_prefix('-')?.strip_suffix(end.as_str())
        });
        time.is_some_and(|time| time.len() == "2026-01-31T12-00-00.000".len())
    };
    Ok(entries.filter_map(|entry| Some(entry.ok()?.path())).filter(is_backup).collect())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn content(path: &Path) -> String {
        fs::read_to_string(path).expect("a file")
    }

    #[test]
    fn a_full_file_becomes_a_backup() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("audit.log");
        let other = directory.path().join("audit-notes.log");
        fs::write(&other, "kept").expect("a file");
        let rotation = Rotation { max_bytes: 12, max_backups: Some(2), max_age: None };
        let mut file = LogFile::open(&path, rotation).expect("a file");
        for line in 0..5 {
            writeln_once(&mut file, &format!("line {line}"));
        }
        assert_eq!(content(&path), "line 4\n");
        let mut kept = backups(&path).expect("backups");
        kept.sort();
        let kept: Vec<String> = kept.iter().map(|path| content(path)).collect();
        assert_eq!(kept, ["line 2\n", "line 3\n"]);
        assert_eq!(content(&other), "kept");
        drop(file);
        let mut file = LogFile::open(&path, Rotation { max_bytes: 100, ..rotation }).expect("open");
        writeln_once(&mut file, "appended");
        assert_eq!(content(&path), "line 4\nappended\n");
    }

    #[test]
    fn an_old_backup_is_removed() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("audit.log");
        let old = backup_path(&path, Timestamp::UNIX_EPOCH);
        let backup = File::create(&old).expect("a backup");
        backup.set_modified(SystemTime::UNIX_EPOCH).expect("a time");
        let day = Duration::from_hours(24);
        let rotation = Rotation { max_bytes: 1, max_backups: None, max_age: Some(day) };
        let mut file = LogFile::open(&path, rotation).expect("a file");
        writeln_once(&mut file, "one");
        assert!(old.exists());
        writeln_once(&mut file, "two");
        assert!(!old.exists());
        assert_eq!(backups(&path).expect("backups").len(), 1);
    }

    fn writeln_once(file: &mut LogFile, line: &str) {
        file.write_all(format!("{line}\n").as_bytes()).expect("a line");
    }
}
