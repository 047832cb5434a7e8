//! Arguments of `kubeproof serve`.

mod audit;
mod etcd;
mod service_accounts;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use kubeproof_reference_server::{Capability, KubernetesVersion};

pub(in crate::args) use self::audit::{Audit, AuditMode};
pub(in crate::args) use self::etcd::Etcd;
pub(in crate::args) use self::service_accounts::ServiceAccounts;
use super::values::{
    age, alternative_name, capability, kubernetes_version, listen_address, number, positive, token,
};

/// The controllers in the server.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(in crate::args) enum Controllers {
    /// Namespaces and garbage collection
    #[default]
    All,
    /// None, as in kube-apiserver
    None,
}

#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own on the command line")]
pub(in crate::args) struct Serve {
    /// Address to listen on; port 0 selects a free port
    #[arg(
        long,
        value_name = "ADDRESS",
        default_value = "127.0.0.1:0",
        value_parser = listen_address
    )]
    pub(in crate::args) listen: SocketAddr,

    /// Version of Kubernetes whose resources and fields the server has
    #[arg(long, value_name = "VERSION", default_value_t, value_parser = kubernetes_version())]
    pub(in crate::args) kubernetes_version: KubernetesVersion,

    /// Serve TLS with newly generated certificates
    #[arg(long)]
    pub(in crate::args) tls: bool,

    /// Serve TLS, and add host names or addresses to the generated certificate, which has those of
    /// `--listen` and of this machine
    #[arg(
        long,
        value_name = "NAMES",
        value_delimiter = ',',
        value_parser = alternative_name,
        conflicts_with = "tls_cert_file"
    )]
    pub(in crate::args) tls_san: Vec<String>,

    /// Serve TLS with this certificate, followed by those of its authorities
    #[arg(long, value_name = "FILE", requires = "tls_private_key_file")]
    pub(in crate::args) tls_cert_file: Option<PathBuf>,

    /// Private key of the certificate
    #[arg(long, value_name = "FILE", requires = "tls_cert_file")]
    pub(in crate::args) tls_private_key_file: Option<PathBuf>,

    /// Serve TLS, and authenticate client certificates of these authorities
    #[arg(long, value_name = "FILE")]
    pub(in crate::args) client_ca_file: Option<PathBuf>,

    /// Users with bearer tokens, in the format of kube-apiserver: token,name,uid,"group,group"
    #[arg(long, value_name = "FILE")]
    pub(in crate::args) token_auth_file: Option<PathBuf>,

    /// Controllers to run; without them, deleted namespaces stay Terminating
    #[arg(long, value_enum, default_value_t)]
    pub(in crate::args) controllers: Controllers,

    /// Admission plugins to run besides the default ones, such as `ServiceAccount`
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(in crate::args) enable_admission_plugins: Vec<String>,

    /// Default admission plugins not to run
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(in crate::args) disable_admission_plugins: Vec<String>,

    /// Start without the roles, bindings and the service `kubernetes` of a new cluster
    #[arg(long)]
    pub(in crate::args) no_cluster_defaults: bool,

    /// Bearer token of the administrator [default: random]
    #[arg(long, value_name = "TOKEN", value_parser = token)]
    pub(in crate::args) token: Option<String>,

    /// Bearer token of a user without permissions [default: no such user]
    #[arg(long, value_name = "TOKEN", value_parser = token)]
    pub(in crate::args) user_token: Option<String>,

    /// Bearer token of a user with read-only permissions [default: no such user]
    #[arg(long, value_name = "TOKEN", value_parser = token)]
    pub(in crate::args) viewer_token: Option<String>,

    /// Enable deliberate bugs; most change JSON only, so typed Go clients need the content type
    /// `application/json`, or a server with `--without protobuf`
    #[arg(long, value_name = "NAME", num_args = 1..)]
    pub(in crate::args) fault: Vec<String>,

    /// List the deliberate bugs
    #[arg(long)]
    pub(in crate::args) list_faults: bool,

    /// Enable variations that the conventions permit, selected by this seed
    #[arg(long, value_name = "SEED", value_parser = number::<u64>)]
    pub(in crate::args) vary: Option<u64>,

    /// Enable variations by name
    #[arg(long, value_name = "NAME", num_args = 1..)]
    pub(in crate::args) variation: Vec<String>,

    /// List the variations
    #[arg(long)]
    pub(in crate::args) list_variations: bool,

    /// Keep the objects in this directory, so that they survive a restart or a crash
    #[arg(long, value_name = "DIR")]
    pub(in crate::args) data_dir: Option<PathBuf>,

    #[command(flatten)]
    pub(in crate::args) etcd: Etcd,

    /// Write all objects to this file when the server stops
    #[arg(long, value_name = "FILE")]
    pub(in crate::args) snapshot: Option<PathBuf>,

    /// Start with the objects of a snapshot; a data directory or etcd must be empty
    #[arg(long, value_name = "FILE")]
    pub(in crate::args) restore: Option<PathBuf>,

    #[command(flatten)]
    pub(in crate::args) audit: Audit,

    #[command(flatten)]
    pub(in crate::args) service_accounts: ServiceAccounts,

    /// Time between a signal, which makes /readyz fail, and the end of the listener
    #[arg(long, value_name = "DURATION", value_parser = age, default_value = "0")]
    pub(in crate::args) shutdown_delay_duration: Duration,

    /// Events to keep per resource; watches from older versions get 410 Gone
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = positive::<usize>)]
    pub(in crate::args) history: usize,

    /// Disable capabilities consistently, so that discovery does not list them
    #[arg(long, value_name = "CAPABILITY", num_args = 1.., value_parser = capability())]
    pub(in crate::args) without: Vec<Capability>,

    /// Serve one namespaced resource in one group; the same as --without other-resources
    #[arg(long)]
    pub(in crate::args) only_resource: bool,

    /// Serve a sample custom resource, `gadgets.v1.devices.example.com`, which design rules judge
    #[arg(long)]
    pub(in crate::args) sample: bool,

    /// Apply the objects of these files before the server is ready: definitions first, then
    /// namespaces
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub(in crate::args) load: Vec<PathBuf>,

    /// Write a kubeconfig for the administrator to this file, readable by its owner only
    #[arg(long, value_name = "FILE")]
    pub(in crate::args) kubeconfig_out: Option<PathBuf>,
}
