//! Starts and stops a server.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use kubeproof_apiserver::certificates::CertificateAuthority;
use kubeproof_apiserver::config::Options;
use kubeproof_apiserver::http::listener::{self, Lifetime};
use kubeproof_apiserver::http::tls::{self, Identity, TlsError};
use kubeproof_apiserver::loopback::Client;
use kubeproof_apiserver::{ApiServer, SnapshotError};

use crate::builder::ServerBuilder;
use crate::front_end::FrontEnd;
use crate::load::{self, LoadError};
use crate::node;
use crate::{Capability, Config, Controllers, Variation};

/// The time that running requests have when the server drains, which is that of the longest ones.
const DRAIN_TIME: Duration = Duration::from_mins(1);
/// The number of events that a server with a short history keeps.
const SHORT_HISTORY: usize = 256;

/// Starts servers.
#[derive(Debug)]
pub struct Server;

/// The reason why a server did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The address is in use, or does not belong to this machine.
    #[error("cannot listen on {addr}: {source}; choose another address, or port 0 for a free one")]
    Listen {
        /// The address of the configuration.
        addr: SocketAddr,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The token of the administrator has characters that a header cannot have.
    #[error("the admin token cannot be sent in a header: {0}; use letters and digits")]
    Token(#[from] http::header::InvalidHeaderValue),
    /// The certificates could not be read or generated.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The API server did not start.
    #[error(transparent)]
    ApiServer(#[from] kubeproof_apiserver::StartError),
    /// A manifest could not be read or applied.
    #[error(transparent)]
    Load(#[from] LoadError),
}

/// The reason why there is no client.
#[cfg(feature = "kube")]
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// kube cannot read the kubeconfig.
    #[error(transparent)]
    Kubeconfig(#[from] kube::config::KubeconfigError),
    /// kube cannot create a client.
    #[error(transparent)]
    Client(#[from] kube::Error),
}

impl Server {
    /// Returns a builder for a server with the default configuration.
    pub fn builder() -> ServerBuilder {
        ServerBuilder::default()
    }

    /// Binds the address and serves until the [`Running`] server is shut down or dropped. The
    /// server is ready when this function returns.
    pub async fn start(mut config: Config) -> Result<Running, StartError> {
        if config.variations.on(Variation::ShortHistory) {
            config.history = config.history.min(SHORT_HISTORY);
        }
        let listen = config.listen;
        let failed = |source| StartError::Listen { addr: listen, source };
        let socket = TcpListener::bind(listen).await.map_err(failed)?;
        let addr = socket.local_addr().map_err(failed)?;
        let authority = CertificateAuthority::generate().map_err(TlsError::from)?;
        let signs_clients = config.controllers == Controllers::All;
        let identity = config
            .tls
            .as_ref()
            .map(|tls| tls::identity(tls, addr, &authority, signs_clients))
            .transpose()?;

        let stop = CancellationToken::new();
        let tasks = TaskTracker::new();
        let mut tls = identity.as_ref().map(|identity| identity.config.clone());
        if config.variations.on(Variation::Http1Only)
            && let Some(tls) = &mut tls
        {
            Arc::make_mut(tls).alpn_protocols = vec![b"http/1.1".to_vec()];
        }
        let api = ApiServer::start(
            &options(&config, addr, identity.as_ref()),
            tasks.clone(),
            stop.clone(),
        )
        .await?;
        let client = Client::new(&api);
        kubeproof_controllers::start_custom_resources(&client);
        kubeproof_controllers::start_api_services(&client).await;
        if config.controllers == Controllers::All {
            let ca_pem = identity.as_ref().map(|identity| identity.ca_pem.clone());
            start_controllers(&config, &client, (authority, ca_pem)).await;
        }
        if config.node && !config.disabled_capabilities.on(Capability::Node) {
            let ca_pem = identity.as_ref().map(|identity| identity.ca_pem.as_str());
            node::start(&api, &client, ca_pem).await;
        }
        load::apply(&api, &config.admin_token, &config.manifests).await?;
        let front_end = Arc::new(FrontEnd::new(api.clone(), &config)?);
        let (drain, connections) = (CancellationToken::new(), TaskTracker::new());
        let lifetime =
            Lifetime { drain: drain.clone(), stop: stop.clone(), connections: connections.clone() };
        connections.spawn(listener::accept(socket, tls, front_end, config.limits, lifetime));
        Ok(Running {
            api,
            addr,
            ca_pem: identity.map(|identity| identity.ca_pem),
            admin_token: config.admin_token,
            user_token: config.user_token,
            shutdown_delay: config.shutdown_delay,
            drain,
            connections,
            tasks,
            stop: stop.drop_guard(),
        })
    }
}

/// Starts the controllers that are not part of kube-apiserver. `ca_pem` is the authority of the
/// serving certificate.
async fn start_controllers(
    config: &Config,
    client: &Client,
    (authority, ca_pem): (CertificateAuthority, Option<String>),
) {
    kubeproof_controllers::start_namespaces(client);
    kubeproof_controllers::start_releases(client);
    kubeproof_controllers::start_policy_status(client);
    kubeproof_controllers::start_role_aggregation(client).await;
    kubeproof_controllers::start_certificates(client, authority);
    if config.admission_plugins.has("ResourceQuota") {
        kubeproof_controllers::start_resource_quotas(client);
    }
    if config.admission_plugins.has("ServiceAccount") {
        kubeproof_controllers::start_service_accounts(client, ca_pem).await;
    }
    if !config.disabled_capabilities.on(Capability::GarbageCollection) {
        kubeproof_controllers::start_garbage_collector(client).await;
    }
}

fn options(config: &Config, addr: SocketAddr, identity: Option<&Identity>) -> Options {
    Options {
        version: config.version,
        address: addr.to_string(),
        admin_token: config.admin_token.clone(),
        user_token: config.user_token.clone(),
        viewer_token: config.viewer_token.clone(),
        users: config.users.clone(),
        client_ca: identity.and_then(|identity| identity.client_ca.clone()),
        authorization: config.authorization,
        service_accounts: config.service_accounts.clone(),
        admission_plugins: config.admission_plugins.clone(),
        audit: config.audit.clone(),
        cluster_defaults: config.cluster_defaults,
        storage: config.storage.clone(),
        restore: config.restore.clone(),
        history: config.history,
        sample: config.sample,
        deletion_returns_object: config.variations.on(Variation::ObjectOnDelete),
        limits: config.limits,
        disabled_capabilities: config.disabled_capabilities,
    }
}

/// A running server. Dropping it stops the server at once. [`Running::shutdown`] waits until it has
/// stopped.
#[derive(Debug)]
pub struct Running {
    addr: SocketAddr,
    ca_pem: Option<String>,
    admin_token: String,
    user_token: Option<String>,
    shutdown_delay: Duration,
    /// Ends the listener and idle connections.
    drain: CancellationToken,
    connections: TaskTracker,
    tasks: TaskTracker,
    stop: DropGuard,
    api: Arc<ApiServer>,
}

impl Running {
    /// Returns the address that the server listens on.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Returns the base URL without a trailing slash. For a server on all interfaces, it has the
    /// loopback address.
    pub fn url(&self) -> String {
        let mut addr = self.addr;
        if addr.ip().is_unspecified() {
            addr.set_ip(if addr.is_ipv4() {
                [127, 0, 0, 1].into()
            } else {
                [0, 0, 0, 0, 0, 0, 0, 1].into()
            });
        }
        let scheme = if self.ca_pem.is_some() { "https" } else { "http" };
        format!("{scheme}://{addr}")
    }

    /// Returns the certificate authority that clients must trust, as PEM. Without TLS there is
    /// none.
    pub fn ca_pem(&self) -> Option<&str> {
        self.ca_pem.as_deref()
    }

    /// Returns the bearer token of the administrator.
    pub fn admin_token(&self) -> &str {
        &self.admin_token
    }

    /// Returns the bearer token of the user without permissions, if the configuration has one.
    pub fn user_token(&self) -> Option<&str> {
        self.user_token.as_deref()
    }

    /// Returns a kubeconfig for the administrator. It is a JSON document, which every YAML parser
    /// accepts.
    pub fn kubeconfig(&self) -> String {
        let mut cluster = serde_json::json!({ "server": self.url() });
        if let Some(pem) = &self.ca_pem {
            cluster["certificate-authority-data"] = STANDARD.encode(pem).into();
        }
        let config = serde_json::json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{ "name": "kubeproof", "cluster": cluster }],
            "users": [{ "name": "admin", "user": { "token": self.admin_token } }],
            "contexts": [{
                "name": "kubeproof",
                "context": { "cluster": "kubeproof", "user": "admin", "namespace": "default" },
            }],
            "current-context": "kubeproof",
        });
        format!("{config:#}\n")
    }

    /// Returns a client of the administrator.
    #[cfg(feature = "kube")]
    pub async fn client(&self) -> Result<kube::Client, ClientError> {
        let kubeconfig = kube::config::Kubeconfig::from_yaml(&self.kubeconfig())?;
        let options = kube::config::KubeConfigOptions::default();
        let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await?;
        Ok(kube::Client::try_from(config)?)
    }

    /// Writes all objects to a file, which [`Config::restore`] reads.
    pub fn save_snapshot(&self, path: &Path) -> Result<(), SnapshotError> {
        self.api.save_snapshot(path)
    }

    /// Stops like [`Self::shutdown`], and writes all objects to a file.
    pub async fn shutdown_with_snapshot(self, path: &Path) -> Result<(), SnapshotError> {
        let api = self.api.clone();
        self.shutdown().await;
        api.save_snapshot(path)
    }

    /// Prepares to stop, as kube-apiserver does after SIGTERM: `/readyz` fails and watches end.
    /// After [`Config::shutdown_delay`] the listener and idle connections end. Then the server
    /// waits up to a minute for running requests. [`Self::shutdown`] must follow.
    pub async fn drain(&self) {
        self.api.drain();
        tokio::time::sleep(self.shutdown_delay).await;
        self.drain.cancel();
        self.connections.close();
        // The requests that take longer end with the server.
        let _ = tokio::time::timeout(DRAIN_TIME, self.connections.wait()).await;
    }

    /// Stops the listener, ends every connection and waits until all are closed.
    pub async fn shutdown(self) {
        let Self { connections, tasks, stop, .. } = self;
        drop(stop);
        for tracker in [connections, tasks] {
            tracker.close();
            tracker.wait().await;
        }
    }
}
