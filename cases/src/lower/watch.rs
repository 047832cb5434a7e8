//! Watches, and the steps that read them.

use std::collections::BTreeSet;
use std::ops::Range;

use super::check::Judged;
use super::scope::Kind;
use super::{Lowering, first_line};
use crate::case::{Await, Awaited, Close, End, EventPattern, Request};
use crate::raw::{RawAwait, RawClose, RawEnd, RawEvent, RawWatch};
use crate::template::{Part, Template};
use crate::yaml::Located;

impl Lowering<'_> {
    pub(super) fn watch(&mut self, raw: &RawWatch, place: &Range<usize>) -> Request {
        let default = Located { value: "${collection}".to_owned(), place: raw.id.place.clone() };
        let raw_path = raw.path.as_ref().unwrap_or(&default);
        let path = self.template(raw_path);
        self.path_is_absolute(raw_path, &path);
        self.is_asked_for("WATCH", &path, &raw_path.place);
        self.is_served(&path, &raw_path.place);
        self.has_identity(raw.identity, place);
        let mut query = Vec::new();
        for (name, values) in [
            ("labelSelector", &raw.label_selector),
            ("fieldSelector", &raw.field_selector),
            ("resourceVersion", &raw.resource_version),
        ] {
            for value in values.iter().flat_map(|values| &values.value.0) {
                query.push((name.to_owned(), self.template(value)));
            }
        }
        query.extend(self.query(raw.query.as_ref()));
        let entries = raw.query.iter().flat_map(|query| &query.0);
        match entries.into_iter().find(|(name, _)| name.value == "watch") {
            Some((name, values)) if values.value.0.iter().any(|value| value.value == "true") => {
                self.error(&name.place, "duplicate", "the step itself adds `watch=true`");
            }
            Some(_) => {}
            None => query.push((
                "watch".to_owned(),
                Template {
                    parts: vec![Part::Text("true".to_owned())],
                    span: self.source.span(place.start),
                },
            )),
        }
        let accept = raw.accept.as_ref().map(|value| self.template(value));
        self.step_id(&raw.id, Kind::Watch { open: true });
        Request {
            id: raw.id.value.clone(),
            method: "GET".to_owned(),
            path,
            query,
            headers: Vec::new(),
            content_type: None,
            accept,
            body: None,
            identity: raw.identity,
            exact: false,
            capture: Vec::new(),
            expect: self.checks(&raw.expect, Judged::Response),
            span: self.source.span(place.start),
        }
    }

    /// A pointer below the object of an event.
    pub(super) fn kept_member(&mut self, pointer: &Located<String>) -> String {
        if !pointer.value.starts_with('/') {
            let message = format!("`{}` does not lead to a member of an object", pointer.value);
            self.error(&pointer.place, "malformed-pointer", message)
                .set_help("a JSON Pointer starts with `/`, such as `/metadata/resourceVersion`");
        }
        pointer.value.clone()
    }

    pub(super) fn awaits(&mut self, raw: &RawAwait, place: &Range<usize>) -> Option<Await> {
        self.open_watch(&raw.watch, false);
        let what = match (&raw.next, &raw.until) {
            (Some(next), None) => {
                if next.value.is_empty() {
                    self.error(&next.place, "never-runs", "no event is awaited");
                }
                let events = next.value.iter().map(|event| {
                    let Some(id) = &event.value.id else {
                        let place = first_line(&event.place);
                        self.error(
                            &place,
                            "missing-key",
                            "an event in `next` needs an `id`: it is a check",
                        );
                        return self.event(event, &raw.id);
                    };
                    self.implied_check(id);
                    self.event(event, id)
                });
                Awaited::Next(events.collect())
            }
            (None, Some(until)) => {
                let id = until.value.id.as_ref().unwrap_or(&raw.id);
                self.implied_check(id);
                Awaited::Until(self.event(until, id))
            }
            _ => {
                self.error(place, "one-of", "`await` takes either `next` or `until`");
                return None;
            }
        };
        self.label(&raw.id);
        Some(Await {
            watch: raw.watch.value.clone(),
            id: raw.id.value.clone(),
            what,
            span: self.source.span(place.start),
        })
    }

    fn event(&mut self, raw: &Located<RawEvent>, id: &Located<String>) -> EventPattern {
        let event = &raw.value;
        if event.types.is_none() && event.object.is_none() {
            self.error(
                &first_line(&raw.place),
                "cannot-fail",
                "any event matches: add `type` or `object`",
            );
        }
        if event.types.as_ref().is_some_and(|types| types.0.is_empty()) {
            self.error(&first_line(&raw.place), "empty", "`type` is an empty list");
        }
        EventPattern {
            id: id.value.clone(),
            types: event
                .types
                .iter()
                .flat_map(|types| &types.0)
                .map(|name| name.value.name().to_owned())
                .collect(),
            object: event.object.as_ref().and_then(|object| self.pattern(object)),
            capture: self.captures(event.capture.as_ref()),
            span: self.source.span(raw.place.start),
        }
    }

    pub(super) fn end(&mut self, raw: &RawEnd, place: &Range<usize>) -> End {
        self.open_watch(&raw.watch, true);
        let default =
            Located { value: format!("{}-ends", raw.watch.value), place: raw.watch.place.clone() };
        let id = raw.id.as_ref().unwrap_or(&default);
        self.implied_check(id);
        End {
            watch: raw.watch.value.clone(),
            id: id.value.clone(),
            expect: self.checks(&raw.expect, Judged::Earlier),
            span: self.source.span(place.start),
        }
    }

    pub(super) fn close(&mut self, raw: &RawClose, place: &Range<usize>) -> Option<Close> {
        match (&raw.watch, &raw.stream) {
            (Some(watch), None) => {
                self.open_watch(watch, true);
                Some(Close { of: watch.value.clone(), stream: false })
            }
            (None, Some(stream)) => {
                self.open_stream(stream, true);
                Some(Close { of: stream.value.clone(), stream: true })
            }
            _ => {
                self.error(place, "one-of", "`close` takes either `watch` or `stream`");
                None
            }
        }
    }

    /// A watch that is read, for the last time or not.
    fn open_watch(&mut self, id: &Located<String>, last: bool) {
        self.is_unconditional(&id.value, &id.place, &BTreeSet::new());
        let watches: Vec<String> = self
            .scopes
            .names()
            .filter(|name| matches!(name.kind, Kind::Watch { .. }))
            .map(|name| name.text.clone())
            .collect();
        match self.scopes.get_mut(&id.value).map(|name| &mut name.kind) {
            Some(Kind::Watch { open }) => {
                let was_open = *open;
                *open = was_open && !last;
                if !was_open {
                    self.error(
                        &id.place,
                        "never-runs",
                        format!("the watch `{}` has ended before", id.value),
                    );
                }
            }
            Some(_) => {
                self.error(&id.place, "unknown-name", format!("`{}` is not a watch", id.value))
                    .suggest_from(&id.value, watches.iter().map(String::as_str));
            }
            None => {
                self.error(
                    &id.place,
                    "unknown-name",
                    format!("no earlier watch has the name `{}`", id.value),
                )
                .suggest_from(&id.value, watches.iter().map(String::as_str));
            }
        }
    }
}
