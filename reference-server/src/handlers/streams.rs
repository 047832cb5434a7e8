//! `exec`, `attach` and `portforward`: what a request for a stream must get right before there is one.
//!
//! The order is that of a real server, which looks for the pod, then at the container, then for the node, and only then
//! whether the connection can be upgraded at all.

use http::{Method, StatusCode};
use serde_json::Value;

use super::Call;
use crate::Fault;
use crate::object::Object;
use crate::respond::Answer;
use crate::runtime::{ExecRequest, PodKey, Runtime, StartError, State};
use crate::status::ApiError;
use crate::streams::command::{self, Refusal};
use crate::streams::{Upgrade, forward};

/// Answers a request for one of the three subresources.
pub(super) fn handle(mut call: Call, method: &Method) -> Result<Answer, ApiError> {
    let faults = call.faults();
    if faults.on(Fault::ExecByGetRefused) && method == Method::GET
        || faults.on(Fault::ExecByPostRefused) && method == Method::POST
    {
        return Err(ApiError::method_not_allowed());
    }
    let Some(stored) = call.api.store.get(&call.ty.table, &call.key()) else {
        return missing(call);
    };
    let pod = call.ty.load(&stored, faults);
    let forwards = call.info.subresource == "portforward";
    let container = if forwards { String::new() } else { container(&call, &pod)? };
    let ports = if forwards { ports(&call)? } else { Vec::new() };
    if pod.pointer("/spec/nodeName").and_then(Value::as_str).is_none_or(str::is_empty) {
        if faults.on(Fault::UnscheduledPodMissing) {
            return Err(call.not_found());
        }
        return Err(ApiError::bad_request(format!("pod {} does not have a host assigned", call.info.name)));
    }
    let Some(upgrade) = call.upgrade.take() else {
        if faults.on(Fault::UpgradeNotRequired) {
            return Ok(Answer::text(StatusCode::OK, ""));
        }
        return Err(ApiError::bad_request("Upgrade request required"));
    };
    let Some(runtime) = call.api.runtime.get().cloned() else {
        return Err(ApiError::unreachable_node("error dialing backend: no node of this name answers"));
    };
    let key = key(&pod);
    let reply = if forwards {
        let uid = key.uid.clone();
        let connect = forward::connector(move |port| {
            let (runtime, key) = (runtime.clone(), key.clone());
            async move { runtime.connect(&key, port).await }
        });
        let target = forward::Target { pod: call.info.name.clone(), uid, connect };
        forward::serve(upgrade, &ports, target, faults)
    } else {
        run(&call, upgrade, runtime, key, container)
    };
    Ok(call.switch(reply))
}

/// Answers for a pod that there is not.
fn missing(mut call: Call) -> Result<Answer, ApiError> {
    let faults = call.faults();
    let forwards = call.info.subresource == "portforward";
    match call.upgrade.take().filter(|_| faults.on(Fault::MissingPodLeftToNode) && !forwards) {
        Some(upgrade) => {
            let why = format!("pod {:?} not found", call.info.name);
            let refusal = Some(Refusal { code: StatusCode::NOT_FOUND, why });
            let start = async |_| Err(StartError::NoSuchPod);
            Ok(call.switch(command::serve(upgrade, request(&call), refusal, start, faults)))
        }
        None => Err(call.not_found()),
    }
}

fn run(
    call: &Call,
    upgrade: Upgrade,
    runtime: Runtime,
    pod: PodKey,
    container: String,
) -> crate::streams::Reply {
    let faults = call.faults();
    let attach = call.info.subresource == "attach" && !faults.on(Fault::AttachRunsAnew);
    let refusal = refusal(&runtime, &pod, &container);
    let start = move |mut request: ExecRequest| async move {
        if attach {
            command::attaches(faults);
            request.stderr &= !faults.on(Fault::AttachWithoutStderr);
            runtime.attach(&pod, &container, request).await
        } else {
            runtime.exec(&pod, &container, request).await
        }
    };
    command::serve(upgrade, request(call), refusal, start, faults)
}

/// What the runtime knows a pod by.
pub(super) fn key(pod: &Value) -> PodKey {
    PodKey {
        namespace: pod.meta("namespace").to_owned(),
        name: pod.meta("name").to_owned(),
        uid: pod.meta("uid").to_owned(),
    }
}

/// Why the node would not even begin.
pub(crate) fn refusal(runtime: &Runtime, pod: &PodKey, container: &str) -> Option<Refusal> {
    let found =
        runtime.pod(pod).map_err(|error| Refusal { code: StatusCode::NOT_FOUND, why: error.to_string() });
    let state = found.and_then(|pod| match pod.container(container) {
        Ok(container) if matches!(container.view().state, State::Running { .. }) => Ok(()),
        // A node knows containers that run, and no others.
        _ => Err(Refusal {
            code: StatusCode::INTERNAL_SERVER_ERROR,
            why: format!("container not found ({container:?})"),
        }),
    });
    state.err()
}

/// `PodExecOptions` and `PodAttachOptions`.
fn request(call: &Call) -> ExecRequest {
    let (query, faults) = (&call.query, call.faults());
    let mut command: Vec<String> = query.all("command").map(str::to_owned).collect();
    if faults.on(Fault::CommandFirstOnly) {
        command.truncate(1);
    }
    if faults.on(Fault::CommandSplit) {
        command = command.join(" ").split(' ').map(str::to_owned).collect();
    }
    if faults.on(Fault::EmptyWordsDropped) {
        command.retain(|word| !word.is_empty());
    }
    ExecRequest {
        command,
        stdin: query.flag("stdin"),
        stdout: query.flag("stdout"),
        stderr: query.flag("stderr"),
        tty: query.flag("tty"),
    }
}

/// The container that is meant: the one that is named, or the only one.
pub(super) fn container(call: &Call, pod: &Value) -> Result<String, ApiError> {
    let faults = call.faults();
    let name = &call.info.name;
    let names = |list: &str| -> Vec<&str> {
        let all = pod["spec"][list].as_array().into_iter().flatten();
        all.filter_map(|container| container["name"].as_str()).collect()
    };
    let regular = names("containers");
    let first = regular.first().copied().unwrap_or_default();
    if faults.on(Fault::ContainerIgnored) {
        return Ok(first.to_owned());
    }
    let Some(asked) = call.query.text("container") else {
        if let [only] = regular.as_slice() {
            return Ok((*only).to_owned());
        }
        if faults.on(Fault::ContainerGuessed) {
            return Ok(first.to_owned());
        }
        let all = [names("initContainers"), regular, names("ephemeralContainers")].concat();
        let why =
            format!("a container name must be specified for pod {name}, choose one of: [{}]", all.join(" "));
        return Err(ApiError::bad_request(why));
    };
    let known = ["containers", "initContainers", "ephemeralContainers"];
    if known.iter().any(|list| names(list).contains(&asked)) {
        return Ok(asked.to_owned());
    }
    if faults.on(Fault::ContainerUnchecked) {
        return Ok(first.to_owned());
    }
    Err(ApiError::bad_request(format!("container {asked} is not valid for pod {name}")))
}

/// `PodPortForwardOptions`: only WebSocket with channels needs them, but whoever gives some gives numbers.
fn ports(call: &Call) -> Result<Vec<String>, ApiError> {
    let mut ports = Vec::new();
    for port in call.query.all("ports").flat_map(|ports| ports.split(',')).filter(|port| !port.is_empty()) {
        let why = match port.parse::<u16>() {
            Ok(_) => {
                ports.push(port.to_owned());
                continue;
            }
            Err(_) if call.faults().on(Fault::PortNumbersUnchecked) => continue,
            Err(_) if port.bytes().all(|digit| digit.is_ascii_digit()) => "value out of range",
            Err(_) => "invalid syntax",
        };
        let why = format!("cannot convert to []int32: strconv.ParseUint: parsing {port:?}: {why}");
        return Err(ApiError::bad_request(why));
    }
    Ok(ports)
}
