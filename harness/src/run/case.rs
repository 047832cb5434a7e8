//! Runs one case on one subject, from its first step to its verdict.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use kubeproof_cases::case::{Capability, Level, Prerequisite, ResourceName};
use kubeproof_cases::plural;
use tokio::sync::{Mutex, OnceCell, watch};
use tokio::time::Instant;

use super::prerequisites::Prerequisites;
use super::protocol_support::ProtocolSupport;
use super::restart::{self, Attempts};
use super::scope::{MOST_GIVEN_BACK, Scope};
use super::setup::{SetupFailure, SetupOutcome};
use crate::capability::{Capabilities, Requester};
use crate::cleanup::Tracker;
use crate::event::{CaseResult, CheckResult, Judgement, SkipReason, Verdict};
use crate::exchange::Exchange;
use crate::explore::Schema;
use crate::plan::{PlannedRun, RunPod, case_analysis};
use crate::schema::Published;
use crate::transport::Client;
use crate::verdict::{JudgeOptions, failed_at, synthetic};

/// Time for a case to stop after its deadline.
const GRACE: Duration = Duration::from_secs(1);

/// An iteration is quick if it takes at most this fraction of the case timeout.
const QUICK: u32 = 10;

/// Time for the reads that look for other writers.
const READ: Duration = Duration::from_secs(5);

/// The characters of a manager's name in a message.
const LONGEST_WRITER: usize = 60;

/// The check that a case ends in time.
const IN_TIME: &str = "in-time";

/// The message of this check if the case had less time than `--case-timeout`.
const RUN_IS_OVER: &str = "the timeout of the run (--timeout) expired";

/// Reports whether the run ended before the case could show anything about the server.
pub(super) fn is_cut_off(check: &CheckResult) -> bool {
    check.id == IN_TIME && check.message.starts_with(RUN_IS_OVER)
}

/// State that all cases of a run share.
pub(super) struct Session {
    pub(super) client: Client,
    pub(super) judging: JudgeOptions,
    pub(super) capabilities: Capabilities,
    pub(super) namespace: String,
    pub(super) run: String,
    pub(super) case_timeout: Duration,
    pub(super) stalled_after: Option<Duration>,
    pub(super) longest_pause: Duration,
    pub(super) load: u32,
    pub(super) seed: u64,
    /// The published schemas, loaded on first use.
    pub(super) published: OnceCell<Published>,
    /// The schemas for generated objects, loaded on first use.
    pub(super) generated_schemas: Mutex<BTreeMap<ResourceName, Arc<Schema>>>,
    /// The end of the run's time limit.
    pub(super) end: Option<Instant>,
    pub(super) pod: RunPod,
    /// The state of the shared pod.
    pub(super) pod_state: watch::Receiver<PodState>,
    pub(super) protocol_support: ProtocolSupport,
    pub(super) prerequisites: Prerequisites,
    /// Why cases about pages are skipped; `None` inside if they run.
    pub(super) paging: OnceCell<Option<SkipReason>>,
}

/// The state of the shared pod.
#[derive(Clone, Debug)]
pub(super) enum PodState {
    /// The pod is being created.
    Starting,
    /// The pod runs, or failed to start.
    Known(Option<Box<SetupFailure>>),
}

impl Session {
    /// Returns the time that a server must have had for a response before it is at fault. With
    /// less time, a correct server may just be slow.
    pub(super) fn fair_wait(&self) -> Duration {
        self.stalled_after.unwrap_or(self.case_timeout / 2)
    }

    /// The longest time of a quick iteration, event or round of polling.
    pub(super) fn quick(&self) -> Duration {
        self.case_timeout / QUICK
    }

    /// Runs a case. Restarts it if the server compacted a version or closed a watch, which the
    /// conventions permit, or if another client wrote to its objects.
    pub(super) async fn execute(
        &self,
        planned: &PlannedRun,
        tracker: &Tracker,
        setup_outcome: &SetupOutcome,
    ) -> CaseResult {
        let mut other_writer = None;
        let mut has_other_writers = false;
        let mut result = self.attempt(planned, tracker, (setup_outcome, has_other_writers)).await;
        let mut attempts = Attempts::new(self.fair_wait());
        attempts.add(result.duration);
        while result.verdict >= Verdict::Warn && self.end.is_none_or(|end| end > Instant::now()) {
            let was_interrupted = restart::was_interrupted(&result.exchanges);
            other_writer = self.other_writer(&result, &planned.name).await;
            has_other_writers |= other_writer.is_some();
            if !attempts.may_go_on(was_interrupted, has_other_writers) {
                break;
            }
            // Objects of the previous attempt may still exist.
            let name = format!("{}-again{}", planned.name, attempts.count());
            let planned = PlannedRun { name, ..planned.clone() };
            let next = self.attempt(&planned, tracker, (setup_outcome, has_other_writers)).await;
            attempts.add(next.duration);
            result = CaseResult { duration: result.duration + next.duration, ..next };
        }
        let result = match other_writer {
            Some(writer) if result.verdict >= Verdict::Warn => {
                naming(&writer, attempts.count(), result)
            }
            _ => result,
        };
        let result = self.without_lost_connections(result).await;
        self.without_excusable_rejections(result, planned).await
    }

    /// Returns another client that wrote to the objects of a case.
    async fn other_writer(&self, result: &CaseResult, name: &str) -> Option<String> {
        let mut exchanges: Vec<Arc<Exchange>> =
            result.exchanges.iter().map(|named| Arc::clone(&named.exchange)).collect();
        // A conflict does not show the object.
        let conflicts = exchanges.iter().filter_map(|exchange| restart::conflict(exchange));
        let requester = Requester { client: &self.client, deadline: Instant::now() + READ };
        for target in conflicts.collect::<BTreeSet<_>>() {
            exchanges.push(Arc::new(requester.get(&target, "application/json").await));
        }
        restart::other_writer(&exchanges, name)
    }

    async fn attempt(
        &self,
        planned: &PlannedRun,
        tracker: &Tracker,
        (setup_outcome, has_other_writers): (&SetupOutcome, bool),
    ) -> CaseResult {
        if let Some((filter, subject)) = planned.case.subject.as_ref().zip(planned.subject.as_ref())
            && let Some(installed) = setup_outcome.installed.get(&subject.name)
            && let Some(reason) = installed.lacks(&subject.name, filter)
        {
            return result_of(planned, Judgement::skipped(reason));
        }
        let needs_pod = planned.case.needs.contains(&Capability::RunningPods);
        // The start of the pod does not count against the case.
        let pod = if needs_pod { self.pod_failure().await } else { None };
        let begun = Instant::now();
        let deadline = begun + self.case_timeout;
        // Without a pod, the handshakes of the case itself show the support.
        let has_pod = needs_pod && pod.is_none() && setup_outcome.namespace.is_none();
        if let (true, Some(protocol)) = (has_pod, &planned.protocol)
            && let Some(reason) = self.unsupported_protocol(&planned.case, protocol, deadline).await
        {
            return result_of(planned, Judgement::skipped(reason));
        }
        if let Some(reason) = self.unsupported_paging(planned, tracker, deadline).await {
            return result_of(planned, Judgement::skipped(reason));
        }
        let mut scope = Scope::new(self, planned, tracker, deadline);
        scope.has_other_writers = has_other_writers;
        let in_namespace = planned.subject.as_ref().is_some_and(|subject| subject.namespaced)
            || case_analysis::reads_variable(&planned.case.steps, "ns");
        let failure = setup_failure(planned, setup_outcome, in_namespace, pod.as_ref());
        let set_up = failure.is_none();
        if let Some((prerequisite, what, _)) =
            failure.as_ref().filter(|(.., failure)| failure.ends_with(self.end))
        {
            let what = prerequisite.map_or(&**what, |_| "the namespace of the run");
            scope.record.check(out_of_time(&format!("{RUN_IS_OVER} before {what} was ready")));
        } else if let Some((prerequisite, what, failure)) = failure {
            if let Some(reason) = self.prerequisites.setup_obstacle(planned, prerequisite, &what) {
                return result_of(planned, Judgement::skipped(reason));
            }
            failure.record_in(&mut scope.record);
        } else {
            let last = deadline + MOST_GIVEN_BACK * self.case_timeout + GRACE;
            let last = self.end.map_or(last, |end| end.min(last));
            let late =
                tokio::time::timeout_at(last, scope.steps(&planned.case.steps)).await.is_err();
            if late {
                scope.record.recover();
                let over_all = self.end.is_some_and(|end| end <= last);
                let case_is_over = "the timeout of the case (--case-timeout) expired";
                let message = if over_all { RUN_IS_OVER } else { case_is_over };
                scope.record.check(out_of_time(message));
            }
        }
        let blocked = scope.record.take_blocked();
        let (mut checks, exchanges) = std::mem::take(&mut scope.record).finish().await;
        if set_up {
            limit_level(&mut checks, planned.case.level);
        }
        let judgement =
            blocked.map_or_else(|| Judgement::of(&checks, planned.case.level), Judgement::skipped);
        let result = result_of(planned, judgement);
        CaseResult { duration: begun.elapsed(), checks, exchanges, ..result }
    }

    /// Waits for the pod. Returns why it does not run.
    async fn pod_failure(&self) -> Option<SetupFailure> {
        let mut state = self.pod_state.clone();
        let known = state.wait_for(|state| matches!(state, PodState::Known(_))).await;
        match known.as_deref() {
            Ok(PodState::Known(failure)) => failure.as_deref().cloned(),
            _ => None,
        }
    }
}

/// Adds to each failure the other client that may have caused it.
fn naming(writer: &str, attempts: usize, mut result: CaseResult) -> CaseResult {
    let writer: String = writer.chars().take(LONGEST_WRITER).collect();
    let note = format!(
        "; the client {writer:?} wrote to objects of the case, too ({})",
        plural(attempts, "attempt")
    );
    for check in result.checks.iter_mut().filter(|check| check.verdict >= Verdict::Warn) {
        let end = check.message.find('\n').unwrap_or(check.message.len());
        check.message.insert_str(end, &note);
    }
    let judgement = Judgement::of(&result.checks, result.level);
    CaseResult { verdict: judgement.verdict, reason: judgement.reason, ..result }
}

/// Returns the failure of the setup that keeps a case from running, with the prerequisite that
/// failed and its name.
fn setup_failure<'a>(
    planned: &PlannedRun,
    setup_outcome: &'a SetupOutcome,
    in_namespace: bool,
    pod: Option<&'a SetupFailure>,
) -> Option<(Option<Prerequisite>, String, &'a SetupFailure)> {
    if let Some(failure) = setup_outcome.namespace.as_ref().filter(|_| in_namespace) {
        let prerequisite = Prerequisite::Namespaces;
        return Some((Some(prerequisite), prerequisite.to_string(), failure));
    }
    let subject = planned.subject.as_ref();
    if let Some((subject, failure)) =
        subject.and_then(|subject| Some((subject, setup_outcome.installs.get(&subject.name)?)))
    {
        return Some((None, format!("the definition of {}", subject.name), failure));
    }
    pod.map(|failure| (None, "the pod of the run".to_owned(), failure))
}

/// The failed check that a case ends in time.
pub(super) fn out_of_time(message: &str) -> CheckResult {
    let check = synthetic(IN_TIME.to_owned(), Verdict::Error, "");
    CheckResult { message: message.to_owned(), ..check }
}

/// Limits implied checks to the level of their case: objects that the case needs, captured values,
/// responses in time. Another case owns the rule that they rely on.
fn limit_level(checks: &mut [CheckResult], level: Level) {
    for check in checks {
        check.level = check.level.min(level);
        if check.verdict == Verdict::Fail {
            check.verdict = failed_at(check.level);
        }
    }
}

/// Creates a result without checks.
pub(super) fn result_of(planned: &PlannedRun, judgement: Judgement) -> CaseResult {
    CaseResult::bare(&planned.case, planned.subject_name(), judgement)
}
