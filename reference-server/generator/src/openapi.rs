//! Reads the published OpenAPI v3 documents.

use std::collections::BTreeMap;

use serde_json::Value;

use super::source::{Source, is_stable};

/// The extension with the group, version and kind of a schema.
pub(crate) const KINDS: &str = "x-kubernetes-group-version-kind";

/// The extension with mutually exclusive fields.
pub(crate) const UNIONS: &str = "x-kubernetes-unions";

/// The published schemas by name.
pub(crate) type Schemas = BTreeMap<String, Value>;

/// Reads the documents of the stable versions, and those of discovery, which have no version.
pub(crate) fn read(source: &Source) -> anyhow::Result<Schemas> {
    let mut schemas = Schemas::new();
    for path in source.files("api/openapi-spec/v3")? {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if version(&name).is_some_and(|version| !is_stable(version)) {
            continue;
        }
        let mut document: Value = serde_json::from_str(&source.read(&path)?)?;
        if let Value::Object(found) = document["components"]["schemas"].take() {
            schemas.extend(found);
        }
    }
    Ok(schemas)
}

/// Returns `v1` of `apis__apps__v1_openapi.json`.
fn version(file: &str) -> Option<&str> {
    let path = file.strip_suffix("_openapi.json")?;
    let (_, version) = path.rsplit_once("__")?;
    let is_version = path.starts_with("api__") || path.matches("__").count() == 2;
    is_version.then_some(version)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("api__v1_openapi.json", Some("v1"))]
    #[case("apis__apps__v1_openapi.json", Some("v1"))]
    #[case("apis__resource.k8s.io__v1beta1_openapi.json", Some("v1beta1"))]
    #[case("apis__apps_openapi.json", None)]
    #[case("version_openapi.json", None)]
    fn file_names_have_versions(#[case] file: &str, #[case] expected: Option<&str>) {
        assert_eq!(version(file), expected);
    }
}
