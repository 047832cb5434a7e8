//! Parses words and operators into the syntax tree.

use super::lexer::{Token, name_length, tokens};
use super::syntax::{
    Chain, Command, Link, List, Part, Pipeline, Redirect, Stage, SyntaxError, Target, Word,
};

/// The words that end a list.
const CLOSING: [&str; 8] = ["}", "then", "else", "elif", "fi", "do", "done", "esac"];

/// The deepest nesting of commands.
const MAX_DEPTH: usize = 100;

pub(super) fn parse(text: &str) -> Result<List, SyntaxError> {
    let tokens = tokens(text)?;
    let mut parser = Parser { tokens: &tokens, depth: 0 };
    let list = parser.list()?;
    match parser.tokens.first() {
        None => Ok(list),
        Some(token) => Err(unexpected(token)),
    }
}

fn unexpected(token: &Token) -> SyntaxError {
    SyntaxError::Unexpected(match token {
        Token::Word(word) => word.bare().unwrap_or("word").to_owned(),
        Token::Operator("\n") => "newline".to_owned(),
        Token::Operator(text) | Token::Redirect(_, text) => (*text).to_owned(),
    })
}

struct Parser<'a> {
    tokens: &'a [Token],
    depth: usize,
}

impl Parser<'_> {
    fn operator(&mut self, wanted: &[&str]) -> Option<&'static str> {
        let Some(Token::Operator(operator)) = self.tokens.first() else { return None };
        if !wanted.contains(operator) {
            return None;
        }
        self.tokens = &self.tokens[1..];
        Some(operator)
    }

    fn keyword(&self) -> Option<&str> {
        match self.tokens.first() {
            Some(Token::Word(word)) => word.bare(),
            _ => None,
        }
    }

    /// Consumes one of these words.
    fn require(&mut self, wanted: &[&'static str]) -> Result<&'static str, SyntaxError> {
        let found =
            self.keyword().and_then(|word| wanted.iter().copied().find(|wanted| *wanted == word));
        match (found, self.tokens.first()) {
            (Some(found), _) => {
                self.tokens = &self.tokens[1..];
                Ok(found)
            }
            (None, Some(token)) => Err(unexpected(token)),
            (None, None) => Err(SyntaxError::Incomplete),
        }
    }

    fn newlines(&mut self) {
        while self.operator(&["\n"]).is_some() {}
    }

    /// Parses commands up to a closing word or bracket.
    fn list(&mut self) -> Result<List, SyntaxError> {
        let mut list = List::default();
        loop {
            self.newlines();
            let closed = self.keyword().is_some_and(|word| CLOSING.contains(&word));
            if closed || matches!(self.tokens.first(), None | Some(Token::Operator(")"))) {
                return Ok(list);
            }
            let mut chain = self.chain()?;
            let end = matches!(self.tokens.first(), None | Some(Token::Operator(")")));
            match self.operator(&[";", "\n", "&"]) {
                Some(operator) => chain.background = operator == "&",
                None if end => {}
                None => {
                    return self.tokens.first().map_or(Ok(list), |token| Err(unexpected(token)));
                }
            }
            list.0.push(chain);
        }
    }

    /// Parses a list with at least one command.
    fn body(&mut self) -> Result<List, SyntaxError> {
        let list = self.list()?;
        match self.tokens.first() {
            _ if !list.0.is_empty() => Ok(list),
            Some(token) => Err(unexpected(token)),
            None => Err(SyntaxError::Incomplete),
        }
    }

    fn chain(&mut self) -> Result<Chain, SyntaxError> {
        let first = self.pipeline()?;
        let mut rest = Vec::new();
        while let Some(operator) = self.operator(&["&&", "||"]) {
            self.newlines();
            rest.push((if operator == "&&" { Link::And } else { Link::Or }, self.pipeline()?));
        }
        Ok(Chain { first, rest, background: false })
    }

    fn pipeline(&mut self) -> Result<Pipeline, SyntaxError> {
        let negated = self.keyword() == Some("!");
        if negated {
            self.tokens = &self.tokens[1..];
        }
        let mut stages = vec![self.stage()?];
        while self.operator(&["|"]).is_some() {
            self.newlines();
            stages.push(self.stage()?);
        }
        Ok(Pipeline { negated, stages })
    }

    fn stage(&mut self) -> Result<Stage, SyntaxError> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(SyntaxError::Unsupported("nesting this deep"));
        }
        let stage = self.command();
        self.depth -= 1;
        stage
    }

    fn command(&mut self) -> Result<Stage, SyntaxError> {
        let keyword = self.keyword().map(str::to_owned);
        let command = match keyword.as_deref() {
            Some("{") => {
                self.tokens = &self.tokens[1..];
                let list = self.body()?;
                self.require(&["}"])?;
                Command::Group(list)
            }
            Some("if") => self.branches()?,
            Some(word @ ("while" | "until")) => {
                self.tokens = &self.tokens[1..];
                let condition = self.body()?;
                self.require(&["do"])?;
                let body = self.body()?;
                self.require(&["done"])?;
                Command::Loop { until: word == "until", condition, body }
            }
            Some("for") => self.each()?,
            Some("case") => return Err(SyntaxError::Unsupported("case")),
            Some("function") => return Err(SyntaxError::Unsupported("a function")),
            _ if self.operator(&["("]).is_some() => {
                let list = self.body()?;
                match self.operator(&[")"]) {
                    Some(_) => Command::Subshell(list),
                    None => return Err(SyntaxError::Incomplete),
                }
            }
            _ => return self.simple(),
        };
        let mut redirects = Vec::new();
        while let Some(redirect) = self.redirect()? {
            redirects.push(redirect);
        }
        Ok(Stage { command, redirects })
    }

    fn branches(&mut self) -> Result<Command, SyntaxError> {
        let mut branches = Vec::new();
        self.require(&["if"])?;
        loop {
            let condition = self.body()?;
            self.require(&["then"])?;
            branches.push((condition, self.body()?));
            match self.require(&["elif", "else", "fi"])? {
                "elif" => {}
                "else" => {
                    let otherwise = self.body()?;
                    self.require(&["fi"])?;
                    return Ok(Command::If { branches, otherwise });
                }
                _ => return Ok(Command::If { branches, otherwise: List::default() }),
            }
        }
    }

    fn each(&mut self) -> Result<Command, SyntaxError> {
        self.require(&["for"])?;
        let variable = match self.keyword() {
            Some(name) if name_length(name) == name.len() && !name.is_empty() => name.to_owned(),
            Some(name) => return Err(SyntaxError::Unexpected(name.to_owned())),
            None => return Err(SyntaxError::Incomplete),
        };
        self.tokens = &self.tokens[1..];
        let mut words = None;
        if self.keyword() == Some("in") {
            self.tokens = &self.tokens[1..];
            let list = words.insert(Vec::new());
            while let Some(Token::Word(word)) = self.tokens.first() {
                list.push(word.clone());
                self.tokens = &self.tokens[1..];
            }
        }
        if self.operator(&[";", "\n"]).is_none() && self.keyword() != Some("do") {
            return self
                .tokens
                .first()
                .map_or(Err(SyntaxError::Incomplete), |token| Err(unexpected(token)));
        }
        self.newlines();
        self.require(&["do"])?;
        let body = self.body()?;
        self.require(&["done"])?;
        Ok(Command::For { variable, words, body })
    }

    fn simple(&mut self) -> Result<Stage, SyntaxError> {
        let (mut assignments, mut words, mut redirects) = (Vec::new(), Vec::new(), Vec::new());
        loop {
            if let Some(redirect) = self.redirect()? {
                redirects.push(redirect);
                continue;
            }
            let Some(Token::Word(word)) = self.tokens.first() else { break };
            match assignment(word).filter(|_| words.is_empty()) {
                Some(assignment) => assignments.push(assignment),
                None => words.push(word.clone()),
            }
            self.tokens = &self.tokens[1..];
        }
        if !words.is_empty() && matches!(self.tokens.first(), Some(Token::Operator("("))) {
            return Err(SyntaxError::Unsupported("a function"));
        }
        if assignments.is_empty() && words.is_empty() && redirects.is_empty() {
            return match self.tokens.first() {
                Some(token) => Err(unexpected(token)),
                None => Err(SyntaxError::Incomplete),
            };
        }
        Ok(Stage { command: Command::Simple { assignments, words }, redirects })
    }

    fn redirect(&mut self) -> Result<Option<Redirect>, SyntaxError> {
        let Some(Token::Redirect(stream, operator)) = self.tokens.first() else { return Ok(None) };
        let (stream, operator) = (*stream, *operator);
        self.tokens = &self.tokens[1..];
        let word = match self.tokens.first() {
            Some(Token::Word(word)) => word.clone(),
            Some(token) => return Err(unexpected(token)),
            None => return Err(SyntaxError::Incomplete),
        };
        self.tokens = &self.tokens[1..];
        let to = match operator {
            "<" => Target::Read(word),
            ">" => Target::Write(word),
            ">>" => Target::Append(word),
            _ => match word.bare() {
                Some("0") => Target::Stream(0),
                Some("1") => Target::Stream(1),
                Some("2") => Target::Stream(2),
                _ => return Err(SyntaxError::Unsupported("a stream other than 0, 1 and 2")),
            },
        };
        Ok(Some(Redirect { stream, to }))
    }
}

/// `NAME=value`
fn assignment(word: &Word) -> Option<(String, Word)> {
    let Some(Part::Text { text, quoted: false }) = word.0.first() else { return None };
    let (name, value) = text.split_once('=')?;
    if name.is_empty() || name_length(name) != name.len() {
        return None;
    }
    let mut parts = word.0.clone();
    parts[0] = Part::Text { text: value.to_owned(), quoted: false };
    Some((name.to_owned(), Word(parts)))
}
