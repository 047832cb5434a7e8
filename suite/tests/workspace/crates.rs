//! The crates of the workspace and their dependencies.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// A crate of the workspace.
pub(crate) struct Crate {
    /// The directory, relative to the workspace.
    pub(crate) directory: String,
    /// The directories of the crates of the workspace that it depends on, except in tests.
    pub(crate) dependencies: Vec<String>,
}

/// Returns the crates of the workspace.
pub(crate) fn workspace() -> Vec<Crate> {
    let metadata = metadata();
    let root = Path::new(metadata["workspace_root"].as_str().expect("a root"));
    let packages = metadata["packages"].as_array().expect("packages");
    packages
        .iter()
        .map(|package| {
            let manifest = Path::new(package["manifest_path"].as_str().expect("a manifest"));
            let dependencies = package["dependencies"].as_array().expect("dependencies").iter();
            let normal = dependencies.filter(|dependency| dependency["kind"].is_null());
            let local = normal.filter_map(|dependency| dependency["path"].as_str());
            Crate {
                directory: relative(manifest.parent().expect("a directory"), root),
                dependencies: local.map(|path| relative(Path::new(path), root)).collect(),
            }
        })
        .collect()
}

/// Returns the output of `cargo metadata`.
pub(crate) fn metadata() -> Value {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn relative(directory: &Path, root: &Path) -> String {
    let relative = directory.strip_prefix(root).expect("a directory of the workspace");
    relative.to_str().expect("UTF-8").replace('\\', "/")
}
