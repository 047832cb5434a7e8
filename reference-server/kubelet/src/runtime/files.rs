//! The file system of a container: a bounded tree in memory.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::{Bytes, BytesMut};
use jiff::Timestamp;

/// The most bytes in all files of a container.
pub(super) const CAPACITY: usize = 64 * 1024 * 1024;

/// The most files and directories of a container.
const MAX_NODES: usize = 10_000;

/// The directories that exist in every container.
const INITIAL: [&str; 5] = ["/", "/bin", "/etc", "/home", "/tmp"];

/// The files of a container by absolute path.
pub(super) struct Files(Mutex<BTreeMap<String, Node>>);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Node {
    pub(super) kind: Kind,
    /// Permission bits.
    pub(super) mode: u32,
    /// Seconds since 1970.
    pub(super) modified: i64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Directory,
    File(BytesMut),
}

/// Why an operation failed, in the words of the C library.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum FileError {
    #[error("No such file or directory")]
    NotFound,
    #[error("Is a directory")]
    IsDirectory,
    #[error("Not a directory")]
    NotDirectory,
    #[error("File exists")]
    Exists,
    #[error("Directory not empty")]
    NotEmpty,
    #[error("No space left on device")]
    Full,
}

impl Files {
    pub(super) fn new() -> Self {
        let files = Self(Mutex::new(BTreeMap::new()));
        for path in INITIAL {
            files.lock().insert(path.to_owned(), Node::directory());
        }
        files
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Node>> {
        // Each change is one insertion or removal, so a panic leaves the tree consistent.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn get(&self, path: &str) -> Option<Node> {
        self.lock().get(path).cloned()
    }

    pub(super) fn is_directory(&self, path: &str) -> bool {
        self.lock().get(path).is_some_and(Node::is_directory)
    }

    pub(super) fn read(&self, path: &str) -> Result<Bytes, FileError> {
        match self.lock().get(path).map(|node| &node.kind) {
            Some(Kind::File(content)) => Ok(Bytes::copy_from_slice(content)),
            Some(Kind::Directory) => Err(FileError::IsDirectory),
            None => Err(FileError::NotFound),
        }
    }

    /// Creates an empty file, or empties an existing one.
    pub(super) fn truncate(&self, path: &str) -> Result<(), FileError> {
        self.put(path, Node::file(BytesMut::new()))
    }

    /// Inserts a node. It may replace a node of the same kind.
    pub(super) fn put(&self, path: &str, node: Node) -> Result<(), FileError> {
        let mut nodes = self.lock();
        match nodes.get(parent(path)) {
            Some(parent) if parent.is_directory() => {}
            Some(_) => return Err(FileError::NotDirectory),
            None => return Err(FileError::NotFound),
        }
        match nodes.get(path) {
            Some(old) if old.is_directory() && !node.is_directory() => {
                return Err(FileError::IsDirectory);
            }
            Some(old) if !old.is_directory() && node.is_directory() => {
                return Err(FileError::Exists);
            }
            _ => {}
        }
        if nodes.len() >= MAX_NODES || used(&nodes) + node.len() > CAPACITY {
            return Err(FileError::Full);
        }
        nodes.insert(path.to_owned(), node);
        Ok(())
    }

    /// Creates a directory and its parents.
    pub(super) fn make_directories(&self, path: &str) -> Result<(), FileError> {
        let ends = path.match_indices('/').skip(1).map(|(end, _)| end).chain([path.len()]);
        for end in ends {
            if !self.is_directory(&path[..end]) {
                self.put(&path[..end], Node::directory())?;
            }
        }
        Ok(())
    }

    pub(super) fn append(&self, path: &str, bytes: &[u8]) -> Result<(), FileError> {
        let mut nodes = self.lock();
        if used(&nodes) + bytes.len() > CAPACITY {
            return Err(FileError::Full);
        }
        let node = nodes.get_mut(path).ok_or(FileError::NotFound)?;
        node.modified = Timestamp::now().as_second();
        match &mut node.kind {
            Kind::File(content) => content.extend_from_slice(bytes),
            Kind::Directory => return Err(FileError::IsDirectory),
        }
        Ok(())
    }

    /// Removes a file or a directory. A directory with content needs `recursive`.
    pub(super) fn remove(&self, path: &str, recursive: bool) -> Result<(), FileError> {
        let below = self.below(path);
        let mut nodes = self.lock();
        match nodes.get(path) {
            None => return Err(FileError::NotFound),
            Some(node) if node.is_directory() && !recursive && !below.is_empty() => {
                return Err(FileError::NotEmpty);
            }
            Some(_) => {}
        }
        for path in below {
            nodes.remove(&path);
        }
        nodes.remove(path);
        Ok(())
    }

    /// Returns the paths of all nodes below a directory, parents first.
    pub(super) fn below(&self, path: &str) -> Vec<String> {
        let prefix = if path == "/" { path.to_owned() } else { format!("{path}/") };
        let nodes = self.lock();
        let inside =
            nodes.range(prefix.clone()..).take_while(|(path, _)| path.starts_with(&prefix));
        inside.map(|(path, _)| path.clone()).filter(|path| *path != prefix).collect()
    }
}

impl Node {
    pub(super) fn directory() -> Self {
        Self { kind: Kind::Directory, mode: 0o755, modified: Timestamp::now().as_second() }
    }

    pub(super) fn file(content: BytesMut) -> Self {
        Self { kind: Kind::File(content), mode: 0o644, modified: Timestamp::now().as_second() }
    }

    pub(super) fn is_directory(&self) -> bool {
        matches!(self.kind, Kind::Directory)
    }

    pub(super) fn len(&self) -> usize {
        match &self.kind {
            Kind::Directory => 0,
            Kind::File(content) => content.len(),
        }
    }
}

fn used(nodes: &BTreeMap<String, Node>) -> usize {
    nodes.values().map(Node::len).sum()
}

/// Returns the parent of a path. The parent of `/` is `/`.
fn parent(path: &str) -> &str {
    match path.rsplit_once('/') {
        Some(("", _)) | None => "/",
        Some((parent, _)) => parent,
    }
}

/// Returns `path` as an absolute path, relative to the directory `from`, without `.` and `..`.
pub(super) fn resolve(from: &str, path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    let base = if path.starts_with('/') { "" } else { from };
    for part in base.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("/home", "a", "/home/a")]
    #[case("/home", "/a//b/", "/a/b")]
    #[case("/home", "../../..", "/")]
    #[case("/", "./a/../b", "/b")]
    fn paths_become_absolute(#[case] from: &str, #[case] path: &str, #[case] absolute: &str) {
        assert_eq!(resolve(from, path), absolute);
    }

    #[test]
    fn directories_are_created_with_parents_and_removed_with_content() {
        let files = Files::new();
        files.make_directories("/a/b").unwrap();
        files.truncate("/a/b/f").unwrap();
        files.append("/a/b/f", b"x").unwrap();
        assert_eq!(files.below("/a"), ["/a/b", "/a/b/f"]);
        assert_eq!(files.remove("/a", false), Err(FileError::NotEmpty));
        files.remove("/a", true).unwrap();
        assert_eq!(files.read("/a/b/f"), Err(FileError::NotFound));
    }

    #[test]
    fn a_file_needs_a_parent_and_cannot_replace_a_directory() {
        let files = Files::new();
        assert_eq!(files.truncate("/no/file"), Err(FileError::NotFound));
        assert_eq!(files.truncate("/tmp"), Err(FileError::IsDirectory));
        files.truncate("/tmp/f").unwrap();
        assert_eq!(files.truncate("/tmp/f/g"), Err(FileError::NotDirectory));
    }

    #[test]
    fn the_file_system_is_bounded() {
        let files = Files::new();
        files.truncate("/tmp/f").unwrap();
        let block = vec![0; CAPACITY / 4];
        let written = (0..8).take_while(|_| files.append("/tmp/f", &block).is_ok()).count();
        assert_eq!(written, 4);
    }
}
