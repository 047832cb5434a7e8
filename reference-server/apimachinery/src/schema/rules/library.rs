//! The CEL functions that Kubernetes adds to the standard library.

use std::cell::RefCell;
use std::cmp::Ordering;
use std::sync::{Arc, LazyLock};

use cel::common::types::{INT_TYPE, LIST_TYPE, STRING_TYPE};
use cel::common::value::{CowVal, Val};
use cel::objects::OptionalValue;
use cel::{DeclarationError, Env, ExecutionError, Value as Cel, extensions};
use regex::Regex;

use super::super::format::uri::Uri;
use super::super::pattern;
use super::{addresses, authorizer, conversions, format, kinds, meter, pairs, quantities, semver};

/// The name of `matches` in evaluated expressions. The function of the library has the syntax of
/// the crate `regex`, not that of Go.
pub(super) const MATCHES: &str = "@matches";

/// The maximum size of a compiled pattern.
const PATTERN_SIZE: usize = 20 * 1024 * 1024;

pub(super) type Result<T> = std::result::Result<T, ExecutionError>;

/// Returns the environment that compiles and evaluates all rules.
pub(super) fn env() -> Arc<Env> {
    static ENV: LazyLock<Arc<Env>> = LazyLock::new(|| Arc::new(new_env()));
    Arc::clone(&ENV)
}

/// Returns a new environment with all functions.
pub(super) fn new_env() -> Env {
    let mut env = Env::stdlib();
    let declared = env
        .add_extension(extensions::strings)
        .and_then(|()| env.add_extension(extensions::lists))
        .and_then(|()| declare(&mut env))
        .and_then(|()| conversions::declare(&mut env))
        .and_then(|()| format::declare(&mut env))
        .and_then(|()| kinds::declare(&mut env))
        .and_then(|()| quantities::declare(&mut env))
        .and_then(|()| addresses::declare(&mut env))
        .and_then(|()| pairs::declare(&mut env))
        .and_then(|()| semver::declare(&mut env))
        .and_then(|()| authorizer::declare(&mut env))
        .and_then(|()| meter::declare(&mut env));
    // The names are constants. The tests in this file detect a clash.
    debug_assert!(declared.is_ok(), "{declared:?}");
    env
}

#[expect(clippy::too_many_lines, reason = "a flat table of functions")]
fn declare(env: &mut Env) -> std::result::Result<(), DeclarationError> {
    env.add_member_overload("isSorted", "list_is_sorted", LIST_TYPE, vec![], |arguments| {
        let items = list(&arguments, 0)?;
        for pair in items.windows(2) {
            if order(&pair[0], &pair[1])? == Ordering::Greater {
                return give(false);
            }
        }
        give(true)
    })?;
    env.add_member_overload("sum", "list_sum", LIST_TYPE, vec![], |arguments| {
        give_value(sum(&list(&arguments, 0)?)?)
    })?;
    env.add_member_overload("min", "list_min", LIST_TYPE, vec![], |arguments| {
        give_value(outermost("min", &list(&arguments, 0)?, Ordering::Less)?)
    })?;
    env.add_member_overload("max", "list_max", LIST_TYPE, vec![], |arguments| {
        give_value(outermost("max", &list(&arguments, 0)?, Ordering::Greater)?)
    })?;
    let anything = || vec![cel::common::types::DYN_TYPE];
    env.add_member_overload("indexOf", "list_index_of", LIST_TYPE, anything(), |arguments| {
        let (items, item) = (list(&arguments, 0)?, argument(&arguments, 1)?);
        give(items.iter().position(|other| *other == item).map_or(-1, index))
    })?;
    env.add_member_overload(
        "lastIndexOf",
        "list_last_index_of",
        LIST_TYPE,
        anything(),
        |arguments| {
            let (items, item) = (list(&arguments, 0)?, argument(&arguments, 1)?);
            give(items.iter().rposition(|other| *other == item).map_or(-1, index))
        },
    )?;
    env.add_member_overload("find", "string_find", STRING_TYPE, vec![STRING_TYPE], |arguments| {
        let (text, pattern) = (string(&arguments, 0)?, pattern(&arguments)?);
        give(pattern.find(&text).map_or("", |found| found.as_str()).to_owned())
    })?;
    env.add_member_overload(
        "findAll",
        "string_find_all",
        STRING_TYPE,
        vec![STRING_TYPE],
        |arguments| find_all(&arguments, usize::MAX),
    )?;
    let arguments = vec![STRING_TYPE, INT_TYPE];
    env.add_member_overload(
        "findAll",
        "string_find_all_limit",
        STRING_TYPE,
        arguments,
        |arguments| {
            let limit = match argument(&arguments, 2)? {
                Cel::Int(limit) => usize::try_from(limit).unwrap_or(usize::MAX),
                _ => usize::MAX,
            };
            find_all(&arguments, limit)
        },
    )?;
    let matches: cel::common::functions::Function =
        |arguments| give(pattern(&arguments)?.is_match(&string(&arguments, 0)?));
    env.add_member_overload(MATCHES, "string_matches", STRING_TYPE, vec![STRING_TYPE], matches)?;
    env.add_overload(MATCHES, "matches_string", vec![STRING_TYPE, STRING_TYPE], matches)?;
    sets(env)?;
    optionals(env)?;
    env.add_overload(
        "jsonpatch.escapeKey",
        "json_patch_escape_key",
        vec![STRING_TYPE],
        |arguments| give(string(&arguments, 0)?.replace('~', "~0").replace('/', "~1")),
    )?;
    env.add_overload("isURL", "is_url", vec![STRING_TYPE], |arguments| {
        give(Uri::is_valid(&string(&arguments, 0)?))
    })
}

fn sets(env: &mut Env) -> std::result::Result<(), DeclarationError> {
    let two = || vec![LIST_TYPE, LIST_TYPE];
    env.add_overload("sets.contains", "sets_contains", two(), |arguments| {
        give(holds_all(&list(&arguments, 0)?, &list(&arguments, 1)?))
    })?;
    env.add_overload("sets.equivalent", "sets_equivalent", two(), |arguments| {
        let (one, other) = (list(&arguments, 0)?, list(&arguments, 1)?);
        give(holds_all(&one, &other) && holds_all(&other, &one))
    })?;
    env.add_overload("sets.intersects", "sets_intersects", two(), |arguments| {
        let (one, other) = (list(&arguments, 0)?, list(&arguments, 1)?);
        give(one.iter().any(|item| other.contains(item)))
    })
}

fn optionals(env: &mut Env) -> std::result::Result<(), DeclarationError> {
    env.add_member_overload("first", "list_first", LIST_TYPE, vec![], |arguments| {
        optional(list(&arguments, 0)?.first())
    })?;
    env.add_member_overload("last", "list_last", LIST_TYPE, vec![], |arguments| {
        optional(list(&arguments, 0)?.last())
    })?;
    let unwrapped: cel::common::functions::Function = |arguments| {
        let items = list(&arguments, 0)?;
        let values = items.iter().filter_map(|item| match item {
            Cel::Opaque(value) => value.downcast_ref::<OptionalValue>()?.value().cloned(),
            _ => None,
        });
        give_value(Cel::List(Arc::new(values.collect())))
    };
    env.add_overload("optional.unwrap", "optional_unwrap", vec![LIST_TYPE], unwrapped)?;
    env.add_member_overload("unwrapOpt", "optional_unwrapOpt", LIST_TYPE, vec![], unwrapped)
}

fn optional<'b, 'v>(item: Option<&Cel>) -> Result<CowVal<'b, 'v>> {
    let value = item.cloned().map_or_else(OptionalValue::none, OptionalValue::of);
    give_value(Cel::Opaque(Arc::new(value)))
}

fn holds_all(list: &[Cel], items: &[Cel]) -> bool {
    items.iter().all(|item| list.contains(item))
}

fn order(one: &Cel, other: &Cel) -> Result<Ordering> {
    one.partial_cmp(other)
        .ok_or_else(|| ExecutionError::ValuesNotComparable(one.clone(), other.clone()))
}

/// Returns the minimum or maximum of a list.
fn outermost(function: &str, items: &[Cel], side: Ordering) -> Result<Cel> {
    let mut items = items.iter();
    let empty = || format!("{function} called on empty list");
    let mut best = items.next().ok_or_else(|| ExecutionError::function_error(function, empty()))?;
    for item in items {
        if order(item, best)? == side {
            best = item;
        }
    }
    Ok(best.clone())
}

fn sum(items: &[Cel]) -> Result<Cel> {
    let Some((first, rest)) = items.split_first() else { return Ok(Cel::Int(0)) };
    rest.iter().try_fold(first.clone(), |total, item| match (&total, item) {
        (Cel::Int(a), Cel::Int(b)) => a
            .checked_add(*b)
            .map(Cel::Int)
            .ok_or_else(|| ExecutionError::Overflow("sum", total.clone(), item.clone())),
        (Cel::Float(a), Cel::Float(b)) => Ok(Cel::Float(a + b)),
        (Cel::Duration(a), Cel::Duration(b)) => a
            .checked_add(b)
            .map(Cel::Duration)
            .ok_or_else(|| ExecutionError::Overflow("sum", total.clone(), item.clone())),
        _ => Err(ExecutionError::UnsupportedBinaryOperator("sum", total.clone(), item.clone())),
    })
}

fn find_all<'b, 'v>(arguments: &[CowVal<'b, 'v>], limit: usize) -> Result<CowVal<'b, 'v>> {
    let (text, pattern) = (string(arguments, 0)?, pattern(arguments)?);
    let found = pattern.find_iter(&text).take(limit).map(|found| Cel::from(found.as_str()));
    give_value(Cel::List(Arc::new(found.collect())))
}

/// Returns the pattern in the second argument. A loop compiles a constant pattern once.
fn pattern(arguments: &[CowVal<'_, '_>]) -> Result<Regex> {
    thread_local! {
        static LAST: RefCell<Option<(Arc<String>, Regex)>> = const { RefCell::new(None) };
    }
    let text = string(arguments, 1)?;
    LAST.with_borrow_mut(|last| {
        if let Some((known, pattern)) = last
            && *known == text
        {
            return Ok(pattern.clone());
        }
        let compiled = pattern::compile(&text, PATTERN_SIZE)
            .map_err(|error| ExecutionError::function_error("matches", error))?;
        *last = Some((text, compiled.clone()));
        Ok(compiled)
    })
}

pub(super) fn argument(arguments: &[CowVal<'_, '_>], index: usize) -> Result<Cel> {
    let value = arguments
        .get(index)
        .ok_or_else(|| ExecutionError::invalid_argument_count(index + 1, arguments.len()))?;
    Cel::try_from(value.as_ref())
}

pub(super) fn list(arguments: &[CowVal<'_, '_>], index: usize) -> Result<Arc<Vec<Cel>>> {
    match argument(arguments, index)? {
        Cel::List(items) => Ok(items),
        other => Err(other.error_expected_type(cel::objects::ValueType::List)),
    }
}

pub(super) fn string(arguments: &[CowVal<'_, '_>], index: usize) -> Result<Arc<String>> {
    match argument(arguments, index)? {
        Cel::String(text) => Ok(text),
        other => Err(other.error_expected_type(cel::objects::ValueType::String)),
    }
}

fn index(position: usize) -> i64 {
    i64::try_from(position).unwrap_or(i64::MAX)
}

pub(super) fn give<'b, 'v>(value: impl Into<Cel>) -> Result<CowVal<'b, 'v>> {
    give_value(value.into())
}

pub(super) fn give_value<'b, 'v>(value: Cel) -> Result<CowVal<'b, 'v>> {
    let value: Box<dyn Val> = value.try_into()?;
    Ok(CowVal::Owned(value))
}

#[cfg(test)]
mod tests {
    use cel::Context;
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("[1, 2, 2].isSorted() && ![2, 1].isSorted() && ['a', 'b'].isSorted()")]
    #[case("[1, 2, 3].sum() == 6 && [0.5, 0.5].sum() == 1.0 && [].sum() == 0")]
    #[case("[3, 1, 2].min() == 1 && [3, 1, 2].max() == 3")]
    #[case("[1, 2, 1].indexOf(1) == 0 && [1, 2, 1].lastIndexOf(1) == 2 && [1].indexOf(5) == -1")]
    #[case("'abcabc'.indexOf('c') == 2")]
    #[case("'abc 123'.find('[0-9]+') == '123' && 'abc'.find('[0-9]') == ''")]
    #[case(
        "'1 2 3'.findAll('[0-9]') == ['1', '2', '3'] && '1 2 3'.findAll('[0-9]', 2) == ['1', '2']"
    )]
    #[case("sets.contains([1, 2], [2]) && !sets.contains([1], [2])")]
    #[case("sets.equivalent([1, 2], [2, 1, 1]) && sets.intersects([1, 2], [2, 3])")]
    #[case("isIP('::1') && !isIP('1.2.3') && isCIDR('10.0.0.0/8')")]
    #[case("isURL('https://example.com/a') && isURL('/a') && !isURL('a b')")]
    #[case("isQuantity('1.5Gi') && !isQuantity('much')")]
    #[case(
        "[3, 1, 1].sort() == [1, 1, 3] && [3, 1, 1].distinct() == [3, 1] && [1, 2, 3].slice(1, 3) \
         == [2, 3]"
    )]
    #[case("[1, 2].reverse() == [2, 1] && ['bb', 'a'].sortBy(x, x.size()) == ['a', 'bb']")]
    #[case("lists.range(2) == [0, 1] && [[1], [2, 3]].flatten() == [1, 2, 3]")]
    #[case(
        "[1, 2].first().value() == 1 && [1, 2].last().value() == 2 && !dyn([]).last().hasValue()"
    )]
    #[case("optional.unwrap([optional.of(1), optional.none()]) == [1]")]
    #[case("[optional.none(), optional.of(2)].unwrapOpt() == [2]")]
    #[case("bool('true') && bool('t') && !bool('0') && bool(true)")]
    #[case("timestamp('2026-01-02T03:04:05Z').getHours('+01:00') == 4")]
    #[case("'A,b'.lowerAscii().split(',') == ['a', 'b']")]
    fn functions_return_the_documented_values(#[case] text: &str) {
        let program = env().compile(text).expect("an expression");
        assert_eq!(program.execute(&Context::with_env(env())), Ok(Cel::Bool(true)));
    }
}
