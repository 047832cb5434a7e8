//! The families of addresses of services, and the traffic that they accept.
//!
//! The cluster has addresses of IP version 4 only.

use std::collections::HashSet;
use std::net::IpAddr;

use serde_json::{Value, json};

use kubeproof_apimachinery::object::validation::syntax::Syntax;
use kubeproof_apimachinery::schema::{FieldError, Path};

const FAMILY: &str = "IPv4";
const OTHER_FAMILY: &str = "IPv6";
const SINGLE: &str = "SingleStack";

/// Fills in the fields that depend on the type of the service.
pub(super) fn complete(spec: &mut Value) {
    let kind = spec["type"].as_str().unwrap_or_default().to_owned();
    let is_open = is_external(spec);
    let mut or = |field: &str, value: Value| {
        if spec.get(field).is_none() {
            spec[field] = value;
        }
    };
    if kind != "ExternalName" {
        or("internalTrafficPolicy", json!("Cluster"));
    }
    if is_open {
        or("externalTrafficPolicy", json!("Cluster"));
    }
    if kind == "LoadBalancer" {
        or("allocateLoadBalancerNodePorts", json!(true));
    }
}

/// Fills in the families of a service. An update that omits the policy keeps that of `old`.
pub(super) fn complete_families(spec: &mut Value, old: &Value) {
    if spec["type"] == "ExternalName" || !spec.is_object() {
        return;
    }
    let is_dual = is_headless(spec) && !has_items(spec, "selector");
    if spec.get("ipFamilyPolicy").is_none() {
        let policy = if is_dual { "RequireDualStack" } else { SINGLE };
        let kept = old.get("ipFamilyPolicy").cloned();
        spec["ipFamilyPolicy"] = kept.unwrap_or_else(|| json!(policy));
    }
    let is_dual = is_dual && spec["ipFamilyPolicy"] != SINGLE;
    if spec.get("ipFamilies").is_none() {
        spec["ipFamilies"] = if is_dual { json!([FAMILY, OTHER_FAMILY]) } else { json!([FAMILY]) };
    }
}

/// Removes the policy for external traffic from a service that stops to accept it, unless the
/// update changes the policy.
pub(super) fn drop_external_policy(new: &mut Value, old: &Value) {
    let policy = "externalTrafficPolicy";
    if is_external(old) && !is_external(new) && new.get(policy) == old.get(policy) {
        new.as_object_mut().and_then(|spec| spec.remove(policy));
    }
}

/// Returns whether a service needs a node port where a load balancer asks for its health.
pub(super) fn needs_health_port(service: &Value) -> bool {
    let spec = &service["spec"];
    spec["type"] == "LoadBalancer" && spec["externalTrafficPolicy"] == "Local"
}

/// Returns the errors in the addresses and their families.
pub(super) fn validate(service: &Value) -> Vec<FieldError> {
    let spec = &service["spec"];
    let root = Path::Root;
    let path = root.field("spec");
    let mut errors = validate_traffic(service, path);
    errors.extend(external_addresses(spec));
    if spec["type"] == "ExternalName" {
        let fields = ["clusterIPs", "ipFamilies", "ipFamilyPolicy"];
        let why = "may not be set for ExternalName services";
        let given = fields.into_iter().filter(|field| !spec[field].is_null());
        let given = given.filter(|field| spec[field] != json!([""]));
        errors.extend(given.map(|field| FieldError::forbidden(path.field(field), why)));
        return errors;
    }
    errors.extend(validate_addresses(spec, path.field("clusterIPs")));
    if errors.is_empty() {
        errors.extend(validate_families(spec, path));
    }
    errors
}

fn validate_addresses(spec: &Value, path: Path<'_>) -> Vec<FieldError> {
    let first = spec["clusterIP"].as_str().unwrap_or_default();
    let all: Vec<&str> = texts(spec, "clusterIPs").collect();
    let invalid = |why: &str| FieldError::invalid(path, &spec["clusterIPs"], why);
    let mut errors = Vec::new();
    if !first.is_empty() && all.first() != Some(&first) {
        errors.push(invalid("first value must match `clusterIP`"));
    } else if first.is_empty() && !all.is_empty() {
        errors.push(invalid("must be empty when `clusterIP` is not specified"));
    }
    for (index, address) in all.iter().enumerate() {
        if index == 0 && *address == "None" {
            if all.len() > 1 {
                errors.push(invalid("'None' must be the first and only value"));
            }
            continue;
        }
        errors.extend(Syntax::Ip.errors(address, path.index(index)));
    }
    if all.len() > 2 {
        errors.push(invalid("may only hold up to 2 values"));
    }
    let kind = spec["type"].as_str().unwrap_or_default();
    if first == "None" && matches!(kind, "NodePort" | "LoadBalancer") {
        let why = format!("may not be set to 'None' for {kind} services");
        errors.push(FieldError::invalid(path.index(0), &json!("None"), &why));
    }
    let of_version_6 = all.iter().filter(|address| address.contains(':')).count();
    if errors.is_empty() && (of_version_6 > 1 || all.len() - of_version_6 > 1) {
        errors.push(invalid("may specify no more than one IP for each IP family"));
    }
    errors
}

fn validate_families(spec: &Value, path: Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let list = path.field("ipFamilies");
    let mut known = HashSet::new();
    for (index, family) in texts(spec, "ipFamilies").enumerate() {
        if !known.insert(family) {
            errors.push(FieldError::duplicate(list.index(index), &json!(family)));
        }
    }
    // Nothing routes to a headless service without a selector, so it may have all families.
    if !errors.is_empty() || is_headless(spec) && !has_items(spec, "selector") {
        return errors;
    }
    let policy = &spec["ipFamilyPolicy"];
    let place = path.field("ipFamilyPolicy");
    if policy == SINGLE && known.len() > 1 {
        let why = "must be 'RequireDualStack' or 'PreferDualStack' when multiple IP families are \
                   specified";
        errors.push(FieldError::invalid(place, policy, why));
        return errors;
    }
    for (index, family) in texts(spec, "ipFamilies").enumerate() {
        if family == OTHER_FAMILY {
            let why = "not configured on this cluster";
            errors.push(FieldError::invalid(list.index(index), &json!(family), why));
        }
    }
    if policy == "RequireDualStack" {
        let why = "this cluster is not configured for dual-stack services";
        errors.push(FieldError::invalid(place, policy, why));
    }
    errors
}

fn validate_traffic(service: &Value, path: Path<'_>) -> Vec<FieldError> {
    let spec = &service["spec"];
    let mut errors = Vec::new();
    let policy = &spec["externalTrafficPolicy"];
    if !is_external(spec) && !policy.is_null() {
        let why = "may only be set for externally-accessible services";
        errors.push(FieldError::invalid(path.field("externalTrafficPolicy"), policy, why));
    }
    let port = &spec["healthCheckNodePort"];
    let place = path.field("healthCheckNodePort");
    let number = port.as_i64().unwrap_or(0);
    if number == 0 {
        return errors;
    }
    if !needs_health_port(service) {
        let why = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is \
                   'Local'";
        errors.push(FieldError::invalid(place, port, why));
    } else if !(1..=65535).contains(&number) {
        errors.push(FieldError::invalid(place, port, "must be between 1 and 65535, inclusive"));
    }
    errors
}

/// Returns whether clients outside of the cluster can reach a service.
/// Returns the errors of external addresses that reach no other machine.
fn external_addresses(spec: &Value) -> Vec<FieldError> {
    let addresses = spec["externalIPs"].as_array().into_iter().flatten();
    let checked = addresses.enumerate().filter_map(|(index, address)| {
        let why = special_range(address.as_str()?.parse().ok()?)?;
        Some(FieldError::invalid(format!("spec.externalIPs[{index}]"), address, why))
    });
    checked.collect()
}

/// Returns why an address has a special meaning. `None` if it has none.
fn special_range(address: IpAddr) -> Option<&'static str> {
    let (is_link_local, is_link_local_multicast) = match address {
        IpAddr::V4(v4) => (v4.is_link_local(), v4.octets()[..3] == [224, 0, 0]),
        IpAddr::V6(v6) => (v6.is_unicast_link_local(), v6.segments()[0] & 0xff0f == 0xff02),
    };
    if address.is_unspecified() {
        Some(match address {
            IpAddr::V4(_) => "may not be unspecified (0.0.0.0)",
            IpAddr::V6(_) => "may not be unspecified (::)",
        })
    } else if address.is_loopback() {
        Some("may not be in the loopback range (127.0.0.0/8, ::1/128)")
    } else if is_link_local {
        Some("may not be in the link-local range (169.254.0.0/16, fe80::/10)")
    } else if is_link_local_multicast {
        Some("may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)")
    } else {
        None
    }
}

fn is_external(spec: &Value) -> bool {
    match spec["type"].as_str().unwrap_or_default() {
        "NodePort" | "LoadBalancer" => true,
        "ClusterIP" => has_items(spec, "externalIPs"),
        _ => false,
    }
}

fn is_headless(spec: &Value) -> bool {
    spec["clusterIP"] == "None" && spec["type"] != "ExternalName"
}

fn has_items(spec: &Value, field: &str) -> bool {
    match &spec[field] {
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        _ => false,
    }
}

fn texts<'v>(spec: &'v Value, field: &str) -> impl Iterator<Item = &'v str> {
    spec[field].as_array().into_iter().flatten().filter_map(Value::as_str)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn mistakes(mut spec: Value) -> Vec<String> {
        if spec["type"].is_null() {
            spec["type"] = json!("ClusterIP");
        }
        complete(&mut spec);
        complete_families(&mut spec, &Value::Null);
        let errors = validate(&json!({ "spec": spec }));
        errors.into_iter().map(|error| error.field).collect()
    }

    #[rstest]
    #[case(json!({"clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"]}), &[])]
    #[case(json!({"clusterIPs": ["10.0.0.1"]}), &["spec.clusterIPs"])]
    #[case(json!({"clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.2"]}), &["spec.clusterIPs"])]
    #[case(json!({"clusterIP": "x", "clusterIPs": ["x"]}), &["spec.clusterIPs[0]"])]
    #[case(json!({"clusterIP": "None", "clusterIPs": ["None", "None"]}),
           &["spec.clusterIPs", "spec.clusterIPs[1]"])]
    #[case(json!({"clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1", "10.0.0.2"]}),
           &["spec.clusterIPs"])]
    #[case(json!({"clusterIP": "None", "clusterIPs": ["None"], "type": "NodePort"}),
           &["spec.clusterIPs[0]"])]
    #[case(json!({"ipFamilies": ["IPv6"]}), &["spec.ipFamilies[0]"])]
    #[case(json!({"ipFamilies": ["IPv4", "IPv4"]}), &["spec.ipFamilies[1]"])]
    #[case(json!({"ipFamilies": ["IPv4", "IPv6"]}), &["spec.ipFamilyPolicy"])]
    #[case(json!({"ipFamilyPolicy": "RequireDualStack"}), &["spec.ipFamilyPolicy"])]
    #[case(json!({"ipFamilyPolicy": "PreferDualStack"}), &[])]
    #[case(json!({"type": "ExternalName", "ipFamilyPolicy": SINGLE, "clusterIPs": ["x"]}),
           &["spec.clusterIPs", "spec.ipFamilyPolicy"])]
    #[case(json!({"externalTrafficPolicy": "Local"}), &["spec.externalTrafficPolicy"])]
    #[case(json!({"externalTrafficPolicy": "Local", "externalIPs": ["1.2.3.4"]}), &[])]
    #[case(
        json!({"type": "LoadBalancer", "healthCheckNodePort": 1}),
        &["spec.healthCheckNodePort"]
    )]
    #[case(
        json!({
            "type": "LoadBalancer", "externalTrafficPolicy": "Local", "healthCheckNodePort": -1,
        }),
        &["spec.healthCheckNodePort"]
    )]
    fn addresses_and_traffic_are_validated(#[case] spec: Value, #[case] expected: &[&str]) {
        assert_eq!(mistakes(spec), expected);
    }

    #[rstest]
    #[case(json!({"clusterIP": "None"}), json!(["IPv4", "IPv6"]), "RequireDualStack")]
    #[case(json!({"clusterIP": "None", "selector": {"a": "b"}}), json!(["IPv4"]), SINGLE)]
    #[case(json!({}), json!(["IPv4"]), SINGLE)]
    fn a_headless_service_without_selector_has_both_families(
        #[case] mut spec: Value,
        #[case] families: Value,
        #[case] policy: &str,
    ) {
        spec["type"] = json!("ClusterIP");
        complete_families(&mut spec, &Value::Null);
        assert_eq!((&spec["ipFamilies"], &spec["ipFamilyPolicy"]), (&families, &json!(policy)));
    }

    #[test]
    fn an_update_keeps_the_policy_of_families() {
        let mut spec = json!({"type": "ClusterIP"});
        complete_families(&mut spec, &json!({"ipFamilyPolicy": "PreferDualStack"}));
        assert_eq!(spec["ipFamilyPolicy"], "PreferDualStack");
    }

    #[rstest]
    #[case("Cluster", Value::Null)]
    #[case("Local", json!("Local"))]
    fn a_service_without_external_addresses_needs_no_policy(
        #[case] policy: &str,
        #[case] expected: Value,
    ) {
        let old = json!({"type": "ClusterIP", "externalIPs": ["1.2.3.4"],
                         "externalTrafficPolicy": "Cluster"});
        let mut new = json!({"type": "ClusterIP", "externalTrafficPolicy": policy});
        drop_external_policy(&mut new, &old);
        assert_eq!(new["externalTrafficPolicy"], expected);
    }

    #[test]
    fn external_addresses_reach_other_machines() {
        let special = |text: &str| special_range(text.parse().expect("an address"));
        for address in ["0.0.0.0", "127.1.2.3", "169.254.1.1", "224.0.0.9", "::", "::1", "fe80::1"]
        {
            assert!(special(address).is_some(), "{address}");
        }
        for address in ["1.2.3.4", "224.0.1.1", "10.0.0.1", "2001:db8::1"] {
            assert_eq!(special(address), None, "{address}");
        }
        let spec = json!({"externalIPs": ["1.2.3.4", "127.0.0.1"]});
        let fields: Vec<_> = external_addresses(&spec).into_iter().map(|e| e.field).collect();
        assert_eq!(fields, ["spec.externalIPs[1]"]);
    }

    #[test]
    fn external_addresses_accept_external_traffic() {
        let mut spec = json!({"type": "ClusterIP", "externalIPs": ["1.2.3.4"]});
        complete(&mut spec);
        assert_eq!(spec["externalTrafficPolicy"], "Cluster");
    }
}
