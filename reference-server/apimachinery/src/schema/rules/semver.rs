//! Semantic versions in expressions: `semver('1.2.3').isLessThan(semver('1.3.0'))`.
//!
//! The syntax and the order are those of semver.org 2.0.0. With `true` as the second argument, the
//! functions also accept a leading `v`, leading zeros, and versions without minor or patch number.

use std::cmp::Ordering;

use cel::common::types::{BOOL_TYPE, STRING_TYPE, Type};
use cel::common::value::CowVal;
use cel::objects::Opaque;
use cel::{DeclarationError, Env, ExecutionError, Value as Cel};

use super::format::quoted;
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

    /// Parses a version. The error is the message of the Go package `blang/semver`.
    fn parse(text: &str) -> std::result::Result<Self, String> {
        if text.is_empty() {
            return Err("Version string empty".to_owned());
        }
        let mut parts = text.splitn(3, '.');
        let (Some(major), Some(minor), Some(rest)) = (parts.next(), parts.next(), parts.next())
        else {
            return Err("No Major.Minor.Patch elements found".to_owned());
        };
        let (major, minor) = (number("Major", major)?, number("Minor", minor)?);
        let (rest, build) = rest.split_once('+').map_or((rest, None), |(a, b)| (a, Some(b)));
        let (patch, before) = rest.split_once('-').map_or((rest, None), |(a, b)| (a, Some(b)));
        let numbers = [major, minor, number("Patch", patch)?];
        let before: Vec<String> =
            before.into_iter().flat_map(|text| text.split('.')).map(str::to_owned).collect();
        before.iter().try_for_each(|part| identifier(part))?;
        for part in build.into_iter().flat_map(|text| text.split('.')) {
            match part {
                "" => return Err("Build meta data is empty".to_owned()),
                part if !is_word(part) => return Err(invalid("build meta data", part)),
                _ => {}
            }
        }
        Ok(Self { numbers, before })
    }

    /// Parses a version after adding what it lacks.
    fn parse_short(text: &str) -> std::result::Result<Self, String> {
        let text = text.strip_prefix('v').unwrap_or(text);
        let mut parts: Vec<String> = text.splitn(3, '.').map(without_zeros).collect();
        if parts.len() < 3 && parts.last().is_some_and(|part| part.contains(['+', '-'])) {
            return Err("short version cannot contain PreRelease/Build meta data".to_owned());
        }
        parts.resize(3, "0".to_owned());
        Self::parse(&parts.join("."))
    }
}

/// Removes leading zeros before a digit.
fn without_zeros(part: &str) -> String {
    let stripped = part.trim_start_matches('0');
    match part.len() {
        0 | 1 => part.to_owned(),
        _ if stripped.starts_with(|c: char| c.is_ascii_digit()) => stripped.to_owned(),
        _ => format!("0{stripped}"),
    }
}

/// Parses one of the numbers of a version.
fn number(name: &str, text: &str) -> std::result::Result<u64, String> {
    if !text.chars().all(|c| c.is_ascii_digit()) {
        return Err(invalid(&format!("{} number", name.to_lowercase()), text));
    }
    if text.len() > 1 && text.starts_with('0') {
        let text = quoted(text);
        return Err(format!("{name} number must not contain leading zeroes {text}"));
    }
    unsigned(text)
}

/// Parses digits. The error is the message of Go.
fn unsigned(text: &str) -> std::result::Result<u64, String> {
    let why = if text.is_empty() { "invalid syntax" } else { "value out of range" };
    text.parse().map_err(|_| format!("strconv.ParseUint: parsing {}: {why}", quoted(text)))
}

/// Checks an identifier of a pre-release.
fn identifier(text: &str) -> std::result::Result<(), String> {
    match text {
        "" => Err("Prerelease is empty".to_owned()),
        text if is_digits(text) && text.len() > 1 && text.starts_with('0') => Err(format!(
            "Numeric PreRelease version must not contain leading zeroes {}",
            quoted(text)
        )),
        text if is_digits(text) => unsigned(text).map(drop),
        text if is_word(text) => Ok(()),
        text => Err(invalid("prerelease", text)),
    }
}

fn invalid(what: &str, text: &str) -> String {
    format!("Invalid character(s) found in {what} {}", quoted(text))
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
fn parse(arguments: &[CowVal<'_, '_>]) -> Result<std::result::Result<Semver, String>> {
    let text = string(arguments, 0)?;
    let completes = arguments.len() > 1 && matches!(argument(arguments, 1)?, Cel::Bool(true));
    Ok(if completes { Semver::parse_short(&text) } else { Semver::parse(&text) })
}

/// Declares the type and its functions.
pub(super) fn declare(env: &mut Env) -> std::result::Result<(), DeclarationError> {
    env.add_type(Semver::ty())?;
    let parsed: cel::common::functions::Function = |arguments| {
        let version = parse(&arguments)?;
        give(version.map_err(|why| ExecutionError::function_error("semver", why))?)
    };
    env.add_overload("semver", "string_to_semver", vec![STRING_TYPE], parsed)?;
    let two = || vec![STRING_TYPE, BOOL_TYPE];
    env.add_overload("semver", "string_bool_to_semver", two(), parsed)?;
    let is_version: cel::common::functions::Function = |arguments| give(parse(&arguments)?.is_ok());
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
    // Go converts large numbers to negative ones.
    Ok(Semver::of(arguments, 0)?.numbers[index].cast_signed())
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
    #[case("semver('18446744073709551615.0.0').major() == -1")]
    fn versions_are_compared(#[case] text: &str) {
        let program = env().compile(text).expect("an expression");
        assert_eq!(program.execute(&Context::with_env(env())), Ok(Cel::Bool(true)));
    }

    /// kube-apiserver 1.36.2 reported these mistakes.
    #[rstest]
    #[case("semver('')", "Version string empty")]
    #[case("semver('', true)", "strconv.ParseUint: parsing \"\": invalid syntax")]
    #[case("semver('v1.2.3')", "Invalid character(s) found in major number \"v1\"")]
    #[case("semver('V1.2.3', true)", "Invalid character(s) found in major number \"0V1\"")]
    #[case("semver('1.2')", "No Major.Minor.Patch elements found")]
    #[case("semver('1.2.3.4', true)", "Invalid character(s) found in patch number \"3.4\"")]
    #[case("semver('1.02.3')", "Minor number must not contain leading zeroes \"02\"")]
    #[case(
        "semver('1.2.3-01')",
        "Numeric PreRelease version must not contain leading zeroes \"01\""
    )]
    #[case("semver('1.2.3-a..b')", "Prerelease is empty")]
    #[case("semver('1.2.3+')", "Build meta data is empty")]
    #[case("semver('1.2.3-a_b')", "Invalid character(s) found in prerelease \"a_b\"")]
    #[case("semver('1.2.3+a+b')", "Invalid character(s) found in build meta data \"a+b\"")]
    #[case("semver('1.2-alpha', true)", "short version cannot contain PreRelease/Build meta data")]
    #[case(
        "semver('18446744073709551616.0.0')",
        "strconv.ParseUint: parsing \"18446744073709551616\": value out of range"
    )]
    fn mistakes_have_the_words_of_kubernetes(#[case] text: &str, #[case] expected: &str) {
        let program = env().compile(text).expect("an expression");
        let error = program.execute(&Context::with_env(env())).unwrap_err().to_string();
        assert!(error.ends_with(&format!(": {expected}")), "{error}");
    }
}
