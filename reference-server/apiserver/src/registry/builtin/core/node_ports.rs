//! The node ports of services of the types `NodePort` and `LoadBalancer`.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::RangeInclusive;

use kubeproof_apimachinery::schema::{FieldError, Path};
use serde_json::{Value, json};

use super::service_network::needs_health_port;

const RANGE: RangeInclusive<i32> = 30000..=32767;
const OUT_OF_RANGE: &str =
    "provided port is not in the valid range. The range of valid ports is 30000-32767";
const ALLOCATED: &str = "provided port is already allocated";

/// The allocated ports. A service gets the first free ones, so that tests can predict them.
#[derive(Debug, Default)]
pub(super) struct NodePorts {
    taken: BTreeSet<i32>,
}

impl NodePorts {
    /// Allocates the ports that a service needs and `old` does not have. An error allocates none.
    /// As in kube-apiserver, a dry run ignores the range.
    pub(super) fn allocate(
        &mut self,
        service: &mut Value,
        old: &Value,
        dry_run: bool,
    ) -> Result<(), FieldError> {
        if !has_node_ports(service) {
            return Ok(());
        }
        let is_complete = service["spec"]["allocateLoadBalancerNodePorts"] != false;
        let held: BTreeSet<i32> = numbers(old).collect();
        let wanted: BTreeSet<i32> = numbers(service).collect();
        let is_free = |port: &i32| !self.taken.contains(port) && !held.contains(port);
        let mut free = RANGE.filter(is_free).filter(|port| !wanted.contains(port));
        let path = Path::Root.field("spec");
        let path = path.field("ports");
        // The protocols of a port of a new service share a node port.
        let mut shared = if old.is_null() { requested(service) } else { BTreeMap::new() };
        let mut known = BTreeSet::new();
        let mut added = BTreeSet::new();
        let ports = service["spec"].get_mut("ports").and_then(Value::as_array_mut);
        for (index, port) in ports.into_iter().flatten().enumerate() {
            let at = path.index(index);
            let reject = |why| FieldError::invalid(at.field("nodePort"), &port["nodePort"], why);
            let own = port["port"].as_i64().unwrap_or_default();
            let given = match number(port) {
                Some(given) => given,
                None if !is_complete => continue,
                None => {
                    let next = shared.get(&own).copied().or_else(|| free.next());
                    let next = next.ok_or_else(|| reject("range is full"))?;
                    port["nodePort"] = json!(next);
                    if old.is_null() {
                        shared.insert(own, next);
                    }
                    next
                }
            };
            let is_shared = !known.insert((own, given)) || !old.is_null();
            if !held.contains(&given) {
                let is_free = is_free(&given) && (is_shared || !added.contains(&given));
                check(given, is_free, dry_run)
                    .map_err(|why| FieldError::invalid(at.field("nodePort"), &json!(given), why))?;
                added.insert(given);
            }
        }
        if needs_health_port(service) {
            let given = match health_port(service) {
                Some(given) => given,
                None => free.next().ok_or_else(|| reject_health(service, "range is full"))?,
            };
            if !held.contains(&given) {
                check(given, is_free(&given), dry_run)
                    .map_err(|why| reject_health(service, why))?;
                added.insert(given);
            }
            service["spec"]["healthCheckNodePort"] = json!(given);
        }
        if !dry_run {
            self.taken.extend(added);
        }
        Ok(())
    }

    /// Replaces the allocated ports.
    pub(super) fn set_taken(&mut self, taken: BTreeSet<i32>) {
        self.taken = taken;
    }

    /// Releases the ports of `gone` that `kept` does not have.
    pub(super) fn release(&mut self, gone: &Value, kept: &Value) {
        let kept: BTreeSet<i32> = numbers(kept).collect();
        for port in numbers(gone).filter(|port| !kept.contains(port)) {
            self.taken.remove(&port);
        }
    }
}

fn check(port: i32, is_free: bool, dry_run: bool) -> Result<(), &'static str> {
    match (dry_run || RANGE.contains(&port), is_free) {
        (false, _) => Err(OUT_OF_RANGE),
        (true, false) => Err(ALLOCATED),
        (true, true) => Ok(()),
    }
}

/// Returns the first node port that the service asks for, for each of its ports.
fn requested(service: &Value) -> BTreeMap<i64, i32> {
    let ports = service["spec"]["ports"].as_array().into_iter().flatten().rev();
    ports.filter_map(|port| Some((port["port"].as_i64()?, number(port)?))).collect()
}

pub(super) fn has_node_ports(service: &Value) -> bool {
    matches!(service["spec"]["type"].as_str(), Some("NodePort" | "LoadBalancer"))
}

/// Keeps the ports that an update omits, and drops them if the new type has none.
pub(super) fn carry_over(new: &mut Value, old: &Value) {
    if !has_node_ports(old) {
        return;
    }
    let keep = has_node_ports(new);
    let field = "healthCheckNodePort";
    match (needs_health_port(new), needs_health_port(old)) {
        (true, true) if new["spec"].get(field).is_none() => {
            new["spec"][field] = old["spec"][field].clone();
        }
        // The client did not choose the port, so it need not remove it.
        (false, true) if new["spec"].get(field) == old["spec"].get(field) => {
            new["spec"].as_object_mut().and_then(|spec| spec.remove(field));
        }
        _ => {}
    }
    let unchanged = numbers(new).eq(numbers(old));
    let mut used: BTreeSet<i32> = numbers(new).collect();
    let ports = old["spec"]["ports"].as_array().into_iter().flatten();
    let by_name: HashMap<&Value, i32> =
        ports.filter_map(|port| Some((&port["name"], number(port)?))).collect();
    let ports = new["spec"].get_mut("ports").and_then(Value::as_array_mut);
    for fields in ports.into_iter().flatten().filter_map(Value::as_object_mut) {
        if !keep && unchanged {
            fields.remove("nodePort");
        } else if keep && fields.get("nodePort").is_none_or(|port| *port == json!(0)) {
            let name = fields.get("name").unwrap_or(&Value::Null);
            if let Some(port) = by_name.get(name).filter(|port| used.insert(**port)) {
                fields.insert("nodePort".to_owned(), json!(port));
            }
        }
    }
}

/// Rejects node ports of a type that has none, and a port that two ports with the same protocol
/// share.
pub(super) fn validate(service: &Value, errors: &mut Vec<FieldError>) {
    let root = Path::Root;
    let spec = root.field("spec");
    let path = spec.field("ports");
    let ports = service["spec"]["ports"].as_array().into_iter().flatten();
    if has_node_ports(service) {
        let mut known = BTreeSet::new();
        for (index, port) in ports.clone().enumerate().filter(|(_, it)| number(it).is_some()) {
            if !known.insert((port["protocol"].as_str(), number(port))) {
                let at = path.index(index);
                errors.push(FieldError::duplicate(at.field("nodePort"), &port["nodePort"]));
            }
        }
    }
    // kube-apiserver keeps the node ports of an external name, and allocates none.
    if service["spec"]["type"] == "ClusterIP" {
        for (index, _) in ports.enumerate().filter(|(_, port)| number(port).is_some()) {
            let at = path.index(index);
            let why = "may not be used when `type` is 'ClusterIP'";
            errors.push(FieldError::forbidden(at.field("nodePort"), why));
        }
    }
}

/// Returns the node ports of a service, including that for its health.
pub(super) fn numbers(service: &Value) -> impl Iterator<Item = i32> {
    let ports = service["spec"]["ports"].as_array().into_iter().flatten();
    ports.filter_map(number).chain(health_port(service))
}

fn health_port(service: &Value) -> Option<i32> {
    let port = service["spec"]["healthCheckNodePort"].as_i64();
    port.and_then(|port| i32::try_from(port).ok()).filter(|port| *port != 0)
}

fn reject_health(service: &Value, why: &str) -> FieldError {
    FieldError::invalid("spec.healthCheckNodePort", &service["spec"]["healthCheckNodePort"], why)
}

/// Returns the node port, unless it is absent or 0.
fn number(port: &Value) -> Option<i32> {
    port["nodePort"].as_i64().and_then(|port| i32::try_from(port).ok()).filter(|port| *port != 0)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn service(kind: &str, node_ports: &[i32]) -> Value {
        let ports: Vec<Value> = node_ports
            .iter()
            .enumerate()
            .map(|(index, node)| {
                json!({"name": format!("p{index}"), "port": 80 + index, "nodePort": node})
            })
            .collect();
        json!({"spec": {"type": kind, "ports": ports}})
    }

    fn ports(service: &Value) -> Vec<i32> {
        numbers(service).collect()
    }

    #[test]
    fn ports_are_allocated_kept_and_released() {
        let mut all = NodePorts::default();
        let mut first = service("NodePort", &[0, 30000]);
        all.allocate(&mut first, &Value::Null, false).unwrap();
        assert_eq!(ports(&first), [30001, 30000]);
        let mut dry = service("NodePort", &[0]);
        all.allocate(&mut dry, &Value::Null, true).unwrap();
        all.allocate(&mut service("NodePort", &[-1, 80]), &Value::Null, true).unwrap();
        let mut second = service("LoadBalancer", &[0]);
        all.allocate(&mut second, &Value::Null, false).unwrap();
        assert_eq!((ports(&dry), ports(&second)), (vec![30002], vec![30002]));

        let mut changed = service("NodePort", &[0, 31000]);
        carry_over(&mut changed, &first);
        all.allocate(&mut changed, &first, false).unwrap();
        assert_eq!(ports(&changed), [30001, 31000]);
        all.release(&first, &changed);
        assert_eq!(all.taken, [30001, 30002, 31000].into());

        let mut plain = changed.clone();
        plain["spec"]["type"] = json!("ClusterIP");
        carry_over(&mut plain, &changed);
        assert_eq!(ports(&plain), [0_i32; 0]);
        all.release(&changed, &plain);
        assert_eq!(all.taken, [30002].into());
    }

    #[rstest]
    #[case(30000, "provided port is already allocated")]
    #[case(80, "provided port is not in the valid range")]
    fn a_rejected_port_allocates_none(#[case] wanted: i32, #[case] message: &str) {
        let mut all = NodePorts::default();
        all.allocate(&mut service("NodePort", &[0]), &Value::Null, false).unwrap();
        let mut rejected = service("NodePort", &[0, wanted]);
        let error = all.allocate(&mut rejected, &Value::Null, false).unwrap_err();
        assert_eq!(error.field, "spec.ports[1].nodePort");
        assert!(error.message.contains(message), "{error}");
        assert_eq!(all.taken, [30000].into());
    }

    #[rstest]
    #[case(json!([{"port": 80}, {"port": 80, "nodePort": 31000}]), Some([31000, 31000]))]
    #[case(json!([{"port": 80}, {"port": 80}]), Some([30000, 30000]))]
    #[case(json!([{"port": 80}, {"port": 81}]), Some([30000, 30001]))]
    #[case(json!([{"port": 80, "nodePort": 31000}, {"port": 81, "nodePort": 31000}]), None)]
    fn the_protocols_of_a_port_share_a_node_port(
        #[case] list: Value,
        #[case] expected: Option<[i32; 2]>,
    ) {
        let mut service = json!({"spec": {"type": "NodePort", "ports": list}});
        let given = NodePorts::default().allocate(&mut service, &Value::Null, false);
        assert_eq!(given.is_ok().then(|| ports(&service)), expected.map(Vec::from));
    }

    #[test]
    fn two_ports_of_a_protocol_differ() {
        let ports = json!([{"nodePort": 31000}, {"nodePort": 31000, "protocol": "UDP"},
                           {"nodePort": 31000}]);
        let mut errors = Vec::new();
        validate(&json!({"spec": {"type": "NodePort", "ports": ports}}), &mut errors);
        let fields: Vec<_> = errors.into_iter().map(|error| error.field).collect();
        assert_eq!(fields, ["spec.ports[2].nodePort"]);
    }

    #[test]
    fn a_load_balancer_may_have_no_ports_and_a_cluster_ip_must_not() {
        let mut all = NodePorts::default();
        let mut balancer = service("LoadBalancer", &[0]);
        balancer["spec"]["allocateLoadBalancerNodePorts"] = json!(false);
        all.allocate(&mut balancer, &Value::Null, false).unwrap();
        assert_eq!(ports(&balancer), [0_i32; 0]);
        let mut errors = Vec::new();
        validate(&service("ClusterIP", &[30000]), &mut errors);
        assert_eq!(errors[0].field, "spec.ports[0].nodePort");
        let mut errors = Vec::new();
        validate(&service("ExternalName", &[1]), &mut errors);
        assert_eq!(errors, []);
    }
}
