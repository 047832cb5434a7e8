//! Checks of definitions that several types share, such as containers and volumes.
//!
//! A check sees the value of its definition alone. The schema calls it wherever the definition is
//! used. Mistakes that data can express are rules of the crate `api`.

mod admission;
mod allocations;
mod capacities;
mod claims;
mod conditions;
mod containers;
mod devices;
mod environment;
mod flows;
mod jobs;
mod limits;
mod metrics;
mod objects;
mod operating_system;
mod pod_resources;
mod quotas;
mod resources;
mod scheduling;
mod security;
mod selectors;
pub(super) mod statuses;
mod storage;
mod volumes;

pub(super) use self::allocations::{forget_devices, validate_status};
pub(super) use self::conditions::conditions;
pub(super) use self::containers::port_number_or_name;
pub(super) use self::jobs::count_indexes;
pub(super) use self::pod_resources::aggregate;
pub(super) use self::resources::quantity_of;
pub(super) use self::storage::changed_drivers;

use serde_json::Value;

use kubeproof_apimachinery::object::validation::syntax::Syntax;
use kubeproof_apimachinery::schema::{Check, FieldError, Path};

/// Returns the checks of all definitions, with the published names.
pub(super) fn all() -> impl Iterator<Item = (&'static str, Check)> {
    let parts = [
        admission::CHECKS,
        claims::CHECKS,
        containers::CHECKS,
        devices::CHECKS,
        environment::CHECKS,
        flows::CHECKS,
        jobs::CHECKS,
        limits::CHECKS,
        metrics::CHECKS,
        objects::CHECKS,
        operating_system::CHECKS,
        pod_resources::CHECKS,
        quotas::CHECKS,
        resources::CHECKS,
        scheduling::CHECKS,
        security::CHECKS,
        selectors::CHECKS,
        storage::CHECKS,
        volumes::CHECKS,
    ];
    parts.into_iter().flatten().copied()
}

/// The checks of a file.
type Checks = &'static [(&'static str, Check)];

/// Returns a list. An absent one is empty.
fn items<'a>(object: &'a Value, field: &str) -> &'a [Value] {
    object.get(field).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// Returns a text. An absent one is empty.
fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object.get(field).and_then(Value::as_str).unwrap_or_default()
}

fn has(object: &Value, field: &str) -> bool {
    object.get(field).is_some_and(|value| !value.is_null())
}

/// Calls a function with each container of a pod and its path.
fn each_container(spec: &Value, path: Path<'_>, mut visit: impl FnMut(&Value, Path<'_>)) {
    for list in ["initContainers", "containers", "ephemeralContainers"] {
        let path = path.field(list);
        for (index, container) in items(spec, list).iter().enumerate() {
            visit(container, path.index(index));
        }
    }
}

/// Returns the mistakes in a text, also if it is empty.
fn syntax(object: &Value, field: &str, syntax: Syntax, path: Path<'_>) -> Vec<FieldError> {
    syntax.errors(text(object, field), path.field(field))
}

/// Returns the errors of an object that must have exactly one of these members.
fn one_of(object: &Value, members: &[&str], what: &str, path: Path<'_>) -> Vec<FieldError> {
    let mut given = members.iter().filter(|member| has(object, member));
    if given.next().is_none() {
        return vec![FieldError::required(path, &format!("must specify a {what} type"))];
    }
    let why = format!("may not specify more than 1 {what} type");
    given.map(|member| FieldError::forbidden(path.field(member), &why)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use kubeproof_api::Version;

    #[test]
    fn each_check_has_its_definition() {
        for (name, _) in all() {
            assert!(Version::default().definitions().get(name).is_some(), "{name}");
        }
    }

    /// Returns the fields with mistakes in a value of a definition.
    pub(super) fn mistakes(name: &str, value: &Value) -> Vec<String> {
        let checks = all().filter(|(known, _)| known.rsplit('.').next() == Some(name));
        let errors = checks.flat_map(|(_, check)| check(value, Path::Root.field("x")));
        errors.map(|error| error.field).collect()
    }
}
