//! OpenAPI v2 as protobuf: the messages of gnostic's `openapi.v2` package.
//!
//! Tables translate the JSON document, one for each message type. An entry has the keyword, the
//! field number, and the form of the value. Keywords with the prefix `x-` become vendor extensions
//! with values in YAML. JSON is valid YAML.

use serde_json::{Map, Value};

use super::wire::Message;

/// Encodes an OpenAPI v2 document as protobuf.
pub(crate) fn encode(document: &Value) -> Vec<u8> {
    message(document, &DOCUMENT).into_bytes()
}

/// The message type of one kind of JSON object.
struct Shape {
    fields: &'static [(&'static str, u64, Form)],
    /// The field of all keywords without their own field.
    others: Option<(u64, Form)>,
    /// The field of keywords with the prefix `x-`. It is 0 if there is none.
    extensions: u64,
}

/// The form of a value.
#[derive(Clone, Copy)]
enum Form {
    Text,
    Texts,
    Boolean,
    Integer,
    Double,
    /// Any value, as YAML.
    Any,
    Anys,
    Message(&'static Shape),
    Messages(&'static Shape),
    /// A map with entries of name and value.
    Entry(&'static Shape),
    /// A map whose values are one of several choices: that of this field.
    Choice(u64, &'static Shape),
    /// A string in a message with a list of strings.
    WrappedText,
    /// A message in a message.
    Wrapped(&'static Shape),
    /// A schema or a boolean.
    SchemaOrBoolean,
    /// A parameter of any location, wrapped in its choices.
    Parameters,
    /// The names of scopes by security scheme.
    Security,
}

fn message(value: &Value, shape: &Shape) -> Message {
    let mut out = Message::default();
    let Value::Object(object) = value else { return out };
    for (keyword, value) in object {
        if shape.extensions != 0 && keyword.starts_with("x-") {
            named(&mut out, shape.extensions, keyword, &any(value));
        } else if let Some((_, field, form)) =
            shape.fields.iter().find(|(known, _, _)| known == keyword)
        {
            write(&mut out, *field, keyword, value, *form);
        } else if let Some((field, form)) = shape.others {
            write(&mut out, field, keyword, value, form);
        }
    }
    out
}

fn write(out: &mut Message, field: u64, keyword: &str, value: &Value, form: Form) {
    let items = || value.as_array().into_iter().flatten();
    match form {
        Form::Text => out.string(field, value.as_str().unwrap_or_default()),
        Form::Texts => items().filter_map(Value::as_str).for_each(|text| out.string(field, text)),
        Form::Boolean => out.boolean(field, value.as_bool().unwrap_or_default()),
        Form::Integer => out.integer(field, value.as_i64().unwrap_or_default()),
        Form::Double => out.double(field, value.as_f64().unwrap_or_default()),
        Form::Any => out.message(field, &any(value)),
        Form::Anys => items().for_each(|item| out.message(field, &any(item))),
        Form::Message(shape) => out.message(field, &message(value, shape)),
        Form::Messages(shape) => items().for_each(|item| out.message(field, &message(item, shape))),
        Form::Entry(shape) => named(out, field, keyword, &message(value, shape)),
        Form::Choice(choice, shape) => {
            named(out, field, keyword, &wrap(choice, &message(value, shape)));
        }
        Form::WrappedText => {
            let mut wrapper = Message::default();
            wrapper.string(1, value.as_str().unwrap_or_default());
            out.message(field, &wrapper);
        }
        Form::Wrapped(shape) => out.message(field, &wrap(1, &message(value, shape))),
        Form::SchemaOrBoolean => match value {
            Value::Bool(allowed) => {
                let mut choice = Message::default();
                choice.boolean(2, *allowed);
                out.message(field, &choice);
            }
            schema => out.message(field, &wrap(1, &message(schema, &SCHEMA))),
        },
        Form::Parameters => items().for_each(|item| out.message(field, &parameter(item))),
        Form::Security => {
            for (name, scopes) in items().filter_map(Value::as_object).flat_map(Map::iter) {
                let mut list = Message::default();
                write(&mut list, 1, name, scopes, Form::Texts);
                let mut requirement = Message::default();
                named(&mut requirement, 1, name, &list);
                out.message(field, &requirement);
            }
        }
    }
}

/// Writes an entry of a map.
fn named(out: &mut Message, field: u64, name: &str, value: &Message) {
    let mut entry = Message::default();
    entry.string(1, name);
    entry.message(2, value);
    out.message(field, &entry);
}

fn any(value: &Value) -> Message {
    let mut any = Message::default();
    any.string(2, &value.to_string());
    any
}

fn wrap(field: u64, inner: &Message) -> Message {
    let mut wrapper = Message::default();
    wrapper.message(field, inner);
    wrapper
}

/// Encodes a parameter. Item, parameter, parameter kind and location are each a choice with its own
/// message.
fn parameter(value: &Value) -> Message {
    let parameter = match value["in"].as_str() {
        Some("body") => wrap(1, &message(value, &BODY_PARAMETER)),
        Some("path") => wrap(2, &wrap(4, &message(value, &PATH_PARAMETER))),
        _ => wrap(2, &wrap(3, &message(value, &QUERY_PARAMETER))),
    };
    wrap(1, &parameter)
}

static DOCUMENT: Shape = Shape {
    fields: &[
        ("swagger", 1, Form::Text),
        ("info", 2, Form::Message(&INFO)),
        ("paths", 8, Form::Message(&PATHS)),
        ("definitions", 9, Form::Message(&SCHEMA_MAP)),
        ("security", 12, Form::Security),
        ("securityDefinitions", 13, Form::Message(&SECURITY_DEFINITIONS)),
    ],
    others: None,
    extensions: 16,
};

static INFO: Shape = Shape {
    fields: &[("title", 1, Form::Text), ("version", 2, Form::Text)],
    others: None,
    extensions: 7,
};

static PATHS: Shape =
    Shape { fields: &[], others: Some((2, Form::Entry(&PATH_ITEM))), extensions: 1 };

static SCHEMA_MAP: Shape =
    Shape { fields: &[], others: Some((1, Form::Entry(&SCHEMA))), extensions: 0 };

/// The documents use one kind of security scheme: a key in a header.
static SECURITY_DEFINITIONS: Shape =
    Shape { fields: &[], others: Some((1, Form::Choice(2, &API_KEY))), extensions: 0 };

static API_KEY: Shape = Shape {
    fields: &[
        ("type", 1, Form::Text),
        ("name", 2, Form::Text),
        ("in", 3, Form::Text),
        ("description", 4, Form::Text),
    ],
    others: None,
    extensions: 5,
};

static PATH_ITEM: Shape = Shape {
    fields: &[
        ("get", 2, Form::Message(&OPERATION)),
        ("put", 3, Form::Message(&OPERATION)),
        ("post", 4, Form::Message(&OPERATION)),
        ("delete", 5, Form::Message(&OPERATION)),
        ("options", 6, Form::Message(&OPERATION)),
        ("head", 7, Form::Message(&OPERATION)),
        ("patch", 8, Form::Message(&OPERATION)),
        ("parameters", 9, Form::Parameters),
    ],
    others: None,
    extensions: 10,
};

static OPERATION: Shape = Shape {
    fields: &[
        ("tags", 1, Form::Texts),
        ("description", 3, Form::Text),
        ("operationId", 5, Form::Text),
        ("produces", 6, Form::Texts),
        ("consumes", 7, Form::Texts),
        ("parameters", 8, Form::Parameters),
        ("responses", 9, Form::Message(&RESPONSES)),
        ("schemes", 10, Form::Texts),
    ],
    others: None,
    extensions: 13,
};

static BODY_PARAMETER: Shape = Shape {
    fields: &[
        ("description", 1, Form::Text),
        ("name", 2, Form::Text),
        ("in", 3, Form::Text),
        ("required", 4, Form::Boolean),
        ("schema", 5, Form::Message(&SCHEMA)),
    ],
    others: None,
    extensions: 6,
};

static PATH_PARAMETER: Shape = Shape {
    fields: &[
        ("required", 1, Form::Boolean),
        ("in", 2, Form::Text),
        ("description", 3, Form::Text),
        ("name", 4, Form::Text),
        ("type", 5, Form::Text),
        ("uniqueItems", 19, Form::Boolean),
    ],
    others: None,
    extensions: 22,
};

static QUERY_PARAMETER: Shape = Shape {
    fields: &[
        ("required", 1, Form::Boolean),
        ("in", 2, Form::Text),
        ("description", 3, Form::Text),
        ("name", 4, Form::Text),
        ("type", 6, Form::Text),
        ("uniqueItems", 20, Form::Boolean),
    ],
    others: None,
    extensions: 23,
};

static RESPONSES: Shape =
    Shape { fields: &[], others: Some((1, Form::Choice(1, &RESPONSE))), extensions: 2 };

static RESPONSE: Shape = Shape {
    fields: &[("description", 1, Form::Text), ("schema", 2, Form::Wrapped(&SCHEMA))],
    others: None,
    extensions: 5,
};

static SCHEMA: Shape = Shape {
    fields: &[
        ("$ref", 1, Form::Text),
        ("format", 2, Form::Text),
        ("title", 3, Form::Text),
        ("description", 4, Form::Text),
        ("default", 5, Form::Any),
        ("multipleOf", 6, Form::Double),
        ("maximum", 7, Form::Double),
        ("exclusiveMaximum", 8, Form::Boolean),
        ("minimum", 9, Form::Double),
        ("exclusiveMinimum", 10, Form::Boolean),
        ("maxLength", 11, Form::Integer),
        ("minLength", 12, Form::Integer),
        ("pattern", 13, Form::Text),
        ("maxItems", 14, Form::Integer),
        ("minItems", 15, Form::Integer),
        ("uniqueItems", 16, Form::Boolean),
        ("maxProperties", 17, Form::Integer),
        ("minProperties", 18, Form::Integer),
        ("required", 19, Form::Texts),
        ("enum", 20, Form::Anys),
        ("additionalProperties", 21, Form::SchemaOrBoolean),
        ("type", 22, Form::WrappedText),
        ("items", 23, Form::Wrapped(&SCHEMA)),
        ("allOf", 24, Form::Messages(&SCHEMA)),
        ("properties", 25, Form::Message(&SCHEMA_MAP)),
        ("example", 30, Form::Any),
    ],
    others: None,
    extensions: 31,
};
