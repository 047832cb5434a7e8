//! The run as a whole: what comes first, what runs at once, and the end.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::{FutureExt, StreamExt, stream};
use jiff::Zoned;
use jiff::civil::Date;
use kubeproof_cases::case::Capability;
use tokio::sync::mpsc::{Sender, channel};
use tokio::sync::{OnceCell, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::RunOptions;
use super::case::{PodState, Session, result_of};
use super::offers::Offers;
use super::setup::{self, Obstacles};
use crate::cleanup::{Cleaner, Property};
use crate::event::{CaseResult, Event, RunFinished, RunStarted, Verdict};
use crate::plan::{Plan, PlannedRun, survey};
use crate::subject::Origin;
use crate::transport::Client;
use crate::verdict::Judging;

/// How long the cleanup may take.
const CLEANUP: Duration = Duration::from_mins(1);

/// How long it may take when somebody waits for the program to go away.
const CLEANUP_WHEN_INTERRUPTED: Duration = Duration::from_secs(10);

/// Runs the plan, and keeps its results with all that was sent: only for a client whose memory for answers suffices for them all.
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

/// Runs the plan. Events tell everything; the last one is what this returns.
///
/// A result holds what its exchanges take of the memory for answers until it is dropped. So a run waits for whoever hears of it: when
/// the channel is full, no case begins.
pub async fn run(
    plan: Plan,
    client: Client,
    options: &RunOptions,
    events: Sender<Event>,
    interrupt: CancellationToken,
) -> RunFinished {
    let begun = Instant::now();
    let book = Arc::new(Book::new(events, options));
    let started = RunStarted {
        target: plan.target.clone(),
        edition: options.edition,
        letter: options.letter,
        seed: options.seed,
        catalogue_digest: plan.catalogue_digest.clone(),
        planned: plan.runs.len(),
    };
    book.tell(Event::RunStarted(started)).await;
    for (name, reason) in &plan.absent {
        book.tell(Event::Notice(format!("no case runs on {name}: {reason}"))).await;
    }
    let (skipped, running): (Vec<PlannedRun>, Vec<PlannedRun>) =
        plan.runs.iter().cloned().partition(|run| run.skip.is_some());
    for planned in &skipped {
        book.finished(result_of(planned, Verdict::Skip, planned.skip.clone().unwrap_or_default())).await;
    }

    let property = Property {
        namespace: plan.makes_namespace().map(str::to_owned),
        groups: plan.installs.iter().map(|install| install.group.clone()).collect(),
        definitions: plan.installs.iter().map(|install| install.definition().to_owned()).collect(),
    };
    let cleaner = Cleaner::start(&client, property);
    if !running.is_empty() && !interrupt.is_cancelled() {
        let (pod_known, pod_state) = watch::channel(PodState::Starting);
        let session = Arc::new(Session {
            pod: plan.pod.clone(),
            pod_state,
            offers: Offers::default(),
            published: OnceCell::new(),
            judging: Judging {
                edition: options.edition,
                letter: options.letter,
                server: plan.target.server.clone(),
            },
            client,
            namespace: plan.home.name().to_owned(),
            run: plan.run.clone(),
            case_timeout: options.case_timeout * options.load,
            stalled_after: options.stalled_after,
            longest_pause: options.longest_pause,
            load: options.load,
            seed: options.seed,
            end: options.timeout.map(|timeout| begun + timeout),
        });
        cases(&plan, running, (&session, pod_known), &cleaner, &book, options, &interrupt).await;
    }
    let limit = if interrupt.is_cancelled() { CLEANUP_WHEN_INTERRUPTED } else { CLEANUP };
    for notice in cleaner.finish(limit).await {
        book.tell(Event::Notice(notice)).await;
    }
    let finished = RunFinished {
        summary: book.summary(),
        duration: begun.elapsed(),
        interrupted: interrupt.is_cancelled(),
    };
    book.tell(Event::RunFinished(finished.clone())).await;
    finished
}

/// Runs what is to run. Cases on the suite's own resources join in as soon as the server serves these. Cases that
/// wait for the server's clock begin first, so that the others run meanwhile; beyond that the order is the plan's.
async fn cases(
    plan: &Plan,
    running: Vec<PlannedRun>,
    (session, pod_known): (&Arc<Session>, watch::Sender<PodState>),
    cleaner: &Cleaner,
    book: &Arc<Book>,
    options: &RunOptions,
    interrupt: &CancellationToken,
) {
    let is_custom =
        |run: &PlannedRun| run.subject.as_ref().is_some_and(|subject| subject.origin == Origin::Suite);
    let (mut custom, mut others): (Vec<PlannedRun>, Vec<PlannedRun>) =
        running.into_iter().partition(is_custom);
    for runs in [&mut custom, &mut others] {
        // Others that need the pod of the run come last: it is being made meanwhile.
        runs.sort_by_cached_key(|run| {
            let awaits = survey::awaits_the_clock(&run.case.steps);
            (!awaits, needs_pod(run))
        });
    }
    let patience = setup::PATIENCE.max(options.case_timeout);
    let prepared = Instant::now() + patience;
    let prepared = session.end.map_or(prepared, |end| end.min(prepared));
    let namespace = match plan.makes_namespace() {
        Some(name) => setup::namespace(&session.client, name, prepared).await,
        None => None,
    };
    let obstacles = Obstacles { namespace, ..Obstacles::default() };
    let installing = tokio::spawn({
        let (client, installs) = (session.client.clone(), plan.installs.clone());
        async move { setup::install(&client, &installs, prepared).await }
    });
    let abort = installing.abort_handle();
    let pod_tracker = Arc::new(cleaner.tracker());
    let starting = tokio::spawn({
        let (session, tracker) = (Arc::clone(session), Arc::clone(&pod_tracker));
        let wanted = plan.needs_pod() && obstacles.namespace.is_none();
        async move {
            let start = session.pod.start(&session.client, &session.namespace, &tracker, prepared);
            let obstacle = if wanted { start.await } else { None };
            // Nobody may need it any more.
            let _ = pod_known.send(PodState::Known(obstacle.map(Box::new)));
        }
    });
    let abort_pod = starting.abort_handle();
    let later = async {
        let installed = installing.await.unwrap_or_default();
        let obstacles = Arc::new(Obstacles { namespace: obstacles.namespace.clone(), ..installed });
        stream::iter(custom).map(move |planned| (planned, Arc::clone(&obstacles)))
    };
    let at_once = Arc::new(obstacles.clone());
    let others = stream::iter(others).map(|planned| (planned, Arc::clone(&at_once)));
    // Either side waits for a free place, and takes turns with the other.
    let runs = stream::select(Box::pin(later.flatten_stream()), others);
    let all = runs.for_each_concurrent(options.jobs.max(1), |(planned, obstacles)| {
        let (session, book, interrupt) = (Arc::clone(session), Arc::clone(book), interrupt.clone());
        // Outside of the task, so that it outlives a panic in there.
        let tracker = Arc::new(cleaner.tracker());
        async move {
            if let Some(reason) = book.enough() {
                book.finished(result_of(&planned, Verdict::Skip, reason)).await;
                return;
            }
            book.started(&planned).await;
            let result = tokio::spawn({
                let planned = planned.clone();
                async move {
                    let case =
                        AssertUnwindSafe(session.execute(&planned, &tracker, &obstacles)).catch_unwind();
                    tokio::select! {
                        result = case => Some(result),
                        () = interrupt.cancelled() => None,
                    }
                }
            })
            .await;
            let result = match result {
                Ok(Some(Ok(result))) => result,
                Ok(Some(Err(panic))) => result_of(&planned, Verdict::Error, died(&*panic)),
                Err(error) => result_of(&planned, Verdict::Error, error.to_string()),
                Ok(None) => return,
            };
            book.finished(result).await;
        }
    });
    tokio::select! {
        () = all => {}
        () = interrupt.cancelled() => {}
    }
    abort.abort();
    abort_pod.abort();
    // The task holds the pod's tracker, which has to be gone before the cleanup.
    let _ = starting.await;
}

fn needs_pod(run: &PlannedRun) -> bool {
    run.case.needs.contains(&Capability::RunningPods)
}

fn died(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
    format!("the harness died of this case, which is a fault of kubeproof: {text}")
}

/// Where results are counted and told.
struct Book {
    events: Sender<Event>,
    counts: [AtomicUsize; 6],
    failures: AtomicUsize,
    options: RunOptions,
    today: Date,
}

const VERDICTS: [Verdict; 6] =
    [Verdict::Skip, Verdict::Pass, Verdict::Deviation, Verdict::Warn, Verdict::Fail, Verdict::Error];

impl Book {
    fn new(events: Sender<Event>, options: &RunOptions) -> Self {
        let (counts, failures) = Default::default();
        Self { events, counts, failures, options: options.clone(), today: Zoned::now().date() }
    }

    async fn tell(&self, event: Event) {
        // A report that nobody waits for any more is no reason to stop a run that has to clean up.
        let _ = self.events.send(event).await;
    }

    async fn started(&self, planned: &PlannedRun) {
        self.tell(Event::CaseStarted { id: planned.case.id.clone(), subject: planned.subject_name() }).await;
    }

    async fn finished(&self, mut result: CaseResult) {
        if let Some(list) = &self.options.known_failures {
            result.known = list.judge(&result, self.today, self.options.strict);
        }
        if let Some(n) = VERDICTS.iter().position(|verdict| *verdict == result.verdict) {
            self.counts[n].fetch_add(1, Ordering::Relaxed);
        }
        if result.fails_run(self.options.strict) {
            self.failures.fetch_add(1, Ordering::Relaxed);
        }
        self.tell(Event::CaseFinished(Arc::new(result))).await;
    }

    /// Why no more cases are to begin.
    fn enough(&self) -> Option<String> {
        let limit = self.options.max_fail?;
        (self.failures.load(Ordering::Relaxed) >= limit)
            .then(|| format!("the run has {limit} failures (--max-fail)"))
    }

    fn summary(&self) -> BTreeMap<Verdict, usize> {
        VERDICTS.iter().zip(&self.counts).map(|(verdict, n)| (*verdict, n.load(Ordering::Relaxed))).collect()
    }
}
