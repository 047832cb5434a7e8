//! Templates, JSON and regular expressions: text of a file that is more than text.

use std::collections::BTreeSet;
use std::ops::Range;

use regex::Regex;

use super::Lowering;
use crate::case::Capability;
use crate::pattern::TextPattern;
use crate::syntax::json::{Json, JsonErrorKind, JsonValue};
use crate::syntax::{json, template};
use crate::template::{JsonTemplate, Part, Template};
use crate::yaml::{Content, Key, Located, Node, Scalar};

/// Variables of every case, with their meaning.
pub(crate) const ALWAYS: [(&str, &str); 5] = [
    ("load", "how much work a load test does, as a multiple (`--load`, default 1)"),
    ("name", "a name for the objects of this case: a DNS label of at most 40 characters"),
    ("ns", "the namespace of the run; empty with a cluster-scoped subject"),
    ("run", "the id of the run, a DNS label; names of cluster-scoped objects start with it"),
    ("seed", "the random seed of the run"),
];
/// Variables of the protocol that a case runs over.
pub(crate) const OF_PROTOCOL: [(&str, &str); 3] = [
    ("protocol", "the protocol, such as `websocket/v5.channel.k8s.io`"),
    ("protocol.name", "its subprotocol, such as `v5.channel.k8s.io`"),
    ("protocol.over", "`websocket` or `spdy`"),
];
/// Variables of the run's own pod.
pub(crate) const OF_POD: [(&str, &str); 4] = [
    ("pod", "the name of the run's own pod, which runs and which all cases share"),
    ("pod.container", "the name of its container"),
    ("pod.image", "its image, for pods that cases create themselves"),
    ("pod.path", "its path, such as `/api/v1/namespaces/kp-x/pods/kp-x`"),
];
/// Variables of the subject.
pub(crate) const OF_SUBJECT: [(&str, &str); 14] = [
    ("collection", "the path of the subject's collection, in `${ns}` if it is namespaced"),
    ("collection.all", "the path of its collection across all namespaces"),
    ("subject.apiVersion", "such as `apps/v1`"),
    ("subject.change", "a merge patch that changes the desired state; with `has: [change]`"),
    ("subject.group", "the group; empty for core/v1"),
    ("subject.kind", "the kind"),
    ("subject.listKind", "the kind of its lists"),
    ("subject.qualified", "the plural with the group, such as `deployments.apps`"),
    ("subject.resource", "the plural, such as `deployments`"),
    ("subject.root", "the path of its group version, such as `/apis/apps/v1`"),
    ("subject.singular", "the singular"),
    ("subject.status", "a merge patch for the status subresource; with `has: [status]`"),
    ("subject.template", "a valid object without apiVersion, kind and name"),
    ("subject.version", "the version"),
];

fn names<const N: usize>(variables: [(&'static str, &'static str); N]) -> [&'static str; N] {
    variables.map(|(name, _)| name)
}

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
            if !self.parameters.contains_key(name) {
                self.variable(name, || place(at.clone()));
            }
        }
        let parts = parsed.parts.into_iter().flat_map(|part| self.with_parameters(part)).collect();
        Template { parts, span: self.source.span(start) }
    }

    /// The parts of a template in place of a parameter of a fragment.
    fn with_parameters(&self, part: Part) -> Vec<Part> {
        let Part::Variable(name) = &part else { return vec![part] };
        match self.parameters.get(name) {
            None => vec![part],
            Some(JsonTemplate::String(text)) => text.parts.clone(),
            Some(JsonTemplate::Number(number)) => vec![Part::Text(number.to_string())],
            Some(JsonTemplate::Bool(value)) => vec![Part::Text(value.to_string())],
            Some(_) => vec![Part::Text(String::new())],
        }
    }

    /// A variable that a template reads.
    fn variable(&mut self, name: &str, place: impl Fn() -> Range<usize>) {
        let root = name.split('.').next().unwrap_or(name);
        if self.is_let(root) {
            self.let_in_template(root);
            return;
        }
        if let Some(known) = self.scopes.get_mut(root) {
            known.used = true;
            let is_value = known.kind.is_value();
            self.is_unconditional(root, &place(), &BTreeSet::new());
            if !is_value {
                self.error(&place(), "step-as-value", format!("`{root}` is a step, and no text"))
                    .set_help("take a value of its response with `capture`");
            }
            return;
        }
        if names(ALWAYS).contains(&name) {
            return;
        }
        if names(OF_PROTOCOL).contains(&name) {
            if self.protocols.is_empty() {
                let message = format!("`${{{name}}}` needs a protocol, and this case names none");
                self.error(&place(), "unasked-capability", message).set_help(
                    "add `protocols: [command]` to the case, or name the protocol itself",
                );
            }
            return;
        }
        if names(OF_POD).contains(&name) {
            if !self.needs.contains(&Capability::RunningPods) {
                self.error(&place(), "unasked-capability", "a target may not run pods")
                    .set_help("add `needs: [running-pods]` to the case");
            }
            return;
        }
        // Of the subject's documents, members can be read too.
        let documents = ["subject.change", "subject.status", "subject.template"];
        let is_member = |document: &&str| {
            name.strip_prefix(*document).is_some_and(|rest| rest.starts_with('.'))
        };
        if let Some(known) = names(OF_SUBJECT)
            .into_iter()
            .find(|known| *known == name)
            .or(documents.into_iter().find(is_member))
        {
            self.subject_variable(known, place);
            return;
        }
        let known: Vec<String> = self
            .scopes
            .names()
            .filter(|name| name.kind.is_value())
            .map(|n| n.text.clone())
            .collect();
        let own = names(ALWAYS)
            .into_iter()
            .chain(names(OF_PROTOCOL))
            .chain(names(OF_POD))
            .chain(names(OF_SUBJECT));
        let known = known.iter().map(String::as_str).chain(own);
        let message = format!("`${{{name}}}` is not defined here");
        self.error(&place(), "undefined-variable", message).suggest_from(name, known);
    }

    fn subject_variable(&mut self, name: &str, place: impl Fn() -> Range<usize>) {
        let Some(subject) = &self.subject else {
            self.error(
                &place(),
                "no-subject",
                format!("`${{{name}}}` needs a subject, and this case has none"),
            )
            .set_help(
                "add `subject: {}` to run on every standard subject, or write the value itself",
            );
            return;
        };
        let missing = match name {
            "subject.change" if !subject.has_change => "change",
            "subject.status" if !subject.has_status => "status",
            _ => return,
        };
        self.error(&place(), "unasked-subject", format!("a subject may lack `{missing}`"))
            .set_help(format!("add `has: [{missing}]` to `subject`"));
    }

    /// JSON text as a tree; `None` where it cannot be read.
    pub(super) fn json(&mut self, text: &Located<String>) -> Option<Node> {
        match json::read(&text.value) {
            Ok(json) => Some(self.tree(text, &json)),
            Err(errors) => {
                for error in errors {
                    let code = match error.kind {
                        JsonErrorKind::Syntax => "invalid-json",
                        JsonErrorKind::Duplicate => "duplicate-member",
                    };
                    let scalar =
                        Scalar { source: self.source, value: &text.value, place: &text.place };
                    self.error(&scalar.range(error.place), code, error.message);
                }
                None
            }
        }
    }

    fn tree(&self, text: &Located<String>, json: &Json) -> Node {
        let scalar = Scalar { source: self.source, value: &text.value, place: &text.place };
        let content = match &json.value {
            JsonValue::Null => Content::Null,
            JsonValue::Bool(value) => Content::Bool(*value),
            JsonValue::Number(number) => Content::Number(number.clone()),
            JsonValue::String(string) => Content::String(string.value.clone()),
            JsonValue::Array(items) => {
                Content::List(items.iter().map(|item| self.tree(text, item)).collect())
            }
            JsonValue::Object(members) => {
                let members = members.iter().map(|(name, value)| {
                    let place = scalar.range(name.place.clone());
                    let span = self.source.span(place.start);
                    (Key { value: name.value.clone(), span, place }, self.tree(text, value))
                });
                Content::Map(members.collect())
            }
        };
        let place = scalar.range(json.place.clone());
        Node { content, span: self.source.span(place.start), place }
    }

    /// A body.
    pub(super) fn node(&mut self, node: &Node) -> JsonTemplate {
        match &node.content {
            Content::Null => JsonTemplate::Null,
            Content::Bool(value) => JsonTemplate::Bool(*value),
            Content::Number(number) => JsonTemplate::Number(number.clone()),
            Content::String(text) => self.string(text, &node.place),
            Content::List(items) => {
                JsonTemplate::Array(items.iter().map(|item| self.node(item)).collect())
            }
            Content::Map(members) => {
                let members = members.iter().map(|(key, value)| {
                    (self.string_template(&key.value, &key.place), self.node(value))
                });
                JsonTemplate::Object(members.collect())
            }
        }
    }

    /// A string of a body. A string that is one parameter of a fragment becomes the parameter's
    /// value.
    fn string(&mut self, text: &str, place: &Range<usize>) -> JsonTemplate {
        let name = text.strip_prefix("${").and_then(|rest| rest.strip_suffix('}'));
        if let Some(value) = name.and_then(|name| self.parameters.get(name)) {
            return value.clone();
        }
        JsonTemplate::String(self.string_template(text, place))
    }

    pub(super) fn string_template(&mut self, text: &str, place: &Range<usize>) -> Template {
        self.template(&Located { value: text.to_owned(), place: place.clone() })
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
                let reason =
                    message.lines().last().unwrap_or_default().trim_start_matches("error: ");
                self.error(place, "invalid-regex", format!("not a regular expression: {reason}"));
            }
            Ok(regex)
                if ["", "\n", "kubeproof", "{\"a\": [1]}", " \u{7f}ü"]
                    .iter()
                    .all(|text| regex.is_match(text)) =>
            {
                self.error(place, "cannot-fail", "this regular expression matches every text")
                    .set_help("name a part of the text, or remove the expectation");
            }
            Ok(_) => {}
        }
    }

    pub(super) fn unused_captures(&mut self) {
        for (name, place) in self.scopes.finish() {
            self.error(&place, "unused-capture", format!("the capture `{name}` is never used"))
                .set_help("use it, or remove it; an expression can read the response itself");
        }
    }

    /// Variables that neither steps nor captures define.
    pub(super) fn is_expression_variable(&self, name: &str) -> bool {
        names(ALWAYS).contains(&name)
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
            .chain(names(ALWAYS).into_iter().chain(subject).map(str::to_owned))
            .collect()
    }
}
