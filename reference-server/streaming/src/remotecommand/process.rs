//! A running process, as the streams see it.

use tokio::io::DuplexStream;
use tokio::sync::{mpsc, oneshot};

/// One end of a pipe. Dropping the reading end breaks the pipe. Dropping the writing end closes it.
pub type Pipe = DuplexStream;

/// The parameters of exec and attach. Attach ignores the command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "the API has one parameter for each")]
pub struct ExecRequest {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// True if the client sends input.
    pub stdin: bool,
    /// True if the client reads the output.
    pub stdout: bool,
    /// True if the client reads the error output.
    pub stderr: bool,
    /// True if the process has a terminal.
    pub tty: bool,
}

/// The size of a terminal in characters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TerminalSize {
    /// The number of columns.
    pub width: u16,
    /// The number of rows.
    pub height: u16,
}

/// A running process. It ends when `exit` is dropped.
#[derive(Debug)]
pub struct Process {
    /// The input, for writing.
    pub stdin: Option<Pipe>,
    /// The output, for reading.
    pub stdout: Option<Pipe>,
    /// The error output, for reading. None with a terminal, which has one output.
    pub stderr: Option<Pipe>,
    /// Receives the sizes of the terminal.
    pub resize: mpsc::Sender<TerminalSize>,
    /// The exit status. The pipes may still contain output when it arrives.
    pub exit: oneshot::Receiver<Exit>,
}

/// How a process ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Exit {
    /// With this exit code. A signal counts as 128 plus its number.
    Code(i32),
    /// The process did not run to its end for this reason.
    Failed(String),
}
