//! The core group, `v1`.

mod amounts;
mod balancer_fields;
mod cluster_ips;
pub(crate) mod components;
mod configmap;
mod endpoints;
pub(super) mod event;
mod limits;
mod namespace;
mod node;
mod node_ports;
mod persistent_volume_claims;
mod persistent_volumes;
pub(crate) mod pod;
mod replicationcontroller;
mod secret;
pub(crate) mod service;
mod service_network;
mod service_strategy;
mod serviceaccount;
mod volume_spec;

use serde_json::{Value, json};

pub(super) use self::amounts::round_up_resources;
pub(super) use self::persistent_volume_claims::validate_claim_spec;

pub(super) use self::volume_spec::validate_inline;

use super::BuiltinType;

pub(super) fn types() -> Vec<BuiltinType> {
    let mut types = vec![
        components::bindings(),
        components::component_statuses(),
        configmap::configmaps(),
        endpoints::endpoints(),
        event::events(),
        namespace::namespaces(),
        node::nodes(),
        pod::pods(),
        replicationcontroller::replication_controllers(),
        secret::secrets(),
        service::services(),
        serviceaccount::service_accounts(),
    ];
    types.extend(limits::types());
    types.extend([persistent_volumes::volumes(), persistent_volume_claims::claims()]);
    types
}

/// Returns labels as text for a table: `a=b,c=d`.
pub(super) fn selector_text(labels: &Value) -> Value {
    let pairs = labels.as_object().into_iter().flatten();
    let pairs: Vec<String> =
        pairs.map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default())).collect();
    if pairs.is_empty() { json!("<none>") } else { json!(pairs.join(",")) }
}
