//! Builders for schemas: those of all kinds of fields, and the schema of `metadata`.
//!
//! `object("io.k8s.api.core.v1.ContainerPort").need("containerPort", int32()).field("name",
//! string())`

use std::sync::Arc;

use super::{Format, Kind, Schema};

/// Builds a structure with named fields. `name` is its name in published documents.
pub fn object(name: &'static str) -> Schema {
    Schema { name: Some(name), kind: Some(Kind::Object), typed: true, ..Schema::default() }
}

/// Builds a map from strings to values of one schema.
pub fn map(values: impl Into<Arc<Schema>>) -> Schema {
    Schema {
        kind: Some(Kind::Object),
        additional_properties: Some(values.into()),
        ..Schema::default()
    }
}

/// Builds a list that patches replace as a whole.
pub fn list(items: impl Into<Arc<Schema>>) -> Schema {
    Schema { kind: Some(Kind::Array), items: Some(items.into()), ..Schema::default() }
}

/// Builds a string.
pub fn string() -> Schema {
    Schema { kind: Some(Kind::String), ..Schema::default() }
}

/// Builds a boolean.
pub fn boolean() -> Schema {
    Schema { kind: Some(Kind::Boolean), ..Schema::default() }
}

/// Builds a 32-bit integer.
pub fn int32() -> Schema {
    Schema { kind: Some(Kind::Integer), format: Some(Format::Int32), ..Schema::default() }
}

/// Builds a 64-bit integer.
pub fn int64() -> Schema {
    Schema { kind: Some(Kind::Integer), format: Some(Format::Int64), ..Schema::default() }
}

/// Builds an int-or-string: a port name or number, or an amount or percentage.
pub fn int_or_string() -> Schema {
    Schema { int_or_string: true, ..Schema::default() }
}

/// Builds a resource quantity.
pub fn quantity() -> Schema {
    Schema {
        name: Some("io.k8s.apimachinery.pkg.api.resource.Quantity"),
        format: Some(Format::Quantity),
        ..string()
    }
}

/// Builds a time with whole seconds.
pub fn time() -> Schema {
    Schema {
        name: Some("io.k8s.apimachinery.pkg.apis.meta.v1.Time"),
        format: Some(Format::DateTime),
        ..string()
    }
}

/// Builds a time with microseconds.
pub fn micro_time() -> Schema {
    Schema {
        name: Some("io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime"),
        format: Some(Format::MicroTime),
        ..string()
    }
}

/// Builds a base64 string.
pub fn bytes() -> Schema {
    Schema { format: Some(Format::Byte), ..string() }
}

/// Builds a schema for any value, which is kept unchanged.
pub fn anything() -> Schema {
    Schema { preserve_unknown: true, ..Schema::default() }
}

impl Schema {
    /// Adds an optional field.
    #[must_use]
    pub fn field(mut self, name: &str, schema: impl Into<Arc<Schema>>) -> Self {
        self.properties.insert(name.to_owned(), schema.into());
        self
    }

    /// Adds a required field.
    #[must_use]
    pub fn need(mut self, name: &str, schema: impl Into<Arc<Schema>>) -> Self {
        self.required.push(name.to_owned());
        self.field(name, schema)
    }

    /// Adds a field that is always written. If the client omits it, it has the zero value of its
    /// type.
    #[must_use]
    pub fn always(mut self, name: &str, schema: Schema) -> Self {
        let schema = Schema { default: Some(schema.zero()), keep_empty: true, ..schema };
        self.required.push(name.to_owned());
        self.field(name, schema)
    }

    /// Sets the field by which strategic merge patch and server-side apply identify the items.
    #[must_use]
    pub fn merge_by(mut self, key: &'static str) -> Self {
        self.patch_merge_key = Some(key);
        self.patch_strategy.merge = true;
        self.keyed(&[key])
    }

    /// Sets the fields by which server-side apply identifies the items. The validation of each type
    /// checks that they are unique, with its own message.
    #[must_use]
    pub fn keyed(mut self, keys: &[&str]) -> Self {
        self.list_map_keys = keys.iter().map(|key| (*key).to_owned()).collect();
        self
    }

    /// Makes strategic merge patch add to the list of scalars instead of replacing it.
    #[must_use]
    pub fn merged(mut self) -> Self {
        self.patch_strategy.merge = true;
        self
    }

    /// Makes the field appear in objects even if it is empty.
    #[must_use]
    pub fn written_when_empty(mut self) -> Self {
        self.keep_empty = true;
        self
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;

    #[rstest]
    #[case(int32(), json!({"type": "integer", "format": "int32"}))]
    #[case(int64(), json!({"type": "integer", "format": "int64"}))]
    #[case(bytes(), json!({"type": "string", "format": "byte"}))]
    #[case(anything(), json!({"x-kubernetes-preserve-unknown-fields": true}))]
    #[case(
        map(string()),
        json!({"type": "object", "additionalProperties": {"type": "string"}})
    )]
    #[case(
        list(string()).merged(),
        json!({
            "type": "array", "items": {"type": "string"}, "x-kubernetes-patch-strategy": "merge",
        })
    )]
    #[case(object("T").always("n", int32()), json!({
        "type": "object", "required": ["n"],
        "properties": {"n": {"type": "integer", "format": "int32", "default": 0}},
    }))]
    fn builders_publish_their_keywords(#[case] schema: Schema, #[case] expected: Value) {
        assert_eq!(schema.to_openapi(), expected);
    }

    #[rstest]
    #[case(quantity(), "api.resource.Quantity", Format::Quantity)]
    #[case(time(), "apis.meta.v1.Time", Format::DateTime)]
    #[case(micro_time(), "apis.meta.v1.MicroTime", Format::MicroTime)]
    fn formatted_strings_have_a_published_name(
        #[case] schema: Schema,
        #[case] name: &str,
        #[case] format: Format,
    ) {
        assert_eq!(schema.name, Some(format!("io.k8s.apimachinery.pkg.{name}")).as_deref());
        assert_eq!((schema.kind, schema.format), (Some(Kind::String), Some(format)));
    }

    #[test]
    fn an_always_field_is_written_when_it_is_empty() {
        let schema = object("T").always("text", string()).field("other", string());
        let mut value = json!({"text": "", "other": ""});
        schema.prune(&mut value);
        assert_eq!(value, json!({"text": ""}));
    }
}
