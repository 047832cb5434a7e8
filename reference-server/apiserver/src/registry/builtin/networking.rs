//! The group `networking.k8s.io/v1`: ingresses, their classes, network policies, address ranges.

use std::net::IpAddr;

use ipnet::IpNet;
use serde_json::{Value, json};

use super::checks::statuses;
use super::data::{hooks, resource};
use super::{BuiltinType, Hooks, immutable, restore, warnings};
use kubeproof_apimachinery::object::Object;
use kubeproof_apimachinery::object::validation::names;
use kubeproof_apimachinery::object::validation::syntax::Syntax;
use kubeproof_apimachinery::schema::{FieldError, Path};
use kubeproof_apimachinery::table::column::{Cell, age, column};

const GROUP: &str = "networking.k8s.io";

pub(super) fn types() -> Vec<BuiltinType> {
    vec![ingress_classes(), ingresses(), ip_addresses(), network_policies(), service_cidrs()]
}

fn ingress_classes() -> BuiltinType {
    BuiltinType {
        columns: vec![
            column("Controller", "string", Cell::Pointer("/spec/controller")),
            column("Parameters", "string", Cell::Computed(parameters)),
            age(),
        ],
        hooks: Hooks {
            default: |class| {
                let parameters = class.pointer_mut("/spec/parameters");
                if let Some(parameters) = parameters.and_then(Value::as_object_mut) {
                    parameters.entry("scope").or_insert_with(|| json!("Cluster"));
                }
            },
            validate_update: |new, old| immutable(new, old, &["spec.controller"]),
            ..hooks(false)
        },
        ..resource(GROUP, "v1", "ingressclasses")
    }
}

fn ingresses() -> BuiltinType {
    BuiltinType {
        columns: vec![
            column("Class", "string", Cell::Pointer("/spec/ingressClassName")),
            column("Hosts", "string", Cell::Computed(hosts)),
            column("Address", "string", Cell::Computed(addresses)),
            column(
                "Ports",
                "string",
                Cell::Computed(|ingress| {
                    let has_tls =
                        ingress["spec"]["tls"].as_array().is_some_and(|tls| !tls.is_empty());
                    json!(if has_tls { "80, 443" } else { "80" })
                }),
            ),
            age(),
        ],
        hooks: Hooks {
            validate: validate_ingress,
            validate_create: validate_class,
            validate_status: statuses::ingress_balancer,
            warn: warnings::services::ingress,
            warn_status: warnings::services::balancer,
            ..hooks(true)
        },
        ..resource(GROUP, "v1", "ingresses")
    }
}

fn ip_addresses() -> BuiltinType {
    BuiltinType {
        has_generation: false,
        columns: vec![column("ParentRef", "string", Cell::Computed(parent))],
        hooks: Hooks {
            validate: |address| {
                let name = address.meta("name");
                if name.parse::<IpAddr>().is_ok() {
                    return Vec::new();
                }
                let why = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
                vec![FieldError::invalid("metadata.name", &json!(name), why)]
            },
            validate_update: |new, old| immutable(new, old, &["spec.parentRef"]),
            is_new_generation: |_, _| false,
            ..hooks(false)
        },
        ..resource(GROUP, "v1", "ipaddresses")
    }
}

fn network_policies() -> BuiltinType {
    BuiltinType {
        columns: vec![
            column(
                "Pod-Selector",
                "string",
                Cell::Computed(|policy| {
                    super::core::selector_text(&policy["spec"]["podSelector"]["matchLabels"])
                }),
            ),
            age(),
        ],
        hooks: Hooks {
            default: |policy| {
                let spec = &mut policy["spec"];
                if spec["policyTypes"].as_array().is_none_or(Vec::is_empty) {
                    let has_egress = spec["egress"].as_array().is_some_and(|it| !it.is_empty());
                    let types =
                        if has_egress { json!(["Ingress", "Egress"]) } else { json!(["Ingress"]) };
                    spec["policyTypes"] = types;
                }
            },
            validate: validate_policy,
            ..hooks(false)
        },
        ..resource(GROUP, "v1", "networkpolicies")
    }
}

fn service_cidrs() -> BuiltinType {
    BuiltinType {
        has_generation: false,
        columns: vec![
            column(
                "CIDRs",
                "string",
                Cell::Computed(|range| {
                    let ranges = range["spec"]["cidrs"].as_array().into_iter().flatten();
                    json!(ranges.filter_map(Value::as_str).collect::<Vec<_>>().join(","))
                }),
            ),
            age(),
        ],
        hooks: Hooks {
            validate: validate_ranges,
            validate_update: |new, old| immutable(new, old, &["spec.cidrs"]),
            prepare_update: |new, old| restore(new, old, "status"),
            is_new_generation: |_, _| false,
            ..hooks(true)
        },
        ..resource(GROUP, "v1", "servicecidrs")
    }
}

/// A new ingress has the same class in its annotation and in its spec.
fn validate_class(ingress: &Value) -> Vec<FieldError> {
    let annotation = &ingress["metadata"]["annotations"]["kubernetes.io/ingress.class"];
    let class = &ingress["spec"]["ingressClassName"];
    if annotation.is_null() || class.is_null() || annotation == class {
        return Vec::new();
    }
    let why = "must match `ingressClassName` when both are specified";
    vec![FieldError::invalid("annotations.kubernetes.io/ingress.class", annotation, why)]
}

fn validate_ingress(ingress: &Value) -> Vec<FieldError> {
    let spec = &ingress["spec"];
    let root = Path::Root;
    let path = root.field("spec");
    let mut errors = Vec::new();
    let rules = spec["rules"].as_array().map(Vec::as_slice).unwrap_or_default();
    if rules.is_empty() && spec["defaultBackend"].is_null() {
        let why = "either `defaultBackend` or `rules` must be specified";
        errors.push(FieldError::invalid(path, &json!(""), why));
    }
    if !spec["defaultBackend"].is_null() {
        errors.extend(validate_backend(&spec["defaultBackend"], path.field("defaultBackend")));
    }
    let place = path.field("rules");
    for (index, rule) in rules.iter().enumerate() {
        let place = place.index(index);
        if let Some(host) = rule["host"].as_str().filter(|host| !host.is_empty()) {
            let plain = host.strip_prefix("*.").unwrap_or(host);
            let wrong = if host.parse::<IpAddr>().is_ok() {
                vec!["must be a DNS name, not an IP address".to_owned()]
            } else {
                names::dns_subdomain(plain)
            };
            let error = |why: &String| FieldError::invalid(place.field("host"), &json!(host), why);
            errors.extend(wrong.iter().map(error));
        }
        let http = place.field("http");
        let paths = http.field("paths");
        for (index, path) in rule["http"]["paths"].as_array().into_iter().flatten().enumerate() {
            errors.extend(validate_path(path, paths.index(index)));
        }
    }
    errors
}

fn validate_path(path: &Value, place: Path<'_>) -> Vec<FieldError> {
    let mut errors = validate_backend(&path["backend"], place.field("backend"));
    let text = path["path"].as_str().unwrap_or_default();
    let kind = path["pathType"].as_str().unwrap_or_default();
    if matches!(kind, "Exact" | "Prefix") || kind == "ImplementationSpecific" && !text.is_empty() {
        let field = place.field("path");
        if !text.starts_with('/') {
            errors.push(FieldError::invalid(field, &json!(text), "must be an absolute path"));
        }
        let bad = ["//", "/./", "/../", "%2f", "%2F"];
        if kind != "ImplementationSpecific" {
            for part in bad.iter().filter(|part| text.contains(**part)) {
                let why = format!("must not contain '{part}'");
                errors.push(FieldError::invalid(field, &json!(text), &why));
            }
        }
    }
    errors
}

fn validate_backend(backend: &Value, place: Path<'_>) -> Vec<FieldError> {
    let (service, resource) = (&backend["service"], &backend["resource"]);
    match (service.is_object(), resource.is_object()) {
        (true, true) => {
            let why = "cannot set both resource and service backends";
            return vec![FieldError::invalid(place, &json!(""), why)];
        }
        (false, false) => {
            let why = "resource or service backend is required";
            return vec![FieldError::invalid(place, &json!(""), why)];
        }
        (false, true) => return validate_resource(resource, place.field("resource")),
        (true, false) => {}
    }
    let mut errors = Vec::new();
    let at = place.field("service");
    let port = at.field("port");
    let number = service["port"]["number"].as_i64().unwrap_or(0);
    let name = service["port"]["name"].as_str().unwrap_or_default();
    if name.is_empty() && number == 0 {
        errors.push(FieldError::required(port, "port name or number is required"));
    } else if !name.is_empty() && number != 0 {
        errors.push(FieldError::invalid(
            port,
            &json!(""),
            "cannot set both port name & port number",
        ));
    }
    if let Some(name) = service["name"].as_str().filter(|name| !name.is_empty()) {
        let wrong = names::dns_label(name);
        let error = |why: &String| FieldError::invalid(at.field("name"), &json!(name), why);
        errors.extend(wrong.iter().map(error));
    }
    errors
}

/// Returns the errors of a reference to an object. Other rules require the kind and the name.
fn validate_resource(resource: &Value, place: Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if let Some(group) = resource["apiGroup"].as_str() {
        errors.extend(Syntax::DnsSubdomain.errors(group, place.field("apiGroup")));
    }
    for field in ["kind", "name"] {
        let text = resource[field].as_str().unwrap_or_default();
        errors.extend(Syntax::PathSegment.errors(text, place.field(field)));
    }
    errors
}

fn validate_policy(policy: &Value) -> Vec<FieldError> {
    let root = Path::Root;
    let spec = root.field("spec");
    let mut errors = Vec::new();
    let types = &policy["spec"]["policyTypes"];
    if types.as_array().is_some_and(|types| types.len() > 2) {
        let why = "may not specify more than two policyTypes";
        errors.push(FieldError::invalid(spec.field("policyTypes"), types, why));
    }
    for (direction, peers) in [("ingress", "from"), ("egress", "to")] {
        let list = spec.field(direction);
        for (index, rule) in policy["spec"][direction].as_array().into_iter().flatten().enumerate()
        {
            let at = list.index(index);
            let place = at.field(peers);
            for (index, peer) in rule[peers].as_array().into_iter().flatten().enumerate() {
                errors.extend(validate_peer(peer, place.index(index)));
            }
        }
    }
    errors
}

fn validate_peer(peer: &Value, place: Path<'_>) -> Vec<FieldError> {
    let selects = peer["podSelector"].is_object() || peer["namespaceSelector"].is_object();
    let block = &peer["ipBlock"];
    if block.is_object() && selects {
        let why = "may not specify both ipBlock and another peer";
        return vec![FieldError::forbidden(place, why)];
    }
    if !block.is_object() && !selects {
        return vec![FieldError::required(place, "must specify a peer")];
    }
    let range = block["cidr"].as_str().unwrap_or_default();
    let at = place.field("ipBlock");
    if block.is_object() && !range.is_empty() && range.parse::<IpNet>().is_err() {
        let why = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";
        return vec![FieldError::invalid(at.field("cidr"), &json!(range), why)];
    }
    Vec::new()
}

fn validate_ranges(range: &Value) -> Vec<FieldError> {
    let ranges = range["spec"]["cidrs"].as_array().map(Vec::as_slice).unwrap_or_default();
    if ranges.is_empty() {
        return vec![FieldError::required("spec.cidrs", "at least one CIDR required")];
    }
    let wrong = ranges
        .iter()
        .enumerate()
        .filter(|(_, range)| range.as_str().is_none_or(|range| range.parse::<IpNet>().is_err()));
    let why = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";
    let invalid = |(at, range)| FieldError::invalid(format!("spec.cidrs[{at}]"), range, why);
    let mut errors: Vec<FieldError> = wrong.map(invalid).collect();
    let of_version_6 =
        ranges.iter().filter(|range| range.as_str().is_some_and(|it| it.contains(':'))).count();
    if of_version_6 > 1 || ranges.len() - of_version_6 > 1 {
        let why = "may specify no more than one IP for each IP family";
        errors.push(FieldError::invalid("spec.cidrs", &range["spec"]["cidrs"], why));
    }
    errors
}

fn parameters(class: &Value) -> Value {
    let parameters = &class["spec"]["parameters"];
    let text = |field: &str| parameters[field].as_str().unwrap_or_default();
    if parameters.is_null() {
        return json!("<none>");
    }
    let group = Some(text("apiGroup")).filter(|group| !group.is_empty());
    let kind =
        group.map_or_else(|| text("kind").to_owned(), |group| format!("{}.{group}", text("kind")));
    json!(format!("{kind}/{}", text("name")))
}

fn hosts(ingress: &Value) -> Value {
    let rules = ingress["spec"]["rules"].as_array().into_iter().flatten();
    let hosts: Vec<&str> = rules.filter_map(|rule| rule["host"].as_str()).collect();
    json!(match hosts.len() {
        0 => "*".to_owned(),
        1..=3 => hosts.join(","),
        more => format!("{} + {} more...", hosts[..3].join(","), more - 3),
    })
}

fn addresses(ingress: &Value) -> Value {
    let balancers = ingress["status"]["loadBalancer"]["ingress"].as_array().into_iter().flatten();
    let texts = balancers.filter_map(|one| one["ip"].as_str().or(one["hostname"].as_str()));
    json!(texts.collect::<Vec<_>>().join(","))
}

fn parent(address: &Value) -> Value {
    let reference = &address["spec"]["parentRef"];
    let text = |field: &str| reference[field].as_str().unwrap_or_default().to_lowercase();
    let parts = [text("group"), text("resource"), text("namespace"), text("name")];
    let parts: Vec<_> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    json!(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn mistakes(ty: &BuiltinType, mut object: Value) -> Vec<String> {
        ty.schema().prune(&mut object);
        ty.schema().apply_defaults(&mut object);
        (ty.hooks.default)(&mut object);
        let mut errors = ty.schema().validate(&object, None);
        errors.extend((ty.hooks.validate)(&object));
        errors.into_iter().map(|error| error.field).collect()
    }

    fn path(path: &str, kind: &str) -> Value {
        let service = json!({"name": "s", "port": {"number": 80}});
        let path = json!({"path": path, "pathType": kind, "backend": {"service": service}});
        json!({"rules": [{"host": "a.b", "http": {"paths": [path]}}]})
    }

    #[rstest]
    #[case(path("/", "Prefix"), &[])]
    #[case(path("", "ImplementationSpecific"), &[])]
    #[case(path("a", "Exact"), &["spec.rules[0].http.paths[0].path"])]
    #[case(path("/a//b", "Prefix"), &["spec.rules[0].http.paths[0].path"])]
    #[case(path("/", "Odd"), &["spec.rules[0].http.paths[0].pathType"])]
    #[case(json!({}), &["spec"])]
    #[case(json!({"defaultBackend": {}}), &["spec.defaultBackend"])]
    #[case(
        json!({"defaultBackend": {"service": {"name": "s"}}}),
        &["spec.defaultBackend.service.port"]
    )]
    #[case(json!({"rules": [{"host": "1.2.3.4"}]}), &["spec.rules[0].host"])]
    #[case(json!({"rules": [{"host": "*.b"}]}), &[])]
    fn ingresses_are_validated(#[case] spec: Value, #[case] expected: &[&str]) {
        assert_eq!(mistakes(&ingresses(), json!({ "spec": spec })), expected);
    }

    #[rstest]
    #[case(json!([{"ipBlock": {"cidr": "10.0.0.0/8"}}]), &[])]
    #[case(json!([{"podSelector": {}, "namespaceSelector": {}}]), &[])]
    #[case(json!([{"ipBlock": {"cidr": "10.0.0.0"}}]), &["spec.ingress[0].from[0].ipBlock.cidr"])]
    #[case(json!([{}]), &["spec.ingress[0].from[0]"])]
    #[case(
        json!([{"podSelector": {}, "ipBlock": {"cidr": "10.0.0.0/8"}}]),
        &["spec.ingress[0].from[0]"]
    )]
    fn policies_are_validated(#[case] from: Value, #[case] expected: &[&str]) {
        let policy = json!({"spec": {"podSelector": {}, "ingress": [{"from": from}]}});
        assert_eq!(mistakes(&network_policies(), policy), expected);
    }

    #[test]
    fn ranges_and_addresses_are_valid() {
        let ranges = |list: Value| mistakes(&service_cidrs(), json!({"spec": {"cidrs": list}}));
        assert_eq!(ranges(json!(["10.0.0.0/24"])), [""; 0]);
        assert_eq!(ranges(json!(["ten"])), ["spec.cidrs[0]"]);
        assert_eq!(ranges(json!([])), ["spec.cidrs"]);
        let reference = json!({"resource": "services", "name": "s", "namespace": "n"});
        let address = json!({"metadata": {"name": "s"}, "spec": {"parentRef": reference}});
        assert_eq!(parent(&address), "services/n/s");
        assert_eq!(mistakes(&ip_addresses(), address), ["metadata.name"]);
    }
}
