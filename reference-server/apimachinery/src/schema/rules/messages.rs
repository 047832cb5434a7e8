//! Literals of protobuf messages, such as `google.protobuf.Duration{seconds: 3}`.
//!
//! CEL has values for these messages, so a literal becomes the expression of its value.

use cel::common::ast::{EntryExpr, Expr, IdedExpr, LiteralValue, StructExpr, operators};

use super::syntax;

/// The package of the messages.
const PACKAGE: &str = "google.protobuf.";
/// The fields of a duration and of a time, and their units.
const PARTS: [(&str, &str); 2] = [("seconds", "s"), ("nanos", "ns")];

/// Returns the expression of the value of a literal. The error is the message of the type check.
pub(super) fn value(literal: &StructExpr) -> Result<IdedExpr, String> {
    let unknown = || format!("undeclared reference to '{}'", literal.type_name);
    let name = literal.type_name.strip_prefix(PACKAGE).ok_or_else(unknown)?;
    let fields = fields(literal);
    let known = |field: &str| match name {
        "Duration" | "Timestamp" => PARTS.iter().any(|(part, _)| *part == field),
        _ => field == "value",
    };
    if let Some((field, _)) = fields.iter().find(|(field, _)| !known(field)) {
        return Err(format!("undefined field '{field}'"));
    }
    let zero = match name {
        "Duration" => Some(of_text("duration", "0s")),
        "Timestamp" => Some(of_text("timestamp", "1970-01-01T00:00:00Z")),
        "BoolValue" => Some(syntax::boolean(false)),
        "Int32Value" | "Int64Value" => Some(syntax::number(0)),
        "StringValue" => Some(text("")),
        _ => None,
    };
    let zero = zero.ok_or_else(unknown)?;
    let all = fields.into_iter().fold(zero, |sum, (field, value)| {
        let unit = PARTS.iter().find(|(part, _)| *part == field);
        let Some((_, unit)) = unit else { return value.clone() };
        let amount = syntax::call("string", vec![value.clone()]);
        let amount = syntax::call(operators::ADD, vec![amount, text(unit)]);
        let part = syntax::call("duration", vec![amount]);
        syntax::call(operators::ADD, vec![sum, part])
    });
    Ok(all)
}

fn fields(literal: &StructExpr) -> Vec<(&str, &IdedExpr)> {
    let fields = literal.entries.iter().map(|entry| match &entry.expr {
        EntryExpr::StructField(field) => Some((field.field.as_str(), &field.value)),
        EntryExpr::MapEntry(_) => None,
    });
    fields.flatten().collect()
}

fn of_text(function: &str, value: &str) -> IdedExpr {
    syntax::call(function, vec![text(value)])
}

fn text(value: &str) -> IdedExpr {
    let value = LiteralValue::String(value.to_owned().into());
    IdedExpr { id: 0, expr: Expr::Literal(value) }
}

#[cfg(test)]
mod tests {
    use cel::{Context, Value as Cel};
    use rstest::rstest;
    use serde_json::json;

    use super::super::check::check;
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
    fn literals_are_values(#[case] text: &str) {
        let program = env().compile(text).unwrap();
        assert_eq!(check(program.expression(), &schema(), false).unwrap().ty.to_string(), "bool");
        let expression = counted(program.expression());
        let result = Cel::resolve(&expression, &Context::with_env(env())).unwrap();
        assert_eq!(result, Cel::Bool(true));
    }

    #[rstest]
    #[case("google.protobuf.Duration{hours: 3}", "undefined field 'hours'")]
    #[case("google.protobuf.Odd{}", "undeclared reference to 'google.protobuf.Odd'")]
    #[case("Odd{}", "undeclared reference to 'Odd'")]
    fn other_literals_are_mistakes(#[case] text: &str, #[case] expected: &str) {
        let program = env().compile(text).unwrap();
        let error = check(program.expression(), &schema(), false).unwrap_err();
        assert_eq!(error, expected);
    }
}
