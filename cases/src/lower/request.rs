//! Requests: verb steps, `request` and `given`.

use std::ops::{Range, RangeInclusive};

use super::check::Judged;
use super::scope::Kind;
use super::verb::verb_of;
use super::{Lowering, first_line};
use crate::case::{Action, Body, Identity, Request};
use crate::raw::forms::{Entries, Texts, Yaml, YamlMapping};
use crate::raw::{RawEdit, RawGiven, RawProtobuf, RawRequest, RawStep};
use crate::template::{JsonTemplate, Part, Template};
use crate::yaml::{Content, Located, Node};

/// The numbers that fields of a message can have.
const FIELDS: RangeInclusive<u32> = 1..=0x1fff_ffff;

/// The bodies of a step. At most one is present.
#[derive(Clone, Copy, Default)]
pub(super) struct Bodies<'a> {
    pub(super) object: Option<&'a YamlMapping>,
    pub(super) body: Option<&'a Yaml>,
    pub(super) json: Option<&'a Located<String>>,
    pub(super) edit: Option<&'a Located<RawEdit>>,
    pub(super) text: Option<&'a Located<String>>,
    pub(super) protobuf: Option<&'a RawProtobuf>,
    pub(super) options: Option<&'a YamlMapping>,
}

impl Lowering<'_> {
    /// The request of a step; `None` if its action is another one.
    pub(super) fn request_of(&mut self, raw: &RawStep, place: &Range<usize>) -> Option<Action> {
        if let Some(given) = &raw.given {
            return Some(Action::Given(self.given(given, place)));
        }
        if let Some(request) = &raw.request {
            return Some(Action::Request(self.request(request, place)));
        }
        let (common, verb) = verb_of(raw)?;
        Some(Action::Request(self.verb(common, &verb, place)))
    }

    fn given(&mut self, raw: &RawGiven, place: &Range<usize>) -> Request {
        let default = Located { value: "${collection}".to_owned(), place: raw.id.place.clone() };
        let path = self.template(raw.path.as_ref().unwrap_or(&default));
        self.is_asked_for("POST", &path, place);
        let body = self.body(
            place,
            Bodies { object: raw.object.as_ref(), body: raw.body.as_ref(), ..Bodies::default() },
        );
        if body.is_none() {
            self.error(place, "no-body", "`given` creates an object, and there is none")
                .set_help("add `object` or `body`");
        }
        self.step_id(&raw.id, Kind::Exchange);
        Request {
            id: raw.id.value.clone(),
            method: "POST".to_owned(),
            path,
            query: Vec::new(),
            headers: Vec::new(),
            content_type: None,
            accept: None,
            body,
            identity: Identity::Admin,
            exact: false,
            capture: self.captures(raw.capture.as_ref()),
            expect: Vec::new(),
            span: self.source.span(place.start),
        }
    }

    fn request(&mut self, raw: &RawRequest, place: &Range<usize>) -> Request {
        let path = self.template(&raw.path);
        self.path_is_absolute(&raw.path, &path);
        self.is_asked_for(&raw.method.value, &path, &raw.method.place);
        self.is_served(&path, &raw.path.place);
        self.has_identity(raw.identity, place);
        let query = self.query(raw.query.as_ref());
        let headers =
            raw.headers.as_ref().map(|headers| self.pairs(&headers.0)).unwrap_or_default();
        let body = self.body(
            place,
            Bodies {
                object: raw.object.as_ref(),
                body: raw.body.as_ref(),
                json: raw.json.as_ref(),
                edit: raw.edit.as_ref(),
                text: raw.text.as_ref(),
                protobuf: raw.protobuf.as_ref(),
                options: None,
            },
        );
        self.method_fits(raw, body.as_ref(), &headers);
        let content_type = raw.content_type.as_ref().map(|value| self.template(value));
        let accept = raw.accept.as_ref().map(|value| self.template(value));
        self.step_id(&raw.id, Kind::Exchange);
        let capture = self.captures(raw.capture.as_ref());
        Request {
            id: raw.id.value.clone(),
            method: raw.method.value.clone(),
            path,
            query,
            headers,
            content_type,
            accept,
            body,
            identity: raw.identity,
            exact: raw.exact,
            capture,
            expect: self.checks(&raw.expect, Judged::Response),
            span: self.source.span(place.start),
        }
    }

    fn method_fits(
        &mut self,
        raw: &RawRequest,
        body: Option<&Body>,
        headers: &[(String, Template)],
    ) {
        let method = raw.method.value.as_str();
        let is_token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
        if !raw.exact && (method.is_empty() || !method.chars().all(is_token)) {
            self.error(
                &raw.method.place,
                "malformed-method",
                format!("`{method}` is not an HTTP method"),
            );
        } else if !raw.exact && method.chars().any(|c| c.is_ascii_lowercase()) {
            self.error(
                &raw.method.place,
                "malformed-method",
                format!(
                    "methods are case-sensitive: `{method}` is not `{}`",
                    method.to_ascii_uppercase()
                ),
            )
            .set_help("to send it nevertheless, add `exact: true`");
        }
        if body.is_some() && matches!(method, "GET" | "HEAD") && !raw.exact {
            self.error(&raw.method.place, "unexpected-body", format!("{method} sends no body"))
                .set_help("to send it nevertheless, add `exact: true`");
        }
        let names_type = raw.content_type.is_some()
            || headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type"));
        if method == "PATCH" && body.is_some() && !names_type {
            self.error(
                &raw.method.place,
                "no-content-type",
                "PATCH must name the type of its patch",
            )
            .set_help(
                "add `contentType: application/merge-patch+json`, `application/json-patch+json`, \
                 ...",
            );
        }
    }

    pub(super) fn path_is_absolute(&mut self, raw: &Located<String>, path: &Template) {
        let absolute = match path.parts.first() {
            Some(Part::Text(text)) => text.starts_with('/'),
            // A captured link may be a whole path.
            Some(Part::Variable(name)) => !matches!(name.as_str(), "name" | "ns" | "run" | "i"),
            _ => false,
        };
        if !absolute {
            self.error(
                &raw.place,
                "malformed-path",
                "a path starts with `/` or with `${collection}`",
            );
        }
    }

    pub(super) fn body(&mut self, place: &Range<usize>, given: Bodies<'_>) -> Option<Body> {
        let bodies = [
            given.object.is_some(),
            given.body.is_some(),
            given.json.is_some(),
            given.edit.is_some(),
            given.text.is_some(),
            given.protobuf.is_some(),
        ];
        if bodies.into_iter().filter(|is_there| *is_there).count() > 1 {
            let message = "a request has one body: `object`, `body`, `json`, `edit`, `text` or \
                           `protobuf`";
            self.error(place, "one-of", message);
        }
        if let Some(YamlMapping(object)) = given.object {
            if self.subject.is_none() {
                self.error(
                    &first_line(&object.place),
                    "no-subject",
                    "`object` completes the subject's template, and this case has no subject",
                )
                .set_help("add `subject: {}`, or write the whole body as `body`");
            }
            return Some(Body::Object(self.node(object)));
        }
        if let Some(Yaml(body)) = given.body {
            return Some(Body::Json(self.node(body)));
        }
        if let Some(YamlMapping(options)) = given.options {
            return Some(Body::Json(delete_options(self.node(options))));
        }
        if let Some(json) = given.json {
            let node = self.json(json);
            return Some(Body::Exact(node.map_or(JsonTemplate::Null, |node| self.node(&node))));
        }
        if let Some(edit) = given.edit {
            self.exchange(&edit.value.of);
            let merge = self.node(&edit.value.merge.0);
            return Some(Body::Edit { of: edit.value.of.value.clone(), merge });
        }
        if let Some(protobuf) = given.protobuf {
            return Some(self.protobuf(protobuf));
        }
        given.text.map(|text| Body::Text(self.template(text)))
    }

    fn protobuf(&mut self, raw: &RawProtobuf) -> Body {
        self.has_field_numbers(&raw.message.0);
        Body::Protobuf {
            api_version: self.template(&raw.api_version),
            kind: self.template(&raw.kind),
            message: self.node(&raw.message.0),
        }
    }

    /// Reports names that are no numbers of fields, and values that have no form in protobuf.
    fn has_field_numbers(&mut self, node: &Node) {
        match &node.content {
            Content::Map(members) => {
                for (key, value) in members {
                    if !key.value.parse().is_ok_and(|number: u32| FIELDS.contains(&number)) {
                        let message = format!("`{}` is not the number of a field", key.value);
                        self.error(&key.place, "malformed-protobuf", message)
                            .set_help("numbers are those of the `.proto` file: 1 to 536870911");
                    }
                    self.has_field_numbers(value);
                }
            }
            Content::List(items) => {
                for item in items {
                    self.has_field_numbers(item);
                }
            }
            Content::Number(number) if number.is_i64() || number.is_u64() => {}
            Content::Bool(_) | Content::String(_) => {}
            Content::Null | Content::Number(_) => {
                let message = "expected text, an integer, a boolean, a mapping or a list";
                self.error(&first_line(&node.place), "malformed-protobuf", message);
            }
        }
    }

    /// A step with a response.
    fn exchange(&mut self, id: &Located<String>) {
        if !self.scopes.get(&id.value).is_some_and(|name| name.kind == Kind::Exchange) {
            let exchanges: Vec<String> = self
                .scopes
                .names()
                .filter(|name| name.kind == Kind::Exchange)
                .map(|name| name.text.clone())
                .collect();
            self.error(
                &id.place,
                "unknown-name",
                format!("no earlier request has the name `{}`", id.value),
            )
            .suggest_from(&id.value, exchanges.iter().map(String::as_str));
        }
    }

    /// A parameter with a list is repeated.
    pub(super) fn query(&mut self, query: Option<&Entries<Texts>>) -> Vec<(String, Template)> {
        let entries = query.into_iter().flat_map(|query| &query.0);
        let repeated = entries.flat_map(|(name, values)| {
            values.value.0.iter().map(|value| (name.value.clone(), value))
        });
        repeated.map(|(name, value)| (name, self.template(value))).collect()
    }

    pub(super) fn pairs(
        &mut self,
        entries: &[(Located<String>, Located<String>)],
    ) -> Vec<(String, Template)> {
        entries.iter().map(|(name, value)| (name.value.clone(), self.template(value))).collect()
    }
}

/// The options of a deletion, with apiVersion and kind.
fn delete_options(given: JsonTemplate) -> JsonTemplate {
    let text =
        |text: &str| Template { parts: vec![Part::Text(text.to_owned())], ..Template::default() };
    let JsonTemplate::Object(given) = given else { return given };
    let mut members = vec![
        (text("kind"), JsonTemplate::String(text("DeleteOptions"))),
        (text("apiVersion"), JsonTemplate::String(text("v1"))),
    ];
    members.retain(|(name, _)| !given.iter().any(|(other, _)| other.parts == name.parts));
    members.extend(given);
    JsonTemplate::Object(members)
}
