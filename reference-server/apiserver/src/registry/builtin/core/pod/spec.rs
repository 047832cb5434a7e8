//! The spec of a pod.

use super::container::{container, ephemeral_container, resource_requirements};
use super::scheduling::{affinity, pod_scheduling_gate, toleration, topology_spread_constraint};
use super::security::pod_security_context;
use super::volume::volume;
use kubeproof_apimachinery::schema::Schema;
use kubeproof_apimachinery::schema::build::{
    boolean, choice, definitions, int32, int64, list, map, quantity, string,
};
use kubeproof_apimachinery::schema::meta::object_meta;

definitions! {
    "io.k8s.api.core.v1"

    pod_template_spec PodTemplateSpec { metadata: object_meta(), spec: pod_spec().or_empty() }
    pod_spec PodSpec {
        activeDeadlineSeconds: int64().between(1, i32::MAX), affinity: affinity(),
        automountServiceAccountToken: boolean(),
        need containers: list(container()).merge_by("name"),
        dnsConfig: pod_dns_config(),
        dnsPolicy: choice(&["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"])
            .or("ClusterFirst"),
        enableServiceLinks: boolean(),
        ephemeralContainers: list(ephemeral_container()).merge_by("name"),
        hostAliases: list(host_alias()).merge_by("ip"), hostIPC: boolean(), hostNetwork: boolean(),
        hostPID: boolean(), hostUsers: boolean(), hostname: string(),
        hostnameOverride: string(),
        imagePullSecrets: list(local_object_reference()).merge_by("name"),
        initContainers: list(container()).merge_by("name"), nodeName: string(),
        nodeSelector: map(string()).atomic(), os: pod_os(), overhead: map(quantity()),
        preemptionPolicy: choice(&["Never", "PreemptLowerPriority"]), priority: int32(),
        priorityClassName: string(), readinessGates: list(pod_readiness_gate()),
        resourceClaims: list(pod_resource_claim()).merge_by("name").retain_keys(),
        resources: resource_requirements(),
        restartPolicy: choice(&["Always", "OnFailure", "Never"]).or("Always"),
        runtimeClassName: string(),
        schedulerName: string().or("default-scheduler"),
        schedulingGates: list(pod_scheduling_gate()).merge_by("name"),
        securityContext: pod_security_context().or_empty(), serviceAccount: string(),
        serviceAccountName: string(), setHostnameAsFQDN: boolean(),
        shareProcessNamespace: boolean(),
        subdomain: string(), terminationGracePeriodSeconds: int64().or(30),
        tolerations: list(toleration()),
        topologySpreadConstraints: list(topology_spread_constraint())
            .merge_by("topologyKey").keyed(&["topologyKey", "whenUnsatisfiable"]),
        volumes: list(volume()).merge_by("name").retain_keys(),
    }
    host_alias HostAlias { hostnames: list(string()), need ip: string() }
    pod_dns_config PodDNSConfig {
        nameservers: list(string()), options: list(pod_dns_config_option()),
        searches: list(string()),
    }
    pod_dns_config_option PodDNSConfigOption { name: string(), value: string() }
    pod_os PodOS { need name: string() }
    pod_readiness_gate PodReadinessGate { need conditionType: string() }
    pod_resource_claim PodResourceClaim {
        need name: string(), resourceClaimName: string(), resourceClaimTemplateName: string(),
    }
    local_object_reference LocalObjectReference { name: string().written_when_empty().or("") }
}
