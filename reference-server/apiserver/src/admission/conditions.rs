//! Match conditions of webhooks and policies.

use kubeproof_apimachinery::schema::rules::expression::{Expression, Names, Roots, Scope, Wanted};
use serde_json::Value;

use crate::registry::builtin::expressions::names_of_webhook;

/// The maximum cost of the conditions of one webhook or policy.
const BUDGET: u64 = 2_500_000;

/// The conditions of a webhook or a policy.
#[derive(Debug)]
pub(super) struct Conditions {
    /// A condition that does not compile is an error of each request.
    all: Vec<Result<Expression, String>>,
    /// An error counts as a condition that does not hold.
    ignores_errors: bool,
}

impl Conditions {
    /// Compiles the conditions of a webhook.
    pub(super) fn of_webhook(webhook: &Value, ignores_errors: bool) -> Self {
        Self::compile(&webhook["matchConditions"], &names_of_webhook(), ignores_errors)
    }

    /// Compiles the conditions of a policy.
    pub(super) fn of_policy(spec: &Value, names: &Names, ignores_errors: bool) -> Self {
        Self::compile(&spec["matchConditions"], names, ignores_errors)
    }

    fn compile(conditions: &Value, names: &Names, ignores_errors: bool) -> Self {
        let conditions = conditions.as_array().into_iter().flatten();
        let all = conditions.map(|condition| {
            let text = condition["expression"].as_str().unwrap_or_default();
            Expression::compile(text, names, Wanted::Bool)
        });
        Self { all: all.collect(), ignores_errors }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Returns whether all conditions hold. One that is false outweighs the errors of others.
    pub(super) fn hold(
        &self,
        roots: &Roots,
        variables: &[(String, Expression)],
    ) -> Result<bool, String> {
        let scope = Scope::new(roots, variables);
        let mut budget = BUDGET;
        let mut errors = Vec::new();
        for condition in &self.all {
            let result = match condition {
                Ok(condition) => {
                    condition.evaluate(&scope, &mut budget).map_err(|error| error.to_string())
                }
                Err(why) => Err(why.clone()),
            };
            match result {
                Ok(Value::Bool(true)) => {}
                Ok(_) => return Ok(false),
                Err(why) => errors.push(why),
            }
        }
        match errors.as_slice() {
            [] => Ok(true),
            _ if self.ignores_errors => Ok(false),
            [one] => Err(one.clone()),
            many => Err(format!("[{}]", many.join(", "))),
        }
    }
}
