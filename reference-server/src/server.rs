//! Starting and stopping a server.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use crate::api::Api;
use crate::collector;
use crate::listener::{self, Door};
use crate::node;
use crate::tls::{self, TlsError};
use crate::variations::{Front, Variation};
use crate::{Config, Cut};

/// Events that a server keeps which forgets soon.
const SHORT_HISTORY: usize = 256;

/// Starts servers.
#[derive(Debug)]
pub struct Server;

/// Why a server did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The address is taken, or not one of this machine.
    #[error("cannot listen on {addr}: {source}; choose another address, or port 0 for a free one")]
    Listen {
        /// The address of the configuration.
        addr: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// The certificates could not be made.
    #[error(transparent)]
    Tls(#[from] TlsError),
}

impl Server {
    /// Binds the address and serves until the [`Running`] is shut down or dropped. It is ready when this returns.
    pub async fn start(mut config: Config) -> Result<Running, StartError> {
        if config.variations.on(Variation::ShortHistory) {
            config.history = config.history.min(SHORT_HISTORY);
        }
        let listen = config.listen;
        let refused = |source| StartError::Listen { addr: listen, source };
        let socket = TcpListener::bind(listen).await.map_err(refused)?;
        let addr = socket.local_addr().map_err(refused)?;
        let identity = config.tls.as_ref().map(|tls| tls::generate(tls, addr)).transpose()?;

        let stop = CancellationToken::new();
        let tasks = TaskTracker::new();
        let mut tls = identity.as_ref().map(|identity| identity.config.clone());
        if config.variations.on(Variation::Http1Only)
            && let Some(tls) = &mut tls
        {
            Arc::make_mut(tls).alpn_protocols = vec![b"http/1.1".to_vec()];
        }
        let api = Arc::new(Api::new(&config, addr, tasks.clone(), stop.clone()));
        if !config.cuts.on(Cut::GarbageCollection) {
            collector::start(&api);
        }
        if config.node && !config.cuts.on(Cut::Node) {
            node::start(&api);
        }
        let door = if config.variations.is_none() {
            Door::Server(api)
        } else {
            Door::Front(Arc::new(Front::new(api, config.variations)))
        };
        let work = listener::accept(socket, tls, door, config.limits, stop.clone(), tasks.clone());
        tasks.spawn(work);
        Ok(Running {
            addr,
            ca_pem: identity.map(|identity| identity.ca_pem),
            admin_token: config.admin_token,
            user_token: config.user_token,
            tasks,
            stop: stop.drop_guard(),
        })
    }
}

/// A server that answers. Dropping it stops the server at once; [`Running::shutdown`] waits until it has stopped.
#[derive(Debug)]
pub struct Running {
    addr: SocketAddr,
    ca_pem: Option<String>,
    admin_token: String,
    user_token: Option<String>,
    tasks: TaskTracker,
    stop: DropGuard,
}

impl Running {
    /// The address it listens on.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// The base URL, without a trailing slash. A server on all interfaces is named by the loopback address.
    pub fn url(&self) -> String {
        let mut addr = self.addr;
        if addr.ip().is_unspecified() {
            addr.set_ip(if addr.is_ipv4() { [127, 0, 0, 1].into() } else { [0, 0, 0, 0, 0, 0, 0, 1].into() });
        }
        let scheme = if self.ca_pem.is_some() { "https" } else { "http" };
        format!("{scheme}://{addr}")
    }

    /// The certificate authority that clients have to trust, as PEM; none without TLS.
    pub fn ca_pem(&self) -> Option<&str> {
        self.ca_pem.as_deref()
    }

    /// The bearer token of the administrator.
    pub fn admin_token(&self) -> &str {
        &self.admin_token
    }

    /// The bearer token of the user without rights, when the configuration has one.
    pub fn user_token(&self) -> Option<&str> {
        self.user_token.as_deref()
    }

    /// A kubeconfig for the administrator (a JSON document, which every YAML reader accepts).
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
            "contexts": [{ "name": "kubeproof", "context": { "cluster": "kubeproof", "user": "admin", "namespace": "default" } }],
            "current-context": "kubeproof",
        });
        format!("{config:#}\n")
    }

    /// Stops accepting, ends every connection and waits until they are closed.
    pub async fn shutdown(self) {
        let Self { tasks, stop, .. } = self;
        drop(stop);
        tasks.close();
        tasks.wait().await;
    }
}
