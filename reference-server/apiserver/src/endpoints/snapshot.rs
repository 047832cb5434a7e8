//! Snapshots: all objects of a server in one file.
//!
//! The file has one JSON document in each line: first the format and the version of the store, then
//! each object with its table.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader};
use std::path::{Path, PathBuf};

use kubeproof_storage::{Saved, SavedObject, Store};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use kubeproof_apimachinery::serializer::json;

use crate::registry::encode;

/// The format of this file. Other formats are rejected.
const FORMAT: &str = "kubeproof.snapshot/v1";

/// The reason why a snapshot could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// The file could not be written.
    #[error("cannot write the snapshot {}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The file could not be read.
    #[error("cannot read the snapshot {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The file is no snapshot, or it is incomplete.
    #[error("{}:{line}: expected a snapshot of kubeproof: {why}", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// The number of the line, from 1.
        line: usize,
        /// What is wrong.
        why: String,
    },
}

#[derive(Deserialize, Serialize)]
struct Head {
    format: String,
    revision: u64,
    objects: usize,
}

/// Writes all objects of a store. The file appears when it is complete.
pub(crate) fn save(store: &Store, path: &Path) -> Result<(), SnapshotError> {
    let failed = |source| SnapshotError::Write { path: path.to_owned(), source };
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let mut file =
        tempfile::NamedTempFile::new_in(parent.unwrap_or(Path::new("."))).map_err(failed)?;
    write(&store.saved(), &mut io::BufWriter::new(&mut file)).map_err(failed)?;
    file.as_file().sync_all().map_err(failed)?;
    file.persist(path).map_err(|error| failed(error.error))?;
    Ok(())
}

fn write(saved: &Saved, out: &mut impl io::Write) -> io::Result<()> {
    let Saved { revision, objects } = saved;
    let head = Head { format: FORMAT.to_owned(), revision: *revision, objects: objects.len() };
    serde_json::to_writer(&mut *out, &head)?;
    for SavedObject { table, text, .. } in objects {
        out.write_all(b"\n")?;
        write!(out, r#"{{"table":{},"object":"#, Value::from(table.as_str()))?;
        out.write_all(text)?;
        out.write_all(b"}")?;
    }
    out.write_all(b"\n")?;
    out.flush()
}

/// Reads a snapshot.
pub(crate) fn load(path: &Path) -> Result<Saved, SnapshotError> {
    let failed = |source| SnapshotError::Read { path: path.to_owned(), source };
    let file = File::open(path).map_err(failed)?;
    let mut saved = Saved::default();
    let mut expected = 0;
    let mut lines = 0;
    for (index, line) in BufReader::new(file).lines().enumerate() {
        let line = line.map_err(failed)?;
        let wrong =
            |why: String| SnapshotError::Format { path: path.to_owned(), line: index + 1, why };
        lines = index + 1;
        if index > 0 {
            saved.objects.push(parse(&line).map_err(wrong)?);
            continue;
        }
        let head: Head = serde_json::from_str(&line).map_err(|error| wrong(error.to_string()))?;
        if head.format != FORMAT {
            return Err(wrong(format!("format {:?}, expected {FORMAT:?}", head.format)));
        }
        saved.revision = head.revision;
        expected = head.objects;
    }
    let found = saved.objects.len();
    if lines > 0 && found == expected {
        return Ok(saved);
    }
    let why = format!("{found} objects, expected {expected}");
    Err(SnapshotError::Format { path: path.to_owned(), line: lines, why })
}

fn parse(line: &str) -> Result<SavedObject, String> {
    let line = json::parse(line.as_bytes()).map_err(|error| error.to_string())?;
    let (Some(table), object) = (line["table"].as_str(), &line["object"]) else {
        return Err("expected a table".to_owned());
    };
    let text = object.to_string().into_bytes();
    Ok(SavedObject { table: table.to_owned(), key: encode::key(object), text })
}
