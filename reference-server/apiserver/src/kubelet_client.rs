//! The API server's view of the kubelets, which run the pods.
//!
//! The API server depends on this trait only, so it can run without a kubelet.

use futures_util::future::BoxFuture;
use http::StatusCode;
use jiff::Timestamp;
use kubeproof_streaming::portforward::PortError;
use kubeproof_streaming::remotecommand::{ExecRequest, Process, Rejection};
use tokio::io::DuplexStream;

use crate::http::respond::Chunks;

/// A pod on a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodRef {
    /// The namespace of the pod.
    pub namespace: String,
    /// The name of the pod.
    pub name: String,
    /// The UID of the pod.
    pub uid: String,
}

/// The options of `pods/log`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodLogOptions {
    /// Waits for more lines.
    pub follow: bool,
    /// Reads the log of the container before its last restart.
    pub previous: bool,
    /// Returns this many lines of the end.
    pub tail_lines: Option<u64>,
    /// Returns at most this many bytes.
    pub limit_bytes: Option<u64>,
    /// Returns lines from this time on.
    pub since: Option<Timestamp>,
    /// Puts the time in front of each line.
    pub timestamps: bool,
}

/// Why a container has no log.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PodLogError {
    /// The container has not started.
    #[error("is waiting to start: ContainerCreating")]
    ContainerCreating,
    /// The container has never been restarted.
    #[error("previous terminated container not found")]
    NoPrevious,
    /// Any other reason.
    #[error("{0}")]
    Other(String),
}

/// Sends requests to the kubelet of a node.
pub trait KubeletClient: Send + Sync {
    /// Returns the name of the node.
    fn node(&self) -> &str;

    /// Connects to the HTTP endpoint of the kubelet. Returns none when the kubelet has stopped.
    fn dial(&self) -> Option<DuplexStream>;

    /// Connects to a TCP port of a pod.
    fn connect(
        &self,
        pod: PodRef,
        port: u16,
    ) -> BoxFuture<'static, Result<DuplexStream, PortError>>;

    /// Returns why the kubelet rejects commands in a container, if it does.
    fn rejection(&self, pod: &PodRef, container: &str) -> Option<Rejection>;

    /// Runs a command in a container.
    fn exec(
        &self,
        pod: PodRef,
        container: String,
        request: ExecRequest,
    ) -> BoxFuture<'static, Result<Process, String>>;

    /// Attaches to the main process of a container. The command of the request is ignored.
    fn attach(
        &self,
        pod: PodRef,
        container: String,
        request: ExecRequest,
    ) -> BoxFuture<'static, Result<Process, String>>;

    /// Reads the log of a container.
    fn logs(
        &self,
        pod: &PodRef,
        container: &str,
        options: PodLogOptions,
    ) -> Result<Chunks, PodLogError>;
}

/// Returns the rejection of a kubelet that has stopped.
pub fn stopped() -> Rejection {
    Rejection { status: StatusCode::NOT_FOUND, message: "pod does not exist".to_owned() }
}
