//! Opens the storage, and adopts the objects that it already has.

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

use kubeproof_apimachinery::object::Object as _;
use kubeproof_apimachinery::serializer::json;
use kubeproof_storage::{
    Change, Disk, Draft, Etcd, EtcdError, OpenError, Saved, SavedObject, Store, Stored,
};
use serde_json::Value;

use super::etcd::EtcdCodec;
use super::snapshot::{self, SnapshotError};
use crate::config::Storage;
use crate::registry::crd::strategy::{TABLE as DEFINITIONS, serve};
use crate::registry::encode;
use crate::registry::{Registry, ResourceType};
use crate::server::ApiServer;

/// The reason why the storage cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum StorageError {
    /// The data directory cannot be used.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// etcd cannot be used.
    #[error(transparent)]
    Etcd(#[from] EtcdError),
    /// The snapshot cannot be read.
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    /// The thread that writes could not start.
    #[error("cannot start the storage: {0}")]
    Thread(#[from] io::Error),
}

/// Opens the store of a server, fills it with the snapshot if there is one, and serves the custom
/// resources in it.
pub(crate) async fn open(
    storage: &Storage,
    snapshot: Option<&Path>,
    history: usize,
    registry: &Arc<Registry>,
) -> Result<Store, StorageError> {
    let file = snapshot.unwrap_or(Path::new(""));
    let snapshot = snapshot.map(snapshot::load).transpose()?;
    match storage {
        Storage::Memory => match snapshot {
            None => Ok(Store::new(history)),
            Some(Saved { revision, objects }) => {
                Ok(Store::restored(history, revision, decode(registry, objects, file)?))
            }
        },
        Storage::Disk(directory) => {
            let disk = Disk::open(directory)?;
            if let Some(snapshot) = snapshot {
                disk.fill(&snapshot)?;
            }
            let saved = disk.load()?;
            let objects = decode(registry, saved.objects, directory)?;
            Ok(Store::on_disk(disk, history, saved.revision, objects)?)
        }
        Storage::Etcd(options) => {
            let etcd = Etcd::new(options, Arc::new(EtcdCodec::new(registry)))?;
            if let Some(snapshot) = snapshot {
                etcd.fill(&snapshot).await?;
            }
            Ok(Store::on_etcd(etcd, history).await?)
        }
    }
}

/// Informs the strategies of the objects that the store has when the server starts.
pub(crate) fn adopt(api: &ApiServer) {
    if api.store.is_shared() {
        // Strategies read the state of a shared storage, because other servers change it.
        return;
    }
    let catalogue = api.registry.current();
    for ty in catalogue.types().iter().filter(|ty| ty.storage.is_none() && !ty.custom) {
        for stored in api.store.snapshot(&ty.table, None).0 {
            if ty.serves_as_stored(&stored) {
                ty.strategy.adopt(api.context(), &ty.load(&stored));
            }
        }
    }
}

/// Decodes the objects of a directory or of a snapshot. Definitions come first, because they define
/// the types of others.
fn decode(
    registry: &Registry,
    objects: Vec<SavedObject>,
    path: &Path,
) -> Result<Vec<(String, Stored)>, OpenError> {
    let mut parsed = Vec::with_capacity(objects.len());
    for object in objects {
        let value = parse(&object, path)?;
        if object.table == DEFINITIONS {
            serve(registry, &value);
        }
        parsed.push((object.table, value));
    }
    let types = StoredTypes::new(registry);
    let stored = parsed.into_iter().map(|(table, value)| {
        let revision = value.meta("resourceVersion").parse().unwrap_or_default();
        let draft = types.draft(&table, &value);
        (table, Stored::new(&draft, revision, Change::Added))
    });
    Ok(stored.collect())
}

fn parse(object: &SavedObject, path: &Path) -> Result<Value, OpenError> {
    json::parse(&object.text).map_err(|error| OpenError::Object {
        path: path.to_owned(),
        table: object.table.clone(),
        namespace: object.key.namespace.clone(),
        name: object.key.name.clone(),
        why: error.to_string(),
    })
}

/// The types of the objects in each table.
struct StoredTypes(HashMap<String, Vec<Arc<ResourceType>>>);

impl StoredTypes {
    fn new(registry: &Registry) -> Self {
        let mut types: HashMap<String, Vec<_>> = HashMap::new();
        for ty in registry.current().types() {
            types.entry(ty.table.clone()).or_default().push(ty.clone());
        }
        Self(types)
    }

    fn draft(&self, table: &str, object: &Value) -> Draft {
        let api_version = object["apiVersion"].as_str().unwrap_or_default();
        for ty in self.0.get(table).into_iter().flatten() {
            let stored = ty.storage.as_ref().map_or(&**ty, |storage| &storage.ty);
            if stored.api_version() == api_version {
                return encode::draft(stored, object);
            }
        }
        encode::draft_of_unserved(object)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::config::KubernetesVersion;
    use crate::config::disabled::DisabledCapabilities;

    fn saved(table: &str, text: &Value) -> SavedObject {
        SavedObject {
            table: table.to_owned(),
            key: encode::key(text),
            text: text.to_string().into(),
        }
    }

    fn definition() -> Value {
        let schema = json!({"openAPIV3Schema": {"type": "object"}});
        let names = json!({
            "plural": "gadgets", "singular": "gadget", "kind": "Gadget", "listKind": "GadgetList",
        });
        let established = json!([
            {"type": "NamesAccepted", "status": "True"}, {"type": "Established", "status": "True"},
        ]);
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "gadgets.example.com", "resourceVersion": "1001"},
            "spec": {
                "group": "example.com", "scope": "Namespaced", "names": names,
                "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema}],
            },
            "status": {"conditions": established, "acceptedNames": names, "storedVersions": ["v1"]},
        })
    }

    #[test]
    fn objects_keep_their_text_and_custom_ones_have_the_type_of_their_definition() {
        let registry = Registry::new(KubernetesVersion::default(), DisabledCapabilities::none());
        let gadget = |version: &str| {
            json!({
                "apiVersion": format!("example.com/{version}"), "kind": "Gadget",
                "metadata": {"name": version, "namespace": "a", "resourceVersion": "1002"},
            })
        };
        let map = json!({
            "kind": "ConfigMap", "apiVersion": "v1",
            "metadata": {"name": "m", "uid": "u", "resourceVersion": "1003", "labels": {"a": "b"}},
            "data": {"k": "v"},
        });
        let objects = vec![
            saved("configmaps", &map),
            saved("gadgets.example.com", &gadget("v1")),
            saved("gadgets.example.com", &gadget("v2")),
            saved(DEFINITIONS, &definition()),
        ];
        let restored = decode(&registry, objects, Path::new("dir")).expect("valid objects");
        let find = |name: &str| {
            let found = restored.iter().find(|(_, stored)| stored.key.name == name);
            &found.expect("a restored object").1
        };
        assert_eq!(json::parse(find("m").object()).ok(), Some(map));
        assert_eq!((find("m").revision, find("m").facts.uid.as_str()), (1003, "u"));
        assert_eq!(find("m").facts.labels["a"], "b");
        let types = registry.current();
        let crate::registry::Lookup::Found(ty) = types.find("example.com", "v1", "gadgets") else {
            panic!("the definition is served")
        };
        assert!(ty.serves_as_stored(find("v1")));
        assert!(!ty.serves_as_stored(find("v2")), "it is converted when it is read");
        assert_eq!(ty.load(find("v2"))["apiVersion"], "example.com/v1");
    }

    #[test]
    fn a_damaged_object_is_an_error() {
        let registry = Registry::new(KubernetesVersion::default(), DisabledCapabilities::none());
        let mut object = saved("configmaps", &json!({"metadata": {"name": "m"}}));
        object.text.truncate(10);
        let error = decode(&registry, vec![object], Path::new("dir"));
        let error = error.expect_err("half an object");
        assert!(error.to_string().contains("configmaps /m"), "{error}");
    }
}
