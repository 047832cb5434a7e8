//! Colours of terminal output.

use std::fmt::Display;

use anstyle::{AnsiColor, Style};
use kubeproof_harness::event::Verdict;

/// Adds colours to text, if they are enabled.
#[derive(Clone, Copy, Debug)]
pub struct Paint {
    on: bool,
}

impl Paint {
    /// Creates a painter that adds colours if `on` is true.
    pub fn new(on: bool) -> Self {
        Self { on }
    }

    /// Creates a painter that adds no colours.
    pub fn plain() -> Self {
        Self { on: false }
    }

    /// Returns the text in the colour of the verdict.
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

    /// Returns the text in bold.
    pub fn bold(self, text: impl Display) -> String {
        self.style(Style::new().bold(), text)
    }

    /// Returns the text dimmed.
    pub fn dim(self, text: impl Display) -> String {
        self.style(Style::new().dimmed(), text)
    }

    /// Returns a line of a unified diff in its colour.
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

/// Returns the name of a verdict in lower case.
pub fn verdict_name(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Pass => "pass",
        Verdict::Deviation => "deviation",
        Verdict::Warn => "warn",
        Verdict::Fail => "fail",
        Verdict::Error => "error",
        Verdict::Skip => "skip",
    }
}
