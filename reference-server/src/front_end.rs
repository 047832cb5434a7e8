//! Selects what handles connections: the server, or the proxy with variations and faults.

use std::sync::Arc;

use http::Extensions;
use http::header::InvalidHeaderValue;
use kubeproof_apiserver::ApiServer;
use kubeproof_apiserver::certificates::PeerCertificates;
use kubeproof_apiserver::config::Limits;
use kubeproof_apiserver::http::limits::ConnectionState;
use kubeproof_apiserver::http::listener::{self, ConnectionHandler};
use kubeproof_faults::{Proxy, Upstream};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::Config;

pub(crate) enum FrontEnd {
    Server(Arc<ApiServer>),
    Proxy(Arc<Proxy>),
}

impl FrontEnd {
    /// Puts the proxy in front of a server if the configuration has variations or faults.
    pub(crate) fn new(api: Arc<ApiServer>, config: &Config) -> Result<Self, InvalidHeaderValue> {
        if config.faults.is_none() && config.variations.is_none() {
            return Ok(Self::Server(api));
        }
        let upstream = Upstream::new(&config.admin_token, move |connection, client| {
            let peer = client.get::<Arc<PeerCertificates>>().cloned();
            tokio::spawn(api.clone().serve_connection(connection, peer));
        })?;
        Ok(Self::Proxy(Arc::new(Proxy::new(config.faults, config.variations, upstream))))
    }
}

impl ConnectionHandler for FrontEnd {
    async fn serve<S>(self: Arc<Self>, stream: S, state: Arc<ConnectionState>, limits: Limits)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        match &*self {
            Self::Server(api) => listener::connection(stream, api.clone(), state, &limits).await,
            Self::Proxy(proxy) => {
                state.disable_stall_timeout();
                let mut client = Extensions::new();
                state.peer().map(|peer| client.insert(peer));
                let serve = proxy.clone().connection(stream, client, || state.request_received());
                tokio::select! {
                    () = serve => {}
                    () = state.drained() => {}
                }
            }
        }
    }
}
