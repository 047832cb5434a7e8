//! Validates the conversion between the versions of a definition.
//!
//! With the strategy `None`, the server changes `apiVersion` and prunes the fields that the other
//! version lacks. With the strategy `Webhook`, it calls a [webhook](super::webhook).

use kubeproof_apimachinery::object::validation::names;
use kubeproof_apimachinery::schema::{FieldError, Path};
use serde_json::{Value, json};

use crate::registry::client_config;

/// The versions of `ConversionReview` that a server can send.
const REVIEWS: [&str; 2] = ["v1", "v1beta1"];

/// The strategies of conversion.
const STRATEGIES: [&str; 2] = ["None", "Webhook"];

/// Returns the errors of `spec.conversion`.
pub(super) fn validate(conversion: &Value, path: Path<'_>) -> Vec<FieldError> {
    let webhook = conversion.get("webhook").filter(|webhook| !webhook.is_null());
    let client = path.field("webhookClientConfig");
    let versions = path.field("conversionReviewVersions");
    let mut errors = validate_strategy(&conversion["strategy"], path.field("strategy"));
    if conversion["strategy"] != "Webhook" {
        let why = "should not be set when strategy is not set to Webhook";
        let is_set = |field: &str| webhook.is_some_and(|webhook| !is_empty(&webhook[field]));
        let fields = [("clientConfig", client), ("conversionReviewVersions", versions)];
        let set = fields.into_iter().filter(|(field, _)| is_set(field));
        errors.extend(set.map(|(_, path)| FieldError::forbidden(path, why)));
        return errors;
    }
    let webhook = webhook.unwrap_or(&Value::Null);
    let config = webhook.get("clientConfig").filter(|config| !config.is_null());
    let missing = || vec![FieldError::required(client, "required when strategy is set to Webhook")];
    errors.extend(config.map_or_else(missing, |config| validate_client(config, client)));
    errors.extend(validate_versions(&webhook["conversionReviewVersions"], versions));
    errors
}

fn is_empty(value: &Value) -> bool {
    value.is_null() || value.as_array().is_some_and(Vec::is_empty)
}

fn validate_strategy(strategy: &Value, path: Path<'_>) -> Vec<FieldError> {
    match strategy.as_str() {
        None | Some("") => vec![FieldError::required(path, "")],
        Some(word) if STRATEGIES.contains(&word) => Vec::new(),
        Some(_) => {
            vec![FieldError::not_supported(path, strategy, &STRATEGIES.map(Value::from))]
        }
    }
}

fn validate_client(config: &Value, path: Path<'_>) -> Vec<FieldError> {
    match (config["url"].as_str(), config.get("service").filter(|service| !service.is_null())) {
        (Some(url), None) => client_config::validate_url(url, path.field("url")),
        (None, Some(service)) => client_config::validate_service(service, path.field("service")),
        _ => vec![FieldError::required(path, "exactly one of url or service is required")],
    }
}

fn validate_versions(versions: &Value, path: Path<'_>) -> Vec<FieldError> {
    let list: Vec<&str> = versions
        .as_array()
        .into_iter()
        .flatten()
        .map(|it| it.as_str().unwrap_or_default())
        .collect();
    if list.is_empty() {
        return vec![FieldError::required(path, "")];
    }
    let mut errors = Vec::new();
    for (index, version) in list.iter().enumerate() {
        let at = path.index(index);
        if list[..index].contains(version) {
            errors.push(FieldError::invalid(at, &json!(version), "duplicate version"));
            continue;
        }
        for why in names::rfc1035_label(version) {
            errors.push(FieldError::invalid(at, &json!(version), &why));
        }
    }
    if !list.iter().any(|version| REVIEWS.contains(version)) {
        let why = format!("must include at least one of {}", REVIEWS.join(", "));
        errors.push(FieldError::invalid(path, versions, &why));
    }
    errors
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn webhook(client: &Value) -> Value {
        let webhook = json!({"clientConfig": client, "conversionReviewVersions": ["v1"]});
        json!({"strategy": "Webhook", "webhook": webhook})
    }

    #[rstest]
    #[case(json!({"strategy": "None"}), &[])]
    #[case(webhook(&json!({"url": "https://a.example/x"})), &[])]
    #[case(webhook(&json!({"service": {"name": "n", "namespace": "ns"}})), &[])]
    #[case(
        json!({"strategy": "Webhook"}),
        &["c.webhookClientConfig", "c.conversionReviewVersions"],
    )]
    #[case(webhook(&json!({})), &["c.webhookClientConfig"])]
    #[case(webhook(&json!({"url": "http://a"})), &["c.webhookClientConfig.url"])]
    #[case(webhook(&json!({"url": "https://"})), &["c.webhookClientConfig.url"])]
    #[case(
        webhook(&json!({"service": {"name": "n", "namespace": "ns", "port": 0}})),
        &["c.webhookClientConfig.service.port"],
    )]
    #[case(
        json!({"strategy": "Webhook", "webhook": {
            "clientConfig": {"url": "https://a"}, "conversionReviewVersions": ["v2", "v2", "a b"],
        }}),
        &["c.conversionReviewVersions[1]", "c.conversionReviewVersions[2]",
          "c.conversionReviewVersions"],
    )]
    #[case(
        json!({"strategy": "None", "webhook": {"clientConfig": {"url": "https://a"}}}),
        &["c.webhookClientConfig"],
    )]
    fn a_conversion_has_errors(#[case] conversion: Value, #[case] expected: &[&str]) {
        let root = Path::Root;
        let found: Vec<String> =
            validate(&conversion, root.field("c")).into_iter().map(|error| error.field).collect();
        assert_eq!(found, expected);
    }
}
