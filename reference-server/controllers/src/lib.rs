#![doc = include_str!("../README.md")]

mod api_services;
mod certificates;
mod custom_resource;
mod definition_names;
mod finalizer;
mod followed;
mod garbage_collector;
mod namespace;
mod node_taints;
mod policy_status;
mod resource_quota;
mod role_aggregation;
mod service_accounts;
mod terminating;
mod volume_protection;

use kubeproof_apiserver::certificates::CertificateAuthority;
use kubeproof_apiserver::loopback::Client;

/// Starts the controllers that finish the deletion of definitions, and that accept the names which
/// it frees. They are part of kube-apiserver.
pub fn start_custom_resources(client: &Client) {
    custom_resource::start(client);
    definition_names::start(client);
}

/// Registers the groups that the server itself serves, and starts the controller that registers
/// those of definitions. It is part of kube-apiserver.
pub async fn start_api_services(client: &Client) {
    api_services::start(client).await;
}

/// Starts the controller that finishes the deletion of namespaces.
pub fn start_namespaces(client: &Client) {
    namespace::start(client);
}

/// Starts the controller that checks the expressions of validating admission policies.
pub fn start_policy_status(client: &Client) {
    policy_status::start(client);
}

/// Starts the controllers that undo what admission adds to new nodes, volumes and claims.
pub fn start_releases(client: &Client) {
    node_taints::start(client);
    volume_protection::start(client);
}

/// Collects the rules of roles that aggregate others, and starts the controller that repeats it.
pub async fn start_role_aggregation(client: &Client) {
    role_aggregation::start(client).await;
}

/// Starts the controllers that approve the certificates of nodes, and that sign approved requests.
pub fn start_certificates(client: &Client, authority: CertificateAuthority) {
    certificates::start(client, authority);
}

/// Starts the controller that computes the usage of resource quotas.
pub fn start_resource_quotas(client: &Client) {
    resource_quota::start(client);
}

/// Starts the controller that creates the default service account of each namespace, and a config
/// map with the certificate authority of the server, if it has one.
pub async fn start_service_accounts(client: &Client, ca_pem: Option<String>) {
    service_accounts::start(client, ca_pem).await;
}

/// Starts the garbage collector.
pub async fn start_garbage_collector(client: &Client) {
    garbage_collector::start(client).await;
}
