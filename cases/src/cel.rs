//! A CEL expression that has been parsed, with the variables it reads.

use std::sync::Arc;

use crate::needs::Needs;
use crate::span::Span;

/// A parsed expression.
#[derive(Clone, Debug)]
pub struct Expression {
    /// As written.
    pub text: String,
    /// Ready to be evaluated.
    pub program: Arc<cel::Program>,
    /// The free variables, sorted: steps, captures, `name`, `ns`, `subject`, ...
    pub variables: Vec<String>,
    /// What it looks at of each of them.
    pub needs: Needs,
    /// Where it stands.
    pub span: Span,
}
