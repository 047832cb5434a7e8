//! The group `discovery.k8s.io/v1`: endpoint slices.

use std::net::IpAddr;

use serde_json::{Value, json};

use super::data::resource;
use super::{BuiltinType, Hooks, immutable};
use kubeproof_apimachinery::schema::FieldError;
use kubeproof_apimachinery::table::column::{Cell, age, column};

/// The maximum number of endpoints, of addresses of one, and of ports.
const MAX_ENDPOINTS: usize = 1000;
const MAX_ADDRESSES: usize = 100;
const MAX_PORTS: usize = 100;

pub(super) fn types() -> Vec<BuiltinType> {
    vec![BuiltinType {
        has_generation: true,
        columns: vec![
            column("AddressType", "string", Cell::Pointer("/addressType")),
            column("Ports", "string", Cell::Computed(ports)),
            column("Endpoints", "string", Cell::Computed(endpoints)),
            age(),
        ],
        hooks: Hooks {
            validate,
            prepare_create: forget_topology,
            prepare_update: |new, _| forget_topology(new),
            validate_update: |new, old| immutable(new, old, &["addressType"]),
            is_new_generation: |new, old| {
                ["addressType", "endpoints", "ports"].iter().any(|field| new[field] != old[field])
            },
            ..Hooks::NONE
        },
        ..resource("discovery.k8s.io", "v1", "endpointslices")
    }]
}

/// The field is left from v1beta1.
fn forget_topology(slice: &mut Value) {
    let endpoints = slice.get_mut("endpoints").and_then(Value::as_array_mut);
    for endpoint in endpoints.into_iter().flatten().filter_map(Value::as_object_mut) {
        endpoint.remove("deprecatedTopology");
    }
}

fn validate(slice: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let list = |field: &str| slice[field].as_array().map(Vec::as_slice).unwrap_or_default();
    for (field, most) in [("endpoints", MAX_ENDPOINTS), ("ports", MAX_PORTS)] {
        if list(field).len() > most {
            errors.push(FieldError::too_many(field, list(field).len(), most as u64));
        }
    }
    let kind = slice["addressType"].as_str().unwrap_or_default();
    for (index, endpoint) in list("endpoints").iter().enumerate() {
        let addresses = endpoint["addresses"].as_array().map(Vec::as_slice).unwrap_or_default();
        let place = format!("endpoints[{index}].addresses");
        if addresses.len() > MAX_ADDRESSES {
            errors.push(FieldError::too_many(&place, addresses.len(), MAX_ADDRESSES as u64));
        }
        for (index, address) in addresses.iter().enumerate() {
            let text = address.as_str().unwrap_or_default();
            if let Some(why) = address_mistake(kind, text) {
                errors.push(FieldError::invalid(format!("{place}[{index}]"), address, why));
            }
        }
    }
    let mut names: Vec<&str> = Vec::new();
    for (index, port) in list("ports").iter().enumerate() {
        let name = port["name"].as_str().unwrap_or_default();
        if names.contains(&name) {
            errors.push(FieldError::duplicate(format!("ports[{index}].name"), &port["name"]));
        }
        names.push(name);
    }
    errors
}

fn address_mistake(kind: &str, text: &str) -> Option<&'static str> {
    let address = text.parse::<IpAddr>();
    match (kind, address) {
        ("IPv4" | "IPv6", Err(_)) => {
            Some("must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)")
        }
        ("IPv4", Ok(IpAddr::V6(_))) => Some("must be an IPv4 address"),
        ("IPv6", Ok(IpAddr::V4(_))) => Some("must be an IPv6 address"),
        _ => None,
    }
}

/// Returns up to three values and the number of the others.
fn shortened(values: &[String]) -> Value {
    json!(match values.len() {
        0 => "<unset>".to_owned(),
        1..=3 => values.join(","),
        more => format!("{} + {} more...", values[..3].join(","), more - 3),
    })
}

fn ports(slice: &Value) -> Value {
    let ports = slice["ports"].as_array().into_iter().flatten();
    let text = |port: &Value| port["port"].as_i64().map_or("*".to_owned(), |port| port.to_string());
    shortened(&ports.map(text).collect::<Vec<_>>())
}

fn endpoints(slice: &Value) -> Value {
    let endpoints = slice["endpoints"].as_array().into_iter().flatten();
    let first = endpoints.filter_map(|endpoint| endpoint["addresses"][0].as_str());
    shortened(&first.map(str::to_owned).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("IPv4", "10.0.0.1", &[])]
    #[case("IPv4", "fd00::1", &["endpoints[0].addresses[0]"])]
    #[case("IPv6", "ten", &["endpoints[0].addresses[0]"])]
    #[case("Odd", "ten", &["addressType"])]
    fn addresses_fit_their_type(
        #[case] kind: &str,
        #[case] address: &str,
        #[case] expected: &[&str],
    ) {
        let ty = &types()[0];
        let slice = json!({"addressType": kind, "endpoints": [{"addresses": [address]}]});
        let mut errors = ty.schema().validate(&slice, None);
        errors.extend(validate(&slice));
        assert_eq!(errors.iter().map(|error| &*error.field).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn cells_are_short() {
        let ports = json!([{"port": 1}, {"port": 2}, {"port": 3}, {"port": 4}, {}]);
        assert_eq!(super::ports(&json!({ "ports": ports })), "1,2,3 + 2 more...");
        assert_eq!(endpoints(&json!({})), "<unset>");
        let errors = validate(&json!({"ports": [{"name": "a"}, {"name": "a"}]}));
        assert_eq!(errors[0].field, "ports[1].name");
    }
}
