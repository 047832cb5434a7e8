//! Decides which case runs on which subject, and why a case is skipped. Pure functions.

use std::sync::Arc;

use kubeproof_cases::case::{
    Action, Capability, Case, ResourceName, Scope, SubjectFilter, SubjectSet,
};
use kubeproof_cases::protocol::Protocol;

use super::RunOptions;
use super::subject::{Origin, Subject};
use super::subjects::ResolvedSubjects;
use super::write_bounds::WriteBounds;
use super::{PlannedRun, RunNamespace, case_analysis};
use crate::capability::Capabilities;
use crate::event::SkipReason;

/// Whether a case runs on a subject.
enum Fit {
    Runs,
    /// The case applies, but the target or the options forbid it.
    Skipped(SkipReason),
    /// The case does not apply to this subject.
    Other(SkipReason),
}

/// Returns the planned runs of all cases, in the order of the cases.
pub(super) fn runs(
    cases: &[&Case],
    resolved: &mut ResolvedSubjects<'_>,
    capabilities: &Capabilities,
    bounds: &WriteBounds<'_>,
    options: &RunOptions,
) -> Vec<PlannedRun> {
    let mut planner = CasePlanner { resolved, capabilities, bounds, options, runs: Vec::new() };
    for case in cases {
        planner.add_case(&Arc::new((*case).clone()));
    }
    planner.runs
}

struct CasePlanner<'a, 'b> {
    resolved: &'a mut ResolvedSubjects<'b>,
    capabilities: &'a Capabilities,
    bounds: &'a WriteBounds<'a>,
    options: &'a RunOptions,
    runs: Vec<PlannedRun>,
}

impl CasePlanner<'_, '_> {
    fn add_case(&mut self, case: &Arc<Case>) {
        let obstacle = obstacle(case, self.capabilities, self.bounds.namespace, self.options);
        if !case.protocols.is_empty() {
            let skip = obstacle.or_else(|| self.bounds.violation_by(case, None));
            for protocol in &case.protocols {
                self.add_run(case, None, Some(protocol.clone()), skip.clone());
            }
        } else if obstacle.is_some() {
            self.add_run(case, None, None, obstacle);
        } else if let Some(filter) = &case.subject {
            self.add_subjects(case, filter);
        } else {
            let skip = self.bounds.violation_by(case, None);
            self.add_run(case, None, None, skip);
            if is_about_design(case) {
                self.add_subjects_of_user(case);
            }
        }
    }

    /// Adds the case on each subject that fits, or one skip with the reasons of all candidates.
    fn add_subjects(&mut self, case: &Arc<Case>, filter: &SubjectFilter) {
        let mut causes: Vec<SkipReason> = Vec::new();
        let mut fits = false;
        for candidate in candidates(&filter.of, self.resolved) {
            let found = candidate.map(|subject| {
                let fit = fit(case, filter, &subject, (self.capabilities, self.bounds));
                (subject, fit)
            });
            let (subject, skip) = match found {
                Ok((subject, Fit::Runs)) => (subject, None),
                Ok((subject, Fit::Skipped(reason))) if !filter.once => (subject, Some(reason)),
                Ok((_, Fit::Skipped(reason) | Fit::Other(reason))) | Err(reason) => {
                    causes.push(reason);
                    continue;
                }
            };
            fits = true;
            if self.add_run(case, Some(subject), None, skip) && filter.once {
                break;
            }
        }
        if !fits {
            causes.extend(absent(&filter.of, self.resolved));
            causes.dedup();
            self.add_run(case, None, None, Some(SkipReason::NoSubject { causes }));
        }
    }

    fn add_subjects_of_user(&mut self, case: &Arc<Case>) {
        let of_user =
            self.resolved.subjects.iter().filter(|subject| subject.origin == Origin::User);
        for subject in of_user.cloned().collect::<Vec<_>>() {
            self.add_run(case, Some(subject), None, None);
        }
    }

    /// Adds a run, unless the selection excludes it. Returns whether it was added.
    fn add_run(
        &mut self,
        case: &Arc<Case>,
        subject: Option<Arc<Subject>>,
        protocol: Option<Protocol>,
        skip: Option<SkipReason>,
    ) -> bool {
        let case = Arc::clone(case);
        let run = PlannedRun { case, subject, protocol, name: String::new(), skip };
        let selected = self.options.selection.takes(&run.case.id, &run.subject_name());
        if selected {
            self.runs.push(run);
        }
        selected
    }
}

/// A case with nothing but design rules also applies to each resource of the user.
fn is_about_design(case: &Case) -> bool {
    case.steps.iter().all(|step| matches!(step.action, Action::Schema(_)))
}

/// Returns what keeps a case from running on any subject.
fn obstacle(
    case: &Case,
    capabilities: &Capabilities,
    namespace: &RunNamespace,
    options: &RunOptions,
) -> Option<SkipReason> {
    if let Some(reason) =
        case_analysis::needs(case).iter().find_map(|need| capabilities.missing(*need))
    {
        return Some(reason);
    }
    if let Some(reason) = unserved(case, capabilities) {
        return Some(reason);
    }
    let needs_pod = case.needs.contains(&Capability::RunningPods);
    if options.read_only && (needs_pod || case_analysis::writes(&case.steps)) {
        return Some(SkipReason::ReadOnly);
    }
    match namespace {
        RunNamespace::ReadOnly { reason, .. }
            if case.subject.is_none()
                && (needs_pod
                    || (case_analysis::writes(&case.steps)
                        && case_analysis::reads_variable(&case.steps, "ns"))) =>
        {
            Some(reason.clone())
        }
        _ => None,
    }
}

/// Returns a skip if a path names a resource that the target does not serve.
fn unserved(case: &Case, capabilities: &Capabilities) -> Option<SkipReason> {
    // Without any discovery, the cases find out themselves.
    if capabilities.resources.is_empty() {
        return None;
    }
    let named = case_analysis::named_resources(&case.steps);
    let resource = named.into_iter().find(|name| !capabilities.resources.contains_key(name))?;
    Some(SkipReason::ResourceNotServed { resource })
}

/// Reports whether a case on a subject creates pods, which many clusters deny.
fn creates_pods(filter: &SubjectFilter, name: &ResourceName) -> bool {
    name.group.is_empty()
        && name.resource == "pods"
        && filter.verbs.iter().any(|verb| verb == "create")
}

/// Reports whether a case has a subject whose creates need the capability `pods`.
pub(super) fn needs_pods(case: &Case) -> bool {
    let Some(filter) = &case.subject else { return false };
    let SubjectSet::Named { names, .. } = &filter.of else { return false };
    names.iter().any(|name| creates_pods(filter, name))
}

/// Returns why suitable subjects are absent.
fn absent(of: &SubjectSet, resolved: &ResolvedSubjects<'_>) -> Vec<SkipReason> {
    let reason = |(name, reason): &(ResourceName, SkipReason)| match of {
        SubjectSet::Any => Some(reason.clone()),
        SubjectSet::Builtin if name.group.is_empty() => Some(reason.clone()),
        // The reasons of the other candidates are listed already.
        SubjectSet::Builtin | SubjectSet::Custom | SubjectSet::Named { .. } => None,
    };
    resolved.absent.iter().filter_map(reason).collect()
}

fn candidates(
    of: &SubjectSet,
    resolved: &mut ResolvedSubjects<'_>,
) -> Vec<Result<Arc<Subject>, SkipReason>> {
    let taken = |resolved: &ResolvedSubjects<'_>, take: fn(&Subject) -> bool| {
        resolved.subjects.iter().filter(|subject| take(subject)).cloned().map(Ok).collect()
    };
    match of {
        SubjectSet::Any => taken(resolved, |_| true),
        SubjectSet::Builtin => taken(resolved, |subject| subject.origin != Origin::Suite),
        SubjectSet::Custom => {
            if resolved.subjects.iter().any(|subject| subject.origin == Origin::Suite) {
                taken(resolved, |subject| subject.origin == Origin::Suite)
            } else {
                resolved
                    .absent
                    .iter()
                    .filter(|(name, _)| !name.group.is_empty())
                    .map(|(_, r)| Err(r.clone()))
                    .collect()
            }
        }
        SubjectSet::Named { names, of_user } => {
            let mut all: Vec<_> = names.iter().map(|name| resolved.named(name)).collect();
            let more = resolved.subjects.iter();
            let more = more.filter(|one| *of_user && one.origin == Origin::User);
            all.extend(more.filter(|one| !names.contains(&one.name)).cloned().map(Ok));
            all
        }
    }
}

fn fit(
    case: &Arc<Case>,
    filter: &SubjectFilter,
    subject: &Arc<Subject>,
    (capabilities, bounds): (&Capabilities, &WriteBounds<'_>),
) -> Fit {
    let name = &subject.name;
    match filter.scope {
        Some(Scope::Namespaced) if !subject.namespaced => {
            return Fit::Other(SkipReason::WrongScope {
                resource: name.clone(),
                namespaced: false,
            });
        }
        Some(Scope::Cluster) if subject.namespaced => {
            return Fit::Other(SkipReason::WrongScope { resource: name.clone(), namespaced: true });
        }
        _ => {}
    }
    if filter.has_change && subject.change.is_none() {
        return Fit::Other(SkipReason::NoChangeDefined { resource: name.clone() });
    }
    if filter.has_group && name.group.is_empty() {
        return Fit::Other(SkipReason::InCoreGroup { resource: name.clone() });
    }
    if filter.has_status && subject.status.is_none() {
        return Fit::Other(SkipReason::NoStatusDefined { resource: name.clone() });
    }
    if let Some(missing) =
        filter.subresources.iter().find(|sub| !subject.subresources.contains(*sub))
    {
        let reason =
            SkipReason::MissingSubresource { resource: name.clone(), subresource: missing.clone() };
        // The definition has a status, so the server should serve it.
        let expected = missing == "status" && subject.status.is_some();
        return if expected { Fit::Skipped(reason) } else { Fit::Other(reason) };
    }
    if let Some(missing) = filter.verbs.iter().find(|verb| !subject.verbs.contains(*verb)) {
        return Fit::Skipped(SkipReason::MissingVerb {
            resource: name.clone(),
            verb: missing.clone(),
        });
    }
    let makes_namespaces = name.group.is_empty()
        && name.resource == "namespaces"
        && filter.verbs.iter().any(|verb| verb == "create");
    if makes_namespaces && let Some(reason) = capabilities.missing(Capability::Namespaces) {
        return Fit::Skipped(reason);
    }
    if needs_pods(case)
        && creates_pods(filter, name)
        && let Some(reason) = capabilities.missing(Capability::Pods)
    {
        return Fit::Skipped(reason);
    }
    if let RunNamespace::ReadOnly { reason, .. } = bounds.namespace
        && subject.namespaced
        && case_analysis::writes(&case.steps)
    {
        return Fit::Skipped(reason.clone());
    }
    bounds.violation_by(case, Some(subject)).map_or(Fit::Runs, Fit::Skipped)
}
