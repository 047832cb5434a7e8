//! The causes of the failures within a budget of lines.
//!
//! A run with many bugs must fit on a few screens. The first cause is shown in full, because it is
//! the one to fix first. The others show their request while there is room.

use std::fmt::Write as _;

use kubeproof_cases::plural;
use kubeproof_harness::event::Verdict;

use super::Options;
use crate::causes::Cause;
use crate::requirements::Requirements;
use crate::text::{self, Size};

/// Maximum lines of all causes. A summary of 20 lines then fits on 150 lines.
const LINES: usize = 130;

/// Lines of a cause of the size `Line`.
const OF_LINE: usize = 2;

/// Returns the causes. The causes of files (`lint-api`) have no budget, because each place matters.
pub(super) fn render(
    causes: &[Cause<'_>],
    requirements: &Requirements,
    options: &Options,
) -> String {
    let (paint, is_run) = (options.paint, !options.command.is_empty());
    let mut output = String::new();
    let mut room = if is_run { LINES } else { usize::MAX };
    for (at, cause) in causes.iter().enumerate() {
        let left = causes.len() - at;
        let size = if at == 0 { Size::Full } else { Size::Short };
        let mut entry = text::cause(cause, requirements, size, paint);
        // The harness could not judge errors, so they show little about the server.
        let is_minor = cause.verdict != Verdict::Fail;
        let reserved = OF_LINE * (left - 1) + 1;
        if is_run && at > 0 && (is_minor || entry.lines().count() + reserved > room) {
            entry = text::cause(cause, requirements, Size::Line, paint);
        }
        let lines = entry.lines().count();
        if lines + usize::from(left > 1) > room {
            let rest = &causes[at..];
            let results: usize = rest.iter().map(Cause::weight).sum();
            let more = format!(
                "and {} with {}; -v prints every result",
                plural(rest.len(), "more cause"),
                plural(results, "result")
            );
            _ = writeln!(output, "{}", paint.dim(more));
            break;
        }
        room -= lines;
        output.push_str(&entry);
    }
    if !output.is_empty() && !output.ends_with("\n\n") {
        output.push('\n');
    }
    output
}
