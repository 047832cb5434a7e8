//! The objects that the server itself creates.

use kubeproof_apimachinery::object::{Object, timestamp, uuid};
use serde_json::{Value, json};

use crate::admission::priority::system_classes;
use crate::registry::builtin::core::components;
use crate::registry::{Lookup, ResourceType, encode};
use crate::server::ApiServer;
use kubeproof_storage::{Draft, Key, Write, WriteError};

/// Creates the initial namespaces.
pub(crate) async fn create_namespaces(
    api: &ApiServer,
    ty: &ResourceType,
) -> Result<(), WriteError> {
    for name in ["default", "kube-node-lease", "kube-public", "kube-system"] {
        let mut namespace =
            json!({ "kind": "Namespace", "apiVersion": "v1", "metadata": { "name": name } });
        ty.prepare_create(&mut namespace);
        create(api, ty, namespace).await?;
    }
    Ok(())
}

/// Creates the service of the API server, which has the first cluster IP.
pub(crate) async fn create_service(api: &ApiServer) -> Result<(), WriteError> {
    let Ok(ty) = api.find_core("services") else { return Ok(()) };
    if api.store.get(&ty.table, &Key::new("default", "kubernetes")).is_some() {
        return Ok(());
    }
    let port = api.address.rsplit_once(':').and_then(|(_, port)| port.parse::<u16>().ok());
    let port = port.unwrap_or(443);
    let mut service = json!({
        "kind": "Service", "apiVersion": "v1",
        "metadata": {
            "name": "kubernetes", "namespace": "default",
            "labels": {"component": "apiserver", "provider": "kubernetes"},
        },
        "spec": {
            "type": "ClusterIP",
            "ports": [
                {"name": "https", "protocol": "TCP", "port": 443, "targetPort": port},
            ],
        },
    });
    ty.prepare_create(&mut service);
    ty.default(&mut service);
    if ty.strategy.begin_create(api.context(), &mut service, false).is_ok() {
        create(api, &ty, service).await?;
    }
    Ok(())
}

/// Creates the priority classes of each cluster.
pub(crate) async fn create_priority_classes(api: &ApiServer) -> Result<(), WriteError> {
    let found = api.registry.current().find("scheduling.k8s.io", "v1", "priorityclasses");
    let Lookup::Found(ty) = found else { return Ok(()) };
    for mut class in system_classes() {
        ty.prepare_create(&mut class);
        create(api, &ty, class).await?;
    }
    Ok(())
}

/// Creates the statuses of the components. As in Kubernetes, they have no UID.
pub(crate) async fn create_component_statuses(api: &ApiServer) -> Result<(), WriteError> {
    let Ok(ty) = api.find_core("componentstatuses") else { return Ok(()) };
    for component in components::components() {
        let draft = encode::draft(&ty, &component);
        create_draft(api, &ty, &draft).await?;
    }
    Ok(())
}

/// Creates a valid object unless one has its name. Sets the UID, the creation time and the
/// defaults.
pub(crate) async fn create(
    api: &ApiServer,
    ty: &ResourceType,
    mut object: Value,
) -> Result<(), WriteError> {
    object.set_meta("uid", uuid());
    object.set_meta("creationTimestamp", timestamp(0));
    ty.default(&mut object);
    create_draft(api, ty, &encode::draft(ty, &object)).await
}

/// Writes an object unless one has its name.
pub(super) async fn create_draft(
    api: &ApiServer,
    ty: &ResourceType,
    draft: &Draft,
) -> Result<(), WriteError> {
    let change = |write: &mut Write<'_>| {
        if write.get(&ty.table, &draft.key).is_none() {
            write.put(&ty.table, draft);
        }
    };
    api.store.write(change).await.map(drop)
}
