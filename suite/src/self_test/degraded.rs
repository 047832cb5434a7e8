//! Degraded servers: one defect of a server must not decide the whole run. The case that judges the
//! feature fails. Cases that need the feature adapt to the defect or are blocked, and all other
//! cases get a verdict of their own.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use kubeproof_cases::{Catalogue, plural};
use kubeproof_harness::event::{CaseResult, Event, Verdict};
use kubeproof_harness::plan::{RunOptions, Selection};
use kubeproof_reference_server::{Config, Fault, Faults};
use kubeproof_reports::document::Record;
use kubeproof_reports::redact::Redactor;
use kubeproof_reports::{Cause, Reports, causes};

use super::{Bundled, LONG_HISTORY, SelfTestError};

/// Time limit of a case. A defect can prevent what a case waits for.
const CASE_TIMEOUT: Duration = Duration::from_secs(40);

/// Time limit of a watch or a stream that a defect silences.
const STALL_TIMEOUT: Duration = Duration::from_secs(6);

/// Concurrent cases of a server.
const JOBS: usize = 16;

/// A server with one defect, and the bounds of its summary.
#[derive(Clone, Copy, Debug)]
pub struct Degraded {
    /// The defect.
    pub fault: Fault,
    /// The maximum number of causes in the summary.
    pub causes: usize,
    /// The minimum share of results with a verdict of their own, in percent.
    pub own: usize,
}

/// The degraded servers. `self-test degraded` and the test of the same name run each of them.
pub const DEGRADED: &[Degraded] = &[
    Degraded { fault: Fault::CreateReturnsOk, causes: 3, own: 70 },
    Degraded { fault: Fault::ApplyCreateReturnsOk, causes: 3, own: 70 },
    Degraded { fault: Fault::ListWithoutVersion, causes: 3, own: 70 },
    Degraded { fault: Fault::SelectorsIgnored, causes: 3, own: 70 },
    Degraded { fault: Fault::WatchHeadersLate, causes: 3, own: 70 },
    Degraded { fault: Fault::GenerateNameIgnored, causes: 3, own: 70 },
    Degraded { fault: Fault::NamespacesReturnServerError, causes: 3, own: 70 },
    Degraded { fault: Fault::NoUid, causes: 3, own: 70 },
    Degraded { fault: Fault::DiscoveryRedirects, causes: 3, own: 70 },
    Degraded { fault: Fault::NoDiscovery, causes: 3, own: 70 },
    Degraded { fault: Fault::ApisMissing, causes: 3, own: 70 },
    Degraded { fault: Fault::VerbsNull, causes: 3, own: 70 },
];

/// The results of a degraded server.
#[derive(Clone, Debug)]
pub struct Row {
    /// The server.
    pub server: Degraded,
    /// The causes in the summary, worst first.
    pub causes: Vec<String>,
    /// The number of failures.
    pub failures: usize,
    /// The number of results that wait for a fix of another failure.
    pub blocked: usize,
    /// The number of results with a verdict of their own.
    pub own: usize,
    /// The number of results of a correct server.
    pub expected: usize,
}

/// Returns the number of results that a correct server gets.
pub async fn expected(
    catalogue: &Catalogue,
    selection: &Selection,
) -> Result<usize, SelfTestError> {
    let server = Bundled::start(Config { history: LONG_HISTORY, ..Config::default() }).await?;
    let options = RunOptions { dry_run: true, ..options(selection) };
    let plan = server.plan(catalogue, &options).await?;
    server.stop().await;
    Ok(plan.runs.iter().filter(|run| run.skip.is_none()).count())
}

/// Runs the cases against a degraded server.
pub async fn row(
    catalogue: &Catalogue,
    degraded: Degraded,
    expected: usize,
    selection: &Selection,
) -> Result<Row, SelfTestError> {
    let faults = Faults::none().with(degraded.fault);
    let server =
        Bundled::start(Config { faults, history: LONG_HISTORY, ..Config::default() }).await?;
    let results = server.run(catalogue, &options(selection)).await?;
    server.stop().await;
    Ok(Row::of(degraded, expected, &results))
}

fn options(selection: &Selection) -> RunOptions {
    RunOptions {
        selection: selection.clone(),
        case_timeout: CASE_TIMEOUT,
        stalled_after: Some(STALL_TIMEOUT),
        jobs: JOBS,
        ..RunOptions::default()
    }
}

impl Row {
    fn of(server: Degraded, expected: usize, results: &[Arc<CaseResult>]) -> Self {
        let mut reports = Reports::new(Redactor::default(), Vec::new());
        for result in results {
            reports.event(&Event::CaseFinished(Arc::clone(result)));
        }
        let records = reports.finish().document.results;
        let causes = causes(&records, false);
        let shared: BTreeSet<String> =
            causes.iter().filter(|cause| is_shared(cause)).flat_map(titles).collect();
        let count = |is: &dyn Fn(&Record) -> bool| records.iter().filter(|one| is(one)).count();
        let is_own = |one: &Record| {
            !matches!(one.verdict, Verdict::Skip | Verdict::Error) && !shared.contains(&one.title())
        };
        let describe = |cause: &Cause<'_>| {
            let (size, example) = (plural(cause.weight(), "result"), cause.example);
            format!("{} ({size}, such as {}: {})", cause.title, example.title(), example.reason)
        };
        Self {
            server,
            causes: causes.iter().map(describe).collect(),
            failures: count(&|one| one.verdict == Verdict::Fail),
            blocked: count(&|one| one.blocked_by.is_some()),
            own: count(&is_own),
            expected,
        }
    }

    /// Returns the share of results with a verdict of their own, in percent.
    pub fn own_share(&self) -> usize {
        self.own * 100 / self.expected.max(1)
    }

    /// Returns the bounds that the results exceed.
    pub fn findings(&self) -> Vec<String> {
        let (name, bounds) = (self.server.fault.name(), self.server);
        let mut findings = Vec::new();
        if self.causes.is_empty() {
            findings.push(format!("with {name}: no case reports the defect"));
        }
        if self.causes.len() > bounds.causes {
            let (found, most) = (self.causes.len(), plural(bounds.causes, "cause"));
            let list = self.causes.join("; ");
            findings.push(format!("with {name}: {found} causes, expected at most {most}: {list}"));
        }
        if self.own_share() < bounds.own {
            let (share, least) = (self.own_share(), bounds.own);
            findings.push(format!(
                "with {name}: {share} % of the results have a verdict of their own, expected at \
                 least {least} %"
            ));
        }
        findings
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let causes = plural(self.causes.len(), "cause");
        let failures = plural(self.failures, "failure");
        let (blocked, share) = (self.blocked, self.own_share());
        write!(f, "{causes}, {failures}, {blocked} blocked, {share} % with an own verdict")
    }
}

/// Several cases that fail for one cause have no verdict of their own.
fn is_shared(cause: &Cause<'_>) -> bool {
    cause.results.iter().any(|record| record.id != cause.example.id)
}

fn titles(cause: &Cause<'_>) -> Vec<String> {
    cause.results.iter().map(|record| record.title()).collect()
}
