//! Resource quantities: `500m`, `1Gi`, `1e3`.
//!
//! Each suffix family has one canonical form: no fraction, and the largest suffix that leaves an
//! integer.

use std::cmp::Ordering;

/// The syntax of a quantity, for error messages.
pub const PATTERN: &str = r"^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$";

/// The number of fractional digits that are kept (nano). More precise amounts are rounded up.
const SCALE: u32 = 9;
/// The amount 1, in the unit of [`nanos`].
pub const UNIT: i128 = 10_i128.pow(SCALE);

const DECIMAL: [(&str, i32); 10] = [
    ("n", -9),
    ("u", -6),
    ("m", -3),
    ("", 0),
    ("k", 3),
    ("M", 6),
    ("G", 9),
    ("T", 12),
    ("P", 15),
    ("E", 18),
];
const BINARY: [(&str, u32); 6] =
    [("Ki", 10), ("Mi", 20), ("Gi", 30), ("Ti", 40), ("Pi", 50), ("Ei", 60)];

/// The largest exponent of an amount.
const MOST_PLACES: i32 = 29;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Family {
    Decimal,
    Binary,
    Exponent,
}

/// An amount, and the family of suffixes that shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quantity {
    nanos: i128,
    family: Family,
}

impl Quantity {
    /// Parses a quantity. Returns `None` for other texts.
    pub fn parse(text: &str) -> Option<Self> {
        parse(text).map(|(nanos, family)| Self { nanos, family })
    }

    /// Returns a whole number.
    pub fn whole(count: i64) -> Self {
        Self { nanos: i128::from(count) * UNIT, family: Family::Decimal }
    }

    /// Returns the amount in billionths.
    pub fn nanos(self) -> i128 {
        self.nanos
    }

    /// Returns this amount divided by another. Large amounts lose digits.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a quotient needs no more digits")]
    pub fn ratio(self, other: Self) -> f64 {
        self.nanos as f64 / other.nanos as f64
    }

    /// Returns the sum. It has the suffixes of the first amount that is not zero.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        let family = if self.nanos == 0 { other.family } else { self.family };
        Self { nanos: self.nanos.saturating_add(other.nanos), family }
    }

    /// Returns the difference. It has the suffixes of the first amount that is not zero.
    #[must_use]
    pub fn minus(self, other: Self) -> Self {
        self.plus(Self { nanos: other.nanos.saturating_neg(), ..other })
    }
}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.nanos.cmp(&other.nanos))
    }
}

impl std::fmt::Display for Quantity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&format(self.nanos, self.family))
    }
}

/// Returns the canonical form of a quantity. Returns `None` for other texts.
pub fn canonical(text: &str) -> Option<String> {
    let (nanos, family) = parse(text)?;
    Some(format(nanos, family))
}

fn format(nanos: i128, family: Family) -> String {
    match family {
        Family::Binary if nanos % UNIT == 0 && (nanos / UNIT).abs() >= 1024 => {
            let whole = nanos / UNIT;
            let fits = BINARY.iter().rev().find(|(_, shift)| whole % (1_i128 << shift) == 0);
            fits.map_or_else(
                || whole.to_string(),
                |(suffix, shift)| format!("{}{suffix}", whole >> shift),
            )
        }
        Family::Exponent => {
            let (mantissa, exponent) = reduce(nanos);
            if exponent == 0 { mantissa.to_string() } else { format!("{mantissa}e{exponent}") }
        }
        Family::Decimal | Family::Binary => {
            let (mantissa, exponent) = reduce(nanos);
            let suffix = DECIMAL
                .iter()
                .find(|(_, power)| *power == exponent)
                .map_or("", |(suffix, _)| *suffix);
            format!("{mantissa}{suffix}")
        }
    }
}

/// Parses a quantity into billionths. Returns `None` for other texts.
pub fn nanos(text: &str) -> Option<i128> {
    parse(text).map(|(nanos, _)| nanos)
}

/// Returns whether an amount is whole. Like kube-apiserver, this rounds up to thousandths and
/// counts them in 64 bits. An overflow matters only without a suffix.
pub fn is_whole(text: &str) -> bool {
    let Some(nanos) = nanos(text) else { return true };
    let rest = nanos.rem_euclid(UNIT / 1000);
    let thousandths = nanos.div_euclid(UNIT / 1000) + i128::from(rest != 0);
    match i64::try_from(thousandths) {
        Ok(thousandths) => thousandths % 1000 == 0,
        Err(_) if !text.ends_with(|c: char| c.is_ascii_digit()) => true,
        Err(_) => {
            let modulus = 1_i128 << 64;
            let low = thousandths.rem_euclid(modulus);
            let wrapped = if low >= modulus / 2 { low - modulus } else { low };
            wrapped % 1000 == 0
        }
    }
}

/// Compares two quantities. Returns `None` if one of them is invalid.
pub fn compare(left: &str, right: &str) -> Option<Ordering> {
    Some(parse(left)?.0.cmp(&parse(right)?.0))
}

/// Splits nanos into a mantissa and the largest power of a thousand that divides the amount.
fn reduce(nanos: i128) -> (i128, i32) {
    let (mut mantissa, mut exponent) = (nanos, -9);
    if nanos == 0 {
        return (0, 0);
    }
    while mantissa % 1000 == 0 && exponent < 18 {
        mantissa /= 1000;
        exponent += 3;
    }
    (mantissa, exponent)
}

fn parse(text: &str) -> Option<(i128, Family)> {
    let (negative, unsigned) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let split = unsigned.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(unsigned.len());
    let (digits, suffix) = unsigned.split_at(split);
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    // An empty text and a second decimal point are invalid.
    let mantissa: i128 = format!("{whole}{fraction}").parse().ok()?;
    let places = u32::try_from(fraction.len()).ok()?;
    let (multiplier, power, family) =
        factor(suffix).filter(|it| (-MOST_PLACES..=MOST_PLACES).contains(&it.1))?;
    let power = power + i32::try_from(SCALE).ok()? - i32::try_from(places).ok()?;
    let scaled = mantissa.checked_mul(multiplier)?;
    let nanos = if power >= 0 {
        scaled.checked_mul(10_i128.checked_pow(power.unsigned_abs())?)?
    } else {
        let divisor = 10_i128.checked_pow(power.unsigned_abs())?;
        // Amounts below one nano are rounded away from zero, so that a request never gets less than
        // it asks for.
        scaled.div_euclid(divisor) + i128::from(scaled % divisor != 0)
    };
    // kube-apiserver limits such amounts to 64 bits.
    let most = if family == Family::Binary { i128::from(i64::MAX) * UNIT } else { i128::MAX };
    let nanos = nanos.min(most);
    Some((if negative { -nanos } else { nanos }, family))
}

/// Returns the meaning of a suffix: a factor, a power of ten, and its family.
pub(super) fn factor(suffix: &str) -> Option<(i128, i32, Family)> {
    if let Some((_, power)) = DECIMAL.iter().find(|(known, _)| *known == suffix) {
        return Some((1, *power, Family::Decimal));
    }
    if let Some((_, shift)) = BINARY.iter().find(|(known, _)| *known == suffix) {
        return Some((1_i128 << shift, 0, Family::Binary));
    }
    let exponent = suffix.strip_prefix(['e', 'E'])?;
    Some((1, exponent.parse().ok()?, Family::Exponent))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("0.5", Some("500m"))]
    #[case("1024Mi", Some("1Gi"))]
    #[case("1000m", Some("1"))]
    #[case("1500Mi", Some("1500Mi"))]
    #[case("100m", Some("100m"))]
    #[case("1e3", Some("1e3"))]
    #[case("1000", Some("1k"))]
    #[case("0", Some("0"))]
    #[case("-1", Some("-1"))]
    #[case(".5", Some("500m"))]
    #[case("100Ki", Some("100Ki"))]
    #[case("1.5Gi", Some("1536Mi"))]
    #[case("1.5Ki", Some("1536"))]
    #[case("0.5Ki", Some("512"))]
    #[case("0.9765625Ki", Some("1k"))]
    #[case("1.0001Ki", Some("1024102400u"))]
    #[case("1000E", Some("1000E"))]
    #[case("1e20", Some("100e18"))]
    #[case("9Ei", Some("9223372036854775807"))]
    #[case("+1", Some("1"))]
    #[case("0.0000000001", Some("1n"))]
    #[case("0.0000000010", Some("1n"))]
    #[case("-1.0000000001", Some("-1000000001n"))]
    #[case(".", None)]
    #[case("+", None)]
    #[case("Ki", None)]
    #[case("abc", None)]
    #[case("", None)]
    #[case("1..2", None)]
    #[case("1Zi", None)]
    #[case("1 Gi", None)]
    fn each_amount_has_one_canonical_form(#[case] text: &str, #[case] expected: Option<&str>) {
        assert_eq!(canonical(text).as_deref(), expected);
    }

    #[rstest]
    #[case("1Gi", "512Mi", "1536Mi", "512Mi")]
    #[case("0", "1Gi", "1Gi", "-1Gi")]
    #[case("500m", "1", "1500m", "-500m")]
    #[case("1", "1Ki", "1025", "-1023")]
    fn sums_have_the_suffixes_of_the_first_amount(
        #[case] left: &str,
        #[case] right: &str,
        #[case] sum: &str,
        #[case] difference: &str,
    ) {
        let quantity = |text| Quantity::parse(text).expect("a quantity");
        let (left, right) = (quantity(left), quantity(right));
        let found = (left.plus(right).to_string(), left.minus(right).to_string());
        assert_eq!(found, (sum.to_owned(), difference.to_owned()));
        assert!(left.minus(right) < left.plus(right));
    }

    #[rstest]
    #[case("1", true)]
    #[case("1500m", false)]
    #[case("999999999n", true)]
    #[case("1n", false)]
    #[case("9223372036854775", true)]
    #[case("9223372036854776", false)]
    #[case("9223372036854775807", true)]
    #[case("10P", true)]
    #[case("12345678901234567890123", false)]
    fn whole_amounts_are_counted_in_64_bits(#[case] text: &str, #[case] expected: bool) {
        assert_eq!(is_whole(text), expected);
    }

    #[test]
    fn equal_amounts_in_different_units_compare_equal() {
        assert_eq!(compare("1Gi", "1024Mi"), Some(Ordering::Equal));
        assert_eq!(compare("500m", "1"), Some(Ordering::Less));
        assert_eq!(compare("x", "1"), None);
    }
}
