//! The Node object that a kubelet registers.

use std::net::IpAddr;

use serde_json::{Value, json};

use kubeproof_apimachinery::object::{timestamp, uuid};

/// Returns the Node that a kubelet registers. `port` is that of its endpoint.
pub fn manifest(name: &str, address: IpAddr, port: u16) -> Value {
    let condition = |kind: &str, status: &str, reason: &str, message: &str| {
        let now = timestamp(0);
        json!({
            "type": kind, "status": status, "reason": reason, "message": message,
            "lastHeartbeatTime": now, "lastTransitionTime": now,
        })
    };
    let resources =
        json!({"cpu": "64", "memory": "256Gi", "pods": "10000", "ephemeral-storage": "256Gi"});
    let version = format!("kubeproof/{}", env!("CARGO_PKG_VERSION"));
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
                "kubernetes.io/arch": "amd64",
            },
        },
        "spec": {},
        "status": {
            "capacity": resources,
            "allocatable": resources,
            "conditions": [
                condition(
                    "MemoryPressure",
                    "False",
                    "KubeletHasSufficientMemory",
                    "there is enough memory",
                ),
                condition(
                    "DiskPressure",
                    "False",
                    "KubeletHasNoDiskPressure",
                    "there is enough space",
                ),
                condition(
                    "PIDPressure",
                    "False",
                    "KubeletHasSufficientPID",
                    "there are enough processes",
                ),
                condition("Ready", "True", "KubeletReady", "the scripted runtime is ready"),
            ],
            // A host name would make some API servers resolve it.
            "addresses": [{"type": "InternalIP", "address": address.to_string()}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
            "nodeInfo": {
                "machineID": name, "systemUUID": uuid(), "bootID": uuid(), "kernelVersion": "",
                "osImage": "kubeproof scripted runtime", "containerRuntimeVersion": version,
                "kubeletVersion": concat!("v1.36.0+kubeproof.", env!("CARGO_PKG_VERSION")),
                "kubeProxyVersion": "", "operatingSystem": "linux", "architecture": "amd64",
            },
        },
    })
}
