//! Requests and limits of resources.

use std::cmp::Ordering;
use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::{Checks, items, text};
use kubeproof_apimachinery::object::validation::names::qualified_name;
use kubeproof_apimachinery::object::validation::syntax::Syntax;
use kubeproof_apimachinery::schema::{FieldError, Path, quantity};

pub(super) const CHECKS: Checks = &[
    ("io.k8s.api.core.v1.Container", container),
    ("io.k8s.api.core.v1.EphemeralContainerCommon", container),
    ("io.k8s.api.core.v1.PodResourceClaim", claim),
    ("io.k8s.api.core.v1.ResourceRequirements", claims),
];

/// The resources of a cluster that are counted in whole numbers.
const COUNTED: [&str; 9] = [
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "services.nodeports",
    "services.loadbalancers",
];
/// The resources of a cluster that are amounts.
const MEASURED: [&str; 11] = [
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
    "storage",
    "requests.storage",
];
const HUGE: &str = "hugepages-";

fn container(container: &Value, path: Path<'_>) -> Vec<FieldError> {
    requirements(&container["resources"], container_resource, path.field("resources"))
}

/// Returns the errors of requests and limits. `check_name` validates the names of the resources.
pub(in crate::registry::builtin) fn requirements(
    resources: &Value,
    check_name: fn(&str, Path<'_>) -> Vec<FieldError>,
    path: Path<'_>,
) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for kind in ["limits", "requests"] {
        let place = path.field(kind);
        for (name, amount) in resources[kind].as_object().into_iter().flatten() {
            let amount = amount.as_str().unwrap_or_default();
            errors.extend(check_name(name, place.key(name)));
            errors.extend(quantity_of(name, amount, place.key(name)));
            errors.extend(pages(name, amount, place.key(name)));
            if kind == "requests" {
                errors.extend(request(resources, name, amount, path));
            }
        }
    }
    let names = |kind: &str| resources[kind].as_object().into_iter().flat_map(Map::keys);
    let mut all = names("limits").chain(names("requests"));
    let is_huge = all.clone().any(|name| name.starts_with(HUGE));
    if is_huge && !all.any(|name| matches!(name.as_str(), "cpu" | "memory")) {
        errors.push(FieldError::forbidden(path, "HugePages require cpu or memory"));
    }
    errors
}

fn request(resources: &Value, name: &str, amount: &str, path: Path<'_>) -> Vec<FieldError> {
    let can_overcommit = can_overcommit(name);
    let place = path.field("requests");
    let Some(limit) = resources["limits"][name].as_str() else {
        let why = "Limit must be set for non overcommitable resources";
        let error = || FieldError::required(path.field("limits"), why);
        return (!can_overcommit).then(error).into_iter().collect();
    };
    let why = match quantity::compare(amount, limit) {
        Some(Ordering::Greater | Ordering::Less) if !can_overcommit => {
            format!("must be equal to {name} limit of {limit}")
        }
        Some(Ordering::Greater) => format!("must be less than or equal to {name} limit of {limit}"),
        _ => return Vec::new(),
    };
    vec![FieldError::invalid(place, &json!(amount), &why)]
}

/// Reports whether the request of a resource may be less than its limit.
pub(super) fn can_overcommit(name: &str) -> bool {
    is_native(name) && !name.starts_with(HUGE)
}

/// Returns the errors in the amount of a resource.
pub(in crate::registry::builtin) fn quantity_of(
    name: &str,
    amount: &str,
    path: Path<'_>,
) -> Vec<FieldError> {
    let mut errors = not_negative(amount, path);
    if (COUNTED.contains(&name) || is_extended(name)) && !quantity::is_whole(amount) {
        errors.push(FieldError::invalid(path, &json!(amount), "must be an integer"));
    }
    errors
}

/// An amount of huge pages has whole pages.
fn pages(name: &str, amount: &str, path: Path<'_>) -> Option<FieldError> {
    let size = quantity::nanos(name.strip_prefix(HUGE)?);
    let rest = quantity::nanos(amount).zip(size).map(|(all, size)| all.checked_rem(size));
    let why = format!("{amount} is not positive integer multiple of {name}");
    (rest != Some(Some(0))).then(|| FieldError::invalid(path, &json!(amount), &why))
}

/// Returns the error of a negative amount.
pub(in crate::registry::builtin) fn not_negative(amount: &str, path: Path<'_>) -> Vec<FieldError> {
    if !amount.starts_with('-') {
        return Vec::new();
    }
    vec![FieldError::invalid(path, &json!(amount), "must be greater than or equal to 0")]
}

/// Returns the errors in the name of a resource of a container.
pub(in crate::registry::builtin) fn container_resource(
    name: &str,
    path: Path<'_>,
) -> Vec<FieldError> {
    let mut errors = resource_name(name, path);
    let why = if !name.contains('/') {
        let is_standard = matches!(name, "cpu" | "memory" | "ephemeral-storage");
        (!is_standard && !name.starts_with(HUGE))
            .then_some("must be a standard resource for containers")
    } else if !is_native(name) && !is_extended(name) {
        Some("doesn't follow extended resource name standard")
    } else {
        None
    };
    errors.extend(why.map(|why| FieldError::invalid(path, &json!(name), why)));
    errors
}

/// Returns the errors in the name of a resource.
pub(in crate::registry::builtin) fn resource_name(name: &str, path: Path<'_>) -> Vec<FieldError> {
    let errors = Syntax::LabelKey.errors(name, path);
    let is_huge = name.starts_with(HUGE) || name.starts_with("requests.hugepages-");
    let is_standard = COUNTED.contains(&name) || MEASURED.contains(&name) || is_huge;
    if !errors.is_empty() || name.contains('/') || is_standard {
        return errors;
    }
    let why = "must be a standard resource type or fully qualified";
    vec![FieldError::invalid(path, &json!(name), why)]
}

/// Returns the errors in the name of a resource of a quota.
pub(in crate::registry::builtin) fn quota_resource(name: &str, path: Path<'_>) -> Vec<FieldError> {
    let mut errors = resource_name(name, path);
    let is_huge = name.starts_with(HUGE) || name.starts_with("requests.hugepages-");
    let is_amount = MEASURED.contains(&name) && name != "storage";
    let is_standard = COUNTED.contains(&name) || is_amount || is_huge;
    if !name.contains('/') && !is_standard {
        let why = "must be a standard resource for quota";
        errors.push(FieldError::invalid(path, &json!(name), why));
    }
    errors
}

/// Resources of Kubernetes have no domain, or one below `kubernetes.io`.
fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

pub(super) fn is_extended(name: &str) -> bool {
    !is_native(name)
        && !name.starts_with("requests.")
        && qualified_name(&format!("requests.{name}")).is_empty()
}

fn claim(claim: &Value, path: Path<'_>) -> Vec<FieldError> {
    let has = |field: &str| claim.get(field).is_some();
    let why = match (has("resourceClaimName"), has("resourceClaimTemplateName")) {
        (true, true) => {
            "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
        }
        (false, false) => "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`",
        _ => return Vec::new(),
    };
    vec![FieldError::invalid(path, claim, why)]
}

fn claims(resources: &Value, path: Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut known = HashSet::new();
    let list = path.field("claims");
    for (index, claim) in items(resources, "claims").iter().enumerate() {
        let place = list.index(index);
        let (name, request) = (text(claim, "name"), text(claim, "request"));
        let whole = (name, "");
        let overlaps = known.contains(&whole)
            || known.contains(&(name, request))
            || request.is_empty() && known.iter().any(|(other, _)| *other == name);
        if !name.is_empty() && overlaps {
            errors.push(FieldError::duplicate(place, &json!(name)));
        }
        known.insert((name, request));
    }
    errors
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::super::tests::mistakes;
    use super::*;

    #[rstest]
    #[case(json!({"limits": {"cpu": "1"}, "requests": {"cpu": "2"}}), &["x.resources.requests"])]
    #[case(json!({"limits": {"cpu": "-1"}}), &["x.resources.limits[cpu]"])]
    #[case(json!({"requests": {"storage": "1"}}), &["x.resources.requests[storage]"])]
    #[case(json!({"requests": {"a.b/c": "1"}}), &["x.resources.limits"])]
    #[case(json!({"limits": {"a.b/c": "500m"}}), &["x.resources.limits[a.b/c]"])]
    #[case(json!({"limits": {"hugepages-2Mi": "2Mi"}}), &["x.resources"])]
    #[case(json!({"limits": {"hugepages-2Mi": "3Mi", "cpu": "1"}}),
           &["x.resources.limits[hugepages-2Mi]"])]
    #[case(json!({"limits": {"a.b/c": "1"}, "requests": {"a.b/c": "1"}}), &[])]
    fn amounts_are_checked(#[case] resources: Value, #[case] expected: &[&str]) {
        assert_eq!(mistakes("Container", &json!({"resources": resources})), expected);
    }

    #[rstest]
    #[case(json!({"resourceClaimName": "a"}), &[])]
    #[case(json!({}), &["x"])]
    #[case(json!({"resourceClaimName": "a", "resourceClaimTemplateName": "b"}), &["x"])]
    fn claims_have_one_source(#[case] claim: Value, #[case] expected: &[&str]) {
        assert_eq!(mistakes("PodResourceClaim", &claim), expected);
    }

    #[test]
    fn claims_do_not_overlap() {
        let claims = json!([{"name": "a"}, {"name": "a", "request": "r"}, {"name": "b"}]);
        let expected = ["x.claims[1]"];
        assert_eq!(mistakes("ResourceRequirements", &json!({"claims": claims})), expected);
    }

    #[rstest]
    #[case("pods", true)]
    #[case("storage", false)]
    #[case("count/pods", true)]
    #[case("odd", false)]
    fn quotas_have_their_own_resources(#[case] name: &str, #[case] is_right: bool) {
        assert_eq!(quota_resource(name, Path::Root).is_empty(), is_right);
    }
}
