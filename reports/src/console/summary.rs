//! The summary at the end of the console output.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use kubeproof_cases::{Profile, plural};
use kubeproof_harness::event::Verdict;

use super::{Options, Verbosity, rerun};
use crate::causes::Cause;
use crate::document::{Document, Outcome};
use crate::paint::verdict_name;
use crate::text::{clip, printable};

/// The start of the name of a namespace that a run creates and removes.
const OF_RUNS: &str = "kubeproof-";
/// Among so few causes, the reader sees the first one.
const FEW: usize = 5;
/// Maximum characters of a title.
const TITLE: usize = 100;
/// Maximum characters of the example of a skip reason.
const EXAMPLE: usize = 80;

/// Renders the summary. The progress output did not show these `notices`.
pub(super) fn render(
    document: &Document,
    causes: &[Cause<'_>],
    notices: &[String],
    options: &Options,
) -> String {
    let mut text = String::new();
    let mut row = |label: &str, value: Option<String>| {
        if let Some(value) = value {
            _ = writeln!(text, "{} {value}", options.paint.dim(format!("{label}:")));
        }
    };
    if options.verbosity > Verbosity::Quiet {
        for notice in notices {
            row("note", Some(printable(notice)));
        }
        row("note", removed_objects(document, causes));
        row("skipped", skips(document));
        row("deviations", deviations(document));
        row("profile", profile(document));
        row("fix first", fix_first(causes));
        row("rerun", rerun::command(document, options));
    }
    for entry in &document.stale_entries {
        row("known failures", Some(printable(entry)));
    }
    if let Some(stopped) = &document.stopped {
        row("stopped", Some(printable(&stopped.to_string())));
    }
    if document.interrupted {
        let missing = document.head.planned.saturating_sub(document.results.len());
        let text = match document.head.planned {
            0 => "before the first case".to_owned(),
            _ => format!("{} missing", plural(missing, "result")),
        };
        row("interrupted", Some(text));
    }
    if document.outcome(options.strict) == Outcome::Inconclusive {
        row("inconclusive", judges_too_little(document));
    }
    _ = writeln!(text, "{}", totals(document, options));
    text
}

/// Returns why the run is inconclusive, if no other line says it.
fn judges_too_little(document: &Document) -> Option<String> {
    let is_complete = !document.interrupted && document.stopped.is_none();
    let reason = document.judges_too_little().filter(|_| is_complete)?;
    Some(reason.to_owned())
}

/// Returns the message for a server that rejects every request in the same way.
pub(super) fn same_response(document: &Document, code: u16) -> String {
    let server = document.head.target.name();
    format!("{server} returns HTTP {code} to every request; does the URL lead to a Kubernetes API?")
}

fn totals(document: &Document, options: &Options) -> String {
    let outcome = document.outcome(options.strict);
    let of_outcome = match outcome {
        Outcome::Conformant => Verdict::Pass,
        Outcome::NotConformant => Verdict::Fail,
        Outcome::Inconclusive => Verdict::Error,
    };
    let outcome = options.paint.verdict(of_outcome, outcome.name());
    let counts = document.summary.counts().into_iter().filter(|(_, count)| *count > 0);
    let counts: Vec<_> = counts
        .map(|(verdict, count)| {
            options.paint.verdict(verdict, format!("{count} {}", verdict_name(verdict)))
        })
        .collect();
    let counts = if counts.is_empty() { "no results".to_owned() } else { counts.join(", ") };
    let known = match document.results.iter().filter(|record| record.is_known()).count() {
        0 => String::new(),
        known => format!(" ({known} known)"),
    };
    let head = &document.head;
    // Reports without a command (lint-api) have no seed.
    let has_seed = !options.command.is_empty();
    let seed = if has_seed { format!("seed {}, ", head.seed) } else { String::new() };
    let results = plural(document.summary.total(), "result");
    let seconds = document.duration_ms / 1000.0;
    format!("{outcome}, {results}: {counts}{known}; {seed}{seconds:.2} s, {}", head.target.name())
}

/// Returns the codes of the skip reasons with their numbers, the most frequent first and with an
/// example.
fn skips(document: &Document) -> Option<String> {
    let mut codes: BTreeMap<&str, (usize, &str)> = BTreeMap::new();
    for record in document.results.iter().filter(|record| record.verdict == Verdict::Skip) {
        let code = record.reason_code.as_deref().unwrap_or("other");
        codes.entry(code).or_insert((0, &record.reason)).0 += 1;
    }
    let mut codes: Vec<_> = codes.into_iter().collect();
    codes.sort_by_key(|(_, (count, _))| Reverse(*count));
    let (_, (_, example)) = codes.first()?;
    let example = format!(" (such as: {})", printable(&clip(example, EXAMPLE)));
    let names = codes.iter().enumerate().map(|(at, (code, (count, _)))| {
        format!("{count} {code}{}", if at == 0 { example.as_str() } else { "" })
    });
    Some(names.collect::<Vec<_>>().join(", "))
}

fn deviations(document: &Document) -> Option<String> {
    let all = document.results.iter().filter(|record| record.verdict == Verdict::Deviation);
    let cases: BTreeSet<_> = all.map(|record| record.id.as_str()).collect();
    let count = document.summary.deviation;
    (count > 0).then(|| {
        format!(
            "{count} in {}, as deployed servers behave (-v lists them)",
            plural(cases.len(), "case")
        )
    })
}

/// Returns why the printed curl commands cannot repeat their requests.
fn removed_objects(document: &Document, causes: &[Cause<'_>]) -> Option<String> {
    let target = &document.head.target;
    // A run whose server went away leaves its objects behind.
    let is_removed = !target.bundled && document.stopped.is_none() && !document.has_leftovers;
    let id = target.namespace.strip_prefix(OF_RUNS).filter(|_| is_removed)?;
    let needs_objects = |cause: &Cause<'_>| {
        cause.check.and_then(|check| check.curl.as_ref()).is_some_and(|curl| curl.contains(id))
    };
    let keeps = document.head.command.split(' ').any(|word| word == "--keep");
    (!keeps && causes.iter().any(needs_objects))
        .then(|| "the run removed its objects; add --keep before you repeat a request".to_owned())
}

/// Returns the first profile that the server lacks. Runs of a selection and incomplete runs have no
/// ladder.
fn profile(document: &Document) -> Option<String> {
    if document.interrupted || document.stopped.is_some() {
        return None;
    }
    let ladder = document.ladder();
    if ladder.len() < Profile::ALL.len() {
        return None;
    }
    match ladder.iter().find(|rung| !rung.is_complete()) {
        Some(rung) => Some(rung.to_string()),
        None => Some(format!("{0} of {0}: all profiles are complete", ladder.len())),
    }
}

fn fix_first(causes: &[Cause<'_>]) -> Option<String> {
    let is_decided = |cause: &&Cause<'_>| cause.verdict != Verdict::Error;
    let first = causes.first().filter(|_| causes.len() > FEW).filter(is_decided)?;
    let title = clip(&first.title, TITLE);
    let blocks = match first.blocked.len() {
        0 => String::new(),
        blocked => format!(", blocks {blocked}"),
    };
    Some(format!("{} ({}{blocks})", printable(&title), plural(first.results.len(), "result")))
}
