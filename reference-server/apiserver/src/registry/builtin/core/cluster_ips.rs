//! The cluster IPs of services.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use rand::seq::IteratorRandom as _;
use serde_json::{Value, json};

use kubeproof_apimachinery::schema::FieldError;

/// The cluster IPs of services. The range is small and its order is fixed, so that tests can
/// predict them. A released address is used again after all others, as with kube-apiserver, which
/// chooses at random: a client that released an address can request it for some time.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClusterIps {
    taken: BTreeSet<Ipv4Addr>,
    /// The last address that the server chose.
    last: Option<Ipv4Addr>,
}

impl ClusterIps {
    /// Allocates the requested address or the next one. Headless services and external names need
    /// none.
    pub(crate) fn allocate(&mut self, service: &mut Value) -> Result<(), FieldError> {
        let Some(address) = self.choose(service)? else { return Ok(()) };
        if cluster_ip(service).is_empty() {
            self.last = Some(address);
        }
        self.taken.insert(address);
        let text = address.to_string();
        service["spec"]["clusterIPs"] = json!([text]);
        service["spec"]["clusterIP"] = json!(text);
        Ok(())
    }

    /// Allocates like [`Self::allocate`] for a dry run, which does not keep the address.
    pub(crate) fn propose(&self, service: &mut Value) -> Result<(), FieldError> {
        self.clone().allocate(service)
    }

    /// Replaces the allocated addresses. The first address that a server chooses is random, so that
    /// servers that share a storage rarely choose the same.
    pub(crate) fn set_taken(&mut self, taken: BTreeSet<Ipv4Addr>) {
        self.taken = taken;
        if self.last.is_none() && !self.taken.is_empty() {
            self.last = range().choose(&mut rand::rng());
        }
    }

    /// Releases the address of a deleted service.
    pub(crate) fn release(&mut self, service: &Value) {
        if let Ok(address) = cluster_ip(service).parse() {
            self.taken.remove(&address);
        }
    }

    fn choose(&self, service: &Value) -> Result<Option<Ipv4Addr>, FieldError> {
        let wanted = cluster_ip(service);
        if wanted == "None" || service["spec"]["type"] == "ExternalName" {
            return Ok(None);
        }
        let reject = |why: &str| {
            let why = format!("failed to allocate IP {wanted}: {why}");
            FieldError::invalid("spec.clusterIPs", &json!([wanted]), &why)
        };
        if wanted.is_empty() {
            let is_free = |address: &Ipv4Addr| !self.taken.contains(address);
            let later = range().find(|address| Some(*address) > self.last && is_free(address));
            let free = later.or_else(|| range().find(is_free));
            return free.map(Some).ok_or_else(|| reject("range is full"));
        }
        let address: Ipv4Addr = wanted.parse().map_err(|_| reject("not an IPv4 address"))?;
        if !range().any(|candidate| candidate == address) {
            return Err(reject("the provided network does not match the current range"));
        }
        if self.taken.contains(&address) {
            return Err(reject("provided IP is already allocated"));
        }
        Ok(Some(address))
    }
}

/// Returns 10.0.0.1 to 10.0.15.254, without the addresses that end in 0 or 255.
fn range() -> impl Iterator<Item = Ipv4Addr> {
    (0..16).flat_map(|third| (1..255).map(move |fourth| Ipv4Addr::new(10, 0, third, fourth)))
}

pub(super) fn cluster_ip(service: &Value) -> &str {
    let spec = &service["spec"];
    spec["clusterIP"].as_str().or_else(|| spec["clusterIPs"][0].as_str()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[test]
    fn a_released_address_is_used_again_after_all_others() {
        let mut ips = ClusterIps { taken: range().skip(3).collect(), last: None };
        let next = |ips: &mut ClusterIps| {
            let mut service = json!({"spec": {}});
            ips.allocate(&mut service).map(|()| service)
        };
        let first = next(&mut ips).unwrap();
        ips.release(&first);
        for address in ["10.0.0.2", "10.0.0.3", "10.0.0.1"] {
            assert_eq!(cluster_ip(&next(&mut ips).unwrap()), address);
        }
        assert!(next(&mut ips).unwrap_err().message.contains("range is full"));
    }

    #[rstest]
    #[case("10.0.0.1", Some("provided IP is already allocated"))]
    #[case("1.2.3.4", Some("does not match the current range"))]
    #[case("10.0.0.7", None)]
    #[case("None", None)]
    fn a_wanted_address_must_be_free(#[case] wanted: &str, #[case] rejection: Option<&str>) {
        let mut ips = ClusterIps::default();
        ips.allocate(&mut json!({"spec": {}})).unwrap();
        let mut service = json!({"spec": {"clusterIP": wanted}});
        match (ips.allocate(&mut service), rejection) {
            (Ok(()), None) => assert_eq!(service["spec"]["clusterIP"], wanted),
            (Err(error), Some(text)) => assert!(error.message.contains(text), "{error}"),
            (result, _) => panic!("{wanted}: {result:?}"),
        }
    }
}
