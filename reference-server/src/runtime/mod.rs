//! A scripted container runtime: pods whose programs are part of this server and run in memory.
//!
//! Nothing of it touches the machine: there are no processes, no files and no sockets, so whoever may create pods can do no
//! more than use a bounded amount of memory. Every image holds the same programs (see [`commands`]), and a container without
//! a command stays until it is stopped.

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
pub(crate) use self::log::{LogOptions, LogStream};
pub(crate) use self::pod::Pod;
pub(crate) use self::process::{
    ExecRequest, Exit, PIPE_CAPACITY, Pipe, PodKey, PortError, Process, StartError, TerminalSize,
};
pub(crate) use self::spec::{PodSpec, RestartPolicy};

/// The pods of a node. Clones are the same runtime.
#[derive(Clone, Default)]
pub(crate) struct Runtime(Arc<Mutex<Pods>>);

/// By namespace and name.
type Pods = BTreeMap<(String, String), Arc<Pod>>;

impl Runtime {
    fn pods(&self) -> MutexGuard<'_, Pods> {
        // Each change is one insertion or removal.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a pod; one that runs already is left as it is.
    pub(crate) fn run(&self, spec: PodSpec) -> Arc<Pod> {
        let mut pods = self.pods();
        let name = (spec.key.namespace.clone(), spec.key.name.clone());
        if let Some(running) = pods.get(&name).filter(|pod| pod.key.uid == spec.key.uid) {
            return running.clone();
        }
        let pod = Arc::new(Pod::new(spec));
        // One of the same name that went without a word is another pod.
        if let Some(old) = pods.insert(name, pod.clone()) {
            old.stop();
        }
        tokio::spawn(pod.clone().supervise());
        pod
    }

    /// Stops a pod and forgets it.
    pub(crate) fn remove(&self, key: &PodKey) {
        let mut pods = self.pods();
        let name = (key.namespace.clone(), key.name.clone());
        if pods.get(&name).is_some_and(|pod| key.uid.is_empty() || pod.key.uid == key.uid)
            && let Some(pod) = pods.remove(&name)
        {
            pod.stop();
        }
    }

    /// A pod that was started here. An empty uid finds whichever has the name.
    pub(crate) fn pod(&self, key: &PodKey) -> Result<Arc<Pod>, StartError> {
        let pods = self.pods();
        let pod = pods.get(&(key.namespace.clone(), key.name.clone()));
        pod.filter(|pod| key.uid.is_empty() || pod.key.uid == key.uid).cloned().ok_or(StartError::NoSuchPod)
    }

    /// Runs a command in a container.
    #[expect(clippy::unused_async, reason = "a runtime that is elsewhere would have to wait")]
    pub(crate) async fn exec(
        &self,
        pod: &PodKey,
        container: &str,
        request: ExecRequest,
    ) -> Result<Process, StartError> {
        self.pod(pod)?.container(container)?.exec(&request)
    }

    /// Joins the streams of a container's main process. The command of the request means nothing here.
    pub(crate) async fn attach(
        &self,
        pod: &PodKey,
        container: &str,
        request: ExecRequest,
    ) -> Result<Process, StartError> {
        self.pod(pod)?.container(container)?.attach(&request).await
    }

    /// Connects to a TCP port of a pod.
    #[expect(clippy::unused_async, reason = "a runtime that is elsewhere would have to wait")]
    pub(crate) async fn connect(&self, pod: &PodKey, port: u16) -> Result<DuplexStream, PortError> {
        let pod = self.pod(pod).map_err(|_| PortError::NoSuchPod)?;
        pod.connect(port)
    }

    /// Reads the log of a container.
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

/// Why a log cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum LogError {
    /// There is no such container here.
    #[error(transparent)]
    Missing(#[from] StartError),
    /// The container has never been restarted.
    #[error("previous terminated container {container:?} not found")]
    NoPrevious { container: String },
}

#[cfg(test)]
mod tests;
