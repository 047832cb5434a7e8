//! Creates: names, uids, defaults, and what the server stores of a new object.

mod defaults;
pub(super) mod faults;
mod generated_names;
mod new_objects;
mod overlays;
mod uids;

use super::{Fault, handled};
use crate::middleware::Middleware;

/// Returns the middleware of a fault of this folder.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    faults::rows! { handled fault }
}
