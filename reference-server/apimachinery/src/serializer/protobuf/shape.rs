//! Messages whose JSON is not an object.

use crate::schema::definitions::Definition;

/// The JSON of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// An object.
    Object,
    /// A schema in field 2, or the boolean in field 1.
    SchemaOrBool,
    /// A schema in field 1, or the list in field 2.
    SchemaOrList,
}

impl Shape {
    pub(super) fn of(definition: &Definition) -> Self {
        let name = definition.name.rsplit('.').next().unwrap_or_default();
        match name {
            "JSONSchemaPropsOrBool" => Self::SchemaOrBool,
            "JSONSchemaPropsOrArray" | "JSONSchemaPropsOrStringArray" => Self::SchemaOrList,
            _ => Self::Object,
        }
    }
}
