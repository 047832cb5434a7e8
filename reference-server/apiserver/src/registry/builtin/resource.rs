//! The group `resource.k8s.io/v1`: dynamic resource allocation.

use std::sync::Arc;

use serde_json::{Value, json};

use super::checks::{forget_devices, validate_status};
use super::data::{hooks, resource};
use super::{BuiltinType, FieldLabel, Hooks, immutable, take_status, warnings};
use crate::registry::strategy::{Context, Strategy, Update};
use kubeproof_apimachinery::object::validation::metadata::{validate_annotations, validate_labels};
use kubeproof_apimachinery::object::{Object, timestamp};
use kubeproof_apimachinery::schema::{FieldError, Path};
use kubeproof_apimachinery::status::{ApiError, Subject};
use kubeproof_apimachinery::table::column::{Cell, age, column};
use kubeproof_storage::Key;

const GROUP: &str = "resource.k8s.io";
/// The label of the namespaces whose claims may have admin access.
const ADMIN_ACCESS: &str = "resource.kubernetes.io/admin-access";

pub(super) fn types() -> Vec<BuiltinType> {
    vec![device_classes(), resource_claims(), resource_claim_templates(), resource_slices()]
}

fn device_classes() -> BuiltinType {
    resource(GROUP, "v1", "deviceclasses")
}

fn resource_claims() -> BuiltinType {
    BuiltinType {
        has_generation: false,
        columns: vec![column("State", "string", Cell::Computed(claim_state)), age()],
        hooks: Hooks {
            default: |claim| {
                complete_requests(&mut claim["spec"]);
                let reports = claim.pointer_mut("/status/devices").and_then(Value::as_array_mut);
                reports.into_iter().flatten().for_each(|report| write_null(report, "conditions"));
            },
            validate_update: whole_spec,
            validate_status,
            prepare_status_update: |new, old| {
                take_status(new, old);
                forget_devices(new, old);
            },
            status_only: true,
            // The spec never changes, so kube-apiserver does not check it again.
            checks_updates: false,
            is_new_generation: |_, _| false,
            ..hooks(true)
        },
        strategy: || Arc::new(ClaimStrategy { kind: "ResourceClaim", spec: "/spec" }),
        ..resource(GROUP, "v1", "resourceclaims")
    }
}

fn resource_claim_templates() -> BuiltinType {
    BuiltinType {
        has_generation: false,
        hooks: Hooks {
            default: |template| complete_requests(&mut template["spec"]["spec"]),
            validate: validate_template,
            validate_update: whole_spec,
            is_new_generation: |_, _| false,
            ..Hooks::NONE
        },
        strategy: || Arc::new(ClaimStrategy { kind: "ResourceClaimTemplate", spec: "/spec/spec" }),
        ..resource(GROUP, "v1", "resourceclaimtemplates")
    }
}

/// Permits admin access to devices only in namespaces with a label.
#[derive(Debug)]
struct ClaimStrategy {
    kind: &'static str,
    /// The JSON pointer to the spec of a claim.
    spec: &'static str,
}

impl Strategy for ClaimStrategy {
    fn begin_create(
        &self,
        context: Context<'_>,
        new: &mut Value,
        _dry_run: bool,
    ) -> Result<(), ApiError> {
        let devices = &new.pointer(self.spec).unwrap_or(&Value::Null)["devices"];
        let wants = |request: &Value| request["exactly"]["adminAccess"] == true;
        match position(&devices["requests"], wants) {
            Some(index) => {
                self.check_admin(context, new, &format!("spec.devices.requests[{index}]"))
            }
            None => Ok(()),
        }
    }

    fn begin_update(&self, context: Context<'_>, update: Update<'_>) -> Result<(), ApiError> {
        let granted = |claim: &Value| {
            let devices = &claim["status"]["allocation"]["devices"];
            position(&devices["results"], |result| result["adminAccess"] == true)
        };
        match granted(update.new) {
            Some(index) if granted(update.old).is_none() => {
                let place = format!("status.allocation.devices.results[{index}]");
                self.check_admin(context, update.new, &place)
            }
            _ => Ok(()),
        }
    }
}

impl ClaimStrategy {
    fn check_admin(
        &self,
        context: Context<'_>,
        object: &Value,
        place: &str,
    ) -> Result<(), ApiError> {
        let key = Key::new("", object.meta("namespace"));
        let namespace = context
            .core("namespaces")
            .and_then(|ty| Some(ty.load(&*context.store.get(&ty.table, &key)?)));
        if namespace.is_some_and(|it| it["metadata"]["labels"][ADMIN_ACCESS] == "true") {
            return Ok(());
        }
        let why = format!(
            "admin access to devices requires the `{ADMIN_ACCESS}: true` label on the containing \
             namespace"
        );
        let error = FieldError::forbidden(format!("{place}.adminAccess"), &why);
        let subject = Subject { group: GROUP, word: self.kind };
        Err(ApiError::invalid(subject, object.meta("name"), &[error]))
    }
}

fn position(list: &Value, matches: impl Fn(&Value) -> bool) -> Option<usize> {
    list.as_array()?.iter().position(matches)
}

const SLICE_LABELS: &[FieldLabel] = &[
    FieldLabel { label: "spec.nodeName", pointer: "/spec/nodeName", absent: "" },
    FieldLabel { label: "spec.driver", pointer: "/spec/driver", absent: "" },
];

fn resource_slices() -> BuiltinType {
    BuiltinType {
        field_labels: SLICE_LABELS,
        columns: vec![
            column(
                "Node",
                "string",
                Cell::Computed(|slice| {
                    json!(slice["spec"]["nodeName"].as_str().unwrap_or("<all>"))
                }),
            ),
            column("Driver", "string", Cell::Pointer("/spec/driver")),
            column("Pool", "string", Cell::Pointer("/spec/pool/name")),
            age(),
        ],
        hooks: Hooks {
            default: complete_devices,
            validate_update: |new, old| {
                immutable(new, old, &["spec.driver", "spec.nodeName", "spec.pool.name"])
            },
            warn: warnings::cluster::resource_slice,
            ..Hooks::NONE
        },
        ..resource(GROUP, "v1", "resourceslices")
    }
}

/// Writes an absent field as null, as kube-apiserver does for these fields.
fn write_null(object: &mut Value, field: &str) {
    if let Some(fields) = object.as_object_mut() {
        fields.entry(field).or_insert(Value::Null);
    }
}

/// A request for a fixed number of devices is for one device.
fn complete_requests(spec: &mut Value) {
    write_null(&mut spec["devices"], "requests");
    let requests = spec["devices"]["requests"].as_array_mut().into_iter().flatten();
    for request in requests.filter_map(Value::as_object_mut) {
        for (name, field) in request {
            let parts = match (name.as_str(), field) {
                ("exactly", exactly) => std::slice::from_mut(exactly),
                ("firstAvailable", Value::Array(list)) => list.as_mut_slice(),
                _ => continue,
            };
            for part in parts.iter_mut().filter(|part| part.is_object()) {
                if part["allocationMode"] == "ExactCount" && part["count"].is_null() {
                    part["count"] = json!(1);
                }
            }
        }
    }
}

/// A taint without a time is new.
fn complete_devices(slice: &mut Value) {
    let devices = slice.pointer_mut("/spec/devices").and_then(Value::as_array_mut);
    for device in devices.into_iter().flatten() {
        let taints = device.get_mut("taints").and_then(Value::as_array_mut);
        for taint in taints.into_iter().flatten().filter_map(Value::as_object_mut) {
            taint.entry("timeAdded").or_insert_with(|| json!(timestamp(0)));
        }
        let capacities = device.get_mut("capacity").and_then(Value::as_object_mut);
        for capacity in capacities.into_iter().flat_map(serde_json::Map::values_mut) {
            if let Some(policy) = capacity.get_mut("requestPolicy") {
                write_null(policy, "default");
            }
        }
    }
}

fn validate_template(template: &Value) -> Vec<FieldError> {
    let root = Path::Root;
    let spec = root.field("spec");
    let path = spec.field("metadata");
    let metadata = &template["spec"]["metadata"];
    let mut errors = validate_annotations(metadata.get("annotations"), path.field("annotations"));
    errors.extend(validate_labels(metadata.get("labels"), path.field("labels")));
    let others = metadata.as_object().into_iter().flatten();
    let others = others.filter(|(name, value)| {
        !matches!(name.as_str(), "annotations" | "labels") && !value.is_null()
    });
    errors.extend(others.map(|(name, _)| FieldError::forbidden(path.field(name), "cannot be set")));
    errors
}

fn whole_spec(new: &Value, old: &Value) -> Vec<FieldError> {
    immutable(new, old, &["spec"])
}

fn claim_state(claim: &Value) -> Value {
    let status = &claim["status"];
    let is_reserved = status["reservedFor"].as_array().is_some_and(|users| !users.is_empty());
    let mut words = Vec::new();
    if !claim["metadata"]["deletionTimestamp"].is_null() {
        words.push("deleted");
    }
    match (status["allocation"].is_object(), is_reserved) {
        (false, _) => words.push("pending"),
        (true, false) => words.push("allocated"),
        (true, true) => words.extend(["allocated", "reserved"]),
    }
    json!(words.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(errors: Vec<FieldError>) -> Vec<String> {
        errors.into_iter().map(|error| error.field).collect()
    }

    #[test]
    fn requests_are_for_one_device() {
        let claim = |request: Value| json!({"spec": {"devices": {"requests": [request]}}});
        let ty = resource_claims();
        let completed = |request: Value| {
            let mut claim = claim(request);
            ty.schema().apply_defaults(&mut claim);
            (ty.hooks.default)(&mut claim);
            claim
        };
        let exactly = json!({"deviceClassName": "c"});
        let one = completed(json!({"name": "r", "exactly": exactly}));
        assert_eq!(one["spec"]["devices"]["requests"][0]["exactly"]["count"], 1);
        assert_eq!(claim_state(&one), "pending");
        let parts = json!([{"allocationMode": "All"}, {}]);
        let choice = completed(json!({"name": "r", "firstAvailable": parts}));
        let parts = &choice["spec"]["devices"]["requests"][0]["firstAvailable"];
        assert_eq!((&parts[0]["count"], &parts[1]["count"]), (&Value::Null, &json!(1)));
    }

    #[test]
    fn taints_have_a_time() {
        let taints = json!([{"key": "a"}, {"key": "b", "timeAdded": "2026-01-02T03:04:05Z"}]);
        let mut slice = json!({"spec": {"devices": [{"taints": taints}, {}]}});
        complete_devices(&mut slice);
        let taints = &slice["spec"]["devices"][0]["taints"];
        assert!(taints[0]["timeAdded"].is_string());
        assert_eq!(taints[1]["timeAdded"], "2026-01-02T03:04:05Z");
    }

    #[test]
    fn a_resource_slice_stays_in_its_pool() {
        let validate = resource_slices().hooks.validate_update;
        let slice = |driver: &str, pool: &str| {
            let spec = json!({"driver": driver, "nodeName": "n", "pool": {"name": pool}});
            json!({ "spec": spec })
        };
        let old = slice("a", "p");
        assert_eq!(fields(validate(&old, &old)), [""; 0]);
        assert_eq!(fields(validate(&slice("a", "q"), &old)), ["spec.pool.name"]);
        assert_eq!(fields(validate(&slice("b", "p"), &old)), ["spec.driver"]);
    }
}
