//! The options of `kubeproof run`.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use kubeproof_harness::plan::{KnownFailures, Required, Rerun, RunOptions, Selection};
use kubeproof_harness::transport::Limits;

use super::{CaseSelection, CatalogueSource, RunReports, Target};
use crate::args::{low, rerun_command};
use crate::error::Error;

/// The options of `kubeproof run`.
pub(crate) struct Run {
    pub(crate) target: Target,
    /// The second server, whose results the target must reach.
    pub(crate) oracle: Option<Target>,
    /// The node that the run registers (`--with-node`).
    pub(crate) node: Option<NodeOptions>,
    pub(crate) catalogue: CatalogueSource,
    pub(crate) options: RunOptions,
    pub(crate) limits: Limits,
    pub(crate) update_known_failures: bool,
    pub(crate) reports: RunReports,
}

/// The options of a node that the run registers.
pub(crate) struct NodeOptions {
    /// The address at which the target reaches the node.
    pub(crate) address: Option<IpAddr>,
    /// The authority of the client certificate of the target.
    pub(crate) client_ca: Option<PathBuf>,
}

impl Run {
    pub(super) fn resolve(
        run: &low::Run,
        color: low::Color,
        command_line: &str,
    ) -> Result<Self, Error> {
        let options = run_options(run, command_line)?;
        let limits = Limits {
            max_rps: run.safety.max_rps,
            // The cases about load receive more objects at once.
            max_held: (run.execution.response_memory as usize)
                .saturating_mul(options.load as usize)
                << 20,
            ..Limits::default()
        };
        let (strict, rerun) = (options.strict, rerun_command::of(run));
        Ok(Self {
            target: Target::resolve(&run.target)?,
            oracle: Target::of_oracle(&run.oracle)?,
            node: run.pods.with_node.then(|| NodeOptions {
                address: run.pods.node_address,
                client_ca: run.pods.node_client_ca.clone(),
            }),
            catalogue: CatalogueSource::new(run.cases.directories.clone()),
            options,
            limits,
            update_known_failures: run.selection.update_known_failures,
            reports: RunReports::resolve(&run.reports, color, strict, rerun),
        })
    }
}

fn run_options(run: &low::Run, command_line: &str) -> Result<RunOptions, Error> {
    let low::Run { selection, safety, execution, .. } = run;
    let cases = CaseSelection::resolve(&run.cases);
    let rerun = selection.rerun.as_deref().map(Rerun::from_report).transpose()?;
    let is_bundled = run.target.server.is_none() && run.target.kubeconfig.is_none();
    if let (true, Some(server)) = (is_bundled, rerun.as_ref().and_then(Rerun::server)) {
        return Err(Error::RerunTarget(server.to_owned()));
    }
    let subjects = selection.subject.iter().map(|subject| subject.parse());
    let list = selection.known_failures.as_deref();
    Ok(RunOptions {
        selection: Selection { shard: selection.shard, rerun, ..cases.selection },
        subjects: subjects.collect::<Result<_, _>>()?,
        edition: cases.edition,
        letter: selection.letter,
        namespace: safety.namespace.clone(),
        read_only: safety.read_only,
        dry_run: safety.dry_run,
        known_failures: known_failures(list, selection.update_known_failures)?,
        strict: execution.strict,
        jobs: execution.jobs,
        timeout: execution.timeout,
        case_timeout: execution.case_timeout,
        // Many JSON parsers lose digits of larger numbers.
        seed: execution.seed.unwrap_or_else(|| u64::from(rand::random::<u32>())),
        load: execution.load,
        repeat: execution.repeat,
        pod_image: run.pods.pod_image.clone(),
        max_fail: execution.max_fail,
        required: Required {
            capabilities: selection.require.clone(),
            profiles: selection.require_profile.clone(),
        },
        bundled: is_bundled,
        command: command_line.to_owned(),
        keep: safety.keep.then(|| rerun_command::clean(run)),
        ..RunOptions::default()
    })
}

/// Reads the list of known failures. The file may be missing if the run writes it.
pub(super) fn known_failures(
    path: Option<&Path>,
    update: bool,
) -> Result<Option<KnownFailures>, Error> {
    let load = |path: &Path| {
        if update && !path.exists() {
            Ok(KnownFailures::empty(path))
        } else {
            KnownFailures::load(path)
        }
    };
    Ok(path.map(load).transpose()?)
}
