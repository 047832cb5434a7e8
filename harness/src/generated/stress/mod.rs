//! Concurrent clients change a few objects while watchers follow. The history is checked offline.
//!
//! A run consists of rounds, so that the memory of a history is bounded. Each round starts from a
//! list, and ends with an object that all watchers must see.

pub mod check;
mod client;
pub mod history;
mod json;
mod probe;
mod report;
mod restart;
#[cfg(test)]
mod simulation;
mod svg;
mod text;
mod watcher;
mod workload;

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use kubeproof_cases::Catalogue;
use kubeproof_cases::case::Capability;
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use self::check::check;
use self::client::{Quota, Verb, Worker};
use self::history::{Action, Content, History, Operation, Outcome, Snapshot, Watch};
pub use self::json::json;
use self::probe::{LeftOut, unsupported};
pub use self::report::{Failure, StressReport};
pub use self::svg::svg;
pub use self::text::text;
use self::watcher::Watcher;
use self::workload::{Field, Workload};
use super::{GeneratedError, Session};
use crate::plan::{RunOptions, Subject};
use crate::transport::Client;

/// The resources without `--subject`: a built-in type and a custom one.
const USUAL: [&str; 2] = ["configmaps.v1", "widgets.v1.kubeproof.dev"];

/// Operations of a client in each round.
const OPERATIONS: usize = 250;

/// Watchers in each round.
const WATCHERS: usize = 5;

/// Attempts to create the last object of a round, and to read the first list.
const ATTEMPTS: usize = 50;

const PAUSE: Duration = Duration::from_millis(100);

/// The options of a stress run.
#[derive(Clone, Debug)]
pub struct StressOptions {
    /// The target and the subjects.
    pub run: RunOptions,
    /// Concurrent clients.
    pub clients: usize,
    /// Objects that the clients share.
    pub objects: usize,
    /// Time for all resources together.
    pub duration: Duration,
    /// Time for an event to arrive after the last write.
    pub stall: Duration,
    /// Restarts the server during the run.
    pub restart_command: Option<String>,
}

/// Runs until the time is over, a history breaks a rule, or the run is interrupted.
///
/// Removes all objects at the end.
pub async fn stress(
    catalogue: &Catalogue,
    client: &Client,
    options: &StressOptions,
    interrupt: &CancellationToken,
) -> Result<StressReport, GeneratedError> {
    let needs = [Capability::Paging];
    let opened = Session::open(catalogue, client, &options.run, (&USUAL, &needs), interrupt);
    let Some(session) = opened.await? else { return Ok(StressReport::default()) };
    let mut report = StressReport { seed: options.run.seed, ..StressReport::default() };
    report.notices.clone_from(&session.notices);
    let result = run(&session, options, interrupt, &mut report).await;
    report.notices.extend(session.close(interrupt).await);
    result.map(|()| report)
}

async fn run(
    session: &Session,
    options: &StressOptions,
    interrupt: &CancellationToken,
    report: &mut StressReport,
) -> Result<(), GeneratedError> {
    let share = options.duration / u32::try_from(session.subjects.len()).unwrap_or(1).max(1);
    for subject in &session.subjects {
        let mut stage = match Stage::prepare(session, subject, options).await {
            Ok((stage, notices)) => {
                report.notices.extend(notices);
                stage
            }
            Err(why) => {
                report.notices.push(format!("{}: {why}", subject.name));
                continue;
            }
        };
        report.subjects.push(subject.name.to_string());
        let begun = Instant::now();
        let mut restarts = restart_times(options, begun, share);
        while begun.elapsed() < share && !interrupt.is_cancelled() {
            let is_due = restarts.last().is_some_and(|at| *at <= Instant::now());
            let restart = if is_due { restarts.pop().map(|_| ()) } else { None };
            let command = restart.and(options.restart_command.as_deref());
            let most = begun + share;
            let Some(history) = stage.round(report.seed, most, command, interrupt).await? else {
                break;
            };
            report.restarts += usize::from(command.is_some());
            report.count(&history);
            let violations = check(&history);
            if !violations.is_empty() {
                let failure = Failure::new(subject, report.rounds, &history, violations);
                report.failure = Some(failure);
                return Ok(());
            }
            if went_away(&history, options.clients) {
                let message =
                    "the server went away: no request at the end of a round got a response";
                return Err(GeneratedError::Undecided(message.to_owned()));
            }
        }
    }
    if report.subjects.is_empty() {
        return Err(GeneratedError::NothingToTest(report.notices.join("; ")));
    }
    Ok(())
}

/// Reports whether the requests of the client `own`, at the end of a round, got no responses.
fn went_away(history: &History, own: usize) -> bool {
    let mut last = history.operations.iter().filter(|operation| operation.client == own);
    last.all(|operation| matches!(operation.outcome, Outcome::Unknown(_)))
}

/// Returns when to restart the server, the first time last.
fn restart_times(options: &StressOptions, begun: Instant, share: Duration) -> Vec<Instant> {
    match options.restart_command {
        Some(_) => vec![begun + share * 2 / 3, begun],
        None => Vec::new(),
    }
}

/// The clients of one resource.
struct Stage {
    workload: Arc<Workload>,
    workers: Vec<Worker>,
    /// The client of the round itself.
    own: Worker,
    last: String,
    stall: Duration,
    /// Whether the server promises versions that are numbers in order.
    numeric: bool,
    rounds: u64,
    /// Operations of earlier rounds whose outcome is unknown. They may still happen.
    unknown: Vec<Operation>,
}

impl Stage {
    /// Finds the verbs that the target supports. Returns why a resource cannot be tested.
    async fn prepare(
        session: &Session,
        subject: &Subject,
        options: &StressOptions,
    ) -> Result<(Self, Vec<String>), String> {
        let prefix = format!("kp-{}-s", session.run);
        // Each name is a prefix of the next one.
        let names = (0..options.objects).map(|n| format!("{prefix}{}", "-x".repeat(n)));
        let field = if subject.name.to_string() == "configmaps.v1" {
            Field::Data
        } else {
            Field::Annotations
        };
        let collection = subject.collection(&session.namespace);
        let mut template = subject.object(&session.namespace, &prefix);
        template["metadata"]["annotations"] = Value::Null;
        let names = (prefix.clone(), names.collect());
        let client = session.client.clone();
        let workload = Workload::new(client, collection, template, names, field);
        for name in workload.names.iter().chain([&format!("{prefix}-end")]) {
            session.track(&workload.collection, name);
        }
        let workload = Arc::new(workload);
        let without = unsupported(&workload).await?;
        let notice = |(_, why): &LeftOut| format!("{}: the run does without {why}", subject.name);
        let mut notices: Vec<String> = without.iter().map(notice).collect();
        notices.dedup();
        let without: Vec<Verb> = without.iter().map(|(verb, _)| *verb).collect();
        let worker = |number| Worker::new(&workload, number, options.run.seed, &without);
        let stage = Self {
            workers: (0..options.clients).map(worker).collect(),
            own: worker(options.clients),
            workload: Arc::clone(&workload),
            last: format!("{prefix}-end"),
            stall: options.stall,
            numeric: has_ordered_versions(session.server_version()),
            rounds: 0,
            unknown: Vec::new(),
        };
        Ok((stage, notices))
    }

    /// Runs one round. Returns `None` if it was interrupted.
    async fn round(
        &mut self,
        seed: u64,
        end: Instant,
        restart_command: Option<&str>,
        interrupt: &CancellationToken,
    ) -> Result<Option<History>, GeneratedError> {
        self.rounds += 1;
        self.workload.remove(&self.last).await;
        let initial = self.first_list().await?;
        self.workload.begin(&initial.version);
        let (ended, has_ended) = watch::channel(None);
        let seed = seed.wrapping_add(self.rounds);
        let following: Vec<_> = (0..WATCHERS)
            .map(|number| self.watcher(number, seed, has_ended.clone()))
            .map(|watcher| tokio::spawn(watcher.follow(initial.version.clone())))
            .collect();
        let (least, most) = (CancellationToken::new(), interrupt.child_token());
        let quota = Quota { operations: OPERATIONS, least: least.clone(), most: most.clone() };
        let workers = std::mem::take(&mut self.workers);
        let work = workers.into_iter().map(|worker| tokio::spawn(worker.work(quota.clone())));
        let work: Vec<_> = work.collect();
        // The time limit must not end a round before its restart.
        let end = restart_command.is_none().then_some(end);
        let timer = end.map(|end| tokio::spawn(cancel_at(end, most)));
        let restarted = match restart_command {
            Some(command) => tokio::select! {
                restarted = restart::restart_soon(&self.workload.client, command) => restarted,
                () = interrupt.cancelled() => Ok(()),
            },
            None => Ok(()),
        };
        least.cancel();
        let mut operations = std::mem::take(&mut self.unknown);
        for joined in join_all(work).await {
            let (worker, done) = joined.map_err(|error| panicked(&error))?;
            self.workers.push(worker);
            operations.extend(done);
        }
        timer.inspect(tokio::task::JoinHandle::abort);
        restarted?;
        if interrupt.is_cancelled() {
            following.iter().for_each(tokio::task::JoinHandle::abort);
            return Ok(None);
        }
        operations.extend(self.end_round(&ended).await);
        let mut watches: Vec<Watch> = Vec::new();
        for joined in join_all(following).await {
            watches.extend(joined.map_err(|error| panicked(&error))?);
        }
        let may_happen = operations.iter().filter(|operation| {
            operation.action.writes() && matches!(operation.outcome, Outcome::Unknown(_))
        });
        self.unknown = may_happen.cloned().collect();
        let is_decimal = initial.version.bytes().all(|byte| byte.is_ascii_digit());
        let numeric = self.numeric && is_decimal;
        Ok(Some(History { numeric, initial, operations, watches }))
    }

    fn watcher(
        &self,
        number: usize,
        seed: u64,
        ended: watch::Receiver<Option<Instant>>,
    ) -> Watcher {
        let (workload, last) = (Arc::clone(&self.workload), self.last.clone());
        Watcher { workload, number, last, ended, stall: self.stall, seed }
    }

    /// Creates the last object, and reads everything again.
    async fn end_round(&mut self, ended: &watch::Sender<Option<Instant>>) -> Vec<Operation> {
        let mut operations = Vec::new();
        for _ in 0..ATTEMPTS {
            let own = Content::from([(check::own_key(self.own.number), self.rounds.to_string())]);
            let action = Action::Create(self.last.clone(), own);
            let created = self.workload.perform(self.own.number, action).await;
            let is_unknown = matches!(created.outcome, Outcome::Unknown(_));
            operations.push(created);
            if !is_unknown {
                break;
            }
            tokio::time::sleep(PAUSE).await;
        }
        ended.send_replace(Some(Instant::now()));
        for limit in [None, Some(2)] {
            let verb = if limit.is_some() { Verb::Pages } else { Verb::List };
            if !self.own.without.contains(&verb) {
                operations.push(self.workload.perform(self.own.number, Action::List(limit)).await);
            }
        }
        for name in &self.workload.names {
            let action = Action::Get(name.clone());
            operations.push(self.workload.perform(self.own.number, action).await);
        }
        operations
    }

    async fn first_list(&self) -> Result<Snapshot, GeneratedError> {
        let mut problem = String::new();
        for _ in 0..ATTEMPTS {
            match self.workload.list(None).await {
                Outcome::Listed(mut snapshot, _) => {
                    snapshot.objects.retain(|state| state.name != self.last);
                    return Ok(snapshot);
                }
                Outcome::Rejected(code, reason) => problem = format!("{code} {reason}"),
                Outcome::Unknown(words) => problem = words,
                Outcome::Object(_) | Outcome::Deleted(_) => {}
            }
            tokio::time::sleep(PAUSE).await;
        }
        Err(GeneratedError::Undecided(format!("the server went away: a list failed: {problem}")))
    }
}

async fn cancel_at(end: Instant, token: CancellationToken) {
    tokio::time::sleep_until(end).await;
    token.cancel();
}

fn panicked(error: &tokio::task::JoinError) -> GeneratedError {
    GeneratedError::Undecided(format!("a task of the run ended: {error}"))
}

/// Reports whether the version of the server guarantees that resource versions are ordered.
/// Kubernetes does so from 1.35 on.
fn has_ordered_versions(version: Option<&str>) -> bool {
    let mut numbers = version
        .and_then(|version| version.strip_prefix('v'))
        .into_iter()
        .flat_map(|version| version.split('.'))
        .map(|part| part.parse::<u32>().unwrap_or_default());
    let version = (numbers.next().unwrap_or_default(), numbers.next().unwrap_or_default());
    version >= (1, 35)
}
