//! Subresources that write a part of an object, such as `scale` and `status`.

mod parts;
mod scale;
mod status_parts;
mod status_writes;
mod unnoticed_writes;

use crate::middleware::Middleware;
use crate::set::Fault;

/// Returns the middleware of a fault of this folder.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    let parts = [parts::of, scale::of, status_parts::of, status_writes::of, unnoticed_writes::of];
    parts.into_iter().find_map(|part| part(fault))
}
