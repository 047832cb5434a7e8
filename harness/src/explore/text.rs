//! A broken property as text, with the commands that show it.

use std::fmt::Write as _;

use super::violation::Failure;
use crate::verdict::curl;

/// Returns the violation, and each request of the check as a command with its outcome.
pub fn text(failure: &Failure) -> String {
    let Failure { subject, violation, server, .. } = failure;
    let name = violation.property.name();
    let mut text = format!("FAIL {name} @ {subject}: {}\n", violation.message);
    for (number, exchange) in failure.shown().iter().enumerate() {
        let mark = if number == violation.step { " (this response is wrong)" } else { "" };
        let outcome = exchange.in_words();
        let _ = writeln!(text, "  {}. {}", number + 1, curl::line(&exchange.request, server));
        let _ = writeln!(text, "     -> {outcome}{mark}");
    }
    text
}
