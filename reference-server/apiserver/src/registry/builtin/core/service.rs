//! `services`.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::{Value, json};

use super::cluster_ips::cluster_ip;
use super::{balancer_fields, node_ports, service_network};
use crate::registry::builtin::checks::port_number_or_name;
use crate::registry::builtin::checks::statuses::service_balancer;
use crate::registry::builtin::data::resource;
use crate::registry::builtin::{
    BuiltinType, FieldLabel, Hooks, NameRule, Subresource, meta, warnings,
};
use kubeproof_apimachinery::object::validation::syntax::Syntax;
use kubeproof_apimachinery::schema::{FieldError, Path};
use kubeproof_apimachinery::table::column::{Cell, age, column, wide};

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
            validate_status: service_balancer,
            warn: warnings::services::service,
            warn_status: warnings::services::balancer,
            prepare_create: |service| {
                service["status"] = json!({"loadBalancer": {}});
                settle(service, &Value::Null);
            },
            prepare_update,
            is_new_generation: |_, _| false,
            ..Hooks::NONE
        },
        has_generation: false,
        ..resource("", "v1", "services")
    }
}

/// The longest affinity to an address of a client, in seconds.
const MAX_AFFINITY: i64 = 86_400;

fn complete(service: &mut Value) {
    let spec = &mut service["spec"];
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
    if spec["sessionAffinity"] == "None" {
        spec.as_object_mut().and_then(|spec| spec.remove("sessionAffinityConfig"));
    }
    if let (Some(address), true) = (spec["clusterIP"].as_str(), spec["clusterIPs"].is_null()) {
        spec["clusterIPs"] = json!([address]);
    }
    service_network::complete(spec);
    complete_ingress(service);
}

/// The load balancer has the addresses itself unless it says otherwise.
fn complete_ingress(service: &mut Value) {
    if service["spec"]["type"] != "LoadBalancer" {
        return;
    }
    let ingress = service.pointer_mut("/status/loadBalancer/ingress").and_then(Value::as_array_mut);
    for entry in ingress.into_iter().flatten() {
        if entry["ip"].is_string() && entry["ipMode"].is_null() {
            entry["ipMode"] = json!("VIP");
        }
    }
}

/// An update may omit the address that the server allocated.
fn prepare_update(new: &mut Value, old: &Value) {
    crate::registry::builtin::restore(new, old, "status");
    node_ports::carry_over(new, old);
    match (is_external_name(old), is_external_name(new)) {
        (false, true) => drop_address(new, old),
        (true, _) => {}
        (false, false) => {
            for field in ["clusterIP", "clusterIPs"] {
                if let (None, Some(address)) = (new["spec"].get(field), old["spec"].get(field)) {
                    new["spec"][field] = address.clone();
                }
            }
        }
    }
    drop_load_balancer(new, old);
    settle(new, old);
}

/// Fills in and removes the fields that depend on the stored service.
fn settle(new: &mut Value, old: &Value) {
    service_network::drop_external_policy(&mut new["spec"], &old["spec"]);
    service_network::complete_families(&mut new["spec"], &old["spec"]);
    // Validation reports other values.
    let policy = new["spec"]["internalTrafficPolicy"].as_str();
    if is_external_name(new) && matches!(policy, Some("Cluster" | "Local")) {
        new["spec"].as_object_mut().and_then(|spec| spec.remove("internalTrafficPolicy"));
    }
}

fn is_external_name(service: &Value) -> bool {
    service["spec"]["type"] == "ExternalName"
}

/// Removes the fields of a load balancer from a service of another type, unless the update sets
/// them.
fn drop_load_balancer(new: &mut Value, old: &Value) {
    if new["spec"]["type"] == "LoadBalancer" || old["spec"]["type"] != "LoadBalancer" {
        return;
    }
    for field in ["allocateLoadBalancerNodePorts", "loadBalancerClass"] {
        if new["spec"].get(field) == old["spec"].get(field) {
            new["spec"].as_object_mut().and_then(|spec| spec.remove(field));
        }
    }
    new["status"]["loadBalancer"] = json!({});
}

/// Removes the fields of other types from a service that becomes an `ExternalName`, unless the
/// update sets them.
fn drop_address(new: &mut Value, old: &Value) {
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
        } else {
            // The name of a domain may end with a dot.
            let name = name.strip_suffix('.').unwrap_or(name);
            errors.extend(Syntax::DnsSubdomain.errors(name, spec_path.field("externalName")));
        }
    }
    errors.extend(balancer_fields::validate(service));
    validate_affinity(spec, spec_path, &mut errors);
    errors.extend(service_network::validate(service));
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

fn validate_affinity(spec: &Value, path: Path<'_>, errors: &mut Vec<FieldError>) {
    let timeout = &spec["sessionAffinityConfig"]["clientIP"]["timeoutSeconds"];
    if timeout.as_i64().is_some_and(|seconds| !(1..=MAX_AFFINITY).contains(&seconds)) {
        let config = path.field("sessionAffinityConfig");
        let place = config.field("clientIP");
        let why = format!("must be greater than 0 and less than {MAX_AFFINITY}");
        errors.push(FieldError::invalid(place.field("timeoutSeconds"), timeout, &why));
    }
}

fn validate_update(new: &Value, old: &Value) -> Vec<FieldError> {
    let keeps_address = |service: &Value| service["spec"]["type"] != "ExternalName";
    let (now, before) = (cluster_ip(new), cluster_ip(old));
    let why = "may not change once set";
    let mut errors = Vec::new();
    if keeps_address(new) && keeps_address(old) && !before.is_empty() && now != before {
        errors.push(FieldError::invalid("spec.clusterIPs[0]", &json!([now]), why));
    }
    let is_balanced = |service: &Value| service["spec"]["type"] == "LoadBalancer";
    let class = |service: &Value| service["spec"]["loadBalancerClass"].clone();
    if is_balanced(new) && is_balanced(old) && class(new) != class(old) {
        errors.push(FieldError::invalid("spec.loadBalancerClass", &class(new), why));
    }
    let needs_port = service_network::needs_health_port;
    let field = "healthCheckNodePort";
    if needs_port(new) && needs_port(old) && new["spec"][field] != old["spec"][field] {
        errors.push(FieldError::forbidden(format!("spec.{field}"), "field is immutable"));
    }
    errors
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

    use super::super::cluster_ips::ClusterIps;
    use super::*;

    fn completed(spec: &Value) -> Value {
        let services = services();
        let mut service = json!({"metadata": {"name": "s"}, "spec": spec});
        services.schema().apply_defaults(&mut service);
        (services.hooks.default)(&mut service);
        (services.hooks.prepare_create)(&mut service);
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
    #[case(
        json!({"ports": [{"port": 80}],
               "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 0}}}),
        &[]
    )]
    #[case(
        json!({"ports": [{"port": 80}], "sessionAffinity": "ClientIP",
               "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 86_401}}}),
        &["spec.sessionAffinityConfig.clientIP.timeoutSeconds"]
    )]
    #[case(
        json!({"ports": [{"port": 80}], "type": "LoadBalancer",
               "loadBalancerSourceRanges": [" 1.2.3.0/24 ", "1.2.3.4"]}),
        &["spec.LoadBalancerSourceRanges[1]"]
    )]
    fn mistakes_name_their_field(#[case] spec: Value, #[case] expected: &[&str]) {
        let service = completed(&spec);
        let mut errors = services().schema().validate(&service, None);
        errors.extend(validate(&service));
        assert_eq!(errors.into_iter().map(|error| error.field).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn an_update_keeps_the_address() {
        let families = json!({"ipFamilyPolicy": "SingleStack", "ipFamilies": ["IPv4"]});
        let mut old = json!({ "spec": families });
        old["spec"]["type"] = json!("ClusterIP");
        old["spec"]["clusterIP"] = json!("10.0.0.5");
        old["spec"]["clusterIPs"] = json!(["10.0.0.5"]);
        let mut new = json!({"spec": {"type": "ClusterIP"}});
        prepare_update(&mut new, &old);
        assert_eq!(new, old);
        new["spec"]["clusterIP"] = json!("10.0.0.6");
        let errors = validate_update(&new, &old);
        assert_eq!(errors[0].field, "spec.clusterIPs[0]");
    }
    #[test]
    fn a_service_of_another_type_drops_its_fields() {
        let ingress = json!([{"ip": "1.2.3.4"}, {"hostname": "a.b"}]);
        let mut old = json!({
            "spec": {"type": "LoadBalancer", "loadBalancerClass": "a.b/c"},
            "status": {"loadBalancer": {"ingress": ingress}},
        });
        complete(&mut old);
        let modes = json!([{"ip": "1.2.3.4", "ipMode": "VIP"}, {"hostname": "a.b"}]);
        assert_eq!(old["status"]["loadBalancer"]["ingress"], modes);
        let mut new = old.clone();
        new["spec"]["type"] = json!("ExternalName");
        prepare_update(&mut new, &old);
        assert_eq!(new["spec"], json!({"type": "ExternalName"}));
        assert_eq!(new["status"], json!({"loadBalancer": {}}));
    }

    #[test]
    fn a_service_keeps_its_health_port() {
        let new = json!({"spec": {"type": "LoadBalancer", "externalTrafficPolicy": "Local"}});
        let mut old = new.clone();
        old["spec"]["healthCheckNodePort"] = json!(30_000);
        assert_eq!(validate_update(&new, &old)[0].field, "spec.healthCheckNodePort");
    }
}
