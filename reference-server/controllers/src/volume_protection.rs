//! The controllers that let deleted volumes and claims go when nothing uses them.

use kubeproof_apiserver::loopback::{Client, Object};
use serde_json::Value;

use crate::finalizer;
use crate::terminating::{self, Progress};

const CLAIM_FINALIZER: &str = "kubernetes.io/pvc-protection";
const VOLUME_FINALIZER: &str = "kubernetes.io/pv-protection";

/// Starts the controllers, which run until the server stops.
pub(crate) fn start(client: &Client) {
    let resource = |plural| client.resource("", "v1", plural);
    if let Some(claims) = resource("persistentvolumeclaims") {
        terminating::run(client, claims, |client, claim| {
            Box::pin(async move {
                let is_used = is_claim_used(client, claim);
                release(client, claim, (CLAIM_FINALIZER, is_used)).await
            })
        });
    }
    if let Some(volumes) = resource("persistentvolumes") {
        terminating::run(client, volumes, |client, volume| {
            Box::pin(async move {
                let is_used = volume.value()["status"]["phase"] == "Bound";
                release(client, volume, (VOLUME_FINALIZER, is_used)).await
            })
        });
    }
}

/// Removes the finalizer of an object that nothing uses.
async fn release(client: &Client, object: &Object, (finalizer, is_used): (&str, bool)) -> Progress {
    if is_used {
        return Progress::Waits;
    }
    if object.has_finalizer(finalizer) {
        client.modify(object, None, |object| finalizer::remove(object, finalizer)).await;
    }
    Progress::Complete
}

/// Returns whether a pod on a node mounts a claim.
fn is_claim_used(client: &Client, claim: &Object) -> bool {
    let Some(pods) = client.resource("", "v1", "pods") else { return false };
    let pods = client.list(&pods, Some(claim.namespace())).items;
    pods.iter().any(|pod| mounts(&pod.value(), claim.name()))
}

fn mounts(pod: &Value, claim: &str) -> bool {
    let is_bound = pod["spec"]["nodeName"].as_str().is_some_and(|node| !node.is_empty());
    let mut volumes = pod["spec"]["volumes"].as_array().into_iter().flatten();
    is_bound
        && volumes.any(|volume| {
            let generated = || {
                let names = (pod["metadata"]["name"].as_str(), volume["name"].as_str());
                let (pod, volume) = (names.0.unwrap_or_default(), names.1.unwrap_or_default());
                format!("{pod}-{volume}")
            };
            volume["persistentVolumeClaim"]["claimName"] == claim
                || (volume["ephemeral"].is_object() && generated() == claim)
        })
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case::mounted(json!({"persistentVolumeClaim": {"claimName": "a"}}), "n", true)]
    #[case::another(json!({"persistentVolumeClaim": {"claimName": "b"}}), "n", false)]
    #[case::pending(json!({"persistentVolumeClaim": {"claimName": "a"}}), "", false)]
    #[case::generated(json!({"name": "v", "ephemeral": {}}), "n", false)]
    fn a_pod_on_a_node_uses_its_claims(
        #[case] volume: Value,
        #[case] node: &str,
        #[case] expected: bool,
    ) {
        let spec = json!({"nodeName": node, "volumes": [volume]});
        let pod = json!({"metadata": {"name": "p"}, "spec": spec});
        assert_eq!(mounts(&pod, "a"), expected);
        assert_eq!(mounts(&pod, "p-v"), pod["spec"]["volumes"][0]["ephemeral"].is_object());
    }
}
