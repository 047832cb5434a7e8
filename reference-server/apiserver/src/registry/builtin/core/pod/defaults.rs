//! Defaults of a pod that depend on other fields.

use serde_json::{Map, Value, json};

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
    }
    // The deprecated field has the value of the newer field.
    if let Some(account) =
        spec.get("serviceAccountName").or_else(|| spec.get("serviceAccount")).cloned()
    {
        spec["serviceAccountName"] = account.clone();
        spec["serviceAccount"] = account;
    }
    if spec["terminationGracePeriodSeconds"].as_i64().is_some_and(|seconds| seconds < 0) {
        spec["terminationGracePeriodSeconds"] = json!(1);
    }
}

fn complete_container(container: &mut Value, on_host_network: bool) {
    let Some(fields) = container.as_object_mut() else { return };
    if let Some(image) = fields.get("image").and_then(Value::as_str).map(str::to_owned) {
        fields.entry("imagePullPolicy").or_insert_with(|| pull_policy(&image).into());
    }
    if on_host_network {
        for port in fields.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
            if port.get("hostPort").is_none() {
                port["hostPort"] = port["containerPort"].clone();
            }
        }
    }
}

/// An image without a tag, or with the tag `latest`, may change.
fn pull_policy(image: &str) -> &'static str {
    if image.contains('@') {
        return "IfNotPresent";
    }
    let last = image.rsplit('/').next().unwrap_or(image);
    match last.split_once(':') {
        None | Some((_, "latest")) => "Always",
        Some(_) => "IfNotPresent",
    }
}

/// Completes the requests of a pod by its limits. A template stays as it is.
pub(super) fn request_the_limits(spec: &mut Value) {
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
    fn an_image_that_may_change_is_pulled_always(#[case] image: &str, #[case] policy: &str) {
        assert_eq!(pull_policy(image), policy);
    }

    #[test]
    fn a_spec_is_completed_in_all_its_parts() {
        let mut spec = json!({
            "hostNetwork": true,
            "serviceAccountName": "robot",
            "containers": [{
                "name": "c", "ports": [{"containerPort": 80}],
                "resources": {"limits": {"cpu": "1"}},
            }],
            "volumes": [{"name": "scratch"}, {"name": "config", "configMap": {"name": "c"}}],
        });
        complete_spec(&mut spec);
        assert_eq!(spec["containers"][0]["resources"].get("requests"), None);
        request_the_limits(&mut spec);
        assert_eq!(spec["containers"][0]["ports"][0]["hostPort"], 80);
        assert_eq!(spec["containers"][0]["resources"]["requests"], json!({"cpu": "1"}));
        assert_eq!(spec["volumes"][0], json!({"name": "scratch", "emptyDir": {}}));
        assert_eq!(spec["volumes"][1].get("emptyDir"), None);
        assert_eq!(spec["serviceAccount"], "robot");
    }
}
