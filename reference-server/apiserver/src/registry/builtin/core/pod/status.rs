//! The status of a pod. It has no validation: fields that an observer omits are zero.

use super::container::resource_requirements;
use kubeproof_apimachinery::schema::Schema;
use kubeproof_apimachinery::schema::build::{
    boolean, definitions, int32, int64, list, map, quantity, string, time,
};

definitions! {
    "io.k8s.api.core.v1"

    pod_status PodStatus {
        conditions: list(pod_condition()).merge_by("type"),
        containerStatuses: list(container_status()),
        ephemeralContainerStatuses: list(container_status()), hostIP: string(),
        hostIPs: list(host_ip()).merge_by("ip"), initContainerStatuses: list(container_status()),
        message: string(), nominatedNodeName: string(), observedGeneration: int64(),
        phase: string(),
        podIP: string(), podIPs: list(pod_ip()).merge_by("ip"), qosClass: string(),
        reason: string(),
        resize: string(),
        resourceClaimStatuses: list(pod_resource_claim_status()).merge_by("name").retain_keys(),
        startTime: time(),
    }
    container_status ContainerStatus {
        allocatedResources: map(quantity()),
        allocatedResourcesStatus: list(resource_status()).merge_by("name"), containerID: string(),
        always image: string(), always imageID: string(), lastState: container_state(),
        always name: string(), always ready: boolean(), resources: resource_requirements(),
        always restartCount: int32(), started: boolean(), state: container_state(),
        stopSignal: string(),
        user: container_user(), volumeMounts: list(volume_mount_status()).merge_by("mountPath"),
    }
    container_state ContainerState {
        running: container_state_running(), terminated: container_state_terminated(),
        waiting: container_state_waiting(),
    }
    container_state_running ContainerStateRunning { startedAt: time() }
    container_state_terminated ContainerStateTerminated {
        containerID: string(), always exitCode: int32(), finishedAt: time(), message: string(),
        reason: string(), signal: int32(), startedAt: time(),
    }
    container_state_waiting ContainerStateWaiting { message: string(), reason: string() }
    container_user ContainerUser { linux: linux_container_user() }
    linux_container_user LinuxContainerUser {
        always gid: int64(), supplementalGroups: list(int64()), always uid: int64(),
    }
    resource_status ResourceStatus {
        always name: string(), resources: list(resource_health()).merge_by("resourceId"),
    }
    resource_health ResourceHealth { health: string(), always resourceID: string() }
    volume_mount_status VolumeMountStatus {
        always mountPath: string(), always name: string(), readOnly: boolean(),
        recursiveReadOnly: string(),
    }
    host_ip HostIP { always ip: string() }
    pod_condition PodCondition {
        lastProbeTime: time(), lastTransitionTime: time(), message: string(),
        observedGeneration: int64(),
        reason: string(), always status: string(), always type: string(),
    }
    pod_ip PodIP { always ip: string() }
    pod_resource_claim_status PodResourceClaimStatus {
        always name: string(), resourceClaimName: string(),
    }
}
