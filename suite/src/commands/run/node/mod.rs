//! `--with-node`: registers a node for targets without nodes, so that the cases about streams can
//! run.
//!
//! The node is registered before the plan is made, so that the plan finds a ready node. Only the
//! pods of the run are bound to it. They run in the scripted runtime of the reference server, in
//! this process. The node is removed after the cleanup of the run.

mod pods;
mod target_client;

use std::future::Future;
use std::io::Write as _;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use kubeproof_harness::target::TargetConfig;
use kubeproof_harness::transport::Client;
use kubeproof_reference_server::kubelet::{Endpoint, EndpointConfig, Kubelet};
use kubeproof_reference_server::node::manifest;
use serde_json::{Value, json};
use tokio::net::UdpSocket;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;

use self::target_client::TargetClient;
use crate::args::high::NodeOptions;
use crate::error::Error;

/// The key of the taint of the nodes of all runs.
const RUN_TAINT: &str = "kubeproof.dev/run";

/// The interval of heartbeats. Controllers consider a node lost after 40 seconds without one.
const HEARTBEAT: Duration = Duration::from_secs(10);

/// Time limits of the removal of the node.
const CLOSE: Duration = Duration::from_secs(10);
const CLOSE_WHEN_INTERRUPTED: Duration = Duration::from_secs(1);

/// A registered node of the run.
pub(super) struct Node {
    target: TargetClient,
    name: String,
    /// The watches and the heartbeat. Dropping the set ends them.
    tasks: JoinSet<()>,
    _endpoint: Endpoint,
    _runtime: EndpointRuntime,
}

impl Node {
    /// Registers the node of the run with this id. Its requests count against the limits of the
    /// client. A target with a ready node gets no other one: its scheduler and the run would bind
    /// the same pods.
    pub(super) async fn open(
        client: &Client,
        target: &TargetConfig,
        options: &NodeOptions,
        run: &str,
    ) -> Result<Option<Self>, Error> {
        let requests = TargetClient::new(client.clone());
        if let Some(name) = requests.ready_node().await {
            let why = format!("the target has the ready node {name}, so --with-node adds none");
            writeln!(std::io::stderr(), "note: {why}")?;
            return Ok(None);
        }
        let address = match options.address {
            Some(address) => address,
            None => local_address_towards(target).await?,
        };
        let client_ca_pem = options.client_ca.as_deref().map(read_pem).transpose()?;
        let target = requests;
        let name = format!("kp-{run}-node");
        let kubelet = Arc::new(Kubelet::new(name.clone(), address, Arc::new(target.clone())));
        let runtime = EndpointRuntime::start().map_err(Error::Runtime)?;
        let config = EndpointConfig { listen: SocketAddr::new(address, 0), client_ca_pem };
        let opened = runtime.run(Endpoint::open(kubelet.clone(), config)).await;
        let endpoint = opened.ok_or_else(|| Error::Runtime(std::io::ErrorKind::Other.into()))??;
        let mut node = manifest(&name, address, endpoint.port());
        // The taint keeps the pods of other users away.
        node["spec"]["taints"] = json!([{"key": RUN_TAINT, "value": run, "effect": "NoSchedule"}]);
        let created = target.send("POST", "/api/v1/nodes", "application/json", &node).await;
        match created.status() {
            201 => {}
            403 => return Err(Error::NodeForbidden(created.in_words())),
            _ => return Err(Error::Node(created.in_words())),
        }
        let mut tasks = JoinSet::new();
        tasks.spawn(pods::run_pods(target.clone(), name.clone(), kubelet));
        tasks.spawn(pods::bind_pods(target.clone(), name.clone(), format!("kp-{run}-")));
        tasks.spawn(send_heartbeats(target.clone(), name.clone(), node["status"].clone()));
        Ok(Some(Self { target, name, tasks, _endpoint: endpoint, _runtime: runtime }))
    }

    /// Removes the node. The cleanup of the run has removed its pods. An interrupted run ends soon.
    pub(super) async fn close(mut self, interrupted: bool) -> Result<(), Error> {
        self.tasks.shutdown().await;
        let path = format!("/api/v1/nodes/{}", self.name);
        let body = json!({});
        let deletion = self.target.send("DELETE", &path, "application/json", &body);
        let limit = if interrupted { CLOSE_WHEN_INTERRUPTED } else { CLOSE };
        let why = match tokio::time::timeout(limit, deletion).await {
            Ok(deleted) if matches!(deleted.status(), 200 | 202 | 404) => return Ok(()),
            Ok(deleted) => deleted.in_words(),
            Err(_) => "the server sent no response in time".to_owned(),
        };
        Err(Error::NodeStays { name: self.name, why })
    }
}

/// The runtime of the endpoint. On the runtime of the run, computations of cases would delay the
/// many small steps of the node, and the server behind it would appear slow.
struct EndpointRuntime(Option<Runtime>);

impl EndpointRuntime {
    fn start() -> std::io::Result<Self> {
        let mut builder = Builder::new_multi_thread();
        let runtime = builder.worker_threads(2).thread_name("node").enable_all().build()?;
        Ok(Self(Some(runtime)))
    }

    /// Runs a future on this runtime. Tasks that it spawns run there too.
    async fn run<T: Send + 'static>(
        &self,
        future: impl Future<Output = T> + Send + 'static,
    ) -> Option<T> {
        self.0.as_ref()?.spawn(future).await.ok()
    }
}

impl Drop for EndpointRuntime {
    fn drop(&mut self) {
        // A blocking shutdown would panic inside of another runtime.
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

fn read_pem(path: &Path) -> Result<String, Error> {
    std::fs::read_to_string(path).map_err(|source| Error::Read { path: path.to_owned(), source })
}

/// Returns the source address of connections to the target. The target can reach this machine there
/// if no NAT is in between.
async fn local_address_towards(target: &TargetConfig) -> Result<IpAddr, Error> {
    let host = target.server.host_str().unwrap_or_default().trim_matches(['[', ']']).to_owned();
    let port = target.server.port_or_known_default().unwrap_or(443);
    let no_address = |source| Error::NoAddress { host: host.clone(), source };
    let addresses = tokio::net::lookup_host((host.as_str(), port)).await;
    let address = addresses
        .map_err(no_address)?
        .next()
        .ok_or_else(|| no_address(std::io::Error::other("the name has no address")))?;
    let any: IpAddr = if address.is_ipv4() { [0; 4].into() } else { [0_u16; 8].into() };
    // Connecting a UDP socket selects a route without sending anything.
    let socket = UdpSocket::bind((any, 0)).await.map_err(no_address)?;
    socket.connect(address).await.map_err(no_address)?;
    Ok(socket.local_addr().map_err(no_address)?.ip())
}

async fn send_heartbeats(target: TargetClient, node: String, mut status: Value) {
    let path = format!("/api/v1/nodes/{node}/status");
    loop {
        let now = jiff::Timestamp::now();
        let now = jiff::Timestamp::from_second(now.as_second()).unwrap_or(now).to_string();
        for condition in status["conditions"].as_array_mut().into_iter().flatten() {
            condition["lastHeartbeatTime"] = now.clone().into();
        }
        // A lost heartbeat does no harm, because the next one follows.
        let change = json!({ "status": status });
        target.send("PATCH", &path, "application/merge-patch+json", &change).await;
        tokio::time::sleep(HEARTBEAT).await;
    }
}
