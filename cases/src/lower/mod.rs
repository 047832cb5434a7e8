//! Lowering: from the raw shape of a file to a [`Case`].
//!
//! The checker does not stop at the first error. It reports a wrong part, replaces it by a harmless
//! one, and reads on. The result is a case without errors, or all errors.

mod check;
mod condition;
mod demands;
mod editions;
pub(crate) mod expression;
mod flow;
mod fragment;
mod lets;
mod level;
mod message;
mod names;
pub(crate) mod pattern;
mod programs;
mod request;
mod scope;
mod send;
mod step;
pub(crate) mod stream;
pub(crate) mod text;
mod verb;
mod watch;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use crate::case::{Capability, Case, Edition, Level, ResourceName, SubjectFilter, SubjectSet};
use crate::diagnostic::Diagnostic;
use crate::expression::Expression;
use crate::protocol::Protocol;
use crate::raw::{Has, RawCase, RawSubject};
use crate::requirements::Requirements;
use crate::rule::Exemption;
use crate::subject::{bad_resource_name, parse_resource_name};
use crate::template::JsonTemplate;
use crate::yaml::{Located, Source};
pub(crate) use fragment::Fragment;
use lets::Definition;
pub(crate) use programs::Programs;
use scope::Scopes;
use stream::Shape;

/// The word that adds the subjects of the user to named ones.
const OF_USER: &str = "user";

/// The names and the parsed expressions that a case can use.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known<'a> {
    pub(crate) catalogue: &'a Requirements,
    pub(crate) fragments: &'a BTreeMap<String, Fragment>,
    pub(crate) resources: &'a BTreeSet<ResourceName>,
    /// Where Kubernetes breaks design rules by history.
    pub(crate) history: &'a [Exemption],
    /// `None`: faults are not checked.
    pub(crate) faults: Option<&'a BTreeSet<String>>,
    /// Expressions of this case and of others.
    pub(crate) programs: &'a Programs,
}

/// Checks a case that has the right shape.
pub(crate) fn lower<'a>(
    source: &'a Source,
    id: &str,
    raw: &RawCase,
    known: Known<'a>,
) -> Result<Case, Vec<Diagnostic>> {
    let mut lowering = Lowering {
        source,
        known,
        errors: Vec::new(),
        scopes: Scopes::default(),
        check_ids: BTreeMap::new(),
        checks: 0,
        level: Level::Must,
        editions: raw.editions.clone(),
        judged: BTreeSet::new(),
        requirements: raw.requirements.value.iter().map(|id| id.value.clone()).collect(),
        subject: None,
        needs: raw.needs.clone(),
        protocols: Vec::new(),
        streams: BTreeMap::new(),
        lets: BTreeMap::new(),
        used_lets: BTreeSet::new(),
        template_lets: BTreeMap::new(),
        parameters: BTreeMap::new(),
        open_fragments: 0,
    };
    let case = lowering.case(id, raw);
    if lowering.errors.is_empty() { Ok(case) } else { Err(lowering.errors) }
}

struct Lowering<'a> {
    source: &'a Source,
    known: Known<'a>,
    errors: Vec<Diagnostic>,
    scopes: Scopes,
    /// Check ids with the place of the first use.
    check_ids: BTreeMap<String, Range<usize>>,
    checks: usize,
    /// Of the case.
    level: Level,
    /// Those to which the case confines itself; empty: to none.
    editions: Vec<Edition>,
    /// Those under which anything met so far is judged.
    judged: BTreeSet<Edition>,
    requirements: Vec<String>,
    subject: Option<SubjectFilter>,
    needs: Vec<Capability>,
    protocols: Vec<Protocol>,
    /// What is known of streams, by id.
    streams: BTreeMap<String, Shape>,
    lets: BTreeMap<String, Arc<Definition<'a>>>,
    used_lets: BTreeSet<String>,
    /// The named expressions that the templates of the step or check read.
    template_lets: BTreeMap<String, Expression>,
    /// The parameters of the fragment that is open.
    parameters: BTreeMap<String, JsonTemplate>,
    open_fragments: usize,
}

impl Lowering<'_> {
    fn case(&mut self, id: &str, raw: &RawCase) -> Case {
        if raw.summary.value.trim().is_empty() {
            self.error(&raw.summary.place, "empty", "the summary is empty");
        }
        self.requirements_exist(raw);
        self.level = self.level_of_case(raw.level.as_ref());
        let requirements = std::mem::take(&mut self.requirements);
        self.requirements = self.of_level_first(requirements, self.level);
        self.subject = raw.subject.as_ref().map(|subject| self.subject(subject));
        self.protocols =
            raw.protocols.as_ref().map(|protocols| self.protocols(protocols)).unwrap_or_default();
        self.faults_exist(&raw.catches);
        self.define_lets(raw.lets.as_ref());
        let steps = self.steps(&raw.steps);
        if self.checks == 0 && !steps.is_empty() {
            self.error(
                &first_line(&raw.steps.place),
                "no-check",
                "nothing in this case is checked",
            )
            .set_help("add `expect` to a request, or a step `expect`");
        }
        self.unused_captures();
        self.unused_lets();
        Case {
            id: id.to_owned(),
            summary: raw.summary.value.clone(),
            why: raw.why.clone(),
            requirements: self.requirements.clone(),
            editions: self.judged.iter().copied().collect(),
            level: self.level,
            subject: self.subject.clone(),
            protocols: self.protocols.clone(),
            needs: self.needs.clone(),
            provides: raw.provides.as_ref().map(|provided| provided.value),
            alone: raw.alone,
            depends_on: raw.depends_on.clone(),
            catches: raw.catches.iter().map(|fault| fault.value.clone()).collect(),
            lets: self.lets.values().map(|one| one.to_let()).collect(),
            steps,
            profile: None,
            file: self.source.name.to_string(),
        }
    }

    fn requirements_exist(&mut self, raw: &RawCase) {
        if raw.requirements.value.is_empty() {
            self.error(
                &raw.requirements.place,
                "no-requirement",
                "a case needs at least one requirement",
            );
        }
        for (index, id) in raw.requirements.value.iter().enumerate() {
            if self.known.catalogue.get(&id.value).is_none() {
                let known = self.known.catalogue;
                self.error(
                    &id.place,
                    "unknown-requirement",
                    format!("no requirement has the id `{}`", id.value),
                )
                .suggest_from(&id.value, known.iter().map(|requirement| requirement.id.as_str()));
            }
            if raw.requirements.value[..index].iter().any(|other| other.value == id.value) {
                self.error(&id.place, "duplicate", format!("`{}` is named twice", id.value));
            }
        }
    }

    fn faults_exist(&mut self, catches: &[Located<String>]) {
        let Some(faults) = self.known.faults else { return };
        for fault in catches {
            if !faults.contains(&fault.value) {
                self.error(
                    &fault.place,
                    "unknown-fault",
                    format!("no fault has the name `{}`", fault.value),
                )
                .suggest_from(&fault.value, faults.iter().map(String::as_str));
            }
        }
    }

    fn subject(&mut self, raw: &RawSubject) -> SubjectFilter {
        SubjectFilter {
            of: raw.of.as_ref().map_or(SubjectSet::Any, |of| self.subject_set(&of.0)),
            scope: raw.scope,
            verbs: raw.verbs.iter().map(|verb| verb.name().to_owned()).collect(),
            subresources: raw
                .subresources
                .iter()
                .map(|subresource| subresource.name().to_owned())
                .collect(),
            has_change: raw.has.contains(&Has::Change),
            has_status: raw.has.contains(&Has::Status),
            has_group: raw.has.contains(&Has::Group),
            once: raw.once,
        }
    }

    fn subject_set(&mut self, of: &[Located<String>]) -> SubjectSet {
        if let [only] = of {
            match only.value.as_str() {
                "any" => return SubjectSet::Any,
                "builtin" => return SubjectSet::Builtin,
                "custom" => return SubjectSet::Custom,
                _ => {}
            }
        }
        let (of_user, names): (Vec<_>, Vec<_>) = of.iter().partition(|name| name.value == OF_USER);
        SubjectSet::Named {
            names: names.into_iter().filter_map(|name| self.resource(name)).collect(),
            of_user: !of_user.is_empty(),
        }
    }

    fn resource(&mut self, name: &Located<String>) -> Option<ResourceName> {
        let known: Vec<String> = self.known.resources.iter().map(ToString::to_string).collect();
        let Some(parsed) = parse_resource_name(&name.value) else {
            let sets = ["any", "builtin", "custom", OF_USER];
            let choices = sets.into_iter().chain(known.iter().map(String::as_str));
            let diagnostic = bad_resource_name(self.source, name);
            self.errors.push(match crate::diagnostic::nearest(&name.value, choices) {
                Some(nearest) => diagnostic.help(format!("did you mean `{nearest}`?")),
                None => diagnostic,
            });
            return None;
        };
        if !self.known.resources.contains(&parsed) {
            self.error(
                &name.place,
                "unknown-resource",
                format!("no subject is defined for `{parsed}`"),
            )
            .suggest_from(&name.value, known.iter().map(String::as_str));
        }
        Some(parsed)
    }

    /// Reports an error, to which help may be added.
    fn error(
        &mut self,
        place: &Range<usize>,
        code: &'static str,
        message: impl Into<String>,
    ) -> Reported<'_> {
        self.errors.push(Diagnostic::new(self.source, place.clone(), code, message));
        Reported(self.errors.last_mut())
    }
}

/// An error that was reported.
struct Reported<'a>(Option<&'a mut Diagnostic>);

impl Reported<'_> {
    fn set_help(self, help: impl Into<String>) {
        if let Some(diagnostic) = self.0 {
            diagnostic.help = Some(help.into());
        }
    }

    fn suggest_from<'s>(self, wrong: &str, right: impl IntoIterator<Item = &'s str>) {
        if let Some(diagnostic) = self.0 {
            *diagnostic = diagnostic.clone().suggest(wrong, right);
        }
    }
}

/// The start of a place: what is wrong with a whole is shown where it begins.
fn first_line(place: &Range<usize>) -> Range<usize> {
    place.start..place.start
}

/// The form of ids that expressions do not use.
fn is_words(id: &str) -> bool {
    id.starts_with(|c: char| c.is_ascii_lowercase())
        && id
            .split('-')
            .all(|word| !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric()))
}
