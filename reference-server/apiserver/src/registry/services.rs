//! Where a port of a service leads.
//!
//! The server has no cluster network. It connects to the external name of the service, to one of
//! its endpoint slices, or to one of its ready pods.

use std::io;
use std::sync::Arc;

use kubeproof_storage::Key;
use rand::seq::IndexedRandom as _;
use serde_json::Value;
use tokio::net::TcpStream;

use super::strategy::Context;
use super::{Lookup, backends};
use crate::http::client::Connection;
use crate::kubelet_client::{KubeletClient, PodRef};

/// The label of an endpoint slice with the name of its service.
const SERVICE_LABEL: &str = "kubernetes.io/service-name";

/// A port of a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ServicePort {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) port: u16,
}

/// A backend of a service.
pub(crate) enum Route {
    /// A port in the network.
    Host(String, u16),
    /// A port of a pod of the node.
    Pod(Arc<dyn KubeletClient>, PodRef, u16),
}

/// What is missing on the way to a port of a service.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RouteError {
    /// The service does not exist.
    #[error("service {0:?} not found")]
    Service(String),
    /// The service has no such port.
    #[error("no service port {1} found for service {0:?}")]
    Port(String, u16),
    /// No backend is ready.
    #[error("no endpoints available for service {0:?}")]
    Endpoints(String),
}

/// Returns a backend of a port of a service.
pub(crate) fn route(
    context: Context<'_>,
    kubelet: Option<&Arc<dyn KubeletClient>>,
    ServicePort { namespace, name, port }: &ServicePort,
) -> Result<Route, RouteError> {
    let service =
        find(context, namespace, name).ok_or_else(|| RouteError::Service(name.clone()))?;
    let spec = &service["spec"];
    if spec["type"] == "ExternalName" {
        let host = spec["externalName"].as_str().unwrap_or_default();
        return Ok(Route::Host(host.to_owned(), *port));
    }
    let mut ports = spec["ports"].as_array().into_iter().flatten();
    let service_port = ports
        .find(|known| known["port"] == *port)
        .ok_or_else(|| RouteError::Port(name.clone(), *port))?;
    let port_name = service_port["name"].as_str().unwrap_or_default();
    if let Some((host, port)) = one_of(&endpoints(context, (namespace, name), port_name)) {
        return Ok(Route::Host(host, port));
    }
    let node = kubelet.map(|kubelet| kubelet.node());
    let pods = backends::of_service(context, node, &service, service_port);
    match (one_of(&pods), kubelet) {
        (Some(chosen), Some(kubelet)) => {
            Ok(Route::Pod(Arc::clone(kubelet), chosen.pod, chosen.port))
        }
        _ => Err(RouteError::Endpoints(name.clone())),
    }
}

impl Route {
    /// Opens a connection to the backend.
    pub(crate) async fn connect(&self) -> io::Result<Box<dyn Connection>> {
        match self {
            Self::Host(host, port) => {
                Ok(Box::new(TcpStream::connect((host.as_str(), *port)).await?))
            }
            Self::Pod(kubelet, pod, port) => {
                let connected = kubelet.connect(pod.clone(), *port).await;
                let stream = connected.map_err(|error| io::Error::other(error.to_string()))?;
                Ok(Box::new(stream))
            }
        }
    }
}

fn find(context: Context<'_>, namespace: &str, name: &str) -> Option<Value> {
    let ty = context.core("services")?;
    let stored = context.store.get(&ty.table, &Key::new(namespace, name))?;
    Some(ty.load(&stored))
}

/// Returns the ready addresses in the endpoint slices of a service, with the port of this name.
fn endpoints(
    context: Context<'_>,
    (namespace, service): (&str, &str),
    port_name: &str,
) -> Vec<(String, u16)> {
    let found = context.registry.current().find("discovery.k8s.io", "v1", "endpointslices");
    let Lookup::Found(ty) = found else { return Vec::new() };
    let (slices, _) = context.store.snapshot(&ty.table, Some(namespace));
    let own = slices.iter().filter(|slice| {
        slice.facts.labels.get(SERVICE_LABEL).is_some_and(|labelled| labelled == service)
    });
    let mut found = Vec::new();
    for slice in own.map(|stored| ty.load(stored)) {
        let mut ports = slice["ports"].as_array().into_iter().flatten();
        let wanted = ports.find(|port| port["name"].as_str().unwrap_or_default() == port_name);
        let Some(number) = wanted.and_then(|port| backends::number(&port["port"])) else {
            continue;
        };
        for endpoint in slice["endpoints"].as_array().into_iter().flatten() {
            if endpoint["conditions"]["ready"] != false {
                let hosts = endpoint["addresses"].as_array().into_iter().flatten();
                found.extend(hosts.filter_map(|host| Some((host.as_str()?.to_owned(), number))));
            }
        }
    }
    found
}

fn one_of<T: Clone>(all: &[T]) -> Option<T> {
    all.choose(&mut rand::rng()).cloned()
}
