//! The group `admissionregistration.k8s.io/v1`: webhooks and admission policies.

use serde_json::{Value, json};

use super::checks::statuses;
use super::data::{hooks, resource};
use super::{BuiltinType, Hooks, expressions, warnings};
use crate::registry::client_config;
use kubeproof_apimachinery::object::Object;
use kubeproof_apimachinery::object::validation::names;
use kubeproof_apimachinery::object::validation::syntax::Syntax;
use kubeproof_apimachinery::schema::{FieldError, Path};
use kubeproof_apimachinery::table::column::{Cell, Column, age, column, count};

const GROUP: &str = "admissionregistration.k8s.io";

pub(super) fn types() -> Vec<BuiltinType> {
    vec![
        policies("mutatingadmissionpolicies", mutations(), validate_mutating_policy),
        bindings("mutatingadmissionpolicybindings", |binding| {
            no_deletion(&binding["spec"], "matchResources")
        }),
        webhooks("mutatingwebhookconfigurations"),
        policies("validatingadmissionpolicies", validations(), validate_validating_policy),
        bindings("validatingadmissionpolicybindings", validate_actions),
        webhooks("validatingwebhookconfigurations"),
    ]
}

fn mutations() -> Column {
    column("Mutations", "integer", Cell::Computed(|policy| json!(count(policy, "/spec/mutations"))))
}

fn validations() -> Column {
    let cell = Cell::Computed(|policy| json!(count(policy, "/spec/validations")));
    column("Validations", "integer", cell)
}

/// Returns the errors of an object.
type Validate = fn(&Value) -> Vec<FieldError>;

fn policies(plural: &str, expressions: Column, validate: Validate) -> BuiltinType {
    let data = resource(GROUP, "v1", plural);
    BuiltinType {
        allows_unconditional_update: false,
        columns: vec![
            expressions,
            column("ParamKind", "string", Cell::Computed(param_kind)),
            age(),
        ],
        hooks: Hooks {
            validate,
            validate_status: statuses::policy,
            warn: warnings::cluster::admission,
            ..hooks(data.has_status)
        },
        ..data
    }
}

fn bindings(plural: &str, validate: Validate) -> BuiltinType {
    BuiltinType {
        allows_unconditional_update: false,
        columns: vec![
            column("PolicyName", "string", Cell::Pointer("/spec/policyName")),
            column("ParamRef", "string", Cell::Computed(param_ref)),
            age(),
        ],
        hooks: Hooks { validate, warn: warnings::cluster::admission, ..Hooks::NONE },
        ..resource(GROUP, "v1", plural)
    }
}

fn webhooks(plural: &str) -> BuiltinType {
    BuiltinType {
        allows_unconditional_update: false,
        has_generation: true,
        columns: vec![
            column("Webhooks", "integer", Cell::Computed(|it| json!(count(it, "/webhooks")))),
            age(),
        ],
        hooks: Hooks {
            validate: validate_webhooks,
            warn: warnings::cluster::admission,
            is_new_generation: |new, old| new["webhooks"] != old["webhooks"],
            ..Hooks::NONE
        },
        ..resource(GROUP, "v1", plural)
    }
}

fn validate_webhooks(configuration: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let root = Path::Root;
    let list = root.field("webhooks");
    let mut known: Vec<&str> = Vec::new();
    for (index, webhook) in configuration["webhooks"].as_array().into_iter().flatten().enumerate() {
        let place = list.index(index);
        let name = webhook["name"].as_str().unwrap_or_default();
        if !name.is_empty() {
            let labels = name.split('.').count();
            let wrong = names::dns_subdomain(name);
            let at = place.field("name");
            if labels < 3 {
                let why = "should be a domain with at least three segments separated by dots";
                errors.push(FieldError::invalid(at, &webhook["name"], why));
            }
            errors.extend(wrong.iter().map(|why| FieldError::invalid(at, &webhook["name"], why)));
            if known.contains(&name) {
                errors.push(FieldError::duplicate(at, &webhook["name"]));
            }
            known.push(name);
        }
        errors.extend(validate_client(&webhook["clientConfig"], place.field("clientConfig")));
        errors.extend(validate_versions(webhook, place));
        errors.extend(expressions::validate_webhook(webhook, place));
    }
    errors
}

fn validate_client(client: &Value, place: Path<'_>) -> Vec<FieldError> {
    match (client["url"].as_str(), &client["service"]) {
        (Some(url), Value::Null) => client_config::validate_url(url, place.field("url")),
        (None, service) if service.is_object() => {
            client_config::validate_service(service, place.field("service"))
        }
        _ => vec![FieldError::required(place, "exactly one of url or service is required")],
    }
}

/// Webhooks name the versions of reviews that they understand.
fn validate_versions(webhook: &Value, place: Path<'_>) -> Vec<FieldError> {
    let Some(versions) = webhook["admissionReviewVersions"].as_array() else { return Vec::new() };
    let at = place.field("admissionReviewVersions");
    let mut errors = Vec::new();
    for (index, version) in versions.iter().enumerate() {
        if versions[..index].contains(version) {
            errors.push(FieldError::invalid(at.index(index), version, "duplicate version"));
            continue;
        }
        let text = version.as_str().unwrap_or_default();
        errors.extend(Syntax::Rfc1035Label.errors(text, at.index(index)));
    }
    if !versions.iter().any(|version| version == "v1" || version == "v1beta1") {
        let why = "must include at least one of v1, v1beta1";
        errors.push(FieldError::invalid(at, &webhook["admissionReviewVersions"], why));
    }
    errors
}

fn validate_validating_policy(policy: &Value) -> Vec<FieldError> {
    let mut errors = expressions::validate_policy(policy);
    errors.extend(resource_rules(policy));
    let (spec, root) = (&policy["spec"], Path::Root);
    let place = root.field("spec");
    if count(policy, "/spec/validations") == 0 && count(policy, "/spec/auditAnnotations") == 0 {
        let why = "validations or auditAnnotations must contain at least one item";
        let fields = ["validations", "auditAnnotations"];
        errors.extend(fields.map(|field| FieldError::required(place.field(field), why)));
    }
    let name = policy.meta("name");
    let list = place.field("auditAnnotations");
    let annotations = spec["auditAnnotations"].as_array().into_iter().flatten();
    for (index, annotation) in annotations.enumerate() {
        let (at, key) = (list.index(index), &annotation["key"]);
        // The key in the audit log starts with the name of the policy.
        let full = format!("{name}/{}", key.as_str().unwrap_or_default());
        errors.extend(Syntax::LabelKey.errors(&full, at.field("key")));
    }
    errors
}

fn validate_mutating_policy(policy: &Value) -> Vec<FieldError> {
    let mut errors = expressions::validate_policy(policy);
    errors.extend(resource_rules(policy));
    errors.extend(no_deletion(&policy["spec"], "matchConstraints"));
    errors
}

/// The rules name the types that the expressions are checked with.
fn resource_rules(policy: &Value) -> Option<FieldError> {
    let is_missing = policy["spec"]["matchConstraints"].is_object()
        && count(policy, "/spec/matchConstraints/resourceRules") == 0;
    is_missing.then(|| FieldError::required("spec.matchConstraints.resourceRules", ""))
}

/// A denied request needs no warning about the same mistake.
fn validate_actions(binding: &Value) -> Vec<FieldError> {
    let actions = &binding["spec"]["validationActions"];
    let has = |action: &str| actions.as_array().is_some_and(|all| all.contains(&json!(action)));
    if !(has("Deny") && has("Warn")) {
        return Vec::new();
    }
    vec![FieldError::invalid(
        "spec.validationActions",
        actions,
        "must not contain both Deny and Warn",
    )]
}

/// Nothing can mutate a deletion. kube-apiserver reports each one at the list of all rules.
fn no_deletion(spec: &Value, field: &str) -> Vec<FieldError> {
    let supported = ["*", "CONNECT", "CREATE", "UPDATE"].map(Value::from);
    let rules = spec[field]["resourceRules"].as_array().into_iter().flatten();
    let operations = rules.flat_map(|rule| rule["operations"].as_array().into_iter().flatten());
    let place = format!("spec.{field}.resourceRules.operations");
    let wrong = operations.filter(|operation| !supported.contains(operation));
    wrong.map(|operation| FieldError::not_supported(&place, operation, &supported)).collect()
}

fn param_kind(policy: &Value) -> Value {
    let kind = &policy["spec"]["paramKind"];
    match (kind["apiVersion"].as_str(), kind["kind"].as_str()) {
        (Some(version), Some(kind)) => json!(format!("{version}/{kind}")),
        _ => json!("<unset>"),
    }
}

fn param_ref(binding: &Value) -> Value {
    let reference = &binding["spec"]["paramRef"];
    if reference.is_null() {
        return json!("<unset>");
    }
    let name = reference["name"].as_str().unwrap_or("*");
    match reference["namespace"].as_str() {
        Some(namespace) => json!(format!("{namespace}/{name}")),
        None => json!(name),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn configuration(vary: fn(&mut Value)) -> Value {
        let mut webhook = json!({
            "name": "a.b.c", "sideEffects": "None", "admissionReviewVersions": ["v1"],
            "clientConfig": {"url": "https://a"},
            "rules": [{
                "operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"],
                "resources": ["pods"],
            }],
        });
        vary(&mut webhook);
        json!({"metadata": {"name": "w"}, "webhooks": [webhook]})
    }

    #[rstest]
    #[case(|_: &mut Value| (), &[])]
    #[case(|w: &mut Value| w["name"] = json!("a.b"), &["webhooks[0].name"])]
    #[case(|w: &mut Value| w["clientConfig"] = json!({}), &["webhooks[0].clientConfig"])]
    #[case(
        |w: &mut Value| w["clientConfig"]["url"] = json!("http://a"),
        &["webhooks[0].clientConfig.url"]
    )]
    #[case(|w: &mut Value| w["timeoutSeconds"] = json!(31), &["webhooks[0].timeoutSeconds"])]
    #[case(|w: &mut Value| w["sideEffects"] = json!("Some"), &["webhooks[0].sideEffects"])]
    #[case(
        |w: &mut Value| w["admissionReviewVersions"] = json!(["v2"]),
        &["webhooks[0].admissionReviewVersions"]
    )]
    #[case(
        |w: &mut Value| w["admissionReviewVersions"] = json!(["v1", "v1", "1"]),
        &["webhooks[0].admissionReviewVersions[1]", "webhooks[0].admissionReviewVersions[2]"]
    )]
    #[case(
        |w: &mut Value| w["matchConditions"] = json!([{"name": "a b"}]),
        &["webhooks[0].matchConditions[0].expression", "webhooks[0].matchConditions[0].name"]
    )]
    #[case(
        |w: &mut Value| w["rules"][0]["apiGroups"] = json!(["*", "apps"]),
        &["webhooks[0].rules[0].apiGroups"]
    )]
    fn webhooks_are_validated(#[case] vary: fn(&mut Value), #[case] expected: &[&str]) {
        let ty = webhooks("validatingwebhookconfigurations");
        let mut configuration = configuration(vary);
        ty.schema().prune(&mut configuration);
        ty.schema().apply_defaults(&mut configuration);
        assert_eq!(configuration["webhooks"][0]["failurePolicy"], "Fail");
        assert_eq!(configuration["webhooks"][0]["rules"][0]["scope"], "*");
        let mut errors = ty.schema().validate(&configuration, None);
        errors.extend((ty.hooks.validate)(&configuration));
        assert_eq!(errors.into_iter().map(|error| error.field).collect::<Vec<_>>(), expected);
    }

    #[rstest]
    #[case(json!({"validations": [{"expression": "true"}]}), &[])]
    #[case(json!({"matchConstraints": {}, "validations": [{"expression": "true"}]}),
           &["spec.matchConstraints.resourceRules"])]
    #[case(json!({}), &["spec.validations", "spec.auditAnnotations"])]
    #[case(json!({"auditAnnotations": [{"key": "a b", "valueExpression": "'x'"}]}),
           &["spec.auditAnnotations[0].key"])]
    fn validating_policies_are_complete(#[case] spec: Value, #[case] expected: &[&str]) {
        let errors = validate_validating_policy(&json!({"metadata": {"name": "p"}, "spec": spec}));
        assert_eq!(errors.iter().map(|error| &*error.field).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_mutating_policy_does_not_see_deletions() {
        let rules = json!([{"operations": ["CREATE"]}, {"operations": ["DELETE"]}]);
        let errors =
            no_deletion(&json!({"matchConstraints": {"resourceRules": rules}}), "matchConstraints");
        assert_eq!(errors.len(), 1);
        assert_eq!(errors[0].field, "spec.matchConstraints.resourceRules.operations");
    }

    #[test]
    fn a_binding_denies_or_warns() {
        let binding = |actions: Value| json!({"spec": {"validationActions": actions}});
        assert_eq!(validate_actions(&binding(json!(["Deny", "Audit"]))), []);
        assert_eq!(validate_actions(&binding(json!(["Deny", "Warn"]))).len(), 1);
    }

    #[test]
    fn cells_name_the_parameters() {
        let kind = json!({"apiVersion": "v1", "kind": "ConfigMap"});
        assert_eq!(param_kind(&json!({"spec": {"paramKind": kind}})), "v1/ConfigMap");
        assert_eq!(param_kind(&json!({"spec": {}})), "<unset>");
        let reference = json!({"name": "p", "namespace": "n"});
        assert_eq!(param_ref(&json!({"spec": {"paramRef": reference}})), "n/p");
    }
}
