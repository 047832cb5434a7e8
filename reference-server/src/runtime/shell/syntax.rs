//! The tree of a script.

/// Commands, one after the other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct List(pub(super) Vec<Chain>);

/// `a && b || c`, or `a && b &`
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Chain {
    pub(super) first: Pipeline,
    pub(super) rest: Vec<(Link, Pipeline)>,
    /// `&`: what follows does not wait for it.
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

/// A command and where its streams lead.
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
    /// The same as another stream.
    Stream(u8),
}

/// A word, before anything in it is expanded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Word(pub(super) Vec<Part>);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Text { text: String, quoted: bool },
    Parameter { name: String, form: Form, quoted: bool },
    Output { list: List, quoted: bool },
    Number { expression: Word, quoted: bool },
}

/// What is taken of a parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// Its value.
    Plain,
    /// How long it is.
    Length,
    /// Another word where it is unset, or also where it is empty.
    Default { word: Word, also_empty: bool },
    /// Its value without a literal end, or without a literal beginning.
    Without { word: Word, end: bool },
}

impl Word {
    /// The text of a word that is neither quoted nor expanded, as keywords have to be.
    pub(super) fn bare(&self) -> Option<&str> {
        match self.0.as_slice() {
            [Part::Text { text, quoted: false }] => Some(text),
            _ => None,
        }
    }
}

/// Why a text is no script.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum SyntaxError {
    /// More lines could complete it.
    #[error("syntax error: unexpected end of file")]
    Incomplete,
    #[error("syntax error: unexpected {0:?}")]
    Unexpected(String),
    /// A shell would know it, this one does not.
    #[error("{0} is not supported by this shell")]
    Unsupported(&'static str),
}
