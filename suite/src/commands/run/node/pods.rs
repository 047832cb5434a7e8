//! Binds the pods of the run to the node, and runs them.

use std::sync::Arc;
use std::time::Duration;

use kubeproof_reference_server::kubelet::Kubelet;
use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::target_client::{PodChange, TargetClient};

/// Pause between two watches.
const PAUSE: Duration = Duration::from_millis(200);

/// Passes the pods of the node on to its kubelet.
pub(super) async fn run_pods(target: TargetClient, node: String, kubelet: Arc<Kubelet>) {
    let selector = format!("spec.nodeName%3D{node}");
    loop {
        let notify = |change| match change {
            PodChange::Listed(pods) => kubelet.observe_all(pods),
            PodChange::Changed(pod) => kubelet.observe(pod),
            PodChange::Deleted(pod) => {
                kubelet.forget(pod["metadata"]["uid"].as_str().unwrap_or_default());
            }
        };
        target.follow_pods(&selector, notify).await;
        tokio::time::sleep(PAUSE).await;
    }
}

/// Binds the pods of the run that have no node yet.
pub(super) async fn bind_pods(target: TargetClient, node: String, prefix: String) {
    let (sender, pods) = unbounded_channel();
    tokio::select! {
        () = find_unbound_pods(&target, &prefix, sender) => {}
        () = bind_each(&target, &node, pods) => {}
    }
}

async fn find_unbound_pods(target: &TargetClient, prefix: &str, unbound: UnboundedSender<Value>) {
    loop {
        let send_own = |change| {
            let pods = match change {
                PodChange::Listed(pods) => pods,
                PodChange::Changed(pod) => vec![pod],
                PodChange::Deleted(_) => Vec::new(),
            };
            for pod in pods.into_iter().filter(|pod| is_bindable(pod, prefix)) {
                // The receiver lives as long as this task.
                let _ = unbound.send(pod);
            }
        };
        target.follow_pods("spec.nodeName%3D", send_own).await;
        tokio::time::sleep(PAUSE).await;
    }
}

async fn bind_each(target: &TargetClient, node: &str, mut pods: UnboundedReceiver<Value>) {
    while let Some(pod) = pods.recv().await {
        let metadata = &pod["metadata"];
        let names = metadata["namespace"].as_str().zip(metadata["name"].as_str());
        let Some((namespace, name)) = names else { continue };
        let binding = json!({
            "apiVersion": "v1", "kind": "Binding",
            "metadata": {"name": name, "namespace": namespace},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        });
        let path = format!("/api/v1/namespaces/{namespace}/pods/{name}/binding");
        // A rejection means that the pod is already bound or deleted.
        target.send("POST", &path, "application/json", &binding).await;
    }
}

/// Returns whether a pod belongs to this run, and accepts any node of the default scheduler.
fn is_bindable(pod: &Value, prefix: &str) -> bool {
    let spec = &pod["spec"];
    let is_empty = |field: &str| match &spec[field] {
        Value::Array(list) => list.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        _ => true,
    };
    pod["metadata"]["name"].as_str().is_some_and(|name| name.starts_with(prefix))
        && pod["metadata"]["deletionTimestamp"].is_null()
        && spec["schedulerName"] == "default-scheduler"
        && is_empty("schedulingGates")
        && is_empty("nodeSelector")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(name: &str, spec: &Value) -> Value {
        let spec_of_pod = json!({"schedulerName": "default-scheduler"});
        let mut pod = json!({"metadata": {"name": name}, "spec": spec_of_pod});
        for (field, value) in spec.as_object().into_iter().flatten() {
            pod["spec"][field] = value.clone();
        }
        pod
    }

    #[test]
    fn only_pods_of_the_run_without_constraints_are_bound() {
        let gated = json!({"schedulingGates": [{"name": "g"}]});
        assert!(is_bindable(&pod("kp-a-1", &json!({"schedulingGates": []})), "kp-a-"));
        assert!(!is_bindable(&pod("kp-b-1", &json!({})), "kp-a-"));
        assert!(!is_bindable(&pod("kp-a-1", &json!({"schedulerName": "none"})), "kp-a-"));
        assert!(!is_bindable(&pod("kp-a-1", &json!({"nodeSelector": {"disk": "ssd"}})), "kp-a-"));
        assert!(!is_bindable(&pod("kp-a-1", &gated), "kp-a-"));
    }
}
