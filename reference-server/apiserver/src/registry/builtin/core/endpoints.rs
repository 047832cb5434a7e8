//! `endpoints`.

use std::sync::Arc;

use serde_json::{Value, json};

use super::event::object_reference;
use crate::registry::builtin::BuiltinType;
use kubeproof_apimachinery::schema::Schema;
use kubeproof_apimachinery::schema::build::{definitions, list, object, port, protocol, string};
use kubeproof_apimachinery::schema::meta::with_type_meta;
use kubeproof_apimachinery::table::column::{Cell, age, column};

definitions! {
    "io.k8s.api.core.v1"

    endpoint_subset EndpointSubset {
        addresses: list(endpoint_address()), notReadyAddresses: list(endpoint_address()),
        ports: list(endpoint_port()),
    }
    endpoint_address EndpointAddress {
        hostname: string(), need ip: string(), nodeName: string(), targetRef: object_reference(),
    }
    endpoint_port EndpointPort {
        appProtocol: string(), name: string(), need port: port(), protocol: protocol().or("TCP"),
    }
}

pub(super) fn endpoints() -> BuiltinType {
    let schema = with_type_meta(object("io.k8s.api.core.v1.Endpoints"))
        .field("subsets", list(endpoint_subset()));
    BuiltinType {
        list_kind: "EndpointsList".to_owned(),
        columns: vec![column("Endpoints", "string", Cell::Computed(addresses)), age()],
        deprecation: Some(
            "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
        ),
        ..BuiltinType::namespaced("", "v1", "Endpoints", "endpoints", Arc::new(schema))
    }
}

fn addresses(endpoints: &Value) -> Value {
    let mut all = Vec::new();
    for subset in endpoints["subsets"].as_array().into_iter().flatten() {
        for address in subset["addresses"].as_array().into_iter().flatten() {
            let ip = address["ip"].as_str().unwrap_or_default();
            match subset["ports"].as_array() {
                None => all.push(ip.to_owned()),
                Some(ports) => {
                    all.extend(ports.iter().map(|port| format!("{ip}:{}", port["port"])));
                }
            }
        }
    }
    if all.is_empty() { json!("<none>") } else { json!(all.join(",")) }
}
