//! The three kinds of patch that change a document: JSON Patch, JSON merge patch, strategic merge patch.
//!
//! All are pure: a document and a patch go in, a new document or an error comes out, so that nothing of a patch which
//! fails half-way is ever seen. The handlers look after media types, preconditions and validation.

pub mod json;
pub mod merge;
mod order;
mod pointer;
pub mod strategic;

/// Why a patch was not applied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatchError {
    /// The patch document itself is not of its kind.
    #[error("{0}")]
    Malformed(String),
    /// The patch is well-formed, but this document cannot take it.
    #[error("{0}")]
    Unprocessable(String),
    /// The patch asks for more work than the server grants.
    #[error("Request entity too large: {0}")]
    TooLarge(String),
}

impl PatchError {
    /// The HTTP status code.
    pub const fn code(&self) -> u16 {
        match self {
            Self::Malformed(_) => 400,
            Self::Unprocessable(_) => 422,
            Self::TooLarge(_) => 413,
        }
    }

    /// The `Status.reason`.
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::Malformed(_) => "BadRequest",
            Self::Unprocessable(_) => "Invalid",
            Self::TooLarge(_) => "RequestEntityTooLarge",
        }
    }
}

/// The article and noun by which messages name the type of a value.
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
    #[case(json!(null), PatchError::Malformed("an array of operations, not null".to_owned()), 400, "BadRequest")]
    #[case(json!(true), PatchError::Malformed("an array of operations, not a boolean".to_owned()), 400, "BadRequest")]
    #[case(json!({}), PatchError::Malformed("an array of operations, not an object".to_owned()), 400, "BadRequest")]
    #[case(
        json!([{"op": "test", "path": "/a", "value": 1}]),
        PatchError::Unprocessable("operation 0 (test): the value at the path is another one".to_owned()),
        422,
        "Invalid"
    )]
    #[case(
        json!([{"op": "test", "path": "/a", "value": null}, {"op": "move", "from": "/a", "path": "/b/c"}]),
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
    fn a_refusal_says_what_is_wrong_and_whose_fault_it_is(
        #[case] patch: serde_json::Value,
        #[case] expected: PatchError,
        #[case] code: u16,
        #[case] reason: &str,
    ) {
        let error = json::apply(&json!({"a": null}), &patch, crate::Faults::none()).unwrap_err();
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
