//! Validation: limits, rules and immutable fields, and how rejections report mistakes.

mod builtin_rules;
mod config_maps;
pub(super) mod faults;
mod limits;
mod rejections;
mod service_ports;
mod unchecked;

use super::{Fault, handled};
use crate::middleware::Middleware;

/// Returns the middleware of a fault of this folder.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    faults::rows! { handled fault }
}
