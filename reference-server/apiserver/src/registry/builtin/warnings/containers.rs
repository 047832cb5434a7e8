//! Warnings about the containers of a pod.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::{list, pods, text};

/// Returns the warnings about all containers of a spec at `at`.
pub(super) fn warnings(spec: &Value, at: &str) -> Vec<String> {
    let mut containers = Vec::new();
    for name in ["initContainers", "containers", "ephemeralContainers"] {
        let all = list(&spec[name]).iter().enumerate();
        containers.extend(all.map(|(index, item)| (format!("{at}.{name}[{index}]"), item)));
    }
    let mut warnings = Vec::new();
    for (place, container) in &containers {
        for kind in ["limits", "requests"] {
            let amounts = &container["resources"][kind];
            warnings.extend(pods::fractions(amounts, &format!("{place}.resources.{kind}")));
        }
        warnings.extend(variables(container, place));
    }
    let mut ports = Vec::new();
    for (place, container) in &containers {
        let all = list(&container["ports"]).iter().enumerate();
        ports.extend(all.map(|(index, port)| (format!("{place}.ports[{index}]"), port)));
    }
    warnings.extend(overlapping_ports(&ports));
    warnings.extend(named_ports(&ports));
    warnings
}

/// A later variable should use the earlier one with its name.
fn variables(container: &Value, place: &str) -> Vec<String> {
    let mut known = HashSet::new();
    let mut warnings = Vec::new();
    for (index, variable) in list(&container["env"]).iter().enumerate() {
        let (name, value) = (text(variable, "name"), text(variable, "value"));
        let reference = format!("$({name})");
        let hides =
            variable["valueFrom"].is_object() || value == reference || !value.contains(&reference);
        if !known.insert(name) && hides {
            warnings.push(format!(
                "{place}.env[{index}]: hides previous definition of {name:?}, which may be \
                 dropped when using apply"
            ));
        }
    }
    warnings
}

fn overlapping_ports(ports: &[(String, &Value)]) -> Vec<String> {
    let number = |port: &Value, field: &str| port[field].as_i64().unwrap_or_default();
    let mut warnings = Vec::new();
    for (index, (place, port)) in ports.iter().enumerate() {
        let (host, address) = (number(port, "hostPort"), text(port, "hostIP"));
        let (own, protocol) = (number(port, "containerPort"), text(port, "protocol"));
        if host == 0 && !address.is_empty() {
            let name = text(port, "name");
            warnings.push(format!(
                "{place}: hostIP set without hostPort: {{Name:{name} HostPort:0 \
                 ContainerPort:{own} Protocol:{protocol} HostIP:{address}}}"
            ));
        }
        let same = |other: &Value| {
            number(other, "containerPort") == own && text(other, "protocol") == protocol
        };
        for (other_place, other) in ports[..index].iter().filter(|(_, other)| same(other)) {
            let (other_host, other_address) = (number(other, "hostPort"), text(other, "hostIP"));
            let kind = if host == other_host && address == other_address {
                "duplicate"
            } else if host == 0 || other_host == 0 {
                "overlapping"
            } else if host == other_host && address.is_empty() != other_address.is_empty() {
                "dangerously ambiguous"
            } else {
                continue;
            };
            warnings.push(format!("{place}: {kind} port definition with {other_place}"));
        }
    }
    warnings
}

fn named_ports(ports: &[(String, &Value)]) -> Vec<String> {
    let mut known: HashMap<&str, &str> = HashMap::new();
    let mut warnings = Vec::new();
    for (place, port) in ports {
        let name = text(port, "name");
        if name.is_empty() {
            continue;
        }
        if let Some(other) = known.get(name) {
            warnings.push(format!(
                "{place}: duplicate port name {name:?} with {other}, services and probes that \
                 select ports by name will use {other}"
            ));
        } else {
            known.insert(name, place);
        }
    }
    warnings
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case(json!({"env": [{"name": "A", "value": "1"}, {"name": "A", "value": "$(A)2"}]}), &[])]
    #[case(
        json!({"env": [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]}),
        &["spec.containers[0].env[1]: hides previous definition of \"A\", which may be dropped \
           when using apply"]
    )]
    #[case(
        json!({"resources": {"limits": {"memory": "1500m"}}}),
        &["spec.containers[0].resources.limits[memory]: fractional byte value \"1500m\" is \
           invalid, must be an integer"]
    )]
    #[case(
        json!({"ports": [{"containerPort": 80, "protocol": "TCP", "hostIP": "1.2.3.4"}]}),
        &["spec.containers[0].ports[0]: hostIP set without hostPort: {Name: HostPort:0 \
           ContainerPort:80 Protocol:TCP HostIP:1.2.3.4}"]
    )]
    #[case(
        json!({"ports": [{"containerPort": 80, "hostPort": 1, "name": "a"}, {"containerPort": 80},
                         {"containerPort": 81, "name": "a"}]}),
        &["spec.containers[0].ports[1]: overlapping port definition with \
           spec.containers[0].ports[0]",
          "spec.containers[0].ports[2]: duplicate port name \"a\" with \
           spec.containers[0].ports[0], services and probes that select ports by name will use \
           spec.containers[0].ports[0]"]
    )]
    fn containers_have_warnings(#[case] container: Value, #[case] expected: &[&str]) {
        assert_eq!(warnings(&json!({"containers": [container]}), "spec"), expected);
    }
}
