//! `--update-known-failures`: the text of the list after a run.

use std::fmt::Write as _;
use std::sync::Arc;

use jiff::civil::Date;

use super::KnownFailures;
use super::entry::{Entry, failing_checks};
use crate::event::{CaseResult, Verdict};

/// The reason of entries that `--update-known-failures` adds.
const UNEXPLAINED: &str = "not explained yet, added by --update-known-failures";

impl KnownFailures {
    /// Returns the text of the list after a run. Entries of passing cases are removed, inexact
    /// entries are replaced by exact ones, and new failures are added: in order if the list is
    /// sorted, else at the end. A glob stays while one of its cases fails.
    pub fn updated(&self, results: &[Arc<CaseResult>], strict: bool) -> String {
        let mut of_entry: Vec<Vec<&CaseResult>> = vec![Vec::new(); self.entries.len()];
        let mut unlisted: Vec<&CaseResult> = Vec::new();
        let mut judged: Vec<&CaseResult> = results.iter().map(Arc::as_ref).collect();
        judged.retain(|result| result.verdict != Verdict::Skip);
        judged.sort_by_key(|result| (&result.id, &result.subject));
        for result in judged {
            match self.entries.iter().position(|entry| entry.matches(result)) {
                Some(n) => of_entry[n].push(result),
                None if fails(result, strict) => unlisted.push(result),
                None => {}
            }
        }
        unlisted.dedup_by_key(|result| (&result.id, &result.subject));

        let mut out = ListText::of(&self.text, self.entries.iter().map(|entry| entry.line));
        for (n, (entry, results)) in self.entries.iter().zip(&of_entry).enumerate() {
            match entry.change(results, strict, self.partial.contains(&n)) {
                Change::None => {}
                Change::Remove => out.remove(n),
                Change::Replace(entries) => out.replace(n, &entries),
                Change::Precede(entries) => out.precede(n, &entries),
            }
        }
        let places = self.entries.iter().map(Entry::place).collect::<Vec<_>>();
        for result in unlisted {
            let place = (result.id.clone(), result.subject.clone());
            let next = places.is_sorted().then(|| places.iter().position(|at| *at > place));
            out.add(next.flatten(), &Written::unexplained(result).written());
        }
        out.into_text()
    }
}

fn fails(result: &CaseResult, strict: bool) -> bool {
    CaseResult { known: None, ..result.clone() }.fails_run(strict)
}

/// What an update does with an entry.
enum Change {
    None,
    Remove,
    /// These entries replace it.
    Replace(Vec<String>),
    /// These exact entries come before a glob, which does not describe their results.
    Precede(Vec<String>),
}

impl Entry {
    /// Returns the sort key of the entry.
    fn place(&self) -> (String, String) {
        (self.case.to_string(), self.subject.clone().unwrap_or_default())
    }

    /// Decides what happens with the entry. `is_partial`: the run left out some of its cases.
    fn change(&self, results: &[&CaseResult], strict: bool, is_partial: bool) -> Change {
        let differs = |result: &&&CaseResult| self.difference(result, strict).is_some();
        let failing: Vec<&CaseResult> =
            results.iter().copied().filter(|result| fails(result, strict)).collect();
        if self.is_glob() && !results.is_empty() && !is_partial && failing.is_empty() {
            let is_warning = results.iter().any(|result| result.verdict > Verdict::Pass);
            return if is_warning { Change::None } else { Change::Remove };
        }
        if !results.iter().any(|result| differs(&result)) {
            return Change::None;
        }
        if self.is_glob() {
            let other = failing.iter().filter(differs);
            return Change::Precede(other.map(|result| self.narrowed(result, strict)).collect());
        }
        if failing.is_empty() {
            return Change::Remove;
        }
        let mut written: Vec<String> =
            failing.iter().map(|result| self.narrowed(result, strict)).collect();
        written.dedup();
        if failing.len() == results.len() && self.subject.is_none() {
            // All subjects fail. If they fail in the same checks, one entry describes them.
            let mut whole: Vec<String> = failing
                .iter()
                .map(|result| {
                    Written { subject: String::new(), ..self.of(result, strict) }.written()
                })
                .collect();
            whole.dedup();
            if whole.len() == 1 {
                return Change::Replace(whole);
            }
        }
        Change::Replace(written)
    }

    /// Returns the entry for one of its results.
    fn narrowed(&self, result: &CaseResult, strict: bool) -> String {
        self.of(result, strict).written()
    }

    fn of(&self, result: &CaseResult, strict: bool) -> Written {
        let checks = || failing_checks(result, strict).map(str::to_owned).collect();
        Written {
            case: result.id.clone(),
            subject: result.subject.clone(),
            checks: self.checks.as_ref().map(|_| checks()),
            reason: self.reason.clone(),
            expires: self.expires,
        }
    }
}

struct Written {
    case: String,
    subject: String,
    checks: Option<Vec<String>>,
    reason: String,
    expires: Option<Date>,
}

impl Written {
    /// Creates the entry of a new failure.
    fn unexplained(result: &CaseResult) -> Self {
        Self {
            case: result.id.clone(),
            subject: result.subject.clone(),
            checks: None,
            reason: UNEXPLAINED.to_owned(),
            expires: None,
        }
    }

    /// JSON strings are valid YAML strings, so they can quote any text.
    fn written(&self) -> String {
        let mut out = format!("- case: {}\n", self.case);
        if !self.subject.is_empty() {
            let _ = writeln!(out, "  subject: {}", self.subject);
        }
        if let Some(checks) = &self.checks {
            let _ = writeln!(out, "  checks: [{}]", checks.join(", "));
        }
        let _ = writeln!(out, "  reason: {}", serde_json::Value::from(self.reason.as_str()));
        if let Some(date) = self.expires {
            let _ = writeln!(out, "  expires: {date}");
        }
        out
    }
}

/// The text of a list: a head and one block per entry. Comment lines right above an entry belong to
/// it.
struct ListText {
    head: String,
    blocks: Vec<Block>,
    /// New entries at the end.
    added: String,
}

#[derive(Default)]
struct Block {
    /// New entries before this one.
    before: String,
    comment: String,
    entry: String,
    /// Blank lines, and comments that stand alone.
    tail: String,
}

impl ListText {
    fn of(text: &str, entry_lines: impl Iterator<Item = usize>) -> Self {
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        let starts: Vec<usize> = entry_lines
            .map(|line| {
                let at = line.saturating_sub(1).min(lines.len());
                (0..=at)
                    .rev()
                    .find(|n| lines.get(*n).is_some_and(|l| l.trim_start().starts_with('-')))
                    .unwrap_or(at)
            })
            .collect();
        let is_comment = |n: usize| lines[n].trim_start().starts_with('#');
        let with_comment =
            |start: usize| (0..start).rev().take_while(|n| is_comment(*n)).last().unwrap_or(start);
        let first = starts.first().map_or(lines.len(), |start| with_comment(*start));
        let blocks = starts.iter().enumerate().map(|(n, start)| {
            let end = starts.get(n + 1).map_or(lines.len(), |next| with_comment(*next));
            let is_loose = |at: &usize| is_comment(*at) || lines[*at].trim().is_empty();
            let tail = (*start..end).rev().take_while(is_loose).last().unwrap_or(end);
            let mut entry = lines[*start..tail].concat();
            if !entry.ends_with('\n') {
                entry.push('\n');
            }
            let comment = lines[with_comment(*start)..*start].concat();
            Block { before: String::new(), comment, entry, tail: lines[tail..end].concat() }
        });
        Self { head: lines[..first].concat(), blocks: blocks.collect(), added: String::new() }
    }

    /// Removes an entry and its comment. Comments that stand alone stay.
    fn remove(&mut self, n: usize) {
        let tail = std::mem::take(&mut self.blocks[n].tail);
        let tail = if tail.contains('#') { tail } else { String::new() };
        self.blocks[n] = Block { tail, ..Block::default() };
    }

    /// Replaces an entry. The comment lines in it move above it.
    fn replace(&mut self, n: usize, entries: &[String]) {
        let block = &mut self.blocks[n];
        let inner = block.entry.split_inclusive('\n').map(str::trim_start);
        let inner = inner.filter(|line| line.starts_with('#'));
        block.comment.push_str(&inner.collect::<String>());
        block.entry = entries.concat();
    }

    /// Adds entries before an entry, which keeps its comment.
    fn precede(&mut self, n: usize, entries: &[String]) {
        self.blocks[n].before.push_str(&entries.concat());
    }

    /// Adds an entry before the n-th one, or at the end.
    fn add(&mut self, n: Option<usize>, entry: &str) {
        match n {
            Some(n) => self.blocks[n].before.push_str(entry),
            None => self.added.push_str(entry),
        }
    }

    fn into_text(self) -> String {
        let mut text = self.head;
        for block in self.blocks {
            for part in [block.before, block.comment, block.entry, block.tail] {
                text.push_str(&part);
            }
        }
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text + &self.added
    }
}
