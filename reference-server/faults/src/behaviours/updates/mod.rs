//! Updates: what they store, and versions, generations and timestamps.

mod generation;
mod timestamps;
mod updated_objects;
mod versions;

use crate::middleware::Middleware;
use crate::set::Fault;

/// Returns the middleware of a fault of this folder.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    let parts = [generation::of, timestamps::of, updated_objects::of, versions::of];
    parts.into_iter().find_map(|part| part(fault))
}
