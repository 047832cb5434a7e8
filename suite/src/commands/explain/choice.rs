//! Chooses the case and the exchanges that show a requirement.

use kubeproof_cases::Catalogue;
use kubeproof_cases::case::{Action, Case, Check, Claim, Edition, Step};
use kubeproof_cases::requirements::Requirement;
use kubeproof_harness::event::{CaseResult, CheckResult, NamedExchange};

/// The requirement that an example shows.
#[derive(Clone, Copy, Debug)]
pub(in crate::commands) struct Focus<'a> {
    requirement: &'a str,
    /// At least half of its cases expect the server to reject a request.
    is_about_errors: bool,
}

impl<'a> Focus<'a> {
    /// Returns what an example of a requirement shows.
    pub(super) fn on(requirement: &'a Requirement, catalogue: &Catalogue) -> Self {
        let requirement = requirement.id.as_str();
        let cases = || cases_of(requirement, catalogue);
        let rejecting = cases().filter(|case| expects_rejection(case, requirement)).count();
        Self { requirement, is_about_errors: rejecting > 0 && 2 * rejecting >= cases().count() }
    }

    /// Returns the case with the fewest other requirements. It prefers cases of the head edition.
    /// Among these, it prefers cases that expect success, or an error if the requirement is about
    /// errors.
    pub(super) fn case<'c>(&self, catalogue: &'c Catalogue) -> Option<&'c Case> {
        cases_of(self.requirement, catalogue).min_by_key(|case| {
            let is_other = expects_rejection(case, self.requirement) != self.is_about_errors;
            (!case.is_judged_by(Edition::Head), is_other, case.requirements.len())
        })
    }

    /// Returns whether a check judges the requirement.
    pub(super) fn includes(&self, check: &CheckResult) -> bool {
        check.requirements.iter().any(|id| id == self.requirement)
    }

    /// Puts the faults that break the requirement first.
    pub(super) fn order_faults(&self, faults: &mut [&String], catalogue: &Catalogue) {
        faults.sort_by_key(|fault| {
            !catalogue.breakage.of(fault).iter().any(|id| id == self.requirement)
        });
    }
}

/// Returns the exchanges that checks of the result judge. With a focus, these are the exchanges of
/// its requirement, and the successful ones among them, unless it is about errors.
pub(super) fn judged<'r>(
    result: &'r CaseResult,
    focus: Option<&Focus<'_>>,
) -> Vec<&'r NamedExchange> {
    let of = |includes: &dyn Fn(&CheckResult) -> bool| -> Vec<&NamedExchange> {
        let judges = |named: &&NamedExchange| {
            result.checks.iter().any(|check| check.step == named.step && includes(check))
        };
        result.exchanges.iter().filter(judges).collect()
    };
    let Some(focus) = focus else { return of(&|_| true) };
    let mut focused = of(&|check| focus.includes(check));
    if focused.is_empty() {
        focused = of(&|_| true);
    }
    let succeeded = |named: &&NamedExchange| (100..400).contains(&named.exchange.status());
    if !focus.is_about_errors && focused.iter().any(succeeded) {
        focused.retain(|named| succeeded(named));
    }
    focused
}

fn cases_of<'c>(requirement: &str, catalogue: &'c Catalogue) -> impl Iterator<Item = &'c Case> {
    catalogue.cases.iter().filter(move |case| case.requirements.iter().any(|id| id == requirement))
}

/// Returns whether the first status code that the checks of the requirement name is an error.
fn expects_rejection(case: &Case, requirement: &str) -> bool {
    let mut all = Vec::new();
    checks(&case.steps, &mut all);
    let judging = |check: &&&Check| check.requirements.iter().any(|id| id == requirement);
    all.iter().filter(judging).find_map(|check| is_error(&check.claims)).unwrap_or_default()
}

/// Returns whether claims hold only for an error. `None` if they name no status code.
fn is_error(claims: &[Claim]) -> Option<bool> {
    claims.iter().find_map(|claim| match claim {
        Claim::Status(codes) => Some(codes.iter().all(|code| *code >= 400)),
        Claim::Rejected(_) => Some(true),
        Claim::AnyOf(sets) => sets.iter().filter_map(|set| is_error(set)).min(),
        Claim::Body(_) | Claim::Header { .. } | Claim::Text(_) | Claim::Cel(_) => None,
    })
}

/// Collects the checks of responses in order, including those in loops.
fn checks<'c>(steps: &'c [Step], found: &mut Vec<&'c Check>) {
    for step in steps {
        match &step.action {
            Action::Request(request) => found.extend(&request.expect),
            Action::Watch(watch) => found.extend(&watch.request.expect),
            Action::Stream(stream) => found.extend(&stream.request.expect),
            Action::Concurrently(inner) | Action::Repeat(inner) => checks(&inner.steps, found),
            Action::Until(until) => checks(&until.steps, found),
            Action::Together(together) => {
                together.branches.iter().for_each(|branch| checks(branch, found));
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("patch.merge-media-type", false)]
    #[case("http.201-created", false)]
    #[case("http.409-create", true)]
    #[case("reason.not-found", true)]
    #[case("http.422-unprocessable", true)]
    fn the_case_of_a_requirement_shows_it(#[case] id: &str, #[case] is_about_errors: bool) {
        let catalogue = Catalogue::embedded().expect("valid files");
        let focus = Focus::on(catalogue.requirements.get(id).expect(id), &catalogue);
        assert_eq!(focus.is_about_errors, is_about_errors);
        let case = focus.case(&catalogue).expect("a case");
        assert_eq!(expects_rejection(case, id), is_about_errors, "{}", case.id);
    }

    #[test]
    fn cases_of_the_head_edition_come_first() {
        let catalogue = Catalogue::embedded().expect("valid files");
        for requirement in &catalogue.requirements {
            let of_head = |case: &Case| case.is_judged_by(Edition::Head);
            let chosen = Focus::on(requirement, &catalogue).case(&catalogue);
            let has_some = cases_of(&requirement.id, &catalogue).any(of_head);
            assert_eq!(chosen.is_some_and(of_head), has_some, "{}", requirement.id);
        }
    }
}
