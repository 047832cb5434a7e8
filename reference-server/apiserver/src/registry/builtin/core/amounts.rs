//! The precision of resources: kube-apiserver rounds them up to thousandths.

use kubeproof_apimachinery::schema::quantity::{self, Quantity, UNIT};
use serde_json::Value;

/// The most precise amount, in billionths.
const STEP: i128 = UNIT / 1000;

/// Rounds the amounts of the field `resources` of an object.
pub(in crate::registry::builtin) fn round_up_resources(owner: &mut Value) {
    for kind in ["limits", "requests"] {
        round_up(owner.get_mut("resources").and_then(|resources| resources.get_mut(kind)));
    }
}

/// Rounds each amount of a list of resources.
pub(super) fn round_up(list: Option<&mut Value>) {
    let amounts = list.and_then(Value::as_object_mut).into_iter();
    for amount in amounts.flat_map(serde_json::Map::values_mut) {
        if let Some(rounded) = amount.as_str().and_then(rounded) {
            *amount = rounded.into();
        }
    }
}

/// Returns the rounded amount, or nothing if it stays.
fn rounded(amount: &str) -> Option<String> {
    let nanos = Quantity::parse(amount)?.nanos();
    if nanos % STEP == 0 {
        return None;
    }
    let steps = nanos.div_euclid(STEP) + i128::from(nanos > 0);
    quantity::canonical(&format!("{steps}m"))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("1n", Some("1m"))]
    #[case("1500u", Some("2m"))]
    #[case("999999999n", Some("1"))]
    #[case("-1500u", Some("-2m"))]
    #[case("1m", None)]
    #[case("1Gi", None)]
    #[case("x", None)]
    fn amounts_have_thousandths(#[case] amount: &str, #[case] expected: Option<&str>) {
        assert_eq!(rounded(amount).as_deref(), expected);
    }
}
