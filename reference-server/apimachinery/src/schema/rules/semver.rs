//! Semantic versions in expressions: `semver('1.2.3').isLessThan(semver('1.3.0'))`.
//!
//! The syntax and the order are those of semver.org 2.0.0. With `true` as the second argument, the
//! functions also accept a leading `v`, leading zeros, and versions without minor or patch number.

use std::cmp::Ordering;

use cel::common::types::{BOOL_TYPE, STRING_TYPE, Type};
use cel::common::value::CowVal;
use cel::objects::Opaque;
use cel::{DeclarationError, Env, ExecutionError, Value as Cel};

use super::library::{Result, argument, give, string};

const NAME: &str = "kubernetes.Semver";

/// A version without its build.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Semver {
    numbers: [u64; 3],
    /// The identifiers of a pre-release, which precedes the release.
    before: Vec<String>,
}

impl Opaque for Semver {
    fn runtime_type_name(&self) -> &str {
        NAME
    }
}

impl From<Semver> for Cel {
    fn from(version: Semver) -> Self {
        Self::Opaque(std::sync::Arc::new(version))
    }
}

impl Semver {
    fn ty() -> Type {
        Type::new_opaque_type(NAME)
    }

    fn of(arguments: &[CowVal<'_, '_>], index: usize) -> Result<Self> {
        match argument(arguments, index)? {
            Cel::Opaque(value) => value.downcast_ref::<Self>().cloned(),
            _ => None,
        }
        .ok_or_else(|| ExecutionError::function_error(NAME, "the argument is of another type"))
    }

    fn parse(text: &str) -> Option<Self> {
        if !is_version(text) {
            return None;
        }
        let text = text.split_once('+').map_or(text, |(version, _)| version);
        let (core, before) = text.split_once('-').map_or((text, None), |(a, b)| (a, Some(b)));
        let numbers: Vec<u64> =
            core.split('.').map(|part| part.parse().ok()).collect::<Option<_>>()?;
        let before: Vec<String> =
            before.into_iter().flat_map(|text| text.split('.')).map(str::to_owned).collect();
        let fits = |part: &String| !is_digits(part) || part.parse::<u64>().is_ok();
        before.iter().all(fits).then_some(Self { numbers: numbers.try_into().ok()?, before })
    }

    /// Parses a version after adding what it lacks.
    fn parse_short(text: &str) -> Option<Self> {
        let text = text.strip_prefix('v').unwrap_or(text);
        let end = text.find(['-', '+']).unwrap_or(text.len());
        let (core, rest) = text.split_at(end);
        let mut parts: Vec<&str> = core.split('.').collect();
        if parts.len() < 3 && !rest.is_empty() || parts.iter().any(|part| part.is_empty()) {
            return None;
        }
        for part in &mut parts {
            let stripped = part.trim_start_matches('0');
            *part = if stripped.is_empty() { "0" } else { stripped };
        }
        while parts.len() < 3 {
            parts.push("0");
        }
        Self::parse(&format!("{}{rest}", parts.join(".")))
    }
}

impl Ord for Semver {
    fn cmp(&self, other: &Self) -> Ordering {
        let identifier = |one: &String, other: &String| match (one.parse(), other.parse()) {
            (Ok(one), Ok(other)) => u64::cmp(&one, &other),
            (Ok(_), Err(_)) => Ordering::Less,
            (Err(_), Ok(_)) => Ordering::Greater,
            (Err(_), Err(_)) => one.cmp(other),
        };
        let pairs = self.before.iter().zip(&other.before);
        let first = pairs.map(|(one, other)| identifier(one, other)).find(|it| it.is_ne());
        let releases = self.before.is_empty().cmp(&other.before.is_empty());
        let lengths = self.before.len().cmp(&other.before.len());
        self.numbers.cmp(&other.numbers).then(releases).then(first.unwrap_or(lengths))
    }
}

impl PartialOrd for Semver {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Reports whether a text is a version of semver.org 2.0.0, with numbers of any size.
pub fn is_version(text: &str) -> bool {
    let (text, build) = text.split_once('+').map_or((text, None), |(a, b)| (a, Some(b)));
    let (core, before) = text.split_once('-').map_or((text, None), |(a, b)| (a, Some(b)));
    let is_plain = |part: &str| part == "0" || !part.starts_with('0');
    core.split('.').count() == 3
        && core.split('.').all(|part| is_digits(part) && is_plain(part))
        && before.is_none_or(|parts| {
            parts.split('.').all(|part| is_word(part) && (!is_digits(part) || is_plain(part)))
        })
        && build.is_none_or(|parts| parts.split('.').all(is_word))
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_digit())
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
}

/// Parses the first argument, and completes it if the second is true.
fn parse(arguments: &[CowVal<'_, '_>]) -> Result<Option<Semver>> {
    let text = string(arguments, 0)?;
    let completes = arguments.len() > 1 && matches!(argument(arguments, 1)?, Cel::Bool(true));
    Ok(if completes { Semver::parse_short(&text) } else { Semver::parse(&text) })
}

/// Declares the type and its functions.
pub(super) fn declare(env: &mut Env) -> std::result::Result<(), DeclarationError> {
    env.add_type(Semver::ty())?;
    let parsed: cel::common::functions::Function = |arguments| {
        let version = parse(&arguments)?;
        give(version.ok_or_else(|| ExecutionError::function_error("semver", "no version"))?)
    };
    env.add_overload("semver", "string_to_semver", vec![STRING_TYPE], parsed)?;
    let two = || vec![STRING_TYPE, BOOL_TYPE];
    env.add_overload("semver", "string_bool_to_semver", two(), parsed)?;
    let is_version: cel::common::functions::Function =
        |arguments| give(parse(&arguments)?.is_some());
    env.add_overload("isSemver", "is_semver_string", vec![STRING_TYPE], is_version)?;
    env.add_overload("isSemver", "is_semver_string_bool", two(), is_version)?;
    let (ty, other) = (Semver::ty, || vec![Semver::ty()]);
    env.add_member_overload("isGreaterThan", "semver_is_greater", ty(), other(), |arguments| {
        give(Semver::of(&arguments, 0)? > Semver::of(&arguments, 1)?)
    })?;
    env.add_member_overload("isLessThan", "semver_is_less", ty(), other(), |arguments| {
        give(Semver::of(&arguments, 0)? < Semver::of(&arguments, 1)?)
    })?;
    env.add_member_overload("compareTo", "semver_compare", ty(), other(), |arguments| {
        give(Semver::of(&arguments, 0)?.cmp(&Semver::of(&arguments, 1)?) as i64)
    })?;
    env.add_member_overload("major", "semver_major", ty(), vec![], |arguments| {
        give(part(&arguments, 0)?)
    })?;
    env.add_member_overload("minor", "semver_minor", ty(), vec![], |arguments| {
        give(part(&arguments, 1)?)
    })?;
    env.add_member_overload("patch", "semver_patch", ty(), vec![], |arguments| {
        give(part(&arguments, 2)?)
    })
}

fn part(arguments: &[CowVal<'_, '_>], index: usize) -> Result<i64> {
    let number = Semver::of(arguments, 0)?.numbers[index];
    Ok(i64::try_from(number).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use cel::Context;
    use rstest::rstest;

    use super::super::library::env;
    use super::*;

    #[rstest]
    #[case("semver('1.2.3').major() == 1 && semver('1.2.3').patch() == 3")]
    #[case("semver('1.2.3').isLessThan(semver('1.10.0'))")]
    #[case("semver('1.0.0').isGreaterThan(semver('1.0.0-rc.1'))")]
    #[case("semver('1.0.0-alpha.2').isLessThan(semver('1.0.0-alpha.beta'))")]
    #[case("semver('1.0.0-alpha').isLessThan(semver('1.0.0-alpha.1'))")]
    #[case("semver('1.0.0+a').compareTo(semver('1.0.0+b')) == 0")]
    #[case("isSemver('1.0.0-rc.1+b.01') && !isSemver('v1.0') && !isSemver('1.0.0-01')")]
    #[case("isSemver('v01.1', true) && !isSemver('1.0-rc', true) && !isSemver('', true)")]
    #[case("semver('v1.2', true) == semver('1.2.0')")]
    fn versions_are_compared(#[case] text: &str) {
        let program = env().compile(text).expect("an expression");
        assert_eq!(program.execute(&Context::with_env(env())), Ok(Cel::Bool(true)));
    }
}
