//! JSON patches, merge patches and strategic merge patches.

pub(super) mod faults;
mod forms;
mod json_patches;
mod results;

use super::{Fault, handled};
use crate::middleware::Middleware;

/// Returns the middleware of a fault of this folder.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    faults::rows! { handled fault }
}
