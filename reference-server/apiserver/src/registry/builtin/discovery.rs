//! The group `discovery.k8s.io/v1`: endpoint slices.

use std::net::IpAddr;

use serde_json::{Value, json};

use super::data::resource;
use super::{BuiltinType, Hooks, immutable};
use kubeproof_apimachinery::object::validation::{addresses, names};
use kubeproof_apimachinery::schema::{FieldError, Path};
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
            warn: warnings,
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
            errors.extend(address_errors(kind, text, Path::Root.field(&place), index));
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

/// Returns the errors of an address. A kube-apiserver reports the wrong family at the list.
fn address_errors(kind: &str, text: &str, list: Path<'_>, index: usize) -> Vec<FieldError> {
    let invalid = |place: Path<'_>, why: &str| FieldError::invalid(place, &json!(text), why);
    let place = list.index(index);
    let (wrong, wants_version_4, family) = match kind {
        "IPv4" => (addresses::ip(text), true, "must be an IPv4 address"),
        "IPv6" => (addresses::canonical_ip(text), false, "must be an IPv6 address"),
        "FQDN" => return domain_errors(text, place).into_iter().collect(),
        _ => return Vec::new(),
    };
    if let Some(why) = wrong {
        return vec![invalid(place, &why)];
    }
    let is_other = text.parse::<IpAddr>().is_ok_and(|it| it.is_ipv4() != wants_version_4);
    let mut errors: Vec<_> = is_other.then(|| invalid(list, family)).into_iter().collect();
    errors.extend(addresses::endpoint_ip(text).iter().map(|why| invalid(place, why)));
    errors
}

/// Returns the error of a domain name. It has at least two segments, and may end with a dot.
fn domain_errors(text: &str, place: Path<'_>) -> Option<FieldError> {
    if text.is_empty() {
        return Some(FieldError::required(place, ""));
    }
    let name = text.strip_suffix('.').unwrap_or(text);
    let invalid = |value: &str, why: &str| FieldError::invalid(place, &json!(value), why);
    let wrong = names::dns_subdomain(name);
    if !wrong.is_empty() {
        return Some(invalid(name, &wrong.join(",")));
    }
    if !name.contains('.') {
        let why = "should be a domain with at least two segments separated by dots";
        return Some(invalid(name, why));
    }
    name.split('.').find_map(|label| {
        let wrong = names::dns_label(label);
        (!wrong.is_empty()).then(|| invalid(label, &wrong.join(",")))
    })
}

/// Returns the warnings about a slice. The controllers of the server write usual addresses.
fn warnings(slice: &Value, old: Option<&Value>) -> Vec<String> {
    let mut warnings = Vec::new();
    if old.is_none() && slice["addressType"] == "FQDN" {
        warnings.push("spec.addressType: FQDN endpoints are deprecated".to_owned());
    }
    let manager = &slice["metadata"]["labels"]["endpointslice.kubernetes.io/managed-by"];
    let controllers =
        ["endpointslice-controller.k8s.io", "endpointslicemirroring-controller.k8s.io"];
    if manager.as_str().is_some_and(|manager| controllers.contains(&manager)) {
        return warnings;
    }
    for (index, endpoint) in slice["endpoints"].as_array().into_iter().flatten().enumerate() {
        let addresses = endpoint["addresses"].as_array().into_iter().flatten();
        for (at, address) in addresses.filter_map(Value::as_str).enumerate() {
            let place = format!("endpoints[{index}].addresses[{at}]");
            warnings.extend(addresses::ip_warning(address, &place));
        }
    }
    warnings
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
    #[case("IPv4", "fd00::1", &["endpoints[0].addresses"])]
    #[case("IPv4", "127.0.0.1", &["endpoints[0].addresses[0]"])]
    #[case("IPv6", "ten", &["endpoints[0].addresses[0]"])]
    #[case("IPv6", "FD00::1", &["endpoints[0].addresses[0]"])]
    #[case("FQDN", "a.b.", &[])]
    #[case("FQDN", "a", &["endpoints[0].addresses[0]"])]
    #[case("FQDN", "", &["endpoints[0].addresses[0]"])]
    #[case("FQDN", "a_b.c", &["endpoints[0].addresses[0]"])]
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
    fn domains_are_deprecated() {
        let slice = json!({"addressType": "FQDN"});
        assert_eq!(warnings(&slice, None), ["spec.addressType: FQDN endpoints are deprecated"]);
        assert!(warnings(&slice, Some(&slice)).is_empty());
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
