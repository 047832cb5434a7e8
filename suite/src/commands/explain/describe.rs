//! Describes claims, patterns and templates.

use kubeproof_cases::case::{Claim, Rejection};
use kubeproof_cases::pattern::{JsonType, Pattern, TextPattern};
use kubeproof_cases::template::{JsonTemplate, Part, Template};
use serde::Serialize;
use serde_json::Value;

/// Describes claims that must all hold.
pub(super) fn claims(claims: &[Claim]) -> String {
    claims.iter().map(claim).collect::<Vec<_>>().join("; ")
}

fn claim(claim: &Claim) -> String {
    match claim {
        Claim::Status(codes) => format!("status {}", codes_of(codes)),
        Claim::Rejected(rejection) => rejected(rejection),
        Claim::Body(body) => format!("body {}", pattern(body)),
        Claim::Header { name, value: None } => format!("no header {name}"),
        Claim::Header { name, value: Some(value) } => {
            format!("header {name} {}", text_pattern(value))
        }
        Claim::Text(text) => format!("text {}", text_pattern(text)),
        Claim::Cel(expression) => expression.text.split_whitespace().collect::<Vec<_>>().join(" "),
        Claim::AnyOf(sets) => {
            let sets: Vec<_> = sets.iter().map(|set| format!("({})", claims(set))).collect();
            sets.join(" or ")
        }
    }
}

fn rejected(rejection: &Rejection) -> String {
    let reason = match rejection.reason.as_slice() {
        [] => String::new(),
        reasons => format!(" {}", reasons.join(" or ")),
    };
    let details =
        rejection.details.as_ref().map(|details| format!(", details {}", pattern(details)));
    let message =
        rejection.message.as_ref().map(|message| format!(", message {}", text_pattern(message)));
    format!(
        "rejected with {}{reason}{}{}",
        codes_of(&rejection.code),
        details.unwrap_or_default(),
        message.unwrap_or_default()
    )
}

fn codes_of(codes: &[u16]) -> String {
    codes.iter().map(ToString::to_string).collect::<Vec<_>>().join(" or ")
}

/// Describes a pattern in the form of the JSON that it matches.
pub(super) fn pattern(shape: &Pattern) -> String {
    let all = |patterns: &[Pattern], between: &str| {
        patterns.iter().map(pattern).collect::<Vec<_>>().join(between)
    };
    match shape {
        Pattern::Value(value) => json(value),
        Pattern::Object(members) => {
            let members =
                members.iter().map(|(name, value)| format!("{}: {}", text(name), pattern(value)));
            format!("{{{}}}", members.collect::<Vec<_>>().join(", "))
        }
        Pattern::Array(items) => format!("[{}]", all(items, ", ")),
        Pattern::Absent => "absent".to_owned(),
        Pattern::Present => "present".to_owned(),
        Pattern::Match(value) => text_pattern(value),
        Pattern::Type(json_type) => type_name(*json_type).to_owned(),
        Pattern::OneOf(patterns) => format!("({})", all(patterns, " or ")),
        Pattern::Not(inner) => format!("not {}", pattern(inner)),
        Pattern::Each(inner) => format!("each item {}", pattern(inner)),
        Pattern::Some(patterns) => format!("among the items {}", all(patterns, ", ")),
        Pattern::Size(size) => format!("of size {size}"),
        Pattern::Exactly(value) => format!("exactly {}", json(value)),
    }
}

pub(super) fn text_pattern(value: &TextPattern) -> String {
    match value {
        TextPattern::Equal(value) => format!("{:?}", text(value)),
        TextPattern::Regex(value) => format!("/{}/", text(value)),
    }
}

fn type_name(json_type: JsonType) -> &'static str {
    match json_type {
        JsonType::Array => "an array",
        JsonType::Boolean => "a boolean",
        JsonType::Integer => "an integer",
        JsonType::Null => "null",
        JsonType::Number => "a number",
        JsonType::Object => "an object",
        JsonType::String => "a string",
        JsonType::Timestamp => "a timestamp",
        JsonType::Uuid => "a UUID",
    }
}

fn json(value: &JsonTemplate) -> String {
    match value {
        JsonTemplate::Null => "null".to_owned(),
        JsonTemplate::Bool(value) => value.to_string(),
        JsonTemplate::Number(value) => value.to_string(),
        JsonTemplate::String(value) => format!("{:?}", text(value)),
        JsonTemplate::Array(items) => {
            format!("[{}]", items.iter().map(json).collect::<Vec<_>>().join(", "))
        }
        JsonTemplate::Object(members) => {
            let members =
                members.iter().map(|(name, value)| format!("{}: {}", text(name), json(value)));
            format!("{{{}}}", members.collect::<Vec<_>>().join(", "))
        }
    }
}

/// Returns a template as its case file spells it.
pub(super) fn text(template: &Template) -> String {
    let part = |part: &Part| match part {
        Part::Text(text) => text.clone(),
        Part::Variable(name) => format!("${{{name}}}"),
        Part::Fill(count) => format!("${{fill:{count}}}"),
        Part::Name(count) => format!("${{name:{count}}}"),
    };
    template.parts.iter().map(part).collect()
}

/// Returns the name of an enum value as files spell it.
pub(super) fn serialized_name(value: &impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(Value::String(name)) => name,
        Ok(other) => other.to_string(),
        Err(_) => String::new(),
    }
}
