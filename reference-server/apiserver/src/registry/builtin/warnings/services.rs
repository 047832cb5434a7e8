//! Warnings about services and ingresses, and about the spelling of addresses.

use serde_json::Value;

use super::{list, text};
use kubeproof_apimachinery::object::validation::addresses::{cidr_warning, ip_warning};

/// Returns the warnings about an ingress.
pub(in crate::registry::builtin) fn ingress(ingress: &Value, old: Option<&Value>) -> Vec<String> {
    let class = "kubernetes.io/ingress.class";
    let is_old = old.is_none()
        && ingress["metadata"]["annotations"].get(class).is_some()
        && ingress["spec"]["ingressClassName"].is_null();
    let warning = || {
        format!("annotation \"{class}\" is deprecated, please use 'spec.ingressClassName' instead")
    };
    is_old.then(warning).into_iter().collect()
}

/// Returns the warnings about a service.
pub(in crate::registry::builtin) fn service(service: &Value, _: Option<&Value>) -> Vec<String> {
    let spec = &service["spec"];
    let is_external_name = spec["type"] == "ExternalName";
    let is_headless = spec["type"] == "ClusterIP" && spec["clusterIP"] == "None";
    let has_addresses = !list(&spec["externalIPs"]).is_empty();
    let hints =
        service["metadata"]["annotations"].get("service.kubernetes.io/topology-aware-hints");
    let mut warnings = Vec::new();
    let mut warn = |applies: bool, text: &str| warnings.extend(applies.then(|| text.to_owned()));
    warn(
        hints.is_some(),
        "annotation service.kubernetes.io/topology-aware-hints is deprecated, please use \
         service.kubernetes.io/topology-mode instead",
    );
    warn(
        is_headless && !text(spec, "loadBalancerIP").is_empty(),
        "spec.loadBalancerIP is ignored for headless services",
    );
    warn(is_headless && has_addresses, "spec.externalIPs is ignored for headless services");
    warn(
        is_headless && spec["sessionAffinity"] != "None",
        "spec.SessionAffinity is ignored for headless services",
    );
    warnings.extend(addresses(&spec["clusterIPs"], "spec.clusterIPs", ""));
    warnings.extend(addresses(&spec["externalIPs"], "spec.externalIPs", ""));
    warnings.extend(external_addresses(spec, has_addresses && !is_headless && !is_external_name));
    let mut warn = |applies: bool, text: &str| warnings.extend(applies.then(|| text.to_owned()));
    warn(
        has_addresses && is_external_name,
        "spec.externalIPs is ignored when spec.type is \"ExternalName\"",
    );
    warn(
        !is_external_name && !text(spec, "externalName").is_empty(),
        "spec.externalName is ignored when spec.type is not \"ExternalName\"",
    );
    warn(
        spec["trafficDistribution"] == "PreferClose",
        "spec.trafficDistribution: \"PreferClose\" is deprecated; use \"PreferSameZone\"",
    );
    warnings
}

/// Returns the warnings about the addresses outside the cluster.
fn external_addresses(spec: &Value, is_deprecated: bool) -> Vec<String> {
    let mut warnings = Vec::new();
    if is_deprecated {
        warnings.push(
            "spec.externalIPs is deprecated and may no longer be implemented in some clusters"
                .to_owned(),
        );
    }
    warnings.extend(ip_warning(text(spec, "loadBalancerIP"), "spec.loadBalancerIP"));
    let ranges = list(&spec["loadBalancerSourceRanges"]).iter().enumerate();
    for (index, range) in ranges {
        let range = range.as_str().unwrap_or_default();
        warnings.extend(cidr_warning(range, &format!("spec.loadBalancerSourceRanges[{index}]")));
    }
    warnings
}

/// Returns the warnings about the addresses of endpoints. The controller writes usual ones.
pub(in crate::registry::builtin) fn endpoints(endpoints: &Value, _: Option<&Value>) -> Vec<String> {
    let manager = &endpoints["metadata"]["labels"]["endpoints.kubernetes.io/managed-by"];
    if *manager == "endpoint-controller" {
        return Vec::new();
    }
    let mut warnings = Vec::new();
    for (index, subset) in list(&endpoints["subsets"]).iter().enumerate() {
        for field in ["addresses", "notReadyAddresses"] {
            let place = format!("subsets[{index}].{field}");
            warnings.extend(addresses(&subset[field], &place, ".ip"));
        }
    }
    warnings
}

/// Returns the warnings about the addresses of a load balancer.
pub(in crate::registry::builtin) fn balancer(object: &Value) -> Vec<String> {
    let list = list(&object["status"]["loadBalancer"]["ingress"]).iter().enumerate();
    let warning = |(index, entry): (usize, &Value)| {
        ip_warning(text(entry, "ip"), &format!("status.loadBalancer.ingress[{index}]"))
    };
    list.filter_map(warning).collect()
}

/// Returns the warnings about the addresses of a pod and its host.
pub(in crate::registry::builtin) fn pod_addresses(pod: &Value) -> Vec<String> {
    let status = &pod["status"];
    let mut warnings = addresses(&status["podIPs"], "status.podIPs", ".ip");
    warnings.extend(addresses(&status["hostIPs"], "status.hostIPs", ".ip"));
    warnings
}

fn addresses(values: &Value, place: &str, field: &str) -> Vec<String> {
    let values = list(values).iter().enumerate();
    let warning = |(index, value): (usize, &Value)| {
        let address = value.as_str().unwrap_or_else(|| text(value, "ip"));
        ip_warning(address, &format!("{place}[{index}]{field}"))
    };
    values.filter_map(warning).collect()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case(json!({"type": "ClusterIP", "sessionAffinity": "None"}), &[])]
    #[case(
        json!({"type": "ClusterIP", "externalIPs": ["1.2.3.4"]}),
        &["spec.externalIPs is deprecated and may no longer be implemented in some clusters"]
    )]
    #[case(
        json!({"type": "ClusterIP", "externalIPs": ["::A"]}),
        &["spec.externalIPs[0]: IPv6 address \"::A\" should be in RFC 5952 canonical format \
           (\"::a\")",
          "spec.externalIPs is deprecated and may no longer be implemented in some clusters"]
    )]
    #[case(
        json!({"type": "ClusterIP", "clusterIP": "None", "externalIPs": ["1.2.3.4"],
               "sessionAffinity": "ClientIP"}),
        &["spec.externalIPs is ignored for headless services",
          "spec.SessionAffinity is ignored for headless services"]
    )]
    #[case(
        json!({"type": "ExternalName", "externalIPs": ["1.2.3.4"]}),
        &["spec.externalIPs is ignored when spec.type is \"ExternalName\""]
    )]
    fn services_ignore_fields(#[case] spec: Value, #[case] expected: &[&str]) {
        assert_eq!(service(&json!({ "spec": spec }), None), expected);
    }

    #[test]
    fn addresses_have_a_place() {
        let place = |warnings: Vec<String>| warnings[0].split(": ").next().map(str::to_owned);
        let subset = json!({"notReadyAddresses": [{"ip": "A::"}]});
        let expected = "subsets[0].notReadyAddresses[0].ip";
        let warnings = endpoints(&json!({"subsets": [subset]}), None);
        assert_eq!(place(warnings).as_deref(), Some(expected));
        let status = json!({"loadBalancer": {"ingress": [{"ip": "A::"}]}});
        let warnings = balancer(&json!({ "status": status }));
        assert_eq!(place(warnings).as_deref(), Some("status.loadBalancer.ingress[0]"));
        let warnings = pod_addresses(&json!({"status": {"hostIPs": [{"ip": "A::"}]}}));
        assert_eq!(place(warnings).as_deref(), Some("status.hostIPs[0].ip"));
    }

    #[test]
    fn only_a_new_ingress_has_a_warning() {
        let annotations = json!({"kubernetes.io/ingress.class": "c"});
        let object = json!({"metadata": {"annotations": annotations}});
        assert_eq!(ingress(&object, None).len(), 1);
        assert!(ingress(&object, Some(&object)).is_empty());
    }
}
