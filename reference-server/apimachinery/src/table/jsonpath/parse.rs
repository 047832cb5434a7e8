//! The parser of `JSONPath` texts.

use serde_json::Value;

use super::{Comparison, Filter, JsonPath, JsonPathError, Operand, Step};

/// The maximum nesting of filters in filters.
const MAX_NESTING: usize = 8;

pub(super) fn path(text: &str) -> Result<JsonPath, JsonPathError> {
    let mut parser = Parser { text, at: 0, nesting: 0 };
    let braced = parser.eat("{");
    if !parser.eat("$") {
        parser.eat("@");
    }
    let steps = parser.steps()?;
    if braced && !parser.eat("}") {
        return parser.fail("'}'");
    }
    if parser.rest().is_empty() { Ok(JsonPath { steps }) } else { parser.fail("a '.' or '['") }
}

struct Parser<'t> {
    text: &'t str,
    at: usize,
    nesting: usize,
}

impl Parser<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn eat(&mut self, token: &str) -> bool {
        let found = self.rest().starts_with(token);
        if found {
            self.at += token.len();
        }
        found
    }

    fn require(&mut self, token: &str, expected: &'static str) -> Result<(), JsonPathError> {
        if self.eat(token) { Ok(()) } else { self.fail(expected) }
    }

    fn skip_space(&mut self) {
        self.at = self.text.len() - self.rest().trim_start().len();
    }

    fn fail<T>(&self, expected: &'static str) -> Result<T, JsonPathError> {
        Err(JsonPathError { expected, offset: self.at })
    }

    fn steps(&mut self) -> Result<Vec<Step>, JsonPathError> {
        let mut steps = Vec::new();
        loop {
            if self.eat("..") {
                steps.push(Step::Descendants);
                if !self.rest().starts_with('[') {
                    steps.push(self.field()?);
                }
            } else if self.eat(".") {
                steps.push(self.field()?);
            } else if self.eat("[") {
                steps.push(self.bracket()?);
                self.skip_space();
                self.require("]", "']'")?;
            } else {
                return Ok(steps);
            }
        }
    }

    /// Parses a name after a dot. A backslash escapes the next character.
    fn field(&mut self) -> Result<Step, JsonPathError> {
        if self.eat("*") {
            return Ok(Step::All);
        }
        let mut name = String::new();
        while let Some(c) = self.rest().chars().next() {
            match c {
                '\\' => {
                    self.at += 1;
                    let Some(escaped) = self.rest().chars().next() else {
                        return self.fail("an escaped character");
                    };
                    name.push(escaped);
                    self.at += escaped.len_utf8();
                }
                c if c.is_alphanumeric() || matches!(c, '_' | '-' | '/') => {
                    name.push(c);
                    self.at += c.len_utf8();
                }
                _ => break,
            }
        }
        if name.is_empty() { self.fail("a field name") } else { Ok(Step::Fields(vec![name])) }
    }

    fn bracket(&mut self) -> Result<Step, JsonPathError> {
        self.skip_space();
        if self.eat("*") {
            return Ok(Step::All);
        }
        if self.eat("?(") {
            let filter = self.filter()?;
            self.require(")", "a comparison or ')'")?;
            return Ok(Step::Filter(filter));
        }
        if let Some(quote) = self.quote() {
            let mut names = vec![self.quoted(quote)?];
            while self.eat(",") {
                self.skip_space();
                let Some(quote) = self.quote() else { return self.fail("a quoted name") };
                names.push(self.quoted(quote)?);
            }
            return Ok(Step::Fields(names));
        }
        let from = self.integer()?;
        if !self.eat(":") {
            return from.map_or_else(
                || self.fail("an index, name, filter or '*'"),
                |index| Ok(Step::Index(index)),
            );
        }
        let to = self.integer()?;
        if !self.eat(":") {
            return Ok(Step::Slice(from, to, 1));
        }
        let offset = self.at;
        match usize::try_from(self.integer()?.unwrap_or(1)) {
            Ok(step) if step > 0 => Ok(Step::Slice(from, to, step)),
            _ => Err(JsonPathError { expected: "a step above zero", offset }),
        }
    }

    fn filter(&mut self) -> Result<Filter, JsonPathError> {
        const COMPARISONS: [(&str, Comparison); 6] = [
            ("==", Comparison::Equal),
            ("!=", Comparison::NotEqual),
            ("<=", Comparison::LessOrEqual),
            (">=", Comparison::GreaterOrEqual),
            ("<", Comparison::Less),
            (">", Comparison::Greater),
        ];
        if self.nesting == MAX_NESTING {
            return self.fail("filters nested less deeply");
        }
        self.nesting += 1;
        let left = self.operand()?;
        let found = COMPARISONS.iter().find(|(token, _)| self.rest().starts_with(token));
        let comparison = match found {
            None => None,
            Some((token, comparison)) => {
                self.at += token.len();
                Some((*comparison, self.operand()?))
            }
        };
        self.nesting -= 1;
        Ok(Filter { left, comparison })
    }

    fn operand(&mut self) -> Result<Operand, JsonPathError> {
        self.skip_space();
        let operand = if self.eat("@") || self.rest().starts_with('.') {
            Operand::Path(JsonPath { steps: self.steps()? })
        } else if let Some(quote) = self.quote() {
            Operand::Literal(self.quoted(quote)?.into())
        } else {
            let length = self
                .rest()
                .find(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '-' | '+' | '.'));
            let word = &self.rest()[..length.unwrap_or(self.rest().len())];
            let literal = match word {
                "true" => Value::Bool(true),
                "false" => Value::Bool(false),
                number => match number.parse::<i64>() {
                    Ok(integer) => integer.into(),
                    Err(_) => number.parse::<f64>().map_or(Value::Null, Value::from),
                },
            };
            if literal.is_null() {
                return self.fail("a path, string, number, true or false");
            }
            self.at += word.len();
            Operand::Literal(literal)
        };
        self.skip_space();
        Ok(operand)
    }

    fn quote(&mut self) -> Option<char> {
        let quote = self.rest().chars().next().filter(|c| matches!(c, '\'' | '"'))?;
        self.at += 1;
        Some(quote)
    }

    /// Parses the rest of a quoted text.
    fn quoted(&mut self, quote: char) -> Result<String, JsonPathError> {
        let mut text = String::new();
        while let Some(c) = self.rest().chars().next() {
            self.at += c.len_utf8();
            if c == quote {
                return Ok(text);
            }
            if c == '\\'
                && let Some(escaped) = self.rest().chars().next()
            {
                text.push(escaped);
                self.at += escaped.len_utf8();
            } else {
                text.push(c);
            }
        }
        self.fail("a closing quote")
    }

    /// Parses an optional integer.
    fn integer(&mut self) -> Result<Option<i64>, JsonPathError> {
        let end = self
            .rest()
            .find(|c: char| !c.is_ascii_digit() && c != '-')
            .unwrap_or(self.rest().len());
        if end == 0 {
            return Ok(None);
        }
        match self.rest()[..end].parse() {
            Ok(number) => {
                self.at += end;
                Ok(Some(number))
            }
            Err(_) => self.fail("a whole number"),
        }
    }
}
