//! The messages of evaluation errors, in the words of kube-apiserver.

use cel::{ExecutionError, Value as Cel};

const NO_OVERLOAD: &str = "no such overload";

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
        ExecutionError::Overflow(_, Cel::Timestamp(_), other)
            if !matches!(other, Cel::Timestamp(_)) =>
        {
            "timestamp overflow".to_owned()
        }
        ExecutionError::Overflow(..) => "integer overflow".to_owned(),
        ExecutionError::NoSuchOverload(call) if is_name(call.function()) => {
            let types = call.argument_types().join(", ");
            format!("{NO_OVERLOAD}: {}({types})", call.function())
        }
        ExecutionError::ValuesNotComparable(one, other) if is_nan(one) || is_nan(other) => {
            "NaN values cannot be ordered".to_owned()
        }
        ExecutionError::UnsupportedIndex(Cel::String(_), Cel::List(_)) => {
            "unsupported index type 'string' in list".to_owned()
        }
        ExecutionError::NoSuchOverload(_)
        | ExecutionError::UnsupportedBinaryOperator(..)
        | ExecutionError::ValuesNotComparable(..) => NO_OVERLOAD.to_owned(),
        ExecutionError::UnexpectedType { want, .. } if want == "bool" => NO_OVERLOAD.to_owned(),
        ExecutionError::UnexpectedType { got, want } if want == "iterable" => {
            format!("got 'types.{}', expected iterable type", go_type(got))
        }
        ExecutionError::FunctionError { message, .. } => message.clone(),
        other => other.to_string(),
    }
}

/// Reports whether a function is no operator.
fn is_name(function: &str) -> bool {
    function.starts_with(|c: char| c.is_ascii_alphabetic())
}

/// Returns the name of a type in cel-go, which begins with a capital letter.
fn go_type(name: &str) -> String {
    let name = name.strip_suffix("_type").unwrap_or(name);
    let name = name.rsplit_once('.').map_or(name, |(_, name)| name);
    let mut letters = name.chars();
    letters.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(letters).collect()
}

fn is_nan(value: &Cel) -> bool {
    matches!(value, Cel::Float(number) if number.is_nan())
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
    #[case(
        ExecutionError::UnexpectedType { got: "int".to_owned(), want: "iterable".to_owned() },
        "got 'types.Int', expected iterable type"
    )]
    #[case(
        ExecutionError::ValuesNotComparable(Cel::Int(1), Cel::Float(f64::NAN)),
        "NaN values cannot be ordered"
    )]
    #[case(ExecutionError::no_such_overload("_<_", vec!["int".to_owned()]), "no such overload")]
    #[case(
        ExecutionError::no_such_overload("string", vec!["list".to_owned()]),
        "no such overload: string(list)"
    )]
    fn errors_have_the_words_of_kubernetes(#[case] error: ExecutionError, #[case] expected: &str) {
        assert_eq!(evaluation_error(&error), expected);
    }
}
