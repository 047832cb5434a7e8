//! Colours, or none.

use std::fmt::Display;

use anstyle::{AnsiColor, Style};
use kubeproof_harness::event::Verdict;

/// Paints text when colours are on.
#[derive(Clone, Copy, Debug)]
pub struct Paint {
    on: bool,
}

impl Paint {
    /// Colours, or plain text.
    pub fn new(on: bool) -> Self {
        Self { on }
    }

    /// Plain text.
    pub fn plain() -> Self {
        Self { on: false }
    }

    /// The verdict's colour.
    pub fn verdict(self, verdict: Verdict, text: impl Display) -> String {
        let style = match verdict {
            Verdict::Pass => AnsiColor::Green.on_default(),
            Verdict::Deviation => AnsiColor::Cyan.on_default(),
            Verdict::Warn => AnsiColor::Yellow.on_default().bold(),
            Verdict::Fail => AnsiColor::Red.on_default().bold(),
            Verdict::Error => AnsiColor::Magenta.on_default().bold(),
            Verdict::Skip => Style::new().dimmed(),
        };
        self.style(style, text)
    }

    /// What matters most.
    pub fn bold(self, text: impl Display) -> String {
        self.style(Style::new().bold(), text)
    }

    /// What matters least.
    pub fn dim(self, text: impl Display) -> String {
        self.style(Style::new().dimmed(), text)
    }

    /// A line of a diff.
    pub fn diff_line(self, line: &str) -> String {
        match line.as_bytes().first() {
            Some(b'-') => self.style(AnsiColor::Red.on_default(), line),
            Some(b'+') => self.style(AnsiColor::Green.on_default(), line),
            Some(b'@') => self.style(AnsiColor::Cyan.on_default(), line),
            _ => line.to_owned(),
        }
    }

    fn style(self, style: Style, text: impl Display) -> String {
        if self.on { format!("{style}{text}{style:#}") } else { text.to_string() }
    }
}

/// A verdict as people read it.
pub fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Pass => "pass",
        Verdict::Deviation => "deviation",
        Verdict::Warn => "warn",
        Verdict::Fail => "fail",
        Verdict::Error => "error",
        Verdict::Skip => "skip",
    }
}
