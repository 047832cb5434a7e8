//! Admission: plugins, policies and webhooks.

mod configurations;
pub(super) mod faults;
mod operations;
mod plugins;
mod policies;

use super::{Fault, handled};
use crate::middleware::Middleware;

/// Returns the middleware of a fault of this folder.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    faults::rows! { handled fault }
}
