//! Evaluation of CEL over what a case knows.
//!
//! Only the variables that an expression reads are converted; numbers without a fraction become `int`, so
//! that `create.status == 201` compares like with like.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use cel::extractors::Arguments;
use cel::objects::{Key, Map};
use cel::{Context, Env, ExecutionError, Value as Cel};
use kubeproof_cases::cel::Expression;
use kubeproof_cases::needs::Need;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::{Value, json};

use crate::values::Values;

/// An expression that has no value.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("`{expression}` cannot be evaluated: {reason}")]
pub struct EvalError {
    /// As written.
    pub expression: String,
    /// Why.
    pub reason: String,
}

/// Evaluates an expression. A member that a server left out is an error of the expression, not of the case:
/// use `has()` where absence is lawful.
pub fn evaluate(expression: &Expression, values: &Values) -> Result<Value, EvalError> {
    let failed = |reason: String| EvalError { expression: expression.text.clone(), reason };
    let mut context = context();
    for name in &expression.variables {
        if let (Some(value), Some(need)) = (values.get(name), expression.needs.variable(name)) {
            context.add_variable_from_value(name.as_str(), needed(value, need));
        }
    }
    let result = expression.program.execute(&context).map_err(|error| failed(error.to_string()))?;
    from_cel(&result).ok_or_else(|| failed("its value has no form in JSON".into()))
}

fn context() -> Context<'static, 'static> {
    static ENV: OnceLock<Arc<Env>> = OnceLock::new();
    let mut context = Context::with_env(Arc::clone(ENV.get_or_init(|| Arc::new(Env::stdlib()))));
    let functions: [(&str, Function); 10] = [
        ("after", |arguments| {
            let items = list(arguments, 0)?;
            let item = arguments.get(1);
            let index = items
                .iter()
                .position(|other| Some(other) == item)
                .ok_or_else(|| ExecutionError::function_error("after", "the list does not hold the item"))?;
            Ok(Cel::List(Arc::new(items[index + 1..].to_vec())))
        }),
        ("distinct", |arguments| {
            let items = list(arguments, 0)?;
            if let Some(mut texts) = texts(&items) {
                texts.sort_unstable();
                return Ok(Cel::Bool(texts.windows(2).all(|pair| pair[0] != pair[1])));
            }
            comparable("distinct", &items)?;
            Ok(Cel::Bool(items.iter().enumerate().all(|(index, item)| !items[..index].contains(item))))
        }),
        ("unique", |arguments| {
            let items = list(arguments, 0)?;
            comparable("unique", &items)?;
            let mut seen: Vec<Cel> = Vec::new();
            for item in items.iter() {
                if !seen.contains(item) {
                    seen.push(item.clone());
                }
            }
            Ok(Cel::List(Arc::new(seen)))
        }),
        ("flatten", |arguments| {
            let mut items = Vec::new();
            for inner in list(arguments, 0)?.iter() {
                items.extend(as_list("flatten", inner)?.iter().cloned());
            }
            Ok(Cel::List(Arc::new(items)))
        }),
        ("sorted", |arguments| {
            let mut items = list(arguments, 0)?.as_ref().clone();
            items.sort_by(|a, b| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
            Ok(Cel::List(Arc::new(items)))
        }),
        ("sameItems", |arguments| {
            let (a, b) = (list(arguments, 0)?, list(arguments, 1)?);
            if let (Some(mut a), Some(mut b)) = (texts(&a), texts(&b)) {
                a.sort_unstable();
                b.sort_unstable();
                return Ok(Cel::Bool(a == b));
            }
            comparable("sameItems", &a)?;
            let mut rest = b.as_ref().clone();
            let all = a.iter().all(|item| {
                rest.iter().position(|other| other == item).map(|index| rest.swap_remove(index)).is_some()
            });
            Ok(Cel::Bool(all && rest.is_empty()))
        }),
        ("range", |arguments| {
            let end = integer(arguments, 0)?;
            countable("range", end)?;
            Ok(Cel::List(Arc::new((0..end).map(Cel::Int).collect())))
        }),
        ("picks", |arguments| {
            let (items, count, seed) = (list(arguments, 0)?, integer(arguments, 1)?, integer(arguments, 2)?);
            if items.is_empty() {
                return Err(ExecutionError::function_error("picks", "the list is empty"));
            }
            countable("picks", count)?;
            let mut chance = StdRng::seed_from_u64(seed.cast_unsigned());
            let picks = (0..count).map(|_| items[chance.random_range(0..items.len())].clone());
            Ok(Cel::List(Arc::new(picks.collect())))
        }),
        ("parseTime", |arguments| {
            let text = string(arguments, 0)?;
            let time: jiff::Timestamp =
                text.parse().map_err(|error| ExecutionError::function_error("parseTime", error))?;
            Ok(Cel::Int(time.as_second()))
        }),
        ("json", |arguments| {
            let value: Value = serde_json::from_str(&string(arguments, 0)?)
                .map_err(|error| ExecutionError::function_error("json", error))?;
            Ok(to_cel(&value))
        }),
    ];
    for (name, function) in functions {
        // The only way to fail is a clash with the standard library, which the tests would show.
        let added = context.add_function(name, move |Arguments(arguments): Arguments| function(&arguments));
        debug_assert!(added.is_ok(), "{name} clashes with a standard function");
    }
    context
}

type Function = fn(&[Cel]) -> Result<Cel, ExecutionError>;

fn list(arguments: &[Cel], index: usize) -> Result<Arc<Vec<Cel>>, ExecutionError> {
    let argument = arguments
        .get(index)
        .ok_or_else(|| ExecutionError::invalid_argument_count(index + 1, arguments.len()))?;
    as_list("a list function", argument)
}

fn as_list(function: &str, value: &Cel) -> Result<Arc<Vec<Cel>>, ExecutionError> {
    match value {
        Cel::List(items) => Ok(Arc::clone(items)),
        other => {
            Err(ExecutionError::function_error(function, format!("expected a list, got {}", other.type_of())))
        }
    }
}

/// Each item is compared with each: what a server sends must not keep us busy for hours.
fn comparable(function: &str, items: &[Cel]) -> Result<(), ExecutionError> {
    const MOST: usize = 10_000;
    if items.len() <= MOST {
        return Ok(());
    }
    let why = format!("the list has {} items that are no texts, more than {MOST}", items.len());
    Err(ExecutionError::function_error(function, why))
}

/// As many items are made as a number says, which may be a server's.
fn countable(function: &str, count: i64) -> Result<(), ExecutionError> {
    const MOST: i64 = 1_000_000;
    if count <= MOST {
        return Ok(());
    }
    Err(ExecutionError::function_error(function, format!("{count} is more than {MOST}")))
}

/// The items, if all of them are texts, which can be sorted: long lists are compared in time.
fn texts(items: &[Cel]) -> Option<Vec<&str>> {
    items
        .iter()
        .map(|item| match item {
            Cel::String(text) => Some(text.as_str()),
            _ => None,
        })
        .collect()
}

fn integer(arguments: &[Cel], index: usize) -> Result<i64, ExecutionError> {
    match arguments.get(index) {
        Some(Cel::Int(number)) => Ok(*number),
        Some(other) => Err(ExecutionError::function_error(
            "a number function",
            format!("expected an int, got {}", other.type_of()),
        )),
        None => Err(ExecutionError::invalid_argument_count(index + 1, arguments.len())),
    }
}

fn string(arguments: &[Cel], index: usize) -> Result<Arc<String>, ExecutionError> {
    match arguments.get(index) {
        Some(Cel::String(text)) => Ok(Arc::clone(text)),
        Some(other) => Err(ExecutionError::function_error(
            "a text function",
            format!("expected a string, got {}", other.type_of()),
        )),
        None => Err(ExecutionError::invalid_argument_count(index + 1, arguments.len())),
    }
}

/// What an expression looks at of a value: large answers are not converted for a few of their members.
fn needed(value: &Value, need: Need<'_>) -> Cel {
    if need.is_whole() {
        return to_cel(value);
    }
    match (value, need.items()) {
        (Value::Array(items), Some(need)) => {
            Cel::List(Arc::new(items.iter().map(|item| needed(item, need)).collect()))
        }
        // Its length is all that is asked for.
        (Value::Array(items), None) => Cel::List(Arc::new(vec![Cel::Null; items.len()])),
        (Value::Object(members), None) => {
            let members = members.iter().filter_map(|(name, value)| {
                Some((Key::String(Arc::new(name.clone())), needed(value, need.member(name)?)))
            });
            Cel::Map(Map { map: Arc::new(members.collect::<HashMap<_, _>>()) })
        }
        (value, _) => to_cel(value),
    }
}

fn to_cel(value: &Value) -> Cel {
    match value {
        Value::Null => Cel::Null,
        Value::Bool(value) => Cel::Bool(*value),
        Value::Number(number) => match (number.as_i64(), number.as_u64(), number.as_f64()) {
            (Some(number), _, _) => Cel::Int(number),
            (None, Some(number), _) => Cel::UInt(number),
            (None, None, number) => Cel::Float(number.unwrap_or(f64::NAN)),
        },
        Value::String(text) => Cel::String(Arc::new(text.clone())),
        Value::Array(items) => Cel::List(Arc::new(items.iter().map(to_cel).collect())),
        Value::Object(members) => Cel::Map(Map {
            map: Arc::new(
                members
                    .iter()
                    .map(|(name, value)| (Key::String(Arc::new(name.clone())), to_cel(value)))
                    .collect::<HashMap<_, _>>(),
            ),
        }),
    }
}

fn from_cel(value: &Cel) -> Option<Value> {
    Some(match value {
        Cel::Null => Value::Null,
        Cel::Bool(value) => json!(value),
        Cel::Int(value) => json!(value),
        Cel::UInt(value) => json!(value),
        Cel::Float(value) => json!(value),
        Cel::String(value) => json!(value.as_str()),
        Cel::List(items) => Value::Array(items.iter().map(from_cel).collect::<Option<_>>()?),
        Cel::Map(map) => {
            // Sorted by serde_json's map: the order of the hash map never shows.
            let members = map.map.iter().map(|(name, value)| Some((name.to_string(), from_cel(value)?)));
            Value::Object(members.collect::<Option<serde_json::Map<_, _>>>()?)
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::testing::expression;

    fn values() -> Values {
        let mut values = Values::new();
        values
            .set("create", json!({"status": 201, "body": {"metadata": {"name": "a", "n": 5}}, "events": []}));
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
        "parseTime('2026-01-01T00:00:01Z') - parseTime('2026-01-01T00:00:00Z') == 1 && create.status > 0",
        true
    )]
    #[case("json('{\"a\": 1}').a == 1 && create.status > 0", true)]
    #[case("has(create.body.metadata.uid)", false)]
    #[case("create.body.metadata.name.matches('^a$')", true)]
    #[case("create.events.size() == 0", true)]
    #[case("sameItems(['b', 'a', 'b'], ['b', 'b', 'a']) && !sameItems(['a', 'a'], ['a', 'b'])", true)]
    #[case("distinct(['b', 'a']) && !distinct(['b', 'a', 'b'])", true)]
    #[case("range(3) == [0, 1, 2] && range(0).size() == 0", true)]
    #[case("picks(['a', 'b'], 9, create.status).all(p, p in ['a', 'b'])", true)]
    #[case("picks([1, 2, 3], 50, 7) == picks([1, 2, 3], 50, 7)", true)]
    #[case("picks([1, 2, 3], 50, 7) == picks([1, 2, 3], 50, create.status)", false)]
    fn expressions(#[case] text: &str, #[case] expected: bool) {
        assert_eq!(evaluate(&expression(text), &values()), Ok(json!(expected)));
    }

    #[test]
    fn a_missing_member_is_an_error_that_names_the_expression() {
        let error = evaluate(&expression("create.body.metadata.uid == 'x'"), &values()).unwrap_err();
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
    fn what_a_function_cannot_take_is_told(#[case] text: &str, #[case] reason: &str) {
        let error = evaluate(&expression(text), &values()).unwrap_err();
        assert!(error.reason.contains(reason), "{error}");
    }

    #[test]
    fn what_a_server_sends_keeps_nobody_busy() {
        assert!(comparable("distinct", &vec![Cel::Null; 10_000]).is_ok());
        assert!(comparable("distinct", &vec![Cel::Null; 10_001]).is_err());
        assert!(countable("range", 1_000_000).is_ok());
        assert!(countable("range", 1_000_001).is_err());
    }

    /// Texts can be sorted, so a list of them may be long.
    #[test]
    fn texts_are_compared_however_many_they_are() {
        let names: Vec<String> = (0..10_001).map(|index| index.to_string()).collect();
        let mut values = Values::new();
        values.set("names", json!(names));
        let of_all = evaluate(&expression("distinct(names) && sameItems(names, names)"), &values);
        assert_eq!(of_all, Ok(json!(true)));
    }

    #[test]
    fn only_what_an_expression_looks_at_is_converted() {
        let list = json!({"items": [{"uid": "u", "data": 1}], "kind": "List", "rest": [2, 3]});
        let converted = |text: &str| {
            let expression = expression(text);
            from_cel(&needed(&list, expression.needs.variable("list").unwrap())).unwrap()
        };
        assert_eq!(converted("list.items.map(item, item.uid) == ['u']"), json!({"items": [{"uid": "u"}]}));
        assert_eq!(converted("list.rest.size() == 2"), json!({"rest": [2, 3]}));
        assert_eq!(converted("has(list.rest)"), json!({"rest": [null, null]}));
        assert_eq!(converted("list == {}"), list);
    }
}
