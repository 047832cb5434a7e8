//! The functions of lists that Kubernetes adds.

use std::cmp::Ordering;
use std::sync::Arc;

use cel::common::types::{DYN_TYPE, INT_TYPE, LIST_TYPE};
use cel::common::value::CowVal;
use cel::objects::OptionalValue;
use cel::{DeclarationError, Env, ExecutionError, Value as Cel};

use super::library::{RANGE, Result, argument, give, give_value, index, list};
use super::meter;

/// Declares the functions.
pub(super) fn declare(env: &mut Env) -> std::result::Result<(), DeclarationError> {
    env.add_member_overload("isSorted", "list_is_sorted", LIST_TYPE, vec![], |arguments| {
        let items = list(&arguments, 0)?;
        comparable("isSorted", &items)?;
        give(items.windows(2).all(|pair| order(&pair[0], &pair[1]) != Some(Ordering::Greater)))
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
    let anything = || vec![DYN_TYPE];
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
    env.add_member_overload("first", "list_first", LIST_TYPE, vec![], |arguments| {
        optional(list(&arguments, 0)?.first())
    })?;
    env.add_member_overload("last", "list_last", LIST_TYPE, vec![], |arguments| {
        optional(list(&arguments, 0)?.last())
    })?;
    env.add_overload(RANGE, RANGE, vec![INT_TYPE], |arguments| {
        let end = match argument(&arguments, 0)? {
            Cel::Int(end) => end,
            other => return Err(other.error_expected_type(cel::objects::ValueType::Int)),
        };
        // A list that is too expensive is not created.
        let count = u64::try_from(end).unwrap_or(0);
        if count > meter::PER_CALL {
            meter::spend(count)?;
        }
        give_value(Cel::List(Arc::new((0..end).map(Cel::Int).collect())))
    })
}

fn optional<'b, 'v>(item: Option<&Cel>) -> Result<CowVal<'b, 'v>> {
    let value = item.cloned().map_or_else(OptionalValue::none, OptionalValue::of);
    give_value(Cel::Opaque(Arc::new(value)))
}

/// Returns the order of two values. Values of different types, and NaN, have none.
fn order(one: &Cel, other: &Cel) -> Option<Ordering> {
    one.partial_cmp(other)
}

/// Checks that all items have types with an order.
fn comparable(function: &str, items: &[Cel]) -> Result<()> {
    let is_comparable = |item: &Cel| {
        matches!(
            item,
            Cel::Bool(_)
                | Cel::Int(_)
                | Cel::UInt(_)
                | Cel::Float(_)
                | Cel::String(_)
                | Cel::Bytes(_)
                | Cel::Timestamp(_)
                | Cel::Duration(_)
        )
    };
    if items.iter().all(is_comparable) {
        return Ok(());
    }
    Err(ExecutionError::no_such_overload(function, vec!["list".to_owned()]))
}

/// Returns the minimum or maximum of a list. Items without an order do not replace others.
fn outermost(function: &str, items: &[Cel], side: Ordering) -> Result<Cel> {
    comparable(function, items)?;
    let mut items = items.iter();
    let empty = || format!("{function} called on empty list");
    let mut best = items.next().ok_or_else(|| ExecutionError::function_error(function, empty()))?;
    for item in items {
        if order(item, best) == Some(side) {
            best = item;
        }
    }
    Ok(best.clone())
}

fn sum(items: &[Cel]) -> Result<Cel> {
    let Some((first, rest)) = items.split_first() else { return Ok(Cel::Int(0)) };
    rest.iter().try_fold(first.clone(), |total, item| {
        let sum = match (&total, item) {
            (Cel::Int(a), Cel::Int(b)) => a.checked_add(*b).map(Cel::Int),
            (Cel::UInt(a), Cel::UInt(b)) => a.checked_add(*b).map(Cel::UInt),
            (Cel::Float(a), Cel::Float(b)) => Some(Cel::Float(a + b)),
            (Cel::Duration(a), Cel::Duration(b)) => a.checked_add(b).map(Cel::Duration),
            _ => {
                let (total, item) = (total.clone(), item.clone());
                return Err(ExecutionError::UnsupportedBinaryOperator("sum", total, item));
            }
        };
        sum.ok_or_else(|| ExecutionError::Overflow("sum", total.clone(), item.clone()))
    })
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
        let counted = counted(program.expression());
        // Other tests of the thread have exceeded the limit.
        meter::measure(|| ());
        Cel::resolve(&counted, &Context::with_env(env()))
    }

    #[rstest]
    #[case("[1, 2, 2].isSorted() && ![2, 1].isSorted() && ['a', 'b'].isSorted()")]
    #[case("[1, 2, 3].sum() == 6 && [0.5, 0.5].sum() == 1.0 && [].sum() == 0")]
    #[case("[1u, 2u].sum() == 3u && [duration('1s'), duration('2s')].sum() == duration('3s')")]
    #[case("[3, 1, 2].min() == 1 && [3, 1, 2].max() == 3 && [7, dyn('x')].min() == 7")]
    #[case("[1, 2, 1].indexOf(1) == 0 && [1, 2, 1].lastIndexOf(1) == 2 && [1].indexOf(5) == -1")]
    #[case("'héé'.indexOf('é', 2) == 2 && 'hé'.indexOf('é', 99) == -1 && ''.indexOf('', 1) == 1")]
    #[case("'aba'.lastIndexOf('a', 1) == 0 && 'aba'.lastIndexOf('a', 99) == -1")]
    #[case("'aba'.lastIndexOf('ba', 2) == 1 && 'a'.lastIndexOf('ab', 0) == -1")]
    #[case("lists.range(-1) == [] && lists.range(2) == [0, 1]")]
    #[case("!optional.ofNonZeroValue(0).hasValue() && optional.ofNonZeroValue('a').hasValue()")]
    #[case("optional.ofNonZeroValue(timestamp(0)).hasValue()")]
    #[case("!optional.ofNonZeroValue(timestamp('0001-01-01T00:00:00Z')).hasValue()")]
    fn functions_return_the_values_of_kubernetes(#[case] text: &str) {
        assert_eq!(evaluated(text), Ok(Cel::Bool(true)));
    }

    #[rstest]
    #[case("[null].isSorted()", "isSorted")]
    #[case("[[1], [2]].max()", "max")]
    #[case("[dyn(1), 1.5].sum()", "sum")]
    #[case("'a'.indexOf('a', -1)", "index out of range: -1")]
    #[case("lists.range(2000000).size()", "the cost limit is exceeded")]
    fn other_values_are_errors(#[case] text: &str, #[case] expected: &str) {
        let error = evaluated(text).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}
