//! The signatures of the functions and operators that expressions may call.

mod patterns;
mod table;

use std::collections::HashMap;
use std::sync::LazyLock;

use self::patterns::{Pattern, read};
use self::table::TABLE;
use super::types::Type;

/// The types with an order.
const ORDERED: [&str; 8] =
    ["bool", "int", "uint", "double", "string", "bytes", "timestamp", "duration"];
/// Numbers of different types are comparable.
const NUMBERS: [&str; 3] = ["int", "uint", "double"];

struct Overload {
    parameters: Vec<Pattern>,
    result: Pattern,
}

/// The overloads of each function. Methods have a dot before their name.
static OVERLOADS: LazyLock<HashMap<String, Vec<Overload>>> = LazyLock::new(|| {
    let mut overloads: HashMap<String, Vec<Overload>> = HashMap::new();
    for line in TABLE.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (name, overload) = read(line);
        overloads.entry(name).or_default().push(overload);
    }
    for name in ["_<_", "_<=_", "_>_", "_>=_"] {
        let pairs = ORDERED.iter().map(|one| (*one, *one));
        let mixed = NUMBERS.iter().flat_map(|one| NUMBERS.iter().map(move |other| (*one, *other)));
        let overload = |(left, right): (&'static str, &'static str)| Overload {
            parameters: vec![Pattern::Simple(left), Pattern::Simple(right)],
            result: Pattern::Simple("bool"),
        };
        let all = pairs.chain(mixed.filter(|(one, other)| one != other)).map(overload);
        overloads.entry(name.to_owned()).or_default().extend(all);
    }
    overloads
});

/// Reports whether there is a function or, with a dot before the name, a method of this name.
pub(super) fn is_function(name: &str) -> bool {
    OVERLOADS.contains_key(name)
}

/// Returns the type of a call. The error is a message about an unknown function or unsuitable
/// arguments.
pub(super) fn call<'s>(name: &str, arguments: &[Type<'s>]) -> Result<Type<'s>, String> {
    let shown = name.trim_start_matches('.');
    let overloads =
        OVERLOADS.get(name).ok_or_else(|| format!("undeclared reference to '{shown}'"))?;
    let results = overloads.iter().filter_map(|overload| overload.apply(arguments));
    results.reduce(Type::join).ok_or_else(|| {
        let types: Vec<String> = arguments.iter().map(Type::to_string).collect();
        format!("found no matching overload for '{shown}' applied to '({})'", types.join(", "))
    })
}

impl Overload {
    fn apply<'s>(&self, arguments: &[Type<'s>]) -> Option<Type<'s>> {
        if arguments.len() != self.parameters.len() {
            return None;
        }
        let mut bound = HashMap::new();
        let all = self
            .parameters
            .iter()
            .zip(arguments)
            .all(|(pattern, ty)| pattern.accepts(ty, &mut bound));
        all.then(|| self.result.resolve(&bound))
    }
}

#[cfg(test)]
mod tests;
