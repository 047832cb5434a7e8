use rstest::rstest;
use serde_json::json;

use super::*;

#[test]
fn what_serde_json_forgets_is_kept() {
    let text = br#"{"b": 1.50, "a": 1E2, "b": 12345678901234567890123}"#;
    let document = read(text).unwrap();
    let Kind::Object(members) = &document.root.kind else { panic!("no object: {document:?}") };
    assert_eq!(members.iter().map(|m| m.key.as_str()).collect::<Vec<_>>(), ["b", "a", "b"]);
    assert_eq!(members[0].value.kind, Kind::Number("1.50"));
    assert_eq!(&text[members[1].key_span.clone()], br#""a""#);
    assert_eq!(&text[members[1].value.span.clone()], b"1E2");
    assert_eq!(members[2].value.kind, Kind::Number("12345678901234567890123"));
    assert_eq!(document.into_value(), json!({"a": 100.0, "b": 1.234_567_890_123_456_8e22}));
}

#[rstest]
#[case::nested(
    r#"{"a": [{}, {"x/y": 1, "x/y": 2}]}"#,
    &["duplicate key /a/1/x~1y at line 1 column 23 (byte 22)"]
)]
#[case::escaped(r#"{"a": 1, "\u0061": 2}"#, &["duplicate key /a at line 1 column 10 (byte 9)"])]
#[case::twice(
    "{\"a\":1,\n\"a\":2,\"a\":3}",
    &[
        "duplicate key /a at line 2 column 1 (byte 8)",
        "duplicate key /a at line 2 column 7 (byte 14)",
    ]
)]
#[case::siblings(r#"[{"a": 1}, {"a": 1}]"#, &[])]
fn duplicates_are_named(#[case] text: &str, #[case] expected: &[&str]) {
    let found: Vec<_> =
        read(text.as_bytes()).unwrap().duplicates.iter().map(ToString::to_string).collect();
    assert_eq!(found, expected);
}

#[test]
fn of_very_many_duplicates_some_are_named() {
    let twice = r#"{"a": 1, "b": 1, "a": 2, "b": 2}"#;
    let text = format!("[{}{twice}]", format!("{twice},").repeat(MAX_DUPLICATES));
    let found = read(text.as_bytes()).unwrap().duplicates;
    assert_eq!(found.len(), MAX_DUPLICATES);
    assert_eq!(found[2].pointer, "/1/a");
}

#[rstest]
#[case::empty("", "expected a value, met the end of the text at line 1 column 1 (byte 0)")]
#[case::trailing_comma("[1,]", "expected a value, met ']' at line 1 column 4 (byte 3)")]
#[case::bare_key("{a: 1}", "expected a key in double quotes, met 'a' at line 1 column 2 (byte 1)")]
#[case::no_colon(
    r#"{"a" 1}"#,
    "expected a colon after the key, met '1' at line 1 column 6 (byte 5)"
)]
#[case::open(
    r#"{"a": 1"#,
    "expected a comma or the end of the object, met the end of the text at line 1 column 8 (byte 7)"
)]
#[case::other_bracket(
    "[1}",
    "expected a comma or the end of the array, met '}' at line 1 column 3 (byte 2)"
)]
#[case::two_values(
    "{}\n{}",
    "more text after the end of the JSON value at line 2 column 1 (byte 3)"
)]
#[case::leading_zero("017", "a number that is not JSON's at line 1 column 2 (byte 1)")]
#[case::bare_point("1.", "a number that is not JSON's at line 1 column 3 (byte 2)")]
#[case::bare_exponent("1e", "a number that is not JSON's at line 1 column 3 (byte 2)")]
#[case::bare_signed_exponent("1.5e+", "a number that is not JSON's at line 1 column 6 (byte 5)")]
#[case::plus("+1", "expected a value, met '+' at line 1 column 1 (byte 0)")]
#[case::nan("NaN", "expected a value, met 'N' at line 1 column 1 (byte 0)")]
#[case::word("[nil]", "expected a value, met 'n' at line 1 column 2 (byte 1)")]
#[case::tab("\"a\tb\"", "control character 0x09 in a string at line 1 column 3 (byte 2)")]
#[case::escape(r#""\x""#, "unknown escape in a string at line 1 column 2 (byte 1)")]
#[case::surrogate(r#""\ud800\u0041""#, "lone surrogate \\ud800 at line 1 column 2 (byte 1)")]
#[case::low_first(r#""\udc00""#, "lone surrogate \\udc00 at line 1 column 2 (byte 1)")]
#[case::low_twice(r#""\udc00\udc00""#, "lone surrogate \\udc00 at line 1 column 2 (byte 1)")]
#[case::high_twice(r#""\ud800\ud800""#, "lone surrogate \\ud800 at line 1 column 2 (byte 1)")]
#[case::hex(r#""\u12g4""#, "\\u without four hexadecimal digits at line 1 column 2 (byte 1)")]
#[case::sign_in_hex(
    r#""\u+123""#,
    "\\u without four hexadecimal digits at line 1 column 2 (byte 1)"
)]
#[case::unclosed("\"é", "the text ends inside a string at line 1 column 3 (byte 3)")]
#[case::bom("\u{FEFF}{}", "a byte order mark before the JSON at line 1 column 1 (byte 0)")]
#[case::columns_are_characters(
    "{\"é\": x}",
    "expected a value, met 'x' at line 1 column 7 (byte 7)"
)]
fn what_is_not_json_is_named_and_placed(#[case] text: &str, #[case] expected: &str) {
    assert_eq!(read(text.as_bytes()).unwrap_err().to_string(), expected);
}

#[test]
fn bytes_that_are_not_utf_8_are_placed() {
    let fault = read(b"{\"a\": \"\xFF\"}").unwrap_err();
    assert_eq!((fault.message.as_str(), fault.at.byte), ("bytes that are not UTF-8", 7));
}

#[test]
fn depth_is_bounded() {
    let nest = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
    assert!(read(nest(MAX_DEPTH).as_bytes()).is_ok());
    let fault = read(nest(MAX_DEPTH + 1).as_bytes()).unwrap_err();
    assert_eq!(
        (fault.message.as_str(), fault.at.byte),
        ("nesting deeper than 256 levels", MAX_DEPTH)
    );
    assert!(read("[".repeat(1_000_000).as_bytes()).is_err());
    // Siblings do not add depth.
    assert!(read(format!("[{}[]]", "[],[[]],".repeat(1000)).as_bytes()).is_ok());
}

#[rstest]
#[case(" {\"a\" : [ ] , \"b\":{ } }\r\n", json!({"a": [], "b": {}}))]
#[case(r#""\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00é""#, json!("\"\\/\u{8}\u{C}\n\r\té😀é"))]
#[case(
    "[0, -0, -1, 9223372036854775807, 18446744073709551615, 0.5, 1e-2]",
    json!([0, -0.0, -1, i64::MAX, u64::MAX, 0.5, 0.01])
)]
#[case(r#""\ud800\udc00\udbff\udfff""#, json!("\u{10000}\u{10ffff}"))]
#[case("[1e400, -1e400]", json!([f64::MAX, f64::MIN]))]
#[case("[true, false, null]", json!([true, false, null]))]
fn values_are_converted(#[case] text: &str, #[case] expected: Value) {
    assert_eq!(read(text.as_bytes()).unwrap().into_value(), expected);
}

#[test]
fn where_both_accept_serde_json_reads_the_same() {
    let text = r#"{
        "kind": "List",
        "items": [{"n": 1, "f": 2.5, "s": "\u0000x"}, null, true],
        "big": 123456789012345678901
    }"#;
    assert_eq!(
        read(text.as_bytes()).unwrap().into_value(),
        serde_json::from_str::<Value>(text).unwrap()
    );
}
