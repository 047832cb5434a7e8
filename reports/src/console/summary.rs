//! The last lines of a run.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::{Options, Verbosity};
use crate::document::{Document, Summary};
use crate::paint::word;
use crate::text::plural;

/// Areas that are named as the worst.
const WORST: usize = 3;
/// Cases that are named in the command that repeats the failures; with more, the report or the seed is handier.
const NAMED: usize = 4;

pub(super) fn render(document: &Document, options: &Options) -> String {
    let paint = options.paint;
    let mut text = String::new();
    if options.verbosity > Verbosity::Quiet {
        for notice in &document.notices {
            _ = writeln!(text, "note: {notice}");
        }
        if let Some(worst) = worst(document) {
            _ = writeln!(text, "worst areas: {worst}");
        }
        if let Some(again) = again(document, options) {
            _ = writeln!(text, "again: {again}");
        }
    }
    if document.interrupted {
        let missing = document.head.planned.saturating_sub(document.results.len());
        _ = writeln!(text, "interrupted: {} missing", plural(missing, "result"));
    }
    let counts = document.summary.counts().into_iter().filter(|(_, count)| *count > 0);
    let counts: Vec<_> =
        counts.map(|(verdict, count)| paint.verdict(verdict, format!("{count} {}", word(verdict)))).collect();
    let counts = if counts.is_empty() { "nothing was judged".to_owned() } else { counts.join(", ") };
    let known = document.results.iter().filter(|record| record.is_known()).count();
    let known = if known == 0 { String::new() } else { format!(" ({known} known)") };
    let seconds = document.duration_ms / 1000.0;
    let results = plural(document.summary.total(), "result");
    let head = &document.head;
    // What cannot be repeated by a seed has none.
    let seed = if options.command.is_empty() { String::new() } else { format!("seed {}, ", head.seed) };
    _ = writeln!(text, "{results}: {counts}{known}; {seed}{seconds:.2} s, {}", head.target.server);
    text
}

fn worst(document: &Document) -> Option<String> {
    let rank = |counts: &Summary| counts.fail + counts.error;
    let mut areas: Vec<_> = document.areas().into_iter().filter(|(_, counts)| rank(counts) > 0).collect();
    areas.sort_by_key(|(_, counts)| std::cmp::Reverse(rank(counts)));
    let names = areas.iter().take(WORST).map(|(name, counts)| {
        let judged = counts.total() - counts.skip;
        format!("{name} ({} of {judged})", rank(counts))
    });
    let names: Vec<_> = names.collect();
    (!names.is_empty()).then(|| names.join(", "))
}

fn again(document: &Document, options: &Options) -> Option<String> {
    let bad = document.failures(options.strict).chain(document.errors());
    let ids: BTreeSet<_> = bad.map(|record| record.id.as_str()).collect();
    if ids.is_empty() || options.command.is_empty() {
        return None;
    }
    let selection = match &options.json {
        Some(path) => format!("--rerun {}", path.display()),
        None if ids.len() <= NAMED => format!("--only {}", ids.into_iter().collect::<Vec<_>>().join(" ")),
        None => "--only ID.. (or add --json FILE, then --rerun FILE)".to_owned(),
    };
    Some(format!("{} {selection}", options.command))
}
