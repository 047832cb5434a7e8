//! Deletion: objects, collections, namespaces, and the garbage collection that follows.

mod collections;
mod deleted_objects;
pub(super) mod faults;
mod garbage_collection;
mod namespaces;
mod options;
mod preconditions;

use super::{Fault, handled};
use crate::middleware::Middleware;

/// Returns the middleware of a fault of this folder.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    faults::rows! { handled fault }
}
