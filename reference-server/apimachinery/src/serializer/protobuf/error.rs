//! The errors of the codec.

/// The reason why bytes are not an object.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The bytes are empty.
    #[error("empty data")]
    Empty,
    /// The magic prefix is absent.
    #[error("expected the prefix {:?} of a protobuf message", super::MAGIC)]
    NoPrefix,
    /// The bytes end after the magic prefix.
    #[error("empty body")]
    NoBody,
    /// The envelope names no kind, or one without protobuf encoding.
    #[error("no protobuf message for kind {kind:?} in version {api_version:?}")]
    UnknownKind {
        /// The API version, such as `apps/v1`.
        api_version: String,
        /// The kind.
        kind: String,
    },
    /// A field is broken.
    #[error("{}{problem}", at(path))]
    Field {
        /// The path of the field, such as `spec.containers[0].name`.
        path: String,
        /// The problem.
        problem: Problem,
    },
}

/// The problem of a field on the wire.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// The bytes end inside a field.
    #[error("unexpected end of data")]
    UnexpectedEnd,
    /// A key, a number or a length is malformed.
    #[error("malformed protobuf: {0}")]
    Malformed(String),
    /// The wire type does not fit the type of the field.
    #[error("wrong wire type")]
    WireType,
    /// A string is not UTF-8.
    #[error("a string is not UTF-8")]
    Utf8,
    /// A number, a time or a duration is out of range.
    #[error("value out of range")]
    Range,
    /// Embedded JSON is malformed.
    #[error("malformed JSON: {0}")]
    Json(String),
    /// Messages are nested too deeply.
    #[error("exceeded max depth")]
    TooDeep,
    /// An embedded object is broken.
    #[error("{0}")]
    Embedded(Box<DecodeError>),
}

/// The reason why an object has no protobuf encoding.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// The kind has no protobuf encoding, or the value is not an object with a kind.
    #[error("no protobuf message for kind {kind:?} in version {api_version:?}")]
    UnknownKind {
        /// The API version, such as `apps/v1`.
        api_version: String,
        /// The kind.
        kind: String,
    },
    /// A value does not fit the type of its field.
    #[error("{}expected {expected}", at(path))]
    Field {
        /// The path of the field.
        path: String,
        /// The values of the field, such as "a list".
        expected: &'static str,
    },
}

fn at(path: &str) -> String {
    if path.is_empty() { String::new() } else { format!("{path}: ") }
}

impl From<Problem> for DecodeError {
    fn from(problem: Problem) -> Self {
        Self::Field { path: String::new(), problem }
    }
}

impl DecodeError {
    /// Adds the name of the field that contains the broken one.
    pub(super) fn below(mut self, name: &str) -> Self {
        if let Self::Field { path, .. } = &mut self {
            *path = join(name, path);
        }
        self
    }
}

impl EncodeError {
    pub(super) fn expected(expected: &'static str) -> Self {
        Self::Field { path: String::new(), expected }
    }

    /// Adds the name of the field that contains the wrong one.
    pub(super) fn below(mut self, name: &str) -> Self {
        if let Self::Field { path, .. } = &mut self {
            *path = join(name, path);
        }
        self
    }
}

fn join(name: &str, rest: &str) -> String {
    if rest.is_empty() || rest.starts_with('[') {
        format!("{name}{rest}")
    } else {
        format!("{name}.{rest}")
    }
}
