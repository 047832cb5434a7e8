//! Evaluates CEL expressions over the variables of a case.
//!
//! Only the variables of the expression are converted. Whole numbers become `int`, so that
//! `create.status == 201` compares equal types.

mod convert;
mod functions;

use cel::Context;
use cel::common::value::Val;
use kubeproof_cases::expression::Expression;
use serde_json::Value;

pub(crate) use self::convert::{from_cel, to_cel};
use crate::values::Values;

/// The error of an expression.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("`{expression}` cannot be evaluated: {reason}")]
pub(crate) struct EvalError {
    /// The expression as written.
    pub expression: String,
    /// The reason.
    pub reason: String,
}

/// Evaluates an expression. A missing member is an error of the expression; `has()` tests for
/// optional members.
pub(crate) fn evaluate(expression: &Expression, values: &Values) -> Result<Value, EvalError> {
    let failed = |reason: String| EvalError { expression: expression.text.clone(), reason };
    let (context, without_value) = context_of(expression, values);
    let result = expression
        .program
        .execute(&context)
        .map_err(|error| failed(without_value.unwrap_or_else(|| error.to_string())))?;
    from_cel(&result).ok_or_else(|| failed("its value has no form in JSON".into()))
}

/// Returns a context with the whole variables of an expression, to show their values.
pub(super) fn full_context_of<'v>(expression: &Expression, values: &'v Values) -> Context<'v, 'v> {
    context(expression, |name| Some(convert::variable(values.variable(name)?, None))).0
}

/// Returns a context with everything that an expression reads, and why its first named expression
/// without a value has none.
fn context_of<'v>(
    expression: &Expression,
    values: &'v Values,
) -> (Context<'v, 'v>, Option<String>) {
    context(expression, |name| {
        let need = expression.needs.variable(name)?;
        Some(convert::variable(values.variable(name)?, Some(need)))
    })
}

fn context<'v>(
    expression: &Expression,
    value: impl Fn(&str) -> Option<Box<dyn Val + 'v>>,
) -> (Context<'v, 'v>, Option<String>) {
    let mut context = functions::context();
    for name in &expression.variables {
        if let Some(value) = value(name) {
            context.add_variable_as_val(name.as_str(), value);
        }
    }
    // A named expression without a value matters only where the expression reads it.
    let mut without_value = None;
    for named in &expression.lets {
        match named.program.execute(&context) {
            Ok(value) => context.add_variable_from_value(named.name.as_str(), value),
            Err(error) => {
                without_value =
                    without_value.or_else(|| Some(format!("`{}`: {error}", named.name)));
            }
        }
    }
    (context, without_value)
}

#[cfg(test)]
mod tests {
    use cel::Value as Cel;
    use rstest::rstest;
    use serde_json::json;

    use super::functions::{comparable, countable};
    use super::*;
    use crate::testing::expression;

    fn values() -> Values {
        let mut values = Values::new();
        values.set(
            "create",
            json!({"status": 201, "body": {"metadata": {"name": "a", "n": 5}}, "events": []}),
        );
        values.set("posts", json!([{"post": {"status": 201}}, {"post": {"status": 409}}]));
        values
    }

    #[rstest]
    #[case("create.status == 201", true)]
    #[case("create.body.metadata.n > 4 && create.body.metadata.n < 6", true)]
    #[case("posts.filter(p, p.post.status == 201).size() == 1", true)]
    #[case("distinct(posts.map(p, p.post.status))", true)]
    #[case("distinct([1, 2, 1]) || create.status == 0", false)]
    #[case("sameItems(posts.map(p, p.post.status), [409, 201])", true)]
    #[case("sameItems(posts.map(p, p.post.status), [409])", false)]
    #[case("sameItems([409], posts.map(p, p.post.status))", false)]
    #[case("sameItems([1, 1, 2], [2, 1, 1]) && !sameItems([1, 1, 2], [2, 2, create.status])", true)]
    #[case("unique(posts.map(p, 1)).size() == 1", true)]
    #[case("after([1, 2, create.status, 3], create.status) == [3]", true)]
    #[case("after([create.status], create.status).size() == 0", true)]
    #[case("flatten([[create.status], [2]]) == [201, 2]", true)]
    #[case("sorted(posts.map(p, -p.post.status)) == [-409, -201]", true)]
    #[case(
        "parseTime('2026-01-01T00:00:01Z') - parseTime('2026-01-01T00:00:00Z') == 1 && \
         create.status > 0",
        true
    )]
    #[case("json('{\"a\": 1}').a == 1 && create.status > 0", true)]
    #[case("has(create.body.metadata.uid)", false)]
    #[case("create.body.metadata.name.matches('^a$')", true)]
    #[case("create.events.size() == 0", true)]
    #[case(
        "sameItems(['b', 'a', 'b'], ['b', 'b', 'a']) && !sameItems(['a', 'a'], ['a', 'b'])",
        true
    )]
    #[case("distinct(['b', 'a']) && !distinct(['b', 'a', 'b'])", true)]
    #[case("upperAscii('a-9\u{e9}') == 'A-9\u{e9}' && create.status > 0", true)]
    #[case("range(3) == [0, 1, 2] && range(0).size() == 0", true)]
    #[case("picks(['a', 'b'], 9, create.status).all(p, p in ['a', 'b'])", true)]
    #[case("picks([1, 2, 3], 50, 7) == picks([1, 2, 3], 50, 7)", true)]
    #[case("picks([1, 2, 3], 50, 7) == picks([1, 2, 3], 50, create.status)", false)]
    fn expressions(#[case] text: &str, #[case] expected: bool) {
        assert_eq!(evaluate(&expression(text), &values()), Ok(json!(expected)));
    }

    #[test]
    fn a_missing_member_is_an_error_that_names_the_expression() {
        let error =
            evaluate(&expression("create.body.metadata.uid == 'x'"), &values()).unwrap_err();
        assert!(error.to_string().contains("create.body.metadata.uid"), "{error}");
    }
    #[rstest]
    #[case(json!(null))]
    #[case(json!(true))]
    #[case(json!(-1))]
    #[case(json!(u64::MAX))]
    #[case(json!(2.5))]
    #[case(json!("x"))]
    #[case(json!([1, [null]]))]
    #[case(json!({"b": {"c": [1.5]}, "a": "x"}))]
    fn a_value_is_the_same_in_an_expression(#[case] value: Value) {
        let mut values = values();
        values.set("it", value.clone());
        assert_eq!(evaluate(&expression("it"), &values), Ok(value));
    }

    #[rstest]
    #[case("after([1, 2], create.status)", "the list does not hold the item")]
    #[case("picks([], 1, create.status)", "the list is empty")]
    #[case("flatten([create.status])", "expected a list, got int")]
    #[case("range(create.body.metadata.name)", "expected an int, got string")]
    #[case("json(create.status)", "expected a string, got int")]
    #[case("json('{' + create.body.metadata.name)", "key must be a string")]
    #[case("parseTime(create.body.metadata.name)", "parse")]
    #[case("sameItems([create.status])", "expected 2, got 1")]
    #[case("picks([create.status], 1)", "expected 3, got 2")]
    #[case("json() == create.status", "expected 1, got 0")]
    #[case("range(create.status * 10000)", "2010000 is more than 1000000")]
    #[case("create.status == 201 ? b'x' : b'y'", "its value has no form in JSON")]
    fn what_a_function_cannot_take_is_reported(#[case] text: &str, #[case] reason: &str) {
        let error = evaluate(&expression(text), &values()).unwrap_err();
        assert!(error.reason.contains(reason), "{error}");
    }

    #[test]
    fn what_a_server_sends_keeps_no_client_busy() {
        assert!(comparable("distinct", &vec![Cel::Null; 10_000]).is_ok());
        assert!(comparable("distinct", &vec![Cel::Null; 10_001]).is_err());
        assert!(countable("range", 1_000_000).is_ok());
        assert!(countable("range", 1_000_001).is_err());
    }

    /// Strings are sorted, so lists of them may be long.
    #[test]
    fn texts_are_compared_however_many_they_are() {
        let names: Vec<String> = (0..10_001).map(|index| index.to_string()).collect();
        let mut values = Values::new();
        values.set("names", json!(names));
        let of_all = evaluate(&expression("distinct(names) && sameItems(names, names)"), &values);
        assert_eq!(of_all, Ok(json!(true)));
    }
}
