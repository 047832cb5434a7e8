//! The security contexts of pods and containers.

use serde_json::{Value, json};

use super::{Checks, each_container, has, items, text};
use kubeproof_apimachinery::object::validation::syntax::Syntax;
use kubeproof_apimachinery::schema::{FieldError, Path};

pub(super) const CHECKS: Checks = &[
    ("io.k8s.api.core.v1.AppArmorProfile", app_armor),
    ("io.k8s.api.core.v1.PodSecurityContext", groups),
    ("io.k8s.api.core.v1.PodSpec", kernel_parameters),
    ("io.k8s.api.core.v1.PodSpec", pod),
    ("io.k8s.api.core.v1.SeccompProfile", seccomp),
    ("io.k8s.api.core.v1.SecurityContext", container),
];

fn container(context: &Value, path: Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if context["allowPrivilegeEscalation"] == false {
        if context["privileged"] == true {
            let why = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true";
            errors.push(FieldError::invalid(path, context, why));
        }
        let added = items(&context["capabilities"], "add");
        if added.iter().any(|capability| capability == "CAP_SYS_ADMIN") {
            let why = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` \
                       CAP_SYS_ADMIN";
            errors.push(FieldError::invalid(path, context, why));
        }
    }
    errors
}

fn pod(spec: &Value, path: Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if spec["shareProcessNamespace"] == true && spec["hostPID"] == true {
        let context = path.field("securityContext");
        let why = "ShareProcessNamespace and HostPID cannot both be enabled";
        errors.push(FieldError::invalid(context.field("shareProcessNamespace"), &json!(true), why));
    }
    if spec["hostUsers"] != false {
        each_container(spec, path, |container, path| {
            if container["securityContext"]["procMount"] == "Unmasked" {
                let place = path.field("securityContext");
                let why = "`hostUsers` must be false to use `Unmasked`";
                let place = place.field("procMount");
                errors.push(FieldError::invalid(place, &json!("Unmasked"), why));
            }
        });
        return errors;
    }
    let why = "when `hostUsers` is false";
    let fields = [("hostNetwork", "hostNetwork"), ("hostPID", "HostPID"), ("hostIPC", "HostIPC")];
    for (field, name) in fields {
        if spec[field] == true {
            errors.push(FieldError::forbidden(path.field(name), why));
        }
    }
    each_container(spec, path, |container, path| {
        if !items(container, "volumeDevices").is_empty() {
            errors.push(FieldError::forbidden(path.field("volumeDevices"), why));
        }
    });
    errors
}

fn groups(context: &Value, path: Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let list = path.field("supplementalGroups");
    for (index, group) in items(context, "supplementalGroups").iter().enumerate() {
        if group.as_i64().is_none_or(|id| !(0..=i64::from(i32::MAX)).contains(&id)) {
            let why = "must be between 0 and 2147483647, inclusive";
            errors.push(FieldError::invalid(list.index(index), group, why));
        }
    }
    errors
}

/// Checks `sysctls`. A pod on the network of its host cannot change the parameters of the network.
fn kernel_parameters(spec: &Value, path: Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let context = path.field("securityContext");
    let list = context.field("sysctls");
    for (index, parameter) in items(&spec["securityContext"], "sysctls").iter().enumerate() {
        let name = text(parameter, "name");
        let place = list.index(index);
        let mut invalid = |why: &str| {
            errors.push(FieldError::invalid(place.field("name"), &json!(name), why));
        };
        if !name.is_empty() && !is_parameter(name) {
            invalid(PARAMETER_SYNTAX);
        }
        let dotted = if name.contains('/') { name.replace('/', ".") } else { name.to_owned() };
        let is_below = |namespaces: &[&str]| namespaces.iter().any(|it| dotted.starts_with(it));
        if spec["hostNetwork"] == true && is_below(&["net."]) {
            invalid("may not be specified when 'hostNetwork' is true");
        }
        let is_of_ipc = is_below(&["kernel.shm", "kernel.msg", "fs.mqueue."]);
        if spec["hostIPC"] == true && (is_of_ipc || dotted == "kernel.sem") {
            invalid("may not be specified when 'hostIPC' is true");
        }
    }
    errors
}

const PARAMETER_SYNTAX: &str = concat!(
    "must have at most 253 characters and match regex ",
    r"^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$",
);

fn is_parameter(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let is_part = |part: &str| {
        part.starts_with(is_plain)
            && part.ends_with(is_plain)
            && part.chars().all(|c| is_plain(c) || matches!(c, '-' | '_'))
    };
    name.len() <= 253 && name.split(['.', '/']).all(is_part)
}

fn seccomp(profile: &Value, path: Path<'_>) -> Vec<FieldError> {
    let place = path.field("localhostProfile");
    let given = has(profile, "localhostProfile");
    match (text(profile, "type") == "Localhost", given) {
        (true, false) => {
            vec![FieldError::required(place, "must be set when seccomp type is Localhost")]
        }
        (true, true) => {
            let name = text(profile, "localhostProfile");
            let mut errors = Syntax::PathWithoutParents.errors(name, place);
            if name.starts_with('/') {
                errors.push(FieldError::invalid(place, &json!(name), "must be a relative path"));
            }
            errors
        }
        (false, true) => {
            let why = "can only be set when seccomp type is Localhost";
            vec![FieldError::invalid(place, profile, why)]
        }
        (false, false) => Vec::new(),
    }
}

fn app_armor(profile: &Value, path: Path<'_>) -> Vec<FieldError> {
    let place = path.field("localhostProfile");
    let name = text(profile, "localhostProfile");
    match text(profile, "type") {
        "Localhost" if name.trim() != name => {
            vec![FieldError::invalid(place, &json!(name), "must not be padded with whitespace")]
        }
        "Localhost" if name.is_empty() => {
            vec![FieldError::required(place, "must be set when AppArmor type is Localhost")]
        }
        "RuntimeDefault" | "Unconfined" if has(profile, "localhostProfile") => {
            let why = "can only be set when AppArmor type is Localhost";
            vec![FieldError::invalid(place, &json!(name), why)]
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::super::tests::mistakes;
    use super::*;

    #[rstest]
    #[case("SecurityContext",
        json!({"allowPrivilegeEscalation": false, "privileged": true}), &["x"])]
    #[case("SecurityContext", json!({"privileged": true}), &[])]
    #[case("SeccompProfile", json!({"type": "Localhost"}), &["x.localhostProfile"])]
    #[case("SeccompProfile", json!({"type": "Localhost", "localhostProfile": "/a"}),
           &["x.localhostProfile"])]
    #[case("SeccompProfile", json!({"type": "Unconfined", "localhostProfile": "a"}),
           &["x.localhostProfile"])]
    #[case("AppArmorProfile", json!({"type": "Localhost"}), &["x.localhostProfile"])]
    #[case("AppArmorProfile", json!({"type": "Unconfined", "localhostProfile": "a"}),
           &["x.localhostProfile"])]
    #[case("PodSpec", json!({"hostUsers": false, "hostPID": true}), &["x.HostPID"])]
    #[case("PodSpec", json!({"hostUsers": false, "hostNetwork": true}), &["x.hostNetwork"])]
    #[case("PodSpec", json!({"hostUsers": false, "containers": [{"volumeDevices": [{}]}]}),
           &["x.containers[0].volumeDevices"])]
    #[case("PodSecurityContext", json!({"supplementalGroups": [0, -1]}),
           &["x.supplementalGroups[1]"])]
    #[case("PodSpec", json!({"securityContext": {"sysctls": [{"name": "kernel.shm_a"},
                                                             {"name": "net/a-b"}]}}), &[])]
    #[case("PodSpec", json!({"securityContext": {"sysctls": [{"name": "Net.a"}]}}),
           &["x.securityContext.sysctls[0].name"])]
    #[case("PodSpec", json!({"hostIPC": true, "hostNetwork": true, "securityContext":
           {"sysctls": [{"name": "kernel.sem"}, {"name": "net/a"}, {"name": "vm.a"}]}}),
           &["x.securityContext.sysctls[0].name", "x.securityContext.sysctls[1].name"])]
    #[case("PodSpec", json!({"shareProcessNamespace": true, "hostPID": true}),
           &["x.securityContext.shareProcessNamespace"])]
    #[case("PodSpec", json!({"containers": [{"securityContext": {"procMount": "Unmasked"}}]}),
           &["x.containers[0].securityContext.procMount"])]
    fn contexts_are_checked(#[case] name: &str, #[case] value: Value, #[case] expected: &[&str]) {
        assert_eq!(mistakes(name, &value), expected);
    }
}
