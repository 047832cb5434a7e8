//! What went wrong in a check, as data.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What went wrong in a check. Failures with equal symptoms often have one cause, so reports group
/// them.
#[derive(
    Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd, Deserialize, Serialize, JsonSchema,
)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Symptom {
    /// A response lacks a member.
    MissingField {
        /// The path of the member in the body, such as `metadata.uid`.
        field: String,
    },
    /// A member has another value than expected.
    WrongField {
        /// The path of the member in the body.
        field: String,
    },
    /// The server returned another status code than expected.
    StatusCode {
        /// The kind of request, such as `create` or `watch`.
        request: String,
        /// The expected codes.
        expected: Vec<u16>,
        /// The code of the response.
        got: u16,
    },
    /// The server sent no response, or broke the protocol.
    NoResponse {
        /// The kind of request.
        request: String,
    },
    /// The server sent frames that the protocol of the stream does not permit. The actual value of
    /// the check lists them.
    BrokenFraming {
        /// The kind of request.
        request: String,
    },
    /// A step that prepares the case failed, so that the rest of the case did not run.
    Setup {
        /// The kind of request, such as `create configmaps`.
        request: String,
        /// The status code of the response; 0 without one.
        got: u16,
    },
}
