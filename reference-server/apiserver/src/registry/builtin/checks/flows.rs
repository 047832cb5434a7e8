//! The rules and subjects of flow schemas.

use serde_json::{Value, json};

use super::{Checks, has, items, text};
use kubeproof_apimachinery::object::validation::names::{dns_label, dns_subdomain};
use kubeproof_apimachinery::schema::{FieldError, Path};

pub(super) const CHECKS: Checks = &[
    ("io.k8s.api.flowcontrol.v1.NonResourcePolicyRule", path_rule),
    ("io.k8s.api.flowcontrol.v1.PolicyRulesWithSubjects", rules),
    ("io.k8s.api.flowcontrol.v1.QueuingConfiguration", queuing),
    ("io.k8s.api.flowcontrol.v1.ResourcePolicyRule", resource_rule),
    ("io.k8s.api.flowcontrol.v1.ServiceAccountSubject", account),
    ("io.k8s.api.flowcontrol.v1.Subject", subject),
];

const VERBS: [&str; 9] =
    ["create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch"];
const ANY: &str = "*";
/// The bits of the hash that chooses the queues of a flow.
const MAX_HASH_BITS: f64 = 60.0;

fn rules(rules: &Value, path: Path<'_>) -> Vec<FieldError> {
    if !items(rules, "resourceRules").is_empty() || !items(rules, "nonResourceRules").is_empty() {
        return Vec::new();
    }
    let why = "at least one of resourceRules and nonResourceRules has to be non-empty";
    vec![FieldError::required(path, why)]
}

fn resource_rule(rule: &Value, path: Path<'_>) -> Vec<FieldError> {
    let mut errors: Vec<FieldError> = verbs(rule, path).into_iter().collect();
    for (field, what) in [("apiGroups", "api groups"), ("resources", "resources")] {
        errors.extend(lone_wildcard(rule, field, what, path));
    }
    let place = path.field("namespaces");
    let namespaces = items(rule, "namespaces");
    if namespaces.is_empty() && rule["clusterScope"] != true {
        let why = "resource rules that are not cluster scoped must supply at least one namespace";
        errors.push(FieldError::required(place, why));
    } else if namespaces.iter().any(|name| name == ANY) {
        errors.extend(lone_wildcard(rule, "namespaces", "namespaces", path));
    } else {
        for (index, name) in namespaces.iter().enumerate() {
            for why in dns_label(name.as_str().unwrap_or_default()) {
                let why =
                    format!("each member of this list must be '*' or a DNS-1123 label; {why}");
                errors.push(FieldError::invalid(place.index(index), name, &why));
            }
        }
    }
    errors
}

fn path_rule(rule: &Value, path: Path<'_>) -> Vec<FieldError> {
    let mut errors: Vec<FieldError> = verbs(rule, path).into_iter().collect();
    let urls = items(rule, "nonResourceURLs");
    if urls.iter().any(|url| url == ANY) {
        errors.extend(lone_wildcard(rule, "nonResourceURLs", "non-resource URLs", path));
        return errors;
    }
    let place = path.field("nonResourceURLs");
    for (index, url) in urls.iter().enumerate() {
        let why = mistake_in_path(url.as_str().unwrap_or_default());
        errors.extend(why.map(|why| FieldError::invalid(place.index(index), url, why)));
    }
    errors
}

fn verbs(rule: &Value, path: Path<'_>) -> Option<FieldError> {
    let verbs = items(rule, "verbs");
    if verbs.iter().any(|verb| verb == ANY) {
        return lone_wildcard(rule, "verbs", "verbs", path);
    }
    let is_known = |verb: &Value| verb.as_str().is_some_and(|verb| VERBS.contains(&verb));
    let error = || {
        let known = VERBS.map(Value::from);
        FieldError::not_supported(path.field("verbs"), &json!(verbs), &known)
    };
    (!verbs.iter().all(is_known)).then(error)
}

/// A wildcard is the only item of its list.
fn lone_wildcard(rule: &Value, field: &str, what: &str, path: Path<'_>) -> Option<FieldError> {
    let all = items(rule, field);
    let is_alone = all.len() < 2 || all.iter().all(|item| item != ANY);
    let why = format!("if '*' is present, must not specify other {what}");
    (!is_alone).then(|| FieldError::invalid(path.field(field), &json!(all), &why))
}

fn mistake_in_path(url: &str) -> Option<&'static str> {
    if url.is_empty() {
        return Some("must not be empty");
    }
    if !url.starts_with('/') {
        return Some("must start with slash");
    }
    if url.contains(' ') {
        return Some("must not contain white-space");
    }
    if url.contains("//") {
        return Some("must not contain double slash");
    }
    let is_wrong = match url.matches('*').count() {
        0 => false,
        1 => !url.ends_with("/*"),
        _ => true,
    };
    is_wrong.then_some("wildcard can only do suffix matching")
}

/// Each flow gets a hand of queues. The hash of the flow must have enough bits to choose it.
fn queuing(queuing: &Value, path: Path<'_>) -> Vec<FieldError> {
    let (Some(queues), Some(hand)) = (queuing["queues"].as_i64(), queuing["handSize"].as_i64())
    else {
        return Vec::new();
    };
    if queues < 1 || hand < 1 {
        return Vec::new();
    }
    let bits = (as_float(queues).log2() * as_float(hand)).ceil();
    let why = if hand > queues {
        format!("should not be greater than queues ({queues})")
    } else if bits > MAX_HASH_BITS {
        format!(
            "required entropy bits of deckSize {queues} and handSize {hand} should not be greater \
             than {MAX_HASH_BITS}"
        )
    } else {
        return Vec::new();
    };
    vec![FieldError::invalid(path.field("handSize"), &queuing["handSize"], &why)]
}

#[expect(clippy::cast_precision_loss, reason = "the fields are 32-bit integers")]
fn as_float(number: i64) -> f64 {
    number as f64
}

fn account(account: &Value, path: Path<'_>) -> Vec<FieldError> {
    let invalid = |field: &str, whys: Vec<String>| {
        let error = |why: &String| FieldError::invalid(path.field(field), &account[field], why);
        whys.iter().map(error).collect::<Vec<_>>()
    };
    let (name, namespace) = (text(account, "name"), text(account, "namespace"));
    let mut errors = Vec::new();
    if !matches!(name, "" | ANY) {
        errors.extend(invalid("name", dns_subdomain(name)));
    }
    if !namespace.is_empty() {
        errors.extend(invalid("namespace", dns_label(namespace)));
    }
    errors
}

fn subject(subject: &Value, path: Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let kind = text(subject, "kind");
    for (field, own) in [("user", "User"), ("group", "Group"), ("serviceAccount", "ServiceAccount")]
    {
        let place = path.field(field);
        if kind == own && !has(subject, field) {
            let why = format!("{field} is required when subject kind is '{own}'");
            errors.push(FieldError::required(place, &why));
        } else if kind != own && has(subject, field) {
            let why = format!("{field} is forbidden when subject kind is not '{own}'");
            errors.push(FieldError::forbidden(place, &why));
        }
    }
    errors
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::super::tests::mistakes;
    use super::*;

    #[rstest]
    #[case("PolicyRulesWithSubjects", json!({}), &["x"])]
    #[case("PolicyRulesWithSubjects", json!({"resourceRules": [{}]}), &[])]
    #[case("ResourcePolicyRule", json!({"verbs": ["get"]}), &["x.namespaces"])]
    #[case("ResourcePolicyRule", json!({"verbs": ["get"], "clusterScope": true}), &[])]
    #[case("ResourcePolicyRule", json!({"verbs": ["Get"], "clusterScope": true}), &["x.verbs"])]
    #[case("ResourcePolicyRule", json!({"verbs": ["*", "get"], "clusterScope": true}),
           &["x.verbs"])]
    #[case("ResourcePolicyRule", json!({"apiGroups": ["*", ""], "resources": ["*", "pods"],
                                        "namespaces": ["*", "a"]}),
           &["x.apiGroups", "x.resources", "x.namespaces"])]
    #[case("ResourcePolicyRule", json!({"namespaces": ["a", "B"]}), &["x.namespaces[1]"])]
    #[case("NonResourcePolicyRule",
           json!({"verbs": ["*"], "nonResourceURLs": ["/", "/a/*", "/a*", "a", "/a b", "//"]}),
           &["x.nonResourceURLs[2]", "x.nonResourceURLs[3]", "x.nonResourceURLs[4]",
             "x.nonResourceURLs[5]"])]
    #[case("NonResourcePolicyRule", json!({"nonResourceURLs": ["*", "/"]}),
           &["x.nonResourceURLs"])]
    #[case("QueuingConfiguration", json!({"queues": 64, "handSize": 8}), &[])]
    #[case("QueuingConfiguration", json!({"queues": 64, "handSize": 11}), &["x.handSize"])]
    #[case("QueuingConfiguration", json!({"queues": 2, "handSize": 3}), &["x.handSize"])]
    #[case("ServiceAccountSubject", json!({"name": "A", "namespace": "a.b"}),
           &["x.name", "x.namespace"])]
    #[case("ServiceAccountSubject", json!({"name": "*", "namespace": "a"}), &[])]
    #[case("Subject", json!({"kind": "User", "group": {}}), &["x.user", "x.group"])]
    fn flows_are_checked(#[case] name: &str, #[case] value: Value, #[case] expected: &[&str]) {
        assert_eq!(mistakes(name, &value), expected);
    }
}
