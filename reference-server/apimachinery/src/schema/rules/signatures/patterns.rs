//! The types in signatures.

use std::collections::HashMap;

use super::super::types::Type;
use super::Overload;
use super::table::{KINDS, NAMESPACES};

/// The types of the language whose values can be null.
const NULLABLE: [&str; 2] = ["duration", "timestamp"];

/// The type that a signature requires of an argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Pattern {
    Any(char),
    Simple(&'static str),
    List(Box<Pattern>),
    Map(Box<Pattern>, Box<Pattern>),
    Optional(Box<Pattern>),
}

impl Pattern {
    pub(super) fn accepts<'s>(&self, ty: &Type<'s>, bound: &mut HashMap<char, Type<'s>>) -> bool {
        match (self, ty) {
            (Self::Any(name), ty) => {
                let before = bound.remove(name);
                let agrees = before.as_ref().is_none_or(|before| before.agrees(ty));
                bound.insert(
                    *name,
                    before.map_or_else(|| ty.clone(), |before| before.join_item(ty.clone())),
                );
                agrees
            }
            (_, Type::Any | Type::Dyn) | (Self::Optional(_), Type::Null) => true,
            (Self::Simple(name), Type::Null) => NULLABLE.contains(name) || KINDS.contains(name),
            (Self::Simple(name), ty) => ty.to_string() == *name,
            (Self::List(item), Type::List(ty)) => item.accepts(ty, bound),
            (Self::Map(key, value), Type::Map(keys, values)) => {
                key.accepts(keys, bound) && value.accepts(values, bound)
            }
            (Self::Optional(inner), Type::Optional(ty)) => inner.accepts(ty, bound),
            _ => false,
        }
    }

    pub(super) fn resolve<'s>(&self, bound: &HashMap<char, Type<'s>>) -> Type<'s> {
        match self {
            Self::Any(name) => bound.get(name).cloned().unwrap_or(Type::Dyn),
            Self::List(item) => Type::List(Box::new(item.resolve(bound))),
            Self::Map(key, value) => {
                Type::Map(Box::new(key.resolve(bound)), Box::new(value.resolve(bound)))
            }
            Self::Optional(inner) => Type::Optional(Box::new(inner.resolve(bound))),
            Self::Simple(name) => match *name {
                "bool" => Type::Bool,
                "int" => Type::Int,
                "uint" => Type::Uint,
                "double" => Type::Double,
                "string" => Type::String,
                "bytes" => Type::Bytes,
                "timestamp" => Type::Timestamp,
                "duration" => Type::Duration,
                "type" => Type::Meta,
                name if KINDS.contains(&name) => Type::Kind(name),
                _ => Type::Dyn,
            },
        }
    }
}

/// Parses one line of the table.
pub(super) fn read(line: &'static str) -> (String, Overload) {
    let (head, result) = line.rsplit_once(") ").unwrap_or((line, "dyn"));
    // The last parenthesis at the lowest depth opens the list of arguments.
    let mut depth = 0_i32;
    let open = head.rfind(|c| {
        depth += i32::from(c == ')') - i32::from(c == '(');
        depth < 0
    });
    let (callee, arguments) = head.split_at(open.unwrap_or(head.len()));
    let mut parameters = patterns(arguments.trim_start_matches('('));
    let name = match callee.rsplit_once('.') {
        Some((receiver, method)) if !NAMESPACES.contains(&receiver) => {
            parameters.insert(0, pattern(receiver));
            format!(".{method}")
        }
        _ => callee.to_owned(),
    };
    (name, Overload { parameters, result: pattern(result) })
}

fn patterns(text: &'static str) -> Vec<Pattern> {
    let mut depth = 0_i32;
    let parts = text.split(move |c: char| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        c == ',' && depth == 0
    });
    parts.map(str::trim).filter(|part| !part.is_empty()).map(pattern).collect()
}

fn pattern(text: &'static str) -> Pattern {
    let Some((outer, inner)) = text.strip_suffix(')').and_then(|text| text.split_once('(')) else {
        return match text {
            "A" => Pattern::Any('A'),
            "B" => Pattern::Any('B'),
            simple => Pattern::Simple(simple),
        };
    };
    let mut inner = patterns(inner).into_iter();
    let mut next = || Box::new(inner.next().unwrap_or(Pattern::Simple("dyn")));
    match outer {
        "map" => Pattern::Map(next(), next()),
        "optional" => Pattern::Optional(next()),
        _ => Pattern::List(next()),
    }
}
