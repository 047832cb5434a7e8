#![doc = include_str!("../README.md")]

mod certificates;
mod custom_resource;
mod finalizer;
mod garbage_collector;
mod namespace;
mod role_aggregation;
mod terminating;

use kubeproof_apiserver::certificates::CertificateAuthority;
use kubeproof_apiserver::loopback::Client;

/// Starts the controller that finishes the deletion of definitions. It is part of kube-apiserver.
pub fn start_custom_resources(client: &Client) {
    custom_resource::start(client);
}

/// Starts the controller that finishes the deletion of namespaces.
pub fn start_namespaces(client: &Client) {
    namespace::start(client);
}

/// Collects the rules of roles that aggregate others, and starts the controller that repeats it.
pub fn start_role_aggregation(client: &Client) {
    role_aggregation::start(client);
}

/// Starts the controllers that approve the certificates of nodes, and that sign approved requests.
pub fn start_certificates(client: &Client, authority: CertificateAuthority) {
    certificates::start(client, authority);
}

/// Starts the garbage collector.
pub fn start_garbage_collector(client: &Client) {
    garbage_collector::start(client);
}
