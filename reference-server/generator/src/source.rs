//! The files of a checkout of Kubernetes.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

/// A checkout of Kubernetes.
#[derive(Debug)]
pub(crate) struct Source {
    root: PathBuf,
}

impl Source {
    pub(crate) fn new(root: PathBuf) -> Self {
        Self { root }
    }

    /// Returns the text of a file.
    pub(crate) fn read(&self, path: impl AsRef<Path>) -> anyhow::Result<String> {
        let path = self.root.join(path);
        fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
    }

    /// Returns the paths of the files in a directory, in order.
    pub(crate) fn files(&self, directory: impl AsRef<Path>) -> anyhow::Result<Vec<PathBuf>> {
        let directory = directory.as_ref();
        let full = self.root.join(directory);
        let entries =
            fs::read_dir(&full).with_context(|| format!("cannot read {}", full.display()))?;
        let mut paths = Vec::new();
        for entry in entries {
            paths.push(directory.join(entry?.file_name()));
        }
        paths.sort();
        Ok(paths)
    }
}

/// Returns the directory of a package: `staging/src/k8s.io/api/core/v1` of `io.k8s.api.core.v1`.
pub(crate) fn directory(package: &str) -> PathBuf {
    let below = package.strip_prefix("io.k8s.").unwrap_or(package);
    Path::new("staging/src/k8s.io").join(below.replace('.', "/"))
}

/// Returns the published name of a package or message of a `.proto` file.
pub(crate) fn published_name(name: &str) -> String {
    let name = name.trim_start_matches('.').replace('_', "-");
    name.strip_prefix("k8s.io.").map_or(name.clone(), |rest| format!("io.k8s.{rest}"))
}

/// Returns whether a version is stable, so that a server serves it by default.
pub(crate) fn is_stable(version: &str) -> bool {
    !version.contains("alpha") && !version.contains("beta")
}
