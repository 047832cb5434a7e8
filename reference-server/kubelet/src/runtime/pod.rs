//! A pod: its containers in their order, with the restart policy.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::io::DuplexStream;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::container::{Container, Ended, State};
use super::network::Network;
use super::process::{PodKey, PortError, StartError};
use super::spec::{PodSpec, RestartPolicy};

/// The wait before the second restart. It doubles with each restart.
const BACK_OFF: Duration = Duration::from_secs(10);
const MAX_BACK_OFF: Duration = Duration::from_mins(5);

pub(crate) struct Pod {
    pub(crate) key: PodKey,
    pub(crate) started: Timestamp,
    pub(crate) init: Vec<Arc<Container>>,
    pub(crate) containers: Vec<Arc<Container>>,
    restart_policy: RestartPolicy,
    network: Arc<Network>,
    stop: CancellationToken,
    /// Counts the changes of the containers.
    changes: watch::Sender<u64>,
}

impl Pod {
    pub(super) fn new(spec: PodSpec) -> Self {
        let network = Arc::<Network>::default();
        let hostname = spec.hostname;
        let container = |spec| Arc::new(Container::new(spec, &hostname, &network));
        Self {
            key: spec.key,
            started: Timestamp::now(),
            init: spec.init.into_iter().map(container).collect(),
            containers: spec.containers.into_iter().map(container).collect(),
            restart_policy: spec.restart_policy,
            network,
            stop: CancellationToken::new(),
            changes: watch::Sender::new(0),
        }
    }

    /// Returns a container by name.
    pub(crate) fn container(&self, name: &str) -> Result<&Arc<Container>, StartError> {
        let mut all = self.init.iter().chain(&self.containers);
        all.find(|container| container.name() == name)
            .ok_or_else(|| StartError::NoSuchContainer { container: name.to_owned() })
    }

    pub(crate) fn restart_policy(&self) -> RestartPolicy {
        self.restart_policy
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stop.is_cancelled()
    }

    /// Returns true after a stop, when no container runs.
    pub(crate) fn has_stopped(&self) -> bool {
        let mut all = self.init.iter().chain(&self.containers);
        self.is_stopping()
            && !all.any(|container| matches!(container.view().state, State::Running { .. }))
    }

    /// Returns a receiver that wakes at each change of a container.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Stops all containers.
    pub(crate) fn stop(&self) {
        self.stop.cancel();
        self.network.close();
    }

    pub(super) fn connect(&self, port: u16) -> Result<DuplexStream, PortError> {
        let runs =
            |container: &Arc<Container>| matches!(container.view().state, State::Running { .. });
        if !self.containers.iter().any(runs) {
            return Err(PortError::NotRunning);
        }
        self.network.connect(port)
    }

    /// Runs all containers until none restarts.
    pub(super) async fn supervise(self: Arc<Self>) {
        let work = async {
            let mut running = Vec::new();
            for container in &self.init {
                if container.spec.sidecar {
                    running.push(tokio::spawn(self.clone().keep(container.clone())));
                } else if !self.clone().keep(container.clone()).await {
                    return;
                }
            }
            for container in &self.containers {
                running.push(tokio::spawn(self.clone().keep(container.clone())));
            }
            for container in running {
                // A task that panicked counts as ended.
                let _ = container.await;
            }
        };
        work.await;
    }

    /// Runs one container until it does not restart. Returns true for exit code 0.
    async fn keep(self: Arc<Self>, container: Arc<Container>) -> bool {
        let mut changes = container.changes();
        let forwarded = async {
            while changes.changed().await.is_ok() {
                self.changes.send_modify(|count| *count += 1);
            }
        };
        let kept = self.restart(&container);
        let ended = tokio::select! {
            ended = kept => ended,
            () = forwarded => false,
        };
        self.changes.send_modify(|count| *count += 1);
        ended
    }

    async fn restart(&self, container: &Container) -> bool {
        let mut pause = Duration::ZERO;
        let init = self.init.iter().any(|one| one.name() == container.name());
        for (name, port) in &container.spec.ports {
            self.network.declare(name, *port);
        }
        loop {
            let Ended { code, .. } = container.run(&self.stop).await;
            let again = match self.restart_policy {
                _ if self.stop.is_cancelled() => false,
                _ if container.spec.sidecar => true,
                RestartPolicy::Always => !init || code != 0,
                RestartPolicy::OnFailure => code != 0,
                RestartPolicy::Never => false,
            };
            if !again {
                return code == 0;
            }
            if !pause.is_zero() {
                container.wait("CrashLoopBackOff");
                tokio::select! {
                    () = tokio::time::sleep(pause) => {}
                    () = self.stop.cancelled() => return false,
                }
            }
            pause = (pause * 2).clamp(BACK_OFF, MAX_BACK_OFF);
        }
    }
}
