//! The exit codes. Scripts rely on them, so a code never changes its meaning.

use std::process::ExitCode;

/// How a command ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Exit(u8);

impl Exit {
    /// The target is conformant, or another command succeeded.
    pub(crate) const CONFORMANT: Self = Self(0);
    /// The target fails, `lint` found an error, or `report diff` found a worse result.
    pub(crate) const FAILURES: Self = Self(1);
    /// The command line, or a file that it names, is invalid.
    pub(crate) const USAGE: Self = Self(2);
    /// The target cannot be reached, or rejects the credential.
    pub(crate) const UNREACHABLE: Self = Self(3);
    /// Nothing ran: a pattern matches nothing, or every case was skipped.
    pub(crate) const NOTHING_RAN: Self = Self(4);
    /// The run has errors and no failure: the harness could not decide. Or the run stopped, because
    /// the server went away or hangs.
    pub(crate) const ERRORS: Self = Self(5);
    /// The run was interrupted, after cleanup and reports.
    pub(crate) const INTERRUPTED: Self = Self(130);
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.0)
    }
}
