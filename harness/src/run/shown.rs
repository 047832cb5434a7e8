//! Limits the values that a check shows.

use serde_json::{Value, json};

use crate::exchange::shorten;

/// Limit on the bytes of a value or text in a check.
pub(super) const MAX_SHOWN: usize = 64 << 10;

/// Limit on the depth of a value in a check. Report readers accept about twice as much.
const MAX_DEPTH: usize = 60;

/// Replaces a value that is too large or too deep by the beginning of its text.
pub(super) fn bound(value: &mut Value) {
    if !is_shown(value, &mut MAX_SHOWN.clone(), MAX_DEPTH) {
        *value = json!(shorten(&value.to_string()));
    }
}

fn is_shown(value: &Value, room: &mut usize, depth: usize) -> bool {
    let own = match value {
        Value::String(text) => text.len(),
        _ => 8,
    };
    let Some(rest) = room.checked_sub(own) else { return false };
    *room = rest;
    match value {
        Value::Array(items) => {
            depth > 0 && items.iter().all(|item| is_shown(item, room, depth - 1))
        }
        Value::Object(members) => {
            depth > 0
                && members.iter().all(|(name, member)| {
                    let fits = room.checked_sub(name.len()).map(|rest| *room = rest).is_some();
                    fits && is_shown(member, room, depth - 1)
                })
        }
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(json!("abc"), 3, 0, true)]
    #[case(json!("abc"), 2, 9, false)]
    #[case(json!(1), 8, 0, true)]
    #[case(json!(1), 7, 9, false)]
    #[case(json!([1]), 16, 1, true)]
    #[case(json!([1]), 15, 1, false)]
    #[case(json!([1]), 16, 0, false)]
    #[case(json!([[1]]), 99, 1, false)]
    #[case(json!({"ab": "c"}), 11, 1, true)]
    #[case(json!({"ab": "c"}), 10, 1, false)]
    #[case(json!({"ab": "c"}), 11, 0, false)]
    #[case(json!({"a": {"b": 1}}), 99, 2, true)]
    #[case(json!({"a": {"b": 1}}), 99, 1, false)]
    #[case(json!(["a", "b", "c"]), 11, 1, true)]
    #[case(json!(["a", "b", "c"]), 10, 1, false)]
    fn a_value_is_shown_within_its_room_and_depth(
        #[case] value: Value,
        #[case] mut room: usize,
        #[case] depth: usize,
        #[case] expected: bool,
    ) {
        assert_eq!(is_shown(&value, &mut room, depth), expected);
    }
}
