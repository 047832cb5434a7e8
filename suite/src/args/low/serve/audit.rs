//! The options of the audit log.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::args::low::values::number;

/// When the server writes audit events.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(in crate::args) enum AuditMode {
    /// In the background; events are lost if the queue is full
    Batch,
    /// Before the response
    #[default]
    Blocking,
    /// Before the response; a request fails if its first event cannot be written
    BlockingStrict,
}

/// The audit log.
#[derive(Debug, Args)]
pub(in crate::args) struct Audit {
    /// Append audit events to this file, or `-` for the standard output
    #[arg(long = "audit-log-path", value_name = "FILE", requires = "policy")]
    pub(in crate::args) path: Option<PathBuf>,

    /// Policy of the audit log: a Policy of audit.k8s.io/v1
    #[arg(long = "audit-policy-file", value_name = "FILE", requires = "path")]
    pub(in crate::args) policy: Option<PathBuf>,

    /// When the server writes audit events
    #[arg(long = "audit-log-mode", value_name = "MODE", default_value = "blocking")]
    pub(in crate::args) mode: AuditMode,

    /// Replace the audit log when it has this many megabytes
    #[arg(
        long = "audit-log-maxsize",
        value_name = "MB",
        default_value_t = 100,
        value_parser = number::<u64>
    )]
    pub(in crate::args) max_size: u64,

    /// Keep this many replaced audit logs; 0 keeps all
    #[arg(
        long = "audit-log-maxbackup",
        value_name = "N",
        default_value_t = 0,
        value_parser = number::<usize>
    )]
    pub(in crate::args) max_backup: usize,

    /// Keep replaced audit logs for this many days; 0 keeps all
    #[arg(
        long = "audit-log-maxage",
        value_name = "DAYS",
        default_value_t = 0,
        value_parser = number::<u32>
    )]
    pub(in crate::args) max_age: u32,
}
