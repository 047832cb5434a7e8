//! The status of a pod: a pure function of the object and the state of its containers.

use std::net::IpAddr;

use serde_json::{Value, json};

use crate::runtime::{Container, Ended, Pod, RestartPolicy, State, View};
use kubeproof_apimachinery::object::timestamp;

/// Returns the current status. Conditions that do not change keep their times.
pub(super) fn status(object: &Value, pod: &Pod, host: IpAddr, ip: IpAddr) -> Value {
    let views = |containers: &[std::sync::Arc<Container>]| -> Vec<(String, View)> {
        containers.iter().map(|container| (container.name().to_owned(), container.view())).collect()
    };
    let (init, containers) = (views(&pod.init), views(&pod.containers));
    let phase = phase(pod, &init, &containers);
    let mut status = json!({
        "phase": phase,
        "hostIP": host.to_string(),
        "hostIPs": [{"ip": host.to_string()}],
        "podIP": ip.to_string(),
        "podIPs": [{"ip": ip.to_string()}],
        "startTime": seconds(pod.started),
        "conditions": conditions(object, pod, phase, &init, &containers),
        "containerStatuses": statuses(object, "containers", &containers),
    });
    if !init.is_empty() {
        status["initContainerStatuses"] = statuses(object, "initContainers", &init);
    }
    status
}

/// Merges a report of the kubelet into a status. Other fields and conditions stay.
pub fn merge_status(status: &Value, report: &Value) -> Value {
    let mut merged = status.as_object().cloned().unwrap_or_default();
    for (field, value) in report.as_object().into_iter().flatten() {
        merged.insert(field.clone(), value.clone());
    }
    let mut conditions = status["conditions"].as_array().cloned().unwrap_or_default();
    for condition in report["conditions"].as_array().into_iter().flatten() {
        match conditions.iter_mut().find(|old| old["type"] == condition["type"]) {
            Some(old) => old.clone_from(condition),
            None => conditions.push(condition.clone()),
        }
    }
    merged.insert("conditions".to_owned(), conditions.into());
    merged.into()
}

fn is_running(view: &View) -> bool {
    matches!(view.state, State::Running { .. })
}

fn ended(view: &View) -> Option<&Ended> {
    match &view.state {
        State::Terminated(ended) => Some(ended),
        _ => None,
    }
}

/// Returns true if the containers after this init container may start.
fn is_past(pod: &Pod, name: &str, view: &View) -> bool {
    let sidecar =
        pod.init.iter().any(|container| container.name() == name && container.is_sidecar());
    if sidecar { is_running(view) } else { ended(view).is_some_and(|ended| ended.code == 0) }
}

fn phase(pod: &Pod, init: &[(String, View)], containers: &[(String, View)]) -> &'static str {
    let stays = |ended: &Ended| match pod.restart_policy() {
        _ if pod.is_stopping() => true,
        RestartPolicy::Always => false,
        RestartPolicy::OnFailure => ended.code == 0,
        RestartPolicy::Never => true,
    };
    let failed = |(name, view): &(String, View)| {
        !is_past(pod, name, view)
            && ended(view).is_some_and(|ended| ended.code != 0 && stays(ended))
    };
    if init.iter().any(failed) {
        return "Failed";
    }
    let ends: Vec<&Ended> = containers.iter().filter_map(|(_, view)| ended(view)).collect();
    if ends.len() == containers.len() && ends.iter().all(|ended| stays(ended)) {
        return if ends.iter().all(|ended| ended.code == 0) { "Succeeded" } else { "Failed" };
    }
    if containers.iter().any(|(_, view)| !view.id.is_empty()) { "Running" } else { "Pending" }
}

fn conditions(
    object: &Value,
    pod: &Pod,
    phase: &str,
    init: &[(String, View)],
    containers: &[(String, View)],
) -> Value {
    let old = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let started = init.iter().all(|(name, view)| is_past(pod, name, view)) || phase == "Succeeded";
    let not_ready: Vec<&str> = containers
        .iter()
        .filter(|(_, view)| !is_running(view))
        .map(|(name, _)| name.as_str())
        .collect();
    let gates = object["spec"]["readinessGates"].as_array().into_iter().flatten();
    let open = gates.map(|gate| &gate["conditionType"]).all(|wanted| {
        old.iter().any(|condition| condition["type"] == *wanted && condition["status"] == "True")
    });
    let why = match phase {
        "Succeeded" => Some(("PodCompleted", String::new())),
        "Failed" => Some(("PodFailed", String::new())),
        _ if not_ready.is_empty() => None,
        _ => Some((
            "ContainersNotReady",
            format!("containers with unready status: [{}]", not_ready.join(" ")),
        )),
    };
    let why_not_open =
        || Some(("ReadinessGatesNotReady", "a readiness gate is not open".to_owned()));
    let ready = if why.is_none() && !open { why_not_open() } else { why.clone() };
    let uninitialized =
        Some(("ContainersNotInitialized", "init containers have yet to end".to_owned()));
    let mut conditions = vec![
        condition(&old, "PodReadyToStartContainers", None),
        condition(&old, "Initialized", uninitialized.filter(|_| !started)),
        condition(&old, "Ready", ready),
        condition(&old, "ContainersReady", why),
    ];
    // The scheduler sets this condition. A pod that was created with a node has no scheduler.
    if !old.iter().any(|condition| condition["type"] == "PodScheduled") {
        conditions.push(condition(&old, "PodScheduled", None));
    }
    conditions.into()
}

/// Returns a condition, which is true without a reason.
fn condition(old: &[Value], kind: &str, why_not: Option<(&str, String)>) -> Value {
    let status = if why_not.is_none() { "True" } else { "False" };
    let before =
        old.iter().find(|condition| condition["type"] == kind && condition["status"] == status);
    let since = before.and_then(|condition| condition["lastTransitionTime"].as_str());
    let mut condition = json!({
        "type": kind,
        "status": status,
        "lastProbeTime": null,
        "lastTransitionTime": since.map_or_else(|| timestamp(0), str::to_owned),
    });
    if let Some((reason, message)) = why_not {
        condition["reason"] = reason.into();
        if !message.is_empty() {
            condition["message"] = message.into();
        }
    }
    condition
}

fn statuses(object: &Value, field: &str, views: &[(String, View)]) -> Value {
    let specs = object["spec"][field].as_array();
    let spec = |name: &str| {
        let spec = specs.into_iter().flatten().find(|spec| spec["name"] == name);
        spec.unwrap_or(&Value::Null)
    };
    views.iter().map(|(name, view)| container_status(name, spec(name), view)).collect()
}

fn container_status(name: &str, spec: &Value, view: &View) -> Value {
    let image = spec["image"].as_str().unwrap_or_default();
    let running = is_running(view);
    let state = match &view.state {
        State::Waiting { reason } => json!({"waiting": {"reason": reason}}),
        State::Running { since } => json!({"running": {"startedAt": seconds(*since)}}),
        State::Terminated(ended) => terminated(ended),
    };
    let mut status = json!({
        "name": name,
        "image": image,
        "imageID": if view.id.is_empty() { String::new() } else { format!("kubeproof/{image}") },
        "ready": running,
        "restartCount": view.restarts,
        "started": running,
        "state": state,
        "lastState": view.last.as_ref().map_or_else(|| json!({}), terminated),
    });
    if !view.id.is_empty() {
        status["containerID"] = view.id.clone().into();
    }
    // The server permits a resize only on nodes that report the resources of running containers.
    if running {
        status["resources"] = spec.get("resources").cloned().unwrap_or_else(|| json!({}));
        if let Some(requests) = spec["resources"].get("requests") {
            status["allocatedResources"] = requests.clone();
        }
    }
    status
}

fn terminated(ended: &Ended) -> Value {
    let mut terminated = json!({
        "exitCode": ended.code,
        "reason": ended.reason,
        "startedAt": seconds(ended.started),
        "finishedAt": seconds(ended.finished),
        "containerID": ended.id,
    });
    if !ended.message.is_empty() {
        terminated["message"] = ended.message.clone().into();
    }
    json!({ "terminated": terminated })
}

fn seconds(time: jiff::Timestamp) -> String {
    jiff::Timestamp::from_second(time.as_second()).unwrap_or(time).to_string()
}

/// Returns true for a pod that never runs again.
pub(super) fn has_ended(object: &Value) -> bool {
    matches!(object["status"]["phase"].as_str(), Some("Succeeded" | "Failed"))
}
