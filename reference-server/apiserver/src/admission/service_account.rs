//! The service account of a pod: its name, its token and its pull secrets.

use std::time::Duration;

use kubeproof_apimachinery::status::{ApiError, Subject};
use kubeproof_storage::Key;
use rand::RngExt as _;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::{Attributes, Decision, Operation, Plugin, decided};

/// The account of pods that name none.
const DEFAULT: &str = "default";
/// The annotation of the pods that a kubelet creates from files.
const MIRROR: &str = "kubernetes.io/config.mirror";
const MOUNT_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
const VOLUME_PREFIX: &str = "kube-api-access-";
/// The seconds until the token of a pod expires, an hour and some seconds.
const EXPIRATION: i64 = 3607;
const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// How long a pod waits for the `default` account of a new namespace.
const PATIENCE: Duration = Duration::from_secs(1);

/// Sets the account of pods, and mounts its token.
pub(super) struct ServiceAccount;

impl Plugin for ServiceAccount {
    fn name(&self) -> &'static str {
        "ServiceAccount"
    }

    fn handles(&self, request: &Attributes<'_>) -> bool {
        request.operation == Operation::Create && request.is_core("pods")
    }

    fn mutates(&self) -> bool {
        true
    }

    fn mutate<'a>(&'a self, request: Attributes<'a>, object: &'a mut Value) -> Decision<'a> {
        if is_mirror(object) {
            return decided(Ok(()));
        }
        Box::pin(async move {
            let name = complete_name(object);
            let account = find(&request, object, &name).await?;
            complete_pod(object, &account);
            Ok(())
        })
    }

    fn validate<'a>(&'a self, request: Attributes<'a>, object: &'a Value) -> Decision<'a> {
        let name = object["spec"]["serviceAccountName"].as_str().unwrap_or_default();
        if is_mirror(object) {
            let why = "a mirror pod may not reference service accounts";
            let names_account = !name.is_empty();
            return decided(if names_account {
                Err(request.forbidden(object, why))
            } else {
                Ok(())
            });
        }
        Box::pin(async move { find(&request, object, name).await.map(drop) })
    }
}

/// Returns an account. A controller creates the default one of a new namespace, so this function
/// waits for it.
async fn find(request: &Attributes<'_>, pod: &Value, name: &str) -> Result<Value, ApiError> {
    let namespace = request.info.namespace.as_str();
    let Some(ty) = request.context.core("serviceaccounts") else { return Ok(Value::Null) };
    let key = Key::new(namespace, name);
    let store = request.context.store;
    let mut changes = store.subscribe(&ty.table);
    let wait = async {
        loop {
            changes.mark_unchanged();
            if let Some(stored) = store.get(&ty.table, &key) {
                return Some(ty.load(&stored));
            }
            if name != DEFAULT || changes.changed().await.is_err() {
                return None;
            }
        }
    };
    let found = timeout(PATIENCE, wait).await.unwrap_or_default();
    found.ok_or_else(|| {
        let missing = ApiError::not_found(Subject { group: "", word: "serviceaccount" }, name);
        let why =
            format!("error looking up service account {namespace}/{name}: {}", missing.message);
        request.forbidden(pod, &why)
    })
}

/// Returns whether a kubelet created the pod from a file. It has no service account.
fn is_mirror(pod: &Value) -> bool {
    !pod["metadata"]["annotations"][MIRROR].is_null()
}

/// Sets the name of the account if the pod names none, and returns it.
fn complete_name(pod: &mut Value) -> String {
    let spec = &mut pod["spec"];
    let name = spec["serviceAccountName"].as_str().filter(|name| !name.is_empty());
    let name = name.unwrap_or(DEFAULT).to_owned();
    for field in ["serviceAccountName", "serviceAccount"] {
        spec[field] = name.as_str().into();
    }
    name
}

/// Mounts the token of the account in all containers, and sets its pull secrets.
fn complete_pod(pod: &mut Value, account: &Value) {
    let own = pod["spec"]["automountServiceAccountToken"].as_bool();
    if own.or_else(|| account["automountServiceAccountToken"].as_bool()).unwrap_or(true) {
        mount_token(&mut pod["spec"]);
    }
    let spec = &mut pod["spec"];
    let secrets = account["imagePullSecrets"].as_array().filter(|secrets| !secrets.is_empty());
    if let Some(secrets) = secrets
        && spec["imagePullSecrets"].as_array().is_none_or(Vec::is_empty)
    {
        spec["imagePullSecrets"] = secrets.clone().into();
    }
}

fn mount_token(spec: &mut Value) {
    let volumes = spec["volumes"].as_array().into_iter().flatten();
    let mut names = volumes.map(|volume| volume["name"].as_str().unwrap_or_default());
    let known = names.find(|name| name.starts_with(VOLUME_PREFIX)).map(str::to_owned);
    let name = known.clone().unwrap_or_else(volume_name);
    let mut is_needed = false;
    for list in ["initContainers", "containers"] {
        for container in spec[list].as_array_mut().into_iter().flatten() {
            let mounts = container["volumeMounts"].as_array().into_iter().flatten();
            if mounts.into_iter().any(|mount| mount["mountPath"] == MOUNT_PATH) {
                continue;
            }
            is_needed = true;
            let mount = json!({"name": name, "readOnly": true, "mountPath": MOUNT_PATH});
            push(&mut container["volumeMounts"], mount);
        }
    }
    if is_needed && known.is_none() {
        push(&mut spec["volumes"], token_volume(&name));
    }
}

/// Returns the volume with the token, the authority of the server and the namespace.
fn token_volume(name: &str) -> Value {
    let namespace = json!({
        "path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"},
    });
    let authority = json!([{"key": "ca.crt", "path": "ca.crt"}]);
    json!({"name": name, "projected": {"defaultMode": 420, "sources": [
        {"serviceAccountToken": {"expirationSeconds": EXPIRATION, "path": "token"}},
        {"configMap": {"name": "kube-root-ca.crt", "items": authority}},
        {"downwardAPI": {"items": [namespace]}},
    ]}})
}

fn volume_name() -> String {
    let mut random = rand::rng();
    let suffix = (0..5).map(|_| char::from(ALPHABET[random.random_range(..ALPHABET.len())]));
    VOLUME_PREFIX.chars().chain(suffix).collect()
}

fn push(list: &mut Value, item: Value) {
    match list {
        Value::Array(items) => items.push(item),
        other => *other = json!([item]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod() -> Value {
        json!({"metadata": {}, "spec": {
            "initContainers": [{"name": "i"}],
            "containers": [
                {"name": "a"}, {"name": "b", "volumeMounts": [{"mountPath": MOUNT_PATH}]},
            ],
        }})
    }

    #[test]
    fn containers_get_the_token_once() {
        let mut pod = pod();
        assert_eq!(complete_name(&mut pod), "default");
        complete_pod(&mut pod, &json!({"imagePullSecrets": [{"name": "s"}]}));
        let spec = pod["spec"].clone();
        assert_eq!(spec["serviceAccount"], "default");
        assert_eq!(spec["imagePullSecrets"][0]["name"], "s");
        let name = &spec["volumes"][0]["name"];
        assert_eq!(spec["initContainers"][0]["volumeMounts"][0]["name"], *name);
        assert_eq!(spec["containers"][0]["volumeMounts"][0]["name"], *name);
        assert!(spec["containers"][1]["volumeMounts"][0].get("name").is_none());
        complete_pod(&mut pod, &json!({}));
        assert_eq!(pod["spec"], spec, "nothing is missing");
    }

    #[test]
    fn a_pod_or_its_account_can_omit_the_token() {
        let without = |pod_mounts: Option<bool>, account: Value| {
            let mut pod = pod();
            if let Some(mounts) = pod_mounts {
                pod["spec"]["automountServiceAccountToken"] = json!(mounts);
            }
            complete_pod(&mut pod, &account);
            pod["spec"]["volumes"].is_null()
        };
        let account = || json!({"automountServiceAccountToken": false});
        assert!(without(None, account()) && without(Some(false), json!({})));
        assert!(!without(Some(true), account()));
    }
}
