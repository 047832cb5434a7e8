//! `services`, and their cluster IPs.

use std::collections::{BTreeSet, HashSet};
use std::net::Ipv4Addr;
use std::sync::Arc;

use rand::seq::IteratorRandom as _;
use serde_json::{Value, json};

use super::node_ports;
use crate::registry::builtin::checks::port_number_or_name;
use crate::registry::builtin::data::resource;
use crate::registry::builtin::{BuiltinType, FieldLabel, Hooks, NameRule, Subresource, meta};
use kubeproof_apimachinery::table::column::{Cell, age, column, wide};

use kubeproof_apimachinery::schema::{FieldError, Path};

pub(super) fn services() -> BuiltinType {
    BuiltinType {
        subresources: &[Subresource {
            name: "proxy",
            verbs: super::pod::ANY,
            group: "",
            version: "v1",
            kind: "ServiceProxyOptions",
            part: None,
        }],
        name_rule: NameRule::DnsLabel,
        field_labels: &[
            FieldLabel { label: "spec.clusterIP", pointer: "/spec/clusterIP", absent: "" },
            FieldLabel { label: "spec.type", pointer: "/spec/type", absent: "" },
        ],
        columns: vec![
            column("Type", "string", Cell::Pointer("/spec/type")),
            column("Cluster-IP", "string", Cell::Pointer("/spec/clusterIP")),
            column("External-IP", "string", Cell::Computed(external_ip)),
            column("Port(s)", "string", Cell::Computed(ports)),
            age(),
            wide(
                "Selector",
                "string",
                Cell::Computed(|service| super::selector_text(&service["spec"]["selector"])),
            ),
        ],
        strategy: || Arc::new(super::service_strategy::ServiceStrategy::default()),
        hooks: Hooks {
            default: complete,
            validate,
            validate_update,
            prepare_create: |service| {
                service["status"] = json!({"loadBalancer": {}});
            },
            prepare_update,
            is_new_generation: |_, _| false,
            ..Hooks::NONE
        },
        has_generation: false,
        ..resource("", "v1", "services")
    }
}

/// The cluster IPs of services. The range is small and its order is fixed, so that tests can
/// predict them. A released address is used again after all others, as with kube-apiserver, which
/// chooses at random: a client that released an address can request it for some time.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClusterIps {
    taken: BTreeSet<Ipv4Addr>,
    /// The last address that the server chose.
    last: Option<Ipv4Addr>,
}

impl ClusterIps {
    /// Allocates the requested address or the next one. Headless services and external names need
    /// none.
    pub(crate) fn allocate(&mut self, service: &mut Value) -> Result<(), FieldError> {
        let Some(address) = self.choose(service)? else { return Ok(()) };
        if cluster_ip(service).is_empty() {
            self.last = Some(address);
        }
        self.taken.insert(address);
        let text = address.to_string();
        service["spec"]["clusterIPs"] = json!([text]);
        service["spec"]["clusterIP"] = json!(text);
        Ok(())
    }

    /// Allocates like [`Self::allocate`] for a dry run, which does not keep the address.
    pub(crate) fn propose(&self, service: &mut Value) -> Result<(), FieldError> {
        self.clone().allocate(service)
    }

    /// Replaces the allocated addresses. The first address that a server chooses is random, so that
    /// servers that share a storage rarely choose the same.
    pub(crate) fn set_taken(&mut self, taken: BTreeSet<Ipv4Addr>) {
        self.taken = taken;
        if self.last.is_none() && !self.taken.is_empty() {
            self.last = range().choose(&mut rand::rng());
        }
    }

    /// Releases the address of a deleted service.
    pub(crate) fn release(&mut self, service: &Value) {
        if let Ok(address) = cluster_ip(service).parse() {
            self.taken.remove(&address);
        }
    }

    fn choose(&self, service: &Value) -> Result<Option<Ipv4Addr>, FieldError> {
        let wanted = cluster_ip(service);
        if wanted == "None" || service["spec"]["type"] == "ExternalName" {
            return Ok(None);
        }
        let reject = |why: &str| {
            let why = format!("failed to allocate IP {wanted}: {why}");
            FieldError::invalid("spec.clusterIPs", &json!([wanted]), &why)
        };
        if wanted.is_empty() {
            let is_free = |address: &Ipv4Addr| !self.taken.contains(address);
            let later = range().find(|address| Some(*address) > self.last && is_free(address));
            let free = later.or_else(|| range().find(is_free));
            return free.map(Some).ok_or_else(|| reject("range is full"));
        }
        let address: Ipv4Addr = wanted.parse().map_err(|_| reject("not an IPv4 address"))?;
        if !range().any(|candidate| candidate == address) {
            return Err(reject("the provided network does not match the current range"));
        }
        if self.taken.contains(&address) {
            return Err(reject("provided IP is already allocated"));
        }
        Ok(Some(address))
    }
}

/// Returns 10.0.0.1 to 10.0.15.254, without the addresses that end in 0 or 255.
fn range() -> impl Iterator<Item = Ipv4Addr> {
    (0..16).flat_map(|third| (1..255).map(move |fourth| Ipv4Addr::new(10, 0, third, fourth)))
}

pub(super) fn cluster_ip(service: &Value) -> &str {
    let spec = &service["spec"];
    spec["clusterIP"].as_str().or_else(|| spec["clusterIPs"][0].as_str()).unwrap_or_default()
}

fn complete(service: &mut Value) {
    let spec = &mut service["spec"];
    let kind = spec["type"].as_str().unwrap_or_default().to_owned();
    for port in spec.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
        if port.get("targetPort").is_none_or(|target| *target == json!(0) || *target == json!("")) {
            port["targetPort"] = port["port"].clone();
        }
    }
    if spec["sessionAffinity"] == "ClientIP"
        && spec["sessionAffinityConfig"]["clientIP"]["timeoutSeconds"].is_null()
    {
        spec["sessionAffinityConfig"] = json!({"clientIP": {"timeoutSeconds": 10800}});
    }
    // Both fields contain the same address.
    match (
        spec["clusterIP"].as_str().map(str::to_owned),
        spec["clusterIPs"][0].as_str().map(str::to_owned),
    ) {
        (Some(address), None) => spec["clusterIPs"] = json!([address]),
        (None, Some(address)) => spec["clusterIP"] = json!(address),
        _ => {}
    }
    let mut or = |field: &str, value: Value| {
        if spec.get(field).is_none() {
            spec[field] = value;
        }
    };
    if kind != "ExternalName" {
        or("internalTrafficPolicy", json!("Cluster"));
        or("ipFamilies", json!(["IPv4"]));
        or("ipFamilyPolicy", json!("SingleStack"));
    }
    if matches!(kind.as_str(), "NodePort" | "LoadBalancer") {
        or("externalTrafficPolicy", json!("Cluster"));
    }
    if kind == "LoadBalancer" {
        or("allocateLoadBalancerNodePorts", json!(true));
    }
}

/// An update may omit the address that the server allocated.
fn prepare_update(new: &mut Value, old: &Value) {
    crate::registry::builtin::restore(new, old, "status");
    node_ports::carry_over(new, old);
    if new["spec"]["type"] == "ExternalName" || old["spec"]["type"] == "ExternalName" {
        return;
    }
    for field in ["clusterIP", "clusterIPs"] {
        if let (None, Some(address)) = (new["spec"].get(field), old["spec"].get(field)) {
            new["spec"][field] = address.clone();
        }
    }
}

/// Removes the fields of other types from a service that becomes an `ExternalName`, unless the
/// update sets them.
pub(crate) fn drop_address(new: &mut Value, old: &Value) {
    let Some(spec) = new["spec"].as_object_mut() else { return };
    for field in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
        if spec.get(field) == old["spec"].get(field) {
            spec.remove(field);
        }
    }
    for port in spec.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(port) = port.as_object_mut() {
            port.remove("nodePort");
        }
    }
}

fn validate(service: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let spec = &service["spec"];
    let root = Path::Root;
    let spec_path = root.field("spec");
    let path = spec_path.field("ports");
    let ports = spec["ports"].as_array().map(Vec::as_slice).unwrap_or_default();
    let headless = cluster_ip(service) == "None";
    if ports.is_empty() && !headless && spec["type"] != "ExternalName" {
        errors.push(FieldError::required(path, ""));
    }
    let (mut names, mut numbers) = (HashSet::new(), HashSet::new());
    for (index, port) in ports.iter().enumerate() {
        let at = path.index(index);
        validate_port(port, at, ports.len() > 1, &mut errors);
        let name = &port["name"];
        if !name.is_null() && !names.insert(name) {
            errors.push(FieldError::duplicate(at.field("name"), name));
        }
        if !numbers.insert((&port["port"], &port["protocol"])) {
            errors.push(FieldError::duplicate(at, port));
        }
    }
    if spec["type"] == "ExternalName" {
        let name = spec["externalName"].as_str().unwrap_or_default();
        if name.is_empty() {
            errors.push(FieldError::required("spec.externalName", ""));
        }
    }
    validate_load_balancer(spec, spec_path, &mut errors);
    node_ports::validate(service, &mut errors);
    errors.extend(meta::validate_labels(spec.get("selector"), spec_path.field("selector")));
    errors
}

fn validate_port(port: &Value, at: Path<'_>, needs_name: bool, errors: &mut Vec<FieldError>) {
    match port["name"].as_str() {
        None if needs_name => errors.push(FieldError::required(at.field("name"), "")),
        Some(name) => {
            let wrong = kubeproof_apimachinery::object::validation::names::dns_label(name);
            errors.extend(
                wrong.iter().map(|why| FieldError::invalid(at.field("name"), &json!(name), why)),
            );
        }
        None => {}
    }
    if let Some(target) = port.get("targetPort") {
        errors.extend(port_number_or_name(target, at.field("targetPort")));
    }
}

/// Only a load balancer has these fields.
fn validate_load_balancer(spec: &Value, path: Path<'_>, errors: &mut Vec<FieldError>) {
    if spec["type"] == "LoadBalancer" {
        return;
    }
    let fields = [
        ("allocateLoadBalancerNodePorts", "allocateLoadBalancerNodePorts"),
        ("loadBalancerClass", "loadBalancerClass"),
        ("loadBalancerSourceRanges", "LoadBalancerSourceRanges"),
    ];
    let why = "may only be used when `type` is 'LoadBalancer'";
    for (_, name) in fields.iter().filter(|(field, _)| !spec[*field].is_null()) {
        errors.push(FieldError::forbidden(path.field(name), why));
    }
}

fn validate_update(new: &Value, old: &Value) -> Vec<FieldError> {
    let keeps_address = |service: &Value| service["spec"]["type"] != "ExternalName";
    let (now, before) = (cluster_ip(new), cluster_ip(old));
    if keeps_address(new) && keeps_address(old) && !before.is_empty() && now != before {
        return vec![FieldError::invalid(
            "spec.clusterIPs[0]",
            &json!([now]),
            "may not change once set",
        )];
    }
    Vec::new()
}

fn external_ip(service: &Value) -> Value {
    let spec = &service["spec"];
    if spec["type"] == "ExternalName" {
        return spec["externalName"].clone();
    }
    let ingress = service["status"]["loadBalancer"]["ingress"].as_array().into_iter().flatten();
    let given =
        ingress.filter_map(|entry| entry["ip"].as_str().or_else(|| entry["hostname"].as_str()));
    let external = spec["externalIPs"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let all: Vec<&str> = given.chain(external).collect();
    match (all.is_empty(), spec["type"] == "LoadBalancer") {
        (false, _) => json!(all.join(",")),
        (true, true) => json!("<pending>"),
        (true, false) => json!("<none>"),
    }
}

fn ports(service: &Value) -> Value {
    let show = |port: &Value| {
        let protocol = port["protocol"].as_str().unwrap_or("TCP");
        match port["nodePort"].as_i64() {
            Some(node) if node > 0 => format!("{}:{node}/{protocol}", port["port"]),
            _ => format!("{}/{protocol}", port["port"]),
        }
    };
    let all: Vec<String> =
        service["spec"]["ports"].as_array().into_iter().flatten().map(show).collect();
    if all.is_empty() { json!("<none>") } else { json!(all.join(",")) }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn completed(spec: &Value) -> Value {
        let services = services();
        let mut service = json!({"metadata": {"name": "s"}, "spec": spec});
        services.schema().apply_defaults(&mut service);
        (services.hooks.default)(&mut service);
        service
    }

    #[test]
    fn a_service_is_filled_in_and_gets_an_address_of_its_own() {
        let mut ips = ClusterIps::default();
        let mut service = completed(&json!({"ports": [{"port": 80}], "selector": {"a": "b"}}));
        ips.allocate(&mut service).unwrap();
        assert_eq!(
            service["spec"],
            json!({
                "clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"],
                "internalTrafficPolicy": "Cluster", "ipFamilies": ["IPv4"],
                "ipFamilyPolicy": "SingleStack",
                "ports": [{"port": 80, "protocol": "TCP", "targetPort": 80}],
                "selector": {"a": "b"}, "sessionAffinity": "None", "type": "ClusterIP",
            })
        );
        let mut second = completed(&json!({"ports": [{"port": 80}]}));
        ips.propose(&mut second.clone()).unwrap();
        ips.allocate(&mut second).unwrap();
        assert_eq!(second["spec"]["clusterIP"], "10.0.0.2");
    }

    #[test]
    fn a_released_address_is_used_again_after_all_others() {
        let mut ips = ClusterIps { taken: range().skip(3).collect(), last: None };
        let next = |ips: &mut ClusterIps| {
            let mut service = completed(&json!({"ports": [{"port": 80}]}));
            ips.allocate(&mut service).map(|()| service)
        };
        let first = next(&mut ips).unwrap();
        ips.release(&first);
        for address in ["10.0.0.2", "10.0.0.3", "10.0.0.1"] {
            assert_eq!(cluster_ip(&next(&mut ips).unwrap()), address);
        }
        assert!(next(&mut ips).unwrap_err().message.contains("range is full"));
    }

    #[rstest]
    #[case("10.0.0.1", Some("provided IP is already allocated"))]
    #[case("1.2.3.4", Some("does not match the current range"))]
    #[case("10.0.0.7", None)]
    #[case("None", None)]
    fn a_wanted_address_must_be_free(#[case] wanted: &str, #[case] rejection: Option<&str>) {
        let mut ips = ClusterIps::default();
        ips.allocate(&mut completed(&json!({}))).unwrap();
        let mut service = completed(&json!({ "clusterIP": wanted }));
        match (ips.allocate(&mut service), rejection) {
            (Ok(()), None) => assert_eq!(service["spec"]["clusterIP"], wanted),
            (Err(error), Some(text)) => assert!(error.message.contains(text), "{error}"),
            (result, _) => panic!("{wanted}: {result:?}"),
        }
    }

    #[rstest]
    #[case(json!({"ports": []}), &["spec.ports"])]
    #[case(json!({"ports": [], "clusterIP": "None"}), &[])]
    #[case(
        json!({"ports": [{"port": 80}, {"port": 81}]}),
        &["spec.ports[0].name", "spec.ports[1].name"]
    )]
    #[case(
        json!({"ports": [{"name": "a", "port": 80}, {"name": "b", "port": 80}]}),
        &["spec.ports[1]"]
    )]
    #[case(json!({"ports": [{"port": 0}]}), &["spec.ports[0].port", "spec.ports[0].targetPort"])]
    #[case(json!({"ports": [{"port": 80}], "type": "Nope"}), &["spec.type"])]
    #[case(json!({"ports": [{"port": 80, "targetPort": "http"}]}), &[])]
    #[case(json!({"type": "ExternalName"}), &["spec.externalName"])]
    fn mistakes_name_their_field(#[case] spec: Value, #[case] expected: &[&str]) {
        let service = completed(&spec);
        let mut errors = services().schema().validate(&service, None);
        errors.extend(validate(&service));
        assert_eq!(errors.into_iter().map(|error| error.field).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn an_update_keeps_the_address() {
        let old = json!({
            "spec": {"type": "ClusterIP", "clusterIP": "10.0.0.5", "clusterIPs": ["10.0.0.5"]},
        });
        let mut new = json!({"spec": {"type": "ClusterIP"}});
        prepare_update(&mut new, &old);
        assert_eq!(new, old);
        new["spec"]["clusterIP"] = json!("10.0.0.6");
        let errors = validate_update(&new, &old);
        assert_eq!(errors[0].field, "spec.clusterIPs[0]");
    }
}
