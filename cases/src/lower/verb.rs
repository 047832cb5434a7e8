//! Verb steps: requests with the defaults of a verb.

use std::ops::Range;

use super::Lowering;
use super::check::Judged;
use super::request::Bodies;
use super::scope::Kind;
use crate::case::Request;
use crate::raw::forms::Texts;
use crate::raw::{PatchType, RawStep, VerbStep};
use crate::template::{Part, Template};
use crate::yaml::Located;

const APPLY: &str = "application/apply-patch+yaml";

/// The default path of a verb.
#[derive(Clone, Copy)]
enum Target<'a> {
    Collection,
    /// An object by name, and a subresource of it.
    Object(Option<&'a Located<String>>, Option<&'a Located<String>>),
}

/// The part of a verb step that differs between verbs.
pub(super) struct Verb<'a> {
    method: &'static str,
    target: Target<'a>,
    parameters: Vec<(&'static str, Option<&'a Located<Texts>>)>,
    content_type: Option<&'static str>,
    body: Bodies<'a>,
}

impl Lowering<'_> {
    pub(super) fn verb(
        &mut self,
        raw: VerbStep<'_>,
        verb: &Verb<'_>,
        place: &Range<usize>,
    ) -> Request {
        let path = self.path_of(raw, verb.target);
        self.is_asked_for(verb.method, &path, &raw.id.place);
        self.is_served(&path, raw.path.map_or(place, |path| &path.place));
        self.has_identity(raw.identity, place);
        let mut query = Vec::new();
        for (name, values) in &verb.parameters {
            for value in values.iter().flat_map(|values| &values.value.0) {
                query.push(((*name).to_owned(), self.template(value)));
            }
        }
        query.extend(self.query(raw.query));
        let headers = raw.headers.map(|headers| self.pairs(&headers.0)).unwrap_or_default();
        let body = self.body(place, verb.body);
        let content_type =
            verb.content_type.filter(|_| body.is_some()).map(|media_type| Template {
                parts: vec![Part::Text(media_type.to_owned())],
                span: self.source.span(place.start),
            });
        let accept = raw.accept.map(|value| self.template(value));
        self.step_id(raw.id, Kind::Exchange);
        let capture = self.captures(raw.capture);
        Request {
            id: raw.id.value.clone(),
            method: verb.method.to_owned(),
            path,
            query,
            headers,
            content_type,
            accept,
            body,
            identity: raw.identity,
            exact: false,
            capture,
            expect: self.checks(raw.expect, Judged::Response),
            span: self.source.span(place.start),
        }
    }

    /// The path of a verb step: its own, or the default of the verb.
    fn path_of(&mut self, raw: VerbStep<'_>, target: Target<'_>) -> Template {
        if let Some(own) = raw.path {
            if let Target::Object(name, subresource) = target {
                for key in [name, subresource].into_iter().flatten() {
                    self.error(&key.place, "one-of", "the `path` already names the object");
                }
            }
            let path = self.template(own);
            self.path_is_absolute(own, &path);
            return path;
        }
        let at = |text: &str| Located { value: text.to_owned(), place: raw.id.place.clone() };
        let mut path = self.template(&at("${collection}"));
        let Target::Object(name, subresource) = target else { return path };
        let name = self.template(name.unwrap_or(&at("${name}")));
        path.parts.push(Part::Text("/".to_owned()));
        path.parts.extend(name.parts);
        if let Some(subresource) = subresource {
            path.parts.push(Part::Text("/".to_owned()));
            path.parts.extend(self.template(subresource).parts);
        }
        path.join();
        path
    }
}

/// The verb of a step with the keys that all verbs share; `None` if its action is another one.
pub(super) fn verb_of(raw: &RawStep) -> Option<(VerbStep<'_>, Verb<'_>)> {
    reading_verb(raw).or_else(|| writing_verb(raw))
}

/// `get`, `list`, `delete` and `deletecollection`.
fn reading_verb(raw: &RawStep) -> Option<(VerbStep<'_>, Verb<'_>)> {
    let verb = |method, target, parameters| Verb {
        method,
        target,
        parameters,
        content_type: None,
        body: Bodies::default(),
    };
    if let Some(get) = &raw.get {
        let target = Target::Object(get.name.as_ref(), get.subresource.as_ref());
        let parameters = vec![("resourceVersion", get.resource_version.as_ref())];
        return Some((get.common(), verb("GET", target, parameters)));
    }
    if let Some(list) = &raw.list {
        let parameters = vec![
            ("labelSelector", list.label_selector.as_ref()),
            ("fieldSelector", list.field_selector.as_ref()),
            ("limit", list.limit.as_ref()),
            ("continue", list.continues.as_ref()),
            ("resourceVersion", list.resource_version.as_ref()),
            ("resourceVersionMatch", list.resource_version_match.as_ref()),
        ];
        return Some((list.common(), verb("GET", Target::Collection, parameters)));
    }
    if let Some(delete) = &raw.delete {
        let parameters = vec![
            ("dryRun", delete.dry_run.as_ref()),
            ("gracePeriodSeconds", delete.grace_period_seconds.as_ref()),
            ("propagationPolicy", delete.propagation_policy.as_ref()),
        ];
        let body = Bodies { options: delete.options.as_ref(), ..Bodies::default() };
        let target = Target::Object(delete.name.as_ref(), None);
        return Some((delete.common(), Verb { body, ..verb("DELETE", target, parameters) }));
    }
    let delete = raw.deletecollection.as_ref()?;
    let parameters = vec![
        ("labelSelector", delete.label_selector.as_ref()),
        ("fieldSelector", delete.field_selector.as_ref()),
        ("dryRun", delete.dry_run.as_ref()),
    ];
    let body = Bodies { options: delete.options.as_ref(), ..Bodies::default() };
    Some((delete.common(), Verb { body, ..verb("DELETE", Target::Collection, parameters) }))
}

/// `create`, `update`, `patch` and `apply`.
fn writing_verb(raw: &RawStep) -> Option<(VerbStep<'_>, Verb<'_>)> {
    if let Some(create) = &raw.create {
        let named = create.name.is_some() || create.subresource.is_some();
        let object = Target::Object(create.name.as_ref(), create.subresource.as_ref());
        let verb = Verb {
            method: "POST",
            target: if named { object } else { Target::Collection },
            parameters: vec![
                ("dryRun", create.dry_run.as_ref()),
                ("fieldManager", create.field_manager.as_ref()),
                ("fieldValidation", create.field_validation.as_ref()),
            ],
            content_type: None,
            body: Bodies {
                object: create.object.as_ref(),
                body: create.body.as_ref(),
                json: create.json.as_ref(),
                text: create.text.as_ref(),
                ..Bodies::default()
            },
        };
        return Some((create.common(), verb));
    }
    if let Some(update) = &raw.update {
        let verb = Verb {
            method: "PUT",
            target: Target::Object(update.name.as_ref(), update.subresource.as_ref()),
            parameters: vec![
                ("dryRun", update.dry_run.as_ref()),
                ("fieldManager", update.field_manager.as_ref()),
                ("fieldValidation", update.field_validation.as_ref()),
            ],
            content_type: None,
            body: Bodies {
                object: update.object.as_ref(),
                body: update.body.as_ref(),
                json: update.json.as_ref(),
                edit: update.edit.as_ref(),
                text: update.text.as_ref(),
                ..Bodies::default()
            },
        };
        return Some((update.common(), verb));
    }
    patching_verb(raw)
}

fn patching_verb(raw: &RawStep) -> Option<(VerbStep<'_>, Verb<'_>)> {
    if let Some(patch) = &raw.patch {
        let verb = Verb {
            method: "PATCH",
            target: Target::Object(patch.name.as_ref(), patch.subresource.as_ref()),
            parameters: vec![
                ("dryRun", patch.dry_run.as_ref()),
                ("fieldManager", patch.field_manager.as_ref()),
                ("fieldValidation", patch.field_validation.as_ref()),
            ],
            content_type: Some(PatchType::media_type(patch.patch_type)),
            body: Bodies {
                body: patch.body.as_ref(),
                json: patch.json.as_ref(),
                text: patch.text.as_ref(),
                ..Bodies::default()
            },
        };
        return Some((patch.common(), verb));
    }
    let apply = raw.apply.as_ref()?;
    let verb = Verb {
        method: "PATCH",
        target: Target::Object(apply.name.as_ref(), apply.subresource.as_ref()),
        parameters: vec![
            ("fieldManager", apply.manager.as_ref()),
            ("force", apply.force.as_ref()),
            ("dryRun", apply.dry_run.as_ref()),
            ("fieldValidation", apply.field_validation.as_ref()),
        ],
        content_type: Some(APPLY),
        body: Bodies {
            object: apply.object.as_ref(),
            body: apply.body.as_ref(),
            text: apply.text.as_ref(),
            ..Bodies::default()
        },
    };
    Some((apply.common(), verb))
}
