//! `--with-node`: a node of our own for a target that has none, so that its streams lead somewhere.
//!
//! It is registered before the plan is made, which then finds a node that is ready; the pods of the run, and no others, are
//! bound to it; and it is removed when the run has cleaned up after itself. Pods run in the scripted runtime of the
//! reference server, in this process.

use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use kubeproof_cases::case::Identity;
use kubeproof_harness::exchange::Exchange;
use kubeproof_harness::target::TargetConfig;
use kubeproof_harness::transport::{Client, Outgoing};
use kubeproof_harness::watch::Next;
use kubeproof_reference_server::kubelet::{Endpoint, EndpointConfig, Kubelet, Reports};
use kubeproof_reference_server::node::manifest;
use serde_json::{Value, json};
use tokio::net::UdpSocket;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::args::low;
use crate::error::Error;

/// How long a request of the node may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// How often a node says that it is alive; controllers give up on one that is silent for 40 seconds.
const HEARTBEAT: Duration = Duration::from_secs(10);

/// How long the node waits before it tries again to watch.
const PAUSE: Duration = Duration::from_millis(200);

/// A node of this run.
pub(super) struct Node {
    server: Server,
    name: String,
    /// Its watches and its heartbeat. Dropping them ends them.
    tasks: JoinSet<()>,
    _endpoint: Endpoint,
    _threads: Threads,
}

/// The threads of its endpoint. A run keeps its own busy with whatever cases compute, and what a node does in many small
/// steps would wait for each of them: a server behind it would look slow.
struct Threads(Option<Runtime>);

impl Threads {
    fn start() -> std::io::Result<Self> {
        let threads =
            Builder::new_multi_thread().worker_threads(2).thread_name("node").enable_all().build()?;
        Ok(Self(Some(threads)))
    }

    /// Runs on them, and so does all that it starts.
    async fn run<T: Send + 'static>(&self, what: impl Future<Output = T> + Send + 'static) -> Option<T> {
        self.0.as_ref()?.spawn(what).await.ok()
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        // Waiting for them is not allowed where others are waited for.
        if let Some(threads) = self.0.take() {
            threads.shutdown_background();
        }
    }
}

impl Node {
    /// Registers the node of the run with this id. It keeps to the limits of the run's client.
    pub(super) async fn open(
        client: &Client,
        target: &TargetConfig,
        options: &low::Pods,
        run: &str,
    ) -> Result<Self, Error> {
        let server = Server { client: client.clone() };
        let address = match options.node_address {
            Some(address) => address,
            None => address_towards(target).await?,
        };
        let client_ca_pem = match &options.node_client_ca {
            Some(path) => Some(
                std::fs::read_to_string(path).map_err(|source| Error::Read { path: path.clone(), source })?,
            ),
            None => None,
        };
        let name = format!("kp-{run}-node");
        let kubelet = Arc::new(Kubelet::new(name.clone(), address, Arc::new(server.clone())));
        let config = EndpointConfig { listen: SocketAddr::new(address, 0), client_ca_pem };
        let threads = Threads::start().map_err(Error::Runtime)?;
        let opened = threads.run(Endpoint::open(kubelet.clone(), config)).await;
        let endpoint = opened.ok_or_else(|| Error::Runtime(std::io::ErrorKind::Other.into()))??;
        let mut node = manifest(&name, address, endpoint.port());
        // Schedulers keep the pods of others away.
        node["spec"]["taints"] = json!([{"key": "kubeproof.dev/run", "value": run, "effect": "NoSchedule"}]);
        let created = server.send("POST", "/api/v1/nodes", "application/json", &node).await;
        if created.status() != 201 {
            return Err(Error::Node(created.in_words()));
        }
        let mut tasks = JoinSet::new();
        tasks.spawn(run_pods(server.clone(), name.clone(), kubelet));
        tasks.spawn(bind_pods(server.clone(), name.clone(), format!("kp-{run}-")));
        tasks.spawn(stay_alive(server.clone(), name.clone(), node["status"].clone()));
        Ok(Self { server, name, tasks, _endpoint: endpoint, _threads: threads })
    }

    /// Removes the node. Its pods are gone by now.
    pub(super) async fn close(mut self) -> Result<(), Error> {
        self.tasks.shutdown().await;
        let path = format!("/api/v1/nodes/{}", self.name);
        let deleted = self.server.send("DELETE", &path, "application/json", &json!({})).await;
        match deleted.status() {
            200 | 202 | 404 => Ok(()),
            _ => Err(Error::NodeStays { name: self.name, why: deleted.in_words() }),
        }
    }
}

/// The address of this machine on the way to the target: where the target can reach us, unless something is in between.
async fn address_towards(target: &TargetConfig) -> Result<IpAddr, Error> {
    let host = target.server.host_str().unwrap_or_default().trim_matches(['[', ']']).to_owned();
    let port = target.server.port_or_known_default().unwrap_or(443);
    let refused = |source| Error::NoAddress { host: host.clone(), source };
    let address = tokio::net::lookup_host((host.as_str(), port)).await.map_err(refused)?.next();
    let address = address.ok_or_else(|| refused(std::io::Error::other("the name has no address")))?;
    let any: IpAddr = if address.is_ipv4() { [0; 4].into() } else { [0_u16; 8].into() };
    // Connecting a UDP socket sends nothing; it asks the system for the way.
    let socket = UdpSocket::bind((any, 0)).await.map_err(refused)?;
    socket.connect(address).await.map_err(refused)?;
    Ok(socket.local_addr().map_err(refused)?.ip())
}

/// The target, as its node talks to it.
#[derive(Clone)]
struct Server {
    client: Client,
}

impl Server {
    async fn send(&self, method: &str, path: &str, media_type: &str, body: &Value) -> Exchange {
        let mut headers = vec![("accept".to_owned(), "application/json".to_owned())];
        if !body.is_null() {
            headers.push(("content-type".to_owned(), media_type.to_owned()));
        }
        let request = Outgoing {
            method: method.to_owned(),
            target: path.to_owned(),
            headers,
            body: if body.is_null() { bytes::Bytes::new() } else { body.to_string().into() },
            identity: Identity::Admin,
            exact: false,
        };
        self.client.send(request, Instant::now() + PATIENCE).await
    }

    /// Lists pods and then hears of them as they change, until the watch ends.
    async fn follow(&self, fields: &str, mut heard: impl FnMut(Heard)) -> Option<()> {
        let list = self.send("GET", &format!("/api/v1/pods?fieldSelector={fields}"), "", &Value::Null).await;
        let list = list.json().filter(|_| list.status() == 200)?;
        let version = list["metadata"]["resourceVersion"].as_str()?.to_owned();
        let complete = |pod: &Value| {
            let mut pod = pod.clone();
            pod["kind"] = "Pod".into();
            pod["apiVersion"] = "v1".into();
            pod
        };
        heard(Heard::All(list["items"].as_array().into_iter().flatten().map(complete).collect()));
        let target = format!("/api/v1/pods?watch=1&fieldSelector={fields}&resourceVersion={version}");
        let request = Outgoing {
            method: "GET".to_owned(),
            target,
            headers: vec![("accept".to_owned(), "application/json".to_owned())],
            body: bytes::Bytes::new(),
            identity: Identity::Admin,
            exact: false,
        };
        let mut watch = self.client.watch(request, Instant::now() + PATIENCE).await;
        loop {
            // A watch of a quiet cluster says nothing for long, and the server ends it in time.
            match watch.next(Instant::now() + Duration::from_hours(1)).await {
                Next::Event(event) if event.kind == "DELETED" => heard(Heard::Gone(event.object.to_value())),
                Next::Event(event) if event.kind == "ERROR" => return None,
                Next::Event(event) => heard(Heard::Changed(event.object.to_value())),
                Next::End(_) | Next::Deadline => return Some(()),
            }
        }
    }
}

/// Copies out of an event.
trait ToValue {
    fn to_value(&self) -> Value;
}

impl ToValue for Arc<Value> {
    fn to_value(&self) -> Value {
        Value::clone(self)
    }
}

/// What a watch says about pods.
enum Heard {
    /// There are these and no others.
    All(Vec<Value>),
    Changed(Value),
    Gone(Value),
}

/// Tells the agent about the pods of its node.
async fn run_pods(server: Server, node: String, kubelet: Arc<Kubelet>) {
    loop {
        let fields = format!("spec.nodeName%3D{node}");
        server
            .follow(&fields, |heard| match heard {
                Heard::All(pods) => kubelet.observe_all(pods),
                Heard::Changed(pod) => kubelet.observe(pod),
                Heard::Gone(pod) => kubelet.forget(pod["metadata"]["uid"].as_str().unwrap_or_default()),
            })
            .await;
        tokio::time::sleep(PAUSE).await;
    }
}

/// Binds pods of the run that no node has yet.
async fn bind_pods(server: Server, node: String, prefix: String) {
    let (unbound, mut found) = tokio::sync::mpsc::unbounded_channel();
    let follow = async {
        loop {
            server
                .follow("spec.nodeName%3D", |heard| {
                    let pods = match heard {
                        Heard::All(pods) => pods,
                        Heard::Changed(pod) => vec![pod],
                        Heard::Gone(_) => Vec::new(),
                    };
                    for pod in pods.into_iter().filter(|pod| is_ours(pod, &prefix)) {
                        // The other end lives as long as this.
                        let _ = unbound.send(pod);
                    }
                })
                .await;
            tokio::time::sleep(PAUSE).await;
        }
    };
    let bind = async {
        while let Some(pod) = found.recv().await {
            let metadata = &pod["metadata"];
            let (Some(namespace), Some(name)) = (metadata["namespace"].as_str(), metadata["name"].as_str())
            else {
                continue;
            };
            let binding = json!({
                "apiVersion": "v1", "kind": "Binding",
                "metadata": {"name": name, "namespace": namespace},
                "target": {"apiVersion": "v1", "kind": "Node", "name": node},
            });
            let path = format!("/api/v1/namespaces/{namespace}/pods/{name}/binding");
            // A refusal means that it is bound already, or gone.
            server.send("POST", &path, "application/json", &binding).await;
        }
    };
    tokio::select! {
        () = follow => {}
        () = bind => {}
    }
}

/// Whether a pod is of this run, and wants no other node or scheduler.
fn is_ours(pod: &Value, prefix: &str) -> bool {
    let spec = &pod["spec"];
    let empty = |field: &str| match &spec[field] {
        Value::Array(list) => list.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        _ => true,
    };
    pod["metadata"]["name"].as_str().is_some_and(|name| name.starts_with(prefix))
        && pod["metadata"]["deletionTimestamp"].is_null()
        && spec["schedulerName"] == "default-scheduler"
        && empty("schedulingGates")
        && empty("nodeSelector")
}

/// Says now and then that the node is there.
async fn stay_alive(server: Server, node: String, mut status: Value) {
    let path = format!("/api/v1/nodes/{node}/status");
    loop {
        let now = jiff::Timestamp::now();
        let now = jiff::Timestamp::from_second(now.as_second()).unwrap_or(now).to_string();
        for condition in status["conditions"].as_array_mut().into_iter().flatten() {
            condition["lastHeartbeatTime"] = now.clone().into();
        }
        // The next one may come through.
        server.send("PATCH", &path, "application/merge-patch+json", &json!({ "status": status })).await;
        tokio::time::sleep(HEARTBEAT).await;
    }
}

impl Reports for Server {
    fn status<'a>(&'a self, pod: &'a Value, status: Value) -> Told<'a> {
        Box::pin(async move {
            let Some(path) = path_of(pod) else { return };
            let change = json!({"metadata": {"uid": pod["metadata"]["uid"]}, "status": status});
            let media_type = "application/strategic-merge-patch+json";
            // A refusal means that the pod is gone.
            self.send("PATCH", &format!("{path}/status"), media_type, &change).await;
        })
    }

    fn ended<'a>(&'a self, pod: &'a Value) -> Told<'a> {
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

type Told<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

fn path_of(pod: &Value) -> Option<String> {
    let metadata = &pod["metadata"];
    Some(format!(
        "/api/v1/namespaces/{}/pods/{}",
        metadata["namespace"].as_str()?,
        metadata["name"].as_str()?
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(name: &str, spec: &Value) -> Value {
        let mut pod = json!({"metadata": {"name": name}, "spec": {"schedulerName": "default-scheduler"}});
        for (field, value) in spec.as_object().into_iter().flatten() {
            pod["spec"][field] = value.clone();
        }
        pod
    }

    #[test]
    fn pods_of_others_and_those_that_want_another_node_are_left_alone() {
        assert!(is_ours(&pod("kp-a-1", &json!({"schedulingGates": []})), "kp-a-"));
        assert!(!is_ours(&pod("kp-b-1", &json!({})), "kp-a-"));
        assert!(!is_ours(&pod("kp-a-1", &json!({"schedulerName": "none"})), "kp-a-"));
        assert!(!is_ours(&pod("kp-a-1", &json!({"nodeSelector": {"disk": "ssd"}})), "kp-a-"));
        assert!(!is_ours(&pod("kp-a-1", &json!({"schedulingGates": [{"name": "g"}]})), "kp-a-"));
    }
}
