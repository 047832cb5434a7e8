//! The CEL functions that Kubernetes adds to the standard library.

use std::cell::RefCell;
use std::sync::{Arc, LazyLock};

use cel::common::types::{DYN_TYPE, INT_TYPE, LIST_TYPE, STRING_TYPE};
use cel::common::value::{CowVal, Val};
use cel::objects::OptionalValue;
use cel::{DeclarationError, Env, ExecutionError, Value as Cel, extensions};
use regex::Regex;

use super::super::format::uri::Uri;
use super::super::pattern;
use super::{
    addresses, authorizer, containers, conversions, format, kinds, lists, meter, pairs, quantities,
    semver,
};

/// The name of `matches` in evaluated expressions. The function of the library has the syntax of
/// the crate `regex`, not that of Go.
pub(super) const MATCHES: &str = "@matches";

/// The names of `indexOf` and `lastIndexOf` with an offset in evaluated expressions.
pub(super) const FIRST_INDEX: &str = "@indexOf";
pub(super) const LAST_INDEX: &str = "@lastIndexOf";
/// The name of `lists.range` in evaluated expressions.
pub(super) const RANGE: &str = "@range";
/// The name of `optional.ofNonZeroValue` in evaluated expressions.
pub(super) const NON_ZERO: &str = "@ofNonZeroValue";

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
        .and_then(|()| lists::declare(&mut env))
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

fn declare(env: &mut Env) -> std::result::Result<(), DeclarationError> {
    env.add_member_overload("find", "string_find", STRING_TYPE, vec![STRING_TYPE], |arguments| {
        let (text, pattern) = (string(&arguments, 0)?, searched(&arguments)?);
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
    positions(env)?;
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
    let unwrapped: cel::common::functions::Function = |arguments| {
        let items = list(&arguments, 0)?;
        let values = items.iter().filter_map(|item| match item {
            Cel::Opaque(value) => value.downcast_ref::<OptionalValue>()?.value().cloned(),
            _ => None,
        });
        give_value(Cel::List(Arc::new(values.collect())))
    };
    env.add_overload("optional.unwrap", "optional_unwrap", vec![LIST_TYPE], unwrapped)?;
    env.add_member_overload("unwrapOpt", "optional_unwrapOpt", LIST_TYPE, vec![], unwrapped)?;
    env.add_overload(NON_ZERO, NON_ZERO, vec![DYN_TYPE], |arguments| {
        let value = argument(&arguments, 0)?;
        let is_object =
            arguments.first().is_some_and(|value| containers::is_object(value.as_ref()));
        let optional = if is_zero(&value) && !is_object {
            OptionalValue::none()
        } else {
            OptionalValue::of(value)
        };
        give_value(Cel::Opaque(Arc::new(optional)))
    })
}

/// Reports whether a value is the zero value of its type. The zero of times is the year 1.
fn is_zero(value: &Cel) -> bool {
    match value {
        Cel::Null => true,
        Cel::Bool(value) => !value,
        Cel::Int(number) => *number == 0,
        Cel::UInt(number) => *number == 0,
        Cel::Float(number) => *number == 0.0,
        Cel::String(text) => text.is_empty(),
        Cel::Bytes(bytes) => bytes.is_empty(),
        Cel::List(items) => items.is_empty(),
        Cel::Map(map) => map.map.is_empty(),
        Cel::Duration(duration) => duration.is_zero(),
        Cel::Timestamp(time) => {
            time.timestamp() == -62_135_596_800 && time.timestamp_subsec_nanos() == 0
        }
        _ => false,
    }
}

fn positions(env: &mut Env) -> std::result::Result<(), DeclarationError> {
    let arguments = || vec![STRING_TYPE, INT_TYPE];
    env.add_member_overload(FIRST_INDEX, FIRST_INDEX, STRING_TYPE, arguments(), |arguments| {
        position(&arguments, |text, part, offset| {
            let rest = text.get(offset..).filter(|rest| !rest.is_empty())?;
            Some(offset + rest.windows(part.len()).position(|window| window == part)?)
        })
    })?;
    env.add_member_overload(LAST_INDEX, LAST_INDEX, STRING_TYPE, arguments(), |arguments| {
        position(&arguments, |text, part, offset| {
            let end = (offset + part.len()).min(text.len());
            let start = text.get(..end).filter(|_| offset < text.len())?;
            start.windows(part.len()).rposition(|window| window == part)
        })
    })
}

/// Searches a part of a text. An offset behind the text finds nothing.
fn position<'b, 'v>(
    arguments: &[CowVal<'b, 'v>],
    search: impl Fn(&[char], &[char], usize) -> Option<usize>,
) -> Result<CowVal<'b, 'v>> {
    let (text, part) = (string(arguments, 0)?, string(arguments, 1)?);
    let offset = match argument(arguments, 2)? {
        Cel::Int(offset) => offset,
        other => return Err(other.error_expected_type(cel::objects::ValueType::Int)),
    };
    if part.is_empty() {
        return give(offset);
    }
    let Ok(start) = usize::try_from(offset) else {
        let why = format!("index out of range: {offset}");
        return Err(ExecutionError::function_error("indexOf", why));
    };
    let (text, part): (Vec<char>, Vec<char>) = (text.chars().collect(), part.chars().collect());
    let found = search(&text, &part, start.min(text.len()));
    give(found.map_or(-1, index))
}

pub(super) fn index(position: usize) -> i64 {
    i64::try_from(position).unwrap_or(i64::MAX)
}

fn holds_all(list: &[Cel], items: &[Cel]) -> bool {
    items.iter().all(|item| list.contains(item))
}

fn find_all<'b, 'v>(arguments: &[CowVal<'b, 'v>], limit: usize) -> Result<CowVal<'b, 'v>> {
    let (text, pattern) = (string(arguments, 0)?, searched(arguments)?);
    let found = pattern.find_iter(&text).take(limit).map(|found| Cel::from(found.as_str()));
    give_value(Cel::List(Arc::new(found.collect())))
}

/// Returns the pattern of a search.
fn searched(arguments: &[CowVal<'_, '_>]) -> Result<Regex> {
    pattern(arguments).map_err(|error| match error {
        ExecutionError::FunctionError { message, .. } => {
            ExecutionError::function_error("find", format!("Illegal regex: {message}"))
        }
        other => other,
    })
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
            .map_err(|error| ExecutionError::function_error(MATCHES, error))?;
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
