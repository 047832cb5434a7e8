//! Parses the lines of the table.

use super::super::types::Type;
use super::table::{KINDS, NAMESPACES};
use super::{ORDERED, Overload};

/// Parses one line of the table. A line with `O` has an overload for each type with an order.
pub(super) fn read(line: &'static str) -> (String, Vec<Overload>) {
    let (head, result) = line.rsplit_once(") ").unwrap_or((line, "dyn"));
    // The last parenthesis at the lowest depth opens the list of arguments.
    let mut depth = 0_i32;
    let open = head.rfind(|c| {
        depth += i32::from(c == ')') - i32::from(c == '(');
        depth < 0
    });
    let (callee, arguments) = head.split_at(open.unwrap_or(head.len()));
    let mut parameters = parts(arguments.trim_start_matches('('));
    let name = match callee.rsplit_once('.') {
        Some((receiver, method)) if !NAMESPACES.contains(&receiver) => {
            parameters.insert(0, receiver);
            format!(".{method}")
        }
        _ => callee.to_owned(),
    };
    let is_ordered = parameters.iter().any(|parameter| parameter.contains("(O)"));
    let ordered = if is_ordered { &ORDERED[..] } else { &[Type::Dyn] };
    let overload = |ordered: &Type<'static>| Overload {
        parameters: parameters.iter().map(|text| ty(text, ordered)).collect(),
        result: ty(result, ordered),
    };
    (name, ordered.iter().map(overload).collect())
}

/// Splits a list of types.
fn parts(text: &'static str) -> Vec<&'static str> {
    let mut depth = 0_i32;
    let parts = text.split(move |c: char| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        c == ',' && depth == 0
    });
    parts.map(str::trim).filter(|part| !part.is_empty()).collect()
}

fn ty(text: &'static str, ordered: &Type<'static>) -> Type<'static> {
    let Some((outer, inner)) = text.strip_suffix(')').and_then(|text| text.split_once('(')) else {
        return simple(text, ordered);
    };
    let mut inner = parts(inner).into_iter().map(|text| Box::new(ty(text, ordered)));
    let mut next = || inner.next().unwrap_or(Box::new(Type::Dyn));
    match outer {
        "map" => Type::Map(next(), next()),
        "optional" => Type::Optional(next()),
        "type" => Type::Meta(next()),
        _ => Type::List(next()),
    }
}

fn simple(text: &'static str, ordered: &Type<'static>) -> Type<'static> {
    match text {
        "A" => Type::Variable(0),
        "B" => Type::Variable(1),
        "O" => ordered.clone(),
        "timestamp" => Type::Timestamp,
        "duration" => Type::Duration,
        name if KINDS.contains(&name) => Type::Kind(name),
        name => Type::scalar(name).unwrap_or(Type::Dyn),
    }
}
