//! Writes the data of the built-in types from the published files of Kubernetes.
//!
//! The source is a checkout of Kubernetes. It needs `api/openapi-spec`, `api/discovery`, and the
//! files `types*.go` and `generated.proto` below `staging/src/k8s.io`. The output directory gets
//! one file for each package, and `resources.txt`. For a further version, the files have only the
//! changes.

mod assemble;
mod changes;
mod discovery;
mod golang;
mod openapi;
mod proto;
mod source;
mod write;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use kubeproof_apimachinery::schema::definitions::Definitions;

use self::source::Source;

/// The file with the resources.
const RESOURCES: &str = "resources.txt";

/// Returns the texts of the data files by name, from a checkout of Kubernetes.
pub fn generate(checkout: PathBuf) -> anyhow::Result<BTreeMap<String, String>> {
    let source = &Source::new(checkout);
    let published = openapi::read(source)?;
    let packages = assemble::packages(source, &published)?;
    let mut files: BTreeMap<_, _> = packages
        .iter()
        .map(|package| (write::file_name(package), write::package(package)))
        .collect();
    check(&files)?;
    files.insert(RESOURCES.to_owned(), write::resources(&discovery::read(source)?));
    Ok(files)
}

/// Returns the texts of the data files that differ from those of another version, which are in the
/// directory `base`. The files have only the definitions that differ.
pub fn changes(checkout: PathBuf, base: &Path) -> anyhow::Result<BTreeMap<String, String>> {
    let mut changes = BTreeMap::new();
    for (name, text) in generate(checkout)? {
        let path = base.join(&name);
        let old =
            fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let change = if name == RESOURCES {
            Some(text).filter(|text| *text != old)
        } else {
            changes::between(&old, &text)
        };
        changes.extend(change.map(|text| (name, text)));
    }
    Ok(changes)
}

/// Parses the definitions, so that no broken file is written.
fn check(files: &BTreeMap<String, String>) -> anyhow::Result<()> {
    let files: Vec<(&'static str, &'static str)> =
        files.iter().map(|(name, text)| (leak(name), leak(text))).collect();
    Definitions::parse(&files)?;
    Ok(())
}

/// The parser needs static texts. The program ends soon.
fn leak(text: &str) -> &'static str {
    Box::leak(text.to_owned().into_boxed_str())
}

#[cfg(test)]
mod tests;
