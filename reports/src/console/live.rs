//! Progress while a run goes.

use std::collections::BTreeMap;
use std::io::Write;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use kubeproof_harness::event::Verdict;

use super::Verbosity;
use crate::document::{Head, Record, Summary};
use crate::paint::Paint;
use crate::text::{self, shorten};

/// Running cases that are named beside the bar.
const NAMED: usize = 2;
const NAME_COLUMNS: usize = 60;

/// Where progress is shown.
pub struct Live {
    sink: Sink,
    paint: Paint,
    counts: Summary,
    running: BTreeMap<String, usize>,
}

enum Sink {
    Nowhere,
    Lines(Box<dyn Write + Send>),
    Bar(ProgressBar),
}

impl Live {
    /// No progress.
    pub fn none() -> Self {
        Self::new(Sink::Nowhere, Paint::plain())
    }

    /// A line per result that is not as it should be, for logs.
    pub fn lines(out: impl Write + Send + 'static, paint: Paint) -> Self {
        Self::new(Sink::Lines(Box::new(out)), paint)
    }

    /// A progress bar on standard error, which has to be a terminal.
    pub fn bar(paint: Paint) -> Self {
        Self::new(Sink::Bar(ProgressBar::hidden()), paint)
    }

    fn new(sink: Sink, paint: Paint) -> Self {
        Self { sink, paint, counts: Summary::default(), running: BTreeMap::new() }
    }

    pub(super) fn started(&mut self, head: &Head) {
        let version =
            head.target.version.as_deref().map(|version| format!(" ({version})")).unwrap_or_default();
        let namespace = match head.target.namespace.as_str() {
            "" => String::new(),
            namespace => format!(", namespace {namespace}"),
        };
        self.line(&format!(
            "testing {}{version}: {}, seed {}{namespace}",
            head.target.server,
            text::plural(head.planned, "result"),
            head.seed
        ));
        if let Sink::Bar(bar) = &mut self.sink {
            *bar = ProgressBar::new(head.planned as u64);
            if let Ok(style) = ProgressStyle::with_template("{bar:24} {pos}/{len} {elapsed} {msg}") {
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
        if let Sink::Bar(bar) = &self.sink {
            bar.inc(1);
        }
        let told = match verbosity {
            Verbosity::Quiet => false,
            Verbosity::Normal => {
                record.is_remarkable() && record.verdict != Verdict::Deviation && !record.is_known()
            }
            Verbosity::Passes | Verbosity::Exchanges => true,
        };
        if told {
            self.line(&text::title(record, self.paint));
        }
        self.refresh();
    }

    /// Progress is a courtesy: where nobody listens any more, it is dropped.
    pub(super) fn line(&mut self, line: &str) {
        match &mut self.sink {
            Sink::Nowhere => {}
            Sink::Lines(out) => {
                if writeln!(out, "{line}").and_then(|()| out.flush()).is_err() {
                    self.sink = Sink::Nowhere;
                }
            }
            Sink::Bar(bar) if bar.is_hidden() => _ = writeln!(std::io::stderr(), "{line}"),
            Sink::Bar(bar) => bar.println(line),
        }
    }

    pub(super) fn finish(&mut self) {
        if let Sink::Bar(bar) = &self.sink {
            bar.finish_and_clear();
        }
    }

    fn refresh(&self) {
        let Sink::Bar(bar) = &self.sink else { return };
        let counts = self.counts.counts().into_iter().filter(|(_, count)| *count > 0);
        let mut words: Vec<_> = counts
            .map(|(verdict, count)| {
                self.paint.verdict(verdict, format!("{count} {}", crate::paint::word(verdict)))
            })
            .collect();
        words.extend(self.running.keys().take(NAMED).map(|name| self.paint.dim(shorten(name, NAME_COLUMNS))));
        if self.running.len() > NAMED {
            words.push(self.paint.dim(format!("and {} more", self.running.len() - NAMED)));
        }
        bar.set_message(words.join("  "));
    }
}

fn name(id: &str, subject: &str) -> String {
    if subject.is_empty() { id.to_owned() } else { format!("{id} @ {subject}") }
}
