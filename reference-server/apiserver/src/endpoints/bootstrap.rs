//! The objects that the server itself creates.

use kubeproof_apimachinery::object::{Object, timestamp, uuid};
use serde_json::{Value, json};

use super::encode;
use crate::registry::ResourceType;
use crate::registry::builtin::core::components;
use crate::server::ApiServer;

/// Creates the initial namespaces.
pub(crate) fn create_namespaces(api: &ApiServer, ty: &ResourceType) {
    for name in ["default", "kube-node-lease", "kube-public", "kube-system"] {
        let mut namespace =
            json!({ "kind": "Namespace", "apiVersion": "v1", "metadata": { "name": name } });
        ty.prepare_create(&mut namespace);
        create(api, ty, namespace);
    }
}

/// Creates the service of the API server, which has the first cluster IP.
pub(crate) fn create_service(api: &ApiServer) {
    let Ok(ty) = api.find_core("services") else { return };
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
        create(api, &ty, service);
    }
}

/// Creates the statuses of the components. As in Kubernetes, they have no UID.
pub(crate) fn create_component_statuses(api: &ApiServer) {
    let Ok(ty) = api.find_core("componentstatuses") else { return };
    for component in components::components() {
        let draft = encode::draft(&ty, &component);
        api.store.write(|write| write.put(&ty.table, draft));
    }
}

/// Creates a valid object, or replaces it. Sets the UID, the creation time and the defaults.
pub(crate) fn create(api: &ApiServer, ty: &ResourceType, mut object: Value) {
    object.set_meta("uid", uuid());
    object.set_meta("creationTimestamp", timestamp(0));
    ty.default(&mut object);
    let draft = encode::draft(ty, &object);
    api.store.write(|write| write.put(&ty.table, draft));
}
