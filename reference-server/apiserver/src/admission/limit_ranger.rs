//! Limit ranges: defaults and bounds for the resources of containers, pods and claims.

use kubeproof_apimachinery::object::Object as _;
use kubeproof_apimachinery::schema::quantity::{Quantity, UNIT};
use serde_json::{Map, Value};

use super::resources::{self, ResourceList, Side};
use super::{Attributes, Decision, Operation, Plugin, decided};

/// The annotation that lists the defaults of a pod.
const ANNOTATION: &str = "kubernetes.io/limit-ranger";

/// Completes and checks the resources of pods and claims.
pub(super) struct LimitRanger;

impl Plugin for LimitRanger {
    fn name(&self) -> &'static str {
        "LimitRanger"
    }

    fn handles(&self, request: &Attributes<'_>) -> bool {
        let is_deleting = request.old.is_some_and(Value::is_deleting);
        let is_update = request.operation == Operation::Update;
        let is_write = is_update || request.operation == Operation::Create;
        let is_resize = request.ty.is_core("pods") && request.info.subresource == "resize";
        let is_handled = (request.is_core("pods") && !is_update)
            || (is_resize && is_update)
            || request.is_core("persistentvolumeclaims");
        is_write && is_handled && !is_deleting
    }

    fn mutates(&self) -> bool {
        true
    }

    fn mutate<'a>(&'a self, request: Attributes<'a>, object: &'a mut Value) -> Decision<'a> {
        if request.is_core("pods") {
            for range in ranges(&request) {
                complete_pod(object, &range);
            }
        }
        decided(Ok(()))
    }

    fn validate<'a>(&'a self, request: Attributes<'a>, object: &'a Value) -> Decision<'a> {
        let is_pod = request.ty.is_core("pods");
        let check = if is_pod { check_pod } else { check_claim };
        let why = ranges(&request).iter().find_map(|range| check(object, range));
        decided(why.map_or(Ok(()), |why| Err(request.forbidden(object, &why))))
    }
}

fn ranges(request: &Attributes<'_>) -> Vec<Value> {
    request.context.objects("", "limitranges", Some(&request.info.namespace))
}

/// Sets the requests and limits that a new pod omits, from one limit range.
fn complete_pod(pod: &mut Value, range: &Value) {
    let mut defaults = [(Side::Requests, Map::new()), (Side::Limits, Map::new())];
    for item in items(range).filter(|item| item["type"] == "Container") {
        for (side, amounts) in &mut defaults {
            let field = if *side == Side::Requests { "defaultRequest" } else { "default" };
            amounts.extend(item[field].as_object().cloned().unwrap_or_default());
        }
    }
    let mut set = Vec::new();
    for (list, word) in [("containers", "container"), ("initContainers", "init container")] {
        let containers = pod.pointer_mut(&format!("/spec/{list}")).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten() {
            for (side, amounts) in &defaults {
                set.extend(complete_container(container, *side, amounts, word));
            }
        }
    }
    if !set.is_empty() {
        let text = format!("LimitRanger plugin set: {}", set.join("; "));
        let annotations = pod.metadata_mut().entry("annotations").or_insert_with(Value::default);
        annotations[ANNOTATION] = text.into();
    }
}

/// Sets the amounts that a container omits. Returns their description.
fn complete_container(
    container: &mut Value,
    side: Side,
    defaults: &Map<String, Value>,
    word: &str,
) -> Option<String> {
    let own = &container["resources"][side.field()];
    let mut missing: Vec<&String> =
        defaults.keys().filter(|name| own.get(name.as_str()).is_none()).collect();
    if missing.is_empty() {
        return None;
    }
    missing.sort();
    for name in &missing {
        container["resources"][side.field()][name.as_str()] = defaults[name.as_str()].clone();
    }
    let names: Vec<&str> = missing.into_iter().map(String::as_str).collect();
    let container = container["name"].as_str().unwrap_or_default();
    let what = if side == Side::Requests { "request" } else { "limit" };
    Some(format!("{} {what} for {word} {container}", names.join(", ")))
}

/// Returns why a limit range rejects a pod, if it does.
fn check_pod(pod: &Value, range: &Value) -> Option<String> {
    let mut errors = Vec::new();
    let spec = &pod["spec"];
    for item in items(range) {
        match item["type"].as_str() {
            Some("Container") => {
                for list in ["containers", "initContainers"] {
                    for container in spec[list].as_array().into_iter().flatten() {
                        let amounts = |side| resources::of_container(container, side);
                        let amounts = (amounts(Side::Requests), amounts(Side::Limits));
                        check_bounds(item, &amounts, &mut errors);
                    }
                }
            }
            Some("Pod") => {
                let amounts = |side| resources::of_pod(spec, side);
                check_bounds(item, &(amounts(Side::Requests), amounts(Side::Limits)), &mut errors);
            }
            _ => {}
        }
    }
    aggregated(errors)
}

/// Returns why a limit range rejects a claim of a volume, if it does.
fn check_claim(claim: &Value, range: &Value) -> Option<String> {
    let requests = resources::parse(&claim["spec"]["resources"]["requests"]);
    let mut errors = Vec::new();
    for item in items(range).filter(|item| item["type"] == "PersistentVolumeClaim") {
        for (name, bound) in resources::parse(&item["min"]) {
            let amounts = (requests.get(&name), None);
            let limit = Limit { item, name: &name, bound };
            errors.extend(limit.minimum(amounts));
        }
        for (name, bound) in resources::parse(&item["max"]) {
            let limit = Limit { item, name: &name, bound };
            errors.extend(limit.maximum_of_requests(requests.get(&name)));
        }
    }
    aggregated(errors)
}

fn items(range: &Value) -> impl Iterator<Item = &Value> {
    range["spec"]["limits"].as_array().into_iter().flatten()
}

fn check_bounds(
    item: &Value,
    (requests, limits): &(ResourceList, ResourceList),
    errors: &mut Vec<String>,
) {
    type Check = fn(&Limit<'_>, Amounts<'_>) -> Option<String>;
    let checks: [(&str, Check); 3] = [
        ("min", |limit, amounts| limit.minimum(amounts)),
        ("max", |limit, amounts| limit.maximum(amounts)),
        ("maxLimitRequestRatio", |limit, amounts| limit.ratio(amounts)),
    ];
    for (field, check) in checks {
        for (name, bound) in resources::parse(&item[field]) {
            let amounts = (requests.get(&name), limits.get(&name));
            errors.extend(check(&Limit { item, name: &name, bound }, amounts));
        }
    }
}

/// The request and the limit.
type Amounts<'a> = (Option<&'a Quantity>, Option<&'a Quantity>);

/// One bound of a limit range.
struct Limit<'a> {
    item: &'a Value,
    name: &'a str,
    bound: Quantity,
}

impl Limit<'_> {
    /// Returns `maximum cpu usage per Pod is 1`.
    fn text(&self, bound: &str) -> String {
        let kind = self.item["type"].as_str().unwrap_or_default();
        format!("{bound} {} usage per {kind} is {}", self.name, self.bound)
    }

    fn minimum(&self, (request, limit): Amounts<'_>) -> Option<String> {
        let text = self.text("minimum");
        let Some(request) = request else {
            return Some(format!("{text}.  No request is specified"));
        };
        if *request < self.bound {
            return Some(format!("{text}, but request is {request}"));
        }
        let limit = limit.filter(|limit| **limit < self.bound)?;
        Some(format!("{text}, but limit is {limit}"))
    }

    fn maximum(&self, (request, limit): Amounts<'_>) -> Option<String> {
        let text = self.text("maximum");
        let Some(limit) = limit else {
            return Some(format!("{text}.  No limit is specified"));
        };
        if *limit > self.bound {
            return Some(format!("{text}, but limit is {limit}"));
        }
        let request = request.filter(|request| **request > self.bound)?;
        Some(format!("{text}, but request is {request}"))
    }

    fn maximum_of_requests(&self, request: Option<&Quantity>) -> Option<String> {
        let text = self.text("maximum");
        let Some(request) = request else {
            return Some(format!("{text}.  No request is specified"));
        };
        (*request > self.bound).then(|| format!("{text}, but request is {request}"))
    }

    fn ratio(&self, (request, limit): Amounts<'_>) -> Option<String> {
        let kind = self.item["type"].as_str().unwrap_or_default();
        let text = format!("{} max limit to request ratio per {kind} is {}", self.name, self.bound);
        let known = |amount: Option<&Quantity>| amount.copied().filter(|it| it.nanos() != 0);
        let Some(request) = known(request) else {
            return Some(format!("{text}, but no request is specified or request is 0"));
        };
        let Some(limit) = known(limit) else {
            return Some(format!("{text}, but no limit is specified or limit is 0"));
        };
        let allowed = request.nanos().saturating_mul(self.bound.nanos());
        if limit.nanos().saturating_mul(UNIT) <= allowed {
            return None;
        }
        #[expect(clippy::cast_precision_loss, reason = "the message shows six digits")]
        let ratio = limit.nanos() as f64 / request.nanos() as f64;
        Some(format!("{text}, but provided ratio is {ratio:.6}"))
    }
}

/// Returns the errors in the form of a list if there are several.
fn aggregated(errors: Vec<String>) -> Option<String> {
    let mut known: Vec<String> = Vec::new();
    for error in errors {
        if !known.contains(&error) {
            known.push(error);
        }
    }
    match known.as_slice() {
        [] => None,
        [one] => Some(one.clone()),
        several => Some(format!("[{}]", several.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    fn range(item: &Value) -> Value {
        json!({"spec": {"limits": [item]}})
    }

    fn pod(resources: &Value) -> Value {
        json!({"metadata": {}, "spec": {"containers": [{"name": "c", "resources": resources}]}})
    }

    #[test]
    fn a_pod_gets_the_defaults_that_it_lacks() {
        let item = json!({
            "type": "Container", "default": {"memory": "2Gi", "cpu": "1"},
            "defaultRequest": {"cpu": "500m"},
        });
        let mut pod = pod(&json!({"limits": {"cpu": "2"}}));
        complete_pod(&mut pod, &range(&item));
        let expected =
            json!({"limits": {"cpu": "2", "memory": "2Gi"}, "requests": {"cpu": "500m"}});
        assert_eq!(pod["spec"]["containers"][0]["resources"], expected);
        assert_eq!(
            pod["metadata"]["annotations"][ANNOTATION],
            "LimitRanger plugin set: cpu request for container c; memory limit for container c"
        );
        let complete = pod.clone();
        complete_pod(&mut pod, &range(&item));
        assert_eq!(pod, complete, "nothing is missing");
    }

    #[rstest]
    #[case(
        json!({"type": "Container", "max": {"cpu": "1"}}),
        json!({"limits": {"cpu": "2"}}),
        "maximum cpu usage per Container is 1, but limit is 2"
    )]
    #[case(
        json!({"type": "Pod", "max": {"cpu": "1"}}),
        json!({}),
        "maximum cpu usage per Pod is 1.  No limit is specified"
    )]
    #[case(
        json!({"type": "Container", "min": {"cpu": "1", "memory": "1Gi"}}),
        json!({"requests": {"cpu": "100m"}}),
        "[minimum cpu usage per Container is 1, but request is 100m, \
         minimum memory usage per Container is 1Gi.  No request is specified]"
    )]
    #[case(
        json!({"type": "Container", "maxLimitRequestRatio": {"cpu": "2"}}),
        json!({"limits": {"cpu": "1"}, "requests": {"cpu": "400m"}}),
        "cpu max limit to request ratio per Container is 2, but provided ratio is 2.500000"
    )]
    fn a_pod_outside_of_the_range_is_rejected(
        #[case] item: Value,
        #[case] resources: Value,
        #[case] expected: &str,
    ) {
        assert_eq!(check_pod(&pod(&resources), &range(&item)).as_deref(), Some(expected));
    }

    #[test]
    fn amounts_at_the_bounds_are_inside() {
        let item = json!({
            "type": "Container", "min": {"cpu": "100m"}, "max": {"cpu": "1"},
            "maxLimitRequestRatio": {"cpu": "10"},
        });
        let pod = pod(&json!({"limits": {"cpu": "1"}, "requests": {"cpu": "0.1"}}));
        assert_eq!(check_pod(&pod, &range(&item)), None);
    }

    #[test]
    fn a_claim_has_its_own_bounds() {
        let item = json!({
            "type": "PersistentVolumeClaim", "min": {"storage": "1Gi"}, "max": {"storage": "2Gi"},
        });
        let check = |storage: &str| {
            let resources = json!({"requests": {"storage": storage}});
            check_claim(&json!({"spec": {"resources": resources}}), &range(&item))
        };
        assert_eq!(check("2Gi"), None);
        let text = check("3Gi").expect("too large");
        assert_eq!(
            text,
            "maximum storage usage per PersistentVolumeClaim is 2Gi, but request is 3Gi"
        );
        assert!(check("1Mi").expect("too small").starts_with("minimum storage usage"));
    }
}
