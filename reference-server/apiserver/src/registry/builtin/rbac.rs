//! The group `rbac.authorization.k8s.io/v1`: roles and bindings. The module `authorization`
//! evaluates them.

use serde_json::{Value, json};

use super::data::resource;
use super::{BuiltinType, Hooks, NameRule, names};
use kubeproof_apimachinery::table::column::{Cell, age, column, wide};

use kubeproof_apimachinery::schema::FieldError;

/// The name of the group.
pub(crate) const GROUP: &str = "rbac.authorization.k8s.io";
/// The table of namespaced roles.
pub(crate) const ROLES: &str = "roles.rbac.authorization.k8s.io";
/// The table of cluster roles.
pub(crate) const CLUSTER_ROLES: &str = "clusterroles.rbac.authorization.k8s.io";
/// The table of namespaced bindings.
pub(crate) const ROLE_BINDINGS: &str = "rolebindings.rbac.authorization.k8s.io";
/// The table of cluster bindings.
pub(crate) const CLUSTER_BINDINGS: &str = "clusterrolebindings.rbac.authorization.k8s.io";

pub(super) fn types() -> Vec<BuiltinType> {
    let of = |plural: &str, hooks: Hooks| BuiltinType {
        name_rule: NameRule::PathSegment,
        allows_create_on_update: true,
        columns: vec![column("Created At", "date", Cell::Pointer("/metadata/creationTimestamp"))],
        hooks,
        ..resource(GROUP, "v1", plural)
    };
    let binding = |plural: &str, validate| BuiltinType {
        columns: vec![
            column("Role", "string", Cell::Computed(role)),
            age(),
            wide("Users", "string", Cell::Computed(|binding| subjects(binding, "User"))),
            wide("Groups", "string", Cell::Computed(|binding| subjects(binding, "Group"))),
            wide(
                "ServiceAccounts",
                "string",
                Cell::Computed(|binding| subjects(binding, "ServiceAccount")),
            ),
        ],
        ..of(
            plural,
            Hooks {
                default: default_binding,
                validate,
                validate_update: validate_role_ref,
                ..Hooks::NONE
            },
        )
    };
    let cluster_hooks = Hooks { validate: |role| validate_rules(role, false), ..Hooks::NONE };
    let hooks = Hooks { validate: |role| validate_rules(role, true), ..Hooks::NONE };
    vec![
        binding("clusterrolebindings", |binding| validate_binding(binding, false)),
        of("clusterroles", cluster_hooks),
        binding("rolebindings", |binding| validate_binding(binding, true)),
        of("roles", hooks),
    ]
}

fn validate_rules(role: &Value, namespaced: bool) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (index, rule) in role["rules"].as_array().into_iter().flatten().enumerate() {
        let at = |field: &str| format!("rules[{index}].{field}");
        let is_empty = |field: &str| rule[field].as_array().is_none_or(Vec::is_empty);
        if is_empty("verbs") {
            errors.push(FieldError::required(at("verbs"), "must contain at least one value"));
        }
        if !is_empty("nonResourceURLs") {
            let paths = &rule["nonResourceURLs"];
            if namespaced {
                let why = "a namespace has no paths outside of resources";
                errors.push(FieldError::invalid(at("nonResourceURLs"), paths, why));
            }
            if ["apiGroups", "resources", "resourceNames"].iter().any(|field| !is_empty(field)) {
                let why = "must not stand beside resources";
                errors.push(FieldError::invalid(at("nonResourceURLs"), paths, why));
            }
            continue;
        }
        for field in ["apiGroups", "resources"] {
            if is_empty(field) {
                errors.push(FieldError::required(at(field), "must contain at least one value"));
            }
        }
    }
    errors
}

fn validate_binding(binding: &Value, namespaced: bool) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let role = &binding["roleRef"];
    let kinds = if namespaced {
        vec![json!("Role"), json!("ClusterRole")]
    } else {
        vec![json!("ClusterRole")]
    };
    if text(role, "apiGroup") != GROUP {
        errors.push(FieldError::not_supported(
            "roleRef.apiGroup",
            &role["apiGroup"],
            &[json!(GROUP)],
        ));
    }
    if !kinds.contains(&role["kind"]) {
        errors.push(FieldError::not_supported("roleRef.kind", &role["kind"], &kinds));
    }
    if text(role, "name").is_empty() {
        errors.push(FieldError::required("roleRef.name", ""));
    }
    for why in names::path_segment(text(role, "name")) {
        errors.push(FieldError::invalid("roleRef.name", &role["name"], &why));
    }
    for (index, subject) in binding["subjects"].as_array().into_iter().flatten().enumerate() {
        errors.extend(validate_subject(subject, &format!("subjects[{index}]"), namespaced));
    }
    errors
}

fn validate_subject(subject: &Value, at: &str, namespaced: bool) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if text(subject, "name").is_empty() {
        errors.push(FieldError::required(format!("{at}.name"), ""));
    }
    let group = match text(subject, "kind") {
        "ServiceAccount" => {
            for why in names::dns_subdomain(text(subject, "name")) {
                errors.push(FieldError::invalid(format!("{at}.name"), &subject["name"], &why));
            }
            if !namespaced && text(subject, "namespace").is_empty() {
                errors.push(FieldError::required(format!("{at}.namespace"), ""));
            }
            ""
        }
        "User" | "Group" => GROUP,
        _ => {
            let known = [json!("ServiceAccount"), json!("User"), json!("Group")];
            errors.push(FieldError::not_supported(format!("{at}.kind"), &subject["kind"], &known));
            return errors;
        }
    };
    if text(subject, "apiGroup") != group {
        errors.push(FieldError::not_supported(
            format!("{at}.apiGroup"),
            &subject["apiGroup"],
            &[json!(group)],
        ));
    }
    errors
}

/// The role of a binding is immutable, because another role needs a new decision.
fn validate_role_ref(new: &Value, old: &Value) -> Vec<FieldError> {
    if new["roleRef"] == old["roleRef"] {
        return Vec::new();
    }
    vec![FieldError::invalid("roleRef", &new["roleRef"], "must not change")]
}

fn default_binding(binding: &mut Value) {
    let fill = |part: &mut Value| {
        if part.is_object() && text(part, "apiGroup").is_empty() {
            part["apiGroup"] = GROUP.into();
        }
    };
    binding.get_mut("roleRef").into_iter().for_each(fill);
    let subjects = binding.get_mut("subjects").and_then(Value::as_array_mut).into_iter().flatten();
    // A service account belongs to the core group, whose name is empty.
    subjects.filter(|subject| text(subject, "kind") != "ServiceAccount").for_each(fill);
}

fn role(binding: &Value) -> Value {
    json!(format!("{}/{}", text(&binding["roleRef"], "kind"), text(&binding["roleRef"], "name")))
}

/// Returns the names of the subjects of a kind.
fn subjects(binding: &Value, kind: &str) -> Value {
    let all = binding["subjects"].as_array().into_iter().flatten();
    let names: Vec<String> = all
        .filter(|subject| text(subject, "kind") == kind)
        .map(|subject| match text(subject, "namespace") {
            namespace if kind == "ServiceAccount" && !namespace.is_empty() => {
                format!("{namespace}/{}", text(subject, "name"))
            }
            _ => text(subject, "name").to_owned(),
        })
        .collect();
    json!(names.join(", "))
}

fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object.get(field).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn fields(errors: Vec<FieldError>) -> Vec<String> {
        errors.into_iter().map(|error| error.field).collect()
    }

    #[rstest]
    #[case(json!({"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}), &[])]
    #[case(json!({"verbs": ["get"], "resources": ["pods"]}), &["rules[0].apiGroups"])]
    #[case(json!({"apiGroups": [""], "resources": []}), &["rules[0].verbs", "rules[0].resources"])]
    #[case(json!({"verbs": ["get"], "nonResourceURLs": ["/"]}), &["rules[0].nonResourceURLs"])]
    fn rules_of_a_namespace(#[case] rule: Value, #[case] expected: &[&str]) {
        assert_eq!(fields(validate_rules(&json!({"rules": [rule]}), true)), expected);
    }

    #[test]
    fn a_rule_is_about_resources_or_about_paths() {
        let rule = json!({"verbs": ["get"], "nonResourceURLs": ["/"], "resources": ["pods"]});
        assert_eq!(
            fields(validate_rules(&json!({"rules": [rule]}), false)),
            ["rules[0].nonResourceURLs"]
        );
    }

    #[rstest]
    #[case(json!({"kind": "Role", "name": "r"}), json!({"kind": "User", "name": "u"}), &[])]
    #[case(
        json!({"kind": "Role", "name": "r"}),
        json!({"kind": "ServiceAccount", "name": "sa"}),
        &[]
    )]
    #[case(
        json!({"kind": "Pod", "name": ".."}),
        json!({"kind": "User", "name": "u"}),
        &["roleRef.kind", "roleRef.name"]
    )]
    #[case(
        json!({"kind": "Role"}),
        json!({"kind": "Robot", "name": "u"}),
        &["roleRef.name", "subjects[0].kind"]
    )]
    #[case(
        json!({"kind": "Role", "name": "r", "apiGroup": "x"}),
        json!({"kind": "Group", "apiGroup": "x"}),
        &["roleRef.apiGroup", "subjects[0].name", "subjects[0].apiGroup"]
    )]
    fn bindings(#[case] role: Value, #[case] subject: Value, #[case] expected: &[&str]) {
        let mut binding = json!({"roleRef": role, "subjects": [subject]});
        default_binding(&mut binding);
        assert_eq!(fields(validate_binding(&binding, true)), expected);
    }
}
