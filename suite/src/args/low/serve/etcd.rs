//! The options of the storage in etcd.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use crate::args::low::values::age;

/// The storage in etcd.
#[derive(Debug, Args)]
pub(in crate::args) struct Etcd {
    /// Keep the objects in etcd 3, with the keys of kube-apiserver; several servers can share it
    #[arg(
        long = "etcd-servers",
        value_name = "URL",
        value_delimiter = ',',
        conflicts_with = "data_dir"
    )]
    pub(in crate::args) servers: Vec<String>,

    /// Beginning of all keys in etcd
    #[arg(
        long = "etcd-prefix",
        value_name = "PREFIX",
        default_value = "/registry",
        requires = "servers"
    )]
    pub(in crate::args) prefix: String,

    /// Authorities of the certificate of etcd
    #[arg(long = "etcd-cafile", value_name = "FILE", requires = "servers")]
    pub(in crate::args) ca: Option<PathBuf>,

    /// Certificate of the server for etcd
    #[arg(long = "etcd-certfile", value_name = "FILE", requires_all = ["servers", "key"])]
    pub(in crate::args) certificate: Option<PathBuf>,

    /// Private key of that certificate
    #[arg(long = "etcd-keyfile", value_name = "FILE", requires = "certificate")]
    pub(in crate::args) key: Option<PathBuf>,

    /// Interval of compactions of etcd, which keep the history of one interval; 0 disables them
    #[arg(
        long = "etcd-compaction-interval",
        value_name = "DURATION",
        default_value = "5m",
        value_parser = age,
        requires = "servers"
    )]
    pub(in crate::args) compaction_interval: Duration,
}
