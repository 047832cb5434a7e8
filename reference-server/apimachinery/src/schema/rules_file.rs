//! Hand-written rules of built-in types: defaults and limits that Kubernetes does not publish.
//!
//! ```text
//! package io.k8s.api.batch.v1
//!
//! JobSpec
//!   backoffLimit minimum=0 default=6
//! ```
//!
//! A definition has a line with its short name, and each field a line with its name and these
//! attributes:
//!
//! | attribute | meaning |
//! | --- | --- |
//! | `needed` | an absent value is a mistake, also if the zero value is the published default |
//! | `optional` | the value may be absent or empty, although the published schema requires it |
//! | `unchecked` | the parts of the value are not checked |
//! | `open` | other values than those of the published enumeration are valid |
//! | `keep` | an empty value differs from an absent one |
//! | `null` | an absent value is written as null (in Go: a pointer without `omitempty`) |
//! | `disabled` | the feature of the field is off by default, so the server removes the field |
//! | `minimum=N`, `maximum=N` | the range of a number |
//! | `enum=A,B` | the permitted values |
//! | `syntax=NAME` | the syntax of a string, of the items of a list, or of the values of a map |
//! | `strict` | an empty string is a mistake, too (in Go: a pointer) |
//! | `keys=NAME` | the syntax of the keys of a map |
//! | `unique`, `unique=FIELD` | the items of a list, or this field of them, differ |
//! | `key=FIELD` | this field of the items differs; a duplicate is reported at its item |
//! | `most=N` | the maximum number of items of a list, or of bytes of a string |
//! | `limit=N` | the same for a list whose items are not checked if there are more |
//! | `default=JSON` | the default; the last attribute |
//!
//! In the line of a definition, `optional` applies to all its fields. These lines below it apply to
//! the definition, and can occur several times:
//!
//! | line | meaning |
//! | --- | --- |
//! | `order: A B` | kube-apiserver checks these fields first; `.` is the object itself |
//! | `union: A B` | an object has one of these fields, and only the first one is checked |
//! | `union=WORD: A B` | the same; the other fields are mistakes, which contain this word |

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use super::constraints::Constraints;
use super::order::Union;
use crate::object::validation::syntax::Syntax;

/// The rules of built-in types.
#[derive(Debug, Default)]
pub struct Rules {
    /// The rules of fields, by package, short name of the definition, and field.
    fields: HashMap<(&'static str, &'static str, &'static str), Rule>,
    /// The packages and short names of definitions with only optional fields.
    optional: HashSet<(&'static str, &'static str)>,
    /// The order of the fields of definitions.
    orders: HashMap<(&'static str, &'static str), Vec<&'static str>>,
    /// The unions in definitions.
    unions: HashMap<(&'static str, &'static str), Union>,
}

/// The rule of a field.
#[derive(Clone, Debug, Default, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "they are independent attributes of a field")]
pub(super) struct Rule {
    pub(super) needed: bool,
    pub(super) optional: bool,
    pub(super) open: bool,
    pub(super) unchecked: bool,
    pub(super) disabled: bool,
    pub(super) keep: bool,
    pub(super) null: bool,
    pub(super) minimum: Option<f64>,
    pub(super) maximum: Option<f64>,
    pub(super) enumeration: Vec<&'static str>,
    pub(super) default: Option<&'static str>,
    pub(super) constraints: Constraints,
}

/// A mistake in a file with rules.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: the attribute `{attribute}` is wrong")]
pub struct RulesError {
    /// The name of the file.
    pub file: &'static str,
    /// The line, from 1.
    pub line: usize,
    /// The attribute.
    pub attribute: &'static str,
}

impl Rules {
    /// Parses the text of files with rules. Each file comes with its name for errors.
    ///
    /// # Errors
    ///
    /// An attribute does not exist, or has a wrong value.
    pub fn parse(files: &[(&'static str, &'static str)]) -> Result<Self, RulesError> {
        let mut rules = Self::default();
        for (file, text) in files {
            let (mut package, mut definition) = ("", "");
            for (index, line) in text.lines().enumerate() {
                let words = line.split_whitespace().next();
                let Some(name) = words.filter(|word| !word.starts_with('#')) else { continue };
                if let Some(name) = line.strip_prefix("package ") {
                    package = name.trim();
                    continue;
                }
                let error = |attribute| RulesError { file, line: index + 1, attribute };
                if let Some(keyword) = name.strip_suffix(':') {
                    rules.fields_of((package, definition), keyword, line).map_err(error)?;
                    continue;
                }
                if line.starts_with(' ') {
                    let rule = rule(line).map_err(error)?;
                    rules.fields.insert((package, definition, name), rule);
                    continue;
                }
                definition = name;
                match line[name.len()..].trim() {
                    "" => {}
                    "optional" => _ = rules.optional.insert((package, name)),
                    other => return Err(error(other)),
                }
            }
        }
        Ok(rules)
    }

    /// Adds a line with fields of a definition.
    fn fields_of(
        &mut self,
        definition: (&'static str, &'static str),
        keyword: &'static str,
        line: &'static str,
    ) -> Result<(), &'static str> {
        let names = line.split_whitespace().skip(1);
        match keyword.split_once('=').unwrap_or((keyword, "")) {
            ("order", "") => self.orders.entry(definition).or_default().extend(names),
            ("union", word) => {
                let union = self.unions.entry(definition).or_default();
                union.members.extend(names);
                union.word = word;
            }
            _ => return Err(keyword),
        }
        Ok(())
    }

    /// Returns the fields that kube-apiserver checks first. `definition` is the published name.
    pub(super) fn order(&self, definition: &'static str) -> Vec<&'static str> {
        self.orders.get(&split(definition)).cloned().unwrap_or_default()
    }

    /// Returns the union in a definition.
    pub(super) fn union(&self, definition: &'static str) -> Option<Union> {
        self.unions.get(&split(definition)).cloned()
    }

    /// Returns the rule of a field. `definition` is the published name.
    pub(super) fn get(&self, definition: &'static str, field: &'static str) -> &Rule {
        static NONE: LazyLock<Rule> = LazyLock::new(Rule::default);
        let (package, name) = split(definition);
        self.fields.get(&(package, name, field)).unwrap_or(&NONE)
    }

    /// Reports whether all fields of a definition are optional.
    pub(super) fn is_optional(&self, definition: &'static str) -> bool {
        self.optional.contains(&split(definition))
    }

    /// Returns the published names of the definitions with rules, and the fields.
    pub fn fields(&self) -> impl Iterator<Item = (String, &'static str)> {
        let fields = self.fields.keys().map(|(package, name, field)| ((package, name), *field));
        let orders = self.orders.iter().map(|((package, name), all)| ((package, name), all));
        let unions = self.unions.iter();
        let unions = unions.map(|((package, name), union)| ((package, name), &union.members));
        let listed = orders.chain(unions).flat_map(|(definition, all)| {
            let names = all.iter().copied().filter(|name| *name != ".");
            names.map(move |name| (definition, name))
        });
        let all = fields.chain(listed);
        all.map(|((package, name), field)| (format!("{package}.{name}"), field))
    }

    /// Returns the published names of the definitions with only optional fields.
    pub fn optional(&self) -> impl Iterator<Item = String> {
        self.optional.iter().map(|(package, name)| format!("{package}.{name}"))
    }
}

/// Splits a published name into the package and the short name.
fn split(definition: &'static str) -> (&'static str, &'static str) {
    definition.rsplit_once('.').unwrap_or(("", definition))
}

fn rule(line: &'static str) -> Result<Rule, &'static str> {
    let mut rule = Rule::default();
    let (line, default) = match line.split_once(" default=") {
        Some((line, default)) => (line, Some(default.trim())),
        None => (line, None),
    };
    if let Some(text) = default {
        serde_json::from_str::<serde_json::Value>(text).map_err(|_| text)?;
        rule.default = default;
    }
    for word in line.split_whitespace().skip(1) {
        let (name, value) = word.split_once('=').unwrap_or((word, ""));
        let number = || value.parse().map(Some).map_err(|_| word);
        match name {
            "needed" => rule.needed = true,
            "optional" => rule.optional = true,
            "open" => rule.open = true,
            "unchecked" => rule.unchecked = true,
            "strict" => rule.constraints.strict = true,
            "disabled" => rule.disabled = true,
            "keep" => rule.keep = true,
            "null" => rule.null = true,
            "syntax" => rule.constraints.syntax = Some(value.parse::<Syntax>().map_err(|_| word)?),
            "keys" => rule.constraints.keys = Some(value.parse::<Syntax>().map_err(|_| word)?),
            "unique" => rule.constraints.unique = Some(value),
            "key" => rule.constraints.key = Some(value),
            "most" => rule.constraints.most = Some(value.parse().map_err(|_| word)?),
            "limit" => {
                rule.constraints.most = Some(value.parse().map_err(|_| word)?);
                rule.constraints.stops = true;
            }
            "minimum" => rule.minimum = number()?,
            "maximum" => rule.maximum = number()?,
            "enum" => rule.enumeration = value.split(',').collect(),
            _ => return Err(word),
        }
    }
    Ok(rule)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[test]
    fn rules_are_found_by_definition_and_field() {
        let text =
            "# A comment.\npackage io.k8s.p.v1\n\nA\n  b minimum=1 enum=x,y default=\"x y\"\n";
        let rules = Rules::parse(&[("p", text)]).unwrap();
        let rule = rules.get("io.k8s.p.v1.A", "b");
        assert_eq!((rule.minimum, rule.default), (Some(1.0), Some("\"x y\"")));
        assert_eq!(rule.enumeration, ["x", "y"]);
        assert_eq!(*rules.get("io.k8s.p.v1.A", "c"), Rule::default());
        let fields: Vec<_> = rules.fields().collect();
        assert_eq!(fields, [("io.k8s.p.v1.A".to_owned(), "b")]);
    }

    #[test]
    fn a_definition_can_be_optional() {
        let rules = Rules::parse(&[("p", "package io.k8s.p.v1\n\nA optional\n  b minimum=1\nC\n")]);
        let rules = rules.unwrap();
        assert!(rules.is_optional("io.k8s.p.v1.A") && !rules.is_optional("io.k8s.p.v1.C"));
        assert_eq!(rules.get("io.k8s.p.v1.A", "b").minimum, Some(1.0));
        assert_eq!(rules.optional().collect::<Vec<_>>(), ["io.k8s.p.v1.A"]);
    }

    #[test]
    fn a_definition_has_an_order_and_a_union() {
        let text = "package p\nA\n  order: b .\n  order: c\n  union=farm: b c\nB\n  union: d\n";
        let rules = Rules::parse(&[("p", text)]).unwrap();
        assert_eq!(rules.order("p.A"), ["b", ".", "c"]);
        assert_eq!(rules.union("p.A"), Some(Union { members: vec!["b", "c"], word: "farm" }));
        assert_eq!(rules.union("p.B"), Some(Union { members: vec!["d"], word: "" }));
        assert_eq!((rules.order("p.B"), rules.union("p.C")), (Vec::new(), None));
        let mut fields: Vec<_> = rules.fields().collect();
        fields.sort_unstable();
        fields.dedup();
        let field = |definition: &str, name| (definition.to_owned(), name);
        assert_eq!(fields, [field("p.A", "b"), field("p.A", "c"), field("p.B", "d")]);
    }

    #[rstest]
    #[case("A\n  b big", "big")]
    #[case("A\n  odd: a", "odd")]
    #[case("\nA needed", "needed")]
    #[case("A\n  b minimum=x", "minimum=x")]
    #[case("A\n  b default={", "{")]
    fn mistakes_have_their_line(#[case] text: &'static str, #[case] attribute: &'static str) {
        let error = Rules::parse(&[("p", text)]).unwrap_err();
        assert_eq!(error, RulesError { file: "p", line: 2, attribute });
    }
}
