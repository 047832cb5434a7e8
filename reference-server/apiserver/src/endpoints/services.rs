//! Connections of the server itself to services: to conversion webhooks and to extension servers.

use std::io;
use std::sync::Arc;

use crate::http::client::Dialer;
use crate::registry::services::{ServicePort, route};
use crate::server::ApiServer;

/// Returns a function that connects to a port of a service. Each connection can have another
/// backend.
pub(super) fn dialer(api: &Arc<ApiServer>, service: ServicePort) -> Dialer {
    let api = Arc::downgrade(api);
    Arc::new(move || {
        let route = api.upgrade().map(|api| route(api.context(), api.kubelet.get(), &service));
        Box::pin(async move {
            match route {
                Some(Ok(route)) => route.connect().await,
                Some(Err(error)) => Err(io::Error::other(error.to_string())),
                None => Err(io::Error::other("the server stops")),
            }
        })
    })
}
