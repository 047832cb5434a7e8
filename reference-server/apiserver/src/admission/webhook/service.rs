//! Connections to webhooks behind a service.

use std::sync::Arc;

use http::Uri;

use super::super::Attributes;
use super::configuration::ServiceRef;
use crate::http::client::Dialer;
use crate::registry::services::{self, ServicePort};

/// Returns the URL of a service, which its certificate must be for.
pub(super) fn url(service: &ServiceRef) -> Result<Uri, http::uri::InvalidUri> {
    let ServiceRef { namespace, name, path, port } = service;
    let path = if path.is_empty() { "/" } else { path };
    format!("https://{name}.{namespace}.svc:{port}{path}").parse()
}

/// Returns a function that connects to a backend of the service.
pub(super) fn dialer(service: &ServiceRef, request: &Attributes<'_>) -> Result<Dialer, String> {
    let ServiceRef { namespace, name, port, .. } = service;
    let wanted = ServicePort { namespace: namespace.clone(), name: name.clone(), port: *port };
    let route = services::route(request.context, request.kubelet, &wanted);
    let route = Arc::new(route.map_err(|why| {
        let text = url(service).map(|url| url.to_string()).unwrap_or_default();
        format!("failed to call webhook: Post {text:?}: {why}")
    })?);
    Ok(Arc::new(move || {
        let route = Arc::clone(&route);
        Box::pin(async move { route.connect().await })
    }))
}
