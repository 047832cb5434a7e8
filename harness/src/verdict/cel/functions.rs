//! The functions that kubeproof adds to CEL.

use std::sync::{Arc, OnceLock};

use cel::extractors::Arguments;
use cel::{Context, Env, ExecutionError, Value as Cel};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::Value;

use super::to_cel;

/// Returns a context with all functions and no variables.
pub(super) fn context<'v>() -> Context<'v, 'v> {
    static ENV: OnceLock<Arc<Env>> = OnceLock::new();
    let mut context = Context::with_env(Arc::clone(ENV.get_or_init(|| Arc::new(Env::stdlib()))));
    let functions: [(&str, Function); 11] = [
        ("after", after_function),
        ("distinct", distinct_function),
        ("unique", unique_function),
        ("flatten", flatten_function),
        ("sorted", sorted_function),
        ("sameItems", same_items_function),
        ("range", range_function),
        ("picks", picks_function),
        ("parseTime", parse_time_function),
        ("json", json_function),
        ("upperAscii", upper_ascii_function),
    ];
    for (name, function) in functions {
        // Only a name clash with the standard library can fail, which tests would show.
        let added =
            context.add_function(name, move |Arguments(arguments): Arguments| function(&arguments));
        debug_assert!(added.is_ok(), "{name} clashes with a standard function");
    }
    context
}

type Function = fn(&[Cel]) -> Result<Cel, ExecutionError>;

fn after_function(arguments: &[Cel]) -> Result<Cel, ExecutionError> {
    let items = list(arguments, 0)?;
    let item = arguments.get(1);
    let index = items.iter().position(|other| Some(other) == item).ok_or_else(|| {
        ExecutionError::function_error("after", "the list does not hold the item")
    })?;
    Ok(Cel::List(Arc::new(items[index + 1..].to_vec())))
}

fn distinct_function(arguments: &[Cel]) -> Result<Cel, ExecutionError> {
    let items = list(arguments, 0)?;
    if let Some(mut texts) = texts(&items) {
        texts.sort_unstable();
        return Ok(Cel::Bool(texts.windows(2).all(|pair| pair[0] != pair[1])));
    }
    comparable("distinct", &items)?;
    Ok(Cel::Bool(items.iter().enumerate().all(|(index, item)| !items[..index].contains(item))))
}

fn unique_function(arguments: &[Cel]) -> Result<Cel, ExecutionError> {
    let items = list(arguments, 0)?;
    comparable("unique", &items)?;
    let mut seen: Vec<Cel> = Vec::new();
    for item in items.iter() {
        if !seen.contains(item) {
            seen.push(item.clone());
        }
    }
    Ok(Cel::List(Arc::new(seen)))
}

fn flatten_function(arguments: &[Cel]) -> Result<Cel, ExecutionError> {
    let mut items = Vec::new();
    for inner in list(arguments, 0)?.iter() {
        items.extend(as_list("flatten", inner)?.iter().cloned());
    }
    Ok(Cel::List(Arc::new(items)))
}

fn sorted_function(arguments: &[Cel]) -> Result<Cel, ExecutionError> {
    let mut items = list(arguments, 0)?.as_ref().clone();
    items.sort_by(|a, b| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
    Ok(Cel::List(Arc::new(items)))
}

fn same_items_function(arguments: &[Cel]) -> Result<Cel, ExecutionError> {
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
}

fn range_function(arguments: &[Cel]) -> Result<Cel, ExecutionError> {
    let end = integer(arguments, 0)?;
    countable("range", end)?;
    Ok(Cel::List(Arc::new((0..end).map(Cel::Int).collect())))
}

fn picks_function(arguments: &[Cel]) -> Result<Cel, ExecutionError> {
    let (items, count, seed) =
        (list(arguments, 0)?, integer(arguments, 1)?, integer(arguments, 2)?);
    if items.is_empty() {
        return Err(ExecutionError::function_error("picks", "the list is empty"));
    }
    countable("picks", count)?;
    let mut chance = StdRng::seed_from_u64(seed.cast_unsigned());
    let picks = (0..count).map(|_| items[chance.random_range(0..items.len())].clone());
    Ok(Cel::List(Arc::new(picks.collect())))
}

fn parse_time_function(arguments: &[Cel]) -> Result<Cel, ExecutionError> {
    let text = string(arguments, 0)?;
    let time: jiff::Timestamp =
        text.parse().map_err(|error| ExecutionError::function_error("parseTime", error))?;
    Ok(Cel::Int(time.as_second()))
}

fn json_function(arguments: &[Cel]) -> Result<Cel, ExecutionError> {
    let value: Value = serde_json::from_str(&string(arguments, 0)?)
        .map_err(|error| ExecutionError::function_error("json", error))?;
    Ok(to_cel(&value))
}

fn upper_ascii_function(arguments: &[Cel]) -> Result<Cel, ExecutionError> {
    Ok(Cel::String(Arc::new(string(arguments, 0)?.to_ascii_uppercase())))
}

fn list(arguments: &[Cel], index: usize) -> Result<Arc<Vec<Cel>>, ExecutionError> {
    let argument = arguments
        .get(index)
        .ok_or_else(|| ExecutionError::invalid_argument_count(index + 1, arguments.len()))?;
    as_list("a list function", argument)
}

fn as_list(function: &str, value: &Cel) -> Result<Arc<Vec<Cel>>, ExecutionError> {
    match value {
        Cel::List(items) => Ok(Arc::clone(items)),
        other => Err(ExecutionError::function_error(
            function,
            format!("expected a list, got {}", other.type_of()),
        )),
    }
}

/// Limits quadratic comparisons of data from a server.
pub(super) fn comparable(function: &str, items: &[Cel]) -> Result<(), ExecutionError> {
    const MOST: usize = 10_000;
    if items.len() <= MOST {
        return Ok(());
    }
    let why = format!("the list has {} items that are no texts, more than {MOST}", items.len());
    Err(ExecutionError::function_error(function, why))
}

/// Limits lists whose length comes from a server.
pub(super) fn countable(function: &str, count: i64) -> Result<(), ExecutionError> {
    const MOST: i64 = 1_000_000;
    if count <= MOST {
        return Ok(());
    }
    Err(ExecutionError::function_error(function, format!("{count} is more than {MOST}")))
}

/// Returns the items if all are strings. Strings can be sorted, so long lists compare fast.
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
