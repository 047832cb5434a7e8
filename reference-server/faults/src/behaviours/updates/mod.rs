//! Updates: what they store, and versions, generations and timestamps.

pub(super) mod faults;
mod generation;
mod preconditions;
mod responses;
mod timestamps;
mod updated_objects;
mod versions;

use super::{Fault, handled};
use crate::middleware::Middleware;

/// Returns the middleware of a fault of this folder.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    faults::rows! { handled fault }
}
