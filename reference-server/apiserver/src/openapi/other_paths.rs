//! The paths that do not belong to a resource: discovery, the version and the keys of tokens.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};

use super::common::VERSION_INFO;
use super::definitions::Dialect;
use super::naming::{capital, of_group, of_tag, tag};
use super::operations::{Content, Id, Operation, PathItem};
use crate::discovery::Resource;

use kubeproof_apimachinery::serializer::protobuf;

const CONFIGURATION: &str = ".well-known/openid-configuration";
const KEYS: &str = "openid/v1/jwks";
const VERSION: &str = "version";
const JSON: &str = "application/json";

/// Returns the documents below `/openapi/v3/` that have no resources. Groups of custom resources
/// have none.
pub(super) fn documents(resources: &[Arc<Resource>]) -> BTreeSet<String> {
    let groups: BTreeSet<&str> = resources
        .iter()
        .filter(|resource| !resource.custom)
        .map(|resource| resource.group.as_str())
        .collect();
    let fixed = ["apis", CONFIGURATION, KEYS, VERSION].map(str::to_owned);
    let of_groups = groups.iter().map(|group| match *group {
        "" => "api".to_owned(),
        group => format!("apis/{group}"),
    });
    fixed.into_iter().chain(of_groups).collect()
}

/// Returns the path that every document of this name has, such as `apis/apps/v1`.
pub(super) fn item(document: &str) -> Option<PathItem> {
    let parts: Vec<&str> = document.split('/').collect();
    let operation = match (document, parts.as_slice()) {
        (CONFIGURATION, _) => text("getServiceAccountIssuerOpenIDConfiguration", "WellKnown", JSON),
        (KEYS, _) => {
            text("getServiceAccountIssuerOpenIDKeyset", "openid", "application/jwk-set+json")
        }
        (VERSION, _) => {
            let mut operation = plain("getCodeVersion", VERSION);
            operation.consumes = vec![JSON];
            operation.produces = vec![JSON];
            operation.returns(&[200], Content::Definition(VERSION_INFO.to_owned()))
        }
        (_, ["api"]) => discovery("getCoreAPIVersions", "core", "APIVersions"),
        (_, ["apis"]) => discovery("getAPIVersions", "apis", "APIGroupList"),
        (_, ["apis", group]) => {
            let id = format!("get{}APIGroup", of_group(group));
            discovery(&id, &of_tag(group), "APIGroup")
        }
        (_, ["api", version]) => resources("", version),
        (_, ["apis", group, version]) => resources(group, version),
        _ => return None,
    };
    PathItem::new(format!("/{document}/"), vec![operation])
}

fn resources(group: &str, version: &str) -> Operation {
    let id = format!("get{}{}APIResources", of_group(group), capital(version));
    discovery(&id, &tag(group, version), "APIResourceList")
}

fn discovery(id: &str, tag: &str, kind: &str) -> Operation {
    let mut operation = plain(id, tag);
    operation.consumes = vec![JSON, "application/yaml", protobuf::MEDIA_TYPE];
    operation.produces.clone_from(&operation.consumes);
    let name = format!("io.k8s.apimachinery.pkg.apis.meta.v1.{kind}");
    operation.returns(&[200], Content::Definition(name))
}

fn text(id: &str, tag: &str, media_type: &'static str) -> Operation {
    let mut operation = plain(id, tag);
    operation.produces = vec![media_type];
    operation.returns(&[200], Content::Text)
}

fn plain(id: &str, tag: &str) -> Operation {
    Operation {
        id: id.to_owned(),
        tag: tag.to_owned(),
        description: "Discover the server.".to_owned(),
        ..Id::default().operation("get")
    }
}

/// Returns the definition of the document of `/version`, which has no protobuf and so no data.
pub(super) fn version_info(dialect: Dialect) -> Value {
    let required = [
        "major",
        "minor",
        "gitVersion",
        "gitCommit",
        "gitTreeState",
        "buildDate",
        "goVersion",
        "compiler",
        "platform",
    ];
    let optional =
        ["emulationMajor", "emulationMinor", "minCompatibilityMajor", "minCompatibilityMinor"];
    let mut schema = json!({"type": "object", "required": required});
    for name in required {
        schema["properties"][name] = match dialect {
            Dialect::V2 => json!({"type": "string"}),
            Dialect::V3 => json!({"type": "string", "default": ""}),
        };
    }
    for name in optional {
        schema["properties"][name] = json!({"type": "string"});
    }
    schema
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("api", "getCoreAPIVersions", "core")]
    #[case("apis", "getAPIVersions", "apis")]
    #[case("apis/node.k8s.io", "getNodeAPIGroup", "node")]
    #[case("api/v1", "getCoreV1APIResources", "core_v1")]
    #[case("apis/apps/v1", "getAppsV1APIResources", "apps_v1")]
    #[case("version", "getCodeVersion", "version")]
    #[case(KEYS, "getServiceAccountIssuerOpenIDKeyset", "openid")]
    fn documents_have_a_path(#[case] document: &str, #[case] id: &str, #[case] tag: &str) {
        let item = item(document).unwrap();
        assert_eq!(item.path, format!("/{document}/"));
        let operation = &item.operations[0];
        assert_eq!((operation.id.as_str(), operation.tag.as_str()), (id, tag));
    }

    #[test]
    fn other_documents_have_no_path() {
        assert!(item("logs").is_none());
    }
}
