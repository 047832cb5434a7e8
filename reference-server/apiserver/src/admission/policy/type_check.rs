//! Checks the expressions of a validating policy with the types of the resources that it matches.
//!
//! The result is a part of the status. A mistake does not reject the policy, because another
//! resource may have the field.

use std::collections::BTreeSet;
use std::sync::Arc;

use kubeproof_apimachinery::schema::Schema;
use kubeproof_apimachinery::schema::meta::with_type_meta;
use kubeproof_apimachinery::schema::rules::expression::{Expression, Names, Wanted};
use serde_json::{Value, json};

use crate::registry::builtin::expressions::{names_of_message, names_of_policy};
use crate::registry::{Catalogue, ResourceType};

/// The most types of a policy that the server checks, as in Kubernetes.
const MAX_TYPES: usize = 10;

/// Returns the field `typeChecking` of the status of a policy.
pub(crate) fn type_checking(spec: &Value, catalogue: &Catalogue) -> Value {
    let types = matched(spec, catalogue);
    let params = params(spec, catalogue);
    let validations = spec["validations"].as_array().into_iter().flatten().enumerate();
    let mut warnings = Vec::new();
    for (index, validation) in validations {
        for (field, wanted) in [("expression", Wanted::Bool), ("messageExpression", Wanted::Text)] {
            let Some(text) = validation[field].as_str().filter(|text| !text.is_empty()) else {
                continue;
            };
            let problems = types.iter().filter_map(|ty| {
                let names = names(spec, ty, params.as_ref(), wanted);
                let why = Expression::compile(text, &names, Wanted::Any).err()?;
                let why = why.strip_prefix("compilation failed: ")?;
                Some(format!("{}, Kind={}: {why}", ty.api_version(), ty.kind))
            });
            let problems: Vec<String> = problems.collect();
            if !problems.is_empty() {
                warnings.push(json!({
                    "fieldRef": format!("spec.validations[{index}].{field}"),
                    "warning": problems.join("\n"),
                }));
            }
        }
    }
    if warnings.is_empty() { json!({}) } else { json!({ "expressionWarnings": warnings }) }
}

/// Returns the types that the rules of a policy name. A rule with a wildcard names none.
fn matched<'c>(spec: &Value, catalogue: &'c Catalogue) -> Vec<&'c Arc<ResourceType>> {
    let rules = spec["matchConstraints"]["resourceRules"].as_array().into_iter().flatten();
    let mut wanted = BTreeSet::new();
    for rule in rules {
        let words = |field: &str| -> Vec<&str> {
            rule[field].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
        };
        let (groups, versions) = (words("apiGroups"), words("apiVersions"));
        let resources = words("resources");
        if [&groups, &versions, &resources].iter().any(|words| words.contains(&"*")) {
            continue;
        }
        for group in &groups {
            for version in &versions {
                let whole = resources.iter().filter(|resource| !resource.contains('/'));
                wanted.extend(whole.map(|resource| (*group, *version, *resource)));
            }
        }
    }
    let is_wanted = |ty: &&Arc<ResourceType>| {
        wanted.contains(&(ty.group.as_str(), ty.version.as_str(), ty.plural.as_str()))
    };
    catalogue.types().iter().filter(is_wanted).take(MAX_TYPES).collect()
}

fn params(spec: &Value, catalogue: &Catalogue) -> Option<Arc<Schema>> {
    let kind = &spec["paramKind"];
    let is_wanted = |ty: &&Arc<ResourceType>| {
        kind["kind"] == ty.kind.as_str() && kind["apiVersion"] == ty.api_version().as_str()
    };
    catalogue.types().iter().find(is_wanted).map(|ty| whole_schema(ty))
}

fn names(spec: &Value, ty: &ResourceType, params: Option<&Arc<Schema>>, wanted: Wanted) -> Names {
    let mut names = names_of_policy(spec);
    if wanted == Wanted::Text {
        names = names_of_message(&names);
    }
    let schema = whole_schema(ty);
    names.types = vec![("object", Arc::clone(&schema)), ("oldObject", schema)];
    names.types.extend(params.map(|schema| ("params", Arc::clone(schema))));
    let variables = spec["variables"].as_array().into_iter().flatten();
    let variables = variables.filter_map(|variable| variable["name"].as_str());
    names.variables = variables.map(str::to_owned).collect();
    names
}

/// Returns the schema of an object with its kind and its metadata.
fn whole_schema(ty: &ResourceType) -> Arc<Schema> {
    if ty.custom {
        Arc::new(with_type_meta(Schema::clone(&ty.schema)))
    } else {
        Arc::clone(&ty.schema)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::KubernetesVersion;
    use crate::config::disabled::DisabledCapabilities;
    use crate::registry::Registry;

    fn checked(resource: &str, validations: &Value) -> Value {
        let registry = Registry::new(KubernetesVersion::default(), DisabledCapabilities::default());
        let rule = json!({"apiGroups": ["apps"], "apiVersions": ["v1"], "resources": [resource]});
        let spec = json!({
            "matchConstraints": {"resourceRules": [rule]}, "validations": validations,
            "variables": [{"name": "size", "expression": "object.spec.replicas"}],
        });
        type_checking(&spec, &registry.current())
    }

    #[test]
    fn an_unknown_field_is_a_warning() {
        let validations = json!([
            {"expression": "object.spec.replicas > 1 && variables.size < 5"},
            {"expression": "object.replicas > 1"},
            {"expression": "object.spec.replicas > 1", "messageExpression": "object.name"},
        ]);
        let warning = |field: &str, name: &str, text: &str| {
            let warning = format!(
                "apps/v1, Kind=Deployment: ERROR: <input>:1:7: undefined field '{name}'\n \
                 | {text}\n | ......^"
            );
            json!({"fieldRef": format!("spec.validations{field}"), "warning": warning})
        };
        let expected = json!({"expressionWarnings": [
            warning("[1].expression", "replicas", "object.replicas > 1"),
            warning("[2].messageExpression", "name", "object.name"),
        ]});
        assert_eq!(checked("deployments", &validations), expected);
    }

    #[test]
    fn a_wildcard_is_not_checked() {
        let validations = json!([{"expression": "object.replicas > 1"}]);
        assert_eq!(checked("*", &validations), json!({}));
        assert_eq!(checked("deployments/scale", &validations), json!({}));
    }
}
