//! Arguments of the commands for test suites that use envtest.

use std::path::PathBuf;

use clap::Args;
use kubeproof_reference_server::KubernetesVersion;

use super::values::kubernetes_version;

#[derive(Debug, Args)]
pub(in crate::args) struct EnvtestAssets {
    /// Directory to write; the value of `KUBEBUILDER_ASSETS`
    #[arg(value_name = "DIR")]
    pub(in crate::args) dir: PathBuf,

    /// kubectl to link [default: the kubectl in PATH]
    #[arg(long, value_name = "FILE")]
    pub(in crate::args) kubectl: Option<PathBuf>,

    /// Version of Kubernetes whose resources and fields the server has [default: the newest]
    #[arg(long, value_name = "VERSION", value_parser = kubernetes_version())]
    pub(in crate::args) kubernetes_version: Option<KubernetesVersion>,
}

#[derive(Debug, Args)]
pub(in crate::args) struct Launcher {
    /// Flags of the program; `--help` lists them
    #[arg(value_name = "FLAG", trailing_var_arg = true, allow_hyphen_values = true)]
    pub(in crate::args) flags: Vec<String>,
}
