//! JSON patches, merge patches and strategic merge patches.

mod forms;
mod json_patches;
mod results;

use crate::middleware::Middleware;
use crate::set::Fault;

/// Returns the middleware of a fault of this folder.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    let parts = [forms::of, json_patches::of, results::of];
    parts.into_iter().find_map(|part| part(fault))
}
