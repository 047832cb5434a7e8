//! Patterns over JSON.

use super::Lowering;
use crate::forms::JsonText;
use crate::pattern::{JsonType, Pattern, TextPattern};
use crate::syntax::json::{Json, JsonString, JsonValue};

/// What a special object can say.
const OPERATORS: [&str; 10] =
    ["$absent", "$each", "$exactly", "$match", "$not", "$oneOf", "$present", "$size", "$some", "$type"];

/// The types that `$type` knows.
const TYPES: [(&str, JsonType); 9] = [
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
    pub(super) fn pattern(&mut self, text: &JsonText) -> Option<Pattern> {
        let json = self.json(text)?;
        let pattern = self.pattern_value(text, &json)?;
        if matches!(pattern, Pattern::Present | Pattern::Absent) {
            let place = self.json_place(text, json.place);
            self.error(&place, "cannot-fail", "a document is always there: this expectation says nothing")
                .set_help("name the members that must be there, or absent");
        }
        Some(pattern)
    }

    fn pattern_value(&mut self, text: &JsonText, json: &Json) -> Option<Pattern> {
        match &json.value {
            JsonValue::Object(members) if members.is_empty() => {
                let place = self.json_place(text, json.place.clone());
                self.error(&place, "cannot-fail", "the empty pattern matches every object")
                    .set_help(r#"name a member, or write {"$type": "object"} or {"$exactly": {}}"#);
                None
            }
            JsonValue::Object(members) if is_special(members) => self.special(text, json, members),
            JsonValue::Object(members) => {
                let members = members.iter().map(|(name, value)| {
                    let name = self.json_string(text, name);
                    self.pattern_value(text, value).map(|pattern| (name, pattern))
                });
                let members: Vec<_> = members.collect();
                members.into_iter().collect::<Option<_>>().map(Pattern::Object)
            }
            JsonValue::Array(_) => self.pattern_items(text, json).map(Pattern::Array),
            _ => Some(Pattern::Value(self.json_value(text, json))),
        }
    }

    fn special(&mut self, text: &JsonText, json: &Json, members: &[(JsonString, Json)]) -> Option<Pattern> {
        let [(operator, argument)] = members else {
            let place = self.json_place(text, json.place.clone());
            self.error(&place, "malformed-pattern", "a special object has one member only")
                .set_help("several patterns for one value cannot be joined: use another check");
            return None;
        };
        let place = self.json_place(text, argument.place.clone());
        match operator.value.as_str() {
            "$absent" => self.only_true(argument, &place, "$present").then_some(Pattern::Absent),
            "$present" => self.only_true(argument, &place, "$absent").then_some(Pattern::Present),
            "$match" => {
                let JsonValue::String(regex) = &argument.value else {
                    return self.malformed(&place, "`$match` takes a regular expression in a string");
                };
                let template = self.json_string(text, regex);
                self.regex_is_sharp(&template, &place);
                Some(Pattern::Match(TextPattern::Regex(template)))
            }
            "$type" => {
                let JsonValue::String(name) = &argument.value else {
                    return self.malformed(&place, "`$type` takes the name of a type in a string");
                };
                let found = TYPES.iter().find(|(known, _)| *known == name.value);
                if found.is_none() {
                    self.error(&place, "malformed-pattern", format!("no type has the name `{}`", name.value))
                        .suggest_from(&name.value, TYPES.map(|(known, _)| known));
                }
                found.map(|(_, json_type)| Pattern::Type(*json_type))
            }
            "$size" => {
                let size = match &argument.value {
                    JsonValue::Number(number) => number.as_u64().and_then(|size| usize::try_from(size).ok()),
                    _ => None,
                };
                match size {
                    Some(size) => Some(Pattern::Size(size)),
                    None => self.malformed(&place, "`$size` takes a number of items"),
                }
            }
            "$not" => self.pattern_value(text, argument).map(|pattern| Pattern::Not(Box::new(pattern))),
            "$each" => self.pattern_value(text, argument).map(|pattern| Pattern::Each(Box::new(pattern))),
            "$oneOf" => self.alternatives(text, argument, &place).map(Pattern::OneOf),
            "$some" => self.alternatives(text, argument, &place).map(Pattern::Some),
            "$exactly" => Some(Pattern::Exactly(self.json_value(text, argument))),
            other => {
                let place = self.json_place(text, operator.place.clone());
                self.error(&place, "malformed-pattern", format!("no pattern has the name `{other}`"))
                    .suggest_from(other, OPERATORS);
                None
            }
        }
    }

    fn alternatives(
        &mut self,
        text: &JsonText,
        json: &Json,
        place: &std::ops::Range<usize>,
    ) -> Option<Vec<Pattern>> {
        match &json.value {
            JsonValue::Array(items) if !items.is_empty() => self.pattern_items(text, json),
            _ => self.malformed(place, "expected a list with at least one pattern"),
        }
    }

    /// All items are looked at, even after one that is wrong.
    fn pattern_items(&mut self, text: &JsonText, json: &Json) -> Option<Vec<Pattern>> {
        let JsonValue::Array(items) = &json.value else { return None };
        let patterns: Vec<_> = items.iter().map(|item| self.pattern_value(text, item)).collect();
        patterns.into_iter().collect()
    }

    fn only_true(&mut self, argument: &Json, place: &std::ops::Range<usize>, opposite: &str) -> bool {
        let is_true = matches!(argument.value, JsonValue::Bool(true));
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

/// An object that says what a value must be like. Data may have names with `$` too, as a strategic merge patch has:
/// they are taken for operators where they stand alone.
fn is_special(members: &[(JsonString, Json)]) -> bool {
    match members {
        [(name, _)] => name.value.starts_with('$') && !name.value.starts_with("${"),
        _ => members.iter().any(|(name, _)| OPERATORS.contains(&name.value.as_str())),
    }
}
