//! Custom resource definitions: schemas, rules, versions and conversion.

mod api_design;
mod conversion;
mod formats;
mod lifecycle;
mod rule_costs;
mod rules;
mod schemas;
mod versions;

use crate::middleware::Middleware;
use crate::set::Fault;

/// Returns the middleware of a fault of this folder.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    let parts = [
        api_design::of,
        conversion::of,
        formats::of,
        lifecycle::of,
        rule_costs::of,
        rules::of,
        schemas::of,
        versions::of,
    ];
    parts.into_iter().find_map(|part| part(fault))
}
