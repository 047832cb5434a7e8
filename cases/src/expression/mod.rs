//! A CEL expression that has been parsed, with the variables it reads.

mod needs;

use std::sync::Arc;

pub use needs::{Need, Needs};

use crate::yaml::Span;

/// A parsed expression.
#[derive(Clone, Debug)]
pub struct Expression {
    /// As written.
    pub text: String,
    /// Ready to be evaluated.
    pub program: Arc<cel::Program>,
    /// The free variables, sorted: steps, captures, `name`, `ns`, `subject`, ...
    pub variables: Vec<String>,
    /// The named expressions that it uses, in the order of evaluation.
    pub lets: Vec<Let>,
    /// What it reads of each variable.
    pub needs: Needs,
    /// Its place in the file.
    pub span: Span,
}

/// A named expression of a case.
#[derive(Clone, Debug)]
pub struct Let {
    /// The name.
    pub name: String,
    /// As written.
    pub text: String,
    /// Ready to be evaluated.
    pub program: Arc<cel::Program>,
}
