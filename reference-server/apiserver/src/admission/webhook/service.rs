//! Connections to webhooks behind a service.
//!
//! The server has no cluster network. It resolves the service itself: an external name, the
//! addresses of its endpoint slices, or a pod of the node.

use std::io;
use std::sync::Arc;

use http::Uri;
use kubeproof_storage::Key;
use rand::seq::IndexedRandom as _;
use serde_json::Value;
use tokio::net::TcpStream;

use super::super::Attributes;
use super::configuration::ServiceRef;
use crate::http::client::{Connection, Dialer};
use crate::registry::{Lookup, backends};

/// Returns the URL of a service, which its certificate must be for.
pub(super) fn url(service: &ServiceRef) -> Result<Uri, http::uri::InvalidUri> {
    let ServiceRef { namespace, name, path, port } = service;
    let path = if path.is_empty() { "/" } else { path };
    format!("https://{name}.{namespace}.svc:{port}{path}").parse()
}

/// Returns a function that connects to a backend of the service.
pub(super) fn dialer(service: &ServiceRef, request: &Attributes<'_>) -> Result<Dialer, String> {
    let ServiceRef { namespace, name, .. } = service;
    let unusable =
        |why: String| format!("failed to call webhook: Post {:?}: {why}", service.text());
    let object = find(request, "", "services", &Key::new(namespace, name))
        .ok_or_else(|| unusable(format!("service {name:?} not found")))?;
    if object["spec"]["type"] == "ExternalName" {
        let host = object["spec"]["externalName"].as_str().unwrap_or_default().to_owned();
        return Ok(network(host, service.port));
    }
    let mut ports = object["spec"]["ports"].as_array().into_iter().flatten();
    let port = ports.find(|port| port["port"] == service.port).ok_or_else(|| {
        unusable(format!("no service port {} found for service {name:?}", service.port))
    })?;
    let node = request.kubelet.map(|kubelet| kubelet.node());
    let pods = backends::of_service(request.context, node, &object, port);
    if let (Some(chosen), Some(kubelet)) = (pods.choose(&mut rand::rng()), request.kubelet) {
        let (kubelet, chosen) = (Arc::clone(kubelet), chosen.clone());
        return Ok(Arc::new(move || {
            let connected = kubelet.connect(chosen.pod.clone(), chosen.port);
            Box::pin(async move {
                let stream =
                    connected.await.map_err(|error| io::Error::other(error.to_string()))?;
                Ok(Box::new(stream) as Box<dyn Connection>)
            })
        }));
    }
    let addresses = addresses(request, service, port);
    let chosen = addresses.choose(&mut rand::rng());
    let (host, port) =
        chosen.ok_or_else(|| unusable(format!("no endpoints available for service {name:?}")))?;
    Ok(network(host.clone(), *port))
}

impl ServiceRef {
    fn text(&self) -> String {
        url(self).map(|url| url.to_string()).unwrap_or_default()
    }
}

fn network(host: String, port: u16) -> Dialer {
    Arc::new(move || {
        let host = host.clone();
        Box::pin(async move {
            let stream = TcpStream::connect((host.as_str(), port)).await?;
            Ok(Box::new(stream) as Box<dyn Connection>)
        })
    })
}

/// Returns the addresses in the endpoint slices of a service.
fn addresses(request: &Attributes<'_>, service: &ServiceRef, port: &Value) -> Vec<(String, u16)> {
    let context = request.context;
    let found = context.registry.current().find("discovery.k8s.io", "v1", "endpointslices");
    let Lookup::Found(ty) = found else { return Vec::new() };
    let (slices, _) = context.store.snapshot(&ty.table, Some(&service.namespace));
    let of_service = slices.iter().filter(|slice| {
        slice.facts.labels.get("kubernetes.io/service-name") == Some(&service.name)
    });
    let mut addresses = Vec::new();
    for slice in of_service.map(|stored| ty.load(stored)) {
        let name = port["name"].as_str().unwrap_or_default();
        let mut ports = slice["ports"].as_array().into_iter().flatten();
        let target = ports.find(|port| port["name"].as_str().unwrap_or_default() == name);
        let Some(target) = target.and_then(|port| backends::number(&port["port"])) else {
            continue;
        };
        for endpoint in slice["endpoints"].as_array().into_iter().flatten() {
            if endpoint["conditions"]["ready"] != false {
                let hosts = endpoint["addresses"].as_array().into_iter().flatten();
                let hosts = hosts.filter_map(Value::as_str);
                addresses.extend(hosts.map(|host| (host.to_owned(), target)));
            }
        }
    }
    addresses
}

fn find(request: &Attributes<'_>, group: &str, plural: &str, key: &Key) -> Option<Value> {
    let context = request.context;
    let Lookup::Found(ty) = context.registry.current().find(group, "v1", plural) else {
        return None;
    };
    Some(ty.load(&*context.store.get(&ty.table, key)?))
}
