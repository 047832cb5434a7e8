//! The digits of numbers, as Go writes them.

pub(super) fn with_thousands(digits: &str) -> String {
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
pub(super) fn raised(exponent: &str) -> String {
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
pub(in super::super) fn shortest(number: f64) -> String {
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
