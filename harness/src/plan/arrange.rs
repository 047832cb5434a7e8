//! Which case runs on which subject, and why not on others. Pure.

use std::sync::Arc;

use kubeproof_cases::case::{Capability, Case, ResourceName, Scope, Step, SubjectFilter, SubjectSet};
use kubeproof_cases::stream::Protocol;

use super::bounds::Bounds;
use super::roster::Roster;
use super::{Home, PlannedRun, survey};
use crate::capability::Capabilities;
use crate::run::RunOptions;
use crate::subject::{Origin, Subject};

/// What becomes of a case on a subject.
enum Fit {
    /// It runs.
    Runs,
    /// It would, if the server offered what belongs to the subject, or the run were allowed to.
    Skipped(String),
    /// It has nothing to say about this subject.
    Other(String),
}

pub(super) fn runs(
    cases: &[&Case],
    roster: &mut Roster<'_>,
    capabilities: &Capabilities,
    bounds: &Bounds<'_>,
    options: &RunOptions,
) -> Vec<PlannedRun> {
    let home = bounds.home;
    let mut runs = Vec::new();
    for case in cases {
        let shared = Arc::new((*case).clone());
        let mut add_over =
            |subject: Option<Arc<Subject>>, protocol: Option<Protocol>, skip: Option<String>| {
                let case = Arc::clone(&shared);
                let run = PlannedRun { case, subject, protocol, name: String::new(), skip };
                let taken = options.selection.takes(&run.case.id, &run.subject_name());
                if taken {
                    runs.push(run);
                }
                taken
            };
        if !case.protocols.is_empty() {
            let reason =
                obstacle(case, capabilities, home, options).or_else(|| bounds.crossed_by(&shared, None));
            for protocol in &case.protocols {
                add_over(None, Some(protocol.clone()), reason.clone());
            }
            continue;
        }
        let mut add = |subject, skip| add_over(subject, None, skip);
        if let Some(reason) = obstacle(case, capabilities, home, options) {
            add(None, Some(reason));
            continue;
        }
        let Some(filter) = &case.subject else {
            add(None, bounds.crossed_by(&shared, None));
            if is_about_design(case) {
                for subject in roster.subjects.iter().filter(|subject| subject.origin == Origin::User) {
                    add(Some(Arc::clone(subject)), None);
                }
            }
            continue;
        };
        let mut others: Vec<String> = Vec::new();
        let mut fits = false;
        for candidate in candidates(&filter.of, roster) {
            let (subject, skip) = match candidate {
                Ok(subject) => match fit(&shared, filter, &subject, (capabilities, bounds)) {
                    Fit::Runs => (subject, None),
                    Fit::Skipped(reason) if !filter.once => (subject, Some(reason)),
                    Fit::Skipped(reason) | Fit::Other(reason) => {
                        others.push(reason);
                        continue;
                    }
                },
                Err(reason) => {
                    others.push(reason);
                    continue;
                }
            };
            fits = true;
            if add(Some(subject), skip) && filter.once {
                break;
            }
        }
        if !fits {
            others.extend(absent(&filter.of, roster));
            others.dedup();
            let reason =
                if others.is_empty() { "the run has no subject".to_owned() } else { others.join("; ") };
            add(None, Some(reason));
        }
    }
    runs
}

/// Whether a case holds schemas against design rules and does nothing else: it has something to say of each resource that the
/// user named.
fn is_about_design(case: &Case) -> bool {
    case.steps.iter().all(|step| matches!(step, Step::Schema(_)))
}

/// What keeps a case from running on whatever subject.
fn obstacle(case: &Case, capabilities: &Capabilities, home: &Home, options: &RunOptions) -> Option<String> {
    if let Some(reason) = survey::needs(case).iter().find_map(|need| capabilities.missing(*need)) {
        return Some(reason);
    }
    let needs_pod = case.needs.contains(&Capability::RunningPods);
    if options.read_only && (needs_pod || survey::writes(&case.steps)) {
        return Some("it changes objects, which --read-only forbids".to_owned());
    }
    match home {
        Home::Nowhere(reason)
            if case.subject.is_none() && (needs_pod || survey::reads_variable(&case.steps, "ns")) =>
        {
            Some(reason.clone())
        }
        _ => None,
    }
}

/// Why subjects that might have done are not there.
fn absent(of: &SubjectSet, roster: &Roster<'_>) -> Vec<String> {
    let reason = |(name, reason): &(ResourceName, String)| match of {
        SubjectSet::Any => Some(reason.clone()),
        SubjectSet::Builtin if name.group.is_empty() => Some(reason.clone()),
        // Said already: the others are candidates that were looked at.
        SubjectSet::Builtin | SubjectSet::Custom | SubjectSet::Named(_) => None,
    };
    roster.absent.iter().filter_map(reason).collect()
}

fn candidates(of: &SubjectSet, roster: &mut Roster<'_>) -> Vec<Result<Arc<Subject>, String>> {
    let taken = |roster: &Roster<'_>, take: fn(&Subject) -> bool| {
        roster.subjects.iter().filter(|subject| take(subject)).cloned().map(Ok).collect()
    };
    match of {
        SubjectSet::Any => taken(roster, |_| true),
        SubjectSet::Builtin => taken(roster, |subject| subject.origin != Origin::Suite),
        SubjectSet::Custom => {
            if roster.subjects.iter().any(|subject| subject.origin == Origin::Suite) {
                taken(roster, |subject| subject.origin == Origin::Suite)
            } else {
                roster
                    .absent
                    .iter()
                    .filter(|(name, _)| !name.group.is_empty())
                    .map(|(_, r)| Err(r.clone()))
                    .collect()
            }
        }
        SubjectSet::Named(names) => names.iter().map(|name| roster.named(name)).collect(),
    }
}

fn fit(
    case: &Arc<Case>,
    filter: &SubjectFilter,
    subject: &Arc<Subject>,
    (capabilities, bounds): (&Capabilities, &Bounds<'_>),
) -> Fit {
    let name = &subject.name;
    match filter.scope {
        Some(Scope::Namespaced) if !subject.namespaced => {
            return Fit::Other(format!("{name} is not namespaced"));
        }
        Some(Scope::Cluster) if subject.namespaced => return Fit::Other(format!("{name} is namespaced")),
        _ => {}
    }
    if filter.has_change && subject.change.is_none() {
        return Fit::Other(format!("no change of {name} is known"));
    }
    if filter.has_status && subject.status.is_none() {
        return Fit::Other(format!("no status of {name} is known"));
    }
    if let Some(missing) = filter.subresources.iter().find(|sub| !subject.subresources.contains(*sub)) {
        let reason = format!("{name} has no subresource {missing}");
        // Its definition knows a status, so the server ought to serve one.
        let expected = missing == "status" && subject.status.is_some();
        return if expected { Fit::Skipped(reason) } else { Fit::Other(reason) };
    }
    if let Some(missing) = filter.verbs.iter().find(|verb| !subject.verbs.contains(*verb)) {
        return Fit::Skipped(format!("{name} does not list the verb {missing}"));
    }
    let makes_namespaces = name.group.is_empty()
        && name.resource == "namespaces"
        && filter.verbs.iter().any(|verb| verb == "create");
    if makes_namespaces && let Some(reason) = capabilities.missing(Capability::Namespaces) {
        return Fit::Skipped(reason);
    }
    if let Home::Nowhere(reason) = bounds.home
        && subject.namespaced
    {
        return Fit::Skipped(reason.clone());
    }
    bounds.crossed_by(case, Some(subject)).map_or(Fit::Runs, Fit::Skipped)
}
