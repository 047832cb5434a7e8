//! Compares the requests of a case with its `subject` and `needs`.
//!
//! Without this check, a case would fail on subjects that lack a verb, although it should be
//! skipped.

use std::ops::Range;

use super::Lowering;
use crate::case::{Capability, Identity, Property, ResourceName, SubjectSet};
use crate::template::{Part, Template};

/// The part of a path after `${collection}`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Target<'a> {
    Collection,
    Object,
    Subresource(&'a str),
}

impl Lowering<'_> {
    /// The verbs and subresources that a request needs are among those of the subject.
    pub(super) fn is_asked_for(&mut self, method: &str, path: &Template, place: &Range<usize>) {
        let Some(subject) = &self.subject else { return };
        // The author of a case that names all its resources knows their verbs.
        if matches!(subject.of, SubjectSet::Named { of_user: false, .. }) {
            return;
        }
        let Some(target) = target(path) else { return };
        if let Target::Subresource(name @ ("status" | "scale")) = target
            && !subject.subresources.iter().any(|asked| asked == name)
        {
            self.error(
                place,
                "unasked-subject",
                format!("a subject may lack the subresource `{name}`"),
            )
            .set_help(format!("add `subresources: [{name}]` to `subject`"));
            return;
        }
        let verb = match (method, target) {
            ("POST", Target::Collection) => "create",
            ("GET", Target::Collection) => "list",
            ("WATCH", Target::Collection) => "watch",
            ("DELETE", Target::Collection) => "deletecollection",
            ("GET", Target::Object) => "get",
            ("PUT", Target::Object) => "update",
            ("PATCH", Target::Object) => "patch",
            ("DELETE", Target::Object) => "delete",
            _ => return,
        };
        if !subject.verbs.iter().any(|asked| asked == verb) {
            self.error(place, "unasked-subject", format!("a subject may lack the verb `{verb}`"))
                .set_help(format!("add `{verb}` to `verbs` of `subject`"));
        }
    }

    /// Generated objects need a subject with all verbs of the property.
    pub(super) fn can_explore(&mut self, property: Property, place: &Range<usize>) {
        let Some(subject) = &self.subject else {
            self.error(place, "unasked-subject", "generated objects need a subject")
                .set_help("add `subject` to the case");
            return;
        };
        let lacks = |verb: &&&str| !subject.verbs.iter().any(|asked| asked == **verb);
        if let Some(verb) = property.verbs().iter().find(lacks) {
            self.error(place, "unasked-subject", format!("a subject may lack the verb `{verb}`"))
                .set_help(format!("add `{verb}` to `verbs` of `subject`"));
        }
    }

    /// A path that is written out needs a server that serves it.
    pub(super) fn is_served(&mut self, path: &Template, place: &Range<usize>) {
        let Some(Part::Text(text)) = path.parts.first() else { return };
        let below = |root: &str| {
            text.strip_prefix(root)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '?']))
        };
        let in_core = |name: &ResourceName| name.group.is_empty();
        let core_subject = self.subject.as_ref().is_some_and(|subject| match &subject.of {
            SubjectSet::Named { names, of_user: false } => names.iter().all(in_core),
            _ => false,
        });
        let (lacks, name) = if below("/api/v1") {
            let enough = [
                Capability::Core,
                Capability::Namespaces,
                Capability::Pods,
                Capability::RunningPods,
            ];
            (
                !core_subject && !enough.iter().any(|capability| self.needs.contains(capability)),
                "core",
            )
        } else if below("/apis/apiextensions.k8s.io") {
            (!self.needs.contains(&Capability::Crds), "crds")
        } else {
            return;
        };
        if lacks {
            self.error(place, "unasked-capability", "a server may lack this path")
                .set_help(format!("add `needs: [{name}]` to the case"));
        }
    }

    /// A second identity needs its capability, or the case fails where there is none.
    pub(super) fn has_identity(&mut self, identity: Identity, place: &Range<usize>) {
        if identity == Identity::Second && !self.needs.contains(&Capability::SecondUser) {
            self.error(place, "unasked-capability", "a run may have no second user")
                .set_help("add `needs: [second-user]` to the case");
        }
    }
}

/// `None` for paths that are not below the subject's own collection.
fn target(path: &Template) -> Option<Target<'_>> {
    let [Part::Variable(variable), rest @ ..] = path.parts.as_slice() else { return None };
    match variable.as_str() {
        "collection" => {}
        "collection.all" => return rest.is_empty().then_some(Target::Collection),
        _ => return None,
    }
    match rest {
        [] => Some(Target::Collection),
        [Part::Text(text), ..] if text.starts_with('?') => Some(Target::Collection),
        _ => {
            // The last segment is text, or the path ends in a name.
            let slashes: usize = rest
                .iter()
                .map(|part| if let Part::Text(text) = part { text.matches('/').count() } else { 0 })
                .sum();
            match (slashes, rest.last()?) {
                (1, _) => Some(Target::Object),
                (2, Part::Text(text)) => text.rsplit('/').next().map(Target::Subresource),
                _ => None,
            }
        }
    }
}
