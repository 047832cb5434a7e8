//! Reads: single objects, lists with their pages and selectors, and tables.

mod lists;
mod pages;
mod selectors;
mod single_objects;
mod tables;

use crate::middleware::Middleware;
use crate::set::Fault;

/// Returns the middleware of a fault of this folder.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    let parts = [lists::of, pages::of, selectors::of, single_objects::of, tables::of];
    parts.into_iter().find_map(|part| part(fault))
}
