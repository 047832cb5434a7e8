//! Connections of the server itself to services: to webhooks and to extension servers.
//!
//! A cluster IP leads nowhere, because there is no proxy. The server connects to the external name
//! of the service, to one of its endpoint slices, or to one of its ready pods.

use std::io;
use std::sync::Arc;

use kubeproof_storage::Key;
use rand::seq::IndexedRandom as _;
use serde_json::Value;
use tokio::net::TcpStream;

use crate::http::client::{Connection, Dialer};
use crate::registry::backends;
use crate::server::ApiServer;

/// The label of an endpoint slice with the name of its service.
const SERVICE_LABEL: &str = "kubernetes.io/service-name";

/// Returns a function that connects to a port of a service.
pub(super) fn dialer(api: &Arc<ApiServer>, namespace: &str, name: &str, port: u16) -> Dialer {
    let api = Arc::downgrade(api);
    let (namespace, name) = (namespace.to_owned(), name.to_owned());
    Arc::new(move || {
        let (api, namespace, name) = (api.upgrade(), namespace.clone(), name.clone());
        Box::pin(async move {
            let api = api.ok_or_else(|| unreachable("the server stops"))?;
            connect(&api, (&namespace, &name), port).await
        })
    })
}

async fn connect(
    api: &Arc<ApiServer>,
    (namespace, name): (&str, &str),
    port: u16,
) -> io::Result<Box<dyn Connection>> {
    let service = find(api, namespace, name)
        .ok_or_else(|| unreachable(&format!("service {name:?} not found")))?;
    let spec = &service["spec"];
    if spec["type"] == "ExternalName" {
        let host = spec["externalName"].as_str().unwrap_or_default();
        return Ok(Box::new(TcpStream::connect((host, port)).await?));
    }
    let mut ports = spec["ports"].as_array().into_iter().flatten();
    let Some(service_port) = ports.find(|known| known["port"] == port) else {
        return Err(unreachable(&format!("no service port {port} found for service {name:?}")));
    };
    let port_name = service_port["name"].as_str().unwrap_or_default();
    let endpoint = one_of(&endpoints(api, (namespace, name), port_name));
    if let Some((address, port)) = endpoint {
        return Ok(Box::new(TcpStream::connect((address.as_str(), port)).await?));
    }
    let node = api.kubelet.get().map(|kubelet| kubelet.node());
    let pods = backends::of_service(api.context(), node, &service, service_port);
    let (Some(backend), Some(kubelet)) = (one_of(&pods), api.kubelet.get()) else {
        let why = format!("no endpoints available for service {name:?}");
        return Err(unreachable(&why));
    };
    let connected = kubelet.connect(backend.pod, backend.port).await;
    let stream = connected.map_err(|error| unreachable(&error.to_string()))?;
    Ok(Box::new(stream))
}

fn find(api: &ApiServer, namespace: &str, name: &str) -> Option<Value> {
    let ty = api.find_core("services").ok()?;
    let stored = api.store.get(&ty.table, &Key::new(namespace, name))?;
    Some(ty.load(&stored))
}

/// Returns the ready addresses in the endpoint slices of a service, for one of its ports.
fn endpoints(
    api: &ApiServer,
    (namespace, name): (&str, &str),
    port_name: &str,
) -> Vec<(String, u16)> {
    let slices = api.context().objects("discovery.k8s.io", "endpointslices", Some(namespace));
    let own = slices.iter().filter(|slice| slice["metadata"]["labels"][SERVICE_LABEL] == name);
    let mut found = Vec::new();
    for slice in own {
        let mut ports = slice["ports"].as_array().into_iter().flatten();
        let wanted = ports.find(|port| port["name"].as_str().unwrap_or_default() == port_name);
        let number = wanted.and_then(|port| port["port"].as_u64()?.try_into().ok());
        let ready = slice["endpoints"].as_array().into_iter().flatten();
        let ready = ready.filter(|endpoint| endpoint["conditions"]["ready"] != false);
        let addresses = ready.filter_map(|endpoint| endpoint["addresses"][0].as_str());
        found.extend(addresses.filter_map(|address| Some((address.to_owned(), number?))));
    }
    found
}

fn one_of<T: Clone>(all: &[T]) -> Option<T> {
    all.choose(&mut rand::rng()).cloned()
}

fn unreachable(why: &str) -> io::Error {
    io::Error::other(why.to_owned())
}
