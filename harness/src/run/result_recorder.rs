//! Counts the results of a run, and sends its events.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Zoned;
use jiff::civil::Date;
use tokio::sync::mpsc::Sender;

use super::case::result_of;
use super::required::{self, ProfileTally};
use crate::event::{CaseResult, Event, Judgement, SkipReason, Verdict};
use crate::plan::{EntryUsage, Plan, PlannedRun, RunOptions};

/// Counts results and sends events.
pub(super) struct ResultRecorder {
    events: Sender<Event>,
    counts: [AtomicUsize; 6],
    failures: AtomicUsize,
    profiles: ProfileTally,
    options: RunOptions,
    entry_usage: Mutex<EntryUsage>,
    today: Date,
}

const VERDICTS: [Verdict; 6] = [
    Verdict::Skip,
    Verdict::Pass,
    Verdict::Deviation,
    Verdict::Warn,
    Verdict::Fail,
    Verdict::Error,
];

impl ResultRecorder {
    pub(super) fn new(events: Sender<Event>, options: &RunOptions) -> Self {
        let (counts, failures, profiles, entry_usage) = Default::default();
        let (options, today) = (options.clone(), Zoned::now().date());
        Self { events, counts, failures, profiles, options, entry_usage, today }
    }

    pub(super) async fn send(&self, event: Event) {
        // A closed channel must not stop a run before its cleanup.
        let _ = self.events.send(event).await;
    }

    /// Reports what the plan found about the target.
    pub(super) async fn notices(&self, plan: &Plan) {
        let absent = plan.absent.iter();
        let absent = absent.map(|(name, reason)| format!("no case runs on {name}: {reason}"));
        for notice in plan.capabilities.gaps_in_words().into_iter().chain(absent) {
            self.send(Event::Notice(notice)).await;
        }
    }

    /// Records the results of the cases that the plan skips.
    pub(super) async fn skipped(&self, plan: &Plan) {
        for (planned, reason) in plan.runs.iter().filter_map(|run| Some((run, run.skip.as_ref()?)))
        {
            self.finished(result_of(planned, Judgement::skipped(reason.clone()))).await;
        }
    }

    /// Records the results for the features that the user requires.
    pub(super) async fn required(&self, plan: &Plan) {
        let required = &self.options.required;
        for result in required::results(required, &plan.capabilities, &self.profiles) {
            self.finished(result).await;
        }
    }

    pub(super) async fn started(&self, planned: &PlannedRun) {
        self.send(Event::CaseStarted {
            id: planned.case.id.clone(),
            subject: planned.subject_name(),
        })
        .await;
    }

    pub(super) async fn finished(&self, mut result: CaseResult) {
        if let Some(list) = &self.options.known_failures {
            result.known = list.judge(&result, self.today, self.options.strict);
            let usage = self.entry_usage.lock();
            list.record(&result, &mut usage.unwrap_or_else(PoisonError::into_inner));
        }
        if let Some(n) = VERDICTS.iter().position(|verdict| *verdict == result.verdict) {
            self.counts[n].fetch_add(1, Ordering::Relaxed);
        }
        self.profiles.add(&result);
        if result.fails_run(self.options.strict) {
            self.failures.fetch_add(1, Ordering::Relaxed);
        }
        self.send(Event::CaseFinished(Arc::new(result))).await;
    }

    /// Returns why no more cases start.
    pub(super) fn enough(&self) -> Option<SkipReason> {
        let limit = self.options.max_fail?;
        (self.failures.load(Ordering::Relaxed) >= limit)
            .then_some(SkipReason::FailureLimit { limit })
    }

    /// Returns the entries of the list of known failures that must change.
    pub(super) fn stale_entries(&self, complete: bool) -> Vec<String> {
        let Some(list) = &self.options.known_failures else { return Vec::new() };
        let complete = complete && self.enough().is_none();
        let usage = self.entry_usage.lock().unwrap_or_else(PoisonError::into_inner);
        list.stale(&usage, self.today, complete)
    }

    pub(super) fn summary(&self) -> BTreeMap<Verdict, usize> {
        VERDICTS
            .iter()
            .zip(&self.counts)
            .map(|(verdict, n)| (*verdict, n.load(Ordering::Relaxed)))
            .collect()
    }
}
