//! The names of a pod on the network, and where it looks up other names.

use serde_json::Value;

use kubeproof_apimachinery::object::validation::syntax::Syntax;
use kubeproof_apimachinery::schema::{FieldError, Path};

const OVERRIDE: &str = "hostnameOverride";
/// The most entries of lists of `dnsConfig`.
const LISTS: [(&str, usize, &str); 2] =
    [("nameservers", 3, "nameservers"), ("searches", 32, "search paths")];

/// Returns the errors in the names of a pod and in its resolver.
pub(super) fn validate(spec: &Value, path: Path<'_>) -> Vec<FieldError> {
    let mut errors = resolver(spec, path.field("dnsConfig"));
    for field in ["hostname", "subdomain"] {
        if let Some(name) = spec[field].as_str().filter(|name| !name.is_empty()) {
            errors.extend(Syntax::DnsLabel.errors(name, path.field(field)));
        }
    }
    if spec.get(OVERRIDE).is_none() {
        return errors;
    }
    for field in ["setHostnameAsFQDN", "hostNetwork"] {
        if spec[field] == true {
            let why = format!("may not be specified when {field} is true");
            errors.push(FieldError::forbidden(path.field(OVERRIDE), &why));
        }
    }
    errors
}

fn resolver(spec: &Value, path: Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let config = &spec["dnsConfig"];
    if spec["dnsPolicy"] == "None" {
        if config.is_null() {
            let why = "must provide `dnsConfig` when `dnsPolicy` is None";
            errors.push(FieldError::required(path, why));
        } else if items(config, "nameservers").is_empty() {
            let why = "must provide at least one DNS nameserver when `dnsPolicy` is None";
            errors.push(FieldError::required(path.field("nameservers"), why));
        }
    }
    for (field, most, what) in LISTS {
        if items(config, field).len() > most {
            let why = format!("must not have more than {most} {what}");
            errors.push(FieldError::invalid(path.field(field), &config[field], &why));
        }
    }
    let list = path.field("options");
    for (index, option) in items(config, "options").iter().enumerate() {
        if option["name"].as_str().unwrap_or_default().is_empty() {
            errors.push(FieldError::required(list.index(index), "must not be empty"));
        }
    }
    errors
}

fn items<'a>(object: &'a Value, field: &str) -> &'a [Value] {
    object[field].as_array().map(Vec::as_slice).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case(json!({"dnsPolicy": "None"}), &["spec.dnsConfig"])]
    #[case(json!({"dnsPolicy": "None", "dnsConfig": {}}), &["spec.dnsConfig.nameservers"])]
    #[case(json!({"dnsConfig": {"nameservers": ["a", "b", "c", "d"]}}),
           &["spec.dnsConfig.nameservers"])]
    #[case(json!({"dnsConfig": {"options": [{"name": "a"}, {}]}}), &["spec.dnsConfig.options[1]"])]
    #[case(json!({"hostname": "a.b", "subdomain": "A"}), &["spec.hostname", "spec.subdomain"])]
    #[case(json!({"hostname": ""}), &[])]
    #[case(json!({"hostnameOverride": "a"}), &[])]
    #[case(json!({"setHostnameAsFQDN": true}), &[])]
    #[case(json!({"hostnameOverride": "a", "setHostnameAsFQDN": true}), &["spec.hostnameOverride"])]
    #[case(json!({"hostnameOverride": "a", "hostNetwork": true}), &["spec.hostnameOverride"])]
    fn names_are_checked(#[case] spec: Value, #[case] expected: &[&str]) {
        let errors = validate(&spec, Path::Root.field("spec"));
        assert_eq!(errors.iter().map(|error| &*error.field).collect::<Vec<_>>(), expected);
    }
}
