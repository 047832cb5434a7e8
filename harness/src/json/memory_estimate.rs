//! Estimates the memory of a JSON document before parsing it.
//!
//! A byte of JSON can become a hundred bytes of values: an object with one short member is a tree
//! node with space for eleven. A limit on the text alone is no limit on memory.

/// A value in its list or object. Lists grow by doubling.
const ITEM: usize = 64;

/// A list that is not empty.
const LIST: usize = 128;

/// An object that is not empty: one tree node.
const OBJECT: usize = 640;

/// The overhead of an allocation.
const STRING: usize = 16;

/// Estimates the bytes of the parsed value. For invalid JSON, estimates the cost of rejecting it.
pub(crate) fn weight(text: &[u8]) -> usize {
    let mut weight = 0_usize;
    let mut opened = None;
    let mut bytes = text.iter();
    while let Some(byte) = bytes.next() {
        let own = match byte {
            b' ' | b'\t' | b'\r' | b'\n' => continue,
            b'{' | b'[' => {
                weight += opened.take().unwrap_or_default();
                opened = Some(if *byte == b'{' { OBJECT } else { LIST });
                weight += ITEM;
                continue;
            }
            // The list or object is empty.
            b'}' | b']' => {
                opened = None;
                continue;
            }
            b',' | b':' => ITEM,
            b'"' => STRING + string(&mut bytes),
            _ => 1,
        };
        weight += own + opened.take().unwrap_or_default();
    }
    weight
}

/// Counts the bytes up to the closing quote.
fn string(bytes: &mut std::slice::Iter<'_, u8>) -> usize {
    let before = bytes.len();
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => break,
            b'\\' => drop(bytes.next()),
            _ => {}
        }
    }
    before - bytes.len()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    /// The smallest texts with the largest memory cost.
    #[rstest]
    #[case::objects(r#"{"":0},"#, OBJECT)]
    #[case::empty_objects("{},", ITEM)]
    #[case::lists("[0],", LIST)]
    #[case::numbers("0,", ITEM)]
    #[case::strings(r#""0123456789","#, 10 + ITEM)]
    #[case::escapes(r#""\"\\","#, ITEM)]
    fn many_small_values_weigh_what_they_take(#[case] item: &str, #[case] least: usize) {
        let text = format!("[{}0]", item.repeat(1000));
        let weight = weight(text.as_bytes());
        assert!((1000 * least..2000 * (least + ITEM)).contains(&weight), "{weight}");
    }

    #[rstest]
    #[case("[]", ITEM)]
    #[case(" [ 1 ]\r\n", ITEM + LIST + 1)]
    #[case("[1,\t23]", ITEM + LIST + 1 + ITEM + 2)]
    #[case("[[]]", ITEM + LIST + ITEM)]
    #[case("[{}, []]", ITEM + LIST + ITEM + ITEM + ITEM)]
    #[case(r#"{"ab": 1}"#, ITEM + OBJECT + STRING + 3 + ITEM + 1)]
    #[case(r#"{"a": "\"b\\"}"#, ITEM + OBJECT + STRING + 2 + ITEM + STRING + 6)]
    fn what_holds_something_weighs_more(#[case] text: &str, #[case] expected: usize) {
        assert_eq!(weight(text.as_bytes()), expected);
    }

    #[test]
    fn what_is_no_json_is_weighed_all_the_same() {
        assert_eq!(weight(b""), 0);
        assert!(weight(b"\"never ends\\") > 0);
        assert!(weight(&[b'['; 1000]) > 1000 * LIST);
    }
}
