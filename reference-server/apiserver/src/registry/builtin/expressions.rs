//! Validates the expressions of webhooks and admission policies when they are written.

use kubeproof_apimachinery::schema::rules::expression::{
    AUTHORIZER, Expression, Names, REQUEST_RESOURCE, Wanted,
};
use kubeproof_apimachinery::schema::{FieldError, Path};
use serde_json::Value;

/// The variables of the conditions of webhooks.
const ROOTS: [&str; 5] = ["object", "oldObject", "request", AUTHORIZER, REQUEST_RESOURCE];

/// Returns the names that the conditions of webhooks may use.
pub(crate) fn names_of_webhook() -> Names {
    Names { roots: ROOTS.to_vec(), ..Names::default() }
}

/// Returns the names that the expressions of a policy may use besides its variables.
pub(crate) fn names_of_policy(spec: &Value) -> Names {
    let mut roots = ROOTS.to_vec();
    roots.push("namespaceObject");
    if spec["paramKind"].is_object() {
        roots.push("params");
    }
    Names { roots, ..Names::default() }
}

/// Returns the names that the messages of a policy may use, which cannot check permissions.
pub(crate) fn names_of_message(names: &Names) -> Names {
    let mut names = names.clone();
    names.roots.retain(|name| !matches!(*name, AUTHORIZER | REQUEST_RESOURCE));
    names
}

/// Returns the mistakes in the match conditions of a webhook.
pub(super) fn validate_webhook(webhook: &Value, place: Path<'_>) -> Vec<FieldError> {
    conditions(webhook, place, &names_of_webhook())
}

/// Returns the mistakes in the expressions of a policy of either kind.
pub(super) fn validate_policy(policy: &Value) -> Vec<FieldError> {
    let (spec, root) = (&policy["spec"], Path::Root);
    let place = root.field("spec");
    let mut names = names_of_policy(spec);
    let mut errors = conditions(spec, place, &names);
    let list = place.field("variables");
    for (index, variable) in items(spec, "variables") {
        let at = list.index(index);
        errors.extend(mistake(variable, "expression", at, (&names, Wanted::Any)));
        names.variables.push(variable["name"].as_str().unwrap_or_default().to_owned());
    }
    let list = place.field("validations");
    for (index, validation) in items(spec, "validations") {
        let at = list.index(index);
        errors.extend(mistake(validation, "expression", at, (&names, Wanted::Bool)));
        let message = (&names_of_message(&names), Wanted::Text);
        errors.extend(mistake(validation, "messageExpression", at, message));
    }
    let list = place.field("auditAnnotations");
    for (index, annotation) in items(spec, "auditAnnotations") {
        let wanted = (&names, Wanted::OptionalText);
        errors.extend(mistake(annotation, "valueExpression", list.index(index), wanted));
    }
    let list = place.field("mutations");
    for (index, mutation) in items(spec, "mutations") {
        let at = list.index(index);
        for (kind, wanted) in
            [("applyConfiguration", Wanted::Object), ("jsonPatch", Wanted::Patches)]
        {
            let wanted = (&names, wanted);
            errors.extend(mistake(&mutation[kind], "expression", at.field(kind), wanted));
        }
    }
    errors
}

fn conditions(owner: &Value, place: Path<'_>, names: &Names) -> Vec<FieldError> {
    let list = place.field("matchConditions");
    let mistakes = items(owner, "matchConditions").filter_map(|(index, condition)| {
        mistake(condition, "expression", list.index(index), (names, Wanted::Bool))
    });
    mistakes.collect()
}

/// Returns the mistake in an expression. An absent one has none: other rules require it.
fn mistake(
    owner: &Value,
    field: &str,
    place: Path<'_>,
    (names, wanted): (&Names, Wanted),
) -> Option<FieldError> {
    let text = owner[field].as_str().filter(|text| !text.trim().is_empty())?;
    let why = Expression::compile(text, names, wanted).err()?;
    let at = place.field(field);
    // kube-apiserver finds these mistakes after the compilation.
    let is_constant = why.starts_with("program instantiation failed");
    Some(if is_constant {
        FieldError::internal(at, &why)
    } else {
        FieldError::invalid(at, &owner[field], &why)
    })
}

fn items<'a>(owner: &'a Value, field: &str) -> impl Iterator<Item = (usize, &'a Value)> {
    owner[field].as_array().into_iter().flatten().enumerate()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    fn fields(errors: &[FieldError]) -> Vec<String> {
        errors.iter().map(|error| error.field.clone()).collect()
    }

    #[test]
    fn each_expression_of_a_policy_must_compile() {
        let spec = json!({
            "matchConditions": [{"name": "a", "expression": "object."}],
            "variables": [
                {"name": "a", "expression": "1 + 'b'"},
                {"name": "c", "expression": "object.spec"},
            ],
            "validations": [
                {"expression": "variables.c.size > 1"},
                {"expression": "variables.d == 1"},
                {"expression": "1 + 1"},
                {"expression": "true", "messageExpression": "1"},
                {"expression": "params.a == 1"},
                {
                    "expression": "authorizer.path('/x').check('get').allowed()",
                    "messageExpression": "authorizer.path('/x').check('get').reason()",
                },
            ],
            "auditAnnotations": [{"key": "k", "valueExpression": "true"}],
            "mutations": [
                {"jsonPatch": {"expression": "["}}, {"applyConfiguration": {"expression": "1"}},
            ],
        });
        let expected = [
            "spec.matchConditions[0].expression",
            "spec.variables[0].expression",
            "spec.validations[1].expression",
            "spec.validations[2].expression",
            "spec.validations[3].messageExpression",
            "spec.validations[4].expression",
            "spec.validations[5].messageExpression",
            "spec.auditAnnotations[0].valueExpression",
            "spec.mutations[0].jsonPatch.expression",
            "spec.mutations[1].applyConfiguration.expression",
        ];
        assert_eq!(fields(&validate_policy(&json!({"spec": spec}))), expected);
        let with_params = json!({
            "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
            "validations": [{"expression": "params.a == 1"}],
        });
        assert_eq!(fields(&validate_policy(&json!({"spec": with_params}))), [""; 0]);
    }

    #[rstest]
    #[case("object.metadata.name == 'a' && request.userInfo.username != ''", true)]
    #[case("authorizer.group('').resource('pods').check('get').allowed()", true)]
    #[case("namespaceObject.metadata.name == 'a'", false)]
    #[case("authorizer.requestResource.check('get').allowed()", true)]
    #[case("authorizer.resource('pods')", false)]
    #[case("object.metadata.name", false)]
    #[case("'text'", false)]
    fn conditions_of_webhooks(#[case] expression: &str, #[case] is_valid: bool) {
        let webhook = json!({"matchConditions": [{"name": "a", "expression": expression}]});
        let root = Path::Root;
        assert_eq!(validate_webhook(&webhook, root.field("webhooks")).is_empty(), is_valid);
    }
}
