//! Responses: objects and failures, in JSON and protobuf.

mod failures;
mod objects;
mod protobuf;

use crate::middleware::Middleware;
use crate::set::Fault;

/// Returns the middleware of a fault of this folder.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    let parts = [failures::of, objects::of, protobuf::of];
    parts.into_iter().find_map(|part| part(fault))
}
