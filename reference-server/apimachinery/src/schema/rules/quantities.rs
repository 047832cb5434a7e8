//! Quantities in expressions: `quantity('1Gi').isGreaterThan(quantity('500Mi'))`.
//!
//! kube-apiserver keeps an amount as an integer and a power of ten if the text is short enough, and
//! otherwise as a decimal number. Only the first kind can be read as an integer.

use std::cmp::Ordering;

use cel::common::types::{INT_TYPE, STRING_TYPE};
use cel::common::value::CowVal;
use cel::{Env, ExecutionError, Value as Cel};

use super::super::quantity::{self, Family, factor};
use super::kinds::{Declared, kinds};
use super::library::{Result, argument, give, string};

const NOT_NUMERIC: &str = "unable to parse numeric part of quantity";
const UNKNOWN_SUFFIX: &str = "unable to parse quantity's suffix";
/// The power of ten of the smallest amount.
const NANO: i32 = -9;
/// The maximum number of digits of a small amount.
const DIGITS: usize = 18;
/// The maximum number of digits of a small amount with a binary suffix.
const BINARY_DIGITS: usize = 14;

/// The amount `value * 10^power`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Quantity {
    value: i128,
    power: i32,
    is_small: bool,
}

kinds! {
    Quantity "kubernetes.Quantity"
}

impl Quantity {
    const fn small(value: i64, power: i32) -> Self {
        Self { value: value as i128, power, is_small: true }
    }

    /// Parses a quantity. The error is the message of kube-apiserver.
    pub(super) fn parse(text: &str) -> std::result::Result<Self, String> {
        let syntax =
            || format!("quantities must match the regular expression '{}'", quantity::PATTERN);
        let is_digit = |c: char| c.is_ascii_digit();
        let split = |text| str::split_at(text, text.find(|c| !is_digit(c)).unwrap_or(text.len()));
        let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
        let (whole, rest) = split(unsigned.trim_start_matches('0'));
        let (fraction, suffix) = rest.strip_prefix('.').map_or(("", rest), split);
        let tail = suffix.trim_start_matches(|c| "eEinumkKMGTP".contains(c));
        let tail = tail.strip_prefix(['+', '-']).unwrap_or(tail);
        if text.is_empty() || !tail.chars().all(is_digit) {
            return Err(syntax());
        }
        let (multiplier, power, family) = factor(suffix).ok_or(UNKNOWN_SUFFIX)?;
        let power = power.saturating_sub(i32::try_from(fraction.len()).unwrap_or(i32::MAX));
        let digits = format!("0{whole}{fraction}");
        let count = whole.len().max(1) + fraction.len();
        let is_short = match family {
            Family::Binary => {
                let taken = multiplier.ilog2() as usize * 3 / 10;
                fraction.is_empty() && count + taken <= BINARY_DIGITS
            }
            Family::Decimal | Family::Exponent => count <= DIGITS,
        };
        let sign = if text.starts_with('-') { -1 } else { 1 };
        if is_short && power >= NANO {
            let value = digits.parse::<i64>().map_err(|_| NOT_NUMERIC)?;
            let product = i64::try_from(multiplier).ok().and_then(|it| value.checked_mul(it));
            if let Some(product) = product {
                return Ok(Self::small(product * sign, power));
            }
        }
        let value = digits.parse::<i128>().map_err(|_| NOT_NUMERIC)?;
        let nanos = scaled_up(value.saturating_mul(multiplier), power.saturating_sub(NANO));
        let most = i128::from(i64::MAX);
        Ok(if family == Family::Binary && nanos > most.saturating_mul(quantity::UNIT) {
            Self { value: most * i128::from(sign), power: 0, is_small: false }
        } else {
            Self { value: nanos * i128::from(sign), power: NANO, is_small: false }
        })
    }

    fn integer(self) -> Option<i64> {
        let power = u32::try_from(self.power).ok().filter(|_| self.is_small)?;
        i64::try_from(self.value).ok()?.checked_mul(10_i64.checked_pow(power)?)
    }

    fn approximate(self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "it is approximate by its name")]
        let value = self.value as f64;
        let power = format!("1e{}", self.power).parse().unwrap_or(f64::INFINITY);
        if self.power == 0 { value } else { value * power }
    }

    /// Returns the value for a smaller power of ten.
    fn value_for(self, power: i32) -> i128 {
        let shift = self.power.saturating_sub(power).unsigned_abs();
        self.value.saturating_mul(10_i128.checked_pow(shift).unwrap_or(i128::MAX))
    }

    fn plus(self, other: Self) -> Self {
        self.small_sum(other).unwrap_or_else(|| self.large_sum(other))
    }

    fn minus(self, other: Self) -> Self {
        // The smallest integer has no negative, and kube-apiserver does not notice.
        let negated = i64::try_from(other.value).map(i64::wrapping_neg);
        let small =
            negated.ok().and_then(|value| self.small_sum(Self { value: value.into(), ..other }));
        let negated = other.value.saturating_neg();
        small.unwrap_or_else(|| self.large_sum(Self { value: negated, ..other }))
    }

    fn small_sum(self, other: Self) -> Option<Self> {
        match (self.is_small && other.is_small, self.value, other.value) {
            (false, _, _) => None,
            (true, _, 0) => Some(self),
            (true, 0, _) => Some(other),
            _ => {
                let power = self.power.min(other.power);
                let value = |it: Self| i64::try_from(it.value_for(power)).ok();
                Some(Self::small(value(self)?.checked_add(value(other)?)?, power))
            }
        }
    }

    fn large_sum(self, other: Self) -> Self {
        let power = self.power.min(other.power);
        let value = self.value_for(power).saturating_add(other.value_for(power));
        Self { value, power, is_small: false }
    }
}

fn scaled_up(value: i128, power: i32) -> i128 {
    let factor = 10_i128.checked_pow(power.unsigned_abs()).unwrap_or(i128::MAX);
    if power >= 0 {
        value.saturating_mul(factor)
    } else {
        value / factor + i128::from(value % factor != 0)
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Quantity {}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        let power = self.power.min(other.power);
        self.value_for(power).cmp(&other.value_for(power))
    }
}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Declares the type and its functions.
pub(super) fn declare(env: &mut Env) -> Declared {
    env.add_type(Quantity::ty())?;
    env.add_overload("quantity", "string_to_quantity", vec![STRING_TYPE], |arguments| {
        let parsed = Quantity::parse(&string(&arguments, 0)?);
        give(parsed.map_err(|why| ExecutionError::function_error("quantity", why))?)
    })?;
    env.add_overload("isQuantity", "is_quantity", vec![STRING_TYPE], |arguments| {
        give(Quantity::parse(&string(&arguments, 0)?).is_ok())
    })?;
    // Unlike the other functions, this is no method in kube-apiserver.
    env.add_overload("sign", "quantity_sign", vec![Quantity::ty()], |arguments| {
        give(i64::try_from(Quantity::of(&arguments, 0)?.value.signum()).unwrap_or_default())
    })?;
    numbers(env)?;
    comparisons(env)?;
    sums(env)
}

fn numbers(env: &mut Env) -> Declared {
    let ty = Quantity::ty;
    env.add_member_overload("isInteger", "quantity_is_integer", ty(), vec![], |arguments| {
        give(Quantity::of(&arguments, 0)?.integer().is_some())
    })?;
    env.add_member_overload("asInteger", "quantity_as_integer", ty(), vec![], |arguments| {
        let integer = Quantity::of(&arguments, 0)?.integer();
        let why = "cannot convert value to integer";
        give(integer.ok_or_else(|| ExecutionError::function_error("asInteger", why))?)
    })?;
    let approximate = "asApproximateFloat";
    env.add_member_overload(approximate, "quantity_as_float", ty(), vec![], |arguments| {
        give(Quantity::of(&arguments, 0)?.approximate())
    })
}

fn comparisons(env: &mut Env) -> Declared {
    let (ty, other) = (Quantity::ty, || vec![Quantity::ty()]);
    env.add_member_overload("isLessThan", "quantity_is_less", ty(), other(), |arguments| {
        give(Quantity::of(&arguments, 0)? < Quantity::of(&arguments, 1)?)
    })?;
    env.add_member_overload("isGreaterThan", "quantity_is_greater", ty(), other(), |arguments| {
        give(Quantity::of(&arguments, 0)? > Quantity::of(&arguments, 1)?)
    })?;
    env.add_member_overload("compareTo", "quantity_compare", ty(), other(), |arguments| {
        give(Quantity::of(&arguments, 0)?.cmp(&Quantity::of(&arguments, 1)?) as i64)
    })
}

fn sums(env: &mut Env) -> Declared {
    let (ty, other) = (Quantity::ty, || vec![Quantity::ty()]);
    env.add_member_overload("add", "quantity_add", ty(), other(), |arguments| {
        give(Quantity::of(&arguments, 0)?.plus(Quantity::of(&arguments, 1)?))
    })?;
    env.add_member_overload("sub", "quantity_sub", ty(), other(), |arguments| {
        give(Quantity::of(&arguments, 0)?.minus(Quantity::of(&arguments, 1)?))
    })?;
    env.add_member_overload("add", "quantity_add_int", ty(), vec![INT_TYPE], |arguments| {
        give(Quantity::of(&arguments, 0)?.plus(units(&arguments)?))
    })?;
    env.add_member_overload("sub", "quantity_sub_int", ty(), vec![INT_TYPE], |arguments| {
        give(Quantity::of(&arguments, 0)?.minus(units(&arguments)?))
    })
}

fn units(arguments: &[CowVal<'_, '_>]) -> Result<Quantity> {
    match argument(arguments, 1)? {
        Cel::Int(units) => Ok(Quantity::small(units, 0)),
        other => Err(other.error_expected_type(cel::objects::ValueType::Int)),
    }
}

#[cfg(test)]
mod tests {
    use cel::Context;
    use rstest::rstest;

    use super::super::library::env;
    use super::*;

    /// kube-apiserver 1.36.2 evaluates these expressions to true.
    #[rstest]
    #[case("quantity('1Gi').isGreaterThan(quantity('1Mi')) && quantity('1') == quantity('1000m')")]
    #[case("quantity('1').add(quantity('2k')).asInteger() == 2001")]
    #[case("sign(quantity('2').sub(3)) == -1 && sign(quantity('0')) == 0")]
    #[case("!quantity('1.5').isInteger() && quantity('1.5').asApproximateFloat() == 1.5")]
    #[case("quantity('1').compareTo(quantity('2')) == -1")]
    #[case("quantity('9').isLessThan(quantity('10')) && quantity('0.001') == quantity('1m')")]
    #[case("!quantity('1000m').isInteger() && quantity('1k').asInteger() == 1000")]
    #[case("quantity('1Ti').isInteger() && !quantity('1Pi').isInteger()")]
    #[case("!quantity('1.5Gi').isInteger() && !quantity('9223372036854775807').isInteger()")]
    #[case("quantity('0').add(9223372036854775807).isInteger()")]
    #[case("!quantity('1').add(9223372036854775807).isInteger()")]
    #[case("quantity('0').sub(-9223372036854775807 - 1).asInteger() < 0")]
    #[case("quantity('1000Pi').asApproximateFloat() == 1125899906842624128.0")]
    #[case("quantity('8Ei').asApproximateFloat() == 9223372036854775807.0")]
    #[case("quantity('.').asInteger() == 0 && isQuantity('1e19') && isQuantity('1e99')")]
    #[case("quantity('1e99').isGreaterThan(quantity('1Ei'))")]
    #[case("isQuantity('1.5Gi') && isQuantity('-.5') && !isQuantity('much') && !isQuantity('1K')")]
    fn amounts_are_those_of_kubernetes(#[case] text: &str) {
        let program = env().compile(text).expect("an expression");
        assert_eq!(program.execute(&Context::with_env(env())), Ok(Cel::Bool(true)));
    }

    #[rstest]
    #[case("quantity('much')", "quantities must match the regular expression")]
    #[case("quantity('')", "quantities must match the regular expression")]
    #[case("quantity('1K')", "unable to parse quantity's suffix")]
    #[case("quantity('1.5').asInteger()", "cannot convert value to integer")]
    fn mistakes_are_errors(#[case] text: &str, #[case] expected: &str) {
        let program = env().compile(text).expect("an expression");
        let error = program.execute(&Context::with_env(env())).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}
