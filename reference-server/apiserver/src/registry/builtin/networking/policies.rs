//! Network policies.

use ipnet::IpNet;
use serde_json::{Value, json};

use super::GROUP;
use crate::registry::builtin::data::{hooks, resource};
use crate::registry::builtin::{BuiltinType, Hooks};
use kubeproof_apimachinery::object::validation::addresses::cidr_warning;
use kubeproof_apimachinery::object::validation::syntax::Syntax;
use kubeproof_apimachinery::schema::{FieldError, Path};
use kubeproof_apimachinery::table::column::{Cell, age, column};

pub(super) fn network_policies() -> BuiltinType {
    BuiltinType {
        columns: vec![
            column(
                "Pod-Selector",
                "string",
                Cell::Computed(|policy| {
                    crate::registry::builtin::core::selector_text(
                        &policy["spec"]["podSelector"]["matchLabels"],
                    )
                }),
            ),
            age(),
        ],
        hooks: Hooks {
            default: |policy| {
                let spec = &mut policy["spec"];
                if spec["policyTypes"].as_array().is_none_or(Vec::is_empty) {
                    let has_egress = spec["egress"].as_array().is_some_and(|it| !it.is_empty());
                    let types =
                        if has_egress { json!(["Ingress", "Egress"]) } else { json!(["Ingress"]) };
                    spec["policyTypes"] = types;
                }
            },
            validate: validate_policy,
            warn: |policy, _| warnings(policy),
            ..hooks(false)
        },
        ..resource(GROUP, "v1", "networkpolicies")
    }
}

fn validate_policy(policy: &Value) -> Vec<FieldError> {
    let root = Path::Root;
    let spec = root.field("spec");
    let mut errors = Vec::new();
    let types = &policy["spec"]["policyTypes"];
    if types.as_array().is_some_and(|types| types.len() > 2) {
        let why = "may not specify more than two policyTypes";
        errors.push(FieldError::invalid(spec.field("policyTypes"), types, why));
    }
    for (direction, peers) in [("ingress", "from"), ("egress", "to")] {
        let list = spec.field(direction);
        for (index, rule) in policy["spec"][direction].as_array().into_iter().flatten().enumerate()
        {
            let at = list.index(index);
            let place = at.field(peers);
            for (index, peer) in rule[peers].as_array().into_iter().flatten().enumerate() {
                errors.extend(validate_peer(peer, place.index(index)));
            }
        }
    }
    errors
}

fn validate_peer(peer: &Value, place: Path<'_>) -> Vec<FieldError> {
    let selects = peer["podSelector"].is_object() || peer["namespaceSelector"].is_object();
    let block = &peer["ipBlock"];
    if block.is_object() && selects {
        let why = "may not specify both ipBlock and another peer";
        return vec![FieldError::forbidden(place, why)];
    }
    if !block.is_object() && !selects {
        return vec![FieldError::required(place, "must specify a peer")];
    }
    let range = block["cidr"].as_str().unwrap_or_default();
    let at = place.field("ipBlock");
    if range.is_empty() { Vec::new() } else { validate_block(block, at) }
}

/// Returns the errors of a range and of the smaller ranges that are no part of it.
fn validate_block(block: &Value, path: Path<'_>) -> Vec<FieldError> {
    let range = block["cidr"].as_str().unwrap_or_default();
    let mut errors = Syntax::Cidr.errors(range, path.field("cidr"));
    let Ok(whole) = range.parse::<IpNet>() else { return errors };
    let list = path.field("except");
    for (index, part) in block["except"].as_array().into_iter().flatten().enumerate() {
        let place = list.index(index);
        let text = part.as_str().unwrap_or_default();
        errors.extend(Syntax::Cidr.errors(text, place));
        let Ok(inner) = text.parse::<IpNet>() else { continue };
        if !whole.contains(&inner.network()) || whole.prefix_len() >= inner.prefix_len() {
            errors.push(FieldError::invalid(place, part, "must be a strict subset of `cidr`"));
        }
    }
    errors
}

/// Returns the warnings about the spelling of the ranges.
fn warnings(policy: &Value) -> Vec<String> {
    let mut warnings = Vec::new();
    for (direction, peers) in [("ingress", "from"), ("egress", "to")] {
        for (rule, item) in list(&policy["spec"], direction).enumerate() {
            for (peer, item) in list(item, peers).enumerate() {
                let block = &item["ipBlock"];
                let place = format!("spec.{direction}[{rule}].{peers}[{peer}].ipBlock");
                let range = block["cidr"].as_str().unwrap_or_default();
                warnings.extend(cidr_warning(range, &format!("{place}.cidr")));
                for (index, part) in list(block, "except").enumerate() {
                    let part = part.as_str().unwrap_or_default();
                    warnings.extend(cidr_warning(part, &format!("{place}.except[{index}]")));
                }
            }
        }
    }
    warnings
}

fn list<'v>(object: &'v Value, field: &str) -> impl Iterator<Item = &'v Value> {
    object[field].as_array().into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::super::tests::mistakes;
    use super::*;

    #[rstest]
    #[case(json!([{"ipBlock": {"cidr": "10.0.0.0/8"}}]), &[])]
    #[case(json!([{"podSelector": {}, "namespaceSelector": {}}]), &[])]
    #[case(json!([{"ipBlock": {"cidr": "10.0.0.0"}}]), &["spec.ingress[0].from[0].ipBlock.cidr"])]
    #[case(json!([{"ipBlock": {"cidr": "10.0.0.0/8", "except": ["10.0.0.0/24"]}}]), &[])]
    #[case(
        json!([{"ipBlock": {"cidr": "10.0.0.0/8", "except": ["10.0.0.0/8", "::/9"]}}]),
        &["spec.ingress[0].from[0].ipBlock.except[0]",
          "spec.ingress[0].from[0].ipBlock.except[1]"]
    )]
    #[case(json!([{}]), &["spec.ingress[0].from[0]"])]
    #[case(
        json!([{"podSelector": {}, "ipBlock": {"cidr": "10.0.0.0/8"}}]),
        &["spec.ingress[0].from[0]"]
    )]
    fn policies_are_validated(#[case] from: Value, #[case] expected: &[&str]) {
        let policy = json!({"spec": {"podSelector": {}, "ingress": [{"from": from}]}});
        assert_eq!(mistakes(&network_policies(), policy), expected);
    }

    #[test]
    fn ranges_have_a_usual_spelling() {
        let block = json!({"cidr": "A::/16", "except": ["a::/64", "A:0::/32"]});
        let policy = json!({"spec": {"egress": [{"to": [{"ipBlock": block}]}]}});
        let places: Vec<_> = warnings(&policy);
        assert_eq!(places.len(), 2);
        assert!(places[1].starts_with("spec.egress[0].to[0].ipBlock.except[1]: IPv6 CIDR value"));
    }
}
