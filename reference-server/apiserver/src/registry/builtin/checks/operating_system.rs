//! What pods of an operating system may set, and the options of Windows.

use serde_json::{Value, json};

use super::{Checks, each_container, has, text};
use kubeproof_apimachinery::schema::{FieldError, Path};

pub(super) const CHECKS: Checks = &[
    ("io.k8s.api.core.v1.PodSpec", pod),
    ("io.k8s.api.core.v1.WindowsSecurityContextOptions", options),
];

/// The fields of a pod that Windows lacks. The security context has the second list.
const OF_LINUX: [&str; 4] = ["hostUsers", "hostPID", "hostIPC", "shareProcessNamespace"];
const IN_POD_CONTEXT: [&str; 11] = [
    "appArmorProfile",
    "fsGroup",
    "fsGroupChangePolicy",
    "runAsGroup",
    "runAsUser",
    "seLinuxChangePolicy",
    "seLinuxOptions",
    "seccompProfile",
    "supplementalGroups",
    "supplementalGroupsPolicy",
    "sysctls",
];
const IN_CONTAINER_CONTEXT: [&str; 10] = [
    "allowPrivilegeEscalation",
    "appArmorProfile",
    "capabilities",
    "privileged",
    "procMount",
    "readOnlyRootFilesystem",
    "runAsGroup",
    "runAsUser",
    "seLinuxOptions",
    "seccompProfile",
];
const CONTEXT: &str = "securityContext";
const MAX_SPEC: usize = 64 * 1024;
const MAX_DOMAIN: usize = 256;
const MAX_USER: usize = 104;

fn pod(spec: &Value, path: Path<'_>) -> Vec<FieldError> {
    let mut errors = host_processes(spec, path);
    match text(&spec["os"], "name") {
        "linux" => errors.extend(linux(spec, path)),
        "windows" => errors.extend(windows(spec, path)),
        _ => {}
    }
    errors
}

fn linux(spec: &Value, path: Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut forbid = |owner: &Value, path: Path<'_>| {
        if has(&owner[CONTEXT], "windowsOptions") {
            let why = "windows options cannot be set for a linux pod";
            let context = path.field(CONTEXT);
            errors.push(FieldError::forbidden(context.field("windowsOptions"), why));
        }
    };
    forbid(spec, path);
    each_container(spec, path, |container, path| forbid(container, path));
    errors
}

fn windows(spec: &Value, path: Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut forbid = |owner: &Value, fields: &[&str], path: Path<'_>| {
        // False and an empty list count as absent.
        let is_set = |field: &&&str| match &owner[**field] {
            Value::Null => false,
            Value::Bool(is_set) => *is_set || !matches!(**field, "hostPID" | "hostIPC"),
            Value::Array(items) => !items.is_empty() || **field == "supplementalGroups",
            _ => true,
        };
        for field in fields.iter().filter(is_set) {
            errors
                .push(FieldError::forbidden(path.field(field), "cannot be set for a windows pod"));
        }
    };
    forbid(spec, &OF_LINUX, path);
    forbid(&spec[CONTEXT], &IN_POD_CONTEXT, path.field(CONTEXT));
    each_container(spec, path, |container, path| {
        forbid(&container[CONTEXT], &IN_CONTAINER_CONTEXT, path.field(CONTEXT));
    });
    errors
}

/// All containers of a pod run as processes of the host, or none.
fn host_processes(spec: &Value, path: Path<'_>) -> Vec<FieldError> {
    let of = |owner: &Value| owner[CONTEXT]["windowsOptions"]["hostProcess"].as_bool();
    let of_pod = of(spec);
    let mut errors = Vec::new();
    let (mut all, mut on_host) = (0, 0);
    each_container(spec, path, |container, path| {
        all += 1;
        on_host += usize::from(of(container).or(of_pod) == Some(true));
        if let (Some(own), Some(pod)) =
            (of(container), of_pod.filter(|pod| of(container) != Some(*pod)))
        {
            let why =
                format!("pod hostProcess value must be identical if both are specified, was {pod}");
            let (context, options) = (path.field(CONTEXT), "windowsOptions");
            let options = context.field(options);
            errors.push(FieldError::invalid(options.field("hostProcess"), &json!(own), &why));
        }
    });
    if on_host == 0 {
        return errors;
    }
    if on_host != all {
        let why = "If pod contains any hostProcess containers then all containers must be \
                   HostProcess containers";
        errors.push(FieldError::invalid(path, &json!(""), why));
    }
    if spec["hostNetwork"] != true {
        let why = "hostNetwork must be true if pod contains any hostProcess containers";
        errors.push(FieldError::invalid(path.field("hostNetwork"), &json!(false), why));
    }
    errors
}

fn options(options: &Value, path: Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut invalid = |field: &str, why: &str| {
        let why = format!("{field} {why}");
        errors.push(FieldError::invalid(path.field(field), &options[field], &why));
    };
    match options["gmsaCredentialSpec"].as_str().map(str::len) {
        Some(0) => invalid("gmsaCredentialSpec", "cannot be an empty string"),
        Some(length) if length > MAX_SPEC => {
            invalid("gmsaCredentialSpec", "size must be under 64 KiB");
        }
        _ => {}
    }
    if let Some(user) = options["runAsUserName"].as_str() {
        for why in mistakes_in_user(user) {
            invalid("runAsUserName", why);
        }
    }
    errors
}

/// Checks the name of a user of Windows, such as `user` or `DOMAIN\\user`.
fn mistakes_in_user(name: &str) -> Vec<&'static str> {
    if name.is_empty() {
        return vec!["cannot be an empty string"];
    }
    if name.chars().any(char::is_control) {
        return vec!["cannot contain control characters"];
    }
    let (domain, user) = match name.split_once('\\') {
        Some((_, user)) if user.contains('\\') => {
            return vec!["cannot contain more than one backslash"];
        }
        Some((domain, user)) => (Some(domain), user),
        None => (None, name),
    };
    let mut whys = Vec::new();
    if let Some(domain) = domain {
        if domain.len() >= MAX_DOMAIN {
            whys.push("'s Domain length must be under 256 characters");
        }
        if !is_domain(domain) {
            whys.push("'s Domain doesn't match the NetBios nor the DNS format");
        }
    }
    if user.is_empty() {
        whys.push("'s User cannot be empty");
    } else if user.len() > MAX_USER {
        whys.push("'s User length must not be longer than 104 characters");
    }
    if !user.is_empty() && user.chars().all(|c| matches!(c, '.' | ' ')) {
        whys.push("'s User cannot contain only periods or spaces");
    }
    if user
        .contains(['"', '/', '\\', ':', ';', '|', '=', ',', '+', '*', '?', '<', '>', '@', '[', ']'])
    {
        whys.push("'s User cannot contain the following characters: \"/\\:;|=,+*?<>@[]");
    }
    whys
}

/// Reports whether a domain has a name of `NetBIOS` or of DNS.
fn is_domain(domain: &str) -> bool {
    let is_netbios = (1..=15).contains(&domain.len())
        && !domain.starts_with('.')
        && !domain.contains(['\\', '/', ':', '*', '?', '"', '<', '>', '|']);
    let is_part = |part: &str| {
        let is_plain = |c: char| c.is_ascii_alphanumeric();
        part.starts_with(is_plain)
            && part.ends_with(is_plain)
            && part.chars().all(|c| is_plain(c) || c == '-')
    };
    is_netbios || domain.trim_end_matches('.').split('.').all(is_part)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::super::tests::mistakes;
    use super::*;

    fn of_system(name: &str, mut spec: Value) -> Vec<String> {
        spec["os"] = json!({ "name": name });
        pod(&spec, Path::Root.field("x")).into_iter().map(|error| error.field).collect()
    }

    #[rstest]
    #[case(json!({"hostPID": true, "hostIPC": false}), &["x.hostPID"])]
    #[case(json!({"hostUsers": false}), &["x.hostUsers"])]
    #[case(json!({"shareProcessNamespace": false}), &["x.shareProcessNamespace"])]
    #[case(
        json!({"securityContext": {"sysctls": [], "fsGroup": 0}}),
        &["x.securityContext.fsGroup"]
    )]
    #[case(
        json!({"containers": [{"securityContext": {"privileged": false}}]}),
        &["x.containers[0].securityContext.privileged"]
    )]
    #[case(json!({"securityContext": {"windowsOptions": {}}}), &[])]
    fn windows_lacks_fields(#[case] spec: Value, #[case] expected: &[&str]) {
        assert_eq!(of_system("windows", spec), expected);
    }

    #[test]
    fn linux_has_no_options_of_windows() {
        let context = json!({"windowsOptions": {}});
        let spec =
            json!({"securityContext": context, "initContainers": [{"securityContext": context}]});
        let expected = [
            "x.securityContext.windowsOptions",
            "x.initContainers[0].securityContext.windowsOptions",
        ];
        assert_eq!(of_system("linux", spec.clone()), expected);
        assert_eq!(of_system("", spec), [""; 0]);
    }

    #[rstest]
    #[case(json!({}), &["x.hostNetwork"])]
    #[case(json!({"hostNetwork": true}), &[])]
    #[case(json!({"hostNetwork": true, "initContainers": [{"securityContext": {
        "windowsOptions": {"hostProcess": false},
    }}]}), &["x.initContainers[0].securityContext.windowsOptions.hostProcess", "x"])]
    fn all_containers_are_on_the_host(#[case] mut spec: Value, #[case] expected: &[&str]) {
        spec["securityContext"] = json!({"windowsOptions": {"hostProcess": true}});
        spec["containers"] = json!([{}]);
        assert_eq!(of_system("", spec), expected);
    }

    #[rstest]
    #[case("user", 0)]
    #[case("DOMAIN\\user", 0)]
    #[case("example.com\\user", 0)]
    #[case("", 1)]
    #[case("a\\b\\c", 1)]
    #[case("a\tb", 1)]
    #[case("..", 1)]
    #[case("a@b", 1)]
    #[case("a/b.c\\user", 1)]
    #[case("a\\", 1)]
    fn users_have_a_syntax(#[case] name: &str, #[case] expected: usize) {
        let value = json!({"runAsUserName": name});
        assert_eq!(mistakes("WindowsSecurityContextOptions", &value).len(), expected);
    }

    #[test]
    fn credentials_are_not_empty() {
        let value = json!({"gmsaCredentialSpec": ""});
        let expected = ["x.gmsaCredentialSpec"];
        assert_eq!(mistakes("WindowsSecurityContextOptions", &value), expected);
    }
}
