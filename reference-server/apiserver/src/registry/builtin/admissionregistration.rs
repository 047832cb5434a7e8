//! The group `admissionregistration.k8s.io/v1`: webhooks and admission policies.

use serde_json::{Value, json};

use super::data::{hooks, resource};
use super::{BuiltinType, Hooks, expressions};
use kubeproof_apimachinery::object::validation::names;
use kubeproof_apimachinery::schema::{FieldError, Path};
use kubeproof_apimachinery::table::column::{Cell, Column, age, column, count};

const GROUP: &str = "admissionregistration.k8s.io";

pub(super) fn types() -> Vec<BuiltinType> {
    vec![
        policies("mutatingadmissionpolicies", mutations()),
        bindings("mutatingadmissionpolicybindings"),
        webhooks("mutatingwebhookconfigurations"),
        policies("validatingadmissionpolicies", validations()),
        bindings("validatingadmissionpolicybindings"),
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

fn policies(plural: &str, expressions: Column) -> BuiltinType {
    let data = resource(GROUP, "v1", plural);
    BuiltinType {
        allows_unconditional_update: false,
        columns: vec![
            expressions,
            column("ParamKind", "string", Cell::Computed(param_kind)),
            age(),
        ],
        hooks: Hooks { validate: expressions::validate_policy, ..hooks(data.has_status) },
        ..data
    }
}

fn bindings(plural: &str) -> BuiltinType {
    BuiltinType {
        allows_unconditional_update: false,
        columns: vec![
            column("PolicyName", "string", Cell::Pointer("/spec/policyName")),
            column("ParamRef", "string", Cell::Computed(param_ref)),
            age(),
        ],
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
        let versions = webhook["admissionReviewVersions"].as_array().into_iter().flatten();
        let knows_one = versions.into_iter().any(|version| version == "v1" || version == "v1beta1");
        if !knows_one && webhook["admissionReviewVersions"].is_array() {
            let at = place.field("admissionReviewVersions");
            let why = "must include at least one of v1, v1beta1";
            errors.push(FieldError::invalid(at, &webhook["admissionReviewVersions"], why));
        }
        errors.extend(expressions::validate_webhook(webhook, place));
        let rules = place.field("rules");
        for (index, rule) in webhook["rules"].as_array().into_iter().flatten().enumerate() {
            errors.extend(validate_rule(rule, rules.index(index)));
        }
    }
    errors
}

fn validate_client(client: &Value, place: Path<'_>) -> Vec<FieldError> {
    let (url, service) = (client["url"].as_str(), &client["service"]);
    if url.is_some() == service.is_object() {
        return vec![FieldError::required(place, "exactly one of url or service is required")];
    }
    let Some(url) = url else { return Vec::new() };
    if url.starts_with("https://") {
        return Vec::new();
    }
    let why = "'https' is the only allowed URL scheme; desired format: https://host[/path]";
    vec![FieldError::invalid(place.field("url"), &json!(url), why)]
}

fn validate_rule(rule: &Value, place: Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for field in ["operations", "apiGroups", "apiVersions", "resources"] {
        let items = rule[field].as_array().map(Vec::as_slice).unwrap_or_default();
        let at = place.field(field);
        if items.is_empty() {
            errors.push(FieldError::required(at, ""));
        } else if items.len() > 1 && items.iter().any(|item| item == "*") && field != "resources" {
            let why = format!("if '*' is present, must not specify other {}", words(field));
            errors.push(FieldError::invalid(at, &rule[field], &why));
        }
    }
    errors
}

fn words(field: &str) -> &str {
    match field {
        "apiGroups" => "API groups",
        "apiVersions" => "API versions",
        other => other,
    }
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

    #[test]
    fn cells_name_the_parameters() {
        let kind = json!({"apiVersion": "v1", "kind": "ConfigMap"});
        assert_eq!(param_kind(&json!({"spec": {"paramKind": kind}})), "v1/ConfigMap");
        assert_eq!(param_kind(&json!({"spec": {}})), "<unset>");
        let reference = json!({"name": "p", "namespace": "n"});
        assert_eq!(param_ref(&json!({"spec": {"paramRef": reference}})), "n/p");
    }
}
