//! Expressions of admission: policies, match conditions of webhooks, and mutations.
//!
//! Their variables have no schema, as in kube-apiserver, where `object` is dynamic. Only the names
//! of `request` and of the own variables are known.

mod literals;
pub(super) mod request;
mod scope;

use std::sync::Arc;

use cel::IdedExpr;
use serde_json::Value;

use self::literals::simplified;
pub use self::scope::{Roots, Scope};
use super::super::Schema;
use super::check::{Parsed, check_dynamic, mistake_of_constants};
use super::counted::counted;
use super::errors::evaluation_error;
use super::{issues, library, meter, unreadable, value};
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

impl Wanted {
    fn name(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::Text => "string",
            Self::OptionalText => "one of [string null_type]",
            Self::Object => "Object",
            Self::Patches => "list(JSONPatch)",
            Self::Any => "any",
        }
    }
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
        let failed = |error: String| format!("compilation failed: {error}");
        let compiled = library::env()
            .compile(text)
            .map_err(|error| failed(issues::of_parser(&error.to_string())))?;
        let expression = simplified(compiled.expression());
        let parsed = Parsed { expression: &expression, source: compiled.source_info() };
        let ty = check_dynamic(parsed, names).map_err(failed)?;
        let fits = match wanted {
            Wanted::Any => true,
            Wanted::Bool => ty == "bool",
            Wanted::Text => ty == "string",
            Wanted::OptionalText => matches!(ty.as_str(), "string" | "null"),
            // A literal of a structure is a map here.
            Wanted::Object => ty == "dyn" || ty.starts_with("map("),
            Wanted::Patches => ty == "dyn" || ty.starts_with("list("),
        };
        if !fits {
            return Err(format!("must evaluate to {} but got {ty}", wanted.name()));
        }
        if let Some(why) = mistake_of_constants(&expression) {
            return Err(format!("program instantiation failed: {why}"));
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
