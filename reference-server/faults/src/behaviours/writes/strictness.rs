//! Strict validation of fields that reports too little.

use serde_json::Value;

use crate::behaviours::Fault;
use crate::middleware::{Middleware, failures};

/// The text before the list of mistakes in a message.
const MISTAKES: &str = "strict decoding error: ";

/// The middleware of a fault of this file.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    let choose: fn(&[&str]) -> Vec<String> = match fault {
        Fault::StrictNamesOneMistake => |all| owned(all.iter().take(1)),
        Fault::StrictNamesNoDuplicates => {
            |all| owned(all.iter().filter(|mistake| !mistake.starts_with("duplicate")))
        }
        _ => return None,
    };
    Some(failures(move |_, status| {
        if let Some(message) = status["message"].as_str().and_then(|text| chosen(text, choose)) {
            status["message"] = Value::String(message);
        }
    }))
}

fn owned<'a>(mistakes: impl Iterator<Item = &'a &'a str>) -> Vec<String> {
    mistakes.map(|mistake| (*mistake).to_owned()).collect()
}

/// Returns a message with some of its mistakes; `None` if it has none, or if none is left.
fn chosen(message: &str, choose: fn(&[&str]) -> Vec<String>) -> Option<String> {
    let (before, mistakes) = message.rsplit_once(MISTAKES)?;
    let mistakes = choose(&mistakes.split(", ").collect::<Vec<_>>());
    (!mistakes.is_empty()).then(|| format!("{before}{MISTAKES}{}", mistakes.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_keeps_its_beginning_and_at_least_one_mistake() {
        let first: fn(&[&str]) -> Vec<String> = |all| owned(all.iter().take(1));
        let message = r#"a, b: strict decoding error: unknown field "c", unknown field "d""#;
        let expected = r#"a, b: strict decoding error: unknown field "c""#;
        assert_eq!(chosen(message, first).as_deref(), Some(expected));
        assert_eq!(chosen("another message", first), None);
        assert_eq!(chosen(message, |_| Vec::new()), None);
    }
}
