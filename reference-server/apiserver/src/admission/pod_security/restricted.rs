//! The checks that only the restricted level has.

use std::collections::BTreeSet;

use serde_json::Value;

use super::checks::{
    Subject, Violation, containers, forbidden_capabilities, plural, quoted, seccomp,
    seccomp_profile, text, unmasked_proc_mount,
};

/// The checks, in the order of messages.
pub(super) const CHECKS: [fn(Subject<'_>) -> Option<Violation>; 7] = [
    privilege_escalation,
    capabilities,
    proc_mount,
    volume_types,
    run_as_non_root,
    run_as_user,
    required_seccomp,
];

fn privilege_escalation(pod: Subject<'_>) -> Option<Violation> {
    let names =
        pod.names(|container| container["securityContext"]["allowPrivilegeEscalation"] != false);
    if names.is_empty() || pod.minor < 8 || pod.is_windows() {
        return None;
    }
    let who = containers(&names);
    let detail = format!("{who} must set securityContext.allowPrivilegeEscalation=false");
    Some(Violation::new("allowPrivilegeEscalation != false", detail))
}

fn capabilities(pod: Subject<'_>) -> Option<Violation> {
    if pod.minor < 22 || pod.is_windows() {
        return None;
    }
    let drops_all = |container: &Value| {
        let dropped = container["securityContext"]["capabilities"]["drop"].as_array();
        dropped.is_some_and(|dropped| dropped.iter().any(|name| name == "ALL"))
    };
    let names = pod.names(|container| !drops_all(container));
    let who = containers(&names);
    let missing = (!names.is_empty())
        .then(|| format!("{who} must set securityContext.capabilities.drop=[\"ALL\"]"));
    let added = forbidden_capabilities(pod, |name| name == "NET_BIND_SERVICE");
    let details: Vec<String> = missing.into_iter().chain(added).collect();
    let violation = || Violation::new("unrestricted capabilities", details.join("; "));
    (!details.is_empty()).then(violation)
}

fn proc_mount(pod: Subject<'_>) -> Option<Violation> {
    if pod.minor < 35 { None } else { unmasked_proc_mount(pod) }
}

const VOLUME_TYPES: [&str; 9] = [
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "image",
    "persistentVolumeClaim",
    "projected",
    "secret",
];

fn volume_types(pod: Subject<'_>) -> Option<Violation> {
    let is_set = |volume: &Value, kind: &str| !volume[kind].is_null();
    let volumes = pod.spec["volumes"].as_array().into_iter().flatten();
    let wrong: Vec<&Value> =
        volumes.filter(|volume| !VOLUME_TYPES.iter().any(|kind| is_set(volume, kind))).collect();
    if wrong.is_empty() {
        return None;
    }
    let kind = |volume: &&'_ Value| {
        let fields = volume.as_object().into_iter().flatten();
        let mut kinds = fields.filter(|(name, value)| *name != "name" && !value.is_null());
        kinds.next().map_or_else(|| "unknown".to_owned(), |(name, _)| name.clone())
    };
    let kinds: BTreeSet<String> = wrong.iter().map(kind).collect();
    let verb = if wrong.len() == 1 { "uses" } else { "use" };
    let detail = format!(
        "{} {} {verb} {} {}",
        plural("volume", wrong.len()),
        quoted(wrong.iter().map(|volume| text(volume, "name"))),
        plural("restricted volume type", kinds.len()),
        quoted(kinds.iter().map(String::as_str)),
    );
    Some(Violation::new("restricted volume types", detail))
}

fn run_as_non_root(pod: Subject<'_>) -> Option<Violation> {
    if pod.has_user_namespace() {
        return None;
    }
    let reason = "runAsNonRoot != true";
    if let Some(setters) = pod.setters(|context| context["runAsNonRoot"] == false) {
        let detail = format!("{setters} must not set securityContext.runAsNonRoot=false");
        return Some(Violation::new(reason, detail));
    }
    if pod.spec["securityContext"]["runAsNonRoot"] == true {
        return None;
    }
    let names = pod.names(|container| container["securityContext"]["runAsNonRoot"].is_null());
    let who = containers(&names);
    let detail = || format!("pod or {who} must set securityContext.runAsNonRoot=true");
    (!names.is_empty()).then(|| Violation::new(reason, detail()))
}

fn run_as_user(pod: Subject<'_>) -> Option<Violation> {
    if pod.minor < 23 || pod.has_user_namespace() {
        return None;
    }
    let setters = pod.setters(|context| context["runAsUser"] == 0)?;
    Some(Violation::new("runAsUser=0", format!("{setters} must not set runAsUser=0")))
}

fn required_seccomp(pod: Subject<'_>) -> Option<Violation> {
    if pod.minor < 19 || pod.is_windows() {
        return None;
    }
    if let Some(wrong) = seccomp(pod) {
        return Some(wrong);
    }
    if seccomp_profile(&pod.spec["securityContext"]).is_some() {
        return None;
    }
    let names = pod.names(|container| seccomp_profile(&container["securityContext"]).is_none());
    let who = containers(&names);
    let detail = || {
        format!(
            "pod or {who} must set securityContext.seccompProfile.type to \"RuntimeDefault\" or \
             \"Localhost\""
        )
    };
    (!names.is_empty()).then(|| Violation::new("seccompProfile", detail()))
}
