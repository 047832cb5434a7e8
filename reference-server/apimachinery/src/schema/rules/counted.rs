//! Expressions that count the cost of their own evaluation.
//!
//! The costs are those of kube-apiserver: one step for each variable, selection and call, and more
//! for functions that read texts or lists. Parts that are not evaluated cost nothing. Two numbers
//! are estimates: that of a chain of additions, and that of functions over lists of texts.

use cel::common::ast::{
    CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedEntryExpr, IdedExpr, ListExpr, LiteralValue,
    MapExpr, SelectExpr, operators,
};

use super::authorizer::CHECK_COST;
use super::check::dotted;
use super::conversions::{self, UTC};
use super::cost::{self, NEW_LIST, NEW_MAP};
use super::format::FORMAT;
use super::library::{FIRST_INDEX, LAST_INDEX, MATCHES, NON_ZERO, RANGE};
use super::messages::{self, Message, NULL_VALUE};
use super::meter::{CALLED, CONTINUE, JOINED, SIZE, SPEND};
use super::pairs;
use super::signatures;
use super::syntax::{self, number};

/// The maximum number of added calls around a part of an expression. Each takes a stack frame.
const MAX_ADDED: usize = 60;

/// Returns the expression with calls that count its cost.
pub(super) fn counted(expression: &IdedExpr) -> IdedExpr {
    let (expression, steps) = part(expression, 1);
    spend(steps, expression)
}

/// Returns a part of an expression, and the steps that its parent adds. `added` is the number of
/// calls around it.
fn part(expression: &IdedExpr, added: usize) -> (IdedExpr, u64) {
    let same = |expr: Expr| IdedExpr { id: expression.id, expr };
    match &expression.expr {
        // A dot before a name leads out of all packages.
        Expr::Ident(name) => (same(Expr::Ident(name.trim_start_matches('.').to_owned())), 1),
        Expr::Select(select) if dotted(select).is_some_and(|name| name == NULL_VALUE) => {
            (number(0), 1)
        }
        Expr::Select(select) => {
            let (operand, steps) = part(&select.operand, added);
            let select = SelectExpr { operand: Box::new(operand), ..select.clone() };
            let own = u64::from(!select.test);
            (same(Expr::Select(select)), steps + own)
        }
        Expr::Call(call) => self::call(call, added),
        Expr::List(list) => {
            let (elements, steps) = parts(&list.elements, added);
            let list = ListExpr { elements, optional_indices: list.optional_indices.clone() };
            (same(Expr::List(list)), steps + NEW_LIST)
        }
        Expr::Map(map) => {
            let (map, steps) = entries(map, added);
            (same(Expr::Map(map)), steps + NEW_MAP)
        }
        Expr::Comprehension(loops) => comprehension(loops, added),
        Expr::Struct(literal) => match Message::of(literal) {
            Some(message) => {
                let (value, steps) = part(&message.value(), added);
                (value, steps + messages::COST)
            }
            None => (expression.clone(), 0),
        },
        Expr::Literal(_) | Expr::Unspecified => (expression.clone(), 0),
    }
}

fn parts(expressions: &[IdedExpr], added: usize) -> (Vec<IdedExpr>, u64) {
    let all = expressions.iter().map(|expression| part(expression, added));
    let (expressions, steps): (Vec<_>, Vec<u64>) = all.unzip();
    (expressions, steps.into_iter().sum())
}

fn entries(map: &MapExpr, added: usize) -> (MapExpr, u64) {
    let (mut map, mut steps) = (map.clone(), 0);
    // In a literal, a later entry replaces an earlier one with the same key.
    let keys: Vec<Option<LiteralValue>> = map.entries.iter().map(literal_key).collect();
    let is_last = |index: usize| {
        keys[index].is_none() || keys[index + 1..].iter().all(|later| *later != keys[index])
    };
    let mut index = 0..keys.len();
    map.entries.retain(|_| index.next().is_some_and(is_last));
    for entry in &mut map.entries {
        if let EntryExpr::MapEntry(entry) = &mut entry.expr {
            for side in [&mut entry.key, &mut entry.value] {
                let (counted, more) = part(side, added);
                *side = counted;
                steps += more;
            }
        }
    }
    (map, steps)
}

fn literal_key(entry: &IdedEntryExpr) -> Option<LiteralValue> {
    match &entry.expr {
        EntryExpr::MapEntry(entry) => match &entry.key.expr {
            Expr::Literal(key) if !entry.optional => Some(key.clone()),
            _ => None,
        },
        EntryExpr::StructField(_) => None,
    }
}

fn call(call: &CallExpr, added: usize) -> (IdedExpr, u64) {
    let name = call.func_name.as_str();
    match (name, call.args.as_slice()) {
        (operators::LOGICAL_AND | operators::LOGICAL_OR, [left, right]) => {
            let (left, steps) = part(left, added);
            let right = alone(right, 0, added);
            (rebuilt(call, None, vec![left, right]), steps)
        }
        (operators::CONDITIONAL, [condition, yes, no]) => {
            let (condition, steps) = part(condition, added);
            let arguments = vec![condition, branch(yes, added), branch(no, added)];
            (rebuilt(call, None, arguments), steps)
        }
        (operators::ADD, [_, _]) if added < MAX_ADDED => {
            let (sum, steps, count) = chain(call, added + 1);
            (syntax::call(JOINED, vec![count_of(count), sum]), steps)
        }
        _ => plain(call, added),
    }
}

/// Returns a call that always costs the same, or a call whose cost depends on its arguments.
fn plain(call: &CallExpr, added: usize) -> (IdedExpr, u64) {
    let namespace = call.target.as_deref().and_then(|target| match &target.expr {
        Expr::Ident(name) => Some(format!("{name}.{}", call.func_name)),
        _ => None,
    });
    let qualified = namespace.filter(|name| signatures::is_function(name));
    let receiver = call.target.as_deref().filter(|_| qualified.is_none());
    let name = match (&qualified, &call.target) {
        (Some(name), _) => name.clone(),
        (None, Some(_)) => format!(".{}", call.func_name),
        (None, None) => call.func_name.clone(),
    };
    let measured =
        added + 2 <= MAX_ADDED && cost::depends_on_sizes(&name) && !is_part_of_time(call);
    let inside = if measured { added + 2 } else { added };
    let size = |argument: IdedExpr| {
        if measured { syntax::call(SIZE, vec![argument]) } else { argument }
    };
    let (target, mut steps) = match receiver.map(|target| part(target, inside)) {
        Some((target, steps)) if is_part_of_time(call) => {
            (Some(Box::new(syntax::call(UTC, vec![target]))), steps)
        }
        Some((target, steps)) => (Some(Box::new(size(target))), steps),
        None => (call.target.clone(), 0),
    };
    let (arguments, more) = parts(&call.args, inside);
    let arguments: Vec<IdedExpr> = arguments.into_iter().map(size).collect();
    steps += more;
    if name == ".check" {
        steps += CHECK_COST;
    }
    let count = arguments.len() + usize::from(receiver.is_some());
    let call = rebuilt(call, target, arguments);
    if measured {
        let name = IdedExpr { id: 0, expr: Expr::Literal(LiteralValue::String(name.into())) };
        (syntax::call(CALLED, vec![name, count_of(count as u64), call]), steps)
    } else {
        (call, steps + 1)
    }
}

/// Reports whether a call reads a part of a time, such as `getHours()`, or of another value.
fn is_part_of_time(call: &CallExpr) -> bool {
    let part = call.func_name.strip_prefix("get").filter(|_| call.args.is_empty());
    part.is_some_and(|part| {
        matches!(
            part,
            "FullYear"
                | "Month"
                | "Date"
                | "DayOfMonth"
                | "DayOfWeek"
                | "DayOfYear"
                | "Hours"
                | "Minutes"
                | "Seconds"
                | "Milliseconds"
        )
    })
}

/// Returns a chain of additions with its steps and the number of additions.
fn chain(call: &CallExpr, added: usize) -> (IdedExpr, u64, u64) {
    let (mut steps, mut count) = (0, 1);
    let mut arguments = Vec::with_capacity(call.args.len());
    for argument in &call.args {
        let (argument, more) = match &argument.expr {
            Expr::Call(inner) if inner.func_name == operators::ADD && inner.args.len() == 2 => {
                let (argument, more, inside) = chain(inner, added);
                count += inside;
                (argument, more)
            }
            _ => part(argument, added),
        };
        arguments.push(argument);
        steps += more;
    }
    (rebuilt(call, None, arguments), steps, count)
}

fn comprehension(loops: &ComprehensionExpr, added: usize) -> (IdedExpr, u64) {
    let (iter_range, range_steps) = part(&loops.iter_range, added);
    let (accu_init, init_steps) = part(&loops.accu_init, added);
    let (result, result_steps) = part(&loops.result, added);
    // The library recognizes loops without a condition by the literal.
    let (loop_cond, round) = if let Expr::Literal(_) = &loops.loop_cond.expr {
        (loops.loop_cond.clone(), 0)
    } else {
        let (condition, steps) = part(&loops.loop_cond, added + 1);
        (syntax::call(CONTINUE, vec![condition]), steps)
    };
    let loop_step = step(&loops.loop_step, &loops.accu_var, round, added);
    let counted = ComprehensionExpr {
        iter_range,
        iter_var: loops.iter_var.clone(),
        iter_var2: loops.iter_var2.clone(),
        accu_var: loops.accu_var.clone(),
        accu_init,
        loop_cond,
        loop_step,
        result,
    };
    (IdedExpr { id: 0, expr: pairs::lowered(counted) }, range_steps + init_steps + result_steps)
}

/// Returns the step of a loop, which adds the steps of each round. The library evaluates the forms
/// of the macros in a faster way, so they stay the same.
fn step(expression: &IdedExpr, accumulator: &str, round: u64, added: usize) -> IdedExpr {
    let Expr::Call(call) = &expression.expr else { return alone(expression, round, added) };
    let is_accumulator =
        |part: &IdedExpr| matches!(&part.expr, Expr::Ident(name) if name == accumulator);
    match (call.func_name.as_str(), call.args.as_slice()) {
        (operators::LOGICAL_AND | operators::LOGICAL_OR, [first, other])
            if is_accumulator(first) =>
        {
            rebuilt(call, None, vec![first.clone(), alone(other, round + 1, added)])
        }
        (operators::CONDITIONAL, [guard, yes, no]) if is_accumulator(no) => {
            let guard = alone(guard, round, added);
            rebuilt(call, None, vec![guard, step(yes, accumulator, 0, added), no.clone()])
        }
        (operators::ADD, [first, IdedExpr { id, expr: Expr::List(list) }])
            if is_accumulator(first) && !list.elements.is_empty() =>
        {
            let mut list = list.clone();
            for (index, element) in list.elements.iter_mut().enumerate() {
                let own = if index == 0 { round + NEW_LIST + 2 } else { 0 };
                *element = alone(element, own, added);
            }
            let list = IdedExpr { id: *id, expr: Expr::List(list) };
            rebuilt(call, None, vec![first.clone(), list])
        }
        (pairs::INSERT, [first, rest @ .., last]) if is_accumulator(first) => {
            let own = round + 2 + rest.len() as u64;
            let mut arguments = vec![first.clone()];
            arguments.extend_from_slice(rest);
            arguments.push(alone(last, own, added));
            rebuilt(call, None, arguments)
        }
        _ => alone(expression, round, added),
    }
}

/// Returns a part that adds its own steps and `more`.
fn alone(expression: &IdedExpr, more: u64, added: usize) -> IdedExpr {
    if added >= MAX_ADDED {
        return part(expression, added).0;
    }
    let (counted, steps) = part(expression, added + 1);
    spend(steps + more, counted)
}

/// Returns an alternative. A variable or selection costs one step less than elsewhere.
fn branch(expression: &IdedExpr, added: usize) -> IdedExpr {
    let is_attribute = match &expression.expr {
        Expr::Ident(_) => true,
        Expr::Select(select) => !select.test,
        Expr::Call(call) => matches!(
            call.func_name.as_str(),
            operators::INDEX | operators::OPT_INDEX | operators::OPT_SELECT
        ),
        _ => false,
    };
    if !is_attribute || added >= MAX_ADDED {
        return alone(expression, 0, added);
    }
    let (counted, steps) = part(expression, added + 1);
    spend(steps.saturating_sub(1), counted)
}

fn spend(steps: u64, expression: IdedExpr) -> IdedExpr {
    if steps == 0 { expression } else { syntax::call(SPEND, vec![count_of(steps), expression]) }
}

fn rebuilt(call: &CallExpr, target: Option<Box<IdedExpr>>, args: Vec<IdedExpr>) -> IdedExpr {
    let (target, name) = match (call.func_name.as_str(), args.as_slice()) {
        ("matches", _) => (target, MATCHES),
        ("format", _) if target.is_some() => (target, FORMAT),
        ("indexOf", [_, _]) => (target, FIRST_INDEX),
        ("lastIndexOf", [_, _]) => (target, LAST_INDEX),
        ("range", _) if is_namespace(target.as_deref(), "lists") => (None, RANGE),
        ("ofNonZeroValue", _) if is_namespace(target.as_deref(), "optional") => (None, NON_ZERO),
        (name, _) if target.is_none() => {
            (target, conversions::evaluated_name(name).unwrap_or(name))
        }
        (name, _) => (target, name),
    };
    let call = CallExpr { func_name: name.to_owned(), target, args };
    IdedExpr { id: 0, expr: Expr::Call(call) }
}

fn is_namespace(target: Option<&IdedExpr>, namespace: &str) -> bool {
    target.is_some_and(|target| matches!(&target.expr, Expr::Ident(name) if name == namespace))
}

fn count_of(value: u64) -> IdedExpr {
    number(i64::try_from(value).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests;
