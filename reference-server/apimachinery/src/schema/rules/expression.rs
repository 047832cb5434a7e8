//! Expressions of admission: policies, match conditions of webhooks, and mutations.
//!
//! Their variables have no schema, as in kube-apiserver, where `object` is dynamic. Only the names
//! of `request` and of the own variables are known.

mod literals;
mod scope;

use std::sync::Arc;

use cel::IdedExpr;
use serde_json::Value;

use self::literals::simplified;
pub use self::scope::{Roots, Scope};
use super::super::Schema;
use super::check::check_dynamic;
use super::counted::counted;
use super::errors::evaluation_error;
use super::{library, meter, unreadable, value};
use crate::field::Path;

/// The variable that checks permissions.
pub const AUTHORIZER: &str = "authorizer";
/// The check of the resource of the request.
pub const REQUEST_RESOURCE: &str = "authorizer.requestResource";
/// The prefix of the variables that a policy declares.
const VARIABLES: &str = "variables";

/// The type of the result of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// A condition.
    Bool,
    /// A message.
    Text,
    /// A text or null.
    OptionalText,
    /// The configuration of a mutation: `Object{}` or a value of any type.
    Object,
    /// The patches of a mutation: a list of `JSONPatch{}` or a value of any type.
    Patches,
    /// Any value, such as a variable.
    Any,
}

/// The names that an expression may use.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// The variables, such as `object`.
    pub roots: Vec<&'static str>,
    /// The fields of `variables`.
    pub variables: Vec<String>,
    /// The schemas of variables, for a type check. The others have any type.
    pub types: Vec<(&'static str, Arc<Schema>)>,
}

/// A compiled expression.
#[derive(Clone, Debug)]
pub struct Expression {
    text: String,
    program: Arc<IdedExpr>,
}

/// Why an evaluation has no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EvaluationError {
    /// The expression failed, for example for a missing field.
    #[error("expression '{expression}' resulted in error: {why}")]
    Failed {
        /// The text of the expression.
        expression: String,
        /// The error of the evaluation.
        why: String,
    },
    /// The evaluation exceeded the cost limit of one expression.
    #[error("operation cancelled: actual cost limit exceeded")]
    CallLimit,
    /// The evaluations exceeded the cost limit of a policy.
    #[error(
        "validation failed due to running out of cost budget, no further validation rules will \
             be run"
    )]
    Budget,
}

impl Expression {
    /// Compiles an expression. The error is a message for the user.
    pub fn compile(text: &str, names: &Names, wanted: Wanted) -> Result<Self, String> {
        if let Some(error) = unreadable(text, Path::Root) {
            return Err(error.message);
        }
        let compiled = library::env().compile(text).map_err(|error| {
            format!("compilation failed: {}", error.to_string().replace('\n', "; "))
        })?;
        let expression = simplified(compiled.expression());
        let ty = check_dynamic(&expression, names)
            .map_err(|error| format!("compilation failed: {error}"))?;
        let fits = match wanted {
            Wanted::Any => true,
            _ if ty == "dyn" => true,
            Wanted::Bool => ty == "bool",
            Wanted::Text => ty == "string",
            Wanted::OptionalText => matches!(ty.as_str(), "string" | "null"),
            // A literal of a structure is a map here.
            Wanted::Object => ty.starts_with("map("),
            Wanted::Patches => ty.starts_with("list("),
        };
        if !fits {
            let expected = match wanted {
                Wanted::Bool => "bool".to_owned(),
                Wanted::Text => "string".to_owned(),
                Wanted::OptionalText => "string or null_type".to_owned(),
                Wanted::Object => format!("Object but got {ty}"),
                Wanted::Patches => format!("list(JSONPatch) but got {ty}"),
                Wanted::Any => "any".to_owned(),
            };
            return Err(format!("must evaluate to {expected}"));
        }
        Ok(Self { text: text.to_owned(), program: Arc::new(counted(&expression)) })
    }

    /// Returns the text of the expression.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Evaluates the expression, and subtracts its cost from `budget`.
    pub fn evaluate(&self, scope: &Scope<'_>, budget: &mut u64) -> Result<Value, EvaluationError> {
        let failed = |why: String| EvaluationError::Failed { expression: self.text.clone(), why };
        scope.lazy.reset();
        let (result, cost) = meter::measure(|| scope.lazy.run(&self.program));
        match budget.checked_sub(cost) {
            Some(rest) => *budget = rest,
            None => return Err(EvaluationError::Budget),
        }
        let result = result.ok_or(EvaluationError::CallLimit)?;
        if let Some(why) = scope.lazy.error() {
            return Err(failed(why));
        }
        let result = result.map_err(|error| failed(evaluation_error(&error)))?;
        value::to_json(&result).map_err(failed)
    }
}

#[cfg(test)]
mod tests;
