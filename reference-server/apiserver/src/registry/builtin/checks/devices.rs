//! Devices that drivers offer in resource slices.

use serde_json::{Value, json};

use super::capacities::capacity;
use super::claims::{qualified_name, too_long};
use super::scheduling::node_selector;
use super::{Checks, has, items, text};
use kubeproof_apimachinery::object::validation::syntax::Syntax;
use kubeproof_apimachinery::schema::rules::semver::is_version;
use kubeproof_apimachinery::schema::{FieldError, Path};

pub(super) const CHECKS: Checks = &[
    ("io.k8s.api.resource.v1.CounterSet", counters),
    ("io.k8s.api.resource.v1.DeviceCounterConsumption", counters),
    ("io.k8s.api.resource.v1.ResourcePool", pool),
    ("io.k8s.api.resource.v1.ResourceSliceSpec", slice),
];

/// The maximum number of devices with taints or counters in a slice.
const ADVANCED_DEVICES: usize = 64;
/// The maximum number of attributes and capacities of a device.
const ENTRIES: usize = 32;
/// The maximum number of values of the attributes of a device.
const ATTRIBUTES: usize = 48;
/// The maximum length of the text of an attribute.
const TEXT: usize = 64;
/// The maximum number of counters of a set.
const COUNTERS: u64 = 32;
/// The maximum length of a key in a path.
const KEY: usize = 96;

fn slice(spec: &Value, path: Path<'_>) -> Vec<FieldError> {
    let mut errors = nodes(spec, path);
    let (devices, list) = (items(spec, "devices"), path.field("devices"));
    if !devices.is_empty() && !items(spec, "sharedCounters").is_empty() {
        let why = "only one of `sharedCounters` or `devices` is allowed";
        errors.push(FieldError::invalid(path, &json!(""), why));
    }
    let is_advanced = |device: &Value| {
        ["taints", "consumesCounters"].iter().any(|field| !items(device, field).is_empty())
    };
    if devices.len() > ADVANCED_DEVICES && devices.iter().any(is_advanced) {
        let limit = ADVANCED_DEVICES as u64;
        errors.push(FieldError::too_many(list, devices.len(), limit));
        return errors;
    }
    let per_device = spec["perDeviceNodeSelection"] == true;
    for (index, one) in devices.iter().enumerate() {
        errors.extend(device(one, per_device, list.index(index)));
    }
    errors
}

/// Returns the errors in the choice of nodes that can use the devices.
fn nodes(spec: &Value, path: Path<'_>) -> Vec<FieldError> {
    let why = "must be either unset or set to a non-empty string";
    let (mut errors, mut given) = node(spec, why, path);
    let terms = items(&spec["nodeSelector"], "nodeSelectorTerms");
    if has(spec, "nodeSelector") && terms.len() != 1 {
        let place = path.field("nodeSelector");
        let why = "must have exactly one node selector term";
        let place = place.field("nodeSelectorTerms");
        errors.push(FieldError::invalid(place, &json!(terms), why));
    }
    errors.extend(flag(spec, "perDeviceNodeSelection", &mut given, path));
    let why = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is \
               required";
    errors.extend(match given.len() {
        0 => Some(FieldError::required(path, why)),
        1 => None,
        _ => {
            let why = format!("{why}, but multiple fields are set");
            Some(FieldError::invalid(path, &shown(&given), &why))
        }
    });
    errors
}

/// Returns the errors in a node, a selector or the flag for all nodes, and the fields that are set.
fn node(object: &Value, empty: &str, path: Path<'_>) -> (Vec<FieldError>, Vec<&'static str>) {
    let (mut errors, mut given) = (Vec::new(), Vec::new());
    let (name, place) = (text(object, "nodeName"), path.field("nodeName"));
    if !name.is_empty() {
        given.push("nodeName");
        errors.extend(Syntax::DnsSubdomain.errors(name, place));
    } else if has(object, "nodeName") {
        errors.push(FieldError::invalid(place, &json!(""), empty));
    }
    if has(object, "nodeSelector") {
        given.push("nodeSelector");
        errors.extend(node_selector(&object["nodeSelector"], path.field("nodeSelector")));
    }
    errors.extend(flag(object, "allNodes", &mut given, path));
    (errors, given)
}

fn flag(
    object: &Value,
    field: &'static str,
    given: &mut Vec<&'static str>,
    path: Path<'_>,
) -> Option<FieldError> {
    if object[field] == true {
        given.push(field);
    }
    let why = "must be either unset or set to true";
    let wrong = object[field] == false;
    wrong.then(|| FieldError::invalid(path.field(field), &json!(false), why))
}

fn shown(fields: &[&str]) -> Value {
    let fields: Vec<String> = fields.iter().map(|field| format!("`{field}`")).collect();
    json!(format!("{{{}}}", fields.join(", ")))
}

fn pool(pool: &Value, path: Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let limits = [
        ("resourceSliceCount", 1, "must be greater than zero"),
        ("generation", 0, "must be greater than or equal to zero"),
    ];
    for (field, least, why) in limits {
        let count = pool[field].as_i64().unwrap_or_default();
        if count < least {
            errors.push(FieldError::invalid(path.field(field), &json!(count), why));
        }
    }
    errors
}

fn device(device: &Value, per_device: bool, path: Path<'_>) -> Vec<FieldError> {
    let mut errors = entries(device, path);
    let why = "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when \
               `perDeviceNodeSelection` is set to true in the ResourceSlice spec";
    if per_device {
        let (wrong, given) = node(device, "must not be empty", path);
        errors.extend(wrong);
        errors.extend(match given.len() {
            0 => Some(FieldError::required(path, why)),
            1 => None,
            _ => Some(FieldError::invalid(path, &shown(&given), why)),
        });
    } else if ["nodeName", "nodeSelector", "allNodes"].iter().any(|field| has(device, field)) {
        let why = "`nodeName`, `nodeSelector` and `allNodes` can only be set if \
                   `perDeviceNodeSelection` is set to true in the ResourceSlice spec";
        errors.push(FieldError::invalid(path, &Value::Null, why));
    }
    errors.extend(binding_conditions(device, path));
    errors
}

/// Returns the errors in attributes and capacities.
fn entries(device: &Value, path: Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let count = |field: &str| device[field].as_object().map_or(0, serde_json::Map::len);
    let all = count("attributes") + count("capacity");
    if all > ENTRIES {
        let why =
            format!("the total number of attributes and capacities must not exceed {ENTRIES}");
        errors.push(FieldError::invalid(path, &json!(all), &why));
    }
    if count("attributes") > ATTRIBUTES {
        let why = format!("the total number of attribute values must not exceed {ATTRIBUTES}");
        errors.push(FieldError::invalid(path, &json!(count("attributes")), &why));
    }
    let is_shared = device["allowMultipleAllocations"] == true;
    for field in ["attributes", "capacity"] {
        let place = path.field(field);
        for (name, value) in device[field].as_object().into_iter().flatten() {
            errors.extend(qualified_name(name, place));
            let key = shortened(name);
            let at = place.key(&key);
            errors.extend(match field {
                "attributes" => attribute(value, at),
                _ => capacity(value, is_shared, at),
            });
        }
    }
    errors
}

fn attribute(attribute: &Value, path: Path<'_>) -> Vec<FieldError> {
    let mut errors = too_long(text(attribute, "string"), TEXT, path.field("string"));
    let (version, place) = (text(attribute, "version"), path.field("version"));
    if has(attribute, "version") && !is_version(version) {
        let why = "must be a string compatible with semver.org spec 2.0.0";
        errors.push(FieldError::invalid(place, &json!(version), why));
    }
    errors.extend(too_long(version, TEXT, place));
    let kinds = ["bool", "int", "string", "version"];
    let why = "exactly one value must be specified";
    match kinds.iter().filter(|kind| has(attribute, kind)).count() {
        0 => errors.push(FieldError::invalid(path, &json!(""), why)),
        1 => {}
        _ => errors.push(FieldError::invalid(path, attribute, why)),
    }
    errors
}

/// Returns a key without its middle if it is too long for a path.
fn shortened(key: &str) -> String {
    if key.len() <= KEY {
        return key.to_owned();
    }
    let rest = KEY - "...".len();
    let start = key.floor_char_boundary(rest.div_ceil(2));
    let end = key.ceil_char_boundary(key.len() - rest / 2);
    format!("{}...{}", &key[..start], &key[end..])
}

fn counters(owner: &Value, path: Path<'_>) -> Vec<FieldError> {
    let place = path.field("counters");
    let Some(counters) = owner["counters"].as_object() else { return Vec::new() };
    if counters.len() as u64 > COUNTERS {
        return vec![FieldError::too_many(place, counters.len(), COUNTERS)];
    }
    counters.keys().flat_map(|name| Syntax::DnsLabel.errors(name, place)).collect()
}

/// Returns the errors in `bindingConditions` and `bindingFailureConditions`.
pub(super) fn binding_conditions(owner: &Value, path: Path<'_>) -> Vec<FieldError> {
    let fields = ["bindingConditions", "bindingFailureConditions"];
    let [needed, failures] = fields.map(|field| items(owner, field));
    let mut errors = Vec::new();
    for (field, list) in fields.iter().zip([needed, failures]) {
        let place = path.field(field);
        for (index, name) in list.iter().enumerate() {
            if list[..index].contains(name) {
                errors.push(FieldError::duplicate(place.index(index), name));
            }
        }
    }
    let place = path.field("bindingFailureConditions");
    for (index, name) in failures.iter().enumerate().filter(|(_, name)| needed.contains(name)) {
        let why = "bindingFailureConditions must not overlap with bindingConditions";
        errors.push(FieldError::invalid(place.index(index), name, why));
    }
    if needed.is_empty() != failures.is_empty() {
        let [absent, given] = if needed.is_empty() { fields } else { [fields[1], fields[0]] };
        let why = format!("{absent} are required to use {given}");
        errors.push(FieldError::invalid(path.field(absent), &Value::Null, &why));
    }
    errors
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::super::tests::mistakes;
    use super::*;

    #[rstest]
    #[case(json!({"nodeName": "a"}), &[])]
    #[case(json!({"allNodes": true}), &[])]
    #[case(json!({}), &["x"])]
    #[case(json!({"nodeName": "", "allNodes": false}), &["x.nodeName", "x.allNodes", "x"])]
    #[case(json!({"nodeName": "A", "allNodes": true}), &["x.nodeName", "x"])]
    #[case(json!({"nodeSelector": {}}),
           &["x.nodeSelector.nodeSelectorTerms", "x.nodeSelector.nodeSelectorTerms"])]
    #[case(json!({"allNodes": true, "sharedCounters": [{}], "devices": [{}]}), &["x"])]
    #[case(json!({"allNodes": true, "devices": vec![json!({"taints": [{}]}); 65]}),
           &["x.devices"])]
    #[case(json!({"allNodes": true, "devices": [{"allNodes": true}]}), &["x.devices[0]"])]
    #[case(json!({"perDeviceNodeSelection": true, "devices": [{"allNodes": true}, {}]}),
           &["x.devices[1]"])]
    #[case(json!({"allNodes": true, "devices": [{"attributes": {"a": {}, "1": {"int": 1}}}]}),
           &["x.devices[0].attributes", "x.devices[0].attributes[a]"])]
    fn slices_are_checked(#[case] spec: Value, #[case] expected: &[&str]) {
        let mut mistakes = mistakes("ResourceSliceSpec", &spec);
        mistakes.sort_by_key(|field| (field == "x", field.clone()));
        let mut expected = expected.to_vec();
        expected.sort_by_key(|field| (*field == "x", (*field).to_owned()));
        assert_eq!(mistakes, expected);
    }

    #[rstest]
    #[case("CounterSet", json!({"counters": {"a": {}, "B": {}}}), &["x.counters"])]
    #[case("ResourcePool", json!({"resourceSliceCount": 1}), &[])]
    #[case("ResourcePool", json!({"generation": -1}), &["x.resourceSliceCount", "x.generation"])]
    fn parts_of_slices_are_checked(
        #[case] name: &str,
        #[case] value: Value,
        #[case] expected: &[&str],
    ) {
        assert_eq!(mistakes(name, &value), expected);
    }

    #[rstest]
    #[case(json!({"int": 0}), &[])]
    #[case(json!({"version": "1.2.3-rc.1+b"}), &[])]
    #[case(json!({"version": "1.2"}), &["version"])]
    #[case(json!({"version": "1.2.3-01"}), &["version"])]
    #[case(json!({"string": "a".repeat(65)}), &["string"])]
    #[case(json!({"string": "a", "bool": false}), &[""])]
    fn an_attribute_has_one_value(#[case] value: Value, #[case] expected: &[&str]) {
        let errors = attribute(&value, Path::Root);
        assert_eq!(errors.iter().map(|error| &*error.field).collect::<Vec<_>>(), expected);
    }

    #[rstest]
    #[case(json!({"bindingConditions": ["a"], "bindingFailureConditions": ["b"]}), &[])]
    #[case(json!({"bindingConditions": ["a"]}), &["bindingFailureConditions"])]
    #[case(json!({"bindingFailureConditions": ["a"]}), &["bindingConditions"])]
    #[case(json!({"bindingConditions": ["a", "a"], "bindingFailureConditions": ["a"]}),
           &["bindingConditions[1]", "bindingFailureConditions[0]"])]
    fn conditions_of_a_binding_differ(#[case] value: Value, #[case] expected: &[&str]) {
        let errors = binding_conditions(&value, Path::Root);
        assert_eq!(errors.iter().map(|error| &*error.field).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn long_keys_lose_their_middle() {
        let key = shortened(&"a".repeat(200));
        assert_eq!((key.len(), key.contains("...")), (KEY, true));
    }
}
