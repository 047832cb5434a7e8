//! Watches: how they start, which events they send, and what they select.

mod events;
mod flashes;
mod histories;
mod selections;
mod starts;

use crate::middleware::Middleware;
use crate::set::Fault;

/// Returns the middleware of a fault of this folder.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    let parts = [events::of, flashes::of, histories::of, selections::of, starts::of];
    parts.into_iter().find_map(|part| part(fault))
}
