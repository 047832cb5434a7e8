//! The configuration of a server.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use rand::distr::{Alphanumeric, SampleString};

use crate::{
    AdmissionPlugins, AuditOptions, AuthorizationMode, DisabledCapabilities, Faults,
    KubernetesVersion, Limits, Manifest, ServiceAccountOptions, Storage, Tls, TokenUser,
    Variations,
};

/// The configuration of a server. [`Config::default`] suits a test in the same process.
#[derive(Clone, Debug)]
pub struct Config {
    /// The address to listen on. Port 0 selects a free port. Default: a free port on the loopback
    /// interface.
    pub listen: SocketAddr,
    /// The version of Kubernetes: its resources and their fields. Default: the newest.
    pub version: KubernetesVersion,
    /// Serves TLS. Default: plain HTTP, which starts faster.
    pub tls: Option<Tls>,
    /// The bearer token of the administrator, who has all permissions. Default: a random token.
    pub admin_token: String,
    /// The bearer token of an authenticated user without permissions. Default: none.
    pub user_token: Option<String>,
    /// The bearer token of a user with read-only access to everything. Default: none.
    pub viewer_token: Option<String>,
    /// Further users with bearer tokens. Default: none.
    pub users: Vec<TokenUser>,
    /// The decision on requests. Default: by roles.
    pub authorization: AuthorizationMode,
    /// The tokens of service accounts. Default: a generated key signs them.
    pub service_accounts: ServiceAccountOptions,
    /// The admission plugins. Default: those of kube-apiserver without `ServiceAccount`.
    pub admission_plugins: AdmissionPlugins,
    /// The audit log. Default: none.
    pub audit: Option<AuditOptions>,
    /// The time between [`Running::drain`](crate::Running::drain), which makes `/readyz` fail, and
    /// the end of the listener. Load balancers stop to use the server in this time. Default: none.
    pub shutdown_delay: Duration,
    /// The objects that exist when the server is ready. The server applies definitions first, then
    /// namespaces, then the others in their order. Default: none.
    pub manifests: Vec<Manifest>,
    /// Creates what a new cluster has: the roles and bindings of Kubernetes, and the service
    /// `kubernetes`. Default: yes.
    pub cluster_defaults: bool,
    /// The controllers that run in the server. Default: all.
    pub controllers: Controllers,
    /// Where the server keeps its objects. Default: in memory.
    pub storage: Storage,
    /// A snapshot whose objects the server starts with. A data directory or etcd must be empty.
    /// Default: none.
    pub restore: Option<PathBuf>,
    /// The number of events to keep for each resource. Older versions return 410.
    pub history: usize,
    /// Adds a node that runs pods in a scripted runtime (see the README). Default: no node, and
    /// pods stay pending.
    pub node: bool,
    /// Serves a sample custom resource, `gadgets.v1.devices.example.com`. It is useful for tests of
    /// published schemas. Default: no.
    pub sample: bool,
    /// The limits for each client, which protect the other clients.
    pub limits: Limits,
    /// The disabled capabilities of this server. Default: none.
    pub disabled_capabilities: DisabledCapabilities,
    /// The deliberate bugs of this server. Default: none.
    pub faults: Faults,
    /// The permitted differences of this server. Default: none.
    pub variations: Variations,
}

/// The controllers that run in the server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Controllers {
    /// The controllers that complete the deletion of namespaces and definitions, the garbage
    /// collector, and the controller of roles that collect the rules of others.
    #[default]
    All,
    /// Only the controller of definitions, which is part of every API server. Deleted namespaces
    /// stay Terminating, and objects without an owner stay.
    None,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            version: KubernetesVersion::default(),
            tls: None,
            admin_token: Alphanumeric.sample_string(&mut rand::rng(), 32),
            user_token: None,
            viewer_token: None,
            users: Vec::new(),
            authorization: AuthorizationMode::Rbac,
            service_accounts: ServiceAccountOptions::default(),
            admission_plugins: AdmissionPlugins::default(),
            audit: None,
            shutdown_delay: Duration::ZERO,
            manifests: Vec::new(),
            cluster_defaults: true,
            controllers: Controllers::All,
            storage: Storage::Memory,
            restore: None,
            history: 10_000,
            node: false,
            sample: false,
            limits: Limits::DEFAULT,
            disabled_capabilities: DisabledCapabilities::none(),
            faults: Faults::none(),
            variations: Variations::none(),
        }
    }
}
