//! Runs the whole plan: setup, concurrent cases, cleanup.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{FutureExt, StreamExt, stream};
use jiff::Timestamp;
use kubeproof_cases::case::{Capability, Prerequisite};
use tokio::sync::mpsc::{Sender, channel};
use tokio::sync::{Mutex, OnceCell, watch};
use tokio::task::{AbortHandle, JoinHandle};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::case::{PodState, Session, result_of};
use super::jobs::Jobs;
use super::prerequisites::Prerequisites;
use super::protocol_support::ProtocolSupport;
use super::result_recorder::ResultRecorder;
use super::setup::{self, SetupFailure, SetupOutcome};
use crate::cleanup::{Cleaner, Property, TimeLimits, Tracker};
use crate::event::{
    CaseResult, Event, Judgement, RunFinished, RunStarted, SkipReason, StopReason, Stopped, Verdict,
};
use crate::plan::{Origin, Plan, PlannedRun, RunOptions, case_analysis};
use crate::transport::Client;
use crate::transport::health::Health;
use crate::verdict::{JudgeOptions, Reported};

/// Time limits of the cleanup. An interrupted run ends within 10 s, with its node and its reports.
const CLEANUP: TimeLimits =
    TimeLimits { usual: Duration::from_mins(1), interrupted: Duration::from_secs(8) };

/// Runs the plan and returns all results with their exchanges. The memory budget of the client must
/// be large enough for all of them.
pub async fn results(plan: Plan, client: Client, options: &RunOptions) -> Vec<Arc<CaseResult>> {
    let (events, mut heard) = channel(1);
    let mut results = Vec::new();
    let hear = async {
        while let Some(event) = heard.recv().await {
            if let Event::CaseFinished(result) = event {
                results.push(result);
            }
        }
    };
    tokio::join!(run(plan, client, options, events, CancellationToken::new()), hear);
    results
}

/// Runs the plan. Returns the last event.
///
/// A result reserves memory of the exchange budget until it is dropped. No case starts while the
/// event channel is full.
pub async fn run(
    plan: Plan,
    client: Client,
    options: &RunOptions,
    events: Sender<Event>,
    interrupt: CancellationToken,
) -> RunFinished {
    let begun = Instant::now();
    let recorder = Arc::new(ResultRecorder::new(events, options));
    recorder.send(Event::RunStarted(started(&plan, options))).await;
    recorder.notices(&plan).await;
    recorder.skipped(&plan).await;
    let running: Vec<PlannedRun> =
        plan.runs.iter().filter(|run| run.skip.is_none()).cloned().collect();

    let property = Property {
        namespace: plan.makes_namespace().map(str::to_owned),
        groups: plan.installs.iter().map(|install| install.group.clone()).collect(),
        definitions: plan.installs.iter().map(|install| install.definition().to_owned()).collect(),
        keeps_failed: options.keep.is_some(),
    };
    let cleaner = Cleaner::start(&client, property);
    let health = Arc::new(Health::new(fair_wait(options)));
    if !running.is_empty() && !interrupt.is_cancelled() {
        let (pod_known, pod_state) = watch::channel(PodState::Starting);
        let session =
            Arc::new(session(&plan, client.observed_by(&health), options, pod_state, begun));
        let execution = Execution {
            plan: &plan,
            session,
            cleaner: &cleaner,
            recorder: &recorder,
            options,
            jobs: Jobs::new(options.jobs),
            health: &health,
            interrupt: &interrupt,
        };
        execution.run(running, pod_known).await;
    }
    let stopped = health.reason();
    if !interrupt.is_cancelled() && stopped.is_none() {
        recorder.required(&plan).await;
    }
    let kept = kept_in_words(&cleaner.kept(), options);
    for leftover in clean_up(cleaner, stopped.as_ref(), &interrupt).await {
        recorder.send(Event::Leftover(leftover)).await;
    }
    if let Some(kept) = kept {
        recorder.send(Event::Notice(kept)).await;
    }
    let is_complete = !interrupt.is_cancelled() && stopped.is_none();
    let finished = RunFinished {
        summary: recorder.summary(),
        duration: begun.elapsed(),
        interrupted: interrupt.is_cancelled(),
        stopped,
        stale_entries: recorder.stale_entries(is_complete),
    };
    recorder.send(Event::RunFinished(finished.clone())).await;
    finished
}

fn started(plan: &Plan, options: &RunOptions) -> RunStarted {
    RunStarted {
        target: plan.target.clone(),
        edition: options.edition,
        letter: options.letter,
        seed: options.seed,
        catalogue_digest: plan.catalogue_digest.clone(),
        planned: plan.runs.len() + options.required.count(),
        shard: options.selection.shard,
        selection: options.selected(),
        started_at: Timestamp::now(),
        command: options.command.clone(),
    }
}

/// Removes the objects of the run. Returns notices about objects that stay.
async fn clean_up(
    cleaner: Cleaner,
    stopped: Option<&Stopped>,
    interrupt: &CancellationToken,
) -> Vec<String> {
    // A server that hangs in creates may still delete.
    let deletes = stopped.is_none_or(|stopped| stopped.reason == StopReason::CreatesHang);
    if deletes { cleaner.finish(CLEANUP, interrupt).await } else { cleaner.give_up() }
}

/// Returns how long a server must have had for a response before it is at fault.
fn fair_wait(options: &RunOptions) -> Duration {
    options.stalled_after.unwrap_or(options.case_timeout * options.load / 2)
}

/// Describes the objects of failed cases that stay. `None` without any.
fn kept_in_words(kept: &[String], options: &RunOptions) -> Option<String> {
    let (first, command) = (kept.first()?, options.keep.as_ref()?);
    let objects = match kept.len() {
        1 => first.clone(),
        count => format!("{count} objects, such as {first}"),
    };
    Some(format!("kept {objects}; remove what failed cases left with: {command}"))
}

fn session(
    plan: &Plan,
    client: Client,
    options: &RunOptions,
    pod_state: watch::Receiver<PodState>,
    begun: Instant,
) -> Session {
    Session {
        pod: plan.pod.clone(),
        pod_state,
        protocol_support: ProtocolSupport::default(),
        prerequisites: Prerequisites::default(),
        paging: OnceCell::default(),
        published: OnceCell::new(),
        generated_schemas: Mutex::default(),
        judging: JudgeOptions {
            edition: options.edition,
            letter: options.letter,
            server: plan.target.server.clone(),
            reported: Reported::new(),
        },
        client,
        capabilities: plan.capabilities.clone(),
        namespace: plan.namespace.name().to_owned(),
        run: plan.run.clone(),
        case_timeout: options.case_timeout * options.load,
        stalled_after: options.stalled_after,
        longest_pause: options.longest_pause,
        load: options.load,
        seed: options.seed,
        end: options.timeout.map(|timeout| begun + timeout),
    }
}

/// Runs the cases of a plan.
struct Execution<'a> {
    plan: &'a Plan,
    session: Arc<Session>,
    cleaner: &'a Cleaner,
    recorder: &'a Arc<ResultRecorder>,
    options: &'a RunOptions,
    jobs: Jobs,
    health: &'a Health,
    interrupt: &'a CancellationToken,
}

impl Execution<'_> {
    /// Runs the cases. Cases on custom resources start once these are served. Cases that run alone
    /// come last.
    async fn run(&self, mut running: Vec<PlannedRun>, pod_known: watch::Sender<PodState>) {
        let alone: Vec<PlannedRun> = running.extract_if(.., |run| run.case.alone).collect();
        let (custom, others) = in_starting_order(running);
        let prepared = self.setup_deadline();
        let namespace = tokio::select! {
            namespace = self.make_namespace(prepared) => namespace,
            () = self.interrupt.cancelled() => return,
        };
        let setup_outcome = SetupOutcome { namespace, ..SetupOutcome::default() };
        let installing = self.start_installing(prepared);
        let pod_tracker = Arc::new(self.cleaner.tracker());
        let wanted = self.plan.needs_pod() && setup_outcome.namespace.is_none();
        let starting = self.start_pod(wanted, pod_known, Arc::clone(&pod_tracker), prepared);
        let preparations = [installing.abort_handle(), starting.abort_handle()];
        let abort = || preparations.iter().for_each(AbortHandle::abort);
        let later = async {
            let installed = installing.await.unwrap_or_default();
            let namespace = setup_outcome.namespace.clone();
            let installed = Arc::new(SetupOutcome { namespace, ..installed });
            self.run_cases(custom, &installed).await;
            installed
        };
        let at_once = Arc::new(setup_outcome.clone());
        let at_once = self.run_cases(others, &at_once);
        // Both make progress at any time, and share the limit of jobs.
        let all = async {
            let (installed, ()) = tokio::join!(later, at_once);
            for planned in alone {
                self.run_case(planned, Arc::clone(&installed)).await;
            }
        };
        let stop_preparing = async {
            self.health.stopped().await;
            abort();
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = all => {}
            () = stop_preparing => {}
            () = self.interrupt.cancelled() => {}
        }
        abort();
        // The task holds the tracker of the pod, which must be dropped before the cleanup.
        let _ = starting.await;
    }

    async fn make_namespace(&self, deadline: Instant) -> Option<SetupFailure> {
        let name = self.plan.makes_namespace()?;
        setup::namespace(&self.session.client, name, deadline).await
    }

    /// Runs the cases that judge prerequisites, in the order of the prerequisites, and then the
    /// other cases.
    async fn run_cases(&self, mut runs: Vec<PlannedRun>, setup_outcome: &Arc<SetupOutcome>) {
        for stage in Prerequisite::STAGES {
            let is_judge = |run: &mut PlannedRun| {
                run.case.provides.is_some_and(|provided| stage.contains(&provided))
            };
            let judges = runs.extract_if(.., is_judge);
            let judges: Vec<PlannedRun> = judges.collect();
            self.run_concurrently(judges, setup_outcome).await;
        }
        self.run_concurrently(runs, setup_outcome).await;
    }

    async fn run_concurrently(&self, runs: Vec<PlannedRun>, setup_outcome: &Arc<SetupOutcome>) {
        // Cases that wait for the clock have permits of their own.
        let limit = 2 * self.options.jobs.max(1);
        let run = |planned| self.run_case(planned, Arc::clone(setup_outcome));
        stream::iter(runs).for_each_concurrent(limit, run).await;
    }

    fn setup_deadline(&self) -> Instant {
        let deadline = Instant::now() + setup::SERVE_TIMEOUT.max(self.options.case_timeout);
        self.session.end.map_or(deadline, |end| end.min(deadline))
    }

    fn start_installing(&self, deadline: Instant) -> JoinHandle<SetupOutcome> {
        let (client, installs) = (self.session.client.clone(), self.plan.installs.clone());
        tokio::spawn(async move { setup::install(&client, &installs, deadline).await })
    }

    fn start_pod(
        &self,
        wanted: bool,
        pod_known: watch::Sender<PodState>,
        tracker: Arc<Tracker>,
        deadline: Instant,
    ) -> JoinHandle<()> {
        let session = Arc::clone(&self.session);
        tokio::spawn(async move {
            let start = session.pod.start(&session.client, &session.namespace, &tracker, deadline);
            let failure = if wanted { start.await } else { None };
            // The receivers may be gone.
            let _ = pod_known.send(PodState::Known(failure.map(Box::new)));
        })
    }

    /// Runs a case in a task of its own, so that a panic ends only this case.
    async fn run_case(&self, planned: PlannedRun, setup_outcome: Arc<SetupOutcome>) {
        let waits = case_analysis::awaits_the_clock(&planned.case.steps);
        let _job = self.jobs.start(waits, self.session.client.half_memory_free()).await;
        // Outside of the task, so that it survives a panic there.
        let tracker = Arc::new(self.cleaner.tracker());
        let stopped = || self.health.reason().map(|why| SkipReason::Stopped(why.to_string()));
        let obstacle = || self.session.prerequisites.obstacle(&planned);
        if let Some(reason) = self.recorder.enough().or_else(stopped).or_else(obstacle) {
            self.recorder.finished(result_of(&planned, Judgement::skipped(reason))).await;
            return;
        }
        self.recorder.started(&planned).await;
        let task = tokio::spawn({
            let (session, interrupt) = (Arc::clone(&self.session), self.interrupt.clone());
            let (planned, tracker) = (planned.clone(), Arc::clone(&tracker));
            async move {
                let case = session.execute(&planned, &tracker, &setup_outcome);
                tokio::select! {
                    result = AssertUnwindSafe(case).catch_unwind() => Some(result),
                    () = interrupt.cancelled() => None,
                }
            }
        });
        let result = match task.await {
            Ok(Some(Ok(result))) => result,
            Ok(Some(Err(panic))) => result_of(&planned, Judgement::error(panic_message(&*panic))),
            Err(error) => result_of(&planned, Judgement::error(error.to_string())),
            Ok(None) => return,
        };
        // The objects of cases that run alone affect other clients.
        let may_keep = self.options.keep.is_some() && !planned.case.alone;
        if may_keep && matches!(result.verdict, Verdict::Fail | Verdict::Error) {
            tracker.keep();
        }
        drop(tracker);
        self.session.prerequisites.record(&planned, &result);
        self.recorder.finished(result).await;
        if self.health.is_overloaded()
            && let Some(notice) = self.jobs.lower()
        {
            self.recorder.send(Event::Notice(notice)).await;
        }
    }
}

/// Splits off the cases on custom resources. In both parts, cases that wait for the server's clock
/// come first, and cases that need the pod come last, since it starts in the meantime.
fn in_starting_order(running: Vec<PlannedRun>) -> (Vec<PlannedRun>, Vec<PlannedRun>) {
    let is_custom = |run: &PlannedRun| {
        run.subject.as_ref().is_some_and(|subject| subject.origin == Origin::Suite)
    };
    let (mut custom, mut others): (Vec<PlannedRun>, Vec<PlannedRun>) =
        running.into_iter().partition(is_custom);
    for runs in [&mut custom, &mut others] {
        runs.sort_by_cached_key(|run| {
            (!case_analysis::awaits_the_clock(&run.case.steps), needs_pod(run))
        });
    }
    (custom, others)
}

fn needs_pod(run: &PlannedRun) -> bool {
    run.case.needs.contains(&Capability::RunningPods)
}

fn panic_message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
    format!("the harness panicked, which is a bug of kubeproof; please report it: {text}")
}
