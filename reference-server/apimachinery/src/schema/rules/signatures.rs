//! The signatures of the functions and operators that expressions may call.

mod read;
mod table;

use std::collections::HashMap;
use std::sync::LazyLock;

use self::read::read;
use self::table::TABLE;
use super::inference::Inference;
use super::types::Type;

/// The types with an order.
const ORDERED: [Type<'static>; 8] = [
    Type::Bool,
    Type::Int,
    Type::Uint,
    Type::Double,
    Type::String,
    Type::Bytes,
    Type::Timestamp,
    Type::Duration,
];
/// Numbers of different types are comparable.
const NUMBERS: [Type<'static>; 3] = [Type::Int, Type::Uint, Type::Double];

/// The type variables `A` and `B` have the numbers 0 and 1.
struct Overload {
    parameters: Vec<Type<'static>>,
    result: Type<'static>,
}

/// The overloads of each function. Methods have a dot before their name.
static OVERLOADS: LazyLock<HashMap<String, Vec<Overload>>> = LazyLock::new(|| {
    let mut overloads: HashMap<String, Vec<Overload>> = HashMap::new();
    for line in TABLE.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (name, read) = read(line);
        overloads.entry(name).or_default().extend(read);
    }
    for name in ["_<_", "_<=_", "_>_", "_>=_"] {
        let pairs = ORDERED.iter().map(|one| (one, one));
        let mixed = NUMBERS.iter().flat_map(|one| NUMBERS.iter().map(move |other| (one, other)));
        let overload = |(left, right): (&Type<'static>, &Type<'static>)| Overload {
            parameters: vec![left.clone(), right.clone()],
            result: Type::Bool,
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

/// Reports whether there is a function or a method of this name.
pub(super) fn is_declared(name: &str) -> bool {
    is_function(name) || is_function(&format!(".{name}"))
}

/// Returns the type of a call. Returns `None` if the function has no overload for the arguments.
pub(super) fn call<'s>(
    name: &str,
    arguments: &[Type<'s>],
    types: &mut Inference<'s>,
) -> Option<Type<'s>> {
    let mut result: Option<Type<'s>> = None;
    for overload in OVERLOADS.get(name).into_iter().flatten() {
        let Some(ty) = overload.apply(arguments, types) else { continue };
        result = Some(match result {
            Some(other) if other != ty => Type::Dyn,
            _ => ty,
        });
    }
    result
}

/// Returns the message about a call for which there is no overload.
pub(super) fn mismatch(name: &str, arguments: &[Type<'_>]) -> String {
    let shown = match name.trim_start_matches('.') {
        "@mapInsert" => "cel.@mapInsert",
        shown => shown,
    };
    let types: Vec<String> = arguments.iter().map(Type::to_string).collect();
    let applied = match types.split_first() {
        Some((receiver, types)) if name.starts_with('.') => {
            format!("{receiver}.({})", types.join(", "))
        }
        _ => format!("({})", types.join(", ")),
    };
    format!("found no matching overload for '{shown}' applied to '{applied}'")
}

impl Overload {
    fn apply<'s>(&self, arguments: &[Type<'s>], types: &mut Inference<'s>) -> Option<Type<'s>> {
        if arguments.len() != self.parameters.len() {
            return None;
        }
        let variables = [types.fresh(), types.fresh()];
        let own = |ty: &Type<'static>| {
            let ty: &Type<'s> = ty;
            ty.replaced(&|variable| variables.get(variable).cloned().unwrap_or(Type::Dyn))
        };
        let parameters: Vec<Type<'s>> = self.parameters.iter().map(own).collect();
        types.assigns_all(arguments, &parameters).then(|| types.resolved(&own(&self.result)))
    }
}

#[cfg(test)]
mod tests;
