//! The options of `kubeproof explore`.

use std::path::PathBuf;

use kubeproof_harness::generated::explore::ExploreOptions;
use kubeproof_harness::transport::Limits;

use super::stress::scope_options;
use super::{CatalogueSource, Target};
use crate::args::low;
use crate::error::Error;

/// The most checks that look for smaller objects.
const SHRINK: usize = 160;

/// The options of `kubeproof explore`.
pub(crate) struct Explore {
    pub(crate) target: Target,
    pub(crate) catalogue: CatalogueSource,
    pub(crate) options: ExploreOptions,
    pub(crate) limits: Limits,
    pub(crate) save: Option<PathBuf>,
}

impl Explore {
    pub(super) fn resolve(explore: low::Explore) -> Result<Self, Error> {
        let run = scope_options(&explore.scope, &explore.target, explore.seed)?;
        Ok(Self {
            limits: Limits { max_rps: explore.scope.max_rps, ..Limits::default() },
            target: Target::resolve(&explore.target)?,
            catalogue: CatalogueSource::new(Vec::new()),
            options: ExploreOptions {
                run,
                max_requests: explore.max_requests,
                timeout: explore.timeout,
                shrink: SHRINK,
            },
            save: explore.save,
        })
    }
}
