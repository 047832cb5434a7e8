//! The cluster IPs of services: allocated at creation, released at deletion. A service of type
//! `ExternalName` has none.

use std::sync::{Mutex, MutexGuard, PoisonError};

use kubeproof_apimachinery::object::Object;
use kubeproof_apimachinery::status::{ApiError, Subject};
use serde_json::Value;

use super::service::{ClusterIps, drop_address};
use crate::registry::strategy::{Context, ProxyTarget, Strategy, Update};

#[derive(Debug, Default)]
pub(super) struct ServiceStrategy {
    addresses: Mutex<ClusterIps>,
}

impl ServiceStrategy {
    fn addresses(&self) -> MutexGuard<'_, ClusterIps> {
        // Each change of the allocations is one step, so a panic leaves them consistent.
        self.addresses.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn allocate(&self, service: &mut Value, dry_run: bool) -> Result<(), ApiError> {
        let mut addresses = self.addresses();
        let given = if dry_run { addresses.propose(service) } else { addresses.allocate(service) };
        let subject = Subject { group: "", word: "Service" };
        given.map_err(|error| ApiError::invalid(subject, service.meta("name"), &[error]))
    }
}

fn is_external(service: &Value) -> bool {
    service["spec"]["type"] == "ExternalName"
}

impl Strategy for ServiceStrategy {
    fn proxy_target(&self) -> Option<ProxyTarget> {
        Some(ProxyTarget::Service)
    }

    fn begin_create(
        &self,
        _context: Context<'_>,
        new: &mut Value,
        dry_run: bool,
    ) -> Result<(), ApiError> {
        self.allocate(new, dry_run)
    }

    fn cancel_create(&self, new: &Value) {
        self.addresses().release(new);
    }

    fn begin_update(&self, _context: Context<'_>, update: Update<'_>) -> Result<(), ApiError> {
        match (is_external(update.old), is_external(update.new)) {
            (false, true) => drop_address(update.new, update.old),
            (true, false) => self.allocate(update.new, update.dry_run)?,
            _ => {}
        }
        Ok(())
    }

    fn cancel_update(&self, new: &Value, old: &Value) {
        if is_external(old) && !is_external(new) {
            self.addresses().release(new);
        }
    }

    fn after_update(&self, _context: Context<'_>, new: &Value, old: &Value) {
        if !is_external(old) && is_external(new) {
            self.addresses().release(old);
        }
    }

    fn after_delete(&self, _context: Context<'_>, object: &Value) {
        self.addresses().release(object);
    }
}
