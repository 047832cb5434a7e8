//! Macros whose loops have two variables: `self.labels.all(key, value, key != value)`.
//!
//! The first variable is the index of an item or the key of an entry. The library evaluates loops
//! with one variable only, so [`lowered`] rewrites them: a loop over the keys, whose parts get the
//! value by its key. A transformation collects a list, from which it makes the map at its end.

use std::sync::Arc;

use cel::common::ast::{CallExpr, ComprehensionExpr, Expr, IdedExpr, operators};
use cel::common::types::DYN_TYPE;
use cel::common::value::CowVal;
use cel::objects::{Key, Map};
use cel::parser::{Macro, MacroExprHelper, ParseError};
use cel::{DeclarationError, Env, ExecutionError, Value as Cel};

use super::library::{Result, argument, give_value, list as list_of};
use super::syntax::{boolean, bound, call, empty_map, ident, list, number};

/// `@mapInsert(map, key, value)` and `@mapInsert(map, entries)` are the steps of transformations.
pub(super) const INSERT: &str = "@mapInsert";
/// `@keys(container)` returns the keys of a map, or the indices of a list.
const KEYS: &str = "@keys";
/// `@mapOf(pairs)` returns a map of pairs of a key and a value.
const MAP_OF: &str = "@mapOf";
/// `@merged(maps)` returns a map with the entries of all maps.
const MERGED: &str = "@merged";
/// The variable with the result of the loop.
const ACCUMULATOR: &str = "@result";
/// The variable with the list or map of the loop.
const RANGE: &str = "@range";

/// Declares the macros, and the functions that they need.
pub(super) fn declare(env: &mut Env) -> std::result::Result<(), DeclarationError> {
    for name in ["all", "exists", "existsOne", "exists_one"] {
        env.add_macro(Macro::receiver(name, 3, move |helper, target, arguments| {
            expand(helper, target, arguments, name)
        }))?;
    }
    for name in ["transformList", "transformMap", "transformMapEntry"] {
        for count in [3, 4] {
            env.add_macro(Macro::receiver(name, count, move |helper, target, arguments| {
                expand(helper, target, arguments, name)
            }))?;
        }
    }
    env.add_overload(KEYS, KEYS, vec![DYN_TYPE], |arguments| keys(&arguments))?;
    env.add_overload(MAP_OF, MAP_OF, vec![DYN_TYPE], |arguments| {
        let pairs = list_of(&arguments, 0)?;
        let entries = pairs.iter().filter_map(|pair| match pair {
            Cel::List(pair) => Some((pair.first()?.clone(), pair.get(1)?.clone())),
            _ => None,
        });
        collected(entries)
    })?;
    env.add_overload(MERGED, MERGED, vec![DYN_TYPE], |arguments| {
        let maps = list_of(&arguments, 0)?;
        let entries = maps.iter().flat_map(|map| match map {
            Cel::Map(map) => map.map.iter().collect(),
            _ => Vec::new(),
        });
        collected(entries.map(|(key, value)| (key.into(), value.clone())))
    })
}

/// Expands a macro into a loop with two variables.
fn expand(
    helper: &mut MacroExprHelper<'_>,
    target: &mut Option<IdedExpr>,
    arguments: &mut Vec<IdedExpr>,
    name: &str,
) -> std::result::Result<Option<IdedExpr>, ParseError> {
    let mut names = Vec::new();
    for argument in arguments.iter().take(2) {
        let Expr::Ident(variable) = &argument.expr else {
            return Err(helper.new_error(argument.id, "argument must be a simple name"));
        };
        if names.contains(variable) {
            let why = format!("duplicate variable name: {variable}");
            return Err(helper.new_error(argument.id, why));
        }
        names.push(variable.clone());
    }
    let (Some(iter_range), Some(second), Some(first)) = (target.take(), names.pop(), names.pop())
    else {
        return Ok(None);
    };
    let part = arguments.pop().unwrap_or_default();
    let filter = arguments.drain(..).nth(2);
    let key = first.clone();
    let (accu_init, loop_cond, loop_step, result) = match name {
        "all" => (
            boolean(true),
            goes_on(accumulator()),
            call(operators::LOGICAL_AND, vec![accumulator(), part]),
            accumulator(),
        ),
        "exists" => (
            boolean(false),
            goes_on(call(operators::LOGICAL_NOT, vec![accumulator()])),
            call(operators::LOGICAL_OR, vec![accumulator(), part]),
            accumulator(),
        ),
        "transformList" => {
            let sum = call(operators::ADD, vec![accumulator(), list(vec![part])]);
            (list(Vec::new()), boolean(true), filtered(filter, sum), accumulator())
        }
        "transformMap" => {
            let insert = call(INSERT, vec![accumulator(), ident(&key), part]);
            (empty_map(), boolean(true), filtered(filter, insert), accumulator())
        }
        "transformMapEntry" => {
            let insert = call(INSERT, vec![accumulator(), part]);
            (empty_map(), boolean(true), filtered(filter, insert), accumulator())
        }
        _ => {
            let more = call(operators::ADD, vec![accumulator(), number(1)]);
            let is_one = call(operators::EQUALS, vec![accumulator(), number(1)]);
            (number(0), boolean(true), filtered(Some(part), more), is_one)
        }
    };
    Ok(Some(helper.next_expr(Expr::Comprehension(Box::new(ComprehensionExpr {
        iter_range,
        iter_var: first,
        iter_var2: Some(second),
        accu_var: ACCUMULATOR.to_owned(),
        accu_init,
        loop_cond,
        loop_step,
        result,
    })))))
}

fn filtered(filter: Option<IdedExpr>, step: IdedExpr) -> IdedExpr {
    match filter {
        Some(filter) => call(operators::CONDITIONAL, vec![filter, step, accumulator()]),
        None => step,
    }
}

/// Returns a loop with two variables as one with one variable. Other loops stay the same.
pub(super) fn lowered(mut loops: ComprehensionExpr) -> Expr {
    let Some(second) = loops.iter_var2.take() else { return Expr::Comprehension(Box::new(loops)) };
    let value = call(operators::INDEX, vec![ident(RANGE), ident(&loops.iter_var)]);
    let with_value = |part: IdedExpr| bound(&second, value.clone(), part);
    if let Expr::Map(_) = &loops.accu_init.expr {
        loops.accu_init = list(Vec::new());
        let makes_pairs = inserts_pairs(&loops.loop_step);
        let function = if makes_pairs { MAP_OF } else { MERGED };
        loops.result = call(function, vec![loops.result]);
    }
    loops.loop_step = step(loops.loop_step, &with_value);
    let range = std::mem::replace(&mut loops.iter_range, call(KEYS, vec![ident(RANGE)]));
    let whole = IdedExpr { id: 0, expr: Expr::Comprehension(Box::new(loops)) };
    bound(RANGE, range, whole).expr
}

/// Reports whether a transformation inserts a key and a value, and not entries.
fn inserts_pairs(step: &IdedExpr) -> bool {
    match &step.expr {
        Expr::Call(call) if call.func_name == INSERT => call.args.len() == 3,
        Expr::Call(call) => call.args.iter().any(inserts_pairs),
        _ => false,
    }
}

/// Gives the parts of a step the second variable. The step keeps its form, because the library
/// evaluates the forms of the macros in a faster way.
fn step(expression: IdedExpr, with_value: &impl Fn(IdedExpr) -> IdedExpr) -> IdedExpr {
    let Expr::Call(CallExpr { func_name, target: None, args }) = expression.expr else {
        return with_value(expression);
    };
    let name = func_name.as_str();
    match (name, <[IdedExpr; 3]>::try_from(args)) {
        (operators::CONDITIONAL, Ok([filter, yes, no])) => {
            call(name, vec![with_value(filter), step(yes, with_value), no])
        }
        (INSERT, Ok([result, key, value])) => {
            let pair = list(vec![key, with_value(value)]);
            call(operators::ADD, vec![result, list(vec![pair])])
        }
        (_, Ok(others)) => with_value(call(name, others.into())),
        (_, Err(args)) => match (name, <[IdedExpr; 2]>::try_from(args)) {
            (INSERT, Ok([result, entries])) => {
                call(operators::ADD, vec![result, list(vec![with_value(entries)])])
            }
            (operators::ADD, Ok([result, IdedExpr { expr: Expr::List(added), .. }])) => {
                let added = added.elements.into_iter().map(with_value).collect();
                call(name, vec![result, list(added)])
            }
            (operators::ADD, Ok(sum)) => call(name, sum.into()),
            (operators::LOGICAL_AND | operators::LOGICAL_OR, Ok([result, part])) => {
                call(name, vec![result, with_value(part)])
            }
            (_, Ok(others)) => with_value(call(name, others.into())),
            (_, Err(args)) => with_value(call(name, args)),
        },
    }
}

fn keys<'b, 'v>(arguments: &[CowVal<'b, 'v>]) -> Result<CowVal<'b, 'v>> {
    let keys: Vec<Cel> = match argument(arguments, 0)? {
        Cel::List(items) => (0_i64..).zip(items.iter()).map(|(index, _)| Cel::Int(index)).collect(),
        Cel::Map(map) => {
            let mut keys: Vec<&Key> = map.map.keys().collect();
            keys.sort();
            keys.into_iter().map(Cel::from).collect()
        }
        other => return Err(other.error_expected_type(cel::objects::ValueType::Map)),
    };
    give_value(Cel::List(Arc::new(keys)))
}

/// Returns a map of entries, whose keys must differ.
fn collected<'b, 'v>(entries: impl Iterator<Item = (Cel, Cel)>) -> Result<CowVal<'b, 'v>> {
    let mut map = std::collections::HashMap::new();
    for (key, value) in entries {
        let key = key_of(key)?;
        if map.contains_key(&key) {
            let why = format!("insert failed: key {key} already exists");
            return Err(ExecutionError::function_error(INSERT, why));
        }
        map.insert(key, value);
    }
    give_value(Cel::Map(Map { map: Arc::new(map) }))
}

fn key_of(value: Cel) -> Result<Key> {
    match value {
        Cel::Int(number) => Ok(Key::Int(number)),
        Cel::UInt(number) => Ok(Key::Uint(number)),
        Cel::Bool(value) => Ok(Key::Bool(value)),
        Cel::String(text) => Ok(Key::String(text)),
        other => Err(ExecutionError::UnsupportedKeyType(other)),
    }
}

fn accumulator() -> IdedExpr {
    ident(ACCUMULATOR)
}

fn goes_on(condition: IdedExpr) -> IdedExpr {
    call(operators::NOT_STRICTLY_FALSE, vec![condition])
}

#[cfg(test)]
mod tests {
    use cel::Context;
    use rstest::rstest;

    use super::super::counted::counted;
    use super::super::library::env;
    use super::*;

    fn evaluated(text: &str) -> std::result::Result<Cel, ExecutionError> {
        let program = env().compile(text).expect("an expression");
        Cel::resolve(&counted(program.expression()), &Context::with_env(env()))
    }

    #[rstest]
    #[case("[5, 6].all(i, v, v == i + 5)")]
    #[case("![5, 6].all(i, v, i > v)")]
    #[case("{'a': 1, 'b': 2}.exists(k, v, k == 'b' && v == 2)")]
    #[case("!{'a': 1}.exists(k, v, v == 2)")]
    #[case("[5, 6].existsOne(i, v, v == 6) && ![5, 6].exists_one(i, v, v > 4)")]
    #[case("[5, 6].transformList(i, v, i + v) == [5, 7]")]
    #[case("[5, 6].transformList(i, v, v > 5, i) == [1]")]
    #[case("{'b': 1, 'a': 2}.transformList(k, v, k) == ['a', 'b']")]
    #[case("{'a': 1}.transformMap(k, v, v + 1) == {'a': 2}")]
    #[case("[5, 6].transformMap(i, v, i > 0, v) == {1: 6}")]
    #[case("{'a': 'x'}.transformMapEntry(k, v, {v: k}) == {'x': 'a'}")]
    #[case("[5, 6].transformMapEntry(i, v, v > 5, {string(v): i}) == {'6': 1}")]
    #[case("[[1, 2], [3]].all(i, v, v.all(j, w, w > i + j))")]
    #[case("[1, 2].transformMap(i, v, [v].transformList(j, w, v * w)) == {0: [1], 1: [4]}")]
    #[case("{'a': {'b': 1}}.all(k, v, v.exists(l, w, k + l == 'ab' && w == 1))")]
    #[case("[1, 2].exists(i, v, 1 / (v - 1) == 1)")]
    #[case("[].all(i, v, false) && {}.transformMap(k, v, v) == {}")]
    fn loops_have_two_variables(#[case] text: &str) {
        assert_eq!(evaluated(text), Ok(Cel::Bool(true)));
    }

    #[test]
    fn keys_are_inserted_once() {
        let error = evaluated("[1, 2].transformMapEntry(i, v, {'a': v})").unwrap_err();
        assert!(error.to_string().contains("key a already exists"), "{error}");
    }

    #[rstest]
    #[case("[1].all(1, v, true)", "argument must be a simple name")]
    #[case("[1].transformList(v, v, true)", "duplicate variable name: v")]
    fn variables_are_names(#[case] text: &str, #[case] expected: &str) {
        let compiled = env().compile(text).map(drop);
        let error = compiled.expect_err("a mistake").to_string();
        assert!(error.contains(expected), "{error}");
    }
}
