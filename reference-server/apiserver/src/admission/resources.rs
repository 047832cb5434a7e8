//! Amounts of resources: what containers and pods request, and sums of it.

use std::collections::BTreeMap;

use kubeproof_apimachinery::schema::quantity::Quantity;
use serde_json::Value;

/// Amounts by the name of the resource.
pub(crate) type ResourceList = BTreeMap<String, Quantity>;

/// Parses a list of amounts. Amounts that are no quantities are left out.
pub(crate) fn parse(list: &Value) -> ResourceList {
    let amounts = list.as_object().into_iter().flatten();
    amounts.filter_map(|(name, amount)| Some((name.clone(), quantity(amount)?))).collect()
}

fn quantity(amount: &Value) -> Option<Quantity> {
    match amount {
        Value::String(text) => Quantity::parse(text),
        Value::Number(number) => Quantity::parse(&number.to_string()),
        _ => None,
    }
}

/// Returns the list as it is in an object.
pub(crate) fn to_value(list: &ResourceList) -> Value {
    list.iter().map(|(name, amount)| (name.clone(), Value::from(amount.to_string()))).collect()
}

/// Adds the amounts of another list.
pub(crate) fn add(list: &mut ResourceList, other: &ResourceList) {
    for (name, amount) in other {
        list.entry(name.clone()).and_modify(|sum| *sum = sum.plus(*amount)).or_insert(*amount);
    }
}

fn raise(list: &mut ResourceList, other: &ResourceList) {
    for (name, amount) in other {
        let known = list.entry(name.clone()).or_insert(*amount);
        if *known < *amount {
            *known = *amount;
        }
    }
}

/// The two amounts of each resource that a container has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Requests,
    Limits,
}

impl Side {
    /// Returns the name of the field.
    pub(crate) fn field(self) -> &'static str {
        match self {
            Self::Requests => "requests",
            Self::Limits => "limits",
        }
    }
}

/// Returns the requests or the limits of a container.
pub(crate) fn of_container(container: &Value, side: Side) -> ResourceList {
    parse(&container["resources"][side.field()])
}

/// Returns the requests or the limits of a pod.
///
/// Containers run at the same time. Each init container runs alone, together with the sidecars
/// before it. Resources of the pod replace those of its containers.
pub(crate) fn of_pod(spec: &Value, side: Side) -> ResourceList {
    let list = |name: &str| spec[name].as_array().into_iter().flatten();
    let mut total = ResourceList::new();
    for container in list("containers") {
        add(&mut total, &of_container(container, side));
    }
    let mut sidecars = ResourceList::new();
    let mut highest = ResourceList::new();
    for container in list("initContainers") {
        let own = of_container(container, side);
        if container["restartPolicy"] == "Always" {
            add(&mut total, &own);
            add(&mut sidecars, &own);
            raise(&mut highest, &sidecars);
        } else {
            let mut together = own;
            add(&mut together, &sidecars);
            raise(&mut highest, &together);
        }
    }
    raise(&mut total, &highest);
    let of_whole_pod = parse(&spec["resources"][side.field()]);
    let is_shared = |name: &str| matches!(name, "cpu" | "memory") || name.starts_with("hugepages-");
    total.extend(of_whole_pod.into_iter().filter(|(name, _)| is_shared(name)));
    let mut overhead = parse(&spec["overhead"]);
    if side == Side::Limits {
        overhead.retain(|name, _| total.get(name).is_some_and(|limit| limit.nanos() != 0));
    }
    add(&mut total, &overhead);
    total
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_pod_needs_its_containers_or_its_largest_init_container() {
        let container = |cpu: &str, memory: &str| {
            let requests = json!({"cpu": cpu, "memory": memory});
            json!({"resources": {"requests": requests}})
        };
        let mut sidecar = container("100m", "1Mi");
        sidecar["restartPolicy"] = json!("Always");
        let mut spec = json!({
            "containers": [container("200m", "1Gi"), container("300m", "1Gi")],
            "initContainers": [sidecar, container("1", "1Mi")],
            "overhead": {"cpu": "1m", "memory": "1Mi"},
        });
        let requests = to_value(&of_pod(&spec, Side::Requests));
        assert_eq!(requests, json!({"cpu": "1101m", "memory": "2050Mi"}));
        assert_eq!(of_pod(&spec, Side::Limits), ResourceList::new(), "there are no limits");
        spec["resources"] = json!({"requests": {"cpu": "5", "example.com/a": "1"}});
        let requests = to_value(&of_pod(&spec, Side::Requests));
        assert_eq!(requests, json!({"cpu": "5001m", "memory": "2050Mi"}));
    }
}
