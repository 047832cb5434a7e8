//! Scheduling constraints of a pod.

use kubeproof_apimachinery::schema::Schema;
use kubeproof_apimachinery::schema::build::{
    choice, definitions, int32, int64, list, string, time,
};
use kubeproof_apimachinery::schema::meta::label_selector;

definitions! {
    "io.k8s.api.core.v1"

    affinity Affinity {
        nodeAffinity: node_affinity(), podAffinity: pod_affinity(),
        podAntiAffinity: pod_anti_affinity(),
    }
    node_affinity NodeAffinity {
        preferredDuringSchedulingIgnoredDuringExecution: list(preferred_scheduling_term()),
        requiredDuringSchedulingIgnoredDuringExecution: node_selector(),
    }
    node_selector NodeSelector { need nodeSelectorTerms: list(node_selector_term()) }
    node_selector_term NodeSelectorTerm {
        matchExpressions: list(node_selector_requirement()),
        matchFields: list(node_selector_requirement()),
    }
    node_selector_requirement NodeSelectorRequirement {
        need key: string(),
        need operator: choice(&["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]),
        values: list(string()),
    }
    preferred_scheduling_term PreferredSchedulingTerm {
        need preference: node_selector_term(), need weight: int32().between(1, 100),
    }
    pod_affinity PodAffinity {
        preferredDuringSchedulingIgnoredDuringExecution: list(weighted_pod_affinity_term()),
        requiredDuringSchedulingIgnoredDuringExecution: list(pod_affinity_term()),
    }
    pod_anti_affinity PodAntiAffinity {
        preferredDuringSchedulingIgnoredDuringExecution: list(weighted_pod_affinity_term()),
        requiredDuringSchedulingIgnoredDuringExecution: list(pod_affinity_term()),
    }
    pod_affinity_term PodAffinityTerm {
        labelSelector: label_selector(), matchLabelKeys: list(string()),
        mismatchLabelKeys: list(string()), namespaceSelector: label_selector(),
        namespaces: list(string()), need topologyKey: string(),
    }
    weighted_pod_affinity_term WeightedPodAffinityTerm {
        need podAffinityTerm: pod_affinity_term(), need weight: int32().between(1, 100),
    }
    taint Taint {
        need effect: choice(&["NoSchedule", "PreferNoSchedule", "NoExecute"]), need key: string(),
        timeAdded: time(), value: string(),
    }
    toleration Toleration {
        effect: choice(&["NoSchedule", "PreferNoSchedule", "NoExecute"]), key: string(),
        operator: choice(&["Equal", "Exists"]), tolerationSeconds: int64(), value: string(),
    }
    topology_spread_constraint TopologySpreadConstraint {
        labelSelector: label_selector(), matchLabelKeys: list(string()),
        need maxSkew: int32().at_least(1), minDomains: int32(), nodeAffinityPolicy: string(),
        nodeTaintsPolicy: string(), need topologyKey: string(),
        need whenUnsatisfiable: choice(&["DoNotSchedule", "ScheduleAnyway"]),
    }
    pod_scheduling_gate PodSchedulingGate { need name: string() }
}
