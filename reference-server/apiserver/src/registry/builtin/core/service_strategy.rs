//! The cluster IPs and node ports of services: allocated by writes, released at deletion. A service
//! of type `ExternalName` has none.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use kubeproof_apimachinery::object::Object;
use kubeproof_apimachinery::schema::FieldError;
use kubeproof_apimachinery::status::{ApiError, Subject};
use kubeproof_storage::Store;
use serde_json::Value;

use super::cluster_ips::{ClusterIps, cluster_ip};
use super::node_ports::{self, NodePorts};
use crate::registry::strategy::{Context, ProxyTarget, Strategy, Update};

const TABLE: &str = "services";
/// The claim of a cluster IP, in front of the address.
const ADDRESS: &str = "clusterips/";
/// The claim of a node port, in front of the number.
const PORT: &str = "nodeports/";

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

    /// Returns the allocations with those of other servers. If two servers allocate the same at
    /// once, the storage rejects the second write.
    fn current(&self, context: Context<'_>) -> MutexGuard<'_, Allocations> {
        let mut all = self.allocations();
        if context.store.is_shared() {
            all.read(context.store);
        }
        all
    }
}

impl Allocations {
    /// Replaces the allocations with those of the stored services.
    fn read(&mut self, store: &Store) {
        let (services, _) = store.snapshot(TABLE, None);
        let claims = || services.iter().flat_map(|service| &service.facts.claims);
        let addresses = claims().filter_map(|claim| claim.strip_prefix(ADDRESS)?.parse().ok());
        self.addresses.set_taken(addresses.collect());
        let ports = claims().filter_map(|claim| claim.strip_prefix(PORT)?.parse().ok());
        self.ports.set_taken(ports.collect());
    }

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

    fn claims(&self, service: &Value) -> Vec<String> {
        let address = cluster_ip(service).parse::<Ipv4Addr>().ok();
        let address = address.map(|address| format!("{ADDRESS}{address}"));
        let ports: BTreeSet<i32> = node_ports::numbers(service).collect();
        address.into_iter().chain(ports.iter().map(|port| format!("{PORT}{port}"))).collect()
    }

    fn begin_create(
        &self,
        context: Context<'_>,
        new: &mut Value,
        dry_run: bool,
    ) -> Result<(), ApiError> {
        let mut all = self.current(context);
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

    fn begin_update(&self, context: Context<'_>, update: Update<'_>) -> Result<(), ApiError> {
        let Update { new, old, dry_run, .. } = update;
        let mut all = self.current(context);
        let gains_address = is_external(old) && !is_external(new);
        if gains_address {
            all.allocate_address(new, dry_run)?;
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
