//! The status of pods, which kubelets and schedulers write.

use serde_json::{Value, json};

use super::reported;
use crate::registry::builtin::take_status_and_metadata;
use kubeproof_apimachinery::object::Object;
use kubeproof_apimachinery::object::validation::syntax::Syntax;
use kubeproof_apimachinery::schema::{FieldError, Path};

/// The conditions that Kubernetes defines. Others have qualified names.
const CONDITIONS: [&str; 3] = ["Initialized", "PodScheduled", "Ready"];

/// Copies the fields that a write to the status does not change. Old kubelets leave out the class
/// of a pod and its owners.
pub(super) fn prepare(new: &mut Value, old: &Value) {
    take_status_and_metadata(new, old);
    new.adopt_meta("ownerReferences", old);
    let class = old["status"]["qosClass"].clone();
    let is_absent = new["status"]["qosClass"].as_str().is_none_or(str::is_empty);
    if is_absent && !class.is_null() {
        new["status"]["qosClass"] = class;
    }
    if let Some(status) = new.get_mut("status") {
        complete_addresses(status);
    }
}

/// The first address has a field of its own, which precedes the list.
fn complete_addresses(status: &mut Value) {
    let (own, first) = (&status["podIP"], &status["podIPs"][0]["ip"]);
    match (own.as_str().unwrap_or_default(), first.as_str().unwrap_or_default()) {
        ("", "") => {}
        ("", first) => status["podIP"] = json!(first),
        (own, first) if own != first => status["podIPs"] = json!([{ "ip": own }]),
        _ => {}
    }
}

/// Returns the errors of a new status.
pub(super) fn validate(new: &Value, old: &Value) -> Vec<FieldError> {
    let root = Path::Root;
    let place = root.field("status");
    let (status, before) = (&new["status"], &old["status"]);
    let mut errors = conditions(status, place);
    if status["qosClass"] != before["qosClass"] {
        let why = "field is immutable";
        errors.push(FieldError::invalid(place.field("qosClass"), &status["qosClass"], why));
    }
    errors.extend(nominated_node(new, old, place.field("nominatedNodeName")));
    let generation = &status["observedGeneration"];
    if generation.as_i64().is_some_and(|generation| generation < 0) {
        let at = place.field("observedGeneration");
        errors.push(FieldError::invalid(at, generation, "must be a non-negative integer"));
    }
    for (statuses, containers) in [
        ("containerStatuses", Some("containers")),
        ("initContainerStatuses", Some("initContainers")),
        ("ephemeralContainerStatuses", None),
    ] {
        errors.extend(restarts(new, old, statuses, containers));
    }
    errors.extend(claims(new, place));
    let claim = place.field("extendedResourceClaimStatus");
    errors.extend(reported::extended_claim(new, claim));
    errors.extend(addresses(status, before, "podIPs", place));
    let first = &status["hostIPs"][0]["ip"];
    if !first.is_null() && *first != status["hostIP"] {
        let why = "must be equal to `hostIP`";
        errors.push(FieldError::invalid("status.hostIPs[0].ip", first, why));
    }
    errors.extend(addresses(status, before, "hostIPs", place));
    errors.extend(reported::validate(new, place));
    errors
}

fn items<'a>(value: &'a Value, field: &str) -> &'a [Value] {
    value[field].as_array().map(Vec::as_slice).unwrap_or_default()
}

fn conditions(status: &Value, place: Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let list = place.field("conditions");
    for (index, condition) in items(status, "conditions").iter().enumerate() {
        let at = list.index(index);
        if condition["observedGeneration"].as_i64().is_some_and(|generation| generation < 0) {
            let (at, value) = (at.field("observedGeneration"), &condition["observedGeneration"]);
            errors.push(FieldError::invalid(at, value, "must be a non-negative integer"));
        }
        let kind = condition["type"].as_str().unwrap_or_default();
        if !CONDITIONS.contains(&kind) {
            // kube-apiserver writes the field with a capital letter.
            errors.extend(Syntax::LabelKey.errors(kind, at.field("Type")));
        }
    }
    errors
}

/// A scheduler may nominate a node for a pod that has none.
fn nominated_node(new: &Value, old: &Value, place: Path<'_>) -> Vec<FieldError> {
    let name = new["status"]["nominatedNodeName"].as_str().unwrap_or_default();
    if name.is_empty() || old["status"]["nominatedNodeName"] == name {
        return Vec::new();
    }
    let mut errors = Syntax::DnsSubdomain.errors(name, place);
    if old["spec"]["nodeName"].as_str().is_some_and(|node| !node.is_empty()) {
        let why = "may not be set on pods that are already bound to a node";
        errors.push(FieldError::forbidden(place, why));
    }
    errors
}

/// Only a container that its policy restarts may run again.
fn restarts(new: &Value, old: &Value, statuses: &str, containers: Option<&str>) -> Vec<FieldError> {
    let spec = &old["spec"];
    if restarts_all(spec) {
        return Vec::new();
    }
    let mut errors = Vec::new();
    for (index, before) in items(&old["status"], statuses).iter().enumerate() {
        let terminated = &before["state"]["terminated"];
        let is_alive = |status: &Value| status["state"]["terminated"].is_null();
        let status = items(&new["status"], statuses).iter().find(|it| it["name"] == before["name"]);
        if terminated.is_null() || !status.is_some_and(is_alive) {
            continue;
        }
        let code = terminated["exitCode"].as_i64().unwrap_or(0);
        let container = containers
            .and_then(|list| items(spec, list).iter().find(|it| it["name"] == before["name"]));
        if !container.is_some_and(|container| restarts_after(container, spec, code)) {
            let place = format!("status.{statuses}[{index}].state");
            let why = "may not be transitioned to non-terminated state";
            errors.push(FieldError::forbidden(place, why));
        }
    }
    errors
}

/// Reports whether the end of a container can restart all others.
fn restarts_all(spec: &Value) -> bool {
    let containers = items(spec, "containers").iter().chain(items(spec, "initContainers"));
    let mut rules = containers.flat_map(|container| items(container, "restartPolicyRules"));
    rules.any(|rule| rule["action"] == "RestartAllContainers")
}

/// Reports whether a container restarts after it ended with an exit code.
fn restarts_after(container: &Value, spec: &Value, code: i64) -> bool {
    let applies = |rule: &Value| {
        let codes = &rule["exitCodes"];
        let is_listed = items(codes, "values").iter().any(|value| *value == code);
        match codes["operator"].as_str() {
            Some("In") => is_listed,
            Some("NotIn") => !is_listed,
            _ => false,
        }
    };
    let mut rules = items(container, "restartPolicyRules").iter();
    if rules.any(|rule| rule["action"] == "Restart" && applies(rule)) {
        return true;
    }
    let policy = container["restartPolicy"].as_str().or(spec["restartPolicy"].as_str());
    match policy {
        Some("Never") => false,
        Some("OnFailure") => code != 0,
        _ => true,
    }
}

/// The status of a claim names a claim of the spec.
fn claims(pod: &Value, place: Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let list = place.field("resourceClaimStatuses");
    let known = items(&pod["spec"], "resourceClaims");
    for (index, status) in items(&pod["status"], "resourceClaimStatuses").iter().enumerate() {
        let name = json!(status["name"].as_str().unwrap_or_default());
        if !known.iter().any(|claim| claim["name"] == name) {
            let why = "must match the name of an entry in `spec.resourceClaims`";
            let at = list.index(index);
            errors.push(FieldError::invalid(at.field("name"), &name, why));
        }
    }
    errors
}

/// Each family has one address. Addresses that are stored stay valid.
fn addresses(status: &Value, before: &Value, field: &str, place: Path<'_>) -> Vec<FieldError> {
    let at = place.field(field);
    let text = |entry: &'_ Value| entry["ip"].as_str().unwrap_or_default().to_owned();
    let new: Vec<String> = items(status, field).iter().map(text).collect();
    let old: Vec<String> = items(before, field).iter().map(text).collect();
    let mut errors = Vec::new();
    for (index, address) in new.iter().enumerate().filter(|(_, address)| !old.contains(address)) {
        errors.extend(Syntax::Ip.errors(address, at.index(index)));
    }
    let of_version_6 = new.iter().filter(|address| address.contains(':')).count();
    if of_version_6 > 1 || new.len() - of_version_6 > 1 {
        let why = "may specify no more than one IP for each IP family";
        errors.push(FieldError::invalid(at, &status[field], why));
    }
    errors
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn fields(new: &Value, old: &Value) -> Vec<String> {
        validate(new, old).into_iter().map(|error| error.field).collect()
    }

    #[rstest]
    #[case(json!({"conditions": [{"type": "Ready"}, {"type": "a.b/c"}]}), &[])]
    #[case(json!({"conditions": [{"type": "a b", "observedGeneration": -1}]}),
           &["status.conditions[0].observedGeneration", "status.conditions[0].Type"])]
    #[case(json!({"observedGeneration": -1}), &["status.observedGeneration"])]
    #[case(json!({"qosClass": "Guaranteed"}), &["status.qosClass"])]
    #[case(json!({"nominatedNodeName": "A"}), &["status.nominatedNodeName"])]
    #[case(json!({"resourceClaimStatuses": [{"name": "a"}]}),
           &["status.resourceClaimStatuses[0].name"])]
    #[case(json!({"podIPs": [{"ip": "10.0.0.1"}, {"ip": "fd00::1"}]}), &[])]
    #[case(json!({"podIPs": [{"ip": "10.0.0.1"}, {"ip": "10.0.0.2"}]}), &["status.podIPs"])]
    #[case(json!({"podIPs": [{"ip": "x"}]}), &["status.podIPs[0]"])]
    #[case(json!({"podIP": "x", "podIPs": [{"ip": "10.0.0.1"}]}), &["status.podIPs[0]"])]
    #[case(json!({"podIP": "x"}), &["status.podIPs[0]"])]
    #[case(json!({"hostIP": "10.0.0.1", "hostIPs": [{"ip": "10.0.0.2"}]}),
           &["status.hostIPs[0].ip"])]
    fn a_status_is_validated(#[case] status: Value, #[case] expected: &[&str]) {
        let old = json!({"spec": {}, "status": {"qosClass": "Burstable"}});
        let mut new = json!({"spec": {}, "status": status});
        prepare(&mut new, &old);
        assert_eq!(fields(&new, &old), expected);
    }

    #[test]
    fn a_bound_pod_gets_no_nomination() {
        let old = json!({"spec": {"nodeName": "n"}, "status": {}});
        let new = json!({"spec": {"nodeName": "n"}, "status": {"nominatedNodeName": "a"}});
        assert_eq!(fields(&new, &old), ["status.nominatedNodeName"]);
    }

    #[rstest]
    #[case(json!({"restartPolicy": "Always"}), json!({}), 1, true)]
    #[case(json!({"restartPolicy": "OnFailure"}), json!({}), 1, true)]
    #[case(json!({"restartPolicy": "OnFailure"}), json!({}), 0, false)]
    #[case(json!({"restartPolicy": "Never"}), json!({}), 1, false)]
    #[case(json!({"restartPolicy": "Never"}), json!({"restartPolicy": "Always"}), 0, true)]
    #[case(
        json!({"restartPolicy": "Never"}),
        json!({"restartPolicyRules": [
            {"action": "Restart", "exitCodes": {"operator": "In", "values": [3]}},
        ]}),
        3, true
    )]
    #[case(
        json!({"restartPolicy": "Never"}),
        json!({"restartPolicyRules": [{"action": "RestartAllContainers"}]}),
        3, true
    )]
    fn a_container_runs_again_if_its_policy_restarts_it(
        #[case] mut spec: Value,
        #[case] mut container: Value,
        #[case] code: i64,
        #[case] is_valid: bool,
    ) {
        container["name"] = json!("c");
        spec["containers"] = json!([container]);
        let status = |state: Value| json!({"containerStatuses": [{"name": "c", "state": state}]});
        let old =
            json!({"spec": spec, "status": status(json!({"terminated": {"exitCode": code}}))});
        let new = json!({"spec": spec, "status": status(json!({"running": {}}))});
        assert_eq!(fields(&new, &old).is_empty(), is_valid);
    }
}
