//! Validates the spec of a pod beyond its schema.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::{ephemeral, resize};
use kubeproof_apimachinery::object::validation::names::{dns_label, dns_subdomain};

use kubeproof_apimachinery::schema::{FieldError, Path, quantity};

/// Returns the errors of a pod.
pub(super) fn validate_pod(pod: &Value) -> Vec<FieldError> {
    check_spec(&pod["spec"], Path::Root.field("spec"))
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
    let mut check = Check { errors: Vec::new() };
    let volumes = check.volumes(spec, path.field("volumes"));
    let mut names = HashSet::new();
    let others = [items(spec, "initContainers"), items(spec, "containers")];
    let others: Vec<&str> =
        others.into_iter().flatten().map(|container| text(container, "name")).collect();
    for list in ["initContainers", "containers", "ephemeralContainers"] {
        let path = path.field(list);
        for (index, container) in items(spec, list).iter().enumerate() {
            check.container(container, path.index(index), &volumes, &mut names);
            check.errors.extend(resize::validate_policies(
                spec,
                list,
                container,
                path.index(index),
            ));
            if list == "ephemeralContainers" {
                let errors = ephemeral::validate_container(container, path.index(index), &others);
                check.errors.extend(errors);
            }
        }
    }
    for field in ["hostname", "subdomain"] {
        check.name(spec, field, path, dns_label);
    }
    for field in ["nodeName", "serviceAccountName"] {
        check.name(spec, field, path, dns_subdomain);
    }
    let tolerations = path.field("tolerations");
    for (index, toleration) in items(spec, "tolerations").iter().enumerate() {
        check.toleration(toleration, tolerations.index(index));
    }
    let aliases = path.field("hostAliases");
    for (index, alias) in items(spec, "hostAliases").iter().enumerate() {
        let ip = text(alias, "ip");
        if !ip.is_empty() && ip.parse::<std::net::IpAddr>().is_err() {
            let why = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
            check.errors.push(FieldError::invalid(
                aliases.index(index).field("ip"),
                &json!(ip),
                why,
            ));
        }
    }
    check.errors
}

struct Check {
    errors: Vec<FieldError>,
}

impl Check {
    /// Checks the volumes and returns their names.
    fn volumes<'a>(&mut self, spec: &'a Value, path: Path<'_>) -> HashSet<&'a str> {
        let mut names = HashSet::new();
        for (index, volume) in items(spec, "volumes").iter().enumerate() {
            let path = path.index(index);
            self.name(volume, "name", path, dns_label);
            let name = text(volume, "name");
            if !names.insert(name) {
                self.errors.push(FieldError::duplicate(path.field("name"), &json!(name)));
            }
            let sources = volume
                .as_object()
                .into_iter()
                .flatten()
                .filter(|(field, _)| *field != "name")
                .skip(1);
            for (source, _) in sources {
                self.errors.push(FieldError::forbidden(
                    path.field(source),
                    "may not specify more than 1 volume type",
                ));
            }
        }
        names
    }

    fn container<'a>(
        &mut self,
        container: &'a Value,
        path: Path<'_>,
        volumes: &HashSet<&str>,
        names: &mut HashSet<&'a str>,
    ) {
        self.name(container, "name", path, dns_label);
        let name = text(container, "name");
        if !names.insert(name) {
            self.errors.push(FieldError::duplicate(path.field("name"), &json!(name)));
        }
        let image = text(container, "image");
        if image.trim() != image {
            let why = "must not have leading or trailing whitespace";
            self.errors.push(FieldError::invalid(path.field("image"), &json!(image), why));
        }
        self.ports(container, path.field("ports"));
        self.env(container, path.field("env"));
        self.mounts(container, path.field("volumeMounts"), volumes);
        self.resources(&container["resources"], path.field("resources"));
        for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
            if let Some(body) = container.get(probe) {
                self.probe(body, path.field(probe));
            }
        }
    }

    fn ports(&mut self, container: &Value, path: Path<'_>) {
        let mut names = HashSet::new();
        for (index, port) in items(container, "ports").iter().enumerate() {
            let path = path.index(index);
            let name = text(port, "name");
            if name.is_empty() {
                continue;
            }
            if let Some(why) = port_name(name) {
                self.errors.push(FieldError::invalid(path.field("name"), &json!(name), why));
            }
            if !names.insert(name) {
                self.errors.push(FieldError::duplicate(path.field("name"), &json!(name)));
            }
        }
    }

    fn env(&mut self, container: &Value, path: Path<'_>) {
        for (index, variable) in items(container, "env").iter().enumerate() {
            let path = path.index(index);
            let name = text(variable, "name");
            let allowed = |c: char| c.is_ascii_graphic() && c != '=' || c == ' ';
            if !name.chars().all(allowed) {
                let why = "a valid environment variable name must consist only of printable ASCII \
                           characters other than '='";
                self.errors.push(FieldError::invalid(path.field("name"), &json!(name), why));
            }
            let Some(from) = variable.get("valueFrom") else { continue };
            let path = path.field("valueFrom");
            if !text(variable, "value").is_empty() {
                self.errors.push(FieldError::invalid(
                    path,
                    &json!(""),
                    "may not be specified when `value` is not empty",
                ));
            }
            match from.as_object().map_or(0, serde_json::Map::len) {
                0 => {
                    let why = "must specify one of: `fieldRef`, `resourceFieldRef`, \
                               `configMapKeyRef` or `secretKeyRef`";
                    self.errors.push(FieldError::invalid(path, &json!(""), why));
                }
                1 => {}
                _ => {
                    let why = "may not have more than one field specified at a time";
                    self.errors.push(FieldError::invalid(path, &json!(""), why));
                }
            }
        }
    }

    fn mounts(&mut self, container: &Value, path: Path<'_>, volumes: &HashSet<&str>) {
        let mut places = HashSet::new();
        for (index, mount) in items(container, "volumeMounts").iter().enumerate() {
            let path = path.index(index);
            let name = text(mount, "name");
            if !name.is_empty() && !volumes.contains(&name) {
                self.errors.push(FieldError::not_found(path.field("name"), &json!(name)));
            }
            let place = text(mount, "mountPath");
            if !places.insert(place) {
                self.errors.push(FieldError::invalid(
                    path.field("mountPath"),
                    &json!(place),
                    "must be unique",
                ));
            }
        }
    }

    fn resources(&mut self, resources: &Value, path: Path<'_>) {
        for kind in ["limits", "requests"] {
            let path = path.field(kind);
            for (name, amount) in
                resources.get(kind).and_then(Value::as_object).into_iter().flatten()
            {
                let amount = amount.as_str().unwrap_or_default();
                if amount.starts_with('-') {
                    let why = "must be greater than or equal to 0";
                    self.errors.push(FieldError::invalid(path.key(name), &json!(amount), why));
                }
                let limit = resources["limits"][name].as_str();
                let order = limit.and_then(|limit| quantity::compare(amount, limit));
                if kind == "requests" && order == Some(std::cmp::Ordering::Greater) {
                    let why = format!(
                        "must be less than or equal to {name} limit of {}",
                        limit.unwrap_or_default()
                    );
                    self.errors.push(FieldError::invalid(path, &json!(amount), &why));
                }
            }
        }
    }

    fn probe(&mut self, probe: &Value, path: Path<'_>) {
        let handlers = ["exec", "grpc", "httpGet", "tcpSocket"];
        let mut given = handlers.iter().filter(|handler| probe.get(handler).is_some());
        if given.next().is_none() {
            self.errors.push(FieldError::required(path, "must specify a handler type"));
        }
        for handler in given {
            self.errors.push(FieldError::forbidden(
                path.field(handler),
                "may not specify more than 1 handler type",
            ));
        }
    }

    fn toleration(&mut self, toleration: &Value, path: Path<'_>) {
        let exists = text(toleration, "operator") == "Exists";
        if text(toleration, "key").is_empty() && !exists {
            let why = "operator must be Exists when `key` is empty, which means \"match all \
                       values and all keys\"";
            self.errors.push(FieldError::invalid(
                path.field("operator"),
                &toleration["operator"],
                why,
            ));
        }
        if exists && !text(toleration, "value").is_empty() {
            let why = "value must be empty when `operator` is 'Exists'";
            self.errors.push(FieldError::invalid(path.field("operator"), toleration, why));
        }
        if toleration.get("tolerationSeconds").is_some()
            && text(toleration, "effect") != "NoExecute"
        {
            let why = "effect must be 'NoExecute' when `tolerationSeconds` is set";
            self.errors.push(FieldError::invalid(path.field("effect"), &toleration["effect"], why));
        }
    }

    /// Checks a name if it is present. The schema checks that it is present.
    fn name(&mut self, object: &Value, field: &str, path: Path<'_>, rule: fn(&str) -> Vec<String>) {
        let name = text(object, field);
        if !name.is_empty() {
            let wrong = rule(name);
            self.errors.extend(
                wrong.iter().map(|why| FieldError::invalid(path.field(field), &json!(name), why)),
            );
        }
    }
}

/// Returns the error in the name of a port.
pub(crate) fn port_name(name: &str) -> Option<&'static str> {
    if name.len() > 15 {
        Some("must be no more than 15 characters")
    } else if !name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-') {
        Some("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    } else if !name.chars().any(|c| c.is_ascii_lowercase()) {
        Some("must contain at least one letter (a-z)")
    } else if name.contains("--") || name.starts_with('-') || name.ends_with('-') {
        Some("must not begin, end or repeat hyphens")
    } else {
        None
    }
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
            "env": [{"name": "A", "value": "1", "valueFrom": {"fieldRef": {"fieldPath": "x"}}}],
        })),
        &[("spec.containers[0].env[0].valueFrom", FieldValueInvalid)]
    )]
    #[case(json!({"volumes": [{"name": "v", "emptyDir": {}, "configMap": {"name": "c"}}]}),
           &[("spec.volumes[0].emptyDir", FieldValueForbidden)])]
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

    #[rstest]
    #[case("http", true)]
    #[case("a-1", true)]
    #[case("80", false)]
    #[case("Http", false)]
    #[case("a--b", false)]
    #[case("a-very-long-name", false)]
    fn port_names(#[case] name: &str, #[case] good: bool) {
        assert_eq!(port_name(name).is_none(), good);
    }
}
