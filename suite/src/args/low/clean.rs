//! Arguments of `kubeproof clean`.

use std::time::Duration;

use clap::Args;

use super::Target;
use super::values::age;

#[derive(Debug, Args)]
pub(in crate::args) struct Clean {
    #[command(flatten)]
    pub(in crate::args) target: Target,

    /// Search this namespace too, for runs that used it with --namespace
    #[arg(long, value_name = "NAME")]
    pub(in crate::args) namespace: Option<String>,

    /// Remove only objects of at least this age, because younger ones may belong to an active run
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = age)]
    pub(in crate::args) older_than: Duration,

    /// Print the objects without removing them
    #[arg(long)]
    pub(in crate::args) dry_run: bool,
}
