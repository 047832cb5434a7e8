//! What an object uses of a quota.

use jiff::{SignedDuration, Timestamp};
use kubeproof_apimachinery::object::Object as _;
use kubeproof_apimachinery::schema::quantity::Quantity;
use serde_json::Value;

use crate::admission::resources::{self, ResourceList, Side};

/// The resource of an object, as quotas name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Evaluator<'a> {
    Pods,
    Services,
    Claims,
    /// The number of objects.
    Count {
        group: &'a str,
        plural: &'a str,
    },
}

const POD_RESOURCES: [&str; 11] = [
    "count/pods",
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
    "pods",
];
const SERVICE_RESOURCES: [&str; 4] =
    ["count/services", "services", "services.nodeports", "services.loadbalancers"];
const CLAIM_RESOURCES: [&str; 3] =
    ["count/persistentvolumeclaims", "persistentvolumeclaims", "requests.storage"];
/// The part of a name that follows the storage class.
const OF_CLASS: &str = ".storageclass.storage.k8s.io/";
/// The resources of the core group that a quota may name without `count/`.
const LEGACY_COUNTS: [&str; 4] =
    ["configmaps", "resourcequotas", "replicationcontrollers", "secrets"];
/// The resources that each container must specify if a quota limits them.
const REQUIRED: [&str; 6] =
    ["cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"];

impl<'a> Evaluator<'a> {
    /// Returns the evaluator of a resource.
    pub(super) fn of(group: &'a str, plural: &'a str) -> Self {
        match (group, plural) {
            ("", "pods") => Self::Pods,
            ("", "services") => Self::Services,
            ("", "persistentvolumeclaims") => Self::Claims,
            _ => Self::Count { group, plural },
        }
    }

    /// Returns whether updates can change the usage.
    pub(super) fn handles_updates(self) -> bool {
        matches!(self, Self::Services | Self::Claims)
    }

    /// Returns whether a resource of a quota is about objects of this kind.
    pub(super) fn tracks(self, name: &str) -> bool {
        match self {
            Self::Pods => {
                let requested = name.strip_prefix("requests.");
                let is_extended = requested.is_some_and(|name| name.contains('/'));
                let is_of_pages = requested.unwrap_or(name).starts_with("hugepages-");
                POD_RESOURCES.contains(&name) || is_of_pages || is_extended
            }
            Self::Services => SERVICE_RESOURCES.contains(&name),
            Self::Claims => {
                let own = name.split_once(OF_CLASS).map_or(name, |(_, own)| own);
                CLAIM_RESOURCES.contains(&own)
            }
            Self::Count { group, plural } => {
                name == count_name(group, plural)
                    || (group.is_empty() && name == plural && LEGACY_COUNTS.contains(&name))
            }
        }
    }

    /// Returns the usage of an object.
    pub(super) fn usage(self, object: &Value) -> ResourceList {
        let counted = |names: &[&str]| {
            let one = |name: &&str| ((*name).to_owned(), Quantity::whole(1));
            names.iter().map(one).collect::<ResourceList>()
        };
        match self {
            Self::Pods => {
                let mut usage = counted(&["count/pods"]);
                if !has_ended(object) {
                    let amounts = |side| resources::of_pod(&object["spec"], side);
                    usage.extend(compute(&amounts(Side::Requests), &amounts(Side::Limits)));
                }
                usage
            }
            Self::Services => {
                let (node_ports, load_balancers) = ports(&object["spec"]);
                let mut usage = counted(&["count/services", "services"]);
                usage.insert("services.nodeports".to_owned(), Quantity::whole(node_ports));
                let balancers = Quantity::whole(load_balancers);
                usage.insert("services.loadbalancers".to_owned(), balancers);
                usage
            }
            Self::Claims => of_claim(&object["spec"], counted(&CLAIM_RESOURCES[..2])),
            Self::Count { group, plural } => {
                let count = count_name(group, plural);
                let legacy = group.is_empty() && LEGACY_COUNTS.contains(&plural);
                if legacy { counted(&[&count, plural]) } else { counted(&[&count]) }
            }
        }
    }

    /// Returns which of these resources the containers of a pod must specify and do not.
    pub(super) fn constraint(self, object: &Value, limited: &[String]) -> Option<String> {
        if self != Self::Pods {
            return None;
        }
        let mut names: Vec<&str> = limited.iter().map(String::as_str).collect();
        names.retain(|name| REQUIRED.contains(name));
        names.sort_unstable();
        let mut missing = Vec::new();
        for name in names {
            let lists = ["containers", "initContainers"].into_iter();
            let containers =
                lists.flat_map(|list| object["spec"][list].as_array().into_iter().flatten());
            let without = containers.filter(|container| {
                let amounts = |side| resources::of_container(container, side);
                !compute(&amounts(Side::Requests), &amounts(Side::Limits)).contains_key(name)
            });
            let mut without: Vec<&str> =
                without.filter_map(|container| container["name"].as_str()).collect();
            without.sort_unstable();
            if !without.is_empty() {
                missing.push(format!("{name} for: {}", without.join(",")));
            }
        }
        (!missing.is_empty()).then(|| format!("must specify {}", missing.join("; ")))
    }
}

/// Returns `count/deployments.apps`.
fn count_name(group: &str, plural: &str) -> String {
    if group.is_empty() { format!("count/{plural}") } else { format!("count/{plural}.{group}") }
}

/// Returns whether a pod uses no resources any more: it is complete, or should be deleted by now.
fn has_ended(pod: &Value) -> bool {
    if matches!(pod["status"]["phase"].as_str(), Some("Failed" | "Succeeded")) {
        return true;
    }
    let grace = pod.pointer("/metadata/deletionGracePeriodSeconds").and_then(Value::as_i64);
    let deletion: Option<Timestamp> = pod.meta("deletionTimestamp").parse().ok();
    let Some((grace, deletion)) = grace.zip(deletion) else { return false };
    let end = deletion.checked_add(SignedDuration::from_secs(grace));
    end.is_ok_and(|end| end < Timestamp::now())
}

/// Returns the usage of requests and limits.
fn compute(requests: &ResourceList, limits: &ResourceList) -> ResourceList {
    let mut usage = ResourceList::from([("pods".to_owned(), Quantity::whole(1))]);
    for (name, amount) in requests {
        let is_native = matches!(name.as_str(), "cpu" | "memory" | "ephemeral-storage");
        if is_native || name.starts_with("hugepages-") {
            usage.insert(name.clone(), *amount);
        }
        if is_native || name.starts_with("hugepages-") || name.contains('/') {
            usage.insert(format!("requests.{name}"), *amount);
        }
    }
    for (name, amount) in limits {
        if matches!(name.as_str(), "cpu" | "memory" | "ephemeral-storage") {
            usage.insert(format!("limits.{name}"), *amount);
        }
    }
    usage
}

/// Returns the number of node ports and of load balancers of a service.
fn ports(spec: &Value) -> (i64, i64) {
    let ports = spec["ports"].as_array().map(Vec::as_slice).unwrap_or_default();
    let all = i64::try_from(ports.len()).unwrap_or(i64::MAX);
    let set = ports.iter().filter(|port| port["nodePort"].as_i64().is_some_and(|port| port > 0));
    match spec["type"].as_str() {
        Some("NodePort") => (all, 0),
        Some("LoadBalancer") if spec["allocateLoadBalancerNodePorts"] == false => {
            (i64::try_from(set.count()).unwrap_or(i64::MAX), 1)
        }
        Some("LoadBalancer") => (all, 1),
        _ => (0, 0),
    }
}

fn of_claim(spec: &Value, counts: ResourceList) -> ResourceList {
    let mut usage = counts;
    let class = spec["storageClassName"].as_str().unwrap_or_default();
    let with_class = |name: &str| format!("{class}{OF_CLASS}{name}");
    if !class.is_empty() {
        usage.insert(with_class("persistentvolumeclaims"), Quantity::whole(1));
    }
    let requests = resources::parse(&spec["resources"]["requests"]);
    if let Some(size) = requests.get("storage") {
        usage.insert("requests.storage".to_owned(), *size);
        if !class.is_empty() {
            usage.insert(with_class("requests.storage"), *size);
        }
    }
    usage
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    fn usage(plural: &str, object: &Value) -> Value {
        resources::to_value(&Evaluator::of("", plural).usage(object))
    }

    #[test]
    fn a_pod_uses_its_requests_and_limits_until_it_ends() {
        let resources = json!({
            "requests": {"cpu": "1", "example.com/gpu": "2"}, "limits": {"memory": "1Gi"},
        });
        let mut pod = json!({"spec": {"containers": [{"name": "c", "resources": resources}]}});
        let expected = json!({
            "count/pods": "1", "pods": "1", "cpu": "1", "requests.cpu": "1",
            "requests.example.com/gpu": "2", "limits.memory": "1Gi",
        });
        assert_eq!(usage("pods", &pod), expected);
        pod["status"] = json!({"phase": "Succeeded"});
        assert_eq!(usage("pods", &pod), json!({"count/pods": "1"}));
    }

    #[rstest]
    #[case("services", json!({"type": "NodePort", "ports": [{}, {}]}), "services.nodeports", "2")]
    #[case("services", json!({"type": "LoadBalancer", "ports": [{}]}), "services.nodeports", "1")]
    #[case(
        "services",
        json!({
            "type": "LoadBalancer", "ports": [{}], "allocateLoadBalancerNodePorts": false,
        }),
        "services.nodeports",
        "0"
    )]
    #[case("services", json!({"type": "ClusterIP", "ports": [{}]}), "services.loadbalancers", "0")]
    #[case("configmaps", json!({}), "configmaps", "1")]
    #[case("configmaps", json!({}), "count/configmaps", "1")]
    #[case(
        "persistentvolumeclaims",
        json!({"storageClassName": "a", "resources": {"requests": {"storage": "1Gi"}}}),
        "a.storageclass.storage.k8s.io/requests.storage",
        "1Gi"
    )]
    fn each_kind_has_its_own_usage(
        #[case] plural: &str,
        #[case] spec: Value,
        #[case] name: &str,
        #[case] expected: &str,
    ) {
        assert!(Evaluator::of("", plural).tracks(name));
        assert_eq!(usage(plural, &json!({"spec": spec}))[name], expected);
    }

    #[test]
    fn objects_of_other_groups_are_counted_by_their_full_name() {
        let evaluator = Evaluator::of("apps", "deployments");
        assert!(evaluator.tracks("count/deployments.apps"));
        assert!(!evaluator.tracks("count/deployments"));
        assert!(!Evaluator::of("example.com", "secrets").tracks("secrets"));
        let usage = resources::to_value(&evaluator.usage(&json!({})));
        assert_eq!(usage, json!({"count/deployments.apps": "1"}));
    }

    #[test]
    fn containers_must_specify_what_a_quota_limits() {
        let pod = json!({"spec": {"containers": [{"name": "b"}, {"name": "a"}]}});
        let limited = ["limits.memory", "requests.cpu", "pods"].map(str::to_owned);
        let error = Evaluator::Pods.constraint(&pod, &limited);
        let expected = "must specify limits.memory for: a,b; requests.cpu for: a,b";
        assert_eq!(error.as_deref(), Some(expected));
        assert_eq!(Evaluator::Pods.constraint(&pod, &["pods".to_owned()]), None);
    }
}
