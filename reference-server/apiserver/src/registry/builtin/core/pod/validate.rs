//! Validates the spec of a pod beyond its schema.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::{ephemeral, network, resize};
use kubeproof_apimachinery::schema::{FieldError, Path};

/// Returns the errors of a pod.
pub(super) fn validate_pod(pod: &Value) -> Vec<FieldError> {
    let path = Path::Root.field("spec");
    let mut errors = check_spec(&pod["spec"], path);
    errors.extend(check_images(&pod["spec"], path));
    errors.extend(check_tokens(&pod["spec"], path));
    errors
}

/// Returns the errors in the spec of a template at `path`.
pub(crate) fn validate_spec(spec: &Value, path: Path<'_>) -> Vec<FieldError> {
    let mut errors = check_spec(spec, path);
    if !items(spec, "ephemeralContainers").is_empty() {
        let why = "ephemeral containers not allowed in pod template";
        errors.push(FieldError::forbidden(path.field("ephemeralContainers"), why));
    }
    errors
}

fn check_spec(spec: &Value, path: Path<'_>) -> Vec<FieldError> {
    let mut check = Check { spec, errors: Vec::new() };
    let volumes = check.volumes(path.field("volumes"));
    let mut names = HashSet::new();
    let others = [items(spec, "initContainers"), items(spec, "containers")];
    let others: Vec<&str> =
        others.into_iter().flatten().map(|container| text(container, "name")).collect();
    let mut host_ports = HashSet::new();
    for list in ["containers", "initContainers", "ephemeralContainers"] {
        let path = path.field(list);
        for (index, container) in items(spec, list).iter().enumerate() {
            let path = path.index(index);
            check.container(container, path, &volumes, &mut names);
            check.errors.extend(resize::validate_policies(spec, list, container, path));
            if list == "ephemeralContainers" {
                check.errors.extend(ephemeral::validate_container(container, path, &others));
                continue;
            }
            check.lifecycle(container, list, path);
            // Containers that initialize a pod may use a port one after the other.
            if list == "initContainers" {
                host_ports.clear();
            }
            check.host_ports(container, list, &mut host_ports, path.field("ports"));
        }
    }
    check.claim_names(path.field("resourceClaims"));
    check.errors.extend(network::validate(spec, path));
    check.errors
}

struct Check<'s> {
    spec: &'s Value,
    errors: Vec<FieldError>,
}

impl<'s> Check<'s> {
    /// Checks the volumes and returns their names.
    fn volumes(&mut self, path: Path<'_>) -> HashSet<&'s str> {
        let mut names = HashSet::new();
        for (index, volume) in items(self.spec, "volumes").iter().enumerate() {
            let path = path.index(index);
            let name = text(volume, "name");
            if !name.is_empty() && !names.insert(name) {
                self.errors.push(FieldError::duplicate(path.field("name"), &json!(name)));
            }
        }
        names
    }

    fn container(
        &mut self,
        container: &'s Value,
        path: Path<'_>,
        volumes: &HashSet<&str>,
        names: &mut HashSet<&'s str>,
    ) {
        let name = text(container, "name");
        if !name.is_empty() && !names.insert(name) {
            self.errors.push(FieldError::duplicate(path.field("name"), &json!(name)));
        }
        let mut places = HashSet::new();
        let list = path.field("volumeMounts");
        for (index, mount) in items(container, "volumeMounts").iter().enumerate() {
            let path = list.index(index);
            self.refers(mount, volumes, path.field("name"));
            let place = text(mount, "mountPath");
            if !places.insert(place) {
                let place = &json!(place);
                let error = FieldError::invalid(path.field("mountPath"), place, "must be unique");
                self.errors.push(error);
            }
        }
        let list = path.field("volumeDevices");
        for (index, device) in items(container, "volumeDevices").iter().enumerate() {
            let path = list.index(index);
            self.refers(device, volumes, path.field("name"));
            self.block_device(device, path.field("name"));
        }
        let resources = path.field("resources");
        self.claims(container, resources.field("claims"));
    }

    /// A mount and a device name a volume of the pod.
    fn refers(&mut self, mount: &Value, volumes: &HashSet<&str>, path: Path<'_>) {
        let name = text(mount, "name");
        if !volumes.contains(&name) {
            self.errors.push(FieldError::not_found(path, &json!(name)));
        }
    }

    fn block_device(&mut self, device: &Value, path: Path<'_>) {
        let name = text(device, "name");
        let volumes = items(self.spec, "volumes").iter();
        let volume = volumes.rev().find(|volume| text(volume, "name") == name);
        let is_block = |volume: &Value| {
            ["persistentVolumeClaim", "ephemeral"].iter().any(|kind| volume.get(kind).is_some())
        };
        if volume.is_some_and(|volume| !is_block(volume)) {
            let why = "can only use volume source type of PersistentVolumeClaim or Ephemeral for \
                       block mode";
            self.errors.push(FieldError::invalid(path, &json!(name), why));
        }
    }

    /// A container uses the claims of its pod.
    fn claims(&mut self, container: &Value, path: Path<'_>) {
        let known: Vec<_> =
            items(self.spec, "resourceClaims").iter().map(|claim| text(claim, "name")).collect();
        for (index, claim) in items(&container["resources"], "claims").iter().enumerate() {
            let name = text(claim, "name");
            if !name.is_empty() && !known.contains(&name) {
                let mut error = FieldError::not_found(path.index(index), &json!(name));
                error.message.push_str(": must be one of the names in pod.spec.resourceClaims");
                if known.is_empty() {
                    error.message.push_str(" which is empty");
                } else {
                    error.message.push_str(": ");
                    error.message.push_str(&known.join(", "));
                }
                self.errors.push(error);
            }
        }
    }

    fn claim_names(&mut self, path: Path<'_>) {
        let mut known = HashSet::new();
        for (index, claim) in items(self.spec, "resourceClaims").iter().enumerate() {
            let name = text(claim, "name");
            if !name.is_empty() && !known.insert(name) {
                let place = path.index(index);
                self.errors.push(FieldError::duplicate(place.field("name"), &json!(name)));
            }
        }
    }

    /// Only containers that run as long as the pod have probes and a lifecycle.
    fn lifecycle(&mut self, container: &Value, list: &str, path: Path<'_>) {
        if list == "initContainers" && container["restartPolicy"] != "Always" {
            for field in ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"] {
                if container.get(field).is_some() {
                    let why = "may not be set for init containers without restartPolicy=Always";
                    self.errors.push(FieldError::forbidden(path.field(field), why));
                }
            }
            return;
        }
        for field in ["livenessProbe", "startupProbe"] {
            let successes = container[field]["successThreshold"].as_i64();
            if let Some(count) = successes.filter(|count| *count > 1) {
                let place = path.field(field);
                let error = FieldError::invalid(
                    place.field("successThreshold"),
                    &json!(count),
                    "must be 1",
                );
                self.errors.push(error);
            }
        }
        if container["readinessProbe"].get("terminationGracePeriodSeconds").is_some() {
            let seconds = &container["readinessProbe"]["terminationGracePeriodSeconds"];
            let place = path.field("readinessProbe");
            let place = place.field("terminationGracePeriodSeconds");
            self.errors.push(FieldError::invalid(
                place,
                seconds,
                "must not be set for readinessProbes",
            ));
        }
        let place = path.field("lifecycle");
        let grace = self.spec["terminationGracePeriodSeconds"].as_i64().unwrap_or(i64::MAX);
        for hook in ["postStart", "preStop"] {
            let seconds = container["lifecycle"][hook]["sleep"]["seconds"].as_i64();
            if let Some(seconds) = seconds.filter(|seconds| !(0..=grace).contains(seconds)) {
                let why = format!(
                    "must be non-negative and less than terminationGracePeriodSeconds ({grace})"
                );
                let place = place.field(hook);
                let error = FieldError::invalid(place.field("sleep"), &json!(seconds), &why);
                self.errors.push(error);
            }
        }
    }

    /// The ports of the host differ, and are those of the containers on its network.
    fn host_ports(
        &mut self,
        container: &Value,
        list: &str,
        known: &mut HashSet<String>,
        path: Path<'_>,
    ) {
        let on_host_network = self.spec["hostNetwork"] == true && list == "containers";
        for (index, port) in items(container, "ports").iter().enumerate() {
            let path = path.index(index);
            let number = port["hostPort"].as_i64().unwrap_or(0);
            if number == 0 {
                continue;
            }
            let socket = format!("{}/{}/{number}", text(port, "protocol"), text(port, "hostIP"));
            let place = path.field("hostPort");
            if known.contains(&socket) {
                self.errors.push(FieldError::duplicate(place, &json!(socket)));
            }
            known.insert(socket);
            if on_host_network && port["containerPort"].as_i64() != Some(number) {
                let why = "must match `containerPort` when `hostNetwork` is true";
                self.errors.push(FieldError::invalid(place, &json!(number), why));
            }
        }
    }
}

/// Returns the errors in the images of a pod. Templates may have spaces around them.
fn check_images(spec: &Value, path: Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for list in ["containers", "initContainers", "ephemeralContainers"] {
        let path = path.field(list);
        for (index, container) in items(spec, list).iter().enumerate() {
            let image = text(container, "image");
            if image.trim() != image {
                let place = path.index(index);
                let why = "must not have leading or trailing whitespace";
                errors.push(FieldError::invalid(place.field("image"), &json!(image), why));
            }
        }
    }
    errors
}

/// A pod without an account has no token for it.
fn check_tokens(spec: &Value, path: Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if !text(spec, "serviceAccountName").is_empty() {
        return errors;
    }
    let volumes = path.field("volumes");
    for (index, volume) in items(spec, "volumes").iter().enumerate() {
        let place = volumes.index(index);
        let place = place.field("projected");
        let sources = place.field("sources");
        for (index, source) in items(&volume["projected"], "sources").iter().enumerate() {
            if source.get("serviceAccountToken").is_some() {
                let why = "must not be specified when serviceAccountName is not set";
                let place = sources.index(index);
                errors.push(FieldError::forbidden(place.field("serviceAccountToken"), why));
            }
        }
    }
    errors
}

fn items<'a>(object: &'a Value, field: &str) -> &'a [Value] {
    object.get(field).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object.get(field).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use kubeproof_apimachinery::schema::CauseReason::{self, *};

    /// Returns the errors of a pod with one valid container and these changes.
    fn mistakes(mut spec: Value) -> Vec<(String, CauseReason)> {
        if spec.get("containers").is_none() {
            spec["containers"] = json!([{"name": "c", "image": "i"}]);
        }
        let pods = super::super::pods();
        let mut pod = json!({ "spec": spec });
        pods.schema().apply_defaults(&mut pod);
        let mut errors = pods.schema().validate(&pod, None);
        errors.extend((pods.hooks.validate)(&pod));
        errors.into_iter().map(|error| (error.field, error.reason)).collect()
    }

    fn container(fields: &Value) -> Value {
        let mut container = json!({"name": "c", "image": "i"});
        container.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        json!({ "containers": [container] })
    }

    #[rstest]
    #[case(json!({}), &[])]
    #[case(json!({"containers": []}), &[("spec.containers", FieldValueRequired)])]
    #[case(
        json!({"containers": [{"name": "c"}]}),
        &[("spec.containers[0].image", FieldValueRequired)]
    )]
    #[case(json!({"containers": [{"name": "c", "image": "i"}, {"name": "c", "image": "i"}]}),
           &[("spec.containers[1].name", FieldValueDuplicate)])]
    #[case(
        json!({"containers": [{"name": "Bad_", "image": "i"}]}),
        &[("spec.containers[0].name", FieldValueInvalid)]
    )]
    #[case(
        json!({"restartPolicy": "Sometimes"}),
        &[("spec.restartPolicy", FieldValueNotSupported)]
    )]
    #[case(container(&json!({"volumeMounts": [{"name": "x", "mountPath": "/x"}]})),
           &[("spec.containers[0].volumeMounts[0].name", FieldValueNotFound)])]
    #[case(container(&json!({"ports": [{"containerPort": 70000}]})),
           &[("spec.containers[0].ports[0].containerPort", FieldValueInvalid)])]
    #[case(container(&json!({"resources": {"limits": {"cpu": "-1"}}})),
           &[("spec.containers[0].resources.limits[cpu]", FieldValueInvalid)])]
    #[case(container(&json!({"resources": {"limits": {"cpu": "1"}, "requests": {"cpu": "2"}}})),
           &[("spec.containers[0].resources.requests", FieldValueInvalid)])]
    #[case(
        container(&json!({"livenessProbe": {}})),
        &[("spec.containers[0].livenessProbe", FieldValueRequired)]
    )]
    #[case(
        container(&json!({
            "env": [{
                "name": "A", "value": "1",
                "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}},
            }],
        })),
        &[("spec.containers[0].env[0].valueFrom", FieldValueInvalid)]
    )]
    #[case(json!({"volumes": [{"name": "v", "emptyDir": {}, "configMap": {}}]}),
           &[("spec.volumes[0].configMap", FieldValueForbidden)])]
    #[case(
        json!({"tolerations": [{"operator": "Equal"}]}),
        &[("spec.tolerations[0].operator", FieldValueInvalid)]
    )]
    #[case(
        json!({"hostAliases": [{"ip": "nope"}]}),
        &[("spec.hostAliases[0].ip", FieldValueInvalid)]
    )]
    fn mistakes_name_their_field(#[case] spec: Value, #[case] expected: &[(&str, CauseReason)]) {
        let expected: Vec<_> =
            expected.iter().map(|(field, reason)| ((*field).to_owned(), *reason)).collect();
        assert_eq!(mistakes(spec), expected);
    }
}
