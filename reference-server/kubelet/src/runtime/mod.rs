//! A scripted container runtime, whose programs are part of this crate and run in memory.
//!
//! It uses no processes, files or sockets of the machine, and its memory is bounded. Clients that
//! may create pods therefore get no access to the machine. Every image contains the same programs;
//! see [`commands`].

mod commands;
mod container;
mod files;
mod io;
mod launch;
mod log;
mod machine;
mod network;
mod pod;
mod process;
mod shell;
mod spec;
mod terminal;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::io::DuplexStream;

pub(crate) use self::container::{Container, Ended, State, View};
pub use self::log::LogOptions;
pub(crate) use self::log::LogStream;
pub(crate) use self::pod::Pod;
use self::process::{ExecRequest, PortError, Process};
pub use self::process::{PodKey, StartError};
pub(crate) use self::spec::{PodSpec, RestartPolicy};

/// The pods of a node. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct Runtime(Arc<Mutex<Pods>>);

/// The keys are namespace and name.
type Pods = BTreeMap<(String, String), Arc<Pod>>;

impl Runtime {
    fn pods(&self) -> MutexGuard<'_, Pods> {
        // Each change is one insertion or removal, so a panic leaves the map consistent.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a pod, or returns the running one.
    pub(crate) fn run(&self, spec: PodSpec) -> Arc<Pod> {
        let mut pods = self.pods();
        let name = (spec.key.namespace.clone(), spec.key.name.clone());
        if let Some(running) = pods.get(&name).filter(|pod| pod.key.uid == spec.key.uid) {
            return running.clone();
        }
        let pod = Arc::new(Pod::new(spec));
        // A new uid means that the pod was deleted and created again.
        if let Some(old) = pods.insert(name, pod.clone()) {
            old.stop();
        }
        tokio::spawn(pod.clone().supervise());
        pod
    }

    /// Stops and removes a pod.
    pub(crate) fn remove(&self, key: &PodKey) {
        let mut pods = self.pods();
        let name = (key.namespace.clone(), key.name.clone());
        if pods.get(&name).is_some_and(|pod| key.uid.is_empty() || pod.key.uid == key.uid)
            && let Some(pod) = pods.remove(&name)
        {
            pod.stop();
        }
    }

    /// Returns a pod that was started here.
    pub(crate) fn pod(&self, key: &PodKey) -> Result<Arc<Pod>, StartError> {
        let pods = self.pods();
        let pod = pods.get(&(key.namespace.clone(), key.name.clone()));
        pod.filter(|pod| key.uid.is_empty() || pod.key.uid == key.uid)
            .cloned()
            .ok_or(StartError::NoSuchPod)
    }

    #[expect(clippy::unused_async, reason = "a runtime that is elsewhere would have to wait")]
    pub(crate) async fn exec(
        &self,
        pod: &PodKey,
        container: &str,
        request: ExecRequest,
    ) -> Result<Process, StartError> {
        self.pod(pod)?.container(container)?.exec(&request)
    }

    pub(crate) async fn attach(
        &self,
        pod: &PodKey,
        container: &str,
        request: ExecRequest,
    ) -> Result<Process, StartError> {
        self.pod(pod)?.container(container)?.attach(&request).await
    }

    #[expect(clippy::unused_async, reason = "a runtime that is elsewhere would have to wait")]
    pub(crate) async fn connect(&self, pod: &PodKey, port: u16) -> Result<DuplexStream, PortError> {
        let pod = self.pod(pod).map_err(|_| PortError::NoSuchPod)?;
        pod.connect(port)
    }

    pub(crate) fn logs(
        &self,
        pod: &PodKey,
        container: &str,
        options: LogOptions,
    ) -> Result<LogStream, LogError> {
        let pod = self.pod(pod)?;
        let container = pod.container(container)?;
        match container.log(options.previous) {
            Some(log) => Ok(log.read(options)),
            None => Err(LogError::NoPrevious { container: container.name().to_owned() }),
        }
    }
}

/// Why a log is unavailable.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LogError {
    /// The pod or the container does not exist.
    #[error(transparent)]
    Missing(#[from] StartError),
    /// The container has never been restarted.
    #[error("previous terminated container {container:?} not found")]
    NoPrevious {
        /// The name of the container.
        container: String,
    },
}

#[cfg(test)]
mod tests;
