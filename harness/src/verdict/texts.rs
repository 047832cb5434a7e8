//! Checks claims about the text of a body and about headers.

use kubeproof_cases::pattern::TextPattern;
use kubeproof_cases::plural;
use serde_json::json;

use super::evidence::{Broken, Judged};
use super::pattern::{text_in_words, text_matches};
use crate::event::Symptom;
use crate::exchange::{Received, shorten};
use crate::values::Values;

/// Bytes of a body that a message shows.
const LONGEST_BODY: usize = 100;

/// Checks the text of a body.
pub(super) fn text(pattern: &TextPattern, received: &Received, values: &Values) -> Judged {
    let actual = String::from_utf8_lossy(&received.body);
    if text_matches(pattern, &actual, values)? {
        return Ok(Ok(()));
    }
    let expected = text_in_words(pattern, values)?;
    Ok(Err(Broken {
        message: format!("{}, expected {expected}", body_in_words(&received.body)),
        expected: json!({"text": expected}),
        actual: json!({"text": shorten(&actual)}),
        symptom: Some(Symptom::WrongField { field: "body".into() }),
        ..Broken::default()
    }))
}

/// Checks the values of a header. `None` if it must be absent.
pub(super) fn header(
    name: &str,
    value: Option<&TextPattern>,
    received: &Received,
    values: &Values,
) -> Judged {
    let found: Vec<&str> = received
        .headers
        .iter()
        .filter(|(header, _)| header.eq_ignore_ascii_case(name))
        .map(|(_, value)| value.as_str())
        .collect();
    let holds = match value {
        None => found.is_empty(),
        Some(text) => {
            let mut any = false;
            for value in &found {
                any = any || text_matches(text, value, values)?;
            }
            any
        }
    };
    if holds {
        return Ok(Ok(()));
    }
    let asked = match value {
        None => "no such header".to_owned(),
        Some(text) => text_in_words(text, values)?,
    };
    let field = format!("header {name}");
    let (message, symptom) = if found.is_empty() {
        (format!("{field} is missing, expected {asked}"), Symptom::MissingField { field })
    } else {
        let got = found.join(", ");
        (format!("{field} is {got:?}, expected {asked}"), Symptom::WrongField { field })
    };
    Ok(Err(Broken {
        expected: json!({"header": {name: asked}}),
        actual: json!({"header": {name: found}}),
        message,
        symptom: Some(symptom),
        ..Broken::default()
    }))
}

/// Shows a short text. The exchange shows longer ones, and bytes.
fn body_in_words(body: &[u8]) -> String {
    let is_printable = |c: char| !c.is_control() || c.is_whitespace();
    match str::from_utf8(body) {
        Ok("") => "the body is empty".to_owned(),
        Ok(text) if !text.chars().all(is_printable) => bytes_in_words(body.len()),
        Ok(text) if text.len() <= LONGEST_BODY => format!("the body is {text:?}"),
        Ok(text) => format!("the body is a text of {} bytes", text.len()),
        Err(_) => bytes_in_words(body.len()),
    }
}

fn bytes_in_words(length: usize) -> String {
    format!("the body is binary ({})", plural(length, "byte"))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(b"", "the body is empty")]
    #[case(b"ok\n", r#"the body is "ok\n""#)]
    #[case(&[b'a'; 101], "the body is a text of 101 bytes")]
    #[case(b"k8s\0", "the body is binary (4 bytes)")]
    #[case(b"\xff", "the body is binary (1 byte)")]
    fn messages_show_short_texts(#[case] body: &[u8], #[case] words: &str) {
        assert_eq!(body_in_words(body), words);
    }
}
