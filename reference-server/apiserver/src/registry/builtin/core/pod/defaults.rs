//! Defaults of a pod that depend on other fields.

use serde_json::{Map, Value, json};

use crate::registry::builtin::checks::aggregate;
use crate::registry::builtin::core::amounts::{round_up, round_up_resources};

/// Completes the spec of a pod or of a template.
pub(crate) fn complete_spec(spec: &mut Value) {
    let on_host_network = spec.get("hostNetwork") == Some(&json!(true));
    for list in ["containers", "initContainers", "ephemeralContainers"] {
        for container in spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            complete_container(container, on_host_network && list != "ephemeralContainers");
        }
    }
    for volume in spec.get_mut("volumes").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(fields) =
            volume.as_object_mut().filter(|fields| fields.len() == 1 && fields.contains_key("name"))
        {
            fields.insert("emptyDir".to_owned(), json!({}));
        }
        for kind in ["limits", "requests"] {
            let claim = "/ephemeral/volumeClaimTemplate/spec/resources";
            round_up(volume.pointer_mut(&format!("{claim}/{kind}")));
        }
        if let Some(image) = volume.get_mut("image") {
            complete_pull_policy(image, "reference", "pullPolicy");
        }
    }
    round_up(spec.get_mut("overhead"));
    round_up_resources(spec);
    // The deprecated field has the value of the newer field.
    if let Some(account) =
        spec.get("serviceAccountName").or_else(|| spec.get("serviceAccount")).cloned()
    {
        spec["serviceAccountName"] = account.clone();
        spec["serviceAccount"] = account;
    }
}

/// Completes the spec of a pod. A template stays as it is.
pub(super) fn complete_pod(spec: &mut Value) {
    request_the_limits(spec);
    request_the_sum(spec);
    if spec["terminationGracePeriodSeconds"].as_i64().is_some_and(|seconds| seconds < 0) {
        spec["terminationGracePeriodSeconds"] = json!(1);
    }
    if spec.get("enableServiceLinks").is_none() {
        spec["enableServiceLinks"] = json!(true);
    }
}

fn complete_pull_policy(owner: &mut Value, image: &str, policy: &str) {
    let Some(fields) = owner.as_object_mut() else { return };
    if let Some(image) = fields.get(image).and_then(Value::as_str).map(str::to_owned) {
        fields.entry(policy).or_insert_with(|| pull_policy(&image).into());
    }
}

fn complete_container(container: &mut Value, on_host_network: bool) {
    complete_pull_policy(container, "image", "imagePullPolicy");
    round_up_resources(container);
    let Some(fields) = container.as_object_mut() else { return };
    if on_host_network {
        for port in fields.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
            if port.get("hostPort").is_none() {
                port["hostPort"] = port["containerPort"].clone();
            }
        }
    }
}

/// An image without a tag, or with the tag `latest`, may change. kube-apiserver does not reject a
/// reference with a wrong syntax.
fn pull_policy(image: &str) -> &'static str {
    if image.contains('@') || !is_reference(image) {
        return "IfNotPresent";
    }
    let last = image.rsplit('/').next().unwrap_or(image);
    match last.split_once(':') {
        None | Some((_, "latest")) => "Always",
        Some(_) => "IfNotPresent",
    }
}

/// Reports whether the names in a reference have the syntax of repositories. The identifier of an
/// image is not a reference.
fn is_reference(image: &str) -> bool {
    let parts: Vec<&str> = image.split('/').collect();
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let is_name = |name: &str| {
        name.starts_with(is_plain)
            && name.ends_with(is_plain)
            && name.chars().all(|c| is_plain(c) || matches!(c, '.' | '_' | '-'))
    };
    let (last, others) = parts.split_last().unwrap_or((&"", &[]));
    // The first name of several may be a host.
    let others = others.get(1..).unwrap_or_default();
    let is_hex = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
    let is_identifier = image.len() == 64 && image.chars().all(is_hex);
    image.len() <= 255
        && !is_identifier
        && others.iter().all(|name| is_name(name))
        && is_name(last.split(':').next().unwrap_or_default())
}

/// Completes the requests of the whole pod: by the sum of its containers, then by its limits.
fn request_the_sum(spec: &mut Value) {
    for kind in ["limits", "requests"] {
        let resources = &spec["resources"];
        let has = |kind: &str| resources[kind].as_object().is_some_and(|all| !all.is_empty());
        let is_limit = kind == "limits";
        let has_source = has("limits") || is_limit && has("requests");
        if !has_source {
            continue;
        }
        let is_huge = |name: &str| name.starts_with("hugepages-");
        let takes = |name: &str| {
            if is_limit {
                is_huge(name) && resources["requests"].get(name).is_none()
            } else {
                matches!(name, "cpu" | "memory")
            }
        };
        let sums = aggregate(spec, kind).into_iter().filter(|(name, _)| takes(name));
        let mut all: Map<String, Value> =
            sums.map(|(name, sum)| (name.to_owned(), json!(sum.to_string()))).collect();
        if !is_limit {
            for (name, limit) in resources["limits"].as_object().into_iter().flatten() {
                all.entry(name.clone()).or_insert_with(|| limit.clone());
            }
        }
        all.extend(resources[kind].as_object().cloned().unwrap_or_default());
        if !all.is_empty() {
            spec["resources"][kind] = all.into();
        }
    }
}

/// Completes the requests of containers by their limits.
fn request_the_limits(spec: &mut Value) {
    for list in ["containers", "initContainers"] {
        for container in spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            if let Some(Value::Object(resources)) = container.get_mut("resources") {
                complete_requests(resources);
            }
        }
    }
}

fn complete_requests(resources: &mut Map<String, Value>) {
    let Some(Value::Object(limits)) = resources.get("limits").cloned() else { return };
    let Some(requests) = resources.entry("requests").or_insert_with(|| json!({})).as_object_mut()
    else {
        return;
    };
    for (name, amount) in limits {
        requests.entry(name).or_insert(amount);
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("nginx", "Always")]
    #[case("nginx:latest", "Always")]
    #[case("nginx:1.27", "IfNotPresent")]
    #[case("registry:5000/nginx", "Always")]
    #[case("nginx@sha256:0123", "IfNotPresent")]
    #[case("Example.com:5000/team/nginx", "Always")]
    #[case("Nginx", "IfNotPresent")]
    #[case("0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", "IfNotPresent")]
    fn an_image_that_may_change_is_pulled_always(#[case] image: &str, #[case] policy: &str) {
        assert_eq!(pull_policy(image), policy);
    }

    #[test]
    fn a_pod_requests_the_sum_of_its_containers_or_its_limits() {
        let resources = json!({"requests": {"cpu": "100m", "memory": "1Mi"}});
        let mut spec = json!({
            "containers": [{"resources": resources}, {"resources": resources}],
            "resources": {"limits": {"cpu": "1", "hugepages-2Mi": "2Mi"}, "requests": {"cpu": "1"}},
        });
        request_the_sum(&mut spec);
        let expected = json!({"cpu": "1", "memory": "2Mi", "hugepages-2Mi": "2Mi"});
        assert_eq!(spec["resources"]["requests"], expected);
        spec["resources"] = json!({"requests": {"cpu": "1"}});
        let before = spec.clone();
        request_the_sum(&mut spec);
        assert_eq!(spec, before);
    }

    #[test]
    fn a_spec_is_completed_in_all_its_parts() {
        let mut spec = json!({
            "hostNetwork": true,
            "serviceAccountName": "robot",
            "containers": [{
                "name": "c", "ports": [{"containerPort": 80}],
                "resources": {"limits": {"cpu": "1000000001n"}},
            }],
            "volumes": [{"name": "scratch"}, {"name": "config", "configMap": {"name": "c"}}],
        });
        complete_spec(&mut spec);
        assert_eq!(spec["containers"][0]["resources"].get("requests"), None);
        complete_pod(&mut spec);
        assert_eq!(spec["containers"][0]["ports"][0]["hostPort"], 80);
        assert_eq!(spec["containers"][0]["resources"]["requests"], json!({"cpu": "1001m"}));
        assert_eq!(spec["volumes"][0], json!({"name": "scratch", "emptyDir": {}}));
        assert_eq!(spec["volumes"][1].get("emptyDir"), None);
        assert_eq!(spec["serviceAccount"], "robot");
    }
}
