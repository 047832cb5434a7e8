//! The group `networking.k8s.io/v1`: ingresses, their classes, network policies, address ranges.

mod policies;

use std::net::IpAddr;

use ipnet::IpNet;
use serde_json::{Value, json};

use super::checks::statuses;
use super::data::{hooks, resource};
use super::{BuiltinType, Hooks, NameRule, immutable, restore, warnings};
use kubeproof_apimachinery::object::validation::addresses::canonical_cidr;
use kubeproof_apimachinery::object::validation::names;
use kubeproof_apimachinery::object::validation::syntax::Syntax;
use kubeproof_apimachinery::schema::{FieldError, Path};
use kubeproof_apimachinery::table::column::{Cell, age, column};

const GROUP: &str = "networking.k8s.io";

pub(super) fn types() -> Vec<BuiltinType> {
    vec![
        ingress_classes(),
        ingresses(),
        ip_addresses(),
        policies::network_policies(),
        service_cidrs(),
    ]
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
        name_rule: NameRule::Ip,
        columns: vec![column("ParentRef", "string", Cell::Computed(parent))],
        hooks: Hooks {
            validate_update: |new, old| immutable(new, old, &["spec.parentRef"]),
            is_new_generation: |_, _| false,
            ..hooks(false)
        },
        ..resource(GROUP, "v1", "ipaddresses")
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

fn validate_ranges(range: &Value) -> Vec<FieldError> {
    let ranges = range["spec"]["cidrs"].as_array().map(Vec::as_slice).unwrap_or_default();
    if ranges.is_empty() {
        return vec![FieldError::required("spec.cidrs", "at least one CIDR required")];
    }
    let place = Path::Root;
    let place = place.field("spec.cidrs");
    if ranges.len() > 2 {
        let shown = json!({"CIDRs": ranges});
        return vec![FieldError::invalid(place, &shown, "may only hold up to 2 values")];
    }
    let mut errors = Vec::new();
    for (index, range) in ranges.iter().enumerate() {
        let why = canonical_cidr(range.as_str().unwrap_or_default());
        errors.extend(why.map(|why| FieldError::invalid(place.index(index), range, &why)));
    }
    let families = ranges.iter().map(|range| {
        let range = range.as_str().and_then(|range| range.parse::<IpNet>().ok());
        range.map(|range| matches!(range, IpNet::V4(_)))
    });
    if let [Some(first), Some(second)] = *families.collect::<Vec<_>>()
        && first == second
    {
        let why = "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and \
                   2001:db8::/64";
        errors.push(FieldError::invalid(place, &range["spec"]["cidrs"], why));
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

    pub(super) fn mistakes(ty: &BuiltinType, mut object: Value) -> Vec<String> {
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

    #[test]
    fn ranges_and_addresses_are_valid() {
        let ranges = |list: Value| mistakes(&service_cidrs(), json!({"spec": {"cidrs": list}}));
        assert_eq!(ranges(json!(["10.0.0.0/24"])), [""; 0]);
        assert_eq!(ranges(json!(["ten"])), ["spec.cidrs[0]"]);
        assert_eq!(ranges(json!([])), ["spec.cidrs"]);
        assert_eq!(ranges(json!(["10.0.0.0/24", "::/64"])), [""; 0]);
        assert_eq!(ranges(json!(["10.0.0.0/24", "10.0.1.0/24"])), ["spec.cidrs"]);
        assert_eq!(ranges(json!(["A::/64"])), ["spec.cidrs[0]"]);
        assert_eq!(ranges(json!(["a", "b", "c"])), ["spec.cidrs"]);
        let reference = json!({"resource": "services", "name": "s", "namespace": "n"});
        let address = json!({"metadata": {"name": "s"}, "spec": {"parentRef": reference}});
        assert_eq!(parent(&address), "services/n/s");
    }
}
