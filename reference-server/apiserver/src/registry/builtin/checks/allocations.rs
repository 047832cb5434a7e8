//! The status of a claim for devices: what the scheduler allocates, and what drivers report.

use std::collections::HashSet;
use std::net::IpAddr;

use serde_json::{Value, json};

use super::claims::{REQUESTS, RequestNames, driver_name, json_object, opaque, too_long};
use super::conditions::conditions;
use super::devices::binding_conditions;
use super::scheduling::node_selector;
use super::{has, items, text};
use kubeproof_apimachinery::object::Object;
use kubeproof_apimachinery::object::validation::syntax::Syntax;
use kubeproof_apimachinery::schema::{FieldError, Path};

/// The maximum number of users of a claim.
const USERS: usize = 256;
/// The maximum number of allocated devices.
const RESULTS: usize = 32;
/// The maximum number of configurations of an allocation, from the claim and its classes.
const CONFIGURATIONS: usize = 64;
/// The maximum number of conditions of a device.
const CONDITIONS: usize = 8;
/// The maximum number of conditions of a binding.
const BINDING_CONDITIONS: usize = 4;
/// The maximum number of addresses of a device.
const ADDRESSES: usize = 16;
/// The maximum length of the name of a pool.
const POOL: usize = 253;

/// Removes the reports about devices that are no longer allocated.
pub(in crate::registry::builtin) fn forget_devices(new: &mut Value, old: &Value) {
    let results = |claim: &Value| -> Vec<String> {
        let results = items(&claim["status"]["allocation"]["devices"], "results");
        results.iter().map(device_id).collect()
    };
    let (before, now) = (results(old), results(new));
    let Some(status) = new["status"].as_object_mut() else { return };
    let Some(devices) = status.get_mut("devices").and_then(Value::as_array_mut) else { return };
    devices.retain(|device| {
        let id = device_id(device);
        now.contains(&id) || !before.contains(&id)
    });
    if devices.is_empty() {
        status.remove("devices");
    }
}

/// Returns the errors of a new status.
pub(in crate::registry::builtin) fn validate_status(new: &Value, old: &Value) -> Vec<FieldError> {
    let root = Path::Root;
    let path = root.field("status");
    let (status, before) = (&new["status"], &old["status"]);
    let mut errors = users(status, path);
    errors.extend(devices(status, path));
    errors.extend(reservation(new, old, path.field("reservedFor")));
    let place = path.field("allocation");
    let now = &status["allocation"];
    if has(status, "allocation") && has(before, "allocation") {
        if *now != before["allocation"] {
            errors.push(FieldError::invalid(place, now, "field is immutable"));
        }
    } else if has(status, "allocation") {
        let names = RequestNames::of(&new["spec"]["devices"]);
        errors.extend(allocation(now, &names, place));
    }
    errors
}

/// Checks the items of a list, unless there are more than the limit.
fn each(
    owner: &Value,
    (field, limit): (&str, usize),
    path: Path<'_>,
    check: impl Fn(&Value, Path<'_>) -> Vec<FieldError>,
) -> Vec<FieldError> {
    let (list, place) = (items(owner, field), path.field(field));
    if list.len() > limit {
        return vec![FieldError::too_many(place, list.len(), limit as u64)];
    }
    let checked = list.iter().enumerate();
    checked.flat_map(|(index, item)| check(item, place.index(index))).collect()
}

/// Does the same for a list of items with different keys.
fn each_once(
    owner: &Value,
    (field, limit): (&str, usize),
    path: Path<'_>,
    key: impl Fn(&Value) -> String,
    check: impl Fn(&Value, Path<'_>) -> Vec<FieldError>,
) -> Vec<FieldError> {
    let mut errors = each(owner, (field, limit), path, check);
    let (list, place) = (items(owner, field), path.field(field));
    let mut known = HashSet::new();
    for (index, item) in list.iter().enumerate().filter(|_| list.len() <= limit) {
        let key = key(item);
        if known.contains(&key) {
            errors.push(FieldError::duplicate(place.index(index), &json!(key)));
        }
        known.insert(key);
    }
    errors
}

fn users(status: &Value, path: Path<'_>) -> Vec<FieldError> {
    let uid = |user: &Value| text(user, "uid").to_owned();
    each_once(status, ("reservedFor", USERS), path, uid, |user, place| {
        let fields = ["resource", "name", "uid"].iter();
        let absent = fields.filter(|field| text(user, field).is_empty());
        absent.map(|field| FieldError::required(place.field(field), "")).collect()
    })
}

/// Only an allocated claim has users, and one that is being deleted gets no new ones.
fn reservation(new: &Value, old: &Value, path: Path<'_>) -> Option<FieldError> {
    let [now, before] = [new, old].map(|claim| items(&claim["status"], "reservedFor"));
    let why = if now.is_empty() {
        return None;
    } else if !has(&new["status"], "allocation") {
        "may not be specified when `allocated` is not set"
    } else if new.is_deleting() && now.iter().any(|user| !before.contains(user)) {
        "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set"
    } else {
        return None;
    };
    Some(FieldError::forbidden(path, why))
}

fn allocation(allocation: &Value, names: &RequestNames<'_>, path: Path<'_>) -> Vec<FieldError> {
    let (devices, place) = (&allocation["devices"], path.field("devices"));
    let mut errors = each(devices, ("results", RESULTS), place, |result, at| {
        let mut errors = names.check(text(result, "request"), at.field("request"));
        errors.extend(device(result, at));
        errors.extend(binding_conditions(result, at));
        for field in ["bindingConditions", "bindingFailureConditions"] {
            errors.extend(each(result, (field, BINDING_CONDITIONS), at, |name, at| {
                Syntax::LabelKey.errors(name.as_str().unwrap_or_default(), at)
            }));
        }
        errors
    });
    errors.extend(each(devices, ("config", CONFIGURATIONS), place, |config, at| {
        let mut errors: Vec<FieldError> =
            source(text(config, "source"), at.field("source")).into_iter().collect();
        let own = |name: &Value| name.as_str().unwrap_or_default().to_owned();
        errors.extend(each_once(config, ("requests", REQUESTS), at, own, |name, at| {
            names.check(name.as_str().unwrap_or_default(), at)
        }));
        errors.extend(opaque(config, at));
        errors
    }));
    if has(allocation, "nodeSelector") {
        errors.extend(node_selector(&allocation["nodeSelector"], path.field("nodeSelector")));
    }
    errors
}

fn source(source: &str, path: Path<'_>) -> Option<FieldError> {
    match source {
        "FromClaim" | "FromClass" => None,
        "" => Some(FieldError::required(path, "")),
        _ => {
            let supported = [json!("FromClaim"), json!("FromClass")];
            Some(FieldError::not_supported(path, &json!(source), &supported))
        }
    }
}

/// Returns the errors in the names of a device.
fn device(device: &Value, path: Path<'_>) -> Vec<FieldError> {
    let mut errors = driver_name(text(device, "driver"), path.field("driver"));
    let (pool, place) = (text(device, "pool"), path.field("pool"));
    if pool.is_empty() {
        errors.push(FieldError::required(place, ""));
    } else {
        errors.extend(too_long(pool, POOL, place));
        errors.extend(Syntax::PoolName.errors(pool, place));
    }
    errors.extend(Syntax::DnsLabel.errors(text(device, "device"), path.field("device")));
    if has(device, "shareID") {
        errors.extend(share(text(device, "shareID"), path.field("shareID")));
    }
    errors
}

/// Returns the error in the UID of a share, which must have lower case.
fn share(uid: &str, path: Path<'_>) -> Option<FieldError> {
    let plain = match uid.len() {
        38 => uid.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')),
        45 => uid.split_at_checked(9).map(|(_, plain)| plain),
        32 | 36 => Some(uid),
        length => {
            let why = format!("error validating uid: invalid UUID length: {length}");
            return Some(FieldError::invalid(path, &json!(uid), &why));
        }
    };
    let is_hex = |text: &str| text.chars().all(|c| c.is_ascii_hexdigit());
    let is_right = plain.is_some_and(|plain| {
        let lengths: Vec<usize> = plain.split('-').map(str::len).collect();
        plain.split('-').all(is_hex) && (lengths == [8, 4, 4, 4, 12] || lengths == [32])
    });
    let why = if !is_right {
        "error validating uid: invalid UUID format"
    } else if uid.len() != 36 || uid.chars().any(|c| c.is_ascii_uppercase()) {
        "uid must be in RFC 4122 normalized form, `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` with \
         lowercase hexadecimal characters"
    } else {
        return None;
    };
    Some(FieldError::invalid(path, &json!(uid), why))
}

/// Returns the identity of a device: driver, pool, name and share.
fn device_id(device: &Value) -> String {
    let names = ["driver", "pool", "device", "shareID"].map(|field| text(device, field));
    let end = if names[3].is_empty() { 3 } else { 4 };
    names[..end].join("/")
}

fn devices(status: &Value, path: Path<'_>) -> Vec<FieldError> {
    let results = items(&status["allocation"]["devices"], "results");
    let allocated: Vec<String> = results.iter().map(device_id).collect();
    each_once(status, ("devices", usize::MAX), path, device_id, |report, at| {
        let mut errors = device(report, at);
        let id = device_id(report);
        if !allocated.contains(&id) {
            let why = "must be an allocated device in the claim";
            errors.push(FieldError::invalid(at, &json!(id), why));
        }
        let (list, place) = (items(report, "conditions"), at.field("conditions"));
        if list.len() > CONDITIONS {
            errors.push(FieldError::too_many(place, list.len(), CONDITIONS as u64));
        }
        errors.extend(conditions(list, place));
        errors.extend(json_object(&report["data"], at.field("data")));
        errors.extend(network(&report["networkData"], at.field("networkData")));
        errors
    })
}

fn network(data: &Value, path: Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (field, limit) in [("interfaceName", 256), ("hardwareAddress", 128)] {
        errors.extend(too_long(text(data, field), limit, path.field(field)));
    }
    let own = |address: &Value| address.as_str().unwrap_or_default().to_owned();
    errors.extend(each_once(data, ("ips", ADDRESSES), path, own, |address, at| {
        interface_address(address.as_str().unwrap_or_default(), at).into_iter().collect()
    }));
    errors
}

/// Returns the error in an address with the length of its prefix, in canonical form.
fn interface_address(text: &str, path: Path<'_>) -> Option<FieldError> {
    let why = match canonical_address(text) {
        None => "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)".into(),
        Some(canonical) if canonical != text => {
            format!("must be in canonical form ({canonical:?})")
        }
        Some(_) => return None,
    };
    Some(FieldError::invalid(path, &json!(text), &why))
}

fn canonical_address(text: &str) -> Option<String> {
    let (address, length) = text.split_once('/')?;
    let (address, length): (IpAddr, u8) = (address.parse().ok()?, length.parse().ok()?);
    let most = if address.is_ipv4() { 32 } else { 128 };
    let (canonical, shift) = match address.to_canonical() {
        short if short != address && length >= 96 => (short, 96),
        _ => (address, 0),
    };
    (length <= most).then(|| format!("{canonical}/{}", length - shift))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn claim(status: &Value) -> Value {
        let requests = json!([{"name": "r", "exactly": {}}]);
        json!({"metadata": {}, "spec": {"devices": {"requests": requests}}, "status": status})
    }

    fn allocated() -> Value {
        let result = json!({"request": "r", "driver": "a.b", "pool": "p", "device": "d"});
        json!({"devices": {"results": [result]}})
    }

    fn user(uid: &str) -> Value {
        json!({"resource": "pods", "name": "a", "uid": uid})
    }

    fn fields(errors: &[FieldError]) -> Vec<&str> {
        errors.iter().filter_map(|error| error.field.strip_prefix("status.")).collect()
    }

    #[rstest]
    #[case(json!({"allocation": allocated()}), &[])]
    #[case(json!({"allocation": allocated(), "reservedFor": [user("1"), user("2")]}), &[])]
    #[case(json!({"allocation": allocated(), "reservedFor": [user("1"), user("1")]}),
           &["reservedFor[1]"])]
    #[case(json!({"reservedFor": [user("1")]}), &["reservedFor"])]
    #[case(json!({"allocation": allocated(), "reservedFor": vec![user("1"); 257]}),
           &["reservedFor"])]
    #[case(json!({"allocation": {"devices": {"results": [{"request": "q"}]}}}),
           &[
               "allocation.devices.results[0].request", "allocation.devices.results[0].driver",
               "allocation.devices.results[0].pool", "allocation.devices.results[0].device",
           ])]
    #[case(json!({"allocation": {"devices": {
               "config": [{"source": "A", "requests": ["r", "r"]}],
           }}}),
           &[
               "allocation.devices.config[0].source", "allocation.devices.config[0].requests[1]",
               "allocation.devices.config[0].opaque",
           ])]
    #[case(json!({"allocation": {"nodeSelector": {}}}),
           &["allocation.nodeSelector.nodeSelectorTerms"])]
    #[case(json!({"allocation": allocated(), "devices": [
               {"driver": "a.b", "pool": "p", "device": "d", "data": 1},
           ]}), &["devices[0].data"])]
    #[case(json!({"devices": [{"driver": "a.b", "pool": "p", "device": "d"}]}), &["devices[0]"])]
    fn a_first_status_is_checked(#[case] status: Value, #[case] expected: &[&str]) {
        let errors = validate_status(&claim(&status), &claim(&json!({})));
        assert_eq!(fields(&errors), expected);
    }

    #[test]
    fn an_allocation_never_changes() {
        let old = claim(&json!({"allocation": allocated(), "reservedFor": [user("1")]}));
        let mut new = old.clone();
        assert_eq!(validate_status(&new, &old), []);
        new["status"]["allocation"]["devices"]["results"][0]["device"] = json!("e");
        assert_eq!(fields(&validate_status(&new, &old)), ["allocation"]);
        new["status"]["allocation"] = Value::Null;
        assert_eq!(fields(&validate_status(&new, &old)), ["reservedFor"]);
        new["status"]["reservedFor"] = json!([]);
        assert_eq!(validate_status(&new, &old), []);
    }

    #[test]
    fn a_claim_in_deletion_gets_no_new_user() {
        let old = claim(&json!({"allocation": allocated(), "reservedFor": [user("1")]}));
        let mut new = old.clone();
        new["metadata"]["deletionTimestamp"] = json!("2026-01-02T03:04:05Z");
        assert_eq!(validate_status(&new, &old), []);
        new["status"]["reservedFor"] = json!([user("1"), user("2")]);
        assert_eq!(fields(&validate_status(&new, &old)), ["reservedFor"]);
    }

    #[test]
    fn reports_end_with_the_allocation() {
        let device = json!({"driver": "a.b", "pool": "p", "device": "d"});
        let old = claim(&json!({"allocation": allocated(), "devices": [device]}));
        let mut new = old.clone();
        forget_devices(&mut new, &old);
        assert_eq!(new, old);
        new["status"]["allocation"] = Value::Null;
        forget_devices(&mut new, &old);
        assert_eq!(new["status"].get("devices"), None);
    }

    #[rstest]
    #[case("11111111-2222-3333-4444-55555555abcd", true)]
    #[case("11111111-2222-3333-4444-55555555ABCD", false)]
    #[case("1111111122223333444455555555abcd", false)]
    #[case("{11111111-2222-3333-4444-55555555abcd}", false)]
    #[case("11111111-2222-3333-4444-55555555abcx", false)]
    #[case("1", false)]
    fn a_share_has_a_uid(#[case] uid: &str, #[case] is_right: bool) {
        assert_eq!(share(uid, Path::Root).is_none(), is_right);
    }

    #[rstest]
    #[case("10.9.8.7/24", true)]
    #[case("2001:db8::1/64", true)]
    #[case("2001:DB8::1/64", false)]
    #[case("::ffff:10.9.8.7/120", false)]
    #[case("10.9.8.7", false)]
    #[case("10.9.8.7/33", false)]
    fn addresses_are_canonical(#[case] text: &str, #[case] is_right: bool) {
        assert_eq!(interface_address(text, Path::Root).is_none(), is_right);
    }
}
