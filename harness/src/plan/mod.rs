//! Plans a run: each case on each subject that it applies to, or the reason for a skip.

mod adoption;
pub(crate) mod case_analysis;
mod case_runs;
mod known_failures;
mod notation;
mod objects;
mod options;
mod place;
mod pod;
mod selection;
mod subject;
mod subjects;
mod user_subjects;
mod variables;
mod wanted;
mod write_bounds;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use kubeproof_cases::Catalogue;
use kubeproof_cases::SubjectDefinition;
use kubeproof_cases::case::{Capability, Case, Property, ResourceName};
use kubeproof_cases::protocol::Protocol;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use serde_json::Value;
use tokio::time::Instant;

use crate::capability::{Capabilities, ProbeOptions, Requester, name_of};
use crate::event::{SkipReason, Target};
use crate::target::TargetError;
use crate::transport::Client;
use crate::transport::write_policy::WritePolicy;

use self::adoption::adopt;
pub use self::known_failures::{EntryUsage, KnownFailures, KnownFailuresError};
pub use self::objects::PlannedObject;
pub use self::options::{Required, RunOptions};
pub(crate) use self::place::{Place, place};
pub(crate) use self::pod::RunPod;
pub use self::selection::{Pattern, Rerun, Selection, SelectionError, nearest, no_match};
pub(crate) use self::subject::filled;
pub use self::subject::{Origin, Subject, SubjectArgument, SubjectError};
use self::subjects::ResolvedSubjects;
pub(crate) use self::variables::base_values;
use self::write_bounds::WriteBounds;
pub use crate::capability::name_of as capability_name;
pub use crate::event::Shard;

/// The plan of a run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The id of the run: six lower-case letters and digits. The first is a letter, the second a
    /// digit.
    pub run: String,
    /// Facts about the target.
    pub target: Target,
    /// The namespace for objects.
    pub namespace: RunNamespace,
    /// Resources that the run installs.
    pub installs: Vec<Install>,
    /// Subjects that the target does not serve, with the reason.
    pub absent: Vec<(ResourceName, SkipReason)>,
    /// Planned results in the order of running. Skipped ones have a reason.
    pub runs: Vec<PlannedRun>,
    /// The running pod that cases share.
    pub(crate) pod: RunPod,
    /// Capabilities that discovery and probes found.
    pub capabilities: Capabilities,
    /// Digest of all case files.
    pub catalogue_digest: String,
}

/// One case on one subject.
#[derive(Clone, Debug)]
pub struct PlannedRun {
    /// The case.
    pub case: Arc<Case>,
    /// The subject; `None` if the case needs none, or is skipped early.
    pub subject: Option<Arc<Subject>>,
    /// The protocol; `None` if the case lists none, or is skipped early.
    pub protocol: Option<Protocol>,
    /// The name prefix of its objects.
    pub name: String,
    /// Why the case is skipped.
    pub skip: Option<SkipReason>,
}

/// The namespace of a run.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum RunNamespace {
    /// The run creates it, and removes it with its contents.
    Created(String),
    /// It exists already. The run removes only its own objects.
    Existing(String),
    /// It exists already, and only cases that read use it. The run cannot create a namespace, and
    /// does not write to one that the user does not name.
    ReadOnly {
        /// The name.
        name: String,
        /// Why the run has no namespace to write to.
        reason: SkipReason,
    },
}

/// A resource that the run installs.
#[derive(Clone, Debug)]
pub struct Install {
    /// The name in files and reports.
    pub name: ResourceName,
    /// The `CustomResourceDefinition`.
    pub manifest: Value,
    /// The group that serves it.
    pub group: String,
    /// The path of the group version.
    pub root: String,
    /// The path of its collection across all namespaces.
    pub collection: String,
}

impl Install {
    /// Returns the name of the `CustomResourceDefinition`.
    pub fn definition(&self) -> &str {
        self.manifest["metadata"]["name"].as_str().unwrap_or_default()
    }
}

/// Why planning failed.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// The selection matches nothing.
    #[error(transparent)]
    Selection(#[from] SelectionError),
    /// A subject of the user is invalid.
    #[error(transparent)]
    Subject(#[from] SubjectError),
    /// The namespace of `--namespace` does not exist.
    #[error(
        "the namespace {0:?} does not exist; create it, or leave out --namespace to let the run \
         create one"
    )]
    NoNamespace(String),
    /// The list of known failures is invalid.
    #[error(transparent)]
    KnownFailures(#[from] KnownFailuresError),
    /// The target does not respond, or rejects the credential.
    #[error(transparent)]
    Target(#[from] TargetError),
}

/// Time limit of the probes of a sequential run, in case timeouts.
const SEQUENTIAL: u32 = 6;

/// Finds the capabilities of the target and plans the run.
#[expect(clippy::too_many_lines, reason = "the stages of a plan in their order")]
pub async fn plan(
    catalogue: &Catalogue,
    client: &Client,
    options: &RunOptions,
) -> Result<Plan, PlanError> {
    options.selection.check(&catalogue.ids)?;
    let cases: Vec<&Case> = catalogue
        .cases
        .iter()
        .filter(|case| options.selection.takes_case(case) && case.is_judged_by(options.edition))
        .collect();
    let run = options.id.clone().unwrap_or_else(|| run_id(options.seed));

    let own_namespace = format!("kubeproof-{run}");
    // A server may store the probe in spite of the dry run. Therefore its name differs from the
    // run's own resources.
    let probe = catalogue.subjects.iter().find_map(|definition| {
        Some(filled(
            definition.crd.as_ref()?,
            "group",
            &format!("probe-{run}.{}", definition.name.group),
        ))
    });
    let mut needs: BTreeSet<Capability> =
        cases.iter().flat_map(|case| case_analysis::needs(case)).collect();
    needs.extend([Capability::Namespaces, Capability::Crds]);
    if cases.iter().any(|case| case_runs::needs_pods(case)) {
        needs.insert(Capability::Pods);
    }
    if cases.iter().any(|case| case_analysis::explores(&case.steps)) {
        needs.extend(Property::CAPABILITIES);
    }
    needs.extend(options.required.probes());
    let probe_options = ProbeOptions {
        pod_image: options.pod_image.as_deref(),
        jobs: options.jobs,
        needs,
        wanted: wanted::resources(catalogue, &cases, &options.subjects),
        write_policy: if options.dry_run { WritePolicy::ReadOnly } else { options.write_policy() },
        plans_only: options.dry_run && !options.read_only,
        namespace: options.namespace.as_deref(),
        probe_name: &format!("{own_namespace}-probe"),
        crd: probe.as_ref(),
    };
    // A run with one job may be gentle to a server that handles one request at a time.
    let is_sequential = options.jobs == 1;
    let patience =
        if is_sequential { SEQUENTIAL * options.case_timeout } else { options.case_timeout };
    let deadline = Instant::now() + patience;
    let sequential = is_sequential.then(|| client.one_at_a_time(options.case_timeout));
    let client = sequential.as_ref().unwrap_or(client);
    let capabilities = Capabilities::discover(client, &probe_options, deadline).await?;
    let requester = Requester { client, deadline };
    let probe_options = &ProbeOptions { namespace: Some(&capabilities.home), ..probe_options };
    require_namespace(&requester, &capabilities, options).await?;

    let mut resolved = ResolvedSubjects::new(&catalogue.subjects, &capabilities, options, &run)?;
    if resolved.is_empty() && options.subjects.is_empty() {
        resolved.adopt(adopt(&requester, &capabilities.resources, probe_options).await);
    }
    let given = &options.subjects;
    user_subjects::check_kinds(&resolved.subjects, given)?;
    user_subjects::check_accepted(&requester, &resolved.subjects, given, probe_options).await?;
    check_known_failures(catalogue, &resolved, options)?;

    let namespace = run_namespace(&capabilities, options, own_namespace);
    let pod = RunPod::new(&run, options.pod_image.as_deref());
    let bounds = WriteBounds {
        namespace: &namespace,
        write_policy: options.write_policy(),
        run: &run,
        pod: &pod,
    };
    let runs = case_runs::runs(&cases, &mut resolved, &capabilities, &bounds, options);
    let runs = ordered(runs, options, &run);

    let installs = installs(catalogue, &runs);
    let target = Target {
        server: client.server().to_owned(),
        bundled: options.bundled,
        version: capabilities.version.clone(),
        namespace: namespace.name().to_owned(),
        capabilities: capabilities.set.iter().map(|capability| name_of(*capability)).collect(),
    };
    let anybody_asks = runs.iter().any(|run| run.case.subject.is_some());
    let absent = if anybody_asks { resolved.absent } else { Vec::new() };
    let catalogue_digest = catalogue.digest().to_owned();
    Ok(Plan { run, target, namespace, installs, absent, runs, pod, capabilities, catalogue_digest })
}

/// Requires the namespace of `--namespace` on a server with namespaces.
async fn require_namespace(
    requester: &Requester<'_>,
    capabilities: &Capabilities,
    options: &RunOptions,
) -> Result<(), PlanError> {
    let Some(namespace) = &options.namespace else { return Ok(()) };
    let path = format!("/api/v1/namespaces/{namespace}");
    if serves_namespaces(capabilities)
        && requester.get(&path, "application/json").await.status() == 404
    {
        return Err(PlanError::NoNamespace(namespace.clone()));
    }
    Ok(())
}

impl Plan {
    /// Reports whether all cases are skipped.
    pub fn runs_nothing(&self) -> bool {
        self.runs.iter().all(|run| run.skip.is_some())
    }

    /// Returns the namespace that the run creates, if a case needs it.
    pub(crate) fn makes_namespace(&self) -> Option<&str> {
        let RunNamespace::Created(name) = &self.namespace else { return None };
        let lives_in_it = |run: &PlannedRun| {
            run.subject.as_ref().is_some_and(|subject| subject.namespaced)
                || case_analysis::reads_variable(&run.case.steps, "ns")
        };
        let lives_in_it = self.runs.iter().any(|run| run.skip.is_none() && lives_in_it(run));
        (lives_in_it || self.needs_pod()).then_some(name)
    }

    /// Reports whether a case needs the shared pod.
    pub(crate) fn needs_pod(&self) -> bool {
        let needs = |run: &PlannedRun| run.case.needs.contains(&Capability::RunningPods);
        self.runs.iter().any(|run| run.skip.is_none() && needs(run))
    }
}

impl PlannedRun {
    /// Returns the subject or protocol for reports; empty without one.
    pub fn subject_name(&self) -> String {
        match (&self.subject, &self.protocol) {
            (Some(subject), _) => subject.name.to_string(),
            (None, Some(protocol)) => protocol.to_string(),
            (None, None) => String::new(),
        }
    }
}

impl RunNamespace {
    /// Returns the name of the namespace.
    pub fn name(&self) -> &str {
        match self {
            Self::Created(name) | Self::Existing(name) | Self::ReadOnly { name, .. } => name,
        }
    }
}

/// Selects the shard, repeats the runs, and puts them into a random order with names.
fn ordered(mut runs: Vec<PlannedRun>, options: &RunOptions, run: &str) -> Vec<PlannedRun> {
    runs.sort_by_key(|run| (run.case.id.clone(), run.subject_name()));
    if let Some(shard) = options.selection.shard {
        let mut n = 0..;
        runs.retain(|_| n.next().is_some_and(|n| shard.takes(n)));
    }
    let once = runs.clone();
    for _ in 1..options.repeat {
        runs.extend(once.iter().cloned());
    }
    runs.shuffle(&mut StdRng::seed_from_u64(options.seed));
    // Cases that wait for the server's clock start first, so that others run in the meantime.
    runs.sort_by_key(|planned| !case_analysis::awaits_the_clock(&planned.case.steps));
    for (n, planned) in runs.iter_mut().enumerate() {
        planned.name = format!("kp-{run}-{}", n + 1);
    }
    runs
}

/// Returns the resources that planned cases need.
fn installs(catalogue: &Catalogue, runs: &[PlannedRun]) -> Vec<Install> {
    let served = |definition: &SubjectDefinition| {
        let running = runs.iter().filter(|run| run.skip.is_none());
        running
            .filter_map(|run| run.subject.as_ref())
            .find(|subject| subject.name == definition.name)
    };
    let install = |definition: &SubjectDefinition| install_of(definition, served(definition)?);
    catalogue.subjects.iter().filter_map(install).collect()
}

/// Returns what to install for a custom resource of the suite. `None` for other resources.
fn install_of(definition: &SubjectDefinition, subject: &Subject) -> Option<Install> {
    let manifest = definition.crd.as_ref()?;
    Some(Install {
        name: definition.name.clone(),
        manifest: filled(manifest, "group", &subject.served.group),
        group: subject.served.group.clone(),
        collection: subject.collection_of_all(),
        root: subject.root(),
    })
}

fn serves_namespaces(capabilities: &Capabilities) -> bool {
    capabilities.resources.keys().any(|name| name.resource == "namespaces" && name.group.is_empty())
}

fn run_namespace(capabilities: &Capabilities, options: &RunOptions, own: String) -> RunNamespace {
    match (&options.namespace, capabilities.missing(Capability::Namespaces)) {
        (Some(given), _) => RunNamespace::Existing(given.clone()),
        (None, _)
            if options.read_only
                || !serves_namespaces(capabilities)
                || capabilities.broken.contains(&Capability::Namespaces) =>
        {
            RunNamespace::Existing(capabilities.home.clone())
        }
        (None, None) => RunNamespace::Created(own),
        (None, Some(cause)) => RunNamespace::ReadOnly {
            name: capabilities.home.clone(),
            reason: SkipReason::NoNamespace { cause: Box::new(cause) },
        },
    }
}

fn check_known_failures(
    catalogue: &Catalogue,
    resolved: &ResolvedSubjects<'_>,
    options: &RunOptions,
) -> Result<(), KnownFailuresError> {
    let Some(list) = &options.known_failures else { return Ok(()) };
    let subjects: BTreeSet<String> = resolved
        .names()
        .chain(catalogue.subjects.iter().map(|s| &s.name))
        .map(ToString::to_string)
        .collect();
    let protocols =
        catalogue.cases.iter().flat_map(|case| &case.protocols).map(ToString::to_string);
    let subjects: BTreeSet<String> = subjects.into_iter().chain(protocols).collect();
    list.check(
        &catalogue.cases.iter().map(|case| case.id.as_str()),
        &subjects.iter().map(String::as_str),
    )
}

/// Returns a new run id. It differs between runs with the same seed, so that runs never meet
/// leftovers.
pub fn run_id(seed: u64) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_nanos());
    let mix = seed ^ u64::try_from(now & u128::from(u64::MAX)).unwrap_or_default();
    let mut random = StdRng::seed_from_u64(mix);
    let letters = b"abcdefghijklmnopqrstuvwxyz0123456789";
    // The digit distinguishes an id from a word. `clean` must not take names of other programs for
    // names of a run.
    let place = |n| match n {
        0 => 0..26,
        1 => 26..36,
        _ => 0..36,
    };
    (0..6).map(|n| char::from(letters[random.random_range(place(n))])).collect()
}
