//! Label selectors: `app=a,tier in (x,y),!old`, and the same as `matchLabels` and `matchExpressions`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde_json::{Map, Value};

use super::SelectorError;
use super::lexer::{Kind, Lexer, Token};
use super::name;
use crate::faults::{Fault, Faults};

/// The most requirements of a selector in a query. Each is held against each object of a list, while writers wait.
const MAX_REQUIREMENTS: usize = 1_000;

/// Requirements, all of which an object's labels must meet. Without any, it selects everything.
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

/// What is required of the key's value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operator {
    /// The key is there.
    Exists,
    /// The key is not there.
    DoesNotExist,
    /// The value is this one.
    Equals(String),
    /// The value is another one, or the key is not there.
    NotEquals(String),
    /// The value is one of these.
    In(BTreeSet<String>),
    /// The value is none of these, or the key is not there.
    NotIn(BTreeSet<String>),
    /// The value is a whole number above this one.
    Greater(i64),
    /// The value is a whole number below this one.
    Less(i64),
}

/// Anything that has labels.
pub trait Labels {
    /// The value of a label.
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
    /// Reads the form of a query parameter.
    pub fn parse(text: &str) -> Result<Self, SelectorError> {
        Parser { lexer: Lexer::new(text) }.selector()
    }

    /// Reads the object form, with `matchLabels` and `matchExpressions`. The schema has seen to the types; what is
    /// not of its type is passed over.
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
            requirements.push(Requirement::new(expression["key"].as_str().unwrap_or_default(), operator)?);
        }
        Ok(Self { requirements })
    }

    /// Whether it selects everything because it requires nothing.
    pub fn is_empty(&self) -> bool {
        self.requirements.is_empty()
    }

    /// Whether the labels meet every requirement.
    pub fn matches(&self, labels: &(impl Labels + ?Sized), faults: Faults) -> bool {
        self.requirements.iter().all(|requirement| requirement.matches(labels, faults))
    }
}

impl Requirement {
    fn new(key: &str, operator: Operator) -> Result<Self, SelectorError> {
        let invalid =
            |what: String, value: &str, rule| SelectorError::Invalid { what, value: value.into(), rule };
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
            name::check_value(value).map_err(|rule| invalid(format!("values[{i}][{key}]"), value, rule))?;
        }
        Ok(Self { key: key.to_owned(), operator })
    }

    fn matches(&self, labels: &(impl Labels + ?Sized), faults: Faults) -> bool {
        let value = labels.label(&self.key);
        let number = || value.and_then(|value| value.parse::<i64>().ok());
        match &self.operator {
            Operator::Exists => value.is_some() || faults.on(Fault::SelectorExistsIgnored),
            Operator::DoesNotExist => value.is_none() || faults.on(Fault::SelectorExistsIgnored),
            Operator::Equals(wanted) => value == Some(wanted),
            Operator::NotEquals(_) if value.is_none() => !faults.on(Fault::SelectorNotEqualsNeedsKey),
            Operator::NotEquals(unwanted) => value != Some(unwanted),
            Operator::In(wanted) if faults.on(Fault::SelectorInMatchesPrefix) => {
                value.is_some_and(|value| wanted.iter().any(|wanted| value.starts_with(wanted.as_str())))
            }
            Operator::In(wanted) => value.is_some_and(|value| wanted.contains(value)),
            Operator::NotIn(_) if value.is_none() => !faults.on(Fault::SelectorNotInNeedsKey),
            Operator::NotIn(unwanted) => value.is_some_and(|value| !unwanted.contains(value)),
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

    /// The value after `=`: nothing stands for the empty one.
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

    /// A list in parentheses; nothing between two commas stands for the empty value.
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
mod tests {
    use serde_json::json;

    use proptest::prelude::*;
    use proptest::sample::select;

    use super::*;

    /// Five objects as they are told apart by the selectors below.
    fn selected(selector: &str, faults: Faults) -> Vec<usize> {
        let objects = [
            json!({"app": "a", "tier": "fe", "n": "5"}),
            json!({"app": "a", "tier": "be", "n": "15"}),
            json!({"app": "ab", "tier": "fe"}),
            json!({"app": "b", "x": ""}),
            json!({}),
        ];
        let selector = LabelSelector::parse(selector).unwrap();
        (0..objects.len()).filter(|&i| selector.matches(&objects[i].as_object(), faults)).collect()
    }

    #[rstest::rstest]
    #[case("", &[0, 1, 2, 3, 4])]
    #[case("app=a", &[0, 1])]
    #[case("app==a", &[0, 1])]
    #[case("app!=a", &[2, 3, 4])]
    #[case("app=a,tier=fe", &[0])]
    #[case(" app = a , tier in ( fe ) ", &[0])]
    #[case("app in (a,b)", &[0, 1, 3])]
    #[case("app notin (a)", &[2, 3, 4])]
    #[case("tier", &[0, 1, 2])]
    #[case("!tier", &[3, 4])]
    #[case("x=", &[3])]
    #[case("x in (,z)", &[3])]
    #[case("n>10", &[1])]
    #[case("n<10", &[0])]
    #[case("n>5", &[1])]
    #[case("n<5", &[])]
    #[case("in notin (x)", &[0, 1, 2, 3, 4])]
    fn selects(#[case] selector: &str, #[case] expected: &[usize]) {
        assert_eq!(selected(selector, Faults::none()), expected);
    }

    #[rstest::rstest]
    #[case("a b", "found 'b' at offset 2, expected: in, notin, =, ==, !=, gt, lt")]
    #[case("app in a", "found 'a' at offset 7, expected: '('")]
    #[case("app in (", "found '' at offset 8, expected: ',', ')' or identifier")]
    #[case("app in (a b)", "found 'b' at offset 10, expected: ',', ')' or identifier")]
    #[case("=a", "found '=' at offset 0, expected: !, identifier, or 'end of string'")]
    #[case("app=a,,tier", "found ',' at offset 6, expected: identifier after ','")]
    #[case("app,", "found '' at offset 4, expected: identifier after ','")]
    #[case("app=!!", "found '!' at offset 4, expected: identifier")]
    #[case("!app=a", "found '=' at offset 4, expected: ',' or 'end of string'")]
    #[case("app=a b", "found 'b' at offset 6, expected: ',' or 'end of string'")]
    #[case(
        "app in ()",
        "values: Invalid value: \"\": for 'in', 'notin' operators, values set can't be empty"
    )]
    #[case("n>x", "values[0]: Invalid value: \"x\": for 'Gt', 'Lt' operators, the value must be an integer")]
    #[case("/a", "key: Invalid value: \"/a\": the prefix part must not be empty")]
    fn refuses_what_it_cannot_read(#[case] selector: &str, #[case] expected: &str) {
        let error = LabelSelector::parse(selector).unwrap_err().to_string();
        assert_eq!(error, format!("unable to parse requirement: {expected}"));
    }

    #[rstest::rstest]
    #[case("a/b/c=d")]
    #[case("app=-x")]
    #[case("app in (ok,_x)")]
    #[case("app='a'")]
    fn refuses_keys_and_values_no_label_can_have(#[case] selector: &str) {
        assert!(matches!(LabelSelector::parse(selector), Err(SelectorError::Invalid { .. })));
    }

    #[test]
    fn the_object_form_says_the_same_as_the_text_form() {
        let object = json!({
            "matchLabels": {"app": "a"},
            "matchExpressions": [
                {"key": "tier", "operator": "In", "values": ["y", "x"]},
                {"key": "old", "operator": "DoesNotExist"},
            ],
        });
        let selector = LabelSelector::from_object(&object).unwrap();
        assert_eq!(selector.to_string(), "app=a,tier in (x,y),!old");
        assert_eq!(LabelSelector::parse(&selector.to_string()), Ok(selector));
        let unknown = json!({"matchExpressions": [{"key": "a", "operator": "Like"}]});
        assert!(LabelSelector::from_object(&unknown).is_err());
    }

    #[rstest::rstest]
    #[case(Fault::SelectorInMatchesPrefix, "app in (a)", &[0, 1, 2])]
    #[case(Fault::SelectorNotEqualsNeedsKey, "app!=a", &[2, 3])]
    #[case(Fault::SelectorNotInNeedsKey, "app notin (a)", &[2, 3])]
    #[case(Fault::SelectorExistsIgnored, "!tier", &[0, 1, 2, 3, 4])]
    fn faults_bend_one_rule_each(#[case] fault: Fault, #[case] selector: &str, #[case] expected: &[usize]) {
        assert_eq!(selected(selector, fault.into()), expected);
    }

    /// A requirement as a text, and what it means, put plainly.
    #[derive(Clone, Debug)]
    struct Plain {
        key: &'static str,
        operator: &'static str,
        values: Vec<&'static str>,
    }

    impl Plain {
        fn text(&self, space: &str) -> String {
            let Self { key, operator, values } = self;
            let (first, all) = (values[0], values.join(&format!("{space},")));
            match *operator {
                "exists" => format!("{space}{key}{space}"),
                "!" => format!("!{space}{key}"),
                "in" | "notin" => format!("{key} {operator}{space}({space}{all}{space})"),
                _ => format!("{key}{space}{operator}{space}{first}"),
            }
        }

        fn holds(&self, labels: &BTreeMap<String, String>) -> bool {
            let value = labels.get(self.key).map(String::as_str);
            let number = |text: &str| text.parse::<i64>().ok();
            match (self.operator, value) {
                ("exists", value) => value.is_some(),
                ("!", value) => value.is_none(),
                ("=" | "==", value) => value == Some(self.values[0]),
                ("!=", value) => value != Some(self.values[0]),
                ("in", value) => value.is_some_and(|value| self.values.contains(&value)),
                ("notin", value) => value.is_none_or(|value| !self.values.contains(&value)),
                (_, None) => false,
                (sign, Some(value)) => match (number(value), number(self.values[0])) {
                    (Some(value), Some(bound)) => {
                        if sign == ">" {
                            value > bound
                        } else {
                            value < bound
                        }
                    }
                    _ => false,
                },
            }
        }
    }

    fn plain() -> impl Strategy<Value = Plain> {
        let key = || select(vec!["a", "in", "example.com/b"]);
        let word = || select(vec!["1", "2", "x", "notin", "10"]);
        let operators = vec!["exists", "!", "=", "==", "!=", "in", "notin"];
        prop_oneof![
            4 => (key(), select(operators), prop::collection::vec(word(), 1..4))
                .prop_map(|(key, operator, values)| Plain { key, operator, values }),
            1 => (key(), select(vec![">", "<"]), select(vec!["1", "2", "-3"]))
                .prop_map(|(key, operator, value)| Plain { key, operator, values: vec![value] }),
        ]
    }

    proptest! {
        #[test]
        fn means_what_its_parts_mean(
            parts in prop::collection::vec(plain(), 1..4),
            labels in prop::collection::btree_map(
                select(vec!["a".to_owned(), "in".to_owned(), "example.com/b".to_owned(), "c".to_owned()]),
                select(vec!["1".to_owned(), "2".to_owned(), "x".to_owned(), "10".to_owned(), String::new()]),
                0..4,
            ),
            space in select(vec!["", " ", "  "]),
        ) {
            let text = parts.iter().map(|part| part.text(space)).collect::<Vec<_>>().join(",");
            let selector = LabelSelector::parse(&text).map_err(|error| TestCaseError::fail(format!("{text}: {error}")))?;
            let expected = parts.iter().all(|part| part.holds(&labels));
            prop_assert_eq!(selector.matches(&labels, Faults::none()), expected, "{}", text);
            prop_assert!(!selector.is_empty());
            prop_assert_eq!(LabelSelector::parse(&selector.to_string()), Ok(selector));
        }
    }

    #[test]
    fn nothing_is_required_by_nothing() {
        assert!(
            LabelSelector::parse("").unwrap().is_empty() && LabelSelector::parse(" ").unwrap().is_empty()
        );
    }

    #[test]
    fn requirements_are_counted() {
        let many = |count: usize| vec!["a"; count].join(",");
        assert!(LabelSelector::parse(&many(MAX_REQUIREMENTS)).is_ok());
        assert_eq!(
            LabelSelector::parse(&many(MAX_REQUIREMENTS + 1)),
            Err(SelectorError::TooMany(MAX_REQUIREMENTS))
        );
    }
}
