//! The fields of a service that only a load balancer has.

use serde_json::Value;

use kubeproof_apimachinery::object::validation::syntax::Syntax;
use kubeproof_apimachinery::schema::{FieldError, Path};

const ANNOTATION: &str = "service.beta.kubernetes.io/load-balancer-source-ranges";
const ONLY: &str = "may only be used when `type` is 'LoadBalancer'";

/// Returns the errors in the fields of a load balancer.
pub(super) fn validate(service: &Value) -> Vec<FieldError> {
    let spec = &service["spec"];
    let is_balancer = spec["type"] == "LoadBalancer";
    let mut errors = sources(service, is_balancer);
    let path = Path::Root.field("spec");
    for field in ["allocateLoadBalancerNodePorts", "loadBalancerClass"] {
        if !is_balancer && !spec[field].is_null() {
            errors.push(FieldError::forbidden(path.field(field), ONLY));
        }
    }
    errors
}

/// Returns the errors in the addresses that may use a load balancer. They may have spaces around
/// them. The field replaced an annotation.
fn sources(service: &Value, is_balancer: bool) -> Vec<FieldError> {
    let ranges = service["spec"]["loadBalancerSourceRanges"].as_array();
    let mut errors = Vec::new();
    if let Some(ranges) = ranges.filter(|ranges| !ranges.is_empty()) {
        let path = Path::Root.field("spec");
        let path = path.field("LoadBalancerSourceRanges");
        errors.extend((!is_balancer).then(|| FieldError::forbidden(path, ONLY)));
        for (index, range) in ranges.iter().filter_map(Value::as_str).enumerate() {
            errors.extend(Syntax::Cidr.errors(range.trim(), path.index(index)));
        }
    } else if let Some(ranges) = service["metadata"]["annotations"][ANNOTATION].as_str() {
        let path = Path::Root.field("metadata");
        let path = path.field("annotations");
        let path = path.key(ANNOTATION);
        errors.extend((!is_balancer).then(|| FieldError::forbidden(path, ONLY)));
        let ranges = ranges.split(',').map(str::trim);
        let is_absent = |range: &str| range.is_empty() && ranges.clone().count() == 1;
        let given = ranges.clone().filter(|range| !is_absent(range));
        errors.extend(given.flat_map(|range| Syntax::Cidr.errors(range, path)));
    }
    errors
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case(json!({"type": "LoadBalancer", "loadBalancerSourceRanges": [" 10.0.0.0/8 "]}), &[])]
    #[case(
        json!({"type": "ClusterIP", "loadBalancerSourceRanges": ["10.0.0.1/8"],
               "loadBalancerClass": "a"}),
        &["spec.LoadBalancerSourceRanges", "spec.LoadBalancerSourceRanges[0]",
          "spec.loadBalancerClass"]
    )]
    #[case(json!({"type": "ClusterIP", "loadBalancerSourceRanges": []}), &[])]
    fn only_load_balancers_have_these_fields(#[case] spec: Value, #[case] expected: &[&str]) {
        let errors = validate(&json!({ "spec": spec }));
        assert_eq!(errors.iter().map(|error| &*error.field).collect::<Vec<_>>(), expected);
    }

    #[rstest]
    #[case("", 0)]
    #[case(" 10.0.0.0/8, x", 1)]
    #[case("10.0.0.0/8,", 1)]
    fn an_annotation_has_ranges(#[case] ranges: &str, #[case] expected: usize) {
        let annotations = json!({ANNOTATION: ranges});
        let service = json!({
            "metadata": {"annotations": annotations}, "spec": {"type": "LoadBalancer"},
        });
        assert_eq!(validate(&service).len(), expected);
    }
}
