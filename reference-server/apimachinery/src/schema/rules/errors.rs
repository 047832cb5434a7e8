//! The messages of evaluation errors, in the words of kube-apiserver.

use cel::{ExecutionError, Value as Cel};

/// Returns the message of an error.
pub(super) fn evaluation_error(error: &ExecutionError) -> String {
    match error {
        ExecutionError::NoSuchKey(key) => format!("no such key: {key}"),
        ExecutionError::IndexOutOfBounds(Cel::Int(index)) => {
            format!("index out of bounds: {index}")
        }
        ExecutionError::DivisionByZero(_) => "division by zero".to_owned(),
        ExecutionError::RemainderByZero(_) => "modulus by zero".to_owned(),
        ExecutionError::Overflow(_, Cel::UInt(_), _) => "unsigned integer overflow".to_owned(),
        ExecutionError::Overflow(_, Cel::Duration(_), _) => "duration overflow".to_owned(),
        ExecutionError::Overflow(..) => "integer overflow".to_owned(),
        ExecutionError::FunctionError { message, .. } => message.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(ExecutionError::NoSuchKey(Arc::new("a".to_owned())), "no such key: a")]
    #[case(ExecutionError::IndexOutOfBounds(Cel::Int(5)), "index out of bounds: 5")]
    #[case(ExecutionError::DivisionByZero(Cel::Int(1)), "division by zero")]
    #[case(ExecutionError::RemainderByZero(Cel::Int(1)), "modulus by zero")]
    #[case(ExecutionError::Overflow("add", Cel::Int(1), Cel::Int(1)), "integer overflow")]
    #[case(ExecutionError::function_error("f", "it failed"), "it failed")]
    fn errors_have_the_words_of_kubernetes(#[case] error: ExecutionError, #[case] expected: &str) {
        assert_eq!(evaluation_error(&error), expected);
    }
}
