//! Server-side apply: owners of fields, merges, and checks of the configuration.

mod configurations;
mod conflicts;
pub(super) mod faults;
mod merges;
mod ownership;

use super::{Fault, handled};
use crate::middleware::Middleware;

/// Returns the middleware of a fault of this folder.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    faults::rows! { handled fault }
}
