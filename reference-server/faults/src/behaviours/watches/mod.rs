//! Watches: how they start, which events they send, and what they select.

mod events;
pub(super) mod faults;
mod flashes;
mod histories;
mod selections;
mod starts;

use super::{Fault, handled};
use crate::middleware::Middleware;

/// Returns the middleware of a fault of this folder.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    faults::rows! { handled fault }
}
