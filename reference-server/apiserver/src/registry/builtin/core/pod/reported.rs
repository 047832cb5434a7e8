//! What nodes and schedulers report about the containers of a pod.

use std::collections::HashSet;

use serde_json::{Value, json};

use kubeproof_apimachinery::object::validation::syntax::Syntax;
use kubeproof_apimachinery::schema::{FieldError, Path};

const HEALTH: [&str; 3] = ["Healthy", "Unhealthy", "Unknown"];
/// The length of a message about the health of a device.
const MAX_MESSAGE: usize = 1024;
/// The lists of statuses, and those of the containers with resources.
const LISTS: [(&str, Option<&str>); 3] = [
    ("containerStatuses", Some("containers")),
    ("initContainerStatuses", Some("initContainers")),
    ("ephemeralContainerStatuses", None),
];

/// Returns the errors in the users and the devices of containers.
pub(super) fn validate(pod: &Value, status: Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let system = pod["spec"]["os"]["name"].as_str().unwrap_or("linux");
    for (list, _) in LISTS {
        let path = status.field(list);
        for (index, container) in items(&pod["status"], list).iter().enumerate() {
            let place = path.index(index);
            let user = place.field("user");
            errors.extend(user_errors(&container["user"]["linux"], system, user.field("linux")));
        }
    }
    for (list, containers) in LISTS {
        let path = status.field(list);
        for (index, status) in items(&pod["status"], list).iter().enumerate() {
            let place = path.index(index);
            let place = place.field("allocatedResourcesStatus");
            match containers {
                Some(containers) => errors.extend(allocated(pod, status, containers, place)),
                None if items(status, "allocatedResourcesStatus").is_empty() => {}
                None => {
                    let why = "must not be specified in container status";
                    errors.push(FieldError::forbidden(place, why));
                }
            }
        }
    }
    errors
}

fn user_errors(user: &Value, system: &str, path: Path<'_>) -> Vec<FieldError> {
    if user.is_null() {
        return Vec::new();
    }
    if system == "windows" {
        return vec![FieldError::forbidden(path, "cannot be set for a windows pod")];
    }
    let check = |value: &Value, path: Path<'_>| {
        let is_valid = value.as_i64().is_none_or(|id| (0..=i64::from(i32::MAX)).contains(&id));
        let why = "must be between 0 and 2147483647, inclusive";
        (!is_valid).then(|| FieldError::invalid(path, value, why))
    };
    let mut errors = Vec::new();
    for field in ["uid", "gid"] {
        errors.extend(check(&user[field], path.field(field)));
    }
    let list = path.field("supplementalGroups");
    for (index, group) in items(user, "supplementalGroups").iter().enumerate() {
        errors.extend(check(group, list.index(index)));
    }
    errors
}

/// Returns the errors in the devices of a container. `list` names the containers of the spec.
fn allocated(pod: &Value, status: &Value, list: &str, path: Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let container = items(&pod["spec"], list).iter().find(|it| it["name"] == status["name"]);
    for (index, resource) in items(status, "allocatedResourcesStatus").iter().enumerate() {
        let place = path.index(index);
        let name = text(resource, "name");
        if let Some(why) = container.and_then(|container| unknown(container, name)) {
            errors.push(FieldError::invalid(place.field("name"), &json!(name), why));
        }
        errors.extend(devices(resource, place.field("resources")));
    }
    errors
}

/// Returns why a container does not have a resource.
fn unknown(container: &Value, name: &str) -> Option<&'static str> {
    if name.starts_with("claim:") {
        let mut claims = items(&container["resources"], "claims").iter();
        let why = "must match one of the container's resource claims in a format \
                   'claim:<claimName>/<request>' or 'claim:<claimName>' if request is empty";
        return (!claims.any(|claim| claim_name(claim) == name)).then_some(why);
    }
    let why = "must match one of the container's resource requests";
    container["resources"]["requests"].get(name).is_none().then_some(why)
}

fn claim_name(claim: &Value) -> String {
    match text(claim, "request") {
        "" => format!("claim:{}", text(claim, "name")),
        request => format!("claim:{}/{request}", text(claim, "name")),
    }
}

fn devices(resource: &Value, path: Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut known = HashSet::new();
    for (index, device) in items(resource, "resources").iter().enumerate() {
        let place = path.index(index);
        let health = text(device, "health");
        if !HEALTH.contains(&health) {
            let supported = HEALTH.map(Value::from);
            let value = json!(health);
            errors.push(FieldError::not_supported(place.field("health"), &value, &supported));
        }
        match device["message"].as_str().map(str::len) {
            Some(0) => {
                let why = "must be non-empty if specified";
                errors.push(FieldError::required(place.field("message"), why));
            }
            Some(length) if length > MAX_MESSAGE => {
                errors.push(FieldError::too_long(place.field("message"), MAX_MESSAGE as u64));
            }
            _ => {}
        }
        let id = text(device, "resourceID");
        if !known.insert(id) {
            errors.push(FieldError::duplicate(place.field("resourceID"), &json!(id)));
        }
    }
    errors
}

/// Returns the errors in the claim that the scheduler created for extended resources.
pub(super) fn extended_claim(pod: &Value, path: Path<'_>) -> Vec<FieldError> {
    let status = &pod["status"]["extendedResourceClaimStatus"];
    if status.is_null() {
        return Vec::new();
    }
    let mut errors = Vec::new();
    let list = path.field("requestMappings");
    let mappings = items(status, "requestMappings");
    if mappings.is_empty() {
        errors.push(FieldError::required(list, "at least one request mapping is required"));
    }
    let mut known = HashSet::new();
    for (index, mapping) in mappings.iter().enumerate() {
        let place = list.index(index);
        errors.extend(unmapped(&pod["spec"], mapping, place));
        // As in kube-apiserver, the path lacks the mapping.
        let request = text(mapping, "requestName");
        errors.extend(Syntax::DnsLabel.errors(request, path.field("requestName")));
        let fields = ["containerName", "resourceName", "requestName"];
        if !known.insert(fields.map(|field| text(mapping, field))) {
            errors.extend(fields.map(|field| {
                FieldError::duplicate(place.field(field), &json!(text(mapping, field)))
            }));
        }
    }
    let (name, place) = (text(status, "resourceClaimName"), path.field("resourceClaimName"));
    if name.is_empty() {
        errors.push(FieldError::required(place, ""));
    } else {
        errors.extend(Syntax::DnsSubdomain.errors(name, place));
    }
    errors
}

fn unmapped(spec: &Value, mapping: &Value, place: Path<'_>) -> Option<FieldError> {
    let containers = items(spec, "initContainers").iter().chain(items(spec, "containers"));
    let (container, resource) = (text(mapping, "containerName"), text(mapping, "resourceName"));
    let (field, value, why) = match containers.rev().find(|it| it["name"] == container) {
        None => (
            "containerName",
            container,
            "must match the name of an entry in spec.initContainers.name or spec.containers.name",
        ),
        Some(found) if found["resources"]["requests"].get(resource).is_none() => (
            "resourceName",
            resource,
            "must match the extended resource name of an entry in \
             spec.initContainers.resources.requests or spec.containers.resources.requests",
        ),
        Some(_) => return None,
    };
    Some(FieldError::invalid(place.field(field), &json!(value), why))
}

fn items<'a>(value: &'a Value, field: &str) -> &'a [Value] {
    value[field].as_array().map(Vec::as_slice).unwrap_or_default()
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn pod(status: &Value) -> Value {
        let resources = json!({
            "requests": {"a.b/c": "1"}, "claims": [{"name": "x", "request": "r"}],
        });
        let spec = json!({"containers": [{"name": "c", "resources": resources}]});
        json!({"spec": spec, "status": status})
    }

    fn places(errors: &[FieldError]) -> Vec<&str> {
        errors.iter().map(|error| &*error.field).collect()
    }

    #[rstest]
    #[case("a.b/c", true)]
    #[case("a.b/d", false)]
    #[case("claim:x/r", true)]
    #[case("claim:x", false)]
    fn containers_have_their_devices(#[case] name: &str, #[case] is_valid: bool) {
        let status = json!({"name": "c", "allocatedResourcesStatus": [{"name": name}]});
        let pod = pod(&json!({"containerStatuses": [status]}));
        assert_eq!(validate(&pod, Path::Root.field("status")).is_empty(), is_valid);
    }

    #[test]
    fn devices_and_users_are_checked() {
        let devices = json!([
            {"resourceID": "a", "health": "Healthy", "message": ""},
            {"resourceID": "a", "health": "Odd"},
        ]);
        let status = json!({
            "name": "c", "allocatedResourcesStatus": [{"name": "a.b/c", "resources": devices}],
            "user": {"linux": {"uid": -1, "gid": 0, "supplementalGroups": [2_147_483_648_i64]}},
        });
        let list = json!([status]);
        let pod = pod(&json!({"containerStatuses": list, "ephemeralContainerStatuses": list}));
        let errors = validate(&pod, Path::Root.field("s"));
        let devices = "s.containerStatuses[0].allocatedResourcesStatus[0].resources";
        let expected = [
            "s.containerStatuses[0].user.linux.uid".to_owned(),
            "s.containerStatuses[0].user.linux.supplementalGroups[0]".to_owned(),
            "s.ephemeralContainerStatuses[0].user.linux.uid".to_owned(),
            "s.ephemeralContainerStatuses[0].user.linux.supplementalGroups[0]".to_owned(),
            format!("{devices}[0].message"),
            format!("{devices}[1].health"),
            format!("{devices}[1].resourceID"),
            "s.ephemeralContainerStatuses[0].allocatedResourcesStatus".to_owned(),
        ];
        assert_eq!(places(&errors), expected);
    }

    #[rstest]
    #[case(json!({}), &["x.requestMappings", "x.resourceClaimName"])]
    #[case(
        json!({"resourceClaimName": "a", "requestMappings": [
            {"containerName": "c", "resourceName": "a.b/c", "requestName": "r"},
        ]}),
        &[]
    )]
    #[case(
        json!({"resourceClaimName": "A", "requestMappings": [
            {"containerName": "d", "resourceName": "a.b/c", "requestName": "r"},
            {"containerName": "c", "resourceName": "cpu", "requestName": "R"},
        ]}),
        &["x.requestMappings[0].containerName", "x.requestMappings[1].resourceName",
          "x.requestName", "x.resourceClaimName"]
    )]
    fn an_extended_claim_is_checked(#[case] claim: Value, #[case] expected: &[&str]) {
        let pod = pod(&json!({"extendedResourceClaimStatus": claim}));
        assert_eq!(places(&extended_claim(&pod, Path::Root.field("x"))), expected);
    }
}
