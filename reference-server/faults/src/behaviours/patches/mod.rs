//! JSON patches, merge patches and strategic merge patches.

pub(super) mod faults;
mod json_patches;
mod media_types;
mod merge_patches;
mod strategic_patches;

use super::{Fault, handled};
use crate::middleware::Middleware;

/// Returns the middleware of a fault of this folder.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    faults::rows! { handled fault }
}
