//! The keys and values of etcd, as kube-apiserver has them.
//!
//! kube-apiserver stores built-in types in protobuf, and custom resources, definitions and API
//! services in JSON. It reads both encodings of each type, and so does this server.

use std::collections::HashMap;
use std::sync::Arc;

use kubeproof_api::Version;
use kubeproof_apimachinery::object::Object as _;
use kubeproof_apimachinery::serializer::{json, protobuf};
use kubeproof_storage::{Change, Codec, Draft, Key, Stored};
use serde_json::Value;

use crate::registry::crd::strategy::{TABLE as DEFINITIONS, follow};
use crate::registry::crd::v1beta1;
use crate::registry::{Registry, ResourceType, encode};

/// The directories of tables that are not named after their resource. The first five are the
/// exceptions of kube-apiserver. The others belong to its extension servers, which name their
/// directories after group and resource.
const DIRECTORIES: [(&str, &str); 7] = [
    ("replicationcontrollers", "controllers"),
    ("endpoints", "services/endpoints"),
    ("nodes", "minions"),
    ("services", "services/specs"),
    ("ingresses.networking.k8s.io", "ingress"),
    (DEFINITIONS, "apiextensions.k8s.io/customresourcedefinitions"),
    (API_SERVICES, "apiregistration.k8s.io/apiservices"),
];
const API_SERVICES: &str = "apiservices.apiregistration.k8s.io";

/// Converts the objects of a server.
pub(super) struct EtcdCodec {
    registry: Arc<Registry>,
    /// The directories of built-in tables.
    directories: HashMap<String, String>,
    /// The built-in tables by their directory.
    tables: HashMap<String, String>,
}

impl EtcdCodec {
    /// Creates a codec for the types of a registry. Definitions in etcd add types to it.
    pub(super) fn new(registry: &Arc<Registry>) -> Self {
        let catalogue = registry.current();
        let built_in = catalogue.types().iter().filter(|ty| !ty.custom);
        let directories: HashMap<String, String> =
            built_in.map(|ty| (ty.table.clone(), built_in_directory(&ty.table))).collect();
        let tables =
            directories.iter().map(|(table, path)| (path.clone(), table.clone())).collect();
        Self { registry: registry.clone(), directories, tables }
    }
}

impl Codec for EtcdCodec {
    fn directory(&self, table: &str) -> String {
        match (self.directories.get(table), table.split_once('.')) {
            (Some(directory), _) => directory.clone(),
            (None, Some((plural, group))) => format!("{group}/{plural}"),
            (None, None) => table.to_owned(),
        }
    }

    fn place(&self, path: &str) -> Option<(String, Key)> {
        let (first, rest) = path.split_once('/')?;
        let (table, rest) = match (self.tables.get(first), rest.split_once('/')) {
            (Some(table), _) => (table.clone(), rest),
            (None, Some((second, rest))) => {
                let known = self.tables.get(&format!("{first}/{second}")).cloned();
                // The group of a custom resource has a dot, and no directory of a built-in one.
                let custom = || first.contains('.').then(|| format!("{second}.{first}"));
                (known.or_else(custom)?, rest)
            }
            (None, None) => return None,
        };
        let (namespace, name) = rest.split_once('/').unwrap_or(("", rest));
        (!name.is_empty() && !name.contains('/')).then(|| (table, Key::new(namespace, name)))
    }

    fn encode(&self, table: &str, object: &[u8]) -> Result<Vec<u8>, String> {
        let mut object = json::parse(object).map_err(|error| error.to_string())?;
        object.unset_meta("resourceVersion");
        let is_protobuf =
            self.directories.contains_key(table) && ![DEFINITIONS, API_SERVICES].contains(&table);
        if is_protobuf {
            let definitions = Version::default().definitions();
            return protobuf::encode(definitions, &object).map_err(|error| error.to_string());
        }
        Ok(object.to_string().into_bytes())
    }

    fn decode(&self, table: &str, value: &[u8]) -> Result<Draft, String> {
        let mut object = if value.starts_with(&protobuf::MAGIC) {
            let definitions = Version::default().definitions();
            protobuf::decode(definitions, value, ("", "")).map_err(|error| error.to_string())?
        } else {
            json::parse(value).map_err(|error| error.to_string())?
        };
        if table == DEFINITIONS {
            v1beta1::convert(&mut object);
        }
        Ok(self.draft(table, &object))
    }

    fn defines_types(&self, table: &str) -> bool {
        table == DEFINITIONS
    }

    fn observe(&self, table: &str, change: Change, object: &Stored) {
        if table == DEFINITIONS
            && let Ok(definition) = json::parse(object.object())
        {
            follow(&self.registry, &definition, change);
        }
    }
}

impl EtcdCodec {
    /// Returns an object of a table as the type of its version stores it.
    fn draft(&self, table: &str, object: &Value) -> Draft {
        let api_version = object["apiVersion"].as_str().unwrap_or_default();
        let catalogue = self.registry.current();
        let types = catalogue.types().iter().filter(|ty| ty.table == table);
        let mut stored = types.map(|ty| ty.storage.as_ref().map_or(&**ty, |storage| &storage.ty));
        match stored.find(|ty: &&ResourceType| ty.api_version() == api_version) {
            Some(ty) => encode::draft(ty, object),
            None => encode::draft_of_unserved(object),
        }
    }
}

fn built_in_directory(table: &str) -> String {
    let special = DIRECTORIES.iter().find(|(special, _)| *special == table);
    let plural = || table.split_once('.').map_or(table, |(plural, _)| plural);
    special.map_or_else(plural, |(_, directory)| directory).to_owned()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;
    use crate::config::KubernetesVersion;
    use crate::config::disabled::DisabledCapabilities;

    fn codec() -> EtcdCodec {
        let version = KubernetesVersion::default();
        EtcdCodec::new(&Arc::new(Registry::new(version, DisabledCapabilities::none())))
    }

    /// The keys of a kube-apiserver 1.36.
    #[rstest]
    #[case("pods", "a", "pods/a/x")]
    #[case("namespaces", "", "namespaces/x")]
    #[case("services", "a", "services/specs/a/x")]
    #[case("endpoints", "a", "services/endpoints/a/x")]
    #[case("nodes", "", "minions/x")]
    #[case("replicationcontrollers", "a", "controllers/a/x")]
    #[case("ingresses.networking.k8s.io", "a", "ingress/a/x")]
    #[case("ingressclasses.networking.k8s.io", "", "ingressclasses/x")]
    #[case("deployments.apps", "a", "deployments/a/x")]
    #[case("clusterroles.rbac.authorization.k8s.io", "", "clusterroles/x")]
    #[case("events", "a", "events/a/x")]
    #[case(DEFINITIONS, "", "apiextensions.k8s.io/customresourcedefinitions/x")]
    #[case(API_SERVICES, "", "apiregistration.k8s.io/apiservices/x")]
    #[case("gadgets.example.com", "a", "example.com/gadgets/a/x")]
    #[case("worlds.sub.example.com", "", "sub.example.com/worlds/x")]
    fn keys_are_those_of_kubernetes(
        #[case] table: &str,
        #[case] namespace: &str,
        #[case] path: &str,
    ) {
        let codec = codec();
        let key = Key::new(namespace, "x");
        assert_eq!(codec.place(path), Some((table.to_owned(), key)));
        let directory = codec.directory(table);
        assert!(path.starts_with(&format!("{directory}/")), "{directory}");
    }

    #[rstest]
    #[case("ranges/serviceips")]
    #[case("masterleases/10.0.0.1")]
    #[case("kubeproof/claims/clusterips/10.0.0.1")]
    #[case("pods")]
    #[case("pods/a/")]
    #[case("pods/a/b/c")]
    #[case("services/other/a/b")]
    fn other_keys_are_no_objects(#[case] path: &str) {
        assert_eq!(codec().place(path), None);
    }

    #[test]
    fn no_two_tables_share_a_directory() {
        let codec = codec();
        assert_eq!(codec.directories.len(), codec.tables.len());
    }

    #[test]
    fn a_value_has_no_version_and_keeps_everything_else() {
        let codec = codec();
        let map = json!({
            "kind": "ConfigMap", "apiVersion": "v1",
            "metadata": {"name": "m", "namespace": "a", "resourceVersion": "7", "uid": "u"},
            "data": {"k": "v"},
        });
        let value = codec.encode("configmaps", map.to_string().as_bytes()).expect("a valid map");
        assert!(value.starts_with(&protobuf::MAGIC));
        let draft = codec.decode("configmaps", &value).expect("the same map");
        let stored = Stored::new(&draft, 7, Change::Added);
        assert_eq!(json::parse(stored.object()).ok(), Some(map.clone()));
        let text = map.to_string();
        let draft = codec.decode("configmaps", text.as_bytes()).expect("JSON is valid, too");
        assert_eq!(json::parse(Stored::new(&draft, 7, Change::Added).object()).ok(), Some(map));
    }

    #[test]
    fn a_custom_resource_is_json_in_its_own_version() {
        let codec = codec();
        let gadget = json!({
            "apiVersion": "example.com/v1", "kind": "Gadget", "metadata": {"name": "g"}, "a": {},
        });
        let text = gadget.to_string();
        let value = codec.encode("gadgets.example.com", text.as_bytes()).expect("an object");
        assert_eq!(json::parse(&value).ok(), Some(gadget));
    }
}
