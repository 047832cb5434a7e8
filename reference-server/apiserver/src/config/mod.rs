//! The options of an API server.

mod admission_plugins;
pub(crate) mod audit;
pub mod disabled;
mod token_file;

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

pub use self::admission_plugins::{AdmissionPluginError, AdmissionPlugins};
pub use self::audit::{AuditMode, AuditOptions, AuditPolicy, PolicyError, Rotation};
use self::disabled::DisabledCapabilities;
pub use self::token_file::{TokenFileError, TokenUser};
use crate::certificates::ClientCa;

pub use kubeproof_api::{UnknownVersion, Version as KubernetesVersion};
pub use kubeproof_storage::{EtcdOptions, EtcdTls};

/// The options of an API server.
#[derive(Clone, Debug)]
pub struct Options {
    /// The host and port that discovery shows.
    pub address: String,
    /// The version of Kubernetes: its resources and their fields.
    pub version: KubernetesVersion,
    /// The bearer token of the administrator.
    pub admin_token: String,
    /// The bearer token of a user without rights.
    pub user_token: Option<String>,
    /// The bearer token of a user who may read everything.
    pub viewer_token: Option<String>,
    /// Further users with bearer tokens.
    pub users: Vec<TokenUser>,
    /// The authorities of client certificates. Without them, no certificate authenticates.
    pub client_ca: Option<ClientCa>,
    /// The decision on requests.
    pub authorization: AuthorizationMode,
    /// The tokens of service accounts.
    pub service_accounts: ServiceAccountOptions,
    /// The admission plugins that run.
    pub admission_plugins: AdmissionPlugins,
    /// The audit log. Default: none.
    pub audit: Option<AuditOptions>,
    /// The number of events that are kept for each resource.
    pub history: usize,
    /// Where the objects are.
    pub storage: Storage,
    /// A snapshot whose objects the server starts with.
    pub restore: Option<PathBuf>,
    /// Serves the sample resource `gadgets.v1.devices.example.com`.
    pub sample: bool,
    /// Creates the roles, the bindings and the service of a new cluster.
    pub cluster_defaults: bool,
    /// Deletions return the object instead of a Status.
    pub deletion_returns_object: bool,
    /// The limits of connections and bodies.
    pub limits: Limits,
    /// The disabled capabilities.
    pub disabled_capabilities: DisabledCapabilities,
}

/// Where a server keeps its objects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Storage {
    /// In memory. The objects end with the server.
    #[default]
    Memory,
    /// In this directory. An acknowledged write survives a crash.
    Disk(PathBuf),
    /// In etcd 3, with the keys of kube-apiserver. Several servers can share it.
    Etcd(EtcdOptions),
}

/// How the server decides on the requests of users.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AuthorizationMode {
    /// Roles and their bindings grant permissions.
    #[default]
    Rbac,
    /// Every user may do everything. Requests without a credential are rejected.
    AlwaysAllow,
}

/// The options for tokens of service accounts.
#[derive(Clone, Default)]
pub struct ServiceAccountOptions {
    /// The accepted issuers. The first one issues. Default: `https://kubernetes.default.svc`.
    pub issuers: Vec<String>,
    /// The audiences of the server. Default: the first issuer.
    pub audiences: Vec<String>,
    /// The private key that signs tokens, as PEM. Default: a generated one.
    pub signing_key_pem: Option<String>,
    /// The keys that verify tokens, as PEM. Default: the key that signs.
    pub key_pems: Vec<String>,
}

impl fmt::Debug for ServiceAccountOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { issuers, audiences, .. } = self;
        let mut shown = f.debug_struct("ServiceAccountOptions");
        shown.field("issuers", issuers).field("audiences", audiences).finish_non_exhaustive()
    }
}

/// The limits for each client. Requests beyond them get 408, 413 or 429, or the connection is
/// closed.
///
/// Tests may change these limits. Others are fixed, as in a real server: a body has at most 3 MiB,
/// and its JSON at most 500 levels.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The timeout of the TLS handshake and of the request head. It is also the idle timeout
    /// between requests. Default: 30 seconds.
    pub head: Duration,
    /// The timeout of the body of a request. Default: 60 seconds.
    pub body: Duration,
    /// The stall timeout: the longest time that a client may read nothing of a response or a watch.
    /// Logs, commands and forwarded ports have no limit. Default: 60 seconds.
    pub stall: Duration,
    /// The most bytes of request bodies in memory at once. The first 64 KiB of each body do not
    /// count. Default: 128 MiB.
    pub bodies: usize,
    /// The most open connections without a request. Beyond it the server closes the oldest.
    /// Default: 1024.
    pub waiting: usize,
}

impl Limits {
    /// The default limits.
    pub const DEFAULT: Self = Self {
        head: Duration::from_secs(30),
        body: Duration::from_mins(1),
        stall: Duration::from_mins(1),
        bodies: 128 * 1024 * 1024,
        waiting: 1024,
    };
}

impl Default for Limits {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// TLS. By default, the server generates a certificate authority and a server certificate when it
/// starts.
#[derive(Clone, Debug, Default)]
pub struct Tls {
    /// The host names and addresses of a generated certificate besides `localhost`, the loopback
    /// addresses and the listen address. A server on all interfaces also has the host name and the
    /// address of the machine.
    pub names: Vec<String>,
    /// The certificate to serve. Default: a generated one.
    pub certificate: Option<ServingCertificate>,
    /// The authorities of client certificates as PEM. The common name of a certificate is the user,
    /// and the organizations are the groups. Default: the server requests no certificate.
    pub client_ca_pem: Option<String>,
}

/// A certificate and its key.
#[derive(Clone)]
pub struct ServingCertificate {
    /// The certificate as PEM, followed by the certificates of its authorities, if any.
    pub chain_pem: String,
    /// The private key as PEM.
    pub key_pem: String,
}

impl fmt::Debug for ServingCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServingCertificate").finish_non_exhaustive()
    }
}
