//! Field selectors: `metadata.name=x,status.phase!=Running`.

use super::SelectorError;

/// A conjunction of terms on the fields of an object. Without terms it selects everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSelector {
    terms: Vec<FieldTerm>,
}

/// One comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldTerm {
    /// The label of the field, such as `metadata.name`.
    pub field: String,
    /// The comparison operator.
    pub operator: FieldOperator,
    /// The value to compare with.
    pub value: String,
}

/// A comparison operator of a field selector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldOperator {
    /// `=` or `==`
    Equal,
    /// `!=`
    NotEqual,
}

impl FieldSelector {
    /// Parses the form of a query parameter. White space is significant, because values can contain
    /// it.
    pub fn parse(text: &str) -> Result<Self, SelectorError> {
        let terms = split(text, ',').into_iter().filter(|term| !term.is_empty());
        let terms = terms.map(|term| FieldTerm::parse(text, term)).collect::<Result<_, _>>()?;
        Ok(Self { terms })
    }

    /// Returns the terms in the order of the text.
    pub fn terms(&self) -> &[FieldTerm] {
        &self.terms
    }

    /// Reports whether the selector has no terms and therefore selects everything.
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// Rejects fields that are not selectable for the resource.
    pub fn require_known(&self, known: &[&str]) -> Result<(), SelectorError> {
        match self.terms.iter().find(|term| !known.contains(&term.field.as_str())) {
            None => Ok(()),
            Some(term) => {
                let known: Vec<_> = known.iter().map(|field| format!("{field:?}")).collect();
                Err(SelectorError::UnknownField {
                    field: term.field.clone(),
                    known: known.join(", "),
                })
            }
        }
    }

    /// Returns the value that the selector requires of a field with `=`.
    pub fn exact(&self, field: &str) -> Option<&str> {
        let mut terms = self.terms.iter();
        terms
            .find(|term| term.field == field && term.operator == FieldOperator::Equal)
            .map(|term| term.value.as_str())
    }

    /// Reports whether the fields match every term. `field` returns the text of a field; empty if
    /// it has none.
    pub fn matches<S: AsRef<str>>(&self, field: impl Fn(&str) -> S) -> bool {
        self.terms.iter().all(|term| {
            let equal = field(&term.field).as_ref() == term.value;
            match term.operator {
                FieldOperator::Equal => equal,
                FieldOperator::NotEqual => !equal,
            }
        })
    }
}

impl FieldTerm {
    fn parse(selector: &str, term: &str) -> Result<Self, SelectorError> {
        let mut escaped = false;
        for (i, c) in term.char_indices() {
            let rest = &term[i..];
            if escaped {
                escaped = false;
            } else if c == '\\' {
                escaped = true;
            } else if let Some((text, operator)) =
                OPERATORS.iter().find(|(text, _)| rest.starts_with(text))
            {
                let value = unescape(&rest[text.len()..])?;
                return Ok(Self { field: term[..i].to_owned(), operator: *operator, value });
            }
        }
        Err(SelectorError::NoOperator { selector: selector.to_owned(), term: term.to_owned() })
    }
}

/// Longer operators first, because `=` is a prefix of `==`.
const OPERATORS: [(&str, FieldOperator); 3] =
    [("!=", FieldOperator::NotEqual), ("==", FieldOperator::Equal), ("=", FieldOperator::Equal)];

/// Splits at every separator without a backslash before it.
fn split(text: &str, separator: char) -> Vec<&str> {
    let mut escaped = false;
    text.split(|c| {
        let splits = c == separator && !escaped;
        escaped = c == '\\' && !escaped;
        splits
    })
    .collect()
}

/// Undoes `\\`, `\,` and `\=`. A bare `,` cannot occur, and a bare `=` would be ambiguous.
fn unescape(value: &str) -> Result<String, SelectorError> {
    let mut text = String::with_capacity(value.len());
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(c @ ('\\' | ',' | '=')) => text.push(c),
                Some(c) => return Err(SelectorError::BadEscape(format!("\\{c}"))),
                None => return Err(SelectorError::BadEscape("\\".to_owned())),
            },
            '=' => return Err(SelectorError::BadEscape("unescaped '=' in a value".to_owned())),
            c => text.push(c),
        }
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::select;

    use super::*;

    fn terms(text: &str) -> Vec<(String, bool, String)> {
        let selector = FieldSelector::parse(text).unwrap();
        let plain =
            |t: &FieldTerm| (t.field.clone(), t.operator == FieldOperator::Equal, t.value.clone());
        selector.terms().iter().map(plain).collect()
    }

    #[rstest::rstest]
    #[case("metadata.name=a", "metadata.name", true, "a")]
    #[case("metadata.name==a", "metadata.name", true, "a")]
    #[case("metadata.name!=a", "metadata.name", false, "a")]
    #[case("spec.nodeName=", "spec.nodeName", true, "")]
    #[case(r"a=x\,y\=z\\", "a", true, r"x,y=z\")]
    fn a_single_term_is_parsed(
        #[case] text: &str,
        #[case] field: &str,
        #[case] equal: bool,
        #[case] value: &str,
    ) {
        assert_eq!(terms(text), [(field.to_owned(), equal, value.to_owned())]);
    }

    #[rstest::rstest]
    #[case("garbage", "invalid selector: 'garbage'; can't understand 'garbage'")]
    #[case(
        "a=1,metadata.name in (a)",
        "invalid selector: 'a=1,metadata.name in (a)'; can't understand 'metadata.name in (a)'"
    )]
    #[case(r"a=\b", r"invalid field selector: invalid escape sequence: \b")]
    #[case(r"a=b\", r"invalid field selector: invalid escape sequence: \")]
    #[case("a=b=c", "invalid field selector: invalid escape sequence: unescaped '=' in a value")]
    fn invalid_text_is_rejected(#[case] text: &str, #[case] expected: &str) {
        assert_eq!(FieldSelector::parse(text).unwrap_err().to_string(), expected);
    }

    #[test]
    fn an_object_must_match_every_term() {
        let fields = |field: &str| if field == "metadata.name" { "a" } else { "" };
        let matches = |text: &str| FieldSelector::parse(text).unwrap().matches(fields);
        assert!(
            matches("") && matches("metadata.name=a,spec.nodeName=") && matches("metadata.name!=b")
        );
        assert!(
            !matches("metadata.name=a,metadata.name=b")
                && !matches("metadata.name=a,spec.nodeName!=")
        );
    }

    #[test]
    fn an_unknown_field_is_reported_with_the_supported_ones() {
        let selector = FieldSelector::parse("metadata.name=a,data.a=1").unwrap();
        let error = selector.require_known(&["metadata.name", "metadata.namespace"]).unwrap_err();
        let expected =
            r#""data.a" is not a known field selector: only "metadata.name", "metadata.namespace""#;
        assert_eq!(error.to_string(), expected);
        assert_eq!(selector.exact("metadata.name"), Some("a"));
    }

    #[test]
    fn only_an_equal_term_requires_an_exact_value() {
        let selector = FieldSelector::parse("a!=1,b=2,a=3").unwrap();
        assert_eq!(
            [selector.exact("a"), selector.exact("b"), selector.exact("c")],
            [Some("3"), Some("2"), None]
        );
    }

    /// A term. Its value may contain the special characters of a selector.
    fn term() -> impl Strategy<Value = (String, &'static str, String)> {
        (select(FIELDS), select(vec!["=", "==", "!="]), "[ab,=\\\\! ]{0,3}")
            .prop_map(|(field, operator, value)| (field.to_owned(), operator, value))
    }

    const FIELDS: &[&str] = &["metadata.name", "spec.nodeName", "status.phase"];

    fn escaped(value: &str) -> String {
        value.replace('\\', r"\\").replace(',', r"\,").replace('=', r"\=")
    }

    proptest! {
        #[test]
        fn a_selector_matches_if_all_terms_match(
            plain in vec(term(), 0..4),
            values in vec("[ab,=\\\\! ]{0,3}", 3),
            empty in select(vec!["", ",", ",,"]),
        ) {
            let field = |name: &str| {
                let position = FIELDS.iter().position(|known| *known == name);
                position.map(|at| values[at].as_str())
            };
            // Half of the terms test a field that the object has.
            let plain: Vec<(String, &str, String)> = plain
                .into_iter()
                .map(|(name, operator, value)| {
                    let held = field(&name).filter(|_| value.len() % 2 == 0).map(str::to_owned);
                    (name, operator, held.unwrap_or(value))
                })
                .collect();
            let text = plain
                .iter()
                .map(|(name, operator, value)| format!("{name}{operator}{}", escaped(value)));
            let text = text.collect::<Vec<_>>().join(",") + empty;
            let selector = FieldSelector::parse(&text)
                .map_err(|error| TestCaseError::fail(format!("{text}: {error}")))?;
            let read: Vec<_> = selector
                .terms()
                .iter()
                .map(|term| (&term.field, term.operator, &term.value))
                .collect();
            let meant: Vec<_> = plain
                .iter()
                .map(|(name, operator, value)| {
                    let operator = match *operator {
                        "!=" => FieldOperator::NotEqual,
                        _ => FieldOperator::Equal,
                    };
                    (name, operator, value)
                })
                .collect();
            prop_assert_eq!(read, meant, "{}", text);
            let expected = plain.iter().all(|(name, operator, value)| {
                (field(name) == Some(value)) != (*operator == "!=")
            });
            let matches = selector.matches(|name| field(name).unwrap_or_default());
            prop_assert_eq!(matches, expected, "{}", text);
            prop_assert_eq!(selector.is_empty(), plain.is_empty());
        }
    }
}
