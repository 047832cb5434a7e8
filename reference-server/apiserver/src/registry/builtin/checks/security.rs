//! The security contexts of pods and containers.

use serde_json::{Value, json};

use super::{Checks, has, items, text};
use kubeproof_apimachinery::object::validation::syntax::Syntax;
use kubeproof_apimachinery::schema::{FieldError, Path};

pub(super) const CHECKS: Checks = &[
    ("io.k8s.api.core.v1.AppArmorProfile", app_armor),
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
        let lists = ["containers", "initContainers", "ephemeralContainers"];
        for list in lists {
            let place = path.field(list);
            for (index, container) in items(spec, list).iter().enumerate() {
                if container["securityContext"]["procMount"] == "Unmasked" {
                    let place = place.index(index);
                    let place = place.field("securityContext");
                    let why = "`hostUsers` must be false to use `Unmasked`";
                    let place = place.field("procMount");
                    errors.push(FieldError::invalid(place, &json!("Unmasked"), why));
                }
            }
        }
        return errors;
    }
    for (field, name) in [("hostPID", "HostPID"), ("hostIPC", "HostIPC")] {
        if spec[field] == true {
            errors.push(FieldError::forbidden(path.field(name), "when `hostUsers` is false"));
        }
    }
    errors
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
    #[case("PodSpec", json!({"shareProcessNamespace": true, "hostPID": true}),
           &["x.securityContext.shareProcessNamespace"])]
    #[case("PodSpec", json!({"containers": [{"securityContext": {"procMount": "Unmasked"}}]}),
           &["x.containers[0].securityContext.procMount"])]
    fn contexts_are_checked(#[case] name: &str, #[case] value: Value, #[case] expected: &[&str]) {
        assert_eq!(mistakes(name, &value), expected);
    }
}
