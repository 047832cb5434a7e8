//! Cost of calls: how many steps a function needs for arguments of their maximum size.
//!
//! The numbers are those of kube-apiserver, where a step takes about 50 ns. Ten characters cost a
//! step. The cost of a pattern grows with the product of its length and that of the text. The
//! function `matches(text, pattern)` always costs one step, unlike the method.

use cel::common::ast::operators;

use super::node::Node;
use super::size::{Range, scale};
use super::types::Type;

/// Steps for each character of a text.
pub(super) const PER_CHARACTER: f64 = 0.1;
/// Steps for each character of a pattern, and each ten characters of the text.
const PER_PATTERN_CHARACTER: f64 = 0.25;
/// The longest pattern of a named format, in characters.
const FORMAT_PATTERN: f64 = 128.0;
/// The longest name of a format.
const FORMAT_NAME: u64 = 64;
/// The largest number of bytes in an IP address.
const ADDRESS: u64 = 16;
/// Steps to create a list.
pub(super) const NEW_LIST: u64 = 10;
/// Steps to create a map.
pub(super) const NEW_MAP: u64 = 30;

/// The cost of a call without its arguments, and the size of its result if it is known.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call {
    pub(super) cost: u64,
    pub(super) size: Option<Range>,
}

impl Call {
    const STEP: Self = Self { cost: 1, size: None };

    fn costs(cost: u64) -> Self {
        Self { cost, size: None }
    }

    fn returns(cost: u64, size: Range) -> Self {
        Self { cost, size: Some(size) }
    }
}

/// Returns the cost of a call. A method has a dot before its name, and its receiver is the first
/// argument.
pub(super) fn of(name: &str, arguments: &[Node<'_>]) -> Call {
    let sizes: Vec<Range> = arguments.iter().map(Node::size_or_unknown).collect();
    let read = |index: usize| read(sizes.get(index).copied().unwrap_or(Range::UNKNOWN));
    let Some(&first) = sizes.first() else { return Call::STEP };
    let second = sizes.get(1).copied().unwrap_or(Range::exactly(0));
    match name {
        ".isSorted" | ".sum" | ".max" | ".min" | ".indexOf" | ".lastIndexOf" => {
            Call::costs(each_item(&arguments[0], first))
        }
        "url" | ".lowerAscii" | ".upperAscii" | ".substring" | ".trim" => {
            Call::returns(read(0), first)
        }
        ".replace" if sizes.len() >= 3 => {
            Call::returns(scale(first.max, 2.0 * PER_CHARACTER), replaced(first, second, sizes[2]))
        }
        ".split" => {
            let most = arguments.get(2).and_then(Node::number).unwrap_or(first.max);
            Call::returns(scale(first.max, 2.0 * PER_CHARACTER), Range::up_to(most))
        }
        ".join" => {
            let size = joined(&arguments[0], first, sizes.get(1).copied());
            Call::returns(scale(size.max, PER_CHARACTER), size)
        }
        ".find" | ".findAll" => Call::returns(pattern(first, second), Range::up_to(first.max)),
        ".matches" => Call::costs(pattern(first, second)),
        ".contains" => Call::costs(read(0).saturating_mul(read(1))),
        ".startsWith" | ".endsWith" => Call::costs(read(1)),
        ".format" | "cidr" | "isIP" | "isCIDR" | "ip" | "quantity" | "isQuantity" | "semver"
        | "isSemver" => Call::costs(read(0)),
        "ip.isCanonical" => Call::costs(scale(first.max, 2.0 * PER_CHARACTER)),
        ".containsIP" => Call::costs(scale(2 * ADDRESS, PER_CHARACTER) + parsed(arguments)),
        ".containsCIDR" => {
            let compared = scale(2 * ADDRESS, PER_CHARACTER) + scale(ADDRESS, PER_CHARACTER) + 1;
            Call::costs(compared.saturating_add(parsed(arguments)))
        }
        ".validate" => Call::costs(scale(read(1), FORMAT_PATTERN * PER_PATTERN_CHARACTER)),
        "bytes" => {
            Call::returns(read(0), Range { min: first.min, max: first.max.saturating_mul(4) })
        }
        "strings.quote" => Call::returns(read(0), first.plus(first).plus(Range::exactly(2))),
        _ => of_lists(name, arguments, first, second),
    }
}

/// Returns the cost of functions over lists and of operators.
fn of_lists(name: &str, arguments: &[Node<'_>], first: Range, second: Range) -> Call {
    let ty = &arguments[0].ty;
    let new_list = |factor: f64, size: Range| {
        Call::returns(scale(size.max, factor).saturating_add(1 + NEW_LIST), size)
    };
    match name {
        "sets.contains" | "sets.intersects" => {
            Call::costs(first.times(second).max.saturating_add(1))
        }
        "sets.equivalent" => Call::costs(scale(first.times(second).max, 2.0).saturating_add(1)),
        ".slice" => {
            let start = arguments.get(1).and_then(Node::number).unwrap_or(0);
            let end = arguments.get(2).and_then(Node::number).unwrap_or(first.max);
            new_list(1.0, Range::exactly(end.saturating_sub(start)))
        }
        "lists.range" => new_list(1.0, Range::exactly(arguments[0].number().unwrap_or(u64::MAX))),
        ".flatten" => {
            let depth = arguments.get(1).map_or(1, |depth| depth.number().unwrap_or(u64::MAX));
            let size = first.times(Range::exactly(depth));
            Call { size: Some(first), ..new_list(1.0, size) }
        }
        ".reverse" if matches!(ty, Type::List(_)) => new_list(1.0, first),
        ".distinct" => new_list(2.0, first.times(first)),
        ".sort" | ".@sortByAssociatedKeys" => {
            let keys = if name == ".sort" { &arguments[0] } else { &arguments[1] };
            let texts = matches!(
                &keys.ty,
                Type::List(item) if matches!(**item, Type::String | Type::Bytes)
            );
            let size = keys.size_or_unknown();
            new_list(if texts { 2.0 + PER_CHARACTER } else { 2.0 }, size.times(size))
        }
        "string" if matches!(ty, Type::Bytes) => {
            Call::returns(read(first), Range { min: first.min / 4, max: first.max })
        }
        operators::IN if matches!(arguments[1].ty, Type::Map(..)) => Call::STEP,
        operators::IN => Call::costs(second.max),
        operators::ADD => sum(arguments, first.plus(second)),
        operators::EQUALS => equality(arguments, first, second),
        operators::NOT_EQUALS => Call::costs(comparison(first, second)),
        operators::LESS
        | operators::LESS_EQUALS
        | operators::GREATER
        | operators::GREATER_EQUALS => {
            let texts = [Type::String, Type::Bytes]
                .iter()
                .any(|text| arguments.iter().all(|argument| argument.ty.agrees(text)));
            Call::costs(if texts { comparison(first, second) } else { 1 })
        }
        _ => Call::STEP,
    }
}

/// Reports whether the cost of a call depends on the sizes of its arguments.
pub(super) fn depends_on_sizes(name: &str) -> bool {
    matches!(
        name,
        operators::EQUALS
            | operators::NOT_EQUALS
            | operators::LESS
            | operators::LESS_EQUALS
            | operators::GREATER
            | operators::GREATER_EQUALS
            | operators::IN
            | "url"
            | "cidr"
            | "isIP"
            | "isCIDR"
            | "ip"
            | "quantity"
            | "isQuantity"
            | "semver"
            | "isSemver"
            | "ip.isCanonical"
            | "bytes"
            | "string"
            | "strings.quote"
            | "lists.range"
    ) || name.starts_with("sets.")
        || name.starts_with('.') && name != ".size"
}

fn read(size: Range) -> u64 {
    scale(size.max, PER_CHARACTER)
}

/// Returns the cost of a pattern. An empty text has a cost, too.
fn pattern(text: Range, pattern: Range) -> u64 {
    let text = read(text.plus(Range::ONE));
    text.saturating_mul(scale(pattern.max, PER_PATTERN_CHARACTER))
}

/// Compares the shorter value with the start of the longer one.
fn comparison(one: Range, other: Range) -> u64 {
    scale(one.max.min(other.max), PER_CHARACTER)
}

fn equality(arguments: &[Node<'_>], first: Range, second: Range) -> Call {
    match (&arguments[0].ty, &arguments[1].ty) {
        (Type::Kind("Format"), Type::Kind("Format")) => {
            Call::costs(scale(FORMAT_NAME, PER_CHARACTER))
        }
        (Type::Kind("URL"), Type::Kind("URL")) => {
            let size = arguments[1].size.map_or(1, |size| size.max);
            Call::costs(scale(size, PER_CHARACTER))
        }
        (Type::Kind(one), Type::Kind(other)) if one == other => Call::STEP,
        _ => Call::costs(comparison(first, second)),
    }
}

/// Returns the cost of `+`. The size of a sum of unknown types is that of texts.
fn sum(arguments: &[Node<'_>], size: Range) -> Call {
    let both = |ty: &Type<'_>| arguments.iter().all(|argument| argument.ty.agrees(ty));
    if both(&Type::String) || both(&Type::Bytes) {
        Call::returns(read(size).max(1), size)
    } else if both(&Type::List(Box::new(Type::Dyn))) {
        Call::returns(1, size)
    } else {
        Call::STEP
    }
}

/// Returns the cost to compare all items of a list, or to read a text.
fn each_item(list: &Node<'_>, size: Range) -> u64 {
    let Type::List(item) = &list.ty else { return read(size) };
    let text = match **item {
        Type::String | Type::Bytes => read(list.item_size()),
        _ => 0,
    };
    size.max.saturating_mul(text.saturating_add(1))
}

/// Returns the cost to parse the argument of a method if it is a text.
fn parsed(arguments: &[Node<'_>]) -> u64 {
    match arguments.get(1) {
        Some(argument) if matches!(argument.ty, Type::String | Type::Any | Type::Dyn) => {
            read(argument.size_or_unknown())
        }
        _ => 0,
    }
}

/// Returns the size of a list as one text.
fn joined(list: &Node<'_>, count: Range, separator: Option<Range>) -> Range {
    let items = match list.ty {
        Type::List(_) => count.times(list.item_size()),
        _ => Range::exactly(0),
    };
    let Some(separator) = separator else { return items };
    let gaps = Range { min: count.min.saturating_sub(1), max: count.max.saturating_sub(1) };
    items.plus(separator.times(gaps))
}

/// Returns the size of a text after a replacement.
fn replaced(text: Range, old: Range, new: Range) -> Range {
    let (count, kept) = if old.min == 0 {
        (text.max.saturating_add(1), text.max)
    } else if new.max <= old.min {
        (0, text.max)
    } else {
        (text.max.div_ceil(old.min), 0)
    };
    let max = count.saturating_mul(new.max).saturating_add(kept);
    let (count, kept) = if old.max == 0 {
        (text.min.saturating_add(1), text.min)
    } else if old.max <= new.min {
        (0, text.min)
    } else {
        (text.min.div_ceil(old.max), 0)
    };
    Range { min: count.saturating_mul(new.min).saturating_add(kept), max }
}
