//! Writes the data of the built-in types from the published files of Kubernetes.
//!
//! The source is a checkout of Kubernetes. It needs `api/openapi-spec`, `api/discovery`, and the
//! files `types*.go` and `generated.proto` below `staging/src/k8s.io`. The output directory gets
//! one file for each package, and `resources.txt`.

mod assemble;
mod discovery;
mod golang;
mod openapi;
mod proto;
mod source;
mod write;

use std::collections::BTreeMap;
use std::path::PathBuf;

use kubeproof_apimachinery::schema::definitions::Definitions;

use self::source::Source;

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
    files.insert("resources.txt".to_owned(), write::resources(&discovery::read(source)?));
    Ok(files)
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
