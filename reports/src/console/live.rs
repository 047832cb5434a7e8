//! Progress during a run, on standard error.

use std::collections::BTreeMap;
use std::io::Write;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use kubeproof_cases::plural;

use super::Verbosity;
use crate::document::{Head, Record, Summary};
use crate::paint::{Paint, verdict_name};
use crate::text::{self, shorten};

/// Maximum running cases beside the progress bar.
const NAMED: usize = 2;
const NAME_COLUMNS: usize = 60;
/// Results of a run that prints its progress to a log.
const LONG: usize = 200;

/// The progress output.
pub struct Live {
    sink: Sink,
    paint: Paint,
    counts: Summary,
    planned: usize,
    running: BTreeMap<String, usize>,
}

enum Sink {
    None,
    Lines(Box<dyn Write + Send>),
    Bar(ProgressBar),
}

impl Live {
    /// Creates an output that shows nothing.
    pub fn none() -> Self {
        Self::new(Sink::None, Paint::plain())
    }

    /// Creates an output with a line at half of a long run, for logs.
    pub fn lines(out: impl Write + Send + 'static, paint: Paint) -> Self {
        Self::new(Sink::Lines(Box::new(out)), paint)
    }

    /// Creates a progress bar on standard error, which must be a terminal.
    pub fn bar(paint: Paint) -> Self {
        Self::new(Sink::Bar(ProgressBar::hidden()), paint)
    }

    fn new(sink: Sink, paint: Paint) -> Self {
        Self { sink, paint, counts: Summary::default(), planned: 0, running: BTreeMap::new() }
    }

    pub(super) fn started(&mut self, head: &Head) {
        if head.planned == 0 {
            // The run ended before its plan. Its reason is the first line.
            return;
        }
        let target = &head.target;
        let details = match &target.version {
            _ if target.bundled => " (no --server or --kubeconfig given)".to_owned(),
            Some(version) => format!(" ({version})"),
            None => String::new(),
        };
        let namespace = match target.namespace.as_str() {
            "" => String::new(),
            namespace => format!(", namespace {namespace}"),
        };
        self.line(&format!(
            "testing {}{details}: {}, seed {}{namespace}",
            target.name(),
            plural(head.planned, "result"),
            head.seed
        ));
        self.planned = head.planned;
        if let Sink::Bar(bar) = &mut self.sink {
            *bar = ProgressBar::new(head.planned as u64);
            if let Ok(style) = ProgressStyle::with_template("{bar:24} {pos}/{len} {elapsed} {msg}")
            {
                bar.set_style(style);
            }
            bar.enable_steady_tick(Duration::from_millis(100));
        }
    }

    pub(super) fn case_started(&mut self, id: &str, subject: &str) {
        *self.running.entry(name(id, subject)).or_default() += 1;
        self.refresh();
    }

    pub(super) fn case_finished(&mut self, record: &Record, verbosity: Verbosity) {
        let name = name(&record.id, &record.subject);
        if let Some(count) = self.running.get_mut(&name) {
            *count -= 1;
            if *count == 0 {
                self.running.remove(&name);
            }
        }
        self.counts.add(record.verdict);
        match &self.sink {
            Sink::None => {}
            Sink::Lines(_) => self.half(),
            Sink::Bar(bar) => bar.inc(1),
        }
        if verbosity >= Verbosity::Passes {
            self.line(&text::title(record, self.paint));
        }
        self.refresh();
    }

    /// Reports whether lines are printed.
    pub(super) fn is_shown(&self) -> bool {
        !matches!(self.sink, Sink::None)
    }

    /// Prints a line. After a write error the output stays silent, because progress is optional.
    pub(super) fn line(&mut self, line: &str) {
        match &mut self.sink {
            Sink::None => {}
            Sink::Lines(out) => {
                if writeln!(out, "{line}").and_then(|()| out.flush()).is_err() {
                    self.sink = Sink::None;
                }
            }
            Sink::Bar(bar) if bar.is_hidden() => _ = writeln!(std::io::stderr(), "{line}"),
            Sink::Bar(bar) => bar.println(line),
        }
    }

    /// Prints the counts after half of a long run, because some CI systems stop a job without
    /// output.
    fn half(&mut self) {
        let done = self.counts.total();
        if self.planned < LONG || done != self.planned / 2 {
            return;
        }
        self.line(&format!("{done} of {}: {}", self.planned, self.counted().join(", ")));
    }

    /// Returns the verdicts so far with their numbers.
    fn counted(&self) -> Vec<String> {
        let counts = self.counts.counts().into_iter().filter(|(_, count)| *count > 0);
        let counts = counts.map(|(verdict, count)| {
            self.paint.verdict(verdict, format!("{count} {}", verdict_name(verdict)))
        });
        counts.collect()
    }

    pub(super) fn finish(&mut self) {
        if let Sink::Bar(bar) = &self.sink {
            bar.finish_and_clear();
        }
    }

    fn refresh(&self) {
        let Sink::Bar(bar) = &self.sink else { return };
        let mut parts = self.counted();
        parts.extend(
            self.running.keys().take(NAMED).map(|name| self.paint.dim(shorten(name, NAME_COLUMNS))),
        );
        if self.running.len() > NAMED {
            parts.push(self.paint.dim(format!("and {} more", self.running.len() - NAMED)));
        }
        bar.set_message(parts.join("  "));
    }
}

fn name(id: &str, subject: &str) -> String {
    if subject.is_empty() { id.to_owned() } else { format!("{id} @ {subject}") }
}
