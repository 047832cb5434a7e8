//! Arguments of `kubeproof clean`.

use std::time::Duration;

use clap::Args;

use super::Target;
use super::values::age;

#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(in crate::args) struct Clean {
    #[command(flatten)]
    pub(in crate::args) target: Target,

    /// Search this namespace too, for runs that used it with --namespace
    #[arg(long, value_name = "NAME")]
    pub(in crate::args) namespace: Option<String>,

    /// Remove only objects of at least this age, because younger ones may belong to an active run;
    /// 0 or 0s removes all
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = age)]
    pub(in crate::args) older_than: Duration,

    /// Print the objects without removing them
    #[arg(long)]
    pub(in crate::args) dry_run: bool,
}

const EXIT_CODES: &str = "\
Exit codes:
  0    every object of this age is removed, or there is none
  1    an object remains, or a collection cannot be listed
  2    usage error, including a namespace that does not exist
  3    the target cannot be reached, rejects the credential, or is no Kubernetes API";
