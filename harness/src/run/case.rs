//! One case on one subject, from its first step to its verdict.

use std::time::Duration;

use serde_json::Value;
use tokio::sync::OnceCell;
use tokio::time::Instant;

use super::scope::Scope;
use super::setup::Obstacles;
use crate::cleanup::Tracker;
use crate::event::{CaseResult, CheckResult, Verdict};
use crate::plan::{PlannedRun, survey};
use crate::schema::Published;
use crate::transport::Client;
use crate::verdict::{Judging, synthetic};

/// How long a case that is past its deadline may take to notice.
const GRACE: Duration = Duration::from_secs(1);

/// What all cases of a run share.
pub(super) struct Session {
    pub(super) client: Client,
    pub(super) judging: Judging,
    pub(super) namespace: String,
    pub(super) run: String,
    pub(super) case_timeout: Duration,
    /// What the server publishes, once a case has asked for it.
    pub(super) published: OnceCell<Published>,
    /// When the time of the run is over.
    pub(super) end: Option<Instant>,
}

impl Session {
    /// Runs a case.
    pub(super) async fn execute(
        &self,
        planned: &PlannedRun,
        tracker: &Tracker,
        obstacles: &Obstacles,
    ) -> CaseResult {
        let begun = Instant::now();
        let deadline = begun + self.case_timeout;
        let mut scope = Scope::new(self, planned, tracker, deadline);
        let in_namespace = planned.subject.as_ref().is_some_and(|subject| subject.namespaced)
            || survey::reads_variable(&planned.case.steps, "ns");
        let obstacle =
            obstacles.namespace.as_ref().filter(|_| in_namespace).or_else(|| {
                planned.subject.as_ref().and_then(|subject| obstacles.installs.get(&subject.name))
            });
        if let Some(obstacle) = obstacle {
            obstacle.tell(&mut scope.record);
        } else {
            let last = self.end.map_or(deadline + GRACE, |end| end.min(deadline + GRACE));
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
}

/// The check that a case ends in time, when it does not.
pub(super) fn out_of_time(message: &str) -> CheckResult {
    synthetic("in-time".to_owned(), Verdict::Error, "", Value::Null, Value::Null, message.to_owned())
}

/// A result with nothing in it but the verdict.
pub(super) fn result_of(planned: &PlannedRun, verdict: Verdict, reason: String) -> CaseResult {
    let case = &planned.case;
    CaseResult {
        id: case.id.clone(),
        subject: planned.subject_name(),
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
fn verdict_of(checks: &[CheckResult]) -> (Verdict, String) {
    let Some(verdict) = checks.iter().map(|check| check.verdict).max() else {
        return (Verdict::Skip, "none of its checks is judged under this edition".to_owned());
    };
    if verdict <= Verdict::Pass {
        return (verdict, String::new());
    }
    let worst = checks.iter().find(|check| check.verdict == verdict);
    let reason = worst.map(|check| match check.message.lines().next() {
        Some(line) => format!("{}: {line}", check.id),
        None => check.id.clone(),
    });
    (verdict, reason.unwrap_or_default())
}
