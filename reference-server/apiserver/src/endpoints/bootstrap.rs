//! The objects that the server itself creates.

use kubeproof_apimachinery::object::{Object, timestamp, uuid};
use serde_json::{Value, json};

use super::commit::update_latest;
use crate::admission::priority::system_classes;
use crate::certificates::front_proxy::COMMON_NAME;
use crate::config::Options;
use crate::registry::builtin::core::components;
use crate::registry::{Lookup, ResourceType, encode};
use crate::server::ApiServer;
use kubeproof_storage::{Draft, Key, Write, WriteError};

/// The most authorities in the config map for extension servers.
const MAX_AUTHORITIES: usize = 16;

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

/// Publishes how extension servers verify that a request comes from this server. A restarted server
/// has a new authority, so the config map keeps those of earlier and of other servers.
pub(crate) async fn publish_authentication(
    api: &ApiServer,
    options: &Options,
) -> Result<(), WriteError> {
    let Ok(ty) = api.find_core("configmaps") else { return Ok(()) };
    let key = Key::new("kube-system", "extension-apiserver-authentication");
    let mut data = json!({
        "requestheader-allowed-names": json!([COMMON_NAME]).to_string(),
        "requestheader-client-ca-file": api.front_proxy.ca_pem,
        "requestheader-extra-headers-prefix": r#"["X-Remote-Extra-"]"#,
        "requestheader-group-headers": r#"["X-Remote-Group"]"#,
        "requestheader-uid-headers": r#"["X-Remote-Uid"]"#,
        "requestheader-username-headers": r#"["X-Remote-User"]"#,
    });
    if let Some(client_ca) = &options.client_ca {
        data["client-ca-file"] = client_ca.pem().into();
    }
    let metadata = json!({"name": key.name, "namespace": key.namespace});
    let object =
        json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": metadata, "data": data});
    create(api, &ty, object).await?;
    let Some(stored) = api.store.get(&ty.table, &key) else { return Ok(()) };
    let publish = |object: &mut Value| {
        let known = object.pointer("/data/requestheader-client-ca-file").and_then(Value::as_str);
        let authorities = with_authority(known.unwrap_or_default(), &api.front_proxy.ca_pem);
        object["data"] = data.clone();
        object["data"]["requestheader-client-ca-file"] = authorities.into();
    };
    update_latest(api, &ty, stored, None, publish).await;
    Ok(())
}

/// Adds an authority to a bundle, and drops the oldest ones.
fn with_authority(bundle: &str, own: &str) -> String {
    if bundle.contains(own) {
        return bundle.to_owned();
    }
    let end = "-----END CERTIFICATE-----\n";
    let known: Vec<&str> = bundle.split_inclusive(end).filter(|one| one.ends_with(end)).collect();
    let kept = known.len().saturating_sub(MAX_AUTHORITIES - 1);
    known[kept..].concat() + own
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_authorities_leave_the_bundle() {
        let pem =
            |n: usize| format!("-----BEGIN CERTIFICATE-----\n{n}\n-----END CERTIFICATE-----\n");
        let bundle = (0..20).fold(String::new(), |bundle, n| with_authority(&bundle, &pem(n)));
        let expected: String = (4..20).map(pem).collect();
        assert_eq!(bundle, expected);
        assert_eq!(with_authority(&bundle, &pem(7)), bundle);
    }
}
