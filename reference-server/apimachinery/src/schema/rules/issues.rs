//! The mistakes of an expression, in the form in which kube-apiserver reports them.

use cel::common::ast::SourceInfo;

/// Mistakes beyond this number are only counted.
const MAX_ISSUES: usize = 100;
/// The indicators below characters of one byte, and of more.
const NARROW: [char; 2] = ['.', '^'];
const WIDE: [char; 2] = ['\u{ff0e}', '\u{ff3e}'];

/// Returns the mistakes that the parser reports, in the words of kube-apiserver.
pub(super) fn of_parser(text: &str) -> String {
    let line = |line: &str| {
        if line.starts_with("| ") {
            return format!(" {line}");
        }
        let Some((place, why)) = line.split_once(": invalid ") else { return line.to_owned() };
        let why = match why.split_once(" literal: ") {
            Some(("string", why)) if why.starts_with("InvalidUnicode") => {
                "invalid unicode code point".to_owned()
            }
            Some(("string" | "bytes", _)) => "unable to unescape string".to_owned(),
            Some((kind, _)) => format!("invalid {kind} literal"),
            None => return line.to_owned(),
        };
        format!("{place}: {why}")
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

#[derive(Debug)]
pub(super) struct Issues<'p> {
    source: &'p SourceInfo,
    found: Vec<Issue>,
    count: usize,
}

#[derive(Debug)]
struct Issue {
    /// The index of the line, and of the character in it.
    place: (usize, usize),
    message: String,
}

impl<'p> Issues<'p> {
    pub(super) fn new(source: &'p SourceInfo) -> Self {
        Self { source, found: Vec::new(), count: 0 }
    }

    /// Reports whether a part of the expression has a place in the text.
    pub(super) fn knows(&self, id: u64) -> bool {
        self.source.offset_for(id).is_some()
    }

    /// Reports whether a part is a call of a function, whose place is the parenthesis.
    pub(super) fn is_called(&self, id: u64, function: &str) -> bool {
        let start = self.source.offset_for(id).map_or(0, |(start, _)| start as usize);
        let before = self.source.source.get(..start).unwrap_or_default();
        before.trim_end().ends_with(function)
    }

    /// Records a mistake of the part with this number.
    pub(super) fn report(&mut self, id: u64, message: String) {
        self.count += 1;
        if self.found.len() < MAX_ISSUES {
            self.found.push(Issue { place: self.place(id), message });
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// Returns all mistakes in the order of their places.
    pub(super) fn text(mut self) -> String {
        self.found.sort_by_key(|issue| issue.place);
        let shown = self.found.iter().map(|issue| self.shown(issue));
        let mut shown: Vec<String> = shown.collect();
        if self.count > MAX_ISSUES {
            shown.push(format!("{} more errors were truncated", self.count - MAX_ISSUES));
        }
        shown.join("\n")
    }

    fn place(&self, id: u64) -> (usize, usize) {
        let start = self.source.offset_for(id).map_or(0, |(start, _)| start as usize);
        let before = self.source.source.get(..start).unwrap_or_default();
        let line = before.rsplit_once('\n').map_or(before, |(_, line)| line);
        (before.matches('\n').count(), line.chars().count())
    }

    fn shown(&self, issue: &Issue) -> String {
        let (line, column) = issue.place;
        let text = self.source.source.lines().nth(line).unwrap_or_default().replace('\t', " ");
        let width = |c: char| usize::from(c.len_utf8() > 1);
        let mut marks: String =
            text.chars().take(column).map(|c| [NARROW[0], WIDE[0]][width(c)]).collect();
        marks.push([NARROW[1], WIDE[1]][text.chars().nth(column).map_or(0, width)]);
        let (line, column) = (line + 1, column + 1);
        let message = &issue.message;
        format!("ERROR: <input>:{line}:{column}: {message}\n | {text}\n | {marks}")
    }
}

#[cfg(test)]
mod tests {
    use super::super::library::env;
    use super::*;

    /// kube-apiserver 1.36.2 reports a mistake of the same expression in this way.
    #[test]
    fn an_issue_shows_its_place() {
        let program = env().compile("'é' ==\n\tzz && 1").expect("an expression");
        let mut issues = Issues::new(program.source_info());
        let mut id = 0;
        while !issues.knows(id) || issues.place(id) != (1, 1) {
            id += 1;
        }
        issues.report(id, "no zz".to_owned());
        assert_eq!(issues.text(), "ERROR: <input>:2:2: no zz\n |  zz && 1\n | .^");
    }

    #[test]
    fn the_parser_has_the_words_of_kubernetes() {
        let error = |text: &str| of_parser(&env().compile(text).unwrap_err().to_string());
        assert!(error(r"b'\u00e9'").contains(": unable to unescape string\n"));
        assert!(error("1 +").contains("\n | 1 +\n | ...^"));
        assert!(error(r"'\ud800'").contains(": invalid unicode code point\n"));
    }

    #[test]
    fn issues_are_sorted_and_limited() {
        let program = env().compile("'é' == a").expect("an expression");
        let mut issues = Issues::new(program.source_info());
        let ids: Vec<u64> = (0..9).filter(|id| issues.knows(*id)).collect();
        for _ in 0..40 {
            for id in ids.iter().rev() {
                issues.report(*id, format!("{:?}", issues.place(*id)));
            }
        }
        let text = issues.text();
        assert!(text.starts_with("ERROR: <input>:1:1: (0, 0)\n | 'é' == a\n | ^\n"), "{text}");
        assert!(text.contains("(0, 4)\n | 'é' == a\n | .\u{ff0e}..^\n"), "{text}");
        assert!(text.ends_with("20 more errors were truncated"), "{text}");
    }
}
