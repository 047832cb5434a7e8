//! All writes: how the server reads a body, which values it stores, and options such as dry runs.

mod builtin_values;
mod changed_values;
mod decoding;
mod dry_runs;
pub(super) mod faults;
mod options;
mod stored_values;
mod strictness;

use super::{Fault, handled};
use crate::middleware::Middleware;

/// Returns the middleware of a fault of this folder.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    faults::rows! { handled fault }
}
