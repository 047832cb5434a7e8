//! Names of fields and kinds.

use super::fields::Field;
use super::model::TypeSchema;

/// Acronyms in mixed case.
const MIXED: [&str; 17] = [
    "Api", "Cpu", "Dns", "Html", "Http", "Https", "Id", "Ip", "Json", "Ssh", "Ssl", "Tcp", "Tls",
    "Udp", "Uid", "Uri", "Url",
];

/// Imperative verbs describe an action instead of a state.
const IMPERATIVE: [&str; 7] = ["do", "perform", "execute", "trigger", "create", "delete", "launch"];

pub(super) fn camel_case(field: &Field<'_>) -> Option<String> {
    let name = field.name;
    let good = name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.chars().all(|c| c.is_ascii_alphanumeric());
    (!name.is_empty() && !good).then(|| format!("the name `{name}` is not camelCase"))
}

pub(super) fn separators(field: &Field<'_>) -> Option<String> {
    let found = field.name.chars().find(|c| matches!(c, '_' | '-'))?;
    Some(format!("the name `{}` holds `{found}`", field.name))
}

pub(super) fn acronyms(field: &Field<'_>) -> Option<String> {
    let words = words(field.name);
    // A plural ends in a lower-case letter.
    let is_mixed = |word: &&&str| {
        MIXED.contains(*word) || word.strip_suffix('s').is_some_and(|one| MIXED.contains(&one))
    };
    let mixed = words.iter().find(is_mixed)?;
    Some(format!("the letters of `{mixed}` in `{}` do not share one case", field.name))
}

pub(super) fn booleans(field: &Field<'_>) -> Option<String> {
    let rest = field.name.strip_prefix("is")?;
    let prefixed = field.is("boolean") && rest.starts_with(|c: char| c.is_ascii_uppercase());
    prefixed.then(|| format!("the boolean `{}` needs no `is` before it", field.name))
}

pub(super) fn times(field: &Field<'_>) -> Option<String> {
    let is_instant = field.is("string") && field.schema["format"] == "date-time";
    let good = field.name.is_empty() || field.name.ends_with("Time");
    (is_instant && !good)
        .then(|| format!("`{}` holds an instant, and is not called `somethingTime`", field.name))
}

pub(super) fn declarative(field: &Field<'_>) -> Option<String> {
    let words = words(field.name);
    let imperative = words.len() > 1 && field.in_spec && IMPERATIVE.contains(words.first()?);
    imperative.then(|| format!("`{}` is imperative; name the desired state", field.name))
}

pub(super) fn controllers(ty: &TypeSchema) -> Option<String> {
    let kind = &ty.kind.as_ref()?.kind;
    kind.ends_with("Controller")
        .then(|| format!("the kind `{kind}` is named after what controls it"))
}

/// Splits a camelCase name into words: `podIPs` into `pod`, `I`, `Ps`; `podIp` into `pod`, `Ip`.
fn words(name: &str) -> Vec<&str> {
    let mut starts: Vec<usize> =
        name.char_indices().filter(|(_, c)| c.is_ascii_uppercase()).map(|(at, _)| at).collect();
    starts.insert(0, 0);
    starts.push(name.len());
    starts.dedup();
    starts.windows(2).filter_map(|ends| name.get(ends[0]..ends[1])).collect()
}
