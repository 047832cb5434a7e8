//! Runs the built binary.

use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, PoisonError};

/// Complete runs are serialized, because concurrent ones would run into the time limits of cases.
static COMPLETE_RUN: Mutex<()> = Mutex::new(());

/// Runs all cases that the arguments select, without other complete runs at the same time.
pub(crate) fn complete_run(arguments: &[&str]) -> Finished {
    let _lock = COMPLETE_RUN.lock().unwrap_or_else(PoisonError::into_inner);
    kubeproof(&[&["run"], arguments].concat())
}

/// Returns a command for the binary, without environment variables that change its behaviour.
pub(crate) fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kubeproof"));
    command.args(arguments).stdin(Stdio::null());
    for name in ["KUBECONFIG", "NO_COLOR", "COLUMNS", "http_proxy", "https_proxy"] {
        command.env_remove(name);
    }
    command
}

/// The exit code and the output of the binary.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl From<Output> for Finished {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).expect("output is UTF-8"),
            stderr: String::from_utf8(output.stderr).expect("errors are UTF-8"),
        }
    }
}

impl Finished {
    /// Asserts the exit code. A failure prints the output.
    #[track_caller]
    pub(crate) fn with(self, code: i32) -> Self {
        let (stdout, stderr) = (&self.stdout, &self.stderr);
        assert_eq!(self.code, Some(code), "stdout:\n{stdout}\nstderr:\n{stderr}");
        self
    }
}

/// Runs the binary to its end.
pub(crate) fn kubeproof(arguments: &[&str]) -> Finished {
    command(arguments).output().expect("the binary runs").into()
}
