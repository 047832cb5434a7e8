//! Reads: single objects, lists with their pages and selectors, and tables.

pub(super) mod faults;
mod lists;
mod pages;
mod selectors;
mod single_objects;
mod tables;

use super::{Fault, handled};
use crate::middleware::Middleware;

/// Returns the middleware of a fault of this folder.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    faults::rows! { handled fault }
}
