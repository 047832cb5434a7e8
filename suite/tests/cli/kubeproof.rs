//! Runs the built binary.

use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, PoisonError};

/// Whole runs come one after the other: at once, they would take each other's time.
static WHOLE: Mutex<()> = Mutex::new(());

/// A run of all that the arguments leave in, alone among those of its kind.
pub(crate) fn whole_run(arguments: &[&str]) -> Ended {
    let _alone = WHOLE.lock().unwrap_or_else(PoisonError::into_inner);
    kubeproof(&[&["run"], arguments].concat())
}

/// The binary, ready for arguments; nothing of the environment reaches it that would change what it does.
pub(crate) fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kubeproof"));
    command.args(arguments).stdin(Stdio::null());
    for name in ["KUBECONFIG", "NO_COLOR", "COLUMNS", "http_proxy", "https_proxy"] {
        command.env_remove(name);
    }
    command
}

/// What a run of the binary came to.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl From<Output> for Ended {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).expect("output is UTF-8"),
            stderr: String::from_utf8(output.stderr).expect("errors are UTF-8"),
        }
    }
}

impl Ended {
    /// Fails, with all that was printed, unless it ended like this.
    #[track_caller]
    pub(crate) fn with(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "stdout:\n{}\nstderr:\n{}", self.stdout, self.stderr);
        self
    }
}

/// Runs the binary to its end.
pub(crate) fn kubeproof(arguments: &[&str]) -> Ended {
    command(arguments).output().expect("the binary runs").into()
}
