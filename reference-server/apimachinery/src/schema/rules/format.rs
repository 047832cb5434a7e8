//! The function `'%s has %d items'.format([name, size])`, as version 2 of the library of strings
//! of cel-go defines it. The functions of the crate `cel` follow a later version.

use std::fmt::Write as _;

use cel::common::types::{LIST_TYPE, STRING_TYPE};
use cel::objects::{Key, Map};
use cel::{DeclarationError, Env, ExecutionError, Value as Cel};
use chrono::{DateTime, FixedOffset, SecondsFormat};

use super::library::{give, list, string};
use super::types::Type;

/// The name of `format` in evaluated expressions.
pub(super) const FORMAT: &str = "@format";

/// The digits after the point if a clause does not say.
const PRECISION: usize = 6;
/// The maximum number of digits after the point.
const MAX_PRECISION: usize = 1_000;

/// Declares the function.
pub(super) fn declare(env: &mut Env) -> Result<(), DeclarationError> {
    env.add_member_overload(FORMAT, FORMAT, STRING_TYPE, vec![LIST_TYPE], |arguments| {
        let (text, items) = (string(&arguments, 0)?, list(&arguments, 1)?);
        let written = formatted(&text, &items);
        give(written.map_err(|why| ExecutionError::function_error("format", why))?)
    })
}

/// Checks a constant text against the types of its arguments.
pub(super) fn check(text: &str, types: &[Type<'_>]) -> Result<(), String> {
    let pieces = pieces(text)?;
    let clauses: Vec<Clause> = pieces.iter().filter_map(|piece| piece.1).collect();
    for (index, clause) in clauses.iter().enumerate() {
        let ty = types.get(index).ok_or_else(|| format!("index {index} out of range"))?;
        if !clause.accepts(ty) {
            return Err(clause.mismatch(&ty.to_string()));
        }
    }
    if types.len() > clauses.len() {
        return Err(format!(
            "too many arguments supplied to string.format (expected {}, got {})",
            clauses.len(),
            types.len()
        ));
    }
    Ok(())
}

fn formatted(text: &str, items: &[Cel]) -> Result<String, String> {
    let mut written = String::new();
    let mut items = items.iter().enumerate();
    let mut count = 0;
    for (before, clause) in pieces(text)? {
        written.push_str(&before);
        let Some(clause) = clause else { continue };
        let (index, item) = items.next().ok_or_else(|| format!("index {count} out of range"))?;
        count = index + 1;
        written.push_str(&clause.write(item)?);
    }
    Ok(written)
}

/// How to write an argument.
#[derive(Clone, Copy, Debug)]
struct Clause {
    letter: char,
    precision: usize,
}

/// Splits a text into parts, each with the clause that follows it.
fn pieces(text: &str) -> Result<Vec<(String, Option<Clause>)>, String> {
    let mut pieces = Vec::new();
    let mut before = String::new();
    let mut rest = text;
    while let Some((plain, after)) = rest.split_once('%') {
        before.push_str(plain);
        if let Some(after) = after.strip_prefix('%') {
            before.push('%');
            rest = after;
            continue;
        }
        let (clause, after) = clause(after)?;
        pieces.push((std::mem::take(&mut before), Some(clause)));
        rest = after;
    }
    before.push_str(rest);
    pieces.push((before, None));
    Ok(pieces)
}

/// Parses what follows a percent sign.
fn clause(text: &str) -> Result<(Clause, &str), String> {
    let failed = |why: &str| format!("could not parse formatting clause: {why}");
    let (precision, rest) = match text.strip_prefix('.') {
        None => (PRECISION, text),
        Some(digits) => {
            let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
            let precision = digits[..end].parse().ok().filter(|digits| *digits <= MAX_PRECISION);
            let why = "error while parsing precision";
            (precision.ok_or_else(|| failed(why))?, &digits[end..])
        }
    };
    let mut chars = rest.chars();
    match chars.next() {
        None => Err("unexpected end of string".to_owned()),
        Some(letter) if "sdfebxXo".contains(letter) => {
            Ok((Clause { letter, precision }, chars.as_str()))
        }
        Some(letter) => Err(failed(&format!("unrecognized formatting clause \"{letter}\""))),
    }
}

impl Clause {
    /// Reports whether values of a type can be written.
    fn accepts(self, ty: &Type<'_>) -> bool {
        match (self.letter, ty) {
            (_, Type::Dyn | Type::Any) => true,
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
            ('s', value) => literal(value),
            ('d', Cel::Int(_) | Cel::UInt(_)) => literal(value),
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
        let written = written.ok_or_else(|| self.mismatch(&value.type_of().to_string()))?;
        Ok(if self.letter == 'X' { written.to_uppercase() } else { written })
    }

    /// Writes a number with its thousands, or with its exponent. Exponents ignore the precision.
    fn real(self, number: f64) -> String {
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
        let written = format!("{number:.0$}", self.precision);
        let (whole, fraction) = written.split_once('.').unwrap_or((&written, ""));
        let point = if fraction.is_empty() { "" } else { "." };
        format!("{}{point}{fraction}", with_thousands(whole))
    }
}

fn with_thousands(digits: &str) -> String {
    let (sign, digits) = digits.strip_prefix('-').map_or(("", digits), |rest| ("-", rest));
    let mut written = sign.to_owned();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            written.push(',');
        }
        written.push(digit);
    }
    written
}

/// Returns an exponent of at least two digits as superscript.
fn raised(exponent: &str) -> String {
    let (sign, digits) = exponent.strip_prefix('-').map_or(("", exponent), |rest| ("⁻", rest));
    let raised = format!("{digits:0>2}");
    let digits = raised.chars().map(|digit| match digit {
        '0' => '⁰',
        '1' => '¹',
        '2' => '²',
        '3' => '³',
        '4' => '⁴',
        '5' => '⁵',
        '6' => '⁶',
        '7' => '⁷',
        '8' => '⁸',
        _ => '⁹',
    });
    sign.chars().chain(digits).collect()
}

/// Writes a number with as few digits as possible, and large and small ones with an exponent.
pub(super) fn shortest(number: f64) -> String {
    if number.is_infinite() {
        return if number > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    let written = format!("{number:e}");
    let Some((digits, exponent)) = written.split_once('e') else { return written };
    match exponent.parse::<i32>() {
        Ok(-4..=5) | Err(_) => number.to_string(),
        Ok(exponent) => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{digits}e{sign}{:02}", exponent.unsigned_abs())
        }
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

/// Writes a value that is no text. `None` means that it has no form.
fn literal(value: &Cel) -> Option<String> {
    Some(match value {
        Cel::Null => "null".to_owned(),
        Cel::Bool(value) => value.to_string(),
        Cel::Int(number) => number.to_string(),
        Cel::UInt(number) => number.to_string(),
        Cel::List(items) => {
            let items: Option<Vec<String>> = items.iter().map(nested).collect();
            format!("[{}]", items?.join(", "))
        }
        Cel::Map(map) => entries(map)?,
        Cel::Duration(duration) => {
            let nanoseconds = duration.num_nanoseconds()?;
            #[expect(clippy::cast_precision_loss, reason = "Go prints seconds as a double")]
            let seconds = nanoseconds as f64 / 1e9;
            format!("{seconds}s")
        }
        Cel::Timestamp(time) => timestamp(time),
        _ => return None,
    })
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
fn nested(value: &Cel) -> Option<String> {
    match value {
        Cel::String(text) => Some(quoted(text)),
        Cel::Bytes(bytes) => Some(format!("b{}", quoted(std::str::from_utf8(bytes).ok()?))),
        Cel::Float(number) if number.is_nan() => Some("\"NaN\"".to_owned()),
        Cel::Float(number) if number.is_infinite() => Some(quoted(&shortest(*number))),
        Cel::Float(number) => Some(format!("{number:.PRECISION$}")),
        Cel::Duration(_) => literal(value).map(|text| format!("duration({})", quoted(&text))),
        Cel::Timestamp(_) => literal(value).map(|text| format!("timestamp({})", quoted(&text))),
        other => literal(other),
    }
}

fn entries(map: &Map) -> Option<String> {
    let key = |key: &Key| match key {
        Key::String(text) => quoted(text),
        other => other.to_string(),
    };
    let entries = map.map.iter().map(|(name, value)| Some((key(name), nested(value)?)));
    let mut entries: Vec<_> = entries.collect::<Option<_>>()?;
    entries.sort();
    let entries: Vec<String> =
        entries.into_iter().map(|(key, value)| format!("{key}:{value}")).collect();
    Some(format!("{{{}}}", entries.join(", ")))
}

/// Returns a text in quotes, with the escapes of Go.
pub(super) fn quoted(text: &str) -> String {
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
