//! The order of a list after a strategic merge.
//!
//! The patch orders the items that it names, and the stored list orders the items that it
//! contained. The items of the patch keep the order of the patch. Each other item goes before the
//! first of them that it preceded.

use std::collections::HashMap;

use serde_json::Value;

/// Returns the identity of an item: its merge key, or the item itself in a list of scalars.
pub(super) fn identity<'v>(item: &'v Value, key: Option<&str>) -> Option<&'v Value> {
    match key {
        Some(key) => item.get(key),
        None => Some(item),
    }
}

/// Reports whether the items of a patch follow the order that the same patch sets.
pub(super) fn agrees<'v>(
    items: impl Iterator<Item = &'v Value>,
    order: &[Value],
    key: Option<&str>,
) -> bool {
    let mut rest = order.iter();
    items.into_iter().all(|item| {
        let wanted = identity(item, key);
        wanted.is_some() && rest.any(|entry| identity(entry, key) == wanted)
    })
}

/// Orders `merged` by `order`, which is the order of the patch, and by `stored`, the list before
/// the patch.
pub(super) fn arrange(
    merged: Vec<Value>,
    order: &[Value],
    stored: &[Value],
    key: Option<&str>,
) -> Vec<Value> {
    let (in_order, in_stored) = (places(order, key), places(stored, key));
    let position = |places: &HashMap<&Value, usize>, item: &Value| {
        identity(item, key).and_then(|wanted| places.get(wanted).copied())
    };
    let (mut named, mut others): (Vec<_>, Vec<_>) =
        merged.into_iter().partition(|item| position(&in_order, item).is_some());
    named.sort_by_key(|item| position(&in_order, item));
    others.sort_by_key(|item| position(&in_stored, item).unwrap_or(usize::MAX));

    let mut arranged = Vec::with_capacity(named.len() + others.len());
    let mut others = others.into_iter().peekable();
    for item in named {
        let before = position(&in_stored, &item);
        let precedes = |other: &Value| {
            before.is_some_and(|at| position(&in_stored, other).is_some_and(|p| p < at))
        };
        while let Some(other) = others.next_if(precedes) {
            arranged.push(other);
        }
        arranged.push(item);
    }
    arranged.extend(others);
    arranged
}

/// Returns the index of each item. The first of equal items counts.
fn places<'v>(list: &'v [Value], key: Option<&str>) -> HashMap<&'v Value, usize> {
    let mut places = HashMap::new();
    for (at, item) in list.iter().enumerate() {
        if let Some(identity) = identity(item, key) {
            places.entry(identity).or_insert(at);
        }
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(text: &str) -> Vec<Value> {
        text.chars().map(|c| c.to_string().into()).collect()
    }

    #[rstest::rstest]
    #[case::nothing_new("ab", "a", "ab", "ab")]
    #[case::new_item_after_its_neighbour("acb", "ac", "ab", "acb")]
    #[case::only_new_items_lead("abc", "c", "ab", "cab")]
    #[case::patch_turns_its_items_around("abc", "ca", "abc", "bca")]
    #[case::others_keep_their_order("xayb", "ba", "xayb", "xyba")]
    fn the_order_of_the_patch_and_of_the_stored_list_both_apply(
        #[case] merged: &str,
        #[case] order: &str,
        #[case] stored: &str,
        #[case] expected: &str,
    ) {
        assert_eq!(arrange(list(merged), &list(order), &list(stored), None), list(expected));
    }

    #[test]
    fn a_subset_of_the_ordered_items_agrees_with_the_order() {
        let order = list("abc");
        assert!(agrees(list("ac").iter(), &order, None));
        assert!(!agrees(list("ca").iter(), &order, None));
        assert!(!agrees(list("d").iter(), &order, None));
    }
}
