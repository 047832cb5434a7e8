//! Subresources that write a part of an object, such as `scale` and `status`.

pub(super) mod faults;
mod parts;
mod scale;
mod status_parts;
mod status_writes;
mod unnoticed_writes;

use super::{Fault, handled};
use crate::middleware::Middleware;

/// Returns the middleware of a fault of this folder.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    faults::rows! { handled fault }
}
