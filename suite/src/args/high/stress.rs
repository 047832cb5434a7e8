//! The options of `kubeproof stress`.

use std::path::PathBuf;
use std::time::Duration;

use kubeproof_harness::generated::stress::StressOptions;
use kubeproof_harness::plan::RunOptions;
use kubeproof_harness::transport::Limits;

use super::{CatalogueSource, Target};
use crate::args::low;
use crate::error::Error;

/// Time for an event to arrive after the last write.
const STALL: Duration = Duration::from_secs(15);

/// The options of `kubeproof stress`.
pub(crate) struct Stress {
    pub(crate) target: Target,
    pub(crate) catalogue: CatalogueSource,
    pub(crate) options: StressOptions,
    pub(crate) limits: Limits,
    pub(crate) svg: Option<PathBuf>,
    pub(crate) json: Option<PathBuf>,
}

impl Stress {
    pub(super) fn resolve(stress: low::Stress) -> Result<Self, Error> {
        let run = scope_options(&stress.scope, &stress.target, stress.seed)?;
        Ok(Self {
            limits: Limits { max_rps: stress.scope.max_rps, ..Limits::default() },
            target: Target::resolve(&stress.target)?,
            catalogue: CatalogueSource::new(Vec::new()),
            options: StressOptions {
                run,
                clients: stress.clients,
                objects: stress.objects,
                duration: stress.duration,
                stall: STALL,
                restart_command: stress.restart_command,
            },
            svg: stress.svg,
            json: stress.json,
        })
    }
}

/// Returns the options that generated tests share with runs.
pub(super) fn scope_options(
    scope: &low::Scope,
    target: &low::Target,
    seed: Option<u64>,
) -> Result<RunOptions, Error> {
    let subjects = scope.subject.iter().map(|subject| subject.parse());
    Ok(RunOptions {
        subjects: subjects.collect::<Result<_, _>>()?,
        namespace: scope.namespace.clone(),
        seed: seed.unwrap_or_else(|| u64::from(rand::random::<u32>())),
        bundled: target.server.is_none() && target.kubeconfig.is_none(),
        ..RunOptions::default()
    })
}
