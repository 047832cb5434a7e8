//! The requests that the node sends to the target.

use std::pin::Pin;
use std::time::Duration;

use kubeproof_cases::case::Identity;
use kubeproof_harness::exchange::Exchange;
use kubeproof_harness::transport::watch::Next;
use kubeproof_harness::transport::{Client, Outgoing};
use kubeproof_reference_server::kubelet::PodClient;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::RUN_TAINT;

/// Time limit of a request of the node.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// Time limit of one event. A quiet cluster sends none for long, and the server closes the watch
/// before this limit.
const EVENT_TIMEOUT: Duration = Duration::from_hours(1);

/// A client of the target with the requests of a node.
#[derive(Clone)]
pub(super) struct TargetClient {
    client: Client,
}

/// A change of pods.
pub(super) enum PodChange {
    /// The complete list of pods.
    Listed(Vec<Value>),
    Changed(Value),
    Deleted(Value),
}

impl TargetClient {
    pub(super) fn new(client: Client) -> Self {
        Self { client }
    }

    /// Sends a request. A null body is left out.
    pub(super) async fn send(
        &self,
        method: &str,
        path: &str,
        media_type: &str,
        body: &Value,
    ) -> Exchange {
        let mut request = request(method, path.to_owned());
        if !body.is_null() {
            request.headers.push(("content-type".to_owned(), media_type.to_owned()));
            request.body = body.to_string().into();
        }
        self.client.send(request, Instant::now() + REQUEST_TIMEOUT).await
    }

    /// Returns the name of a node that is ready and does not belong to a run.
    pub(super) async fn ready_node(&self) -> Option<String> {
        let nodes = self.send("GET", "/api/v1/nodes?limit=500", "", &Value::Null).await;
        let items = nodes.json().filter(|_| nodes.status() == 200)?["items"].as_array()?;
        let node = items.iter().find(|node| is_ready(node) && !is_of_a_run(node))?;
        node["metadata"]["name"].as_str().map(str::to_owned)
    }

    /// Lists the pods that match a field selector, and watches them until the watch ends.
    pub(super) async fn follow_pods(
        &self,
        field_selector: &str,
        mut on_change: impl FnMut(PodChange),
    ) {
        let path = format!("/api/v1/pods?fieldSelector={field_selector}");
        let list = self.send("GET", &path, "", &Value::Null).await;
        let Some(list) = list.json().filter(|_| list.status() == 200) else { return };
        let Some(version) = list["metadata"]["resourceVersion"].as_str() else { return };
        let items = list["items"].as_array().into_iter().flatten();
        on_change(PodChange::Listed(items.map(with_type).collect()));
        let target = format!("{path}&watch=1&resourceVersion={version}");
        let deadline = Instant::now() + REQUEST_TIMEOUT;
        let mut watch = self.client.watch(request("GET", target), deadline).await;
        while let Next::Event(event) = watch.next(Instant::now() + EVENT_TIMEOUT).await {
            let object = || Value::clone(&event.object);
            match event.kind.as_str() {
                "DELETED" => on_change(PodChange::Deleted(object())),
                "ERROR" => return,
                _ => on_change(PodChange::Changed(object())),
            }
        }
    }
}

fn is_ready(node: &Value) -> bool {
    let conditions = node["status"]["conditions"].as_array();
    let is = |condition: &Value| condition["type"] == "Ready" && condition["status"] == "True";
    conditions.into_iter().flatten().any(is)
}

fn is_of_a_run(node: &Value) -> bool {
    let taints = node["spec"]["taints"].as_array();
    taints.into_iter().flatten().any(|taint| taint["key"] == RUN_TAINT)
}

fn request(method: &str, target: String) -> Outgoing {
    Outgoing {
        method: method.to_owned(),
        target,
        headers: vec![("accept".to_owned(), "application/json".to_owned())],
        body: bytes::Bytes::new(),
        identity: Identity::Admin,
        exact: false,
    }
}

/// Adds the type, which the items of a list lack.
fn with_type(pod: &Value) -> Value {
    let mut pod = pod.clone();
    pod["kind"] = "Pod".into();
    pod["apiVersion"] = "v1".into();
    pod
}

impl PodClient for TargetClient {
    fn patch_status<'a>(&'a self, pod: &'a Value, status: Value) -> Reported<'a> {
        Box::pin(async move {
            let Some(path) = path_of(pod) else { return };
            let change = json!({"metadata": {"uid": pod["metadata"]["uid"]}, "status": status});
            let media_type = "application/strategic-merge-patch+json";
            // A rejection means that the pod is deleted.
            self.send("PATCH", &format!("{path}/status"), media_type, &change).await;
        })
    }

    fn delete<'a>(&'a self, pod: &'a Value) -> Reported<'a> {
        Box::pin(async move {
            let Some(path) = path_of(pod) else { return };
            let options = json!({
                "kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0,
                "preconditions": {"uid": pod["metadata"]["uid"]},
            });
            self.send("DELETE", &path, "application/json", &options).await;
        })
    }
}

type Reported<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

fn path_of(pod: &Value) -> Option<String> {
    let metadata = &pod["metadata"];
    let (namespace, name) = (metadata["namespace"].as_str()?, metadata["name"].as_str()?);
    Some(format!("/api/v1/namespaces/{namespace}/pods/{name}"))
}
