//! Custom resource definitions: schemas, rules, versions and conversion.

mod api_design;
mod conversion;
mod edits;
pub(super) mod faults;
mod formats;
mod lifecycle;
mod rule_costs;
mod rules;
mod schemas;
mod versions;

use super::{Fault, handled};
use crate::middleware::Middleware;

/// Returns the middleware of a fault of this folder.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    faults::rows! { handled fault }
}
