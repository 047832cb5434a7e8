//! One case on one subject, from its first step to its verdict.

use std::time::Duration;

use kubeproof_cases::case::{Capability, Case};
use serde_json::Value;
use tokio::sync::{OnceCell, watch};
use tokio::time::Instant;

use super::offers::Offers;
use super::scope::{MOST_GIVEN_BACK, Scope};
use super::setup::{Obstacle, Obstacles};
use super::{RunPod, again};
use crate::cleanup::Tracker;
use crate::event::{CaseResult, CheckResult, Verdict};
use crate::plan::{PlannedRun, survey};
use crate::schema::Published;
use crate::transport::Client;
use crate::verdict::{Judging, synthetic};

/// How long a case that is past its deadline may take to notice.
const GRACE: Duration = Duration::from_secs(1);

/// How often a case may begin.
const ATTEMPTS: usize = 3;

/// What all cases of a run share.
pub(super) struct Session {
    pub(super) client: Client,
    pub(super) judging: Judging,
    pub(super) namespace: String,
    pub(super) run: String,
    pub(super) case_timeout: Duration,
    pub(super) stalled_after: Option<Duration>,
    pub(super) longest_pause: Duration,
    pub(super) load: u32,
    pub(super) seed: u64,
    /// What the server publishes, once a case has asked for it.
    pub(super) published: OnceCell<Published>,
    /// When the time of the run is over.
    pub(super) end: Option<Instant>,
    pub(super) pod: RunPod,
    /// Whether the pod runs, once that is known.
    pub(super) pod_state: watch::Receiver<PodState>,
    pub(super) offers: Offers,
}

/// What is known of the pod of the run.
#[derive(Clone, Debug)]
pub(super) enum PodState {
    /// It is being made.
    Starting,
    /// It runs, or this is why not.
    Known(Option<Box<Obstacle>>),
}

impl Session {
    /// How long something must have been waited for until the server is to blame that it did not come. Where less of the time of the
    /// case was left for it, the server may be right and slow.
    pub(super) fn patience(&self) -> Duration {
        self.stalled_after.unwrap_or(self.case_timeout / 2)
    }

    /// Runs a case; from its beginning again where the server, lawfully, cut it off from what it had to see.
    pub(super) async fn execute(
        &self,
        planned: &PlannedRun,
        tracker: &Tracker,
        obstacles: &Obstacles,
    ) -> CaseResult {
        let mut result = self.attempt(planned, tracker, obstacles).await;
        for attempt in 1..ATTEMPTS {
            let late = self.end.is_some_and(|end| end <= Instant::now());
            if result.verdict < Verdict::Warn || late || !again::was_cut_off(&result.exchanges) {
                break;
            }
            // The objects of the attempt before are still there.
            let planned = PlannedRun { name: format!("{}-again{attempt}", planned.name), ..planned.clone() };
            let next = self.attempt(&planned, tracker, obstacles).await;
            result = CaseResult { duration: result.duration + next.duration, ..next };
        }
        result
    }

    async fn attempt(&self, planned: &PlannedRun, tracker: &Tracker, obstacles: &Obstacles) -> CaseResult {
        if let Some((filter, subject)) = planned.case.subject.as_ref().zip(planned.subject.as_ref())
            && let Some(granted) = obstacles.granted.get(&subject.name)
            && let Some(reason) = granted.lacks(&subject.name, filter)
        {
            return result_of(planned, Verdict::Skip, reason);
        }
        let needs_pod = planned.case.needs.contains(&Capability::RunningPods);
        // The time that the pod takes is not the case's.
        let pod = if needs_pod { self.pod_obstacle().await } else { None };
        let begun = Instant::now();
        let deadline = begun + self.case_timeout;
        // Without a pod there is nobody to ask: the handshakes of the case itself have to tell.
        if let (true, Some(protocol), None) = (needs_pod, &planned.protocol, &pod)
            && let Some(reason) = self.refuses(&planned.case, protocol, deadline).await
        {
            return result_of(planned, Verdict::Skip, reason);
        }
        let mut scope = Scope::new(self, planned, tracker, deadline);
        let in_namespace = planned.subject.as_ref().is_some_and(|subject| subject.namespaced)
            || survey::reads_variable(&planned.case.steps, "ns");
        let obstacle =
            obstacles.namespace.as_ref().filter(|_| in_namespace).or_else(|| {
                planned.subject.as_ref().and_then(|subject| obstacles.installs.get(&subject.name))
            });
        if let Some(obstacle) = obstacle.or(pod.as_ref()) {
            obstacle.tell(&mut scope.record);
        } else {
            let last = deadline + MOST_GIVEN_BACK * self.case_timeout + GRACE;
            let last = self.end.map_or(last, |end| end.min(last));
            let late = tokio::time::timeout_at(last, scope.steps(&planned.case.steps)).await.is_err();
            if late {
                let over_all = self.end.is_some_and(|end| end <= last);
                let whose = if over_all { "run (--timeout)" } else { "case (--case-timeout)" };
                scope.record.check(out_of_time(&format!("the time of the {whose} was over")));
            }
        }
        let (checks, exchanges) = std::mem::take(&mut scope.record).finish().await;
        let (verdict, reason) = verdict_of(&checks);
        CaseResult { duration: begun.elapsed(), checks, exchanges, ..result_of(planned, verdict, reason) }
    }

    /// Waits until it is known whether the pod of the run runs.
    async fn pod_obstacle(&self) -> Option<Obstacle> {
        let mut state = self.pod_state.clone();
        let known = state.wait_for(|state| matches!(state, PodState::Known(_))).await;
        match known.as_deref() {
            Ok(PodState::Known(obstacle)) => obstacle.as_deref().cloned(),
            _ => None,
        }
    }
}

/// The check that a case ends in time, when it does not.
pub(super) fn out_of_time(message: &str) -> CheckResult {
    synthetic("in-time".to_owned(), Verdict::Error, "", Value::Null, Value::Null, message.to_owned())
}

/// A result with nothing in it but the verdict.
pub(super) fn result_of(planned: &PlannedRun, verdict: Verdict, reason: String) -> CaseResult {
    bare_result(&planned.case, planned.subject_name(), verdict, reason)
}

/// The same for what no plan knows.
pub(crate) fn bare_result(case: &Case, subject: String, verdict: Verdict, reason: String) -> CaseResult {
    CaseResult {
        id: case.id.clone(),
        subject,
        level: case.level,
        requirements: case.requirements.clone(),
        summary: case.summary.clone(),
        why: case.why.clone(),
        verdict,
        reason,
        duration: Duration::ZERO,
        checks: Vec::new(),
        exchanges: Vec::new(),
        known: None,
    }
}

/// The worst of the checks, and what it says.
pub(crate) fn verdict_of(checks: &[CheckResult]) -> (Verdict, String) {
    let Some(verdict) = checks.iter().map(|check| check.verdict).max() else {
        // A case that the edition does not judge is not run: what it goes through was empty.
        return (Verdict::Skip, "the server has nothing that its checks judge".to_owned());
    };
    match verdict {
        Verdict::Pass => return (verdict, String::new()),
        Verdict::Skip => return (verdict, checks[0].message.clone()),
        _ => {}
    }
    let worst = checks.iter().find(|check| check.verdict == verdict);
    let reason = worst.map(|check| match check.message.lines().next() {
        Some(line) => format!("{}: {line}", check.id),
        None => check.id.clone(),
    });
    (verdict, reason.unwrap_or_default())
}
