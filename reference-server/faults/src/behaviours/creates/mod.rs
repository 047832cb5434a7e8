//! Creates: names, uids, defaults, and what the server stores of a new object.

mod defaults;
mod generated_names;
mod new_objects;
mod overlays;
mod uids;

use crate::middleware::Middleware;
use crate::set::Fault;

/// Returns the middleware of a fault of this folder.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    let parts = [defaults::of, generated_names::of, new_objects::of, overlays::of, uids::of];
    parts.into_iter().find_map(|part| part(fault))
}
