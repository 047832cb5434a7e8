//! `exec`, `attach` and `portforward`.
//!
//! The checks run in the order of kube-apiserver: pod, container, node, and then the upgrade. The
//! kubelet of a node that the server did not create serves the streams of its pods.

use std::sync::Arc;

use http::Method;
use kubeproof_streaming::remotecommand::{self, ExecRequest};
use kubeproof_streaming::{Handshake, Upgrade, portforward};
use serde_json::Value;

use super::Call;
use super::kubelets::{self, Kubelet};
use crate::http::respond::ApiResponse;
use crate::kubelet_client::{KubeletClient, PodRef};
use crate::registry::backends::pod_ref;
use kubeproof_apimachinery::status::ApiError;

/// Serves one of the three subresources.
pub(super) async fn handle(mut call: Call, method: &Method) -> Result<ApiResponse, ApiError> {
    let stored = call.api.store.get(&call.ty.table, &call.key()).ok_or_else(|| call.not_found())?;
    let pod = call.ty.load(&stored);
    let forwards = call.info.subresource == "portforward";
    let container = if forwards { String::new() } else { container(&call, &pod)? };
    let ports = if forwards { ports(&call)? } else { Vec::new() };
    if pod.pointer("/spec/nodeName").and_then(Value::as_str).is_none_or(str::is_empty) {
        return Err(ApiError::bad_request(format!(
            "pod {} does not have a host assigned",
            call.info.name
        )));
    }
    if let Some(kubelet) = Kubelet::of_pod(&call, &pod)? {
        let parameters = kubelets::parameters(&call, &ports);
        let endpoint = if forwards { "portForward" } else { call.info.subresource.as_str() };
        let target = kubelets::target(endpoint, &call, &container, parameters);
        return kubelet.stream(call, method.clone(), &target).await;
    }
    let Some(upgrade) = call.upgrade.take() else {
        return Err(ApiError::bad_request("Upgrade request required"));
    };
    let Some(kubelet) = call.api.kubelet.get().cloned() else {
        return Err(ApiError::unreachable_node(
            "error dialing backend: no node of this name responds",
        ));
    };
    let pod = pod_ref(&pod);
    let handshake = if forwards {
        let uid = pod.uid.clone();
        let connect = move |port| kubelet.connect(pod.clone(), port);
        let target = portforward::Target::new(&call.info.name, uid, connect);
        portforward::serve(upgrade, &ports, target)
    } else {
        run(&call, upgrade, kubelet, pod, container)
    };
    Ok(call.switch(handshake))
}

fn run(
    call: &Call,
    upgrade: Upgrade,
    kubelet: Arc<dyn KubeletClient>,
    pod: PodRef,
    container: String,
) -> Handshake {
    let rejection = kubelet.rejection(&pod, &container);
    let attach = call.info.subresource == "attach";
    let start = move |request: ExecRequest| {
        if attach {
            kubelet.attach(pod, container, request)
        } else {
            kubelet.exec(pod, container, request)
        }
    };
    remotecommand::serve(upgrade, exec_request(call), rejection, start)
}

/// Reads `PodExecOptions` or `PodAttachOptions`.
fn exec_request(call: &Call) -> ExecRequest {
    let query = &call.query;
    ExecRequest {
        command: query.all("command").map(str::to_owned).collect(),
        stdin: query.flag("stdin"),
        stdout: query.flag("stdout"),
        stderr: query.flag("stderr"),
        tty: query.flag("tty"),
    }
}

/// Returns the container of the query, or the only one.
pub(super) fn container(call: &Call, pod: &Value) -> Result<String, ApiError> {
    let name = &call.info.name;
    let names = |list: &str| -> Vec<&str> {
        let all = pod["spec"][list].as_array().into_iter().flatten();
        all.filter_map(|container| container["name"].as_str()).collect()
    };
    let regular = names("containers");
    let Some(asked) = call.query.text("container") else {
        if let [only] = regular.as_slice() {
            return Ok((*only).to_owned());
        }
        let all = [names("initContainers"), regular, names("ephemeralContainers")].concat();
        let why = format!(
            "a container name must be specified for pod {name}, choose one of: [{}]",
            all.join(" ")
        );
        return Err(ApiError::bad_request(why));
    };
    let known = ["containers", "initContainers", "ephemeralContainers"];
    if known.iter().any(|list| names(list).contains(&asked)) {
        return Ok(asked.to_owned());
    }
    Err(ApiError::bad_request(format!("container {asked} is not valid for pod {name}")))
}

/// Reads `PodPortForwardOptions`. Only WebSocket with channels needs the ports.
fn ports(call: &Call) -> Result<Vec<String>, ApiError> {
    let mut ports = Vec::new();
    for port in
        call.query.all("ports").flat_map(|ports| ports.split(',')).filter(|port| !port.is_empty())
    {
        let why = match port.parse::<u16>() {
            Ok(_) => {
                ports.push(port.to_owned());
                continue;
            }
            Err(_) if port.bytes().all(|digit| digit.is_ascii_digit()) => "value out of range",
            Err(_) => "invalid syntax",
        };
        let why = format!("cannot convert to []int32: strconv.ParseUint: parsing {port:?}: {why}");
        return Err(ApiError::bad_request(why));
    }
    Ok(ports)
}
