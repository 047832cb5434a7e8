//! What the exit code says. Scripts rely on it: a code keeps its meaning.

use std::process::ExitCode;

/// How a command ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Exit(u8);

impl Exit {
    /// Conformant: no fail, no error. Of other commands: done.
    pub(crate) const CONFORMANT: Self = Self(0);
    /// The target fails; `lint` found something; `report diff` shows something worse.
    pub(crate) const FAILURES: Self = Self(1);
    /// The command line, or a file that it names, is wrong.
    pub(crate) const USAGE: Self = Self(2);
    /// The target cannot be reached, or does not accept the credential.
    pub(crate) const UNREACHABLE: Self = Self(3);
    /// Nothing ran: a pattern matches nothing, or every case was skipped.
    pub(crate) const NOTHING_RAN: Self = Self(4);
    /// No failures, but errors: the harness could not tell.
    pub(crate) const ERRORS: Self = Self(5);
    /// Interrupted; what was created is removed, and the reports are written.
    pub(crate) const INTERRUPTED: Self = Self(130);
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.0)
    }
}
