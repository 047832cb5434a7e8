//! The fields of a Pod that the runtime uses.

use std::collections::BTreeMap;

use serde_json::Value;

use super::process::PodKey;
use kubeproof_apimachinery::object::Object as _;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PodSpec {
    pub(crate) key: PodKey,
    pub(crate) hostname: String,
    pub(crate) restart_policy: RestartPolicy,
    /// Run one after the other before the other containers.
    pub(crate) init: Vec<ContainerSpec>,
    pub(crate) containers: Vec<ContainerSpec>,
}

#[expect(clippy::struct_excessive_bools, reason = "they are independent fields of the API")]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ContainerSpec {
    pub(crate) name: String,
    /// Empty for an image without a command.
    pub(crate) command: Vec<String>,
    pub(crate) environment: BTreeMap<String, String>,
    pub(crate) directory: String,
    /// Names, which may be empty, and numbers of TCP ports.
    pub(crate) ports: Vec<(String, u16)>,
    pub(crate) stdin: bool,
    pub(crate) stdin_once: bool,
    pub(crate) tty: bool,
    /// True for an init container with `restartPolicy: Always`.
    pub(crate) sidecar: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RestartPolicy {
    Always,
    OnFailure,
    Never,
}

impl PodSpec {
    pub(crate) fn parse(pod: &Value) -> Self {
        let spec = &pod["spec"];
        let containers = |field: &str| {
            let list = spec[field].as_array().into_iter().flatten();
            list.map(|container| ContainerSpec::read(container, pod)).collect()
        };
        Self {
            key: PodKey {
                namespace: pod.meta("namespace").to_owned(),
                name: pod.meta("name").to_owned(),
                uid: pod.meta("uid").to_owned(),
            },
            hostname: spec["hostname"].as_str().unwrap_or_else(|| pod.meta("name")).to_owned(),
            restart_policy: match spec["restartPolicy"].as_str() {
                Some("Never") => RestartPolicy::Never,
                Some("OnFailure") => RestartPolicy::OnFailure,
                _ => RestartPolicy::Always,
            },
            init: containers("initContainers"),
            containers: containers("containers"),
        }
    }
}

impl ContainerSpec {
    fn read(container: &Value, pod: &Value) -> Self {
        let text = |field: &str| container[field].as_str().unwrap_or_default().to_owned();
        let flag = |field: &str| container[field].as_bool().unwrap_or_default();
        let list = |field: &str| container[field].as_array().into_iter().flatten();
        let mut environment = BTreeMap::new();
        for variable in list("env") {
            let value = match variable["value"].as_str() {
                Some(value) => expand(value, &environment),
                None => field_of(
                    pod,
                    variable["valueFrom"]["fieldRef"]["fieldPath"].as_str().unwrap_or_default(),
                ),
            };
            environment.insert(variable["name"].as_str().unwrap_or_default().to_owned(), value);
        }
        let words = list("command").chain(list("args")).filter_map(Value::as_str);
        let command = words.map(|word| expand(word, &environment)).collect();
        let ports =
            list("ports").filter(|port| matches!(port["protocol"].as_str(), None | Some("TCP")));
        Self {
            name: text("name"),
            command,
            directory: text("workingDir"),
            ports: ports
                .filter_map(|port| {
                    let number = u16::try_from(port["containerPort"].as_u64()?).ok()?;
                    Some((port["name"].as_str().unwrap_or_default().to_owned(), number))
                })
                .collect(),
            stdin: flag("stdin"),
            stdin_once: flag("stdinOnce"),
            tty: flag("tty"),
            sidecar: container["restartPolicy"] == "Always",
            environment,
        }
    }
}

/// Returns a field of the downward API that exists when the pod starts.
fn field_of(pod: &Value, path: &str) -> String {
    let pointer = format!("/{}", path.replace('.', "/"));
    pod.pointer(&pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// Replaces `$(NAME)` with the variable if it exists, and `$$` with `$`.
fn expand(text: &str, environment: &BTreeMap<String, String>) -> String {
    let mut expanded = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        expanded.push_str(&rest[..at]);
        rest = &rest[at..];
        let name = rest.strip_prefix("$(").and_then(|inner| inner.split_once(')'));
        if let Some((value, after)) =
            name.and_then(|(name, after)| Some((environment.get(name)?, after)))
        {
            expanded.push_str(value);
            rest = after;
        } else {
            let length = if rest.starts_with("$$") { 2 } else { 1 };
            expanded.push('$');
            rest = &rest[length..];
        }
    }
    expanded + rest
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case("a $(X) b", "a 1 b")]
    #[case("$$(X) $(NO) $X $", "$(X) $(NO) $X $")]
    fn commands_expand_variables(#[case] text: &str, #[case] expanded: &str) {
        assert_eq!(expand(text, &BTreeMap::from([("X".to_owned(), "1".to_owned())])), expanded);
    }

    #[test]
    fn a_container_spec_has_variables_and_tcp_ports() {
        let pod = json!({
            "metadata": {"name": "p", "namespace": "n", "uid": "u"},
            "spec": {"containers": [{
                "name": "c", "image": "i", "command": ["echo"], "args": ["$(WHO)"],
                "env": [{"name": "WHO", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
                "ports": [{"containerPort": 7}, {"containerPort": 53, "protocol": "UDP"}],
            }]},
        });
        let container = &PodSpec::parse(&pod).containers[0];
        assert_eq!(container.command, ["echo", "p"]);
        assert_eq!(container.ports, [(String::new(), 7)]);
    }
}
