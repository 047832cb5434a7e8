//! Validates the conversion between the versions of a definition.
//!
//! With the strategy `None`, the server changes `apiVersion` and prunes the fields that the other
//! version lacks. With the strategy `Webhook`, it calls a [webhook](super::webhook).

use kubeproof_apimachinery::object::validation::names;
use kubeproof_apimachinery::schema::{FieldError, Path};
use serde_json::{Value, json};

use super::super::text;

/// The versions of `ConversionReview` that a server can send.
const REVIEWS: [&str; 2] = ["v1", "v1beta1"];

/// The strategies of conversion.
const STRATEGIES: [&str; 2] = ["None", "Webhook"];
const FORM: &str = "desired format: https://host[/path]";

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
        (Some(url), None) => validate_url(url, path.field("url")),
        (None, Some(service)) => validate_service(service, path.field("service")),
        _ => vec![FieldError::required(path, "exactly one of url or service is required")],
    }
}

fn validate_url(url: &str, path: Path<'_>) -> Vec<FieldError> {
    let (rest, fragment) = url.split_once('#').unwrap_or((url, ""));
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (scheme, rest) = rest.split_once(':').unwrap_or(("", rest));
    let authority = rest.strip_prefix("//").unwrap_or_default();
    let authority = authority.split('/').next().unwrap_or_default();
    let (user, host) = authority.rsplit_once('@').unwrap_or(("", authority));
    let mut errors = Vec::new();
    let mut reject = |is_wrong: bool, shown: &str, why: &str| {
        if is_wrong {
            errors.push(FieldError::invalid(path, &json!(shown), why));
        }
    };
    let scheme = scheme.to_lowercase();
    let why = format!("'https' is the only allowed URL scheme; {FORM}");
    reject(scheme != "https", &scheme, &why);
    reject(host.is_empty(), "", &format!("host must be specified; {FORM}"));
    reject(!user.is_empty(), user, "user information is not permitted in the URL");
    reject(!fragment.is_empty(), fragment, "fragments are not permitted in the URL");
    reject(!query.is_empty(), query, "query parameters are not permitted in the URL");
    errors
}

fn validate_service(service: &Value, path: Path<'_>) -> Vec<FieldError> {
    // kube-apiserver exchanges the two, so its error names the other field.
    let swapped = [("name", "namespace"), ("namespace", "name")];
    let missing = swapped.iter().filter(|(_, field)| text(service, field).is_empty());
    let mut errors: Vec<_> =
        missing.map(|(shown, _)| FieldError::required(path.field(shown), "")).collect();
    let port = service["port"].as_i64().unwrap_or(443);
    if !(1..=65535).contains(&port) {
        let why = "port is not valid: must be between 1 and 65535, inclusive";
        errors.push(FieldError::invalid(path.field("port"), &json!(port), why));
    }
    errors.extend(validate_path(text(service, "path"), path.field("path")));
    errors
}

fn validate_path(url_path: &str, path: Path<'_>) -> Vec<FieldError> {
    let invalid = |why: String| FieldError::invalid(path, &json!(url_path), &why);
    match url_path {
        "" | "/" => return Vec::new(),
        "//" => return vec![invalid("segment[0] may not be empty".to_owned())],
        _ => {}
    }
    let mut errors = Vec::new();
    if !url_path.starts_with('/') {
        errors.push(invalid("must start with a '/'".to_owned()));
    }
    // The first character counts as the slash.
    let first = url_path.chars().next().map_or(0, char::len_utf8);
    let segments = url_path[first..].strip_suffix('/').unwrap_or(&url_path[first..]);
    for (index, segment) in segments.split('/').enumerate() {
        if segment.is_empty() {
            errors.push(invalid(format!("segment[{index}] may not be empty")));
            continue;
        }
        let wrong = names::dns_subdomain(segment);
        errors.extend(wrong.iter().map(|why| invalid(format!("segment[{index}]: {why}"))));
    }
    errors
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
