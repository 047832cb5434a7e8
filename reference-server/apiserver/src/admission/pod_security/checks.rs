//! The checks of the pod security standards.
//!
//! Each check returns a [`Violation`] with the reason and the details that kube-apiserver shows.

use std::collections::BTreeSet;

use serde_json::Value;

/// A pod, or the pod of a template, and the minor version of the policy.
#[derive(Clone, Copy)]
pub(super) struct Subject<'a> {
    pub(super) metadata: &'a Value,
    pub(super) spec: &'a Value,
    pub(super) minor: u32,
}

/// What a pod violates, and where.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Violation {
    pub(super) reason: String,
    pub(super) detail: String,
}

type Check = fn(Subject<'_>) -> Option<Violation>;

/// A check of the baseline level that a check of the restricted level replaces from a version on.
struct Baseline {
    check: Check,
    replaced_since: Option<u32>,
}

const BASELINE: [Baseline; 12] = [
    Baseline { check: app_armor, replaced_since: None },
    Baseline { check: added_capabilities, replaced_since: Some(22) },
    Baseline { check: host_namespaces, replaced_since: None },
    Baseline { check: host_paths, replaced_since: Some(0) },
    Baseline { check: host_ports, replaced_since: None },
    Baseline { check: hosts_of_probes, replaced_since: None },
    Baseline { check: privileged, replaced_since: None },
    Baseline { check: proc_mount, replaced_since: Some(35) },
    Baseline { check: se_linux, replaced_since: None },
    Baseline { check: seccomp, replaced_since: Some(19) },
    Baseline { check: sysctls, replaced_since: None },
    Baseline { check: windows_host_process, replaced_since: None },
];

/// Returns the violations of the baseline level, in the order of messages.
pub(super) fn baseline(pod: Subject<'_>) -> Vec<Violation> {
    BASELINE.iter().filter_map(|baseline| (baseline.check)(pod)).collect()
}

/// Returns the violations of the restricted level, which includes the baseline level.
pub(super) fn restricted(pod: Subject<'_>) -> Vec<Violation> {
    let is_kept = |check: &&Baseline| check.replaced_since.is_none_or(|since| pod.minor < since);
    let kept = BASELINE.iter().filter(is_kept).filter_map(|baseline| (baseline.check)(pod));
    kept.chain(super::restricted::CHECKS.iter().filter_map(|check| check(pod))).collect()
}

impl<'a> Subject<'a> {
    /// Returns all containers, those of the initialization first.
    pub(super) fn containers(self) -> impl Iterator<Item = &'a Value> {
        let lists = ["initContainers", "containers", "ephemeralContainers"];
        lists.into_iter().flat_map(move |list| self.spec[list].as_array().into_iter().flatten())
    }

    /// Returns the names of the containers that a condition selects.
    pub(super) fn names(self, is_wanted: impl Fn(&'a Value) -> bool) -> Vec<&'a str> {
        let wanted = self.containers().filter(|container| is_wanted(container));
        wanted.map(|container| text(container, "name")).collect()
    }

    /// Returns who has a security context that a condition selects: the pod and its containers.
    pub(super) fn setters(self, is_wanted: impl Fn(&'a Value) -> bool) -> Option<String> {
        let of_pod = is_wanted(&self.spec["securityContext"]).then(|| "pod".to_owned());
        let names = self.names(|container| is_wanted(&container["securityContext"]));
        let of_containers = (!names.is_empty()).then(|| containers(&names));
        let setters: Vec<String> = of_pod.into_iter().chain(of_containers).collect();
        (!setters.is_empty()).then(|| setters.join(" and "))
    }

    /// Returns the values of a field of all security contexts.
    fn context_values(self, pointer: &str) -> BTreeSet<&'a str> {
        let contexts = self.containers().map(|container| &container["securityContext"]);
        let contexts = contexts.chain([&self.spec["securityContext"]]);
        contexts.filter_map(|context| context.pointer(pointer)?.as_str()).collect()
    }

    /// Returns whether the pod runs in a user namespace, for which newer policies are relaxed.
    pub(super) fn has_user_namespace(self) -> bool {
        self.minor >= 35 && self.spec["hostUsers"] == false
    }

    pub(super) fn is_windows(self) -> bool {
        self.minor >= 25 && self.spec["os"]["name"] == "windows"
    }
}

impl Violation {
    pub(super) fn new(reason: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { reason: reason.into(), detail: detail.into() }
    }
}

pub(super) fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_default()
}

pub(super) fn quoted<'a>(items: impl IntoIterator<Item = &'a str>) -> String {
    let items: Vec<String> = items.into_iter().map(|item| format!("\"{item}\"")).collect();
    items.join(", ")
}

pub(super) fn plural(word: &str, count: usize) -> String {
    if count == 1 { word.to_owned() } else { format!("{word}s") }
}

/// Returns `container "a"` or `containers "a", "b"`.
pub(super) fn containers(names: &[&str]) -> String {
    format!("{} {}", plural("container", names.len()), quoted(names.iter().copied()))
}

fn uses(count: usize) -> &'static str {
    if count == 1 { "uses" } else { "use" }
}

fn app_armor(pod: Subject<'_>) -> Option<Violation> {
    let allowed = |kind: &str| matches!(kind, "RuntimeDefault" | "Localhost");
    let is_wrong = |context: &Value| {
        context["appArmorProfile"]["type"].as_str().is_some_and(|kind| !allowed(kind))
    };
    let kinds = pod.context_values("/appArmorProfile/type").into_iter();
    let mut values: Vec<String> =
        kinds.filter(|kind| !allowed(kind)).map(|kind| format!("\"{kind}\"")).collect();
    let annotations = pod.metadata["annotations"].as_object().into_iter().flatten();
    let annotations = annotations.filter_map(|(key, value)| {
        let value = value.as_str()?;
        let known = matches!(value, "" | "runtime/default") || value.starts_with("localhost/");
        let prefix = "container.apparmor.security.beta.kubernetes.io/";
        (key.starts_with(prefix) && !known).then(|| format!("\"{key}={value:?}\""))
    });
    let annotations: Vec<String> = annotations.collect();
    let of_annotations = (!annotations.is_empty()).then(|| plural("annotation", annotations.len()));
    let setters: Vec<String> = pod.setters(is_wrong).into_iter().chain(of_annotations).collect();
    if setters.is_empty() {
        return None;
    }
    values.extend(annotations);
    let reason = plural("forbidden AppArmor profile", values.len());
    let setters = setters.join(" and ");
    let values = values.join(", ");
    Some(Violation::new(
        reason,
        format!("{setters} must not set AppArmor profile type to {values}"),
    ))
}

const DEFAULT_CAPABILITIES: [&str; 13] = [
    "AUDIT_WRITE",
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "MKNOD",
    "NET_BIND_SERVICE",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
];

fn added_capabilities(pod: Subject<'_>) -> Option<Violation> {
    let detail = forbidden_capabilities(pod, |name| DEFAULT_CAPABILITIES.contains(&name))?;
    Some(Violation::new("non-default capabilities", detail))
}

/// Returns who adds capabilities that are not allowed.
pub(super) fn forbidden_capabilities(
    pod: Subject<'_>,
    is_allowed: impl Fn(&str) -> bool,
) -> Option<String> {
    fn added(container: &Value) -> impl Iterator<Item = &str> {
        let added = container["securityContext"]["capabilities"]["add"].as_array();
        added.into_iter().flatten().filter_map(Value::as_str)
    }
    let names = pod.names(|container| added(container).any(|name| !is_allowed(name)));
    if names.is_empty() {
        return None;
    }
    let all = pod.containers().flat_map(added).filter(|name| !is_allowed(name));
    let all: BTreeSet<&str> = all.collect();
    let (who, what) = (containers(&names), quoted(all));
    Some(format!("{who} must not include {what} in securityContext.capabilities.add"))
}

fn host_namespaces(pod: Subject<'_>) -> Option<Violation> {
    let fields = ["hostNetwork", "hostPID", "hostIPC"];
    let set = fields.into_iter().filter(|field| pod.spec[*field] == true);
    let set: Vec<String> = set.map(|field| format!("{field}=true")).collect();
    (!set.is_empty()).then(|| Violation::new("host namespaces", set.join(", ")))
}

fn host_paths(pod: Subject<'_>) -> Option<Violation> {
    let volumes = pod.spec["volumes"].as_array().into_iter().flatten();
    let named: Vec<&str> = volumes
        .filter(|volume| !volume["hostPath"].is_null())
        .map(|volume| text(volume, "name"))
        .collect();
    let detail = || format!("{} {}", plural("volume", named.len()), quoted(named.iter().copied()));
    (!named.is_empty()).then(|| Violation::new("hostPath volumes", detail()))
}

fn host_ports(pod: Subject<'_>) -> Option<Violation> {
    fn ports(container: &Value) -> impl Iterator<Item = u64> {
        let ports = container["ports"].as_array().into_iter().flatten();
        ports.filter_map(|port| port["hostPort"].as_u64()).filter(|port| *port != 0)
    }
    let names = pod.names(|container| ports(container).next().is_some());
    if names.is_empty() {
        return None;
    }
    let all: BTreeSet<String> =
        pod.containers().flat_map(ports).map(|port| port.to_string()).collect();
    let (who, verb) = (containers(&names), uses(names.len()));
    let what = plural("hostPort", all.len());
    let all: Vec<String> = all.into_iter().collect();
    Some(Violation::new("hostPort", format!("{who} {verb} {what} {}", all.join(", "))))
}

fn hosts_of_probes(pod: Subject<'_>) -> Option<Violation> {
    const HANDLERS: [&str; 5] = [
        "/livenessProbe",
        "/readinessProbe",
        "/startupProbe",
        "/lifecycle/postStart",
        "/lifecycle/preStop",
    ];
    fn hosts(container: &Value) -> impl Iterator<Item = &str> {
        let handlers = HANDLERS.into_iter().filter_map(|pointer| container.pointer(pointer));
        let hosts = handlers.flat_map(|handler| {
            ["httpGet", "tcpSocket"].into_iter().map(|kind| text(&handler[kind], "host"))
        });
        hosts.filter(|host| !host.is_empty())
    }
    let mut names = pod.names(|container| hosts(container).next().is_some());
    if names.is_empty() || pod.minor < 34 {
        return None;
    }
    names.sort_unstable();
    let all: BTreeSet<&str> = pod.containers().flat_map(hosts).collect();
    let what = plural("probe or lifecycle host", all.len());
    let (who, verb) = (containers(&names), uses(names.len()));
    Some(Violation::new("probe or lifecycle host", format!("{who} {verb} {what} {}", quoted(all))))
}

fn privileged(pod: Subject<'_>) -> Option<Violation> {
    let names = pod.names(|container| container["securityContext"]["privileged"] == true);
    let detail = || format!("{} must not set securityContext.privileged=true", containers(&names));
    (!names.is_empty()).then(|| Violation::new("privileged", detail()))
}

fn proc_mount(pod: Subject<'_>) -> Option<Violation> {
    if pod.has_user_namespace() { None } else { unmasked_proc_mount(pod) }
}

pub(super) fn unmasked_proc_mount(pod: Subject<'_>) -> Option<Violation> {
    fn kind(container: &Value) -> Option<&str> {
        container["securityContext"]["procMount"].as_str().filter(|kind| *kind != "Default")
    }
    let names = pod.names(|container| kind(container).is_some());
    let kinds: BTreeSet<&str> = pod.containers().filter_map(kind).collect();
    let who = containers(&names);
    let detail = || format!("{who} must not set securityContext.procMount to {}", quoted(kinds));
    (!names.is_empty()).then(|| Violation::new("procMount", detail()))
}

fn se_linux(pod: Subject<'_>) -> Option<Violation> {
    let is_allowed = |kind: &str| {
        matches!(kind, "" | "container_t" | "container_init_t" | "container_kvm_t")
            || (kind == "container_engine_t" && pod.minor >= 31)
    };
    let is_set = |context: &Value, field: &str| !text(&context["seLinuxOptions"], field).is_empty();
    let setters = pod.setters(|context| {
        !is_allowed(text(&context["seLinuxOptions"], "type"))
            || is_set(context, "user")
            || is_set(context, "role")
    })?;
    let mut kinds = pod.context_values("/seLinuxOptions/type");
    kinds.retain(|kind| !is_allowed(kind));
    let mut data = Vec::new();
    if !kinds.is_empty() {
        data.push(format!("{} {}", plural("type", kinds.len()), quoted(kinds)));
    }
    for field in ["user", "role"] {
        let values = pod.context_values(&format!("/seLinuxOptions/{field}"));
        if values.iter().any(|value| !value.is_empty()) {
            data.push(format!("{field} may not be set"));
        }
    }
    let what = data.join("; ");
    let detail = format!("{setters} set forbidden securityContext.seLinuxOptions: {what}");
    Some(Violation::new("seLinuxOptions", detail))
}

fn is_seccomp_allowed(kind: &str) -> bool {
    matches!(kind, "RuntimeDefault" | "Localhost")
}

/// Returns the profile of a security context.
pub(super) fn seccomp_profile(context: &Value) -> Option<&str> {
    context["seccompProfile"]["type"].as_str()
}

/// Rejects profiles that do not restrict. Policies before 1.19 judge annotations, which the API no
/// longer has.
pub(super) fn seccomp(pod: Subject<'_>) -> Option<Violation> {
    let is_wrong =
        |context: &Value| seccomp_profile(context).is_some_and(|kind| !is_seccomp_allowed(kind));
    let setters = pod.setters(is_wrong)?;
    let mut kinds = pod.context_values("/seccompProfile/type");
    kinds.retain(|kind| !is_seccomp_allowed(kind));
    let kinds = quoted(kinds);
    let detail = format!("{setters} must not set securityContext.seccompProfile.type to {kinds}");
    Some(Violation::new("seccompProfile", detail))
}

/// The sysctls that a container can set for itself alone, and the version that allows them.
const SYSCTLS: [(&str, u32); 14] = [
    ("kernel.shm_rmid_forced", 0),
    ("net.ipv4.ip_local_port_range", 0),
    ("net.ipv4.tcp_syncookies", 0),
    ("net.ipv4.ping_group_range", 0),
    ("net.ipv4.ip_unprivileged_port_start", 0),
    ("net.ipv4.ip_local_reserved_ports", 27),
    ("net.ipv4.tcp_keepalive_time", 29),
    ("net.ipv4.tcp_fin_timeout", 29),
    ("net.ipv4.tcp_keepalive_intvl", 29),
    ("net.ipv4.tcp_keepalive_probes", 29),
    ("net.ipv4.tcp_rmem", 32),
    ("net.ipv4.tcp_wmem", 32),
    ("net.ipv4.tcp_slow_start_after_idle", 37),
    ("net.ipv4.tcp_notsent_lowat", 37),
];

fn sysctls(pod: Subject<'_>) -> Option<Violation> {
    let is_allowed =
        |name: &str| SYSCTLS.iter().any(|(known, since)| *known == name && pod.minor >= *since);
    let set = pod.spec["securityContext"]["sysctls"].as_array().into_iter().flatten();
    let names = set.map(|sysctl| text(sysctl, "name"));
    let names: Vec<&str> = names.filter(|name| !is_allowed(name)).collect();
    (!names.is_empty()).then(|| Violation::new("forbidden sysctls", names.join(", ")))
}

fn windows_host_process(pod: Subject<'_>) -> Option<Violation> {
    let setters = pod.setters(|context| context["windowsOptions"]["hostProcess"] == true)?;
    let detail = format!("{setters} must not set securityContext.windowsOptions.hostProcess=true");
    Some(Violation::new("hostProcess", detail))
}
