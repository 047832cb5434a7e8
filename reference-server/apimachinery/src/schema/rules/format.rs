//! The function `'%s has %d items'.format([name, size])`, as version 2 of the library of strings
//! of cel-go defines it. The functions of the crate `cel` follow a later version.

mod numbers;

use std::fmt::Write as _;

use cel::common::types::{LIST_TYPE, STRING_TYPE};
use cel::objects::{Key, Map};
use cel::{DeclarationError, Env, ExecutionError, Value as Cel};
use chrono::{DateTime, FixedOffset, SecondsFormat};

pub(super) use self::numbers::shortest;
use self::numbers::{raised, with_thousands};
use super::library::{give, list, string};
use super::types::Type;

/// The name of `format` in evaluated expressions.
pub(super) const FORMAT: &str = "@format";

/// The digits after the point if a clause does not say.
const PRECISION: usize = 6;
/// Go keeps a precision in one byte. Without the other bits, zero is no precision.
const PRECISIONS: usize = 256;

/// Declares the function.
pub(super) fn declare(env: &mut Env) -> Result<(), DeclarationError> {
    env.add_member_overload(FORMAT, FORMAT, STRING_TYPE, vec![LIST_TYPE], |arguments| {
        let (text, items) = (string(&arguments, 0)?, list(&arguments, 1)?);
        let written = formatted(&text, &items);
        give(written.map_err(|why| ExecutionError::function_error("format", why))?)
    })
}

/// A mistake in a constant text, or in the part of an argument with this number.
pub(super) enum Mistake {
    Text(String),
    Item(u64, String),
}

/// Checks a constant text for a number of arguments. `accepts` returns the part of an argument
/// that a clause cannot write, and the name of its type.
pub(super) fn check(
    text: &str,
    count: usize,
    accepts: impl Fn(usize, Clause) -> Result<(), (u64, String)>,
) -> Result<(), Mistake> {
    let mut rest = text;
    let mut index = 0;
    while let Some(after) = next_clause(rest).1 {
        let (clause, after) = indexed(after, index, count).map_err(Mistake::Text)?;
        accepts(index, clause).map_err(|(id, name)| Mistake::Item(id, clause.mismatch(&name)))?;
        index += 1;
        rest = after;
    }
    if count > index {
        return Err(Mistake::Text(format!(
            "too many arguments supplied to string.format (expected {index}, got {count})"
        )));
    }
    Ok(())
}

fn formatted(text: &str, items: &[Cel]) -> Result<String, String> {
    let mut written = String::new();
    let mut rest = text;
    for index in 0.. {
        let (before, after) = next_clause(rest);
        written.push_str(&before);
        let Some(after) = after else { break };
        let (clause, after) = indexed(after, index, items.len())?;
        if let Some(item) = items.get(index) {
            written.push_str(&clause.write(item)?);
        }
        rest = after;
    }
    Ok(written)
}

/// Parses the clause with this index.
fn indexed(text: &str, index: usize, count: usize) -> Result<(Clause, &str), String> {
    match index < count {
        _ if text.is_empty() => Err("unexpected end of string".to_owned()),
        true => clause(text),
        false => Err(format!("index {index} out of range")),
    }
}

/// How to write an argument.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clause {
    letter: char,
    precision: usize,
}

/// Returns the text before the next clause, and the text after its percent sign.
fn next_clause(text: &str) -> (String, Option<&str>) {
    let mut before = String::new();
    let mut rest = text;
    while let Some((plain, after)) = rest.split_once('%') {
        before.push_str(plain);
        match after.strip_prefix('%') {
            Some(after) => {
                before.push('%');
                rest = after;
            }
            None => return (before, Some(after)),
        }
    }
    before.push_str(rest);
    (before, None)
}

/// Parses what follows a percent sign.
fn clause(text: &str) -> Result<(Clause, &str), String> {
    let failed = |why: &str| format!("could not parse formatting clause: {why}");
    let (precision, rest) = match text.strip_prefix('.') {
        None => (PRECISION, text),
        Some(digits) => precision(digits)
            .map_err(|why| failed(&format!("error while parsing precision: {why}")))?,
    };
    let mut chars = rest.chars();
    match chars.next() {
        None => Err("unexpected end of string".to_owned()),
        Some(letter) if "sdfebxXo".contains(letter) => {
            Ok((Clause { letter, precision }, chars.as_str()))
        }
        Some(letter) => {
            // Go reads a byte here.
            let byte = letter.to_string().bytes().next().map_or(letter, char::from);
            Err(failed(&format!("unrecognized formatting clause \"{byte}\"")))
        }
    }
}

/// Parses the digits of a precision.
fn precision(text: &str) -> Result<(usize, &str), String> {
    let end = text.find(|c: char| !c.is_ascii_digit());
    let (digits, rest) = text.split_at(end.ok_or("could not find end of precision specifier")?);
    let failed = |why: &str| {
        format!(
            "error while converting precision to integer: strconv.Atoi: parsing {}: {why}",
            quoted(digits)
        )
    };
    if digits.is_empty() {
        return Err(failed("invalid syntax"));
    }
    let precision = digits.parse::<i64>().map_err(|_| failed("value out of range"))?;
    Ok((usize::try_from(precision).unwrap_or(usize::MAX), rest))
}

impl Clause {
    /// Reports whether the clause writes the items of lists and maps.
    pub(super) fn writes_parts(self) -> bool {
        self.letter == 's'
    }

    /// Reports whether values of a type can be written.
    pub(super) fn accepts(self, ty: &Type<'_>) -> bool {
        match (self.letter, ty) {
            (_, Type::Dyn | Type::Error | Type::Variable(_)) => true,
            ('s', ty) => {
                !matches!(ty, Type::Object(_) | Type::Optional(_) | Type::Kind(_) | Type::Device)
            }
            ('d' | 'o', ty) => matches!(ty, Type::Int | Type::Uint),
            ('b', ty) => matches!(ty, Type::Int | Type::Uint | Type::Bool),
            ('x' | 'X', ty) => {
                matches!(ty, Type::Int | Type::Uint | Type::String | Type::Bytes)
            }
            (_, ty) => matches!(ty, Type::Double | Type::String),
        }
    }

    fn mismatch(self, given: &str) -> String {
        let rule = match self.letter {
            's' => {
                "string clause can only be used on strings, bools, bytes, ints, doubles, maps, \
                 lists, types, durations, and timestamps"
            }
            'd' => "decimal clause can only be used on integers",
            'f' => "fixed-point clause can only be used on doubles",
            'e' => "scientific clause can only be used on doubles",
            'b' => "only integers and bools can be formatted as binary",
            'o' => "octal clause can only be used on integers",
            _ => "only integers, byte buffers, and strings can be formatted as hex",
        };
        format!("error during formatting: {rule}, was given {given}")
    }

    fn write(self, value: &Cel) -> Result<String, String> {
        let signed = |number: &i64, digits: String| {
            if *number < 0 { format!("-{digits}") } else { digits }
        };
        let written = match (self.letter, value) {
            ('s', Cel::Float(number)) => Some(shortest(*number)),
            ('s', Cel::String(text)) => Some(text.to_string()),
            ('s', Cel::Bytes(bytes)) => String::from_utf8(bytes.to_vec()).ok(),
            ('s', value) => literal(value).transpose()?,
            ('d', Cel::Int(_) | Cel::UInt(_)) => literal(value).transpose()?,
            ('f' | 'e', Cel::Float(number)) => Some(self.real(*number)),
            ('f' | 'e', Cel::String(text)) => special(text).map(|number| self.real(number)),
            ('b', Cel::Bool(value)) => Some(u8::from(*value).to_string()),
            ('b', Cel::Int(number)) => Some(signed(number, format!("{:b}", number.unsigned_abs()))),
            ('b', Cel::UInt(number)) => Some(format!("{number:b}")),
            ('o', Cel::Int(number)) => Some(signed(number, format!("{:o}", number.unsigned_abs()))),
            ('o', Cel::UInt(number)) => Some(format!("{number:o}")),
            ('x' | 'X', Cel::Int(number)) => {
                Some(signed(number, format!("{:x}", number.unsigned_abs())))
            }
            ('x' | 'X', Cel::UInt(number)) => Some(format!("{number:x}")),
            ('x' | 'X', Cel::String(text)) => Some(hex(text.as_bytes())),
            ('x' | 'X', Cel::Bytes(bytes)) => Some(hex(bytes)),
            _ => None,
        };
        let written = written.ok_or_else(|| self.mismatch(&type_name(value)))?;
        Ok(if self.letter == 'X' { written.to_uppercase() } else { written })
    }

    /// Writes a number with its thousands, or with its exponent. For exponents, the precision is
    /// the minimum width.
    fn real(self, number: f64) -> String {
        let written = self.unpadded(number);
        let width = if self.letter == 'e' { self.precision % PRECISIONS } else { 0 };
        format!("{written:>width$}")
    }

    fn unpadded(self, number: f64) -> String {
        if number.is_nan() {
            return "NaN".to_owned();
        }
        if number.is_infinite() {
            return if number > 0.0 { "∞" } else { "-∞" }.to_owned();
        }
        if self.letter == 'e' {
            let written = format!("{number:.PRECISION$e}");
            let (digits, exponent) = written.split_once('e').unwrap_or((&written, "0"));
            return format!("{digits}×10{}", raised(exponent));
        }
        let written = match self.precision {
            0..PRECISIONS => format!("{number:.0$}", self.precision),
            precision if precision.is_multiple_of(PRECISIONS) => number.to_string(),
            precision => format!("{number:.0$}", precision % PRECISIONS),
        };
        let (whole, fraction) = written.split_once('.').unwrap_or((&written, ""));
        let point = if fraction.is_empty() { "" } else { "." };
        format!("{}{point}{fraction}", with_thousands(whole))
    }
}

fn special(text: &str) -> Option<f64> {
    match text {
        "NaN" => Some(f64::NAN),
        "Infinity" => Some(f64::INFINITY),
        "-Infinity" => Some(f64::NEG_INFINITY),
        _ => None,
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut written, byte| {
        // Writing to a string cannot fail.
        let _ = write!(written, "{byte:02x}");
        written
    })
}

/// Writes a value that is no text. `None` means that it has no form. The error names an item that
/// has no form.
fn literal(value: &Cel) -> Option<Result<String, String>> {
    Some(Ok(match value {
        Cel::Null => "null".to_owned(),
        Cel::Bool(value) => value.to_string(),
        Cel::Int(number) => number.to_string(),
        Cel::UInt(number) => number.to_string(),
        Cel::List(items) => {
            let items: Result<Vec<String>, String> = items.iter().map(nested).collect();
            return Some(items.map(|items| format!("[{}]", items.join(", "))));
        }
        Cel::Map(map) => return Some(entries(map)),
        Cel::Duration(duration) => seconds(duration.num_nanoseconds()?),
        Cel::Timestamp(time) => timestamp(time),
        _ => return None,
    }))
}

/// Writes nanoseconds as seconds.
pub(super) fn seconds(nanoseconds: i64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "Go prints seconds as a double")]
    let seconds = nanoseconds as f64 / 1e9;
    format!("{seconds}s")
}

/// Returns the name of the type of a value, as kube-apiserver shows it.
pub(super) fn type_name(value: &Cel) -> String {
    match value {
        Cel::Float(_) => "double".to_owned(),
        Cel::Null => "null_type".to_owned(),
        Cel::Timestamp(_) => "google.protobuf.Timestamp".to_owned(),
        Cel::Duration(_) => "google.protobuf.Duration".to_owned(),
        Cel::Opaque(value) => value.runtime_type_name().to_owned(),
        other => other.type_of().to_string(),
    }
}

/// Writes a time with its own offset, and without zeros at the end of the fraction.
pub(super) fn timestamp(time: &DateTime<FixedOffset>) -> String {
    let text = time.to_rfc3339_opts(SecondsFormat::Nanos, true);
    let Some((start, rest)) = text.split_once('.') else { return text };
    let (digits, offset) = rest.split_at_checked(9).unwrap_or((rest, ""));
    let digits = digits.trim_end_matches('0');
    let point = if digits.is_empty() { "" } else { "." };
    format!("{start}{point}{digits}{offset}")
}

/// Writes an item of a list or map.
fn nested(value: &Cel) -> Result<String, String> {
    let unknown = || {
        let name = type_name(value);
        format!("error during formatting: no formatting function for {name}")
    };
    Ok(match value {
        Cel::String(text) => quoted(text),
        Cel::Bytes(bytes) => {
            format!("b{}", quoted(std::str::from_utf8(bytes).map_err(|_| unknown())?))
        }
        Cel::Float(number) if number.is_nan() => "\"NaN\"".to_owned(),
        Cel::Float(number) if number.is_infinite() => quoted(&shortest(*number)),
        Cel::Float(number) => format!("{number:.PRECISION$}"),
        other => {
            let text = literal(other).ok_or_else(unknown)??;
            match other {
                Cel::Duration(_) => format!("duration({})", quoted(&text)),
                Cel::Timestamp(_) => format!("timestamp({})", quoted(&text)),
                _ => text,
            }
        }
    })
}

fn entries(map: &Map) -> Result<String, String> {
    let key = |key: &Key| match key {
        Key::String(text) => quoted(text),
        other => other.to_string(),
    };
    let entries = map.map.iter().map(|(name, value)| Ok((key(name), nested(value)?)));
    let mut entries: Vec<_> = entries.collect::<Result<_, String>>()?;
    entries.sort();
    let entries: Vec<String> =
        entries.into_iter().map(|(key, value)| format!("{key}:{value}")).collect();
    Ok(format!("{{{}}}", entries.join(", ")))
}

/// Returns a text in quotes, with the escapes of Go.
pub(crate) fn quoted(text: &str) -> String {
    let mut written = "\"".to_owned();
    for character in text.chars() {
        match character {
            '"' => written.push_str("\\\""),
            '\\' => written.push_str("\\\\"),
            '\n' => written.push_str("\\n"),
            '\r' => written.push_str("\\r"),
            '\t' => written.push_str("\\t"),
            // Writing to a string cannot fail.
            control if control.is_ascii_control() => {
                let _ = write!(written, "\\x{:02x}", u32::from(control));
            }
            other => written.push(other),
        }
    }
    written.push('"');
    written
}

#[cfg(test)]
mod tests;
