//! Field errors: the path, the kind and the message of each validation mistake.

use std::fmt::{self, Display};

use serde::Serialize;
use serde_json::Value;

/// The reason of one entry of `Status.details.causes`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub enum CauseReason {
    /// The value is missing.
    FieldValueRequired,
    /// The value is malformed, out of bounds or immutable.
    FieldValueInvalid,
    /// The value has the wrong JSON type.
    FieldValueTypeInvalid,
    /// The value is outside its enumeration.
    FieldValueNotSupported,
    /// The value must be unique and is not.
    FieldValueDuplicate,
    /// The value may not be set here.
    FieldValueForbidden,
    /// The value refers to an object that does not exist.
    FieldValueNotFound,
    /// The value exceeds its length limit.
    FieldValueTooLong,
    /// The list or map exceeds its limit of entries.
    FieldValueTooMany,
    /// The server cannot validate the value.
    InternalError,
}

impl CauseReason {
    /// Returns the name in the `reason` field of a cause.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::FieldValueRequired => "FieldValueRequired",
            Self::FieldValueInvalid => "FieldValueInvalid",
            Self::FieldValueTypeInvalid => "FieldValueTypeInvalid",
            Self::FieldValueNotSupported => "FieldValueNotSupported",
            Self::FieldValueDuplicate => "FieldValueDuplicate",
            Self::FieldValueForbidden => "FieldValueForbidden",
            Self::FieldValueNotFound => "FieldValueNotFound",
            Self::FieldValueTooLong => "FieldValueTooLong",
            Self::FieldValueTooMany => "FieldValueTooMany",
            Self::InternalError => "InternalError",
        }
    }

    /// Reports whether the server skips the rules of a schema after such a mistake, because the
    /// object has another structure.
    pub const fn is_structural(self) -> bool {
        matches!(
            self,
            Self::FieldValueRequired
                | Self::FieldValueTypeInvalid
                | Self::FieldValueNotSupported
                | Self::FieldValueTooLong
                | Self::FieldValueTooMany
        )
    }
}

/// One mistake in an object, as `Status.details.causes` lists it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {message}")]
pub struct FieldError {
    /// The path, such as `spec.containers[0].image`.
    pub field: String,
    /// The kind of mistake.
    pub reason: CauseReason,
    /// The human-readable message. It starts with the kind: `Invalid value: 0: must be ...`.
    pub message: String,
}

impl FieldError {
    /// Reports a missing value.
    pub fn required(field: impl Display, detail: &str) -> Self {
        Self::new(
            field,
            CauseReason::FieldValueRequired,
            with_detail("Required value".to_owned(), detail),
        )
    }

    /// Reports a value that is malformed, out of bounds or immutable.
    pub fn invalid(field: impl Display, value: &Value, detail: &str) -> Self {
        Self::new(
            field,
            CauseReason::FieldValueInvalid,
            with_detail(format!("Invalid value: {}", shown(value)), detail),
        )
    }

    /// Reports an invalid value that the message shows as `shown`.
    pub fn invalid_text(field: impl Display, shown: &str, detail: &str) -> Self {
        let message = with_detail(format!("Invalid value: {}", limited(shown.to_owned())), detail);
        Self::new(field, CauseReason::FieldValueInvalid, message)
    }

    /// Reports an object or a list that is invalid as a whole. The message does not show it.
    pub fn invalid_object(field: impl Display, detail: &str) -> Self {
        let message = with_detail("Invalid value".to_owned(), detail);
        Self::new(field, CauseReason::FieldValueInvalid, message)
    }

    /// Reports a value that the server cannot validate.
    pub fn internal(field: impl Display, detail: &str) -> Self {
        let message = with_detail("Internal error".to_owned(), detail);
        Self::new(field, CauseReason::InternalError, message)
    }

    /// Reports a value of the wrong JSON type. `found` is the name of the actual type.
    pub fn wrong_type(field: impl Display, found: &str, detail: &str) -> Self {
        Self::new(
            field,
            CauseReason::FieldValueTypeInvalid,
            with_detail(format!("Invalid value: {}", Value::from(found)), detail),
        )
    }

    /// Reports a value outside an enumeration.
    pub fn not_supported<'a>(
        field: impl Display,
        value: &Value,
        supported: impl IntoIterator<Item = &'a Value>,
    ) -> Self {
        let supported: Vec<String> = supported.into_iter().take(MAX_SUPPORTED).map(shown).collect();
        let detail = format!("supported values: {}", supported.join(", "));
        Self::new(
            field,
            CauseReason::FieldValueNotSupported,
            with_detail(format!("Unsupported value: {}", shown(value)), &detail),
        )
    }

    /// Reports the second occurrence of a value that must be unique.
    pub fn duplicate(field: impl Display, value: &Value) -> Self {
        Self::new(
            field,
            CauseReason::FieldValueDuplicate,
            format!("Duplicate value: {}", shown(value)),
        )
    }

    /// Reports the second occurrence of an object or a list. The message does not show it.
    pub fn duplicate_object(field: impl Display) -> Self {
        Self::new(field, CauseReason::FieldValueDuplicate, "Duplicate value".to_owned())
    }

    /// Reports a value that may not be set.
    pub fn forbidden(field: impl Display, detail: &str) -> Self {
        Self::new(
            field,
            CauseReason::FieldValueForbidden,
            with_detail("Forbidden".to_owned(), detail),
        )
    }

    /// Reports a reference to an object that does not exist.
    pub fn not_found(field: impl Display, value: &Value) -> Self {
        Self::new(field, CauseReason::FieldValueNotFound, format!("Not found: {}", shown(value)))
    }

    /// Reports a string, or a sum of strings, that exceeds its limit in bytes.
    pub fn too_long(field: impl Display, limit: u64) -> Self {
        Self::new(
            field,
            CauseReason::FieldValueTooLong,
            format!("Too long: may not be more than {limit} bytes"),
        )
    }

    /// Reports a list or map that exceeds its limit of entries.
    pub fn too_many(field: impl Display, count: usize, limit: u64) -> Self {
        Self::new(
            field,
            CauseReason::FieldValueTooMany,
            format!("Too many: {count}: must have at most {limit} items"),
        )
    }

    /// Shortens the path in the message to that inside of `outer`. The field stays complete.
    #[must_use]
    pub fn shown_within(mut self, outer: &str) -> Self {
        if let Some(inside) = self.field.strip_prefix(outer) {
            let place = format!("{} in body", self.field);
            let inside = format!("{} in body", inside.trim_start_matches('.'));
            self.message = self.message.replacen(&place, &inside, 1);
        }
        self
    }

    fn new(field: impl Display, reason: CauseReason, message: String) -> Self {
        Self { field: field.to_string(), reason, message }
    }
}

/// The maximum number of bytes of a value in a message, and of supported values in a list. A
/// document can contain a mistake at each level, and each message repeats the subtree.
const MAX_SHOWN: usize = 1024;
const MAX_SUPPORTED: usize = 100;

fn shown(value: &Value) -> String {
    limited(value.to_string())
}

fn limited(mut text: String) -> String {
    if text.len() > MAX_SHOWN {
        text.truncate(text.floor_char_boundary(MAX_SHOWN));
        text.push('…');
    }
    text
}

fn with_detail(mut message: String, detail: &str) -> String {
    if !detail.is_empty() {
        message.push_str(": ");
        message.push_str(detail);
    }
    message
}

/// The path of a value during a walk over an object. It is a linked list on the stack. The text is
/// built only when an error needs it.
#[derive(Clone, Copy, Debug)]
pub enum Path<'a> {
    /// The object itself.
    Root,
    /// A named field: `.image`.
    Field(&'a Path<'a>, &'a str),
    /// An item of a list: `[0]`.
    Index(&'a Path<'a>, usize),
    /// An entry of a map: `[key]`.
    Key(&'a Path<'a>, &'a str),
}

impl<'a> Path<'a> {
    /// Returns the path of a field of this value.
    #[must_use]
    pub fn field(&'a self, name: &'a str) -> Path<'a> {
        Path::Field(self, name)
    }

    /// Returns the path of an item of this list.
    #[must_use]
    pub fn index(&'a self, index: usize) -> Path<'a> {
        Path::Index(self, index)
    }

    /// Returns the path of an entry of this map.
    #[must_use]
    pub fn key(&'a self, key: &'a str) -> Path<'a> {
        Path::Key(self, key)
    }
}

impl Display for Path<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Path::Root => Ok(()),
            Path::Field(Path::Root, name) => out.write_str(name),
            Path::Field(parent, name) => write!(out, "{parent}.{name}"),
            Path::Index(parent, index) => write!(out, "{parent}[{index}]"),
            Path::Key(parent, key) => write!(out, "{parent}[{key}]"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_written_like_the_field_of_a_cause() {
        let spec = Path::Root.field("spec");
        let containers = spec.field("containers");
        let first = containers.index(0);
        let limits = first.field("limits");
        assert_eq!(limits.key("cpu").to_string(), "spec.containers[0].limits[cpu]");
    }

    #[test]
    fn a_value_is_shown_up_to_1024_bytes() {
        let message =
            |letters: usize| FieldError::invalid("f", &"ä".repeat(letters).into(), "why").message;
        assert_eq!(message(511), format!("Invalid value: \"{}\": why", "ä".repeat(511)));
        assert_eq!(message(512), format!("Invalid value: \"{}…: why", "ä".repeat(511)));
    }

    #[test]
    fn a_message_can_show_a_part_of_the_path() {
        let error = |field: &str| {
            let why = format!("{field} in body must be of type integer: \"string\"");
            FieldError::wrong_type(field, "string", &why)
        };
        let message = |field: &str, outer: &str| error(field).shown_within(outer).message;
        let text = |path: &str| {
            format!("Invalid value: \"string\": {path} in body must be of type integer: \"string\"")
        };
        assert_eq!(message("status.size", "status."), text("size"));
        assert_eq!(message("a.default.size", "a.default"), text("size"));
        assert_eq!(message("a.default", "a.default"), text(""));
        assert_eq!(message("spec.size", "status."), text("spec.size"));
        assert_eq!(error("a.default.size").shown_within("a.default").field, "a.default.size");
    }

    #[test]
    fn a_message_starts_with_its_kind() {
        let error = FieldError::not_supported(
            "spec.color",
            &"blue".into(),
            &["red".into(), "green".into()],
        );
        assert_eq!(error.message, r#"Unsupported value: "blue": supported values: "red", "green""#);
        assert_eq!(FieldError::required("spec.size", "").message, "Required value");
    }
}
