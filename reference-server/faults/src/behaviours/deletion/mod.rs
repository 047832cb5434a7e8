//! Deletion: objects, collections, namespaces, and the garbage collection that follows.

mod collections;
mod deleted_objects;
mod garbage_collection;
mod namespaces;
mod options;

use crate::middleware::Middleware;
use crate::set::Fault;

/// Returns the middleware of a fault of this folder.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    let parts =
        [collections::of, deleted_objects::of, garbage_collection::of, namespaces::of, options::of];
    parts.into_iter().find_map(|part| part(fault))
}
