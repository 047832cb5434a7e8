//! Responses: objects and failures, in JSON and protobuf.

mod failures;
pub(super) mod faults;
mod objects;
mod protobuf;

use super::{Fault, handled};
use crate::middleware::Middleware;

/// Returns the middleware of a fault of this folder.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    faults::rows! { handled fault }
}
