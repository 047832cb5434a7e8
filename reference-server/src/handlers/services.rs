//! The address of a service that changes its type: only an `ExternalName` has none.

use serde_json::Value;

use super::{Call, create};
use crate::Fault;
use crate::builtin;
use crate::status::ApiError;

/// What a change does to the address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Address {
    /// It stays as it is.
    Kept,
    /// The new object has one, and it was allocated.
    Allocated,
    /// The old object had one, and the new one has not.
    Freed,
}

/// Gives the candidate an address, or takes it away.
pub(super) fn settle(call: &Call, new: &mut Value, old: &Value, dry_run: bool) -> Result<Address, ApiError> {
    if !call.ty.is_core("services") {
        return Ok(Address::Kept);
    }
    let external = |service: &Value| service["spec"]["type"] == "ExternalName";
    match (external(old), external(new)) {
        (false, true) => {
            if !call.faults().on(Fault::ClusterIpKept) {
                builtin::drop_address(new, old);
            }
            Ok(Address::Freed)
        }
        (true, false) => {
            create::allocate_address(call, new, dry_run)?;
            Ok(if dry_run { Address::Kept } else { Address::Allocated })
        }
        _ => Ok(Address::Kept),
    }
}

/// Gives back what nobody has any more: the address of the old object, or that of a candidate that was not written.
pub(super) fn finish(call: &Call, address: Address, written: bool, new: &Value, old: &Value) {
    match address {
        Address::Freed if written && !call.faults().on(Fault::ClusterIpLeaks) => {
            call.api.addresses().release(old);
        }
        Address::Allocated if !written => call.api.addresses().release(new),
        _ => {}
    }
}
