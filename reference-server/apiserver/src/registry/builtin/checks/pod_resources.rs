//! The resources of a whole pod, and its overhead.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::resources::{container_resource, requirements, resource_name};
use super::{Checks, has, items, text};
use kubeproof_apimachinery::schema::quantity::Quantity;
use kubeproof_apimachinery::schema::{FieldError, Path};

pub(super) const CHECKS: Checks = &[("io.k8s.api.core.v1.PodSpec", pod)];

/// The resources that a pod can have besides huge pages.
const OF_PODS: [&str; 2] = ["cpu", "memory"];
const HUGE: &str = "hugepages-";

fn pod(spec: &Value, path: Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if has(spec, "overhead") {
        let limits = json!({"limits": spec["overhead"]});
        errors.extend(requirements(&limits, container_resource, path.field("overhead")));
    }
    if !has(spec, "resources") {
        return errors;
    }
    let place = path.field("resources");
    if text(&spec["os"], "name") == "windows" {
        errors.push(FieldError::forbidden(place, "may not be set for a windows pod"));
        return errors;
    }
    let resources = &spec["resources"];
    if !items(resources, "claims").is_empty() {
        let why = "claims may not be set for Resources at pod-level";
        errors.push(FieldError::forbidden(place.field("claims"), why));
    }
    errors.extend(requirements(resources, pod_resource, place));
    errors.extend(sums(spec, place));
    errors.extend(limits(spec, place));
    errors
}

fn pod_resource(name: &str, path: Path<'_>) -> Vec<FieldError> {
    let errors = resource_name(name, path);
    if !errors.is_empty() || OF_PODS.contains(&name) || name.starts_with(HUGE) {
        return errors;
    }
    vec![FieldError::not_supported(path, &json!(name), &OF_PODS.map(Value::from))]
}

/// A pod gets at least what its containers get together.
fn sums(spec: &Value, path: Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for kind in ["requests", "limits"] {
        let place = path.field(kind);
        for (name, sum) in aggregate(spec, kind) {
            let is_checked = kind == "requests" || name.starts_with(HUGE);
            let own = spec["resources"][kind][name].as_str();
            let amount = own.filter(|_| is_checked).and_then(Quantity::parse);
            if amount.is_some_and(|amount| sum > amount) {
                let why =
                    format!("must be greater than or equal to aggregate container {kind} of {sum}");
                errors.push(FieldError::invalid(place.key(name), &json!(own), &why));
            }
        }
    }
    errors
}

fn limits(spec: &Value, path: Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let list = path.field("containers");
    for (index, container) in items(spec, "containers").iter().enumerate() {
        let place = list.index(index);
        for (name, limit) in container["resources"]["limits"].as_object().into_iter().flatten() {
            let of_pod = spec["resources"]["limits"][name].as_str().unwrap_or_default();
            let pair = (limit.as_str().and_then(Quantity::parse), Quantity::parse(of_pod));
            if let (Some(own), Some(most)) = pair
                && own > most
            {
                let why = format!("must be less than or equal to pod limits of {of_pod}");
                errors.push(FieldError::invalid(place.key(name).field("limits"), limit, &why));
            }
        }
    }
    errors
}

/// Returns the sum of the resources of a pod. Its init containers run one after the other, except
/// for sidecars.
pub(in crate::registry::builtin) fn aggregate<'s>(
    spec: &'s Value,
    kind: &str,
) -> BTreeMap<&'s str, Quantity> {
    let amounts = |container: &'s Value| {
        let amounts = container["resources"][kind].as_object().into_iter().flatten();
        amounts
            .filter_map(|(name, amount)| Some((name.as_str(), Quantity::parse(amount.as_str()?)?)))
    };
    let mut running: BTreeMap<&str, Quantity> = BTreeMap::new();
    let mut most: BTreeMap<&str, Quantity> = BTreeMap::new();
    let mut sidecars: BTreeMap<&str, Quantity> = BTreeMap::new();
    let raise = |into: &mut BTreeMap<&'s str, Quantity>, name: &'s str, amount: Quantity| {
        if into.get(name).is_none_or(|before| amount > *before) {
            into.insert(name, amount);
        }
    };
    let add = |into: &mut BTreeMap<&'s str, Quantity>, name: &'s str, amount: Quantity| {
        let sum = into.get(name).map_or(amount, |before| before.plus(amount));
        into.insert(name, sum);
    };
    for container in items(spec, "containers") {
        amounts(container).for_each(|(name, amount)| add(&mut running, name, amount));
    }
    for container in items(spec, "initContainers") {
        let stays = container["restartPolicy"] == "Always";
        for (name, amount) in amounts(container) {
            let mut need = sidecars.clone();
            add(&mut need, name, amount);
            if stays {
                add(&mut running, name, amount);
                add(&mut sidecars, name, amount);
            }
            raise(&mut most, name, need[name]);
        }
    }
    for (name, amount) in most {
        raise(&mut running, name, amount);
    }
    running
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn mistakes(spec: &Value) -> Vec<String> {
        pod(spec, Path::Root.field("x")).into_iter().map(|error| error.field).collect()
    }

    #[rstest]
    #[case(json!({"overhead": {"cpu": "1"}}), &[])]
    #[case(
        json!({"overhead": {"odd": "1"}}),
        &["x.overhead.limits[odd]", "x.overhead.limits[odd]"]
    )]
    #[case(json!({"resources": {"limits": {"odd": "1"}}}), &["x.resources.limits[odd]"])]
    #[case(
        json!({"resources": {"limits": {"ephemeral-storage": "1"}}}),
        &["x.resources.limits[ephemeral-storage]"]
    )]
    #[case(json!({"resources": {"claims": [{"name": "a"}]}}), &["x.resources.claims"])]
    #[case(json!({"os": {"name": "windows"}, "resources": {}}), &["x.resources"])]
    #[case(json!({"resources": {"requests": {"cpu": "299m"}}}), &["x.resources.requests[cpu]"])]
    #[case(json!({"resources": {"requests": {"cpu": "300m"}}}), &[])]
    #[case(
        json!({"resources": {"limits": {"cpu": "400m"}}}),
        &["x.resources.containers[1][cpu].limits"]
    )]
    fn pods_have_resources(#[case] mut spec: Value, #[case] expected: &[&str]) {
        let resources = json!({"requests": {"cpu": "150m"}, "limits": {"cpu": "1"}});
        spec["containers"] =
            json!([{"resources": {"requests": {"cpu": "150m"}}}, {"resources": resources}]);
        assert_eq!(mistakes(&spec), expected);
    }

    #[test]
    fn containers_that_initialize_run_one_after_the_other() {
        let container = |cpu: &str| json!({"resources": {"requests": {"cpu": cpu}}});
        let mut sidecar = container("1");
        sidecar["restartPolicy"] = json!("Always");
        let spec = json!({
            "initContainers": [container("5"), sidecar, container("6")],
            "containers": [container("2"), container("3")],
        });
        assert_eq!(aggregate(&spec, "requests")["cpu"], Quantity::whole(7));
    }
}
