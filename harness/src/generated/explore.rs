//! Explores resources with a budget of requests and time, until a property is broken.

use std::sync::Arc;
use std::time::Duration;

use kubeproof_cases::Catalogue;
use kubeproof_cases::case::Property;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{GeneratedError, Session};
use crate::explore::{Budget, Schema, Stage, Verdict, check};
use crate::plan::RunOptions;
use crate::transport::Client;

pub use crate::explore::{Claim, Failure, Input, Mistake, Scope, Violation, case_file, text};

/// The resources without `--subject`: built-in types and custom ones.
const USUAL: [&str; 8] = [
    "specimens.v1.kubeproof.dev",
    "configmaps.v1",
    "secrets.v1",
    "deployments.v1.apps",
    "widgets.v1.kubeproof.dev",
    "leases.v1.coordination.k8s.io",
    "roles.v1.rbac.authorization.k8s.io",
    "serviceaccounts.v1",
];

/// Time limit of a schema.
const LOAD: Duration = Duration::from_secs(20);

/// Mistakes of each resource in a round.
const MISTAKES: u64 = 4;

/// Checks without a verdict that have a notice.
const SHOWN: usize = 5;

/// The run ends after this many consecutive checks without a verdict.
const UNDECIDED: usize = 20;

/// The options of an exploration.
#[derive(Clone, Debug)]
pub struct ExploreOptions {
    /// The target and the subjects.
    pub run: RunOptions,
    /// The most requests.
    pub max_requests: usize,
    /// Time for all checks.
    pub timeout: Duration,
    /// The most checks that look for smaller objects.
    pub shrink: usize,
}

/// The result of an exploration.
#[derive(Clone, Debug, Default)]
pub struct ExploreReport {
    /// The explored resources.
    pub subjects: Vec<String>,
    /// The number of checks with a verdict.
    pub checks: usize,
    /// The number of generated objects that a server rejects by rules outside of its schema.
    pub discarded: usize,
    /// The number of checks without a verdict.
    pub undecided: usize,
    /// The number of requests.
    pub requests: usize,
    /// The first broken property.
    pub failure: Option<Failure>,
    /// Facts for the user.
    pub notices: Vec<String>,
}

/// Checks until the requests or the time are used, a property is broken, or the run is
/// interrupted. Removes all objects at the end.
pub async fn explore(
    catalogue: &Catalogue,
    client: &Client,
    options: &ExploreOptions,
    interrupt: &CancellationToken,
) -> Result<ExploreReport, GeneratedError> {
    let opened = Session::open(
        catalogue,
        client,
        &options.run,
        (&USUAL, &Property::CAPABILITIES),
        interrupt,
    );
    let Some(session) = opened.await? else { return Ok(ExploreReport::default()) };
    let mut report = ExploreReport { notices: session.notices.clone(), ..ExploreReport::default() };
    let end = Instant::now() + options.timeout;
    let budget = Budget::new(options.max_requests, end, interrupt);
    let limits = (options.run.seed, options.shrink);
    let result = run(&session, &budget, limits, &mut report).await;
    report.requests = budget.sent();
    report.notices.extend(session.close(interrupt).await);
    result.map(|()| report)
}

async fn run(
    session: &Session,
    budget: &Budget,
    (seed, shrink): (u64, usize),
    report: &mut ExploreReport,
) -> Result<(), GeneratedError> {
    let prefix = format!("kp-{}-e", session.run);
    let ground = session.ground(&prefix);
    let mut stages = Vec::new();
    for subject in &session.subjects {
        let schema = Schema::load(&session.client, subject, Instant::now() + LOAD).await;
        stages.push(Stage::new(ground, subject, Arc::new(schema), (budget, shrink)));
    }
    report.subjects = stages.iter().map(|stage| stage.subject.name.to_string()).collect();
    let mut in_a_row = 0;
    for round in 0_u64.. {
        for (property, turn) in turns(seed.wrapping_add(round)) {
            for stage in &mut stages {
                if budget.is_over() {
                    return finished(report);
                }
                match check(stage, property, (seed, turn)).await {
                    Verdict::Holds(_) => report.checks += 1,
                    Verdict::None => {}
                    Verdict::Discarded => report.discarded += 1,
                    Verdict::Undecided(why) => {
                        report.undecided += 1;
                        if report.undecided <= SHOWN {
                            report
                                .notices
                                .push(format!("{}: undecided: {why}", stage.subject.name));
                        }
                        in_a_row += 1;
                        if in_a_row >= UNDECIDED {
                            let message = format!("{UNDECIDED} checks in a row have no verdict");
                            return Err(GeneratedError::Undecided(format!("{message}: {why}")));
                        }
                        continue;
                    }
                    Verdict::Broken(failure) => {
                        report.checks += 1;
                        report.failure = Some(*failure);
                        return Ok(());
                    }
                }
                in_a_row = 0;
            }
        }
    }
    finished(report)
}

/// Returns the checks of a round. There are more mistakes than other checks.
fn turns(round: u64) -> impl Iterator<Item = (Property, u64)> {
    Property::ALL.into_iter().flat_map(move |property| {
        let times = if property == Property::Rejection { MISTAKES } else { 1 };
        (0..times).map(move |turn| (property, round.wrapping_mul(times).wrapping_add(turn)))
    })
}

fn finished(report: &ExploreReport) -> Result<(), GeneratedError> {
    if report.checks == 0 {
        let counts = format!("{} discarded, {} undecided", report.discarded, report.undecided);
        return Err(GeneratedError::NothingToTest(format!("no check has a verdict ({counts})")));
    }
    Ok(())
}
