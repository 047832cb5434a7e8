//! Prerequisites: features that many cases rely on. One case judges each of them and runs before
//! the others. If the feature does not work, the others are blocked, and do not fail again.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use kubeproof_cases::case::Prerequisite;
use serde_json::Value;

use super::case::is_cut_off;
use super::reported::Defects;
use super::setup::INSTALLED;
use crate::event::{CaseResult, CheckResult, SkipReason, Symptom, Verdict};
use crate::exchange::{BrokenKind, Exchange, Outcome, Received, WatchEnd, parse_json};
use crate::plan::{PlannedRun, case_analysis};
use crate::verdict::Reported;

/// The prerequisites of a run that cases have judged so far.
#[derive(Debug, Default)]
pub(super) struct Prerequisites {
    /// By feature and subject. The subject is empty for features of the whole server.
    judged: Mutex<BTreeMap<(Prerequisite, String), Judged>>,
    /// The cases that report failures of the setup, by what could not be set up.
    reporters: Mutex<BTreeMap<String, String>>,
    /// True if the server sends the head of a watch with its first event.
    heads_are_late: AtomicBool,
    /// The defects that the judging cases report.
    defects: Mutex<Defects>,
}

#[derive(Clone, Debug)]
struct Judged {
    case: String,
    works: bool,
}

impl Prerequisites {
    /// Records the result of a case that judges a prerequisite.
    pub(super) fn record(&self, planned: &PlannedRun, result: &CaseResult) {
        let Some(prerequisite) = planned.case.provides else { return };
        if result.verdict == Verdict::Skip {
            return;
        }
        lock(&self.defects).record(&result.id, &planned.subject_name(), &result.checks);
        if prerequisite == Prerequisite::WatchStart && result.checks.iter().any(is_late_head) {
            self.heads_are_late.store(true, Ordering::Relaxed);
        }
        let judged = Judged { case: result.id.clone(), works: works(prerequisite, result) };
        let known = &mut *lock(&self.judged);
        // A repeated case may succeed later.
        let entry =
            known.entry((prerequisite, planned.subject_name())).or_insert_with(|| judged.clone());
        entry.works |= judged.works;
    }

    /// Returns why a case cannot run: a feature that it uses does not work.
    pub(super) fn obstacle(&self, planned: &PlannedRun) -> Option<SkipReason> {
        let case = &planned.case;
        let verbs = case.subject.iter().flat_map(|filter| &filter.verbs);
        let needs = case_analysis::needs(case);
        let mut used: Vec<Prerequisite> = verbs
            .filter_map(|verb| Prerequisite::of_verb(verb))
            .chain(needs.into_iter().filter_map(Prerequisite::of_capability))
            .chain(case.depends_on.iter().copied())
            .collect();
        used.extend(case_analysis::documents(case));
        used.retain(|prerequisite| case.provides != Some(*prerequisite));
        used.sort();
        let judged = lock(&self.judged);
        used.into_iter().find_map(|prerequisite| {
            let found = broken(&judged, prerequisite, &planned.subject_name())?;
            Some(blocked(prerequisite, &found.case))
        })
    }

    /// Reports whether watches must not wait for the head of the response.
    pub(super) fn heads_are_late(&self) -> bool {
        self.heads_are_late.load(Ordering::Relaxed)
    }

    /// Returns the defects that a case does not report again.
    pub(super) fn reported(&self, planned: &PlannedRun) -> Reported {
        let is_judge = planned.case.provides.is_some();
        let mut reported = lock(&self.defects).on(&planned.subject_name(), is_judge);
        reported.retain(|_, case| *case != planned.case.id);
        reported
    }

    /// Returns the case to blame if objects of a resource cannot be created. A resource that no
    /// case has judged follows the others.
    pub(super) fn no_create(&self, planned: &PlannedRun, resource: &str) -> Option<SkipReason> {
        if planned.case.provides == Some(Prerequisite::Create) {
            return None;
        }
        let judged = lock(&self.judged);
        let found = broken(&judged, Prerequisite::Create, resource);
        found.map(|found| blocked(Prerequisite::Create, &found.case))
    }

    /// Returns the case to blame if a watch sends so many events of unselected objects that the
    /// expected one does not arrive in time.
    pub(super) fn ignored_selectors(&self, planned: &PlannedRun) -> Option<SkipReason> {
        let selectors = Prerequisite::LabelSelectors;
        if planned.case.provides == Some(selectors) {
            return None;
        }
        let judged = lock(&self.judged);
        let found = broken(&judged, selectors, &planned.subject_name());
        found.map(|found| blocked(selectors, &found.case))
    }

    /// Decides who reports a failure of the setup. Returns `None` for the reporter, and the reason
    /// for a skip for all other cases.
    pub(super) fn setup_obstacle(
        &self,
        planned: &PlannedRun,
        prerequisite: Option<Prerequisite>,
        what: &str,
    ) -> Option<SkipReason> {
        let own = &planned.case.id;
        let judge = prerequisite.filter(|one| planned.case.provides != Some(*one)).and_then(|of| {
            let judged = lock(&self.judged);
            let found = judged.get(&(of, String::new()))?;
            (!found.works).then(|| found.case.clone())
        });
        let reporter = match judge {
            Some(case) => case,
            None => {
                lock(&self.reporters).entry(what.to_owned()).or_insert_with(|| own.clone()).clone()
            }
        };
        (reporter != *own)
            .then(|| SkipReason::Blocked { prerequisite: what.to_owned(), case: reporter })
    }
}

/// Returns the judgement of a prerequisite that does not work on a subject. A subject without a
/// judgement follows the others.
fn broken<'j>(
    judged: &'j BTreeMap<(Prerequisite, String), Judged>,
    prerequisite: Prerequisite,
    subject: &str,
) -> Option<&'j Judged> {
    if let Some(found) = judged.get(&(prerequisite, subject.to_owned())) {
        return Some(found).filter(|found| !found.works);
    }
    let mut all = judged.iter().filter(|((of, _), _)| *of == prerequisite).map(|(_, found)| found);
    let first = all.next().filter(|found| !found.works)?;
    all.all(|found| !found.works).then_some(first)
}

fn blocked(prerequisite: Prerequisite, case: &str) -> SkipReason {
    SkipReason::Blocked { prerequisite: prerequisite.to_string(), case: case.to_owned() }
}

/// Reports whether a feature works well enough for other cases, even if its own case failed. A lost
/// connection, a malformed response or the end of the run proves nothing, so other cases find out
/// themselves.
fn works(prerequisite: Prerequisite, result: &CaseResult) -> bool {
    let is_error = result.verdict == Verdict::Error;
    if !(is_error || result.verdict == Verdict::Fail)
        || (is_error && result.checks.iter().any(is_cut_off))
    {
        return true;
    }
    let exchanges = || result.exchanges.iter().map(|named| &*named.exchange);
    let (methods, member): (&[&str], _) = match prerequisite {
        Prerequisite::Discovery | Prerequisite::Groups => {
            let mut responses = exchanges().filter_map(|exchange| exchange.response());
            return responses.all(|response| is_discovery(prerequisite, response));
        }
        Prerequisite::Crds => return !result.checks.iter().any(|check| check.id == INSTALLED),
        Prerequisite::Namespaces | Prerequisite::Create => (&["GET", "POST"], "/metadata"),
        Prerequisite::Get => (&["GET"], "/metadata"),
        Prerequisite::List => (&["GET"], "/items"),
        Prerequisite::ListVersion => (&["GET"], "/metadata/resourceVersion"),
        Prerequisite::Paging => (&["GET"], "/metadata/continue"),
        Prerequisite::Apply => (&["PATCH"], "/metadata"),
        // Cases go on without the head of the response.
        Prerequisite::WatchStart => return true,
        Prerequisite::Finalizers => return result.verdict != Verdict::Fail,
        // The first check is about the feature, and the others are about its details.
        Prerequisite::LabelSelectors
        | Prerequisite::FieldSelectors
        | Prerequisite::GenerateName => {
            return result.checks.first().is_none_or(|check| check.verdict != Verdict::Fail);
        }
        Prerequisite::Watch => {
            let watches: Vec<Option<bool>> = exchanges()
                .filter(|exchange| exchange.request.target.contains("watch="))
                .map(sends_events)
                .collect();
            return watches.contains(&Some(true)) || !watches.contains(&Some(false));
        }
    };
    let relevant = |exchange: &&Exchange| methods.contains(&exchange.request.method.as_str());
    let responses: Vec<Option<bool>> = exchanges()
        .filter(relevant)
        .filter_map(|exchange| Some(returns(exchange.response()?, member)))
        .collect();
    responses.contains(&Some(true)) || !responses.contains(&Some(false))
}

fn is_late_head(check: &CheckResult) -> bool {
    let is_watch =
        matches!(&check.symptom, Some(Symptom::NoResponse { request }) if request == "watch");
    is_watch && check.verdict > Verdict::Deviation
}

/// Reports whether a response has a member, or a request failed. `None` if the response is
/// malformed.
fn returns(response: &Received, member: &str) -> Option<bool> {
    let compressed =
        response.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-encoding"));
    match response.status {
        200..300 if compressed => Some(true),
        200..300 => parse_json(&response.body).map(|body: Value| body.pointer(member).is_some()),
        400.. => Some(false),
        _ => None,
    }
}

/// Reports whether a response is a discovery document that other cases can use. A malformed
/// document proves nothing.
fn is_discovery(prerequisite: Prerequisite, response: &Received) -> bool {
    let Some(body) = parse_json(&response.body).filter(|_| response.status == 200) else {
        return response.status == 200;
    };
    match prerequisite {
        Prerequisite::Discovery => body["resources"]
            .as_array()
            .is_some_and(|entries| entries.iter().all(|entry| entry["verbs"].is_array())),
        _ => body["groups"].is_array(),
    }
}

/// Reports whether a watch sent events. `None` if its connection or an event broke.
fn sends_events(watch: &Exchange) -> Option<bool> {
    let response = match &watch.outcome {
        Outcome::Response(response) => response,
        Outcome::Broken(broken) => return (broken.kind == BrokenKind::Deadline).then_some(false),
    };
    match response.end {
        _ if !response.events.is_empty() => Some(true),
        Some(WatchEnd::Broken(_) | WatchEnd::Budget(_)) => None,
        _ => Some(false),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use kubeproof_cases::Catalogue;
    use kubeproof_cases::case::{Case, SubjectFilter};
    use rstest::rstest;

    use super::*;
    use crate::event::NamedExchange;
    use crate::exchange::{Broken, Outcome};
    use crate::run::case::out_of_time;
    use crate::testing::{case, check_result, event, exchange, received, result};

    fn planned(case: Case) -> PlannedRun {
        let (case, name) = (Arc::new(case), "kp-1".to_owned());
        PlannedRun { case, subject: None, protocol: None, name, skip: None }
    }

    fn judge(prerequisite: Prerequisite) -> PlannedRun {
        planned(Case { provides: Some(prerequisite), ..case("a/judge") })
    }

    fn user(verbs: &[&str]) -> PlannedRun {
        let verbs = verbs.iter().map(|verb| (*verb).to_owned()).collect();
        let subject = Some(SubjectFilter { verbs, ..SubjectFilter::default() });
        planned(Case { subject, ..case("a/user") })
    }

    fn with_body(body: &str) -> Received {
        Received { body: body.to_owned().into(), ..received(200) }
    }

    fn with_event() -> Received {
        Received { events: vec![event("ADDED", Value::Null)], ..received(200) }
    }

    fn failed(response: Received) -> CaseResult {
        let exchange = Arc::new(exchange("/x?watch=true", Outcome::Response(response)));
        let exchanges = vec![NamedExchange { step: "read".to_owned(), exchange }];
        CaseResult { verdict: Verdict::Fail, exchanges, ..result("a/judge", "") }
    }

    #[rstest]
    #[case::get(Prerequisite::Get, received(404), true)]
    #[case::get(Prerequisite::Get, with_body("{\"metadata\": {}}"), false)]
    #[case::get(Prerequisite::Get, with_body("{}"), true)]
    #[case::malformed(Prerequisite::Get, with_body("{"), false)]
    #[case::list(Prerequisite::List, with_body("{\"items\": []}"), false)]
    #[case::watch(Prerequisite::Watch, received(200), true)]
    #[case::watch(Prerequisite::Watch, with_event(), false)]
    fn users_of_a_feature_are_blocked_if_it_does_not_work(
        #[case] prerequisite: Prerequisite,
        #[case] response: Received,
        #[case] expected: bool,
    ) {
        let prerequisites = Prerequisites::default();
        let verb = prerequisite.to_string();
        assert!(prerequisites.obstacle(&user(&[&verb])).is_none());
        prerequisites.record(&judge(prerequisite), &failed(response));
        let blocked =
            SkipReason::Blocked { prerequisite: verb.clone(), case: "a/judge".to_owned() };
        assert_eq!(prerequisites.obstacle(&user(&[&verb])), expected.then_some(blocked));
        assert_eq!(prerequisites.obstacle(&user(&["delete"])), None);
        assert_eq!(prerequisites.obstacle(&judge(prerequisite)), None);
    }

    #[rstest]
    #[case::redirect(received(307), true)]
    #[case::missing(received(404), true)]
    #[case::without_verbs(with_body(r#"{"resources": [{"verbs": null}]}"#), true)]
    #[case::without_resources(with_body("{}"), true)]
    #[case::usable(with_body(r#"{"resources": [{"verbs": []}]}"#), false)]
    #[case::malformed(with_body("{"), false)]
    fn readers_of_discovery_are_blocked_if_the_document_is_unusable(
        #[case] response: Received,
        #[case] expected: bool,
    ) {
        let prerequisites = Prerequisites::default();
        prerequisites.record(&judge(Prerequisite::Discovery), &failed(response));
        let catalogue = Catalogue::embedded().unwrap();
        let find = |id: &str| catalogue.cases.iter().find(|case| case.id == id).unwrap().clone();
        let reader = planned(find("discovery/names-well-formed"));
        assert_eq!(prerequisites.obstacle(&reader).is_some(), expected);
        assert_eq!(prerequisites.obstacle(&planned(find("discovery/group-list"))), None);
        assert_eq!(prerequisites.obstacle(&planned(find("discovery/resource-list"))), None);
    }

    #[test]
    fn a_resource_without_a_judge_follows_the_others() {
        let prerequisites = Prerequisites::default();
        let (user, judge) = (user(&[]), judge(Prerequisite::Create));
        assert_eq!(prerequisites.no_create(&user, "pods.v1"), None);
        prerequisites.record(&judge, &failed(received(500)));
        assert!(prerequisites.no_create(&user, "pods.v1").is_some());
        assert_eq!(prerequisites.no_create(&judge, "pods.v1"), None);
        prerequisites.record(&judge, &result("a/judge", ""));
        assert_eq!(prerequisites.no_create(&user, "pods.v1"), None);
    }

    #[test]
    fn ignored_selectors_block_the_cases_of_others() {
        let prerequisites = Prerequisites::default();
        let (user, judge) = (user(&["watch"]), judge(Prerequisite::LabelSelectors));
        assert_eq!(prerequisites.ignored_selectors(&user), None);
        let checks = vec![check_result("equality", Verdict::Fail)];
        prerequisites.record(&judge, &CaseResult { checks, ..failed(received(200)) });
        let case = "a/judge".to_owned();
        let blocked = SkipReason::Blocked { prerequisite: "label-selectors".to_owned(), case };
        assert_eq!(prerequisites.ignored_selectors(&user), Some(blocked));
        assert_eq!(prerequisites.ignored_selectors(&judge), None);
    }

    /// The end of the run proves nothing about the feature.
    #[test]
    fn a_judge_that_the_end_of_the_run_cuts_off_blocks_nothing() {
        let broken = Broken { kind: BrokenKind::Deadline, message: "late".to_owned() };
        let exchange = Arc::new(exchange("/x?watch=true", Outcome::Broken(broken)));
        let exchanges = vec![NamedExchange { step: "changes".to_owned(), exchange }];
        let late = |message: &str| CaseResult {
            verdict: Verdict::Error,
            checks: vec![out_of_time(message)],
            exchanges: exchanges.clone(),
            ..result("a/judge", "")
        };
        let (user, judge) = (user(&["watch"]), judge(Prerequisite::Watch));
        let prerequisites = Prerequisites::default();
        prerequisites.record(&judge, &late("the timeout of the run (--timeout) expired"));
        assert_eq!(prerequisites.obstacle(&user), None);
        let prerequisites = Prerequisites::default();
        prerequisites.record(&judge, &late("the timeout of the case (--case-timeout) expired"));
        assert!(prerequisites.obstacle(&user).is_some());
    }

    #[test]
    fn one_case_reports_a_failure_of_the_setup() {
        let prerequisites = Prerequisites::default();
        let (first, second) = (planned(case("a/first")), planned(case("a/second")));
        assert_eq!(prerequisites.setup_obstacle(&first, None, "pods"), None);
        assert_eq!(prerequisites.setup_obstacle(&first, None, "pods"), None);
        let blocked = SkipReason::Blocked { prerequisite: "pods".into(), case: "a/first".into() };
        assert_eq!(prerequisites.setup_obstacle(&second, None, "pods"), Some(blocked));
        assert_eq!(prerequisites.setup_obstacle(&second, None, "crds"), None);
        let namespaces = Some(Prerequisite::Namespaces);
        prerequisites.record(&judge(Prerequisite::Namespaces), &failed(received(500)));
        let blocked = prerequisites.setup_obstacle(&first, namespaces, "namespaces");
        assert!(matches!(blocked, Some(SkipReason::Blocked { case, .. }) if case == "a/judge"));
    }
}
