//! Templates, JSON and regular expressions: text of a file that is more than text.

use std::ops::Range;

use regex::Regex;

use super::Lowering;
use crate::case::Capability;
use crate::forms::JsonText;
use crate::pattern::TextPattern;
use crate::syntax::json::{Json, JsonErrorKind, JsonString, JsonValue};
use crate::syntax::{Located, Scalar, json, template};
use crate::template::{JsonTemplate, Part, Template};

/// Variables that need no subject.
const ALWAYS: [&str; 5] = ["load", "name", "ns", "run", "seed"];
/// Variables of the protocol that a case runs over.
const OF_PROTOCOL: [&str; 3] = ["protocol", "protocol.name", "protocol.over"];
/// Variables of the run's own pod.
const OF_POD: [&str; 4] = ["pod", "pod.container", "pod.image", "pod.path"];
/// Variables of the subject.
const OF_SUBJECT: [&str; 14] = [
    "collection",
    "collection.all",
    "subject.apiVersion",
    "subject.change",
    "subject.group",
    "subject.kind",
    "subject.listKind",
    "subject.qualified",
    "subject.resource",
    "subject.root",
    "subject.singular",
    "subject.status",
    "subject.template",
    "subject.version",
];

impl Lowering<'_> {
    /// A scalar that is a template.
    pub(super) fn template(&mut self, text: &Located<String>) -> Template {
        let scalar = Scalar { source: self.source, value: &text.value, place: &text.place };
        self.template_at(&text.value, text.place.start, |part| scalar.range(part))
    }

    /// Text that is a template, with the way from its bytes to those of the file.
    fn template_at(
        &mut self,
        text: &str,
        start: usize,
        place: impl Fn(Range<usize>) -> Range<usize>,
    ) -> Template {
        let parsed = template::parse(text);
        for (message, at) in parsed.errors {
            self.error(&place(at), "malformed-variable", message);
        }
        for (name, at) in &parsed.variables {
            self.variable(name, || place(at.clone()));
        }
        Template { parts: parsed.parts, span: self.source.span(start) }
    }

    /// A variable that a template reads.
    fn variable(&mut self, name: &str, place: impl Fn() -> Range<usize>) {
        let root = name.split('.').next().unwrap_or(name);
        if let Some(known) = self.scopes.get_mut(root) {
            known.used = true;
            if !known.kind.is_value() {
                self.error(&place(), "step-as-value", format!("`{root}` is a step, and no text"))
                    .set_help("take the value you need out of its answer with `capture`");
            }
            return;
        }
        if ALWAYS.contains(&name) {
            return;
        }
        if OF_PROTOCOL.contains(&name) {
            if self.protocols.is_empty() {
                let message = format!("`${{{name}}}` needs a protocol, and this case names none");
                self.error(&place(), "unasked-capability", message)
                    .set_help("add `protocols: [command]` to the case, or name the protocol itself");
            }
            return;
        }
        if OF_POD.contains(&name) {
            if !self.needs.contains(&Capability::RunningPods) {
                self.error(&place(), "unasked-capability", "not every target runs pods")
                    .set_help("add `needs: [running-pods]` to the case");
            }
            return;
        }
        // Of the subject's documents, members can be read too.
        let documents = ["subject.change", "subject.status", "subject.template"];
        let is_member =
            |document: &&str| name.strip_prefix(*document).is_some_and(|rest| rest.starts_with('.'));
        if let Some(known) =
            OF_SUBJECT.into_iter().find(|known| *known == name).or(documents.into_iter().find(is_member))
        {
            self.subject_variable(known, place);
            return;
        }
        let known: Vec<String> =
            self.scopes.names().filter(|name| name.kind.is_value()).map(|n| n.text.clone()).collect();
        let own = ALWAYS.into_iter().chain(OF_PROTOCOL).chain(OF_POD).chain(OF_SUBJECT);
        let known = known.iter().map(String::as_str).chain(own);
        let message = format!("nothing defines `${{{name}}}` at this point");
        self.error(&place(), "undefined-variable", message).suggest_from(name, known);
    }

    fn subject_variable(&mut self, name: &str, place: impl Fn() -> Range<usize>) {
        let Some(subject) = &self.subject else {
            self.error(
                &place(),
                "no-subject",
                format!("`${{{name}}}` needs a subject, and this case has none"),
            )
            .set_help("add `subject: {}` to run on every standard subject, or write the value itself");
            return;
        };
        let missing = match name {
            "subject.change" if !subject.has_change => "change",
            "subject.status" if !subject.has_status => "status",
            _ => return,
        };
        self.error(&place(), "unasked-subject", format!("not every subject has a `{missing}`"))
            .set_help(format!("add `has: [{missing}]` to `subject`"));
    }

    /// JSON in a block scalar; `null` where it cannot be read.
    pub(super) fn json(&mut self, text: &JsonText) -> Option<Json> {
        match json::read(&text.0.value) {
            Ok(json) => Some(json),
            Err(errors) => {
                for error in errors {
                    let code = match error.kind {
                        JsonErrorKind::Syntax => "invalid-json",
                        JsonErrorKind::Duplicate => "duplicate-member",
                    };
                    self.error(&self.json_place(text, error.place), code, error.message);
                }
                None
            }
        }
    }

    /// A body.
    pub(super) fn json_template(&mut self, text: &JsonText) -> JsonTemplate {
        self.json(text).map_or(JsonTemplate::Null, |json| self.json_value(text, &json))
    }

    pub(super) fn json_value(&mut self, text: &JsonText, json: &Json) -> JsonTemplate {
        match &json.value {
            JsonValue::Null => JsonTemplate::Null,
            JsonValue::Bool(value) => JsonTemplate::Bool(*value),
            JsonValue::Number(number) => JsonTemplate::Number(number.clone()),
            JsonValue::String(string) => JsonTemplate::String(self.json_string(text, string)),
            JsonValue::Array(items) => {
                JsonTemplate::Array(items.iter().map(|item| self.json_value(text, item)).collect())
            }
            JsonValue::Object(members) => JsonTemplate::Object(
                members
                    .iter()
                    .map(|(name, value)| (self.json_string(text, name), self.json_value(text, value)))
                    .collect(),
            ),
        }
    }

    pub(super) fn json_string(&mut self, text: &JsonText, string: &JsonString) -> Template {
        if !string.value.contains("${") {
            let start = self.json_place(text, string.place.start..string.place.start).start;
            let parts = if string.value.is_empty() { vec![] } else { vec![Part::Text(string.value.clone())] };
            return Template { parts, span: self.source.span(start) };
        }
        let scalar = Scalar { source: self.source, value: &text.0.value, place: &text.0.place };
        let start = scalar.offset(string.place.start);
        self.template_at(&string.value, start, |part| scalar.range(string.part(part)))
    }

    pub(super) fn json_place(&self, text: &JsonText, part: Range<usize>) -> Range<usize> {
        Scalar { source: self.source, value: &text.0.value, place: &text.0.place }.range(part)
    }

    /// A regular expression in a scalar.
    pub(super) fn regex(&mut self, text: &Located<String>) -> TextPattern {
        let template = self.template(text);
        let whole = Scalar { source: self.source, value: &text.value, place: &text.place }.whole();
        self.regex_is_sharp(&template, &whole);
        TextPattern::Regex(template)
    }

    /// It compiles, whatever its variables hold, and there is text that it does not match.
    pub(super) fn regex_is_sharp(&mut self, template: &Template, place: &Range<usize>) {
        let text: String = template
            .parts
            .iter()
            .map(|part| match part {
                Part::Text(text) => text.clone(),
                Part::Variable(_) => "x".to_owned(),
                Part::Fill(length) | Part::Name(length) => "x".repeat(*length),
            })
            .collect();
        match Regex::new(&text) {
            Err(error) => {
                let message = error.to_string();
                let reason = message.lines().last().unwrap_or_default().trim_start_matches("error: ");
                self.error(place, "invalid-regex", format!("not a regular expression: {reason}"));
            }
            Ok(regex)
                if ["", "\n", "kubeproof", "{\"a\": [1]}", " \u{7f}ü"]
                    .iter()
                    .all(|text| regex.is_match(text)) =>
            {
                self.error(place, "cannot-fail", "this regular expression matches every text")
                    .set_help("say what the text must hold, or leave the expectation out");
            }
            Ok(_) => {}
        }
    }

    pub(super) fn unused_captures(&mut self) {
        for (name, place) in self.scopes.finish() {
            self.error(&place, "unused-capture", format!("the capture `{name}` is never used"))
                .set_help("use it, or remove it; an expression can read the answer itself");
        }
    }

    /// The variables of expressions beside those that steps and captures define.
    pub(super) fn is_expression_variable(&self, name: &str) -> bool {
        ALWAYS.contains(&name)
            || (name == "subject" && self.subject.is_some())
            || (name == "protocol" && !self.protocols.is_empty())
            || (name == "pod" && self.needs.contains(&Capability::RunningPods))
    }

    /// Everything that an expression can read here.
    pub(super) fn expression_variables(&self) -> Vec<String> {
        let subject = self.subject.is_some().then_some("subject");
        self.scopes
            .names()
            .map(|name| name.text.clone())
            .chain(ALWAYS.into_iter().chain(subject).map(str::to_owned))
            .collect()
    }
}
