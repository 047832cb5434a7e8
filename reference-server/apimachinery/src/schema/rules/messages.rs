//! Literals of protobuf messages, such as `google.protobuf.Duration{seconds: 3}`.
//!
//! CEL has values for these messages, so a literal becomes the expression of its value.

use cel::common::ast::{EntryExpr, Expr, IdedExpr, LiteralValue, StructExpr};

use super::conversions::{DURATION_OF, TIMESTAMP_OF};
use super::syntax;
use super::types::Type;

/// The steps to create a message.
pub(super) const COST: u64 = 40;
/// The only value of the enumeration `google.protobuf.NullValue`.
pub(super) const NULL_VALUE: &str = "google.protobuf.NullValue.NULL_VALUE";
/// The package of the messages.
const PACKAGE: &str = "google.protobuf.";

/// A literal of a known message.
#[derive(Clone, Copy, Debug)]
pub(super) struct Message<'e> {
    kind: Kind,
    literal: &'e StructExpr,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Duration,
    Timestamp,
    Bool,
    Int,
    Uint,
    Double,
    String,
    Bytes,
    Struct,
    List,
    Value,
}

/// A field of a literal. It has no type if the message has no such field.
#[derive(Clone, Debug)]
pub(super) struct Field<'e> {
    pub(super) id: u64,
    pub(super) name: &'e str,
    pub(super) ty: Option<Type<'static>>,
    pub(super) value: &'e IdedExpr,
}

impl<'e> Message<'e> {
    /// Returns the message of a literal. Returns `None` for unknown messages.
    pub(super) fn of(literal: &'e StructExpr) -> Option<Self> {
        let name = literal.type_name.strip_prefix('.').unwrap_or(&literal.type_name);
        let kind = match name.strip_prefix(PACKAGE)? {
            "Duration" => Kind::Duration,
            "Timestamp" => Kind::Timestamp,
            "BoolValue" => Kind::Bool,
            "Int32Value" | "Int64Value" => Kind::Int,
            "UInt32Value" | "UInt64Value" => Kind::Uint,
            "FloatValue" | "DoubleValue" => Kind::Double,
            "StringValue" => Kind::String,
            "BytesValue" => Kind::Bytes,
            "Struct" => Kind::Struct,
            "ListValue" => Kind::List,
            "Value" => Kind::Value,
            _ => return None,
        };
        Some(Self { kind, literal })
    }

    /// Returns the type of the value.
    pub(super) fn ty(self) -> Type<'static> {
        match self.kind {
            Kind::Duration => Type::Duration,
            Kind::Timestamp => Type::Timestamp,
            Kind::Bool => Type::Bool,
            Kind::Int => Type::Int,
            Kind::Uint => Type::Uint,
            Kind::Double => Type::Double,
            Kind::String => Type::String,
            Kind::Bytes => Type::Bytes,
            Kind::Struct => object(),
            Kind::List => list(),
            Kind::Value => Type::Dyn,
        }
    }

    pub(super) fn fields(self) -> impl Iterator<Item = Field<'e>> {
        self.literal.entries.iter().filter_map(move |entry| match &entry.expr {
            EntryExpr::StructField(field) => Some(Field {
                id: entry.id,
                name: &field.field,
                ty: self.field(&field.field),
                value: &field.value,
            }),
            EntryExpr::MapEntry(_) => None,
        })
    }

    fn field(self, name: &str) -> Option<Type<'static>> {
        match (self.kind, name) {
            (Kind::Duration | Kind::Timestamp, "seconds" | "nanos")
            | (Kind::Value, "null_value") => Some(Type::Int),
            (Kind::Struct, "fields") | (Kind::Value, "struct_value") => Some(object()),
            (Kind::List, "values") | (Kind::Value, "list_value") => Some(list()),
            (Kind::Value, "number_value") => Some(Type::Double),
            (Kind::Value, "string_value") => Some(Type::String),
            (Kind::Value, "bool_value") => Some(Type::Bool),
            (
                Kind::Bool | Kind::Int | Kind::Uint | Kind::Double | Kind::String | Kind::Bytes,
                "value",
            ) => Some(self.ty()),
            _ => None,
        }
    }

    /// Returns the expression of the value.
    pub(super) fn value(self) -> IdedExpr {
        let field = |name: &str| self.fields().filter(|field| field.name == name).last();
        let seconds = |function: &str| {
            let number = |name: &str| {
                field(name).map_or_else(|| syntax::number(0), |field| field.value.clone())
            };
            syntax::call(function, vec![number("seconds"), number("nanos")])
        };
        match self.kind {
            Kind::Duration => return seconds(DURATION_OF),
            Kind::Timestamp => return seconds(TIMESTAMP_OF),
            _ => {}
        }
        let last = self.fields().last();
        match (self.kind, last) {
            (Kind::Value, Some(field)) if field.name == "null_value" => null(),
            (_, Some(field)) => field.value.clone(),
            (kind, None) => zero(kind),
        }
    }
}

/// Returns the value of a message without fields.
fn zero(kind: Kind) -> IdedExpr {
    let literal = |value| IdedExpr { id: 0, expr: Expr::Literal(value) };
    match kind {
        Kind::Bool => syntax::boolean(false),
        Kind::Uint => literal(LiteralValue::UInt(0.into())),
        Kind::Double => literal(LiteralValue::Double(0.0.into())),
        Kind::String => literal(LiteralValue::String(String::new().into())),
        Kind::Bytes => literal(LiteralValue::Bytes(Vec::new().into())),
        Kind::Struct => syntax::empty_map(),
        Kind::List => syntax::list(Vec::new()),
        Kind::Value => null(),
        Kind::Int | Kind::Duration | Kind::Timestamp => syntax::number(0),
    }
}

fn null() -> IdedExpr {
    IdedExpr { id: 0, expr: Expr::Literal(LiteralValue::Null) }
}

fn object() -> Type<'static> {
    Type::Map(Box::new(Type::String), Box::new(Type::Dyn))
}

fn list() -> Type<'static> {
    Type::List(Box::new(Type::Dyn))
}

#[cfg(test)]
mod tests {
    use cel::{Context, Value as Cel};
    use rstest::rstest;
    use serde_json::json;

    use super::super::check::{Parsed, check};
    use super::super::counted::counted;
    use super::super::library::env;
    use crate::schema::Schema;

    fn schema() -> Schema {
        Schema::from_openapi(&json!({"type": "object", "properties": {}})).unwrap()
    }

    #[rstest]
    #[case("google.protobuf.Duration{} == duration('0s')")]
    #[case("google.protobuf.Duration{seconds: 3, nanos: 5} == duration('3.000000005s')")]
    #[case("google.protobuf.Timestamp{seconds: 60} == timestamp('1970-01-01T00:01:00Z')")]
    #[case("google.protobuf.Int64Value{value: 5} == 5 && !google.protobuf.BoolValue{}")]
    #[case("google.protobuf.StringValue{value: 'a'} + google.protobuf.StringValue{} == 'a'")]
    #[case("google.protobuf.UInt64Value{value: 1u} == 1u && google.protobuf.UInt32Value{} == 0u")]
    #[case("google.protobuf.DoubleValue{value: 1.5} == 1.5 && google.protobuf.Value{} == null")]
    #[case("google.protobuf.BytesValue{} == b'' && google.protobuf.Struct{} == {}")]
    #[case(
        "google.protobuf.ListValue{values: [google.protobuf.Value{bool_value: true}]} == [true]"
    )]
    #[case("google.protobuf.NullValue.NULL_VALUE == 0")]
    fn literals_are_values(#[case] text: &str) {
        let program = env().compile(text).unwrap();
        let parsed = Parsed { expression: program.expression(), source: program.source_info() };
        assert_eq!(check(parsed, &schema(), false).unwrap().ty.to_string(), "bool");
        let expression = counted(program.expression());
        let result = Cel::resolve(&expression, &Context::with_env(env())).unwrap();
        assert_eq!(result, Cel::Bool(true));
    }

    #[rstest]
    #[case("google.protobuf.Duration{hours: 3}", "undefined field 'hours'")]
    #[case("google.protobuf.Odd{}", "undeclared reference to 'google.protobuf.Odd'")]
    #[case("Odd{}", "undeclared reference to 'Odd'")]
    #[case(
        "google.protobuf.Int64Value{value: 'a'}",
        "expected type of field 'value' is 'int' but provided type is 'string'"
    )]
    fn other_literals_are_mistakes(#[case] text: &str, #[case] expected: &str) {
        let program = env().compile(text).unwrap();
        let parsed = Parsed { expression: program.expression(), source: program.source_info() };
        let error = check(parsed, &schema(), false).unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
}
