//! A process in a container, seen from the stream that drives it: the seam between the framing and the runtime.

use tokio::io::DuplexStream;
use tokio::sync::{mpsc, oneshot};

/// What a pipe holds before its writer has to wait for the reader.
pub(crate) const PIPE_CAPACITY: usize = 64 * 1024;

/// One end of a pipe. Dropping a reading end breaks the pipe, dropping or shutting down a writing end ends it.
pub(crate) type Pipe = DuplexStream;

/// Which container is meant. An empty uid stands for whichever pod has the name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct PodKey {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) uid: String,
}

/// What a stream asks to run. Attaching asks for the same, but for the command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "they are the parameters of the request, one for one")]
pub(crate) struct ExecRequest {
    pub(crate) command: Vec<String>,
    pub(crate) stdin: bool,
    pub(crate) stdout: bool,
    pub(crate) stderr: bool,
    pub(crate) tty: bool,
}

/// The size of a terminal, in characters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TerminalSize {
    pub(crate) width: u16,
    pub(crate) height: u16,
}

/// A running process. The slowest reader holds the writer back; a process whose `exit` nobody awaits any more is ended.
#[derive(Debug)]
pub(crate) struct Process {
    /// To write to. Shutting it down is the end of the input.
    pub(crate) stdin: Option<Pipe>,
    /// To read from, up to its end.
    pub(crate) stdout: Option<Pipe>,
    /// To read from, up to its end; none with a terminal, which has one output.
    pub(crate) stderr: Option<Pipe>,
    /// Tells the process that its terminal has another size.
    pub(crate) resize: mpsc::Sender<TerminalSize>,
    /// How it ended. The pipes may still hold what it wrote before.
    pub(crate) exit: oneshot::Receiver<Exit>,
}

/// How a process ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// By itself, or by a signal (128 and its number).
    Code(i32),
    /// It could not be run to its end, for this reason.
    Failed(String),
}

/// Why no process was started.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum StartError {
    /// This node runs no such pod.
    #[error("pod does not exist")]
    NoSuchPod,
    /// The pod has no such container.
    #[error("container not found ({container:?})")]
    NoSuchContainer { container: String },
    /// It waits, or has ended.
    #[error("container {container:?} is not running")]
    NotRunning { container: String },
    /// There is no such program in the container.
    #[error(
        "exec failed: unable to start container process: exec: {0:?}: executable file not found in $PATH"
    )]
    NoSuchCommand(String),
    /// The request names no program.
    #[error("exec failed: no command was given")]
    NoCommand,
}

/// Why a port cannot be reached.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PortError {
    /// This node runs no such pod.
    #[error("pod does not exist")]
    NoSuchPod,
    /// No container of the pod runs.
    #[error("pod is not running")]
    NotRunning,
    /// Nothing listens there.
    #[error("failed to connect to localhost:{port}: connection refused")]
    Refused { port: u16 },
}
