//! Mistakes in definition files.

/// A mistake in a definition file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {problem}")]
pub struct DefinitionsError {
    /// The name of the file.
    pub file: &'static str,
    /// The line, from 1.
    pub line: usize,
    /// What is wrong.
    pub problem: Problem,
}

/// What is wrong in a line of a definition file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// The file has a definition before its package.
    #[error("expected the package before the first definition")]
    NoPackage,
    /// A field has no definition above it.
    #[error("expected a definition before its fields")]
    NoDefinition,
    /// A field lacks its number, name or type.
    #[error("expected `NUMBER NAME TYPE` at the start of the field")]
    IncompleteField,
    /// The field number is not an integer.
    #[error("expected a field number, found `{0}`")]
    BadNumber(&'static str),
    /// Another field has the number.
    #[error("the field number {0} occurs twice")]
    RepeatedNumber(u32),
    /// Another definition has the name.
    #[error("the definition `{0}` occurs twice")]
    RepeatedDefinition(&'static str),
    /// No definition has the name of this type.
    #[error("the type `{0}` is not defined")]
    UnknownType(&'static str),
    /// The attribute does not exist.
    #[error("the attribute `{0}` does not exist")]
    UnknownAttribute(&'static str),
    /// The kind is not a group, a version and a kind.
    #[error("expected `GROUP/VERSION/KIND`, found `{0}`")]
    BadKind(&'static str),
    /// The default is not JSON.
    #[error("the default `{0}` is not valid JSON")]
    BadDefault(&'static str),
}
