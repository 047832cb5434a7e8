//! `nodes`: clients read and patch them.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::registry::builtin::checks::quantity_of;
use crate::registry::builtin::data::resource;
use crate::registry::builtin::{BuiltinType, FieldLabel, Hooks, Subresource, restore, warnings};
use crate::registry::strategy::{ProxyTarget, Strategy};
use kubeproof_apimachinery::object::validation::syntax::Syntax;
use kubeproof_apimachinery::schema::{FieldError, Path};
use kubeproof_apimachinery::table::column::{Cell, age, column, wide};

pub(super) fn nodes() -> BuiltinType {
    BuiltinType {
        subresources: &[Subresource {
            name: "proxy",
            verbs: super::pod::ANY,
            group: "",
            version: "v1",
            kind: "NodeProxyOptions",
            part: None,
        }],
        field_labels: &[FieldLabel {
            label: "spec.unschedulable",
            pointer: "/spec/unschedulable",
            absent: "false",
        }],
        columns: vec![
            column("Status", "string", Cell::Computed(status)),
            column("Roles", "string", Cell::Computed(roles)),
            age(),
            column("Version", "string", Cell::Computed(version)),
            wide("Internal-IP", "string", Cell::Computed(|node| address(node, "InternalIP"))),
            wide("External-IP", "string", Cell::Computed(|node| address(node, "ExternalIP"))),
            wide("OS-Image", "string", Cell::Computed(|node| info(node, "osImage"))),
            wide("Kernel-Version", "string", Cell::Computed(|node| info(node, "kernelVersion"))),
            wide(
                "Container-Runtime",
                "string",
                Cell::Computed(|node| info(node, "containerRuntimeVersion")),
            ),
        ],
        strategy: || Arc::new(NodeStrategy),
        hooks: Hooks {
            prepare_update: |new, old| restore(new, old, "status"),
            warn: warnings::cluster::node,
            checks_prefix: true,
            default: complete,
            validate,
            validate_update,
            validate_status: |new, old| [validate_update(new, old), validate(new)].concat(),
            is_new_generation: |_, _| false,
            keeps_status: true,
            ..Hooks::NONE
        },
        has_generation: false,
        ..resource("", "v1", "nodes")
    }
}

#[derive(Debug)]
struct NodeStrategy;

impl Strategy for NodeStrategy {
    fn proxy_target(&self) -> Option<ProxyTarget> {
        Some(ProxyTarget::Node)
    }
}

/// Fills in the allocatable resources, and makes both fields for ranges of addresses agree.
fn complete(node: &mut Value) {
    if let Some(status) = node.get_mut("status").filter(|status| status.is_object())
        && status["allocatable"].is_null()
        && status["capacity"].is_object()
    {
        status["allocatable"] = status["capacity"].clone();
    }
    let Some(spec) = node.get_mut("spec").filter(|spec| spec.is_object()) else { return };
    if let Some(range) = spec["podCIDR"].as_str().filter(|range| !range.is_empty()) {
        // Older clients know only this field.
        if spec["podCIDRs"][0] != range {
            spec["podCIDRs"] = json!([range]);
        }
    } else if let Some(range) = spec["podCIDRs"][0].as_str().map(str::to_owned) {
        spec["podCIDR"] = range.into();
    }
}

fn validate(node: &Value) -> Vec<FieldError> {
    let mut errors = validate_ranges(node);
    let root = Path::Root;
    let status = root.field("status");
    for field in ["capacity", "allocatable"] {
        let place = status.field(field);
        for (name, amount) in node["status"][field].as_object().into_iter().flatten() {
            let amount = amount.as_str().unwrap_or_default();
            errors.extend(quantity_of(name, amount, place.field(name)));
        }
    }
    let mut known = HashSet::new();
    for (index, taint) in node["spec"]["taints"].as_array().into_iter().flatten().enumerate() {
        // kube-apiserver names this field, although the taints are in `spec`.
        let place = format!("metadata.taints[{index}]");
        if !known.insert((&taint["key"], &taint["effect"])) {
            errors.push(FieldError::duplicate(&place, taint));
        }
        let value = taint["value"].as_str().unwrap_or_default();
        let whys = Syntax::LabelValue.check(value);
        let place = format!("{place}.value");
        errors.extend(whys.iter().map(|why| FieldError::invalid(&place, &taint["value"], why)));
    }
    errors.extend(validate_features(node));
    errors
}

/// The features are sorted, so none is twice.
fn validate_features(node: &Value) -> Vec<FieldError> {
    let features = node["status"]["declaredFeatures"].as_array();
    let features = features.map(Vec::as_slice).unwrap_or_default();
    let mut errors = Vec::new();
    for (index, feature) in features.iter().enumerate() {
        let place = format!("status.declaredFeatures[{index}]");
        let name = feature.as_str().unwrap_or_default();
        if !is_feature(name) {
            let why = format!("invalid feature name {name:?}");
            errors.push(FieldError::invalid(&place, feature, &why));
        }
        let last = index.checked_sub(1).and_then(|last| features[last].as_str());
        if last == Some(name) {
            errors.push(FieldError::duplicate(&place, feature));
        } else if last.is_some_and(|last| last > name) {
            let why = "list must be sorted alphabetically";
            errors.push(FieldError::invalid(&place, feature, why));
        }
    }
    errors
}

/// Reports whether a name is like `MyFeature` or `MyFeature/mySubFeature`.
fn is_feature(name: &str) -> bool {
    let mut parts = name.split('/');
    let is_word =
        |part: &str| !part.is_empty() && part.chars().all(|letter| letter.is_ascii_alphanumeric());
    name.starts_with(|first: char| first.is_ascii_uppercase()) && parts.all(is_word)
}

fn validate_ranges(node: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let root = Path::Root;
    let spec = root.field("spec");
    let place = spec.field("podCIDRs");
    let ranges = &node["spec"]["podCIDRs"];
    let texts = || ranges.as_array().into_iter().flatten().filter_map(Value::as_str);
    for (index, text) in texts().enumerate() {
        errors.extend(Syntax::Cidr.errors(text, place.index(index)));
    }
    let of_version_6 = texts().filter(|range| range.contains(':')).count();
    if of_version_6 > 1 || texts().count() - of_version_6 > 1 {
        let why = "may specify no more than one CIDR for each IP family";
        errors.push(FieldError::invalid(place, ranges, why));
    }
    errors
}

fn validate_update(new: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut known = Vec::new();
    let addresses = new["status"]["addresses"].as_array().into_iter().flatten();
    for (index, address) in addresses.enumerate() {
        if known.contains(&address) {
            errors.push(FieldError::duplicate(format!("status.addresses[{index}]"), address));
        }
        known.push(address);
    }
    let id = &new["spec"]["externalID"];
    if !id.is_null() && *id != old["spec"]["externalID"] {
        errors.push(FieldError::forbidden("spec.externalID", "may not be updated"));
    }
    for (field, shown) in [("podCIDRs", "podCIDR"), ("providerID", "providerID")] {
        let (before, now) = (&old["spec"][field], &new["spec"][field]);
        if !before.is_null() && before != now {
            let why = format!("node updates may not change {shown} except from \"\" to valid");
            errors.push(FieldError::forbidden(format!("spec.{field}"), &why));
        }
    }
    errors
}

fn status(node: &Value) -> Value {
    let conditions = node["status"]["conditions"].as_array().into_iter().flatten();
    let mut ready = conditions
        .filter(|condition| condition["type"] == "Ready")
        .map(|condition| &condition["status"]);
    let mut text = match ready.next_back().and_then(Value::as_str) {
        Some("True") => "Ready".to_owned(),
        Some(_) => "NotReady".to_owned(),
        None => "Unknown".to_owned(),
    };
    if node["spec"]["unschedulable"] == true {
        text.push_str(",SchedulingDisabled");
    }
    json!(text)
}

fn roles(node: &Value) -> Value {
    let labels = node["metadata"]["labels"].as_object().into_iter().flatten();
    let roles: Vec<&str> =
        labels.filter_map(|(key, _)| key.strip_prefix("node-role.kubernetes.io/")).collect();
    if roles.is_empty() { json!("<none>") } else { json!(roles.join(",")) }
}

fn version(node: &Value) -> Value {
    json!(node["status"]["nodeInfo"]["kubeletVersion"].as_str().unwrap_or_default())
}

fn info(node: &Value, field: &str) -> Value {
    let text = node["status"]["nodeInfo"][field].as_str().filter(|text| !text.is_empty());
    json!(text.unwrap_or("<unknown>"))
}

fn address(node: &Value, kind: &str) -> Value {
    let mut addresses = node["status"]["addresses"].as_array().into_iter().flatten();
    addresses
        .find(|entry| entry["type"] == kind)
        .map_or(json!("<none>"), |entry| entry["address"].clone())
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(json!({"status": {"capacity": {"cpu": "-1"}}}), &["status.capacity.cpu"])]
    #[case(json!({"status": {"allocatable": {"pods": "1500m"}}}), &["status.allocatable.pods"])]
    #[case(json!({"spec": {"taints": [{"key": "a", "effect": "NoSchedule"},
                                      {"key": "a", "effect": "NoExecute"}]}}), &[])]
    #[case(json!({"spec": {"taints": [{"key": "a", "effect": "NoSchedule"},
                                      {"key": "a", "effect": "NoSchedule"}]}}),
           &["metadata.taints[1]"])]
    #[case(json!({"spec": {"taints": [{"key": "a", "effect": "NoSchedule", "value": "b c"}]}}),
           &["metadata.taints[0].value"])]
    #[case(json!({"status": {"declaredFeatures": ["A", "B/c", "B/c", "A", "d"]}}),
           &["status.declaredFeatures[2]", "status.declaredFeatures[3]",
             "status.declaredFeatures[4]"])]
    fn nodes_are_validated(#[case] node: Value, #[case] expected: &[&str]) {
        let errors = validate(&node);
        assert_eq!(errors.iter().map(|error| &*error.field).collect::<Vec<_>>(), expected);
    }

    #[rstest]
    #[case(json!({"podCIDR": "10.0.0.0/24"}), &["10.0.0.0/24"], &[])]
    #[case(json!({"podCIDRs": ["10.0.0.0/24", "fd00::/64"]}), &["10.0.0.0/24", "fd00::/64"], &[])]
    #[case(
        json!({"podCIDR": "10.0.1.0/24", "podCIDRs": ["10.0.0.0/24"]}), &["10.0.1.0/24"], &[]
    )]
    #[case(json!({"podCIDR": "x"}), &["x"], &["spec.podCIDRs[0]"])]
    #[case(
        json!({"podCIDRs": ["10.0.0.0/24", "10.0.1.0/24"]}),
        &["10.0.0.0/24", "10.0.1.0/24"],
        &["spec.podCIDRs"]
    )]
    fn both_fields_for_ranges_agree(
        #[case] spec: Value,
        #[case] ranges: &[&str],
        #[case] mistakes: &[&str],
    ) {
        let mut node = json!({"spec": spec, "status": {"capacity": {"cpu": "1"}}});
        complete(&mut node);
        assert_eq!(node["spec"], json!({"podCIDR": ranges[0], "podCIDRs": ranges}));
        assert_eq!(node["status"]["allocatable"], json!({"cpu": "1"}));
        let errors = validate(&node);
        assert_eq!(errors.iter().map(|error| &*error.field).collect::<Vec<_>>(), mistakes);
    }

    #[test]
    fn a_provider_is_final_and_addresses_are_unique() {
        let address = json!({"type": "InternalIP", "address": "10.1.0.1"});
        let old = json!({"spec": {"providerID": "a"}});
        let new = json!({"spec": {}, "status": {"addresses": [address, address]}});
        let errors = validate_update(&new, &old);
        let fields: Vec<_> = errors.iter().map(|error| &*error.field).collect();
        assert_eq!(fields, ["status.addresses[1]", "spec.providerID"]);
        assert_eq!(validate_update(&old, &json!({"spec": {}})), []);
    }

    #[test]
    fn a_node_shows_its_condition_and_roles() {
        let node = json!({
            "metadata": {"labels": {"node-role.kubernetes.io/control-plane": ""}},
            "spec": {"unschedulable": true},
            "status": {
                "conditions": [{"type": "Ready", "status": "True"}],
                "addresses": [{"type": "InternalIP", "address": "10.1.0.1"}],
            },
        });
        assert_eq!(status(&node), "Ready,SchedulingDisabled");
        assert_eq!(roles(&node), "control-plane");
        assert_eq!(address(&node, "InternalIP"), "10.1.0.1");
        assert_eq!(address(&node, "ExternalIP"), "<none>");
        assert_eq!((version(&node), info(&node, "osImage")), (json!(""), json!("<unknown>")));
    }
}
