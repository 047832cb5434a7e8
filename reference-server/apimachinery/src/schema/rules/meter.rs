//! The cost of an evaluation, counted while it runs.
//!
//! The library has no hook for this. So [`super::counted`] adds calls of the functions below to an
//! expression. The counters belong to the thread, because these functions get only values.

use std::cell::RefCell;

use cel::common::types::{CelInt, DYN_TYPE, INT_TYPE, STRING_TYPE};
use cel::common::value::{CowVal, Val};
use cel::{DeclarationError, Env, ExecutionError, Value as Cel};

use super::cost;
use super::library::{Result, argument, give, string};
use super::node::Node;
use super::size::{Range, scale};
use super::types::Type;

/// `@spend(steps, value)` returns the value, and adds the steps.
pub(super) const SPEND: &str = "@spend";
/// `@size(value)` returns the value, and records its size for the call around it.
pub(super) const SIZE: &str = "@size";
/// `@called(name, count, result)` returns the result of a call, and adds the cost of the call with
/// the last `count` recorded sizes.
pub(super) const CALLED: &str = "@called";
/// `@joined(count, result)` returns the result of `count` additions, and adds their cost.
pub(super) const JOINED: &str = "@joined";
/// `@continue(condition)` is false if the limit is exceeded, so that a loop ends.
pub(super) const CONTINUE: &str = "@continue";

/// The maximum cost of one evaluation.
pub(super) const PER_CALL: u64 = 1_000_000;
/// The maximum cost of all rules of an object.
pub(super) const PER_OBJECT: u64 = 10_000_000;

#[derive(Default)]
struct Meter {
    spent: u64,
    /// The arguments of calls that have not returned.
    arguments: Vec<Node<'static>>,
}

thread_local! {
    static METER: RefCell<Meter> = RefCell::default();
}

/// Returns the result of an evaluation and its cost. `None` means that the evaluation exceeded the
/// limit.
pub(super) fn measure<T>(evaluate: impl FnOnce() -> T) -> (Option<T>, u64) {
    METER.with(|meter| *meter.borrow_mut() = Meter::default());
    let result = evaluate();
    let spent = METER.with(|meter| meter.borrow().spent);
    ((spent <= PER_CALL).then_some(result), spent)
}

/// Declares the functions.
pub(super) fn declare(env: &mut Env) -> std::result::Result<(), DeclarationError> {
    env.add_overload(SPEND, SPEND, vec![INT_TYPE, DYN_TYPE], |arguments| {
        spend(number(&arguments, 0)?)?;
        last(arguments)
    })?;
    env.add_overload(SIZE, SIZE, vec![DYN_TYPE], |arguments| {
        let value = last(arguments)?;
        let node = node(value.as_ref());
        METER.with(|meter| meter.borrow_mut().arguments.push(node));
        Ok(value)
    })?;
    env.add_overload(CALLED, CALLED, vec![STRING_TYPE, INT_TYPE, DYN_TYPE], |arguments| {
        let name = string(&arguments, 0)?;
        let count = usize::try_from(number(&arguments, 1)?).unwrap_or(usize::MAX);
        let value = last(arguments)?;
        spend(called(&name, count, value.as_ref()))?;
        Ok(value)
    })?;
    env.add_overload(JOINED, JOINED, vec![INT_TYPE, DYN_TYPE], |arguments| {
        let count = number(&arguments, 0)?;
        let value = last(arguments)?;
        // The texts between the first and the last one have half the size on average.
        let text = match node(value.as_ref()) {
            node if node.ty.is_text() => scale(node.size_or_unknown().max, cost::PER_CHARACTER),
            _ => 0,
        };
        spend(count.max(text.saturating_mul(count.div_ceil(2))))?;
        Ok(value)
    })?;
    env.add_overload(CONTINUE, CONTINUE, vec![DYN_TYPE], |arguments| {
        if METER.with(|meter| meter.borrow().spent > PER_CALL) {
            return give(false);
        }
        last(arguments)
    })
}

/// Adds steps. The error is that the limit is exceeded.
pub(super) fn spend(steps: u64) -> Result<()> {
    METER.with(|meter| {
        let mut meter = meter.borrow_mut();
        meter.spent = meter.spent.saturating_add(steps);
        if meter.spent > PER_CALL {
            return Err(ExecutionError::function_error(SPEND, "the cost limit is exceeded"));
        }
        Ok(())
    })
}

/// Returns the cost of a call whose arguments are the last ones.
fn called(name: &str, count: usize, result: &dyn Val) -> u64 {
    let mut arguments = METER.with(|meter| {
        let arguments = &mut meter.borrow_mut().arguments;
        arguments.split_off(arguments.len().saturating_sub(count))
    });
    // The library evaluates the receiver of a method after its arguments.
    if name.starts_with('.') && !arguments.is_empty() {
        arguments.rotate_right(1);
    }
    if name == ".join" {
        return scale(node(result).size_or_unknown().max, 2.0 * cost::PER_CHARACTER);
    }
    cost::of(name, &arguments).cost
}

/// Returns the type and the size of a value. The items of a list count as one step each.
fn node(value: &dyn Val) -> Node<'static> {
    let ty = match value.get_type().name() {
        "string" => Type::String,
        "bytes" => Type::Bytes,
        "list" => Type::List(Box::new(Type::Int)),
        "map" => Type::Map(Box::new(Type::Dyn), Box::new(Type::Dyn)),
        _ => {
            let number = value.downcast_ref::<CelInt>();
            let literal = number.map(|number| u64::try_from(*number.inner()).unwrap_or(0));
            return Node { literal, ..Node::new(Type::Int, 0) };
        }
    };
    let size = value.as_sizer().and_then(|sizer| u64::try_from(*sizer.size().inner()).ok());
    Node::new(ty, 0).sized(Some(Range::exactly(size.unwrap_or(1))))
}

fn number(arguments: &[CowVal<'_, '_>], index: usize) -> Result<u64> {
    match argument(arguments, index)? {
        Cel::Int(number) => Ok(u64::try_from(number).unwrap_or(0)),
        other => Err(other.error_expected_type(cel::objects::ValueType::Int)),
    }
}

fn last<'b, 'v>(mut arguments: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>> {
    let count = arguments.len();
    arguments.pop().ok_or_else(|| ExecutionError::invalid_argument_count(1, count))
}
