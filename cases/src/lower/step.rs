//! Steps, in the order in which they happen.

use std::ops::Range;

use super::check::Judged;
use super::scope::Kind;
use super::{Lowering, first_line};
use crate::case::{Body, Identity, Loop, Request, Schema, SchemaCheck, Step, Times, Together, Until, Watch};
use crate::forms::{Entries, JsonText, Texts};
use crate::raw::{RawEdit, RawGiven, RawLoop, RawRequest, RawSchema, RawStep, RawTogether, RawUntil};
use crate::syntax::Located;
use crate::template::{Part, Template};

/// More rounds than a case may ever need.
const MAX_ROUNDS: u32 = 10_000;

impl Lowering<'_> {
    pub(super) fn steps(&mut self, steps: &Located<Vec<Located<RawStep>>>) -> Vec<Step> {
        if steps.value.is_empty() {
            self.error(&first_line(&steps.place), "never-runs", "there is no step here");
        }
        steps.value.iter().filter_map(|step| self.step(step)).collect()
    }

    fn step(&mut self, raw: &Located<RawStep>) -> Option<Step> {
        let place = first_line(&raw.place);
        Some(match &raw.value {
            RawStep::Given(given) => Step::Given(self.given(given, &place)),
            RawStep::Request(request) => Step::Request(self.request(request, &place)),
            RawStep::Watch(watch) => {
                let keep = watch.keep.iter().map(|pointer| self.kept_member(pointer)).collect();
                Step::Watch(Watch { request: self.watch(watch, &place), keep })
            }
            RawStep::Await(awaited) => Step::Await(self.awaits(awaited, &place)?),
            RawStep::End(end) => Step::End(self.end(end, &place)),
            RawStep::Close(close) => Step::Close(self.close(close, &place)?),
            RawStep::Stream(stream) => Step::Stream(Box::new(self.stream(stream, &place))),
            RawStep::Create(create) => Step::Create(self.create(create, &place)),
            RawStep::Send(send) => Step::Send(self.send(send, &place)?),
            RawStep::Receive(receive) => Step::Receive(self.receive(receive, &place)?),
            RawStep::Finish(finish) => Step::Finish(self.finish(finish, &place)),
            RawStep::Concurrently(raw) => Step::Concurrently(self.iterations(raw)?),
            RawStep::Repeat(raw) => Step::Repeat(self.iterations(raw)?),
            RawStep::Together(together) => Step::Together(self.together(together)),
            RawStep::Until(until) => Step::Until(self.until(until, &place)?),
            RawStep::Schema(schema) => Step::Schema(self.schema(schema)),
            RawStep::Expect(checks) => {
                if checks.is_empty() {
                    self.error(&place, "cannot-fail", "`expect` holds no check");
                }
                Step::Expect(self.checks(checks, Judged::Earlier))
            }
        })
    }

    fn given(&mut self, raw: &RawGiven, place: &Range<usize>) -> Request {
        let default = Located { value: "${collection}".to_owned(), place: raw.id.place.clone() };
        let path = self.template(raw.path.as_ref().unwrap_or(&default));
        self.is_asked_for("POST", &path, place);
        let body = self.body(place, raw.object.as_ref(), raw.json.as_ref(), None, None);
        if body.is_none() {
            self.error(place, "no-body", "`given` creates an object, and there is none")
                .set_help("add `object` or `json`");
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
        let headers = raw.headers.as_ref().map(|headers| self.pairs(&headers.0)).unwrap_or_default();
        let body =
            self.body(place, raw.object.as_ref(), raw.json.as_ref(), raw.edit.as_ref(), raw.text.as_ref());
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
            expect: self.checks(&raw.expect, Judged::Answer),
            span: self.source.span(place.start),
        }
    }

    fn method_fits(&mut self, raw: &RawRequest, body: Option<&Body>, headers: &[(String, Template)]) {
        let method = raw.method.value.as_str();
        let is_token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
        if !raw.exact && (method.is_empty() || !method.chars().all(is_token)) {
            self.error(&raw.method.place, "malformed-method", format!("`{method}` is no HTTP method"));
        } else if !raw.exact && method.chars().any(|c| c.is_ascii_lowercase()) {
            self.error(
                &raw.method.place,
                "malformed-method",
                format!("methods are case-sensitive: `{method}` is not `{}`", method.to_ascii_uppercase()),
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
            self.error(&raw.method.place, "no-content-type", "PATCH must name the type of its patch")
                .set_help(
                    "add `contentType: application/merge-patch+json`, `application/json-patch+json`, ...",
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
            self.error(&raw.place, "malformed-path", "a path starts with `/` or with `${collection}`");
        }
    }

    fn iterations(&mut self, raw: &RawLoop) -> Option<Loop> {
        let times = match (&raw.times, &raw.over, &raw.variable) {
            (Some(times), None, None) => {
                self.rounds(times);
                Some(Times::Count(times.value))
            }
            (None, Some(over), Some(variable)) => {
                self.expression(over).map(|list| Times::Over { list, variable: variable.value.clone() })
            }
            _ => {
                self.error(&raw.id.place, "one-of", "a loop takes either `times`, or `over` and `as`");
                None
            }
        };
        self.scopes.enter();
        self.scopes.add("i", Kind::LoopVariable, &raw.id.place);
        if let Some(variable) = &raw.variable {
            self.new_name(variable, Kind::LoopVariable);
        }
        let steps = self.steps(&raw.steps);
        self.scopes.leave();
        self.step_id(&raw.id, Kind::Results);
        Some(Loop { id: raw.id.value.clone(), times: times?, steps })
    }

    fn together(&mut self, raw: &RawTogether) -> Together {
        if raw.branches.value.len() < 2 {
            self.error(
                &first_line(&raw.branches.place),
                "never-runs",
                "`together` takes at least two branches",
            );
        }
        let mut branches = Vec::new();
        for branch in &raw.branches.value {
            self.scopes.enter();
            branches.push(self.steps(branch));
            self.scopes.leave();
        }
        self.step_id(&raw.id, Kind::Results);
        Together { id: raw.id.value.clone(), branches }
    }

    fn until(&mut self, raw: &RawUntil, place: &Range<usize>) -> Option<Until> {
        self.rounds(&raw.attempts);
        self.implied_check(&raw.id);
        self.scopes.enter();
        self.scopes.add("i", Kind::LoopVariable, &raw.id.place);
        let steps = self.steps(&raw.steps);
        let condition = self.condition(&raw.cel);
        self.scopes.leave();
        self.step_id(&raw.id, Kind::Round);
        Some(Until {
            id: raw.id.value.clone(),
            attempts: raw.attempts.value,
            steps,
            condition: condition?,
            span: self.source.span(place.start),
        })
    }

    fn schema(&mut self, raw: &RawSchema) -> Schema {
        if raw.expect.value.is_empty() {
            self.error(&first_line(&raw.expect.place), "cannot-fail", "`expect` holds no rule");
        }
        let checks = raw.expect.value.iter().map(|check| {
            let check = &check.value;
            self.check_id(&check.id);
            let requirements = self.judged_requirements(&check.requirements);
            SchemaCheck {
                id: check.id.value.clone(),
                rule: check.rule,
                level: check.level.unwrap_or(self.level),
                editions: self.editions_of(&[], &requirements, &check.id.place),
                requirements,
                history: self
                    .known
                    .history
                    .iter()
                    .filter(|known| known.rule == check.rule)
                    .cloned()
                    .collect(),
                means: check.means.clone(),
            }
        });
        Schema { of: raw.of, expect: checks.collect() }
    }

    fn rounds(&mut self, count: &Located<u32>) {
        if count.value == 0 {
            self.error(&count.place, "never-runs", "these steps never run");
        } else if count.value > MAX_ROUNDS {
            self.error(&count.place, "out-of-range", format!("more than {MAX_ROUNDS} rounds"));
        }
    }

    fn body(
        &mut self,
        place: &Range<usize>,
        object: Option<&JsonText>,
        json: Option<&JsonText>,
        edit: Option<&Located<RawEdit>>,
        text: Option<&Located<String>>,
    ) -> Option<Body> {
        let bodies = [object.is_some(), json.is_some(), edit.is_some(), text.is_some()];
        if bodies.into_iter().filter(|is_there| *is_there).count() > 1 {
            self.error(place, "one-of", "a request has one body: `object`, `json`, `edit` or `text`");
        }
        if let Some(object) = object {
            if self.subject.is_none() {
                self.error(
                    &first_line(&object.0.place),
                    "no-subject",
                    "`object` completes the subject's template, and this case has no subject",
                )
                .set_help("add `subject: {}`, or write the whole body as `json`");
            }
            return Some(Body::Object(self.json_template(object)));
        }
        if let Some(json) = json {
            return Some(Body::Json(self.json_template(json)));
        }
        if let Some(edit) = edit {
            self.exchange(&edit.value.of);
            let merge = self.json_template(&edit.value.merge);
            return Some(Body::Edit { of: edit.value.of.value.clone(), merge });
        }
        text.map(|text| Body::Text(self.template(text)))
    }

    /// A step with an answer.
    fn exchange(&mut self, id: &Located<String>) {
        if !self.scopes.get(&id.value).is_some_and(|name| name.kind == Kind::Exchange) {
            let exchanges: Vec<String> = self
                .scopes
                .names()
                .filter(|name| name.kind == Kind::Exchange)
                .map(|name| name.text.clone())
                .collect();
            self.error(&id.place, "unknown-name", format!("no earlier request has the name `{}`", id.value))
                .suggest_from(&id.value, exchanges.iter().map(String::as_str));
        }
    }

    /// Parameters; one that stands with a list is repeated.
    pub(super) fn query(&mut self, query: Option<&Entries<Texts>>) -> Vec<(String, Template)> {
        let entries = query.into_iter().flat_map(|query| &query.0);
        let repeated =
            entries.flat_map(|(name, values)| values.value.0.iter().map(|value| (name.value.clone(), value)));
        repeated.map(|(name, value)| (name, self.template(value))).collect()
    }

    pub(super) fn pairs(
        &mut self,
        entries: &[(Located<String>, Located<String>)],
    ) -> Vec<(String, Template)> {
        entries.iter().map(|(name, value)| (name.value.clone(), self.template(value))).collect()
    }
}
