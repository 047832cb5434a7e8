//! The patch types that change a document: JSON Patch, JSON merge patch and strategic merge patch.
//!
//! All are pure functions from a document and a patch to a new document or an error. A failed patch
//! leaves no trace. The handlers check media types and preconditions, and validate the result.

pub mod apply;
pub mod json;
pub mod merge;
mod order;
mod pointer;
pub mod strategic;

/// The reason why a patch was not applied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatchError {
    /// The patch document does not fit its patch type.
    #[error("{0}")]
    Malformed(String),
    /// The patch is well-formed but does not apply to this document.
    #[error("{0}")]
    Unprocessable(String),
    /// The patch exceeds the work limit of the server.
    #[error("Request entity too large: {0}")]
    TooLarge(String),
}

impl PatchError {
    /// Returns the HTTP status code.
    pub const fn code(&self) -> u16 {
        match self {
            Self::Malformed(_) => 400,
            Self::Unprocessable(_) => 422,
            Self::TooLarge(_) => 413,
        }
    }

    /// Returns the `Status.reason`.
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::Malformed(_) => "BadRequest",
            Self::Unprocessable(_) => "Invalid",
            Self::TooLarge(_) => "RequestEntityTooLarge",
        }
    }
}

/// Returns the type of a value with its article, for messages.
fn type_name(value: &serde_json::Value) -> &'static str {
    use serde_json::Value;
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[rstest::rstest]
    #[case(
        json!(null),
        PatchError::Malformed("an array of operations, not null".to_owned()),
        400,
        "BadRequest"
    )]
    #[case(
        json!(true),
        PatchError::Malformed("an array of operations, not a boolean".to_owned()),
        400,
        "BadRequest"
    )]
    #[case(
        json!({}),
        PatchError::Malformed("an array of operations, not an object".to_owned()),
        400,
        "BadRequest"
    )]
    #[case(
        json!([{"op": "test", "path": "/a", "value": 1}]),
        PatchError::Unprocessable(
            "operation 0 (test): the value at the path is another one".to_owned(),
        ),
        422,
        "Invalid"
    )]
    #[case(
        json!([
            {"op": "test", "path": "/a", "value": null},
            {"op": "move", "from": "/a", "path": "/b/c"},
        ]),
        PatchError::Unprocessable("operation 1 (move): no such place in the document".to_owned()),
        422,
        "Invalid"
    )]
    #[case(
        json!(vec![json!({"op": "test", "path": "/a", "value": null}); 10_001]),
        PatchError::TooLarge("got 10001".to_owned()),
        413,
        "RequestEntityTooLarge"
    )]
    fn an_error_has_a_code_a_reason_and_a_message(
        #[case] patch: serde_json::Value,
        #[case] expected: PatchError,
        #[case] code: u16,
        #[case] reason: &str,
    ) {
        let error = json::apply(&json!({"a": null}), &patch).unwrap_err();
        assert_eq!(std::mem::discriminant(&error), std::mem::discriminant(&expected));
        assert!(
            error
                .to_string()
                .ends_with(expected.to_string().trim_start_matches("Request entity too large: ")),
            "{error}"
        );
        assert_eq!((error.code(), error.reason()), (code, reason));
    }
}
