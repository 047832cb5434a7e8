//! The plan of a run: every case on every subject it fits, or the reason why not. Made before the first case.

mod arrange;
mod bounds;
mod objects;
mod roster;
pub(crate) mod survey;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use kubeproof_cases::Catalogue;
use kubeproof_cases::SubjectDefinition;
use kubeproof_cases::case::{Capability, Case, ResourceName};
use kubeproof_cases::stream::Protocol;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use serde_json::Value;
use tokio::time::Instant;

use crate::capability::{Asker, Capabilities, Questions, name_of};
use crate::event::Target;
use crate::fence::Fence;
use crate::known_failures::KnownFailuresError;
use crate::run::{RunOptions, RunPod};
use crate::selection::SelectionError;
use crate::subject::{Subject, SubjectError, adopt, filled};
use crate::target::TargetError;
use crate::transport::Client;

use self::bounds::Bounds;
use self::roster::Roster;

pub use self::objects::PlannedObject;

/// What a run does.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The id of the run: six lower-case letters and digits, a letter first.
    pub run: String,
    /// What is known of the target.
    pub target: Target,
    /// Where namespaced objects go.
    pub home: Home,
    /// Resources that the run installs.
    pub installs: Vec<Install>,
    /// Subjects that the target does not offer, and why.
    pub absent: Vec<(ResourceName, String)>,
    /// Results to come, in the order of running; those that are skipped have their reason.
    pub runs: Vec<PlannedRun>,
    /// The pod that cases share which need a running one.
    pub(crate) pod: RunPod,
    /// What discovery and probes found.
    pub capabilities: Capabilities,
    /// Over all case files.
    pub catalogue_digest: String,
}

/// One case on one subject.
#[derive(Clone, Debug)]
pub struct PlannedRun {
    /// The case.
    pub case: Arc<Case>,
    /// On this; `None`: the case needs none, or is skipped before it has one.
    pub subject: Option<Arc<Subject>>,
    /// Over this; `None`: the case names none, or is skipped before it has one.
    pub protocol: Option<Protocol>,
    /// The name of its objects.
    pub name: String,
    /// Why it does not run.
    pub skip: Option<String>,
}

/// The namespace of a run.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Home {
    /// The run makes it, and removes it with all that is in it.
    Own(String),
    /// It was there before: only the run's own objects are removed.
    Borrowed(String),
    /// There is none, for this reason.
    Nowhere(String),
}

/// A resource that the run installs.
#[derive(Clone, Debug)]
pub struct Install {
    /// As files and reports name it.
    pub name: ResourceName,
    /// The `CustomResourceDefinition`.
    pub manifest: Value,
    /// The group that will serve it.
    pub group: String,
    /// The path of the group version.
    pub root: String,
    /// The path of all its objects.
    pub collection: String,
}

impl Install {
    /// The name of the `CustomResourceDefinition`.
    pub fn definition(&self) -> &str {
        self.manifest["metadata"]["name"].as_str().unwrap_or_default()
    }
}

/// Why there is no plan.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// The selection names what is not there.
    #[error(transparent)]
    Selection(#[from] SelectionError),
    /// A subject of the user cannot be used.
    #[error(transparent)]
    Subject(#[from] SubjectError),
    /// The namespace to use is not there.
    #[error(
        "the namespace {0:?} does not exist; create it, or leave out --namespace to have one made for the run"
    )]
    NoNamespace(String),
    /// The list of known failures is wrong.
    #[error(transparent)]
    KnownFailures(#[from] KnownFailuresError),
    /// The target does not answer, or does not know us.
    #[error(transparent)]
    Target(#[from] TargetError),
}

/// Asks the target what it offers, and plans the run.
pub async fn plan(catalogue: &Catalogue, client: &Client, options: &RunOptions) -> Result<Plan, PlanError> {
    options.selection.check(&catalogue.cases)?;
    let cases: Vec<&Case> = catalogue
        .cases
        .iter()
        .filter(|case| options.selection.takes_case(case) && case.is_judged_by(options.edition))
        .collect();
    let mut random = StdRng::seed_from_u64(options.seed);
    let run = options.id.clone().unwrap_or_else(|| run_id(options.seed));

    let own_namespace = format!("kubeproof-{run}");
    // What a dry run leaves behind by mistake must not be in the way of the run itself.
    let probe = catalogue.subjects.iter().find_map(|definition| {
        Some(filled(definition.crd.as_ref()?, "group", &format!("probe-{run}.{}", definition.name.group)))
    });
    let mut needs: BTreeSet<Capability> = cases.iter().flat_map(|case| survey::needs(case)).collect();
    needs.extend([Capability::Namespaces, Capability::Crds]);
    let questions = Questions {
        pod_image: options.pod_image.as_deref(),
        needs,
        fence: if options.dry_run { Fence::Reads } else { options.fence() },
        plans_only: options.dry_run && !options.read_only,
        namespace: options.namespace.as_deref(),
        probe_name: &format!("{own_namespace}-probe"),
        crd: probe.as_ref(),
    };
    let deadline = Instant::now() + options.case_timeout;
    let capabilities = Capabilities::discover(client, &questions, deadline).await?;

    let asker = Asker { client, deadline };
    if let Some(namespace) = &options.namespace
        && serves_namespaces(&capabilities)
        && asker.get(&format!("/api/v1/namespaces/{namespace}"), "application/json").await.status() == 404
    {
        return Err(PlanError::NoNamespace(namespace.clone()));
    }

    let mut roster = Roster::new(&catalogue.subjects, &capabilities, options, &run)?;
    if roster.is_empty() && options.subjects.is_empty() {
        roster.adopt(adopt(&asker, &capabilities.resources, &questions).await);
    }
    check_known_failures(catalogue, &roster, options)?;

    let home = home(&capabilities, options, own_namespace);
    let pod = RunPod::new(&run, options.pod_image.as_deref());
    let bounds = Bounds { home: &home, fence: options.fence(), run: &run, pod: &pod };
    let mut runs = arrange::runs(&cases, &mut roster, &capabilities, &bounds, options);
    runs.sort_by_key(|run| (run.case.id.clone(), run.subject_name()));
    if let Some(shard) = options.selection.shard {
        let mut n = 0..;
        runs.retain(|_| n.next().is_some_and(|n| shard.takes(n)));
    }
    let once = runs.clone();
    for _ in 1..options.repeat {
        runs.extend(once.iter().cloned());
    }
    runs.shuffle(&mut random);
    // What waits for the server's clock begins first: the rest of the run happens meanwhile.
    runs.sort_by_key(|planned| !survey::awaits_the_clock(&planned.case.steps));
    for (n, planned) in runs.iter_mut().enumerate() {
        planned.name = format!("kp-{run}-{}", n + 1);
    }

    let installs = installs(catalogue, &runs);
    let target = Target {
        server: client.server().to_owned(),
        version: capabilities.version.clone(),
        namespace: home.name().to_owned(),
        capabilities: capabilities.set.iter().map(|capability| name_of(*capability)).collect(),
    };
    let anybody_asks = runs.iter().any(|run| run.case.subject.is_some());
    let absent = if anybody_asks { roster.absent } else { Vec::new() };
    let catalogue_digest = catalogue.digest().to_owned();
    Ok(Plan { run, target, home, installs, absent, runs, pod, capabilities, catalogue_digest })
}

impl Plan {
    /// Whether any case will run.
    pub fn runs_nothing(&self) -> bool {
        self.runs.iter().all(|run| run.skip.is_some())
    }

    /// Whether the run has to make its namespace.
    pub(crate) fn makes_namespace(&self) -> Option<&str> {
        let Home::Own(name) = &self.home else { return None };
        let lives_in_it = |run: &PlannedRun| {
            run.subject.as_ref().is_some_and(|subject| subject.namespaced)
                || survey::reads_variable(&run.case.steps, "ns")
        };
        let lives_in_it = self.runs.iter().any(|run| run.skip.is_none() && lives_in_it(run));
        (lives_in_it || self.needs_pod()).then_some(name)
    }

    /// Whether a case needs the pod of the run.
    pub(crate) fn needs_pod(&self) -> bool {
        let needs = |run: &PlannedRun| run.case.needs.contains(&Capability::RunningPods);
        self.runs.iter().any(|run| run.skip.is_none() && needs(run))
    }
}

impl PlannedRun {
    /// The subject, or the protocol, as reports have it; empty for none.
    pub fn subject_name(&self) -> String {
        match (&self.subject, &self.protocol) {
            (Some(subject), _) => subject.name.to_string(),
            (None, Some(protocol)) => protocol.to_string(),
            (None, None) => String::new(),
        }
    }
}

impl Home {
    /// The namespace; empty for none.
    pub fn name(&self) -> &str {
        match self {
            Self::Own(name) | Self::Borrowed(name) => name,
            Self::Nowhere(_) => "",
        }
    }
}

/// The resources that cases of the run need installed.
fn installs(catalogue: &Catalogue, runs: &[PlannedRun]) -> Vec<Install> {
    let served = |definition: &SubjectDefinition| {
        let running = runs.iter().filter(|run| run.skip.is_none());
        running.filter_map(|run| run.subject.as_ref()).find(|subject| subject.name == definition.name)
    };
    let install = |definition: &SubjectDefinition| {
        let (subject, manifest) = (served(definition)?, definition.crd.as_ref()?);
        Some(Install {
            name: definition.name.clone(),
            manifest: filled(manifest, "group", &subject.served.group),
            group: subject.served.group.clone(),
            collection: subject.collection_of_all(),
            root: subject.root(),
        })
    };
    catalogue.subjects.iter().filter_map(install).collect()
}

fn serves_namespaces(capabilities: &Capabilities) -> bool {
    capabilities.resources.keys().any(|name| name.resource == "namespaces" && name.group.is_empty())
}

fn home(capabilities: &Capabilities, options: &RunOptions, own: String) -> Home {
    match (&options.namespace, capabilities.missing(Capability::Namespaces)) {
        (Some(given), _) => Home::Borrowed(given.clone()),
        (None, _) if options.read_only || !serves_namespaces(capabilities) => {
            Home::Borrowed("default".to_owned())
        }
        (None, None) => Home::Own(own),
        (None, Some(reason)) => Home::Nowhere(format!("{reason}; name a namespace to use with --namespace")),
    }
}

fn check_known_failures(
    catalogue: &Catalogue,
    roster: &Roster<'_>,
    options: &RunOptions,
) -> Result<(), KnownFailuresError> {
    let Some(list) = &options.known_failures else { return Ok(()) };
    let subjects: BTreeSet<String> =
        roster.names().chain(catalogue.subjects.iter().map(|s| &s.name)).map(ToString::to_string).collect();
    let protocols = catalogue.cases.iter().flat_map(|case| &case.protocols).map(ToString::to_string);
    let subjects: BTreeSet<String> = subjects.into_iter().chain(protocols).collect();
    list.check(&catalogue.cases.iter().map(|case| case.id.as_str()), &subjects.iter().map(String::as_str))
}

/// Differs between runs under the same seed, so that a run never meets what another left behind.
pub fn run_id(seed: u64) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_nanos());
    let mix = seed ^ u64::try_from(now & u128::from(u64::MAX)).unwrap_or_default();
    let mut random = StdRng::seed_from_u64(mix);
    let letters = b"abcdefghijklmnopqrstuvwxyz0123456789";
    // The digit in the second place tells it from a word: `clean` must take no name of somebody else for one of a run.
    let place = |n| match n {
        0 => 0..26,
        1 => 26..36,
        _ => 0..36,
    };
    (0..6).map(|n| char::from(letters[random.random_range(place(n))])).collect()
}
