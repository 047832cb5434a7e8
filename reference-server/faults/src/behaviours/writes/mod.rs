//! All writes: how the server reads a body, which values it stores, and options such as dry runs.

mod changed_values;
mod decoding;
mod dry_runs;
mod options;
mod stored_values;
mod strictness;

use crate::middleware::Middleware;
use crate::set::Fault;

/// Returns the middleware of a fault of this folder.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    let parts = [
        changed_values::of,
        decoding::of,
        dry_runs::of,
        options::of,
        stored_values::of,
        strictness::of,
    ];
    parts.into_iter().find_map(|part| part(fault))
}
