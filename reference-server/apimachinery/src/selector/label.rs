//! Label selectors: the text form `app=a,tier in (x,y),!old`, and the object form with
//! `matchLabels` and `matchExpressions`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde_json::{Map, Value};

use super::SelectorError;
use super::lexer::{Kind, Lexer, Token};
use super::name;

/// The maximum number of requirements in a query. A list tests each of them on each object while
/// writers wait.
const MAX_REQUIREMENTS: usize = 1_000;

/// A conjunction of requirements on the labels of an object. Without requirements it selects
/// everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabelSelector {
    requirements: Vec<Requirement>,
}

/// One requirement on one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requirement {
    key: String,
    operator: Operator,
}

/// The operator of a requirement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operator {
    /// The key exists.
    Exists,
    /// The key does not exist.
    DoesNotExist,
    /// The key has this value.
    Equals(String),
    /// The key has another value or does not exist.
    NotEquals(String),
    /// The key has one of these values.
    In(BTreeSet<String>),
    /// The key has none of these values or does not exist.
    NotIn(BTreeSet<String>),
    /// The value is an integer above this one.
    Greater(i64),
    /// The value is an integer below this one.
    Less(i64),
}

/// Anything that has labels.
pub trait Labels {
    /// Returns the value of a label.
    fn label(&self, key: &str) -> Option<&str>;
}

impl Labels for BTreeMap<String, String> {
    fn label(&self, key: &str) -> Option<&str> {
        self.get(key).map(String::as_str)
    }
}

impl Labels for Map<String, Value> {
    fn label(&self, key: &str) -> Option<&str> {
        self.get(key)?.as_str()
    }
}

impl<L: Labels + ?Sized> Labels for Option<&L> {
    fn label(&self, key: &str) -> Option<&str> {
        self.and_then(|labels| labels.label(key))
    }
}

impl LabelSelector {
    /// Parses the form of a query parameter.
    pub fn parse(text: &str) -> Result<Self, SelectorError> {
        Parser { lexer: Lexer::new(text) }.selector()
    }

    /// Parses the object form, with `matchLabels` and `matchExpressions`. Schema validation reports
    /// values of the wrong type, so this function ignores them.
    pub fn from_object(selector: &Value) -> Result<Self, SelectorError> {
        let mut requirements = Vec::new();
        for (key, value) in selector["matchLabels"].as_object().into_iter().flatten() {
            let value = value.as_str().unwrap_or_default().to_owned();
            requirements.push(Requirement::new(key, Operator::Equals(value))?);
        }
        for expression in selector["matchExpressions"].as_array().into_iter().flatten() {
            let values = expression["values"].as_array().into_iter().flatten();
            let values = values.filter_map(Value::as_str).map(str::to_owned).collect();
            let operator = match expression["operator"].as_str().unwrap_or_default() {
                "In" => Operator::In(values),
                "NotIn" => Operator::NotIn(values),
                "Exists" => Operator::Exists,
                "DoesNotExist" => Operator::DoesNotExist,
                other => {
                    let rule = "must be one of In, NotIn, Exists, DoesNotExist";
                    return Err(SelectorError::Invalid {
                        what: "operator".into(),
                        value: other.into(),
                        rule,
                    });
                }
            };
            requirements
                .push(Requirement::new(expression["key"].as_str().unwrap_or_default(), operator)?);
        }
        Ok(Self { requirements })
    }

    /// Reports whether the selector has no requirements and therefore selects everything.
    pub fn is_empty(&self) -> bool {
        self.requirements.is_empty()
    }

    /// Reports whether the labels meet every requirement.
    pub fn matches(&self, labels: &(impl Labels + ?Sized)) -> bool {
        self.requirements.iter().all(|requirement| requirement.matches(labels))
    }
}

impl Requirement {
    fn new(key: &str, operator: Operator) -> Result<Self, SelectorError> {
        let invalid = |what: String, value: &str, rule| SelectorError::Invalid {
            what,
            value: value.into(),
            rule,
        };
        name::check_key(key).map_err(|rule| invalid("key".into(), key, rule))?;
        if let Operator::In(values) | Operator::NotIn(values) = &operator
            && values.is_empty()
        {
            return Err(invalid(
                "values".into(),
                "",
                "for 'in', 'notin' operators, values set can't be empty",
            ));
        }
        for (i, value) in operator.values().enumerate() {
            name::check_value(value)
                .map_err(|rule| invalid(format!("values[{i}][{key}]"), value, rule))?;
        }
        Ok(Self { key: key.to_owned(), operator })
    }

    fn matches(&self, labels: &(impl Labels + ?Sized)) -> bool {
        let value = labels.label(&self.key);
        let number = || value.and_then(|value| value.parse::<i64>().ok());
        match &self.operator {
            Operator::Exists => value.is_some(),
            Operator::DoesNotExist => value.is_none(),
            Operator::Equals(wanted) => value == Some(wanted),
            Operator::NotEquals(unwanted) => value != Some(unwanted),
            Operator::In(wanted) => value.is_some_and(|value| wanted.contains(value)),
            Operator::NotIn(unwanted) => value.is_none_or(|value| !unwanted.contains(value)),
            Operator::Greater(bound) => number().is_some_and(|number| number > *bound),
            Operator::Less(bound) => number().is_some_and(|number| number < *bound),
        }
    }
}

impl Operator {
    fn values(&self) -> impl Iterator<Item = &String> {
        let (one, many) = match self {
            Self::Equals(value) | Self::NotEquals(value) => (Some(value), None),
            Self::In(values) | Self::NotIn(values) => (None, Some(values)),
            Self::Exists | Self::DoesNotExist | Self::Greater(_) | Self::Less(_) => (None, None),
        };
        one.into_iter().chain(many.into_iter().flatten())
    }
}

struct Parser<'t> {
    lexer: Lexer<'t>,
}

impl<'t> Parser<'t> {
    fn selector(mut self) -> Result<LabelSelector, SelectorError> {
        let mut requirements = Vec::new();
        match self.lexer.peek().kind {
            Kind::End => return Ok(LabelSelector::default()),
            Kind::Word | Kind::Not => requirements.push(self.requirement()?),
            _ => return Err(unexpected(self.lexer.peek(), "!, identifier, or 'end of string'")),
        }
        loop {
            let separator = self.lexer.take();
            match separator.kind {
                Kind::End => return Ok(LabelSelector { requirements }),
                Kind::Comma => {}
                _ => return Err(unexpected(separator, "',' or 'end of string'")),
            }
            if !matches!(self.lexer.peek().kind, Kind::Word | Kind::Not) {
                return Err(unexpected(self.lexer.peek(), "identifier after ','"));
            }
            if requirements.len() == MAX_REQUIREMENTS {
                return Err(SelectorError::TooMany(MAX_REQUIREMENTS));
            }
            requirements.push(self.requirement()?);
        }
    }

    fn requirement(&mut self) -> Result<Requirement, SelectorError> {
        let negated = self.lexer.take_if(Kind::Not).is_some();
        let key = self.word("identifier")?;
        let operator = if negated { Operator::DoesNotExist } else { self.operator()? };
        Requirement::new(key, operator)
    }

    fn operator(&mut self) -> Result<Operator, SelectorError> {
        let token = self.lexer.peek();
        if matches!(token.kind, Kind::End | Kind::Comma) {
            return Ok(Operator::Exists);
        }
        self.lexer.take();
        match (token.kind, token.text) {
            (Kind::Equals, _) => self.value().map(Operator::Equals),
            (Kind::NotEquals, _) => self.value().map(Operator::NotEquals),
            (Kind::Greater, _) => self.number().map(Operator::Greater),
            (Kind::Less, _) => self.number().map(Operator::Less),
            (Kind::Word, "in") => self.values().map(Operator::In),
            (Kind::Word, "notin") => self.values().map(Operator::NotIn),
            _ => Err(unexpected(token, "in, notin, =, ==, !=, gt, lt")),
        }
    }

    /// Parses the value after `=`, which may be empty.
    fn value(&mut self) -> Result<String, SelectorError> {
        match self.lexer.peek().kind {
            Kind::End | Kind::Comma => Ok(String::new()),
            _ => self.word("identifier").map(str::to_owned),
        }
    }

    fn number(&mut self) -> Result<i64, SelectorError> {
        let value = self.value()?;
        value.parse().map_err(|_| SelectorError::Invalid {
            what: "values[0]".into(),
            value,
            rule: "for 'Gt', 'Lt' operators, the value must be an integer",
        })
    }

    /// Parses a list in parentheses. Each value may be empty.
    fn values(&mut self) -> Result<BTreeSet<String>, SelectorError> {
        self.lexer.take_if(Kind::Open).ok_or_else(|| unexpected(self.lexer.peek(), "'('"))?;
        let mut values = BTreeSet::new();
        if self.lexer.take_if(Kind::Close).is_some() {
            return Ok(values);
        }
        loop {
            let value = self.lexer.take_if(Kind::Word).map_or("", |word| word.text);
            values.insert(value.to_owned());
            let token = self.lexer.take();
            match token.kind {
                Kind::Comma => {}
                Kind::Close => return Ok(values),
                _ => return Err(unexpected(token, "',', ')' or identifier")),
            }
        }
    }

    fn word(&mut self, expected: &'static str) -> Result<&'t str, SelectorError> {
        let token = self.lexer.take();
        if token.kind == Kind::Word { Ok(token.text) } else { Err(unexpected(token, expected)) }
    }
}

fn unexpected(token: Token<'_>, expected: &'static str) -> SelectorError {
    SelectorError::Unexpected { found: token.text.to_owned(), offset: token.offset, expected }
}

impl fmt::Display for LabelSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, requirement) in self.requirements.iter().enumerate() {
            let separator = if i == 0 { "" } else { "," };
            write!(f, "{separator}{requirement}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = &self.key;
        let list = |values: &BTreeSet<String>| values.iter().cloned().collect::<Vec<_>>().join(",");
        match &self.operator {
            Operator::Exists => f.write_str(key),
            Operator::DoesNotExist => write!(f, "!{key}"),
            Operator::Equals(value) => write!(f, "{key}={value}"),
            Operator::NotEquals(value) => write!(f, "{key}!={value}"),
            Operator::In(values) => write!(f, "{key} in ({})", list(values)),
            Operator::NotIn(values) => write!(f, "{key} notin ({})", list(values)),
            Operator::Greater(bound) => write!(f, "{key}>{bound}"),
            Operator::Less(bound) => write!(f, "{key}<{bound}"),
        }
    }
}

#[cfg(test)]
mod tests;
