//! Arguments of `kubeproof explore`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::Target;
use super::stress::{EXIT_CODES, Scope};
use super::values::{duration, number, positive};

#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(in crate::args) struct Explore {
    #[command(flatten)]
    pub(in crate::args) target: Target,
    #[command(flatten)]
    pub(in crate::args) scope: Scope,

    /// Time for all checks, for example 90s or 10m
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = duration)]
    pub(in crate::args) timeout: Duration,

    /// The most requests
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = positive::<usize>)]
    pub(in crate::args) max_requests: usize,

    /// Seed for the objects [default: random]
    #[arg(long, value_name = "N", value_parser = number::<u64>)]
    pub(in crate::args) seed: Option<u64>,

    /// Write the broken property to this file, as a case of a directory for `run --cases`, such as
    /// `my-cases/explored/first.yaml`
    #[arg(long, value_name = "FILE")]
    pub(in crate::args) save: Option<PathBuf>,
}
