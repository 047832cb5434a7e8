//! Files of volumes that replace each other.

use serde_json::Value;

use super::{list, text};

/// A file of a volume, and its source in a projected volume.
#[derive(PartialEq)]
struct File {
    path: String,
    source: String,
}

impl File {
    fn show(&self) -> String {
        match self.source.as_str() {
            "" => format!("{:?}", self.path),
            source => format!("{:?} ({source})", self.path),
        }
    }

    /// Reports whether one of the files is the other or in a directory with its name.
    fn meets(&self, other: &Self) -> bool {
        let (own, other) = (format!("{}/", self.path), format!("{}/", other.path));
        own.len() > 1 && other.len() > 1 && (own.starts_with(&other) || other.starts_with(&own))
    }
}

/// Returns the warnings about the files in volumes.
pub(super) fn overlapping(volumes: &[Value]) -> Vec<String> {
    let mut warnings = Vec::new();
    for volume in volumes {
        let name = text(volume, "name");
        if volume["projected"].is_object() {
            let sources = list(&volume["projected"]["sources"]).iter();
            let is_empty =
                |source: &Value| source.as_object().is_some_and(serde_json::Map::is_empty);
            let empty = sources.clone().filter(|source| is_empty(source));
            warnings.extend(
                empty.map(|_| format!("volume {name:?} (Projected) has no sources provided")),
            );
            let files: Vec<File> = sources.flat_map(|source| files(source, "name", true)).collect();
            warnings.extend(collisions(&files, name, "Projected"));
            continue;
        }
        let owner = owner(volume, "secretName");
        warnings.extend(collisions(&files(volume, "secretName", false), name, &owner));
    }
    warnings
}

fn collisions(files: &[File], volume: &str, owner: &str) -> Vec<String> {
    let mut warnings = Vec::new();
    for (index, file) in files.iter().enumerate() {
        for other in files[..index].iter().filter(|other| file.meets(other)) {
            let (file, other) = (file.show(), other.show());
            warnings.push(format!(
                "volume {volume:?} ({owner}): overlapping paths: {file} with {other}"
            ));
        }
    }
    warnings
}

/// Returns the files that a volume or a source lists. `secret` is the field with the name of a
/// secret.
fn files(source: &Value, secret: &str, is_projected: bool) -> Vec<File> {
    let owner = if is_projected { owner(source, secret) } else { String::new() };
    let file =
        |path: &str| File { path: path.trim_end_matches('/').to_owned(), source: owner.clone() };
    let mut files = Vec::new();
    for kind in ["configMap", "secret", "downwardAPI"] {
        files.extend(list(&source[kind]["items"]).iter().map(|item| file(text(item, "path"))));
    }
    if source["serviceAccountToken"].is_object() {
        files.push(file(text(&source["serviceAccountToken"], "path")));
    }
    files
}

fn owner(source: &Value, secret: &str) -> String {
    let name = |kind: &str, field: &str| text(&source[kind], field).to_owned();
    if source["configMap"].is_object() {
        format!("ConfigMap {:?}", name("configMap", "name"))
    } else if source["secret"].is_object() {
        format!("Secret {:?}", name("secret", secret))
    } else if source["downwardAPI"].is_object() {
        "DownwardAPI".to_owned()
    } else {
        "ServiceAccountToken".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case(json!({"configMap": {"name": "c", "items": [{"path": "a"}, {"path": "b"}]}}), &[])]
    #[case(
        json!({"configMap": {"name": "c", "items": [{"path": "a"}, {"path": "a/b"}]}}),
        &["volume \"v\" (ConfigMap \"c\"): overlapping paths: \"a/b\" with \"a\""]
    )]
    #[case(
        json!({"secret": {"secretName": "s", "items": [{"path": "a/"}, {"path": "a"}]}}),
        &["volume \"v\" (Secret \"s\"): overlapping paths: \"a\" with \"a\""]
    )]
    #[case(
        json!({"projected": {"sources": [
            {}, {"secret": {"name": "s", "items": [{"path": "t"}]}},
            {"serviceAccountToken": {"path": "t"}},
        ]}}),
        &["volume \"v\" (Projected) has no sources provided",
          "volume \"v\" (Projected): overlapping paths: \"t\" (ServiceAccountToken) with \"t\" \
           (Secret \"s\")"]
    )]
    fn files_overlap(#[case] mut volume: Value, #[case] expected: &[&str]) {
        volume["name"] = json!("v");
        assert_eq!(overlapping(&[volume]), expected);
    }
}
