//! The state of an API server: store, registry, credentials and documents.
//!
//! All state of a server is here, so two servers in one process share nothing.

use std::fmt;
use std::future::Future;
use std::sync::{Arc, OnceLock};

use kubeproof_apimachinery::status::ApiError;
use kubeproof_storage::Store;
use kubeproof_streaming::Handshake;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::admission::Chain;
use crate::admission::resource_quota::PendingRequests;
use crate::audit::AuditLog;
use crate::authentication::{Authenticator, Credentials};
use crate::authorization::{Rights, RoleIndex};
use crate::certificates::front_proxy::FrontProxy;
use crate::config::disabled::DisabledCapabilities;
use crate::config::{AuthorizationMode, KubernetesVersion, Options};
use crate::discovery::Documents;
use crate::http::body::Intake;
use crate::http::metrics::Metrics;
use crate::http::respond::ApiResponse;
use crate::kubelet_client::KubeletClient;
use crate::openapi::Publisher;
use crate::registry::remote::Remotes;
use crate::registry::strategy::Context;
use crate::registry::{Lookup, Registry, ResourceType};
use crate::service_accounts::{KeyError, ServiceAccounts};

/// The state of an API server.
pub struct ApiServer {
    /// The version of Kubernetes.
    pub version: KubernetesVersion,
    pub(crate) store: Arc<Store>,
    pub(crate) registry: Arc<Registry>,
    pub(crate) auth: Authenticator,
    pub(crate) authorization: AuthorizationMode,
    /// The admission plugins.
    pub(crate) admission: Chain,
    /// The requests that use quotas and have not finished.
    pub(crate) quotas: Arc<PendingRequests>,
    roles: Arc<RoleIndex>,
    pub(crate) service_accounts: ServiceAccounts,
    pub(crate) disabled_capabilities: DisabledCapabilities,
    /// The store has the roles of a new cluster.
    pub(crate) cluster_defaults: bool,
    /// Deletions return the object instead of a Status.
    pub(crate) deletion_returns_object: bool,
    pub(crate) documents: Documents,
    pub(crate) metrics: Arc<Metrics>,
    /// The audit log, if the server has one.
    pub(crate) audit: Option<Arc<AuditLog>>,
    pub(crate) publisher: Publisher,
    pub(crate) bodies: Intake,
    /// The groups that extension servers serve.
    pub(crate) remotes: Remotes,
    /// The identity of the server towards extension servers.
    pub(crate) front_proxy: FrontProxy,
    /// The host and port in discovery documents.
    pub(crate) address: String,
    /// The kubelet of the node. A server without a node has none.
    pub(crate) kubelet: OnceLock<Arc<dyn KubeletClient>>,
    /// The server prepares to stop.
    pub(crate) draining: CancellationToken,
    tasks: TaskTracker,
    stop: CancellationToken,
}

impl fmt::Debug for ApiServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApiServer").field("address", &self.address).finish_non_exhaustive()
    }
}

impl ApiServer {
    /// Creates the state of a server.
    pub(crate) fn new(
        options: &Options,
        (registry, store): (Arc<Registry>, Store),
        (front_proxy, audit): (FrontProxy, Option<Arc<AuditLog>>),
        (tasks, stop): (TaskTracker, CancellationToken),
    ) -> Result<Self, KeyError> {
        let quotas = Arc::new(PendingRequests::default());
        let metrics = Metrics::new(options.version.numbers(), &git_version(options.version));
        let metrics = Arc::new(metrics);
        let observer = metrics.clone();
        store.observe(Box::new(move |request| observer.storage.count(request)));
        let observer = metrics.clone();
        // Requests for health endpoints have no resource.
        registry.observe_removals(Box::new(move |catalogue| {
            observer.retain(|group, plural| plural.is_empty() || catalogue.has(group, plural));
        }));
        Ok(Self {
            version: options.version,
            store: Arc::new(store),
            registry,
            auth: Authenticator::new(options),
            authorization: options.authorization,
            admission: Chain::new(options, &quotas),
            quotas,
            roles: Arc::default(),
            service_accounts: ServiceAccounts::new(&options.service_accounts)?,
            disabled_capabilities: options.disabled_capabilities,
            cluster_defaults: options.cluster_defaults,
            deletion_returns_object: options.deletion_returns_object,
            documents: Documents::default(),
            metrics,
            audit,
            publisher: Publisher::new(options.version),
            bodies: Intake::new(&options.limits),
            remotes: Remotes::default(),
            front_proxy,
            address: options.address.clone(),
            kubelet: OnceLock::new(),
            draining: CancellationToken::new(),
            tasks,
            stop,
        })
    }

    /// Returns the address that the server listens on.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Reports whether other servers use the same objects.
    pub fn shares_storage(&self) -> bool {
        self.store.is_shared()
    }

    /// Lets `/readyz` fail, ends the watches, and closes idle connections. Running requests end.
    pub fn drain(&self) {
        self.draining.cancel();
    }

    /// Connects the kubelet of the node, once.
    pub fn set_kubelet(&self, kubelet: Arc<dyn KubeletClient>) {
        // A second kubelet would have no node.
        let _ = self.kubelet.set(kubelet);
    }

    /// Returns the parts of the server that strategies use.
    pub(crate) fn context(&self) -> Context<'_> {
        Context {
            store: &self.store,
            registry: &self.registry,
            disabled_capabilities: self.disabled_capabilities,
        }
    }

    /// Returns the permissions of users.
    pub(crate) fn rights(&self) -> Rights<'_> {
        Rights { store: &self.store, roles: &self.roles, mode: self.authorization }
    }

    /// Returns what identifies the users of requests.
    pub(crate) fn credentials(&self) -> Credentials<'_> {
        Credentials {
            authenticator: &self.auth,
            service_accounts: &self.service_accounts,
            store: &self.store,
        }
    }

    /// Runs work in the background until it is done or the server stops.
    pub(crate) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        let stop = self.stop.clone();
        self.tasks.spawn(async move {
            tokio::select! {
                () = stop.cancelled() => {}
                () = work => {}
            }
        });
    }

    /// Returns the response of a handshake, and serves its session in the background.
    pub(crate) fn switch(&self, handshake: Handshake) -> ApiResponse {
        if let Some(session) = handshake.session {
            self.spawn(session);
        }
        handshake.response.into()
    }

    /// Returns a built-in resource of the core group.
    pub(crate) fn find_core(&self, plural: &str) -> Result<Arc<ResourceType>, ApiError> {
        match self.registry.current().find("", "v1", plural) {
            Lookup::Found(ty) => Ok(ty),
            Lookup::NoResource | Lookup::NoGroup => Err(ApiError::no_such_resource()),
        }
    }
}

/// Returns the version that `/version` shows.
pub(crate) fn git_version(version: KubernetesVersion) -> String {
    format!("v{version}.0+kubeproof.{}", env!("CARGO_PKG_VERSION"))
}
