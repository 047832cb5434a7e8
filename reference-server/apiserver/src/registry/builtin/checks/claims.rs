//! Requests for devices: claims, their templates, and classes of devices.

use std::collections::{HashMap, HashSet};

use serde_json::{Value, json};

use super::resources::is_extended;
use super::{Checks, has, items, text};
use kubeproof_apimachinery::object::validation::names::label_value;
use kubeproof_apimachinery::object::validation::syntax::Syntax;
use kubeproof_apimachinery::schema::rules::device::selector_cost;
use kubeproof_apimachinery::schema::{FieldError, Path};

pub(super) const CHECKS: Checks = &[
    ("io.k8s.api.resource.v1.CELDeviceSelector", selector),
    ("io.k8s.api.resource.v1.DeviceClaim", claim),
    ("io.k8s.api.resource.v1.DeviceClassSpec", class),
    ("io.k8s.api.resource.v1.DeviceConstraint", constraint),
    ("io.k8s.api.resource.v1.DeviceRequest", request),
    ("io.k8s.api.resource.v1.DeviceSubRequest", amount),
    ("io.k8s.api.resource.v1.DeviceToleration", toleration),
    ("io.k8s.api.resource.v1.ExactDeviceRequest", amount),
    ("io.k8s.api.resource.v1.OpaqueDeviceConfiguration", configuration),
];

/// The maximum number of requests of a claim, and of references to them.
pub(super) const REQUESTS: usize = 32;
/// The maximum length of parameters and of the data of a device.
const PARAMETERS: u64 = 10 * 1024;
/// The maximum length of a selector.
const SELECTOR: u64 = 10 * 1024;
/// The maximum cost of a selector.
const SELECTOR_COST: u64 = 1_000_000;
/// The maximum length of the name of an attribute or capacity, without its domain.
const IDENTIFIER: usize = 32;
/// The maximum length of the name of a driver.
const DRIVER: usize = 63;

/// The names of the requests of a claim, with those of their alternatives.
pub(super) struct RequestNames<'v>(HashMap<&'v str, HashSet<&'v str>>);

impl<'v> RequestNames<'v> {
    pub(super) fn of(devices: &'v Value) -> Self {
        let requests = items(devices, "requests").iter();
        let named = requests.map(|request| {
            let alternatives = items(request, "firstAvailable").iter();
            (text(request, "name"), alternatives.map(|it| text(it, "name")).collect())
        });
        Self(named.collect())
    }

    fn has(&self, reference: &str) -> bool {
        match reference.split_once('/') {
            None => self.0.contains_key(reference),
            Some((request, part)) => self.0.get(request).is_some_and(|all| all.contains(part)),
        }
    }

    /// Returns the errors in the name of a request, or of one of its alternatives.
    pub(super) fn check(&self, reference: &str, path: Path<'_>) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let is_name = reference.split('/').count() <= 2;
        if is_name {
            let parts = reference.split('/');
            errors.extend(parts.flat_map(|part| Syntax::DnsLabel.errors(part, path)));
        }
        if !is_name || !self.has(reference) {
            let why = "must be the name of a request in the claim or the name of a request and a \
                       subrequest separated by '/'";
            errors.push(FieldError::invalid(path, &json!(reference), why));
        }
        errors
    }

    fn check_all(&self, owner: &Value, path: Path<'_>) -> Vec<FieldError> {
        let (list, place) = (items(owner, "requests"), path.field("requests"));
        let checked = list.iter().enumerate().filter(|_| list.len() <= REQUESTS);
        let errors = checked.flat_map(|(index, name)| {
            self.check(name.as_str().unwrap_or_default(), place.index(index))
        });
        errors.collect()
    }
}

/// Returns the errors in references to requests.
fn claim(devices: &Value, path: Path<'_>) -> Vec<FieldError> {
    let names = RequestNames::of(devices);
    let mut errors = Vec::new();
    for field in ["constraints", "config"] {
        let (list, place) = (items(devices, field), path.field(field));
        for (index, item) in list.iter().enumerate().filter(|_| list.len() <= REQUESTS) {
            errors.extend(names.check_all(item, place.index(index)));
        }
    }
    errors
}

fn request(request: &Value, path: Path<'_>) -> Vec<FieldError> {
    let why = "exactly one of `exactly` or `firstAvailable` is required";
    let given = (has(request, "exactly"), !items(request, "firstAvailable").is_empty());
    match given {
        (false, false) => vec![FieldError::required(path, why)],
        (true, true) => {
            let why = format!("{why}, but multiple fields are set");
            vec![FieldError::invalid(path, &Value::Null, &why)]
        }
        _ => Vec::new(),
    }
}

fn amount(request: &Value, path: Path<'_>) -> Vec<FieldError> {
    let count = request["count"].as_i64().unwrap_or_default();
    let why = match text(request, "allocationMode") {
        "All" if count != 0 => "must not be specified when allocationMode is 'All'",
        "ExactCount" if count <= 0 => "must be greater than zero",
        _ => return Vec::new(),
    };
    vec![FieldError::invalid(path.field("count"), &json!(count), why)]
}

fn selector(selector: &Value, path: Path<'_>) -> Vec<FieldError> {
    let place = path.field("expression");
    let expression = text(selector, "expression");
    if expression.len() as u64 > SELECTOR {
        return vec![FieldError::too_long(place, SELECTOR)];
    }
    match selector_cost(expression) {
        Err(why) => vec![FieldError::invalid(place, &json!(expression), &why)],
        Ok(cost) if cost > SELECTOR_COST => {
            vec![FieldError::forbidden(place, "too complex, exceeds cost limit")]
        }
        Ok(_) => Vec::new(),
    }
}

fn toleration(toleration: &Value, path: Path<'_>) -> Vec<FieldError> {
    let (value, place) = (text(toleration, "value"), path.field("value"));
    let wrong = match text(toleration, "operator") {
        "Exists" if !value.is_empty() => vec!["must be empty for operator `Exists`".to_owned()],
        "Equal" => label_value(value),
        _ => Vec::new(),
    };
    wrong.iter().map(|why| FieldError::invalid(place, &json!(value), why)).collect()
}

fn constraint(constraint: &Value, path: Path<'_>) -> Vec<FieldError> {
    let fields = ["matchAttribute", "distinctAttribute"];
    if let Some(field) = fields.iter().find(|field| has(constraint, field)) {
        return fully_qualified_name(text(constraint, field), path.field(field));
    }
    let why = "exactly one of \"matchAttribute\" or \"distinctAttribute\" is required, but \
               multiple fields are set";
    vec![FieldError::required(path, why)]
}

fn configuration(configuration: &Value, path: Path<'_>) -> Vec<FieldError> {
    json_length(&configuration["parameters"], path.field("parameters")).into_iter().collect()
}

/// Returns the error of a configuration for a driver, without a schema.
pub(super) fn opaque(owner: &Value, path: Path<'_>) -> Vec<FieldError> {
    let (opaque, place) = (&owner["opaque"], path.field("opaque"));
    if opaque.is_null() {
        return vec![FieldError::required(place, "")];
    }
    let mut errors = driver_name(text(opaque, "driver"), place.field("driver"));
    let (parameters, at) = (&opaque["parameters"], place.field("parameters"));
    if parameters.is_null() {
        errors.push(FieldError::required(at, ""));
    }
    errors.extend(json_object(parameters, at));
    errors
}

/// Returns the error of a value that must be a JSON object. It may be absent.
pub(super) fn json_object(value: &Value, path: Path<'_>) -> Option<FieldError> {
    let why = "must be a valid JSON object";
    let not_an_object = || FieldError::invalid(path, &json!("<value omitted>"), why);
    let is_right = value.is_object() || value.is_null();
    json_length(value, path).or_else(|| (!is_right).then(not_an_object))
}

fn json_length(value: &Value, path: Path<'_>) -> Option<FieldError> {
    let length = value.to_string().len() as u64;
    (length > PARAMETERS).then(|| FieldError::too_long(path, PARAMETERS))
}

/// Returns the errors in the name of a driver, without a schema.
pub(super) fn driver_name(name: &str, path: Path<'_>) -> Vec<FieldError> {
    if name.is_empty() {
        return vec![FieldError::required(path, "")];
    }
    let mut errors = too_long(name, DRIVER, path);
    errors.extend(Syntax::DriverName.errors(name, path));
    errors
}

/// Returns the errors in the name of an attribute or capacity: `name` or `example.com/name`.
pub(super) fn qualified_name(name: &str, path: Path<'_>) -> Vec<FieldError> {
    let (domain, name) = match name.split('/').collect::<Vec<_>>()[..] {
        [name] => return identifier(name, path),
        [domain, name] => (domain, name),
        // kube-apiserver accepts more slashes.
        _ => return Vec::new(),
    };
    let mut errors = if domain.is_empty() {
        vec![FieldError::invalid(path, &json!(""), "the domain must not be empty")]
    } else {
        driver_name(domain, path)
    };
    if name.is_empty() {
        errors.push(FieldError::invalid(path, &json!(""), "the name must not be empty"));
    } else {
        errors.extend(identifier(name, path));
    }
    errors
}

fn fully_qualified_name(name: &str, path: Path<'_>) -> Vec<FieldError> {
    let mut errors = qualified_name(name, path);
    if !name.contains('/') {
        let why = "a fully qualified name must be a domain and a name separated by a slash";
        errors.push(FieldError::invalid(path, &json!(name), why));
    }
    errors
}

fn identifier(name: &str, path: Path<'_>) -> Vec<FieldError> {
    let mut errors = too_long(name, IDENTIFIER, path);
    errors.extend(Syntax::CIdentifier.errors(name, path));
    errors
}

/// Returns the error of a text with more than this number of bytes.
pub(super) fn too_long(text: &str, limit: usize, path: Path<'_>) -> Vec<FieldError> {
    let error = (text.len() > limit).then(|| FieldError::too_long(path, limit as u64));
    error.into_iter().collect()
}

fn class(spec: &Value, path: Path<'_>) -> Vec<FieldError> {
    let name = text(spec, "extendedResourceName");
    if !has(spec, "extendedResourceName") || is_extended(name) {
        return Vec::new();
    }
    let why = "must be a valid extended resource name";
    vec![FieldError::invalid(path.field("extendedResourceName"), &json!(name), why)]
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::super::tests::mistakes;
    use super::*;

    #[rstest]
    #[case("DeviceRequest", json!({"exactly": {}}), &[])]
    #[case("DeviceRequest", json!({}), &["x"])]
    #[case("DeviceRequest", json!({"exactly": {}, "firstAvailable": [{}]}), &["x"])]
    #[case("ExactDeviceRequest", json!({"allocationMode": "All", "count": 1}), &["x.count"])]
    #[case("DeviceSubRequest", json!({"allocationMode": "ExactCount"}), &["x.count"])]
    #[case("DeviceSubRequest", json!({"allocationMode": "ExactCount", "count": 1}), &[])]
    #[case("DeviceToleration", json!({"operator": "Exists", "value": "a"}), &["x.value"])]
    #[case("DeviceToleration", json!({"operator": "Equal", "value": "a b"}), &["x.value"])]
    #[case("DeviceConstraint", json!({}), &["x"])]
    #[case("DeviceConstraint", json!({"matchAttribute": "a.b/c"}), &[])]
    #[case("DeviceConstraint", json!({"matchAttribute": "c"}), &["x.matchAttribute"])]
    #[case("DeviceConstraint", json!({"distinctAttribute": "/"}),
           &["x.distinctAttribute", "x.distinctAttribute"])]
    #[case("DeviceClassSpec", json!({"extendedResourceName": "example.com/gpu"}), &[])]
    #[case("DeviceClassSpec", json!({"extendedResourceName": "cpu"}),
           &["x.extendedResourceName"])]
    #[case("CELDeviceSelector", json!({"expression": "device.driver == 'a'"}), &[])]
    #[case("CELDeviceSelector", json!({"expression": "device.name"}), &["x.expression"])]
    #[case("CELDeviceSelector", json!({"expression": " ".repeat(10 * 1024 + 1)}),
           &["x.expression"])]
    #[case("OpaqueDeviceConfiguration", json!({"parameters": {"a": "b".repeat(10 * 1024)}}),
           &["x.parameters"])]
    fn requests_are_checked(#[case] name: &str, #[case] value: Value, #[case] expected: &[&str]) {
        assert_eq!(mistakes(name, &value), expected);
    }

    #[rstest]
    #[case("a", &[])]
    #[case("b/c", &[])]
    #[case("b", &[])]
    #[case("a/c", &["x.config[0].requests[0]"])]
    #[case("d", &["x.config[0].requests[0]"])]
    #[case("a/b/c", &["x.config[0].requests[0]"])]
    #[case("A", &["x.config[0].requests[0]", "x.config[0].requests[0]"])]
    fn references_name_a_request(#[case] reference: &str, #[case] expected: &[&str]) {
        let requests =
            json!([{"name": "a", "exactly": {}}, {"name": "b", "firstAvailable": [{"name": "c"}]}]);
        let devices = json!({"requests": requests, "config": [{"requests": [reference]}]});
        assert_eq!(mistakes("DeviceClaim", &devices), expected);
    }

    #[rstest]
    #[case("name", 0)]
    #[case("a.example/name", 0)]
    #[case("a/b/c", 0)]
    #[case("", 1)]
    #[case("a/", 1)]
    #[case("a b/1", 2)]
    #[case("abcdefghijklmnopqrstuvwxyz_abcdef", 1)]
    fn attributes_have_qualified_names(#[case] name: &str, #[case] expected: usize) {
        assert_eq!(qualified_name(name, Path::Root).len(), expected);
    }

    #[rstest]
    #[case(json!({}), &["x.opaque"])]
    #[case(json!({"opaque": {"driver": "", "parameters": null}}),
           &["x.opaque.driver", "x.opaque.parameters"])]
    #[case(json!({"opaque": {"driver": "A.b", "parameters": "a"}}), &["x.opaque.parameters"])]
    #[case(json!({"opaque": {"driver": "a.b", "parameters": {}}}), &[])]
    fn a_configuration_is_for_a_driver(#[case] value: Value, #[case] expected: &[&str]) {
        let errors = opaque(&value, Path::Root.field("x"));
        assert_eq!(errors.iter().map(|error| &*error.field).collect::<Vec<_>>(), expected);
    }
}
