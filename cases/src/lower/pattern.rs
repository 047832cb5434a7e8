//! Patterns over JSON.

use super::{Lowering, first_line};
use crate::pattern::{JsonType, Pattern, TextPattern};
use crate::raw::forms::Yaml;
use crate::yaml::{Content, Key, Node};

/// Patterns beyond plain values, with their meaning.
pub(crate) const OPERATORS: [(&str, &str); 10] = [
    ("$absent", "`{$absent: true}`: the member is absent"),
    ("$each", "`{$each: PATTERN}`: an array all of whose items match"),
    ("$exactly", "`{$exactly: VALUE}`: equal, without further members at any depth"),
    ("$match", "`{$match: REGEX}`: a string that the regular expression matches somewhere"),
    ("$not", "`{$not: PATTERN}`: does not match"),
    ("$oneOf", "`{$oneOf: [PATTERN, ..]}`: at least one matches"),
    ("$present", "`{$present: true}`: the member is present, with any value"),
    ("$size", "`{$size: N}`: an array, object or string of this length"),
    ("$some", "`{$some: [PATTERN, ..]}`: an array in which an item matches each of these"),
    ("$type", "`{$type: TYPE}`: a value of this type"),
];

/// The types of `$type`.
pub(crate) const TYPES: [(&str, JsonType); 9] = [
    ("array", JsonType::Array),
    ("boolean", JsonType::Boolean),
    ("integer", JsonType::Integer),
    ("null", JsonType::Null),
    ("number", JsonType::Number),
    ("object", JsonType::Object),
    ("string", JsonType::String),
    ("timestamp", JsonType::Timestamp),
    ("uuid", JsonType::Uuid),
];

impl Lowering<'_> {
    /// A pattern for a whole document; `None` when it is none.
    pub(super) fn pattern(&mut self, yaml: &Yaml) -> Option<Pattern> {
        let pattern = self.pattern_value(&yaml.0)?;
        if matches!(pattern, Pattern::Present | Pattern::Absent) {
            self.error(
                &first_line(&yaml.0.place),
                "cannot-fail",
                "a document is always present, so this pattern cannot fail",
            )
            .set_help("name the members that must be there, or absent");
        }
        Some(pattern)
    }

    fn pattern_value(&mut self, node: &Node) -> Option<Pattern> {
        match &node.content {
            Content::Map(members) if members.is_empty() => {
                let place = node.place.clone();
                self.error(&place, "cannot-fail", "the empty pattern matches every object")
                    .set_help(r#"name a member, or write {"$type": "object"} or {"$exactly": {}}"#);
                None
            }
            Content::Map(members) if is_special(members) => self.special(node, members),
            Content::Map(members) => {
                let members = members.iter().map(|(name, value)| {
                    let name = self.string_template(&name.value, &name.place);
                    self.pattern_value(value).map(|pattern| (name, pattern))
                });
                let members: Vec<_> = members.collect();
                members.into_iter().collect::<Option<_>>().map(Pattern::Object)
            }
            Content::List(_) => self.pattern_items(node).map(Pattern::Array),
            _ => Some(Pattern::Value(self.node(node))),
        }
    }

    #[expect(clippy::too_many_lines, reason = "one arm for each operator of a pattern")]
    fn special(&mut self, node: &Node, members: &[(Key, Node)]) -> Option<Pattern> {
        let [(operator, argument)] = members else {
            let place = node.place.clone();
            self.error(&place, "malformed-pattern", "a special object has one member only")
                .set_help("several patterns for one value cannot be joined: use another check");
            return None;
        };
        let place = argument.place.clone();
        match operator.value.as_str() {
            "$absent" => self.only_true(argument, &place, "$present").then_some(Pattern::Absent),
            "$present" => self.only_true(argument, &place, "$absent").then_some(Pattern::Present),
            "$match" => {
                let Content::String(regex) = &argument.content else {
                    return self
                        .malformed(&place, "`$match` takes a regular expression in a string");
                };
                let template = self.string_template(regex, &argument.place);
                self.regex_is_sharp(&template, &place);
                Some(Pattern::Match(TextPattern::Regex(template)))
            }
            "$type" => {
                let Content::String(name) = &argument.content else {
                    return self.malformed(&place, "`$type` takes the name of a type in a string");
                };
                let found = TYPES.iter().find(|(known, _)| *known == name);
                if found.is_none() {
                    self.error(
                        &place,
                        "malformed-pattern",
                        format!("no type has the name `{name}`"),
                    )
                    .suggest_from(name, TYPES.map(|(known, _)| known));
                }
                found.map(|(_, json_type)| Pattern::Type(*json_type))
            }
            "$size" => {
                let size = match &argument.content {
                    Content::Number(number) => {
                        number.as_u64().and_then(|size| usize::try_from(size).ok())
                    }
                    _ => None,
                };
                match size {
                    Some(size) => Some(Pattern::Size(size)),
                    None => self.malformed(&place, "`$size` takes a number of items"),
                }
            }
            "$not" => self.pattern_value(argument).map(|pattern| Pattern::Not(Box::new(pattern))),
            "$each" => self.pattern_value(argument).map(|pattern| Pattern::Each(Box::new(pattern))),
            "$oneOf" => self.alternatives(argument, &place).map(Pattern::OneOf),
            "$some" => self.alternatives(argument, &place).map(Pattern::Some),
            "$exactly" => Some(Pattern::Exactly(self.node(argument))),
            other => {
                let place = operator.place.clone();
                self.error(
                    &place,
                    "malformed-pattern",
                    format!("no pattern has the name `{other}`"),
                )
                .suggest_from(other, OPERATORS.map(|(name, _)| name));
                None
            }
        }
    }

    fn alternatives(
        &mut self,
        node: &Node,
        place: &std::ops::Range<usize>,
    ) -> Option<Vec<Pattern>> {
        match &node.content {
            Content::List(items) if !items.is_empty() => self.pattern_items(node),
            _ => self.malformed(place, "expected a list with at least one pattern"),
        }
    }

    /// All items are looked at, even after one that is wrong.
    fn pattern_items(&mut self, node: &Node) -> Option<Vec<Pattern>> {
        let Content::List(items) = &node.content else { return None };
        let patterns: Vec<_> = items.iter().map(|item| self.pattern_value(item)).collect();
        patterns.into_iter().collect()
    }

    fn only_true(
        &mut self,
        argument: &Node,
        place: &std::ops::Range<usize>,
        opposite: &str,
    ) -> bool {
        let is_true = matches!(argument.content, Content::Bool(true));
        if !is_true {
            self.error(place, "malformed-pattern", "expected `true`")
                .set_help(format!("for the opposite write {{\"{opposite}\": true}}"));
        }
        is_true
    }

    fn malformed<T>(&mut self, place: &std::ops::Range<usize>, message: &str) -> Option<T> {
        self.error(place, "malformed-pattern", message);
        None
    }
}

/// An object that describes a value. Data may have names with `$`, too, as a strategic merge patch
/// has: they are taken for operators where they stand alone.
fn is_special(members: &[(Key, Node)]) -> bool {
    match members {
        [(name, _)] => name.value.starts_with('$') && !name.value.starts_with("${"),
        _ => {
            members.iter().any(|(name, _)| OPERATORS.iter().any(|(known, _)| *known == name.value))
        }
    }
}
