//! What is wrong with a file, where, and what would be right.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};

use crate::yaml::Source;
use crate::yaml::Span;

/// Every code that a diagnostic can have.
pub const CODES: [&str; 59] = [
    "cannot-fail",
    "circular-let",
    "conditional-step",
    "duplicate",
    "duplicate-id",
    "duplicate-member",
    "empty",
    "file-name",
    "invalid-cel",
    "invalid-json",
    "invalid-regex",
    "level-too-high",
    "malformed-bytes",
    "malformed-header",
    "malformed-id",
    "malformed-message",
    "malformed-method",
    "malformed-path",
    "malformed-protobuf",
    "malformed-pattern",
    "malformed-pointer",
    "malformed-resource",
    "malformed-variable",
    "missing-key",
    "never-judged",
    "never-runs",
    "no-body",
    "no-case",
    "no-check",
    "no-content-type",
    "no-profile",
    "no-requirement",
    "no-response",
    "no-subject",
    "one-of",
    "out-of-range",
    "reserved-name",
    "stale-reason",
    "step-as-value",
    "unasked-capability",
    "unasked-subject",
    "undefined-variable",
    "unexpected-body",
    "unfit-protocol",
    "unknown-fault",
    "unknown-fragment",
    "unknown-function",
    "unknown-key",
    "unknown-member",
    "unknown-name",
    "unknown-protocol",
    "unknown-reason",
    "unknown-requirement",
    "unknown-resource",
    "unknown-value",
    "unused-capture",
    "unused-let",
    "wrong-type",
    "yaml",
];

/// One thing that is wrong.
#[derive(Clone, Debug)]
pub struct Diagnostic {
    /// A stable name, as `unknown-key`.
    pub code: &'static str,
    /// What the checker found and expected.
    pub message: String,
    /// How to fix it.
    pub help: Option<String>,
    /// The file.
    pub file: Arc<str>,
    /// Where in it.
    pub span: Span,
    place: Range<usize>,
    text: Arc<str>,
}

impl Diagnostic {
    pub(crate) fn new(
        source: &Source,
        place: Range<usize>,
        code: &'static str,
        message: impl Into<String>,
    ) -> Self {
        debug_assert!(CODES.contains(&code), "`{code}` is not listed");
        let end = source.text.len();
        let place = place.start.min(end)..place.end.min(end);
        Self {
            code,
            message: message.into(),
            help: None,
            file: Arc::clone(&source.name),
            span: source.span(place.start),
            place,
            text: Arc::clone(&source.text),
        }
    }

    /// Whether it shows this place of this file.
    pub(crate) fn stands_at(&self, source: &Source, place: &Range<usize>) -> bool {
        self.file == source.name && self.place == *place
    }

    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Names the nearest of the right spellings, if one is near; else all of them, if they are few.
    pub(crate) fn suggest<'a>(self, wrong: &str, right: impl IntoIterator<Item = &'a str>) -> Self {
        let right: Vec<&str> = right.into_iter().collect();
        if let Some(nearest) = nearest(wrong, right.iter().copied()) {
            return self.help(format!("did you mean `{nearest}`?"));
        }
        match right.len() {
            0 | 16.. => self,
            _ => self.help(format!("known are `{}`", right.join("`, `"))),
        }
    }

    /// The message with the lines it speaks of, as compilers write it.
    pub fn render(&self, renderer: &Renderer) -> String {
        let snippet = Snippet::source(&*self.text)
            .path(&*self.file)
            .annotation(AnnotationKind::Primary.span(self.first_line()));
        let report =
            Level::ERROR.primary_title(self.message.as_str()).id(self.code).element(snippet);
        let report = match &self.help {
            Some(help) => report.element(Level::HELP.message(help.as_str())),
            None => report,
        };
        renderer.render(&[report])
    }

    /// A place of many lines is shown by its first.
    fn first_line(&self) -> Range<usize> {
        let text = self.text.get(self.place.clone()).unwrap_or_default();
        let len = text.lines().next().unwrap_or_default().trim_end().len();
        self.place.start..self.place.start + len
    }
}

/// The spelling that was probably meant.
pub(crate) fn nearest<'a>(
    wrong: &str,
    right: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    right
        .into_iter()
        .map(|candidate| (strsim::jaro_winkler(wrong, candidate), candidate))
        .filter(|(similarity, _)| *similarity > 0.8)
        .max_by(|(a, _), (b, _)| a.total_cmp(b))
        .map(|(_, candidate)| candidate)
}

/// Everything that is wrong, in the order of files and lines.
#[derive(Clone, Debug, Default)]
pub struct Diagnostics(Vec<Diagnostic>);

impl Diagnostics {
    /// Returns whether there are no diagnostics.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the number of diagnostics.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// One by one.
    pub fn iter(&self) -> std::slice::Iter<'_, Diagnostic> {
        self.0.iter()
    }

    /// All of them as compilers write them, with colours or without.
    pub fn render(&self, color: bool) -> String {
        let renderer = if color { Renderer::styled() } else { Renderer::plain() };
        self.0
            .iter()
            .map(|diagnostic| diagnostic.render(&renderer) + "\n")
            .collect::<Vec<_>>()
            .join("\n")
    }

    pub(crate) fn extend(&mut self, other: impl IntoIterator<Item = Diagnostic>) {
        self.0.extend(other);
    }

    pub(crate) fn sort(&mut self) {
        self.0.sort_by(|a, b| (&a.file, a.place.start).cmp(&(&b.file, b.place.start)));
    }
}

impl IntoIterator for Diagnostics {
    type Item = Diagnostic;
    type IntoIter = std::vec::IntoIter<Diagnostic>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'a> IntoIterator for &'a Diagnostics {
    type Item = &'a Diagnostic;
    type IntoIter = std::slice::Iter<'a, Diagnostic>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.render(false).trim_end())
    }
}

impl std::error::Error for Diagnostics {}
