//! Generates objects from published schemas, and checks properties that hold for every resource of
//! every server.
//!
//! Each check has a number. Its objects follow from the seed and the number. A failing check is
//! repeated with smaller objects.

mod case_file;
mod compare;
mod generate;
mod mistakes;
mod patch;
mod prober;
mod property;
mod schema;
mod shrink;
mod text;
mod violation;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use kubeproof_cases::Catalogue;
use kubeproof_cases::case::{Capability, ResourceName};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use self::compare::lost;
use self::generate::Generator;
use self::prober::{Budget, Halt, JSON, Prober};
use self::schema::Schema;
use super::{GeneratedError, Session};
use crate::capability::outgoing;
use crate::exchange::Exchange;
use crate::plan::{RunOptions, Subject};
use crate::transport::Client;

pub use self::case_file::case_file;
pub use self::mistakes::Mistake;
pub use self::property::{Input, Property};
pub use self::text::text;
pub use self::violation::{Claim, Scope, Violation};

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

/// Capabilities that properties ask for.
const NEEDS: [Capability; 6] = [
    Capability::MergePatch,
    Capability::JsonPatch,
    Capability::StrategicMergePatch,
    Capability::ServerSideApply,
    Capability::Paging,
    Capability::StreamingLists,
];

/// Names of objects. A deleted object may exist for a while.
const NAMES: usize = 24;

/// Time limit of the schemas.
const LOAD: Duration = Duration::from_secs(20);

/// Mistakes of each resource in a round.
const MISTAKES: u64 = 4;

/// Checks without a verdict that have a notice.
const SHOWN: usize = 5;

/// Checks in a row without a verdict, after which the run ends.
const UNDECIDED: usize = 20;

/// How often a violation is checked again. One repetition must fail, too.
const REPEATED: usize = 4;

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

/// A broken property with the smallest objects that show it.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The resource.
    pub subject: ResourceName,
    /// What is broken.
    pub violation: Violation,
    /// The objects.
    pub input: Input,
    /// All requests of the check, with their responses.
    pub exchanges: Vec<Exchange>,
    /// The URL of the server.
    pub server: String,
    /// The collection of the objects.
    pub collection: String,
    /// The name of the first object.
    pub name: String,
}

impl Failure {
    /// Returns the requests up to the wrong response. A watch needs those after it, too.
    fn shown(&self) -> &[Exchange] {
        let step = self.violation.step;
        let is_watch = |exchange: &Exchange| exchange.request.target.contains("watch=true");
        match self.exchanges.get(step) {
            Some(wrong) if !is_watch(wrong) => &self.exchanges[..=step],
            _ => &self.exchanges,
        }
    }
}

/// Checks until the requests or the time are used, a property is broken, or the run is
/// interrupted. Removes all objects at the end.
pub async fn explore(
    catalogue: &Catalogue,
    client: &Client,
    options: &ExploreOptions,
    interrupt: &CancellationToken,
) -> Result<ExploreReport, GeneratedError> {
    let opened = Session::open(catalogue, client, &options.run, (&USUAL, &NEEDS), interrupt);
    let Some(session) = opened.await? else { return Ok(ExploreReport::default()) };
    let mut report = ExploreReport { notices: session.notices.clone(), ..ExploreReport::default() };
    let budget = Budget {
        sent: AtomicUsize::new(0),
        most: options.max_requests,
        end: Instant::now() + options.timeout,
        interrupt: interrupt.clone(),
    };
    let limits = (options.run.seed, options.shrink);
    let result = run(&session, &budget, limits, &mut report).await;
    report.requests = budget.sent.load(Ordering::Relaxed);
    report.notices.extend(session.close(interrupt).await);
    result.map(|()| report)
}

async fn run(
    session: &Session,
    budget: &Budget,
    (seed, shrink): (u64, usize),
    report: &mut ExploreReport,
) -> Result<(), GeneratedError> {
    let mut stages = Vec::new();
    for subject in &session.subjects {
        stages.push(Stage::prepare(session, subject, (budget, shrink)).await);
    }
    report.subjects = stages.iter().map(|stage| stage.subject.name.to_string()).collect();
    let mut in_a_row = 0;
    for round in 0_u64.. {
        for (property, turn) in turns(seed.wrapping_add(round)) {
            for stage in &mut stages {
                if budget.is_over() {
                    return finished(report);
                }
                match stage.check(property, (seed, turn)).await {
                    Verdict::Holds => report.checks += 1,
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

/// The verdict of one check.
enum Verdict {
    Holds,
    /// The resource offers nothing to check.
    None,
    Discarded,
    Undecided(String),
    Broken(Box<Failure>),
}

/// One resource.
struct Stage<'a> {
    session: &'a Session,
    subject: &'a Subject,
    budget: &'a Budget,
    /// The most checks that look for smaller objects.
    shrink: usize,
    schema: Schema,
    collection: String,
    template: Value,
    names: VecDeque<String>,
}

impl<'a> Stage<'a> {
    async fn prepare(
        session: &'a Session,
        subject: &'a Subject,
        (budget, shrink): (&'a Budget, usize),
    ) -> Self {
        let prefix = format!("kp-{}-e", session.run);
        let collection = subject.collection(&session.namespace);
        let names: VecDeque<String> = (0..NAMES).map(|n| format!("{prefix}{n:02}")).collect();
        for name in &names {
            session.track(&collection, name);
        }
        let schema = Schema::load(&session.client, subject, Instant::now() + LOAD).await;
        let template = session.object(subject, &prefix);
        Self { session, subject, budget, shrink, schema, collection, template, names }
    }

    /// Checks a property with new objects.
    async fn check(&mut self, property: Property, (seed, turn): (u64, u64)) -> Verdict {
        let seed = seed.wrapping_mul(1_000_003).wrapping_add(turn) ^ ((property as u64) << 56);
        let resource = self.subject.name.to_string();
        let (input, attempt) = {
            let mut generator =
                Generator::new(&self.schema, &resource, &self.template, (seed, turn));
            let Some(input) = property.input(&mut generator) else { return Verdict::None };
            let attempt = input.objects.first().and_then(|first| generator.attempt(first));
            (input, attempt.filter(|_| property != Property::Rejection))
        };
        let input = self.with_attempt(input, attempt).await;
        let (result, exchanges, name) = self.once(property, &input).await;
        match result {
            Ok(()) if exchanges.is_empty() => Verdict::None,
            Ok(()) => Verdict::Holds,
            Err(Halt::Over) => Verdict::None,
            Err(Halt::Discarded) => Verdict::Discarded,
            Err(Halt::Undecided(why)) => Verdict::Undecided(why),
            Err(Halt::Violation(violation)) => {
                let first = self.failure(*violation, input, (exchanges, name));
                self.confirmed(first).await
            }
        }
    }

    /// Reports a violation only if it can be repeated. Another client may have interfered.
    async fn confirmed(&mut self, first: Failure) -> Verdict {
        let property = first.violation.property;
        for _ in 0..REPEATED {
            let (result, exchanges, name) = self.once(property, &first.input).await;
            match result {
                Err(Halt::Violation(violation)) => {
                    let input = first.input.clone();
                    let again = self.failure(*violation, input, (exchanges, name));
                    let smallest = shrink::smallest(self, again).await;
                    return Verdict::Broken(Box::new(smallest));
                }
                Err(Halt::Over) => return Verdict::Broken(Box::new(first)),
                _ => {}
            }
        }
        let message = format!("cannot be repeated: {}", first.violation.message);
        Verdict::Undecided(message)
    }

    fn failure(
        &self,
        violation: Violation,
        input: Input,
        (exchanges, name): (Vec<Exchange>, String),
    ) -> Failure {
        Failure {
            subject: self.subject.name.clone(),
            violation,
            input,
            exchanges,
            server: self.session.client.server().to_owned(),
            collection: self.collection.clone(),
            name,
        }
    }

    /// Adds an attempt to the first object if the server accepts it and returns it unchanged.
    async fn with_attempt(&mut self, input: Input, attempt: Option<Value>) -> Input {
        let Some(attempt) = attempt else { return input };
        let mut prober = self.prober(Property::DryRun, self.template_name());
        let dry = format!("{}?dryRun=All", self.collection);
        let reply = prober.send("POST", &dry, JSON, Some(&attempt)).await;
        let is_kept = reply.is_ok_and(|reply| {
            reply.is_success() && lost(&self.schema, &attempt, &reply.body).is_none()
        });
        let mut input = input;
        if let Some(first) = input.objects.first_mut().filter(|_| is_kept) {
            *first = attempt;
        }
        input
    }

    /// Returns the parts of objects that must stay: servers have rules about built-in types.
    fn fixed(&self) -> &Value {
        if self.schema.is_complete { &Value::Null } else { &self.template }
    }

    fn template_name(&self) -> String {
        self.template["metadata"]["name"].as_str().unwrap_or_default().to_owned()
    }

    fn prober(&self, property: Property, name: String) -> Prober<'_> {
        Prober {
            session: self.session,
            subject: self.subject,
            schema: &self.schema,
            budget: self.budget,
            property,
            collection: self.collection.clone(),
            name,
            steps: Vec::new(),
        }
    }

    /// Runs a check under the next name, and removes its objects.
    async fn once(
        &mut self,
        property: Property,
        input: &Input,
    ) -> (Result<(), Halt>, Vec<Exchange>, String) {
        let name = self.names.pop_front().unwrap_or_default();
        let mut prober = self.prober(property, name.clone());
        if !property.applies(&prober) {
            self.names.push_back(name.clone());
            return (Ok(()), Vec::new(), name);
        }
        let result = property.check(&mut prober, input).await;
        let exchanges = prober.steps;
        self.remove(&exchanges, &name).await;
        self.names.push_back(name.clone());
        (result, exchanges, name)
    }

    /// Removes the objects that a check may have created.
    async fn remove(&self, exchanges: &[Exchange], name: &str) {
        let created = exchanges.iter().filter(|exchange| {
            let is_dry = exchange.request.target.contains("dryRun");
            exchange.request.method == "POST" && !is_dry && exchange.status() / 100 == 2
        });
        let names = created.filter_map(|exchange| exchange.json()?["metadata"]["name"].as_str());
        let mut names: Vec<&str> = names.chain([name]).collect();
        names.sort_unstable();
        names.dedup();
        for name in names {
            let name = utf8_percent_encode(name, NON_ALPHANUMERIC).to_string();
            let name = name.replace("%2D", "-").replace("%2E", ".");
            let path = format!("{}/{name}", self.collection);
            let request = outgoing("DELETE", &path, JSON, None);
            self.session.client.send(request, Instant::now() + LOAD).await;
        }
    }
}
