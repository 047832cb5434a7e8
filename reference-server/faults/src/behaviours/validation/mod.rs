//! Validation: limits, rules and immutable fields, and how rejections report mistakes.

mod builtin_rules;
mod config_maps;
mod limits;
mod rejections;
mod service_ports;
mod unchecked;

use crate::middleware::Middleware;
use crate::set::Fault;

/// Returns the middleware of a fault of this folder.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    let parts = [
        builtin_rules::of,
        config_maps::of,
        limits::of,
        rejections::of,
        service_ports::of,
        unchecked::of,
    ];
    parts.into_iter().find_map(|part| part(fault))
}
