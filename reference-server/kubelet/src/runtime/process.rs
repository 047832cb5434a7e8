//! Identifies pods, and reports why no process was started.

pub(crate) use kubeproof_streaming::PIPE_CAPACITY;
pub(crate) use kubeproof_streaming::portforward::PortError;
pub(crate) use kubeproof_streaming::remotecommand::{
    ExecRequest, Exit, Pipe, Process, TerminalSize,
};

/// Identifies a pod. An empty uid matches any pod of this name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PodKey {
    /// The namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
    /// The uid, or an empty string.
    pub uid: String,
}

/// Why no process was started.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StartError {
    /// This node runs no such pod.
    #[error("pod does not exist")]
    NoSuchPod,
    /// The pod has no such container.
    #[error("container not found ({container:?})")]
    NoSuchContainer {
        /// The name of the container.
        container: String,
    },
    /// The container waits or has ended.
    #[error("container {container:?} is not running")]
    NotRunning {
        /// The name of the container.
        container: String,
    },
    /// The container has no such program.
    #[error(
        "exec failed: unable to start container process: exec: {0:?}: executable file not found \
         in $PATH"
    )]
    NoSuchCommand(String),
    /// The request has no command.
    #[error("exec failed: no command was given")]
    NoCommand,
}

impl StartError {
    /// Returns the stable code of this error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NoSuchPod => "start-no-such-pod",
            Self::NoSuchContainer { .. } => "start-no-such-container",
            Self::NotRunning { .. } => "start-not-running",
            Self::NoSuchCommand(_) => "start-no-such-command",
            Self::NoCommand => "start-no-command",
        }
    }
}
