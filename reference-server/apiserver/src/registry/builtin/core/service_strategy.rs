//! The cluster IPs and node ports of services: allocated by writes, released at deletion. A service
//! of type `ExternalName` has none.

use std::sync::{Mutex, MutexGuard, PoisonError};

use kubeproof_apimachinery::object::Object;
use kubeproof_apimachinery::schema::FieldError;
use kubeproof_apimachinery::status::{ApiError, Subject};
use serde_json::Value;

use super::node_ports::NodePorts;
use super::service::{ClusterIps, drop_address};
use crate::registry::strategy::{Context, ProxyTarget, Strategy, Update};

#[derive(Debug, Default)]
pub(super) struct ServiceStrategy {
    allocations: Mutex<Allocations>,
}

#[derive(Debug, Default)]
struct Allocations {
    addresses: ClusterIps,
    ports: NodePorts,
}

impl ServiceStrategy {
    fn allocations(&self) -> MutexGuard<'_, Allocations> {
        // Each change of the allocations is one step, so a panic leaves them consistent.
        self.allocations.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Allocations {
    fn allocate_address(&mut self, service: &mut Value, dry_run: bool) -> Result<(), ApiError> {
        let ips = &mut self.addresses;
        let given = if dry_run { ips.propose(service) } else { ips.allocate(service) };
        given.map_err(|error| invalid(service, error))
    }

    fn allocate_ports(
        &mut self,
        service: &mut Value,
        old: &Value,
        dry_run: bool,
    ) -> Result<(), ApiError> {
        let given = self.ports.allocate(service, old, dry_run);
        given.map_err(|error| invalid(service, error))
    }
}

fn invalid(service: &Value, error: FieldError) -> ApiError {
    let subject = Subject { group: "", word: "Service" };
    ApiError::invalid(subject, service.meta("name"), &[error])
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
        let mut all = self.allocations();
        all.allocate_address(new, dry_run)?;
        all.allocate_ports(new, &Value::Null, dry_run).inspect_err(|_| {
            if !dry_run {
                all.addresses.release(new);
            }
        })
    }

    fn adopt(&self, _context: Context<'_>, object: &Value) {
        let mut all = self.allocations();
        // An address that is already taken stays taken.
        let _ = all.allocate_address(&mut object.clone(), false);
        let _ = all.allocate_ports(&mut object.clone(), &Value::Null, false);
    }

    fn cancel_create(&self, new: &Value) {
        let mut all = self.allocations();
        all.addresses.release(new);
        all.ports.release(new, &Value::Null);
    }

    fn begin_update(&self, _context: Context<'_>, update: Update<'_>) -> Result<(), ApiError> {
        let Update { new, old, dry_run, .. } = update;
        let mut all = self.allocations();
        let gains_address = is_external(old) && !is_external(new);
        if gains_address {
            all.allocate_address(new, dry_run)?;
        } else if is_external(new) && !is_external(old) {
            drop_address(new, old);
        }
        all.allocate_ports(new, old, dry_run).inspect_err(|_| {
            if gains_address && !dry_run {
                all.addresses.release(new);
            }
        })
    }

    fn cancel_update(&self, new: &Value, old: &Value) {
        let mut all = self.allocations();
        if is_external(old) && !is_external(new) {
            all.addresses.release(new);
        }
        all.ports.release(new, old);
    }

    fn after_update(&self, _context: Context<'_>, new: &Value, old: &Value) {
        let mut all = self.allocations();
        if !is_external(old) && is_external(new) {
            all.addresses.release(old);
        }
        all.ports.release(old, new);
    }

    fn after_delete(&self, _context: Context<'_>, object: &Value) {
        let mut all = self.allocations();
        all.addresses.release(object);
        all.ports.release(object, &Value::Null);
    }
}
