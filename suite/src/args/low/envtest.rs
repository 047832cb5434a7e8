//! Arguments of the commands for test suites that use envtest.

use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
pub(in crate::args) struct EnvtestAssets {
    /// Directory to write; the value of `KUBEBUILDER_ASSETS`
    #[arg(value_name = "DIR")]
    pub(in crate::args) dir: PathBuf,

    /// kubectl to link [default: the kubectl in PATH]
    #[arg(long, value_name = "FILE")]
    pub(in crate::args) kubectl: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(in crate::args) struct Launcher {
    /// Flags of the program; `--help` lists them
    #[arg(value_name = "FLAG", trailing_var_arg = true, allow_hyphen_values = true)]
    pub(in crate::args) flags: Vec<String>,
}
