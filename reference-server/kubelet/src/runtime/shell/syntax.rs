//! The syntax tree of a script.

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct List(pub(super) Vec<Chain>);

/// `a && b || c`, or `a && b &`
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Chain {
    pub(super) first: Pipeline,
    pub(super) rest: Vec<(Link, Pipeline)>,
    /// `&` runs the list in the background.
    pub(super) background: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Link {
    And,
    Or,
}

/// `! a | b`
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pipeline {
    pub(super) negated: bool,
    pub(super) stages: Vec<Stage>,
}

/// A command with its redirections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stage {
    pub(super) command: Command,
    pub(super) redirects: Vec<Redirect>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Command {
    Simple { assignments: Vec<(String, Word)>, words: Vec<Word> },
    Group(List),
    Subshell(List),
    If { branches: Vec<(List, List)>, otherwise: List },
    Loop { until: bool, condition: List, body: List },
    For { variable: String, words: Option<Vec<Word>>, body: List },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Redirect {
    /// 0, 1 or 2.
    pub(super) stream: u8,
    pub(super) to: Target,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Target {
    Read(Word),
    Write(Word),
    Append(Word),
    /// A copy of another stream.
    Stream(u8),
}

/// A word before expansion.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Word(pub(super) Vec<Part>);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Text { text: String, quoted: bool },
    Parameter { name: String, form: Form, quoted: bool },
    Output { list: List, quoted: bool },
    Number { expression: Word, quoted: bool },
}

/// The form of a parameter expansion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// The value.
    Plain,
    /// The length of the value.
    Length,
    /// A default for an unset, and possibly for an empty, parameter.
    Default { word: Word, also_empty: bool },
    /// The value without a suffix or a prefix.
    Without { word: Word, end: bool },
}

impl Word {
    /// Returns the text of a word without quotes and expansions, as keywords are.
    pub(super) fn bare(&self) -> Option<&str> {
        match self.0.as_slice() {
            [Part::Text { text, quoted: false }] => Some(text),
            _ => None,
        }
    }
}

/// Why a script is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum SyntaxError {
    /// Further lines could complete the script.
    #[error("syntax error: unexpected end of file")]
    Incomplete,
    #[error("syntax error: unexpected {0:?}")]
    Unexpected(String),
    /// POSIX has this syntax, but this shell does not support it.
    #[error("{0} is not supported by this shell")]
    Unsupported(&'static str),
}
