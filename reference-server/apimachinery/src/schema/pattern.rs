//! Regular expressions in the syntax of Go, which kube-apiserver uses for patterns and CEL.
//!
//! Both syntaxes descend from RE2. [`syntax`] finds the mistakes that Go reports. [`translate`]
//! rewrites the differences: Go has no nested classes and class operators, its Perl classes are
//! ASCII, and a brace can be a literal.

mod repetition;
mod syntax;
mod translate;

use std::sync::Arc;

use regex::{Regex, RegexBuilder};

use self::translate::translate;

/// The names of classes such as `[:alpha:]`.
const CLASSES: [&str; 14] = [
    "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct",
    "space", "upper", "word", "xdigit",
];

/// The properties of the crate `regex` that are no categories or scripts, without separators.
const NO_CATEGORIES: [&str; 14] = [
    "alphabetic",
    "dash",
    "emoji",
    "extender",
    "hexdigit",
    "ideographic",
    "idcontinue",
    "idstart",
    "lowercase",
    "math",
    "uppercase",
    "whitespace",
    "xidcontinue",
    "xidstart",
];

/// The names of categories and scripts that have four letters.
const FOUR_LETTERS: [&str; 9] =
    ["ahom", "cham", "kawi", "lisu", "mark", "modi", "newa", "thai", "toto"];

/// A pattern that does not compile.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PatternError {
    /// Go rejects the pattern.
    #[error("error parsing regexp: {0}")]
    Syntax(String),
    /// The compiled pattern exceeds the limit for its size.
    #[error("the compiled pattern exceeds the size limit of {0} bytes")]
    TooLarge(usize),
}

/// A compiled pattern, with its text in the syntax of Go.
#[derive(Clone, Debug)]
pub struct Pattern {
    text: Arc<str>,
    regex: Regex,
}

impl Pattern {
    /// Compiles a pattern, as [`compile`] does.
    pub(crate) fn compile(pattern: &str, size: usize) -> Result<Self, PatternError> {
        Ok(Self { text: pattern.into(), regex: compile(pattern, size)? })
    }

    /// Returns the pattern as the author of the schema wrote it.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    pub(crate) fn is_match(&self, text: &str) -> bool {
        self.regex.is_match(text)
    }
}

/// Compiles a pattern in the syntax of Go. `size` limits the memory of the compiled pattern.
pub(crate) fn compile(pattern: &str, size: usize) -> Result<Regex, PatternError> {
    syntax::check(pattern).map_err(|mistake| PatternError::Syntax(mistake.to_string()))?;
    let translated = translate(pattern);
    let mut builder = RegexBuilder::new(&translated);
    builder.octal(true).size_limit(size).dfa_size_limit(size);
    builder.build().map_err(|error| match error {
        regex::Error::CompiledTooBig(limit) => PatternError::TooLarge(limit),
        other => PatternError::Syntax(other.to_string()),
    })
}

/// Checks the syntax of a pattern without compiling it for matching.
pub(crate) fn check(pattern: &str) -> Result<(), PatternError> {
    match compile(pattern, 1 << 20) {
        Ok(_) | Err(PatternError::TooLarge(_)) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Reports whether Go knows a category or script.
fn is_property(name: &str) -> bool {
    let plain: String =
        name.chars().filter(|c| !"_- ".contains(*c)).collect::<String>().to_lowercase();
    !name.is_empty()
        && !name.contains(['=', ':', '!', '}', '^'])
        && !NO_CATEGORIES.contains(&plain.as_str())
        // Go has no short names of scripts, which have four letters, and no prefix.
        && (plain.len() != 4 || FOUR_LETTERS.contains(&plain.as_str()))
        && !plain.starts_with("is")
        && Regex::new(&format!(r"\p{{{name}}}")).is_ok()
}

#[cfg(test)]
mod tests;
