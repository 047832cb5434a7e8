//! The group `storage.k8s.io/v1`: classes, drivers and attachments of volumes.

use serde_json::{Value, json};

use super::checks::{changed_drivers, statuses};
use super::core::validate_inline;
use super::data::{created_at, hooks, resource};
use super::{BuiltinType, Hooks, immutable, warnings};
use kubeproof_apimachinery::object::validation::syntax::Syntax;
use kubeproof_apimachinery::schema::{FieldError, Path};
use kubeproof_apimachinery::table::column::{Cell, Column, age, column, count};

const GROUP: &str = "storage.k8s.io";

pub(super) fn types() -> Vec<BuiltinType> {
    vec![
        csi_drivers(),
        csi_nodes(),
        csi_storage_capacities(),
        storage_classes(),
        volume_attachments(),
        volume_attributes_classes(),
    ]
}

fn csi_drivers() -> BuiltinType {
    let flag = |name, pointer| column(name, "boolean", Cell::Pointer(pointer));
    BuiltinType {
        has_generation: false,
        allows_unconditional_update: false,
        columns: vec![
            flag("AttachRequired", "/spec/attachRequired"),
            flag("PodInfoOnMount", "/spec/podInfoOnMount"),
            flag("StorageCapacity", "/spec/storageCapacity"),
            column(
                "TokenRequests",
                "string",
                Cell::Computed(|driver| {
                    joined(&driver["spec"]["tokenRequests"], "audience", "<unset>")
                }),
            ),
            flag("RequiresRepublish", "/spec/requiresRepublish"),
            column(
                "Modes",
                "string",
                Cell::Computed(|driver| {
                    let modes =
                        driver["spec"]["volumeLifecycleModes"].as_array().into_iter().flatten();
                    let modes: Vec<_> = modes.filter_map(Value::as_str).collect();
                    json!(if modes.is_empty() { "<none>".to_owned() } else { modes.join(",") })
                }),
            ),
            age(),
        ],
        hooks: Hooks {
            warn: warnings::storage::csi_driver,
            validate_update: |new, old| {
                immutable(new, old, &["spec.attachRequired", "spec.volumeLifecycleModes"])
            },
            is_new_generation: |_, _| false,
            ..hooks(false)
        },
        ..resource(GROUP, "v1", "csidrivers")
    }
}

fn csi_nodes() -> BuiltinType {
    BuiltinType {
        has_generation: false,
        allows_unconditional_update: false,
        columns: vec![
            column(
                "Drivers",
                "integer",
                Cell::Computed(|node| json!(count(node, "/spec/drivers"))),
            ),
            age(),
        ],
        hooks: Hooks {
            validate_update: changed_drivers,
            is_new_generation: |_, _| false,
            ..hooks(false)
        },
        ..resource(GROUP, "v1", "csinodes")
    }
}

fn csi_storage_capacities() -> BuiltinType {
    BuiltinType {
        allows_unconditional_update: false,
        columns: vec![created_at()],
        hooks: Hooks {
            warn: warnings::storage::storage_capacity,
            validate_update: |new, old| immutable(new, old, &["nodeTopology", "storageClassName"]),
            ..hooks(false)
        },
        ..resource(GROUP, "v1", "csistoragecapacities")
    }
}

fn storage_classes() -> BuiltinType {
    BuiltinType {
        columns: vec![
            column("Provisioner", "string", Cell::Pointer("/provisioner")),
            column("ReclaimPolicy", "string", Cell::Pointer("/reclaimPolicy")),
            column("VolumeBindingMode", "string", Cell::Pointer("/volumeBindingMode")),
            column(
                "AllowVolumeExpansion",
                "string",
                Cell::Computed(|class| {
                    json!(class["allowVolumeExpansion"].as_bool().unwrap_or(false))
                }),
            ),
            age(),
        ],
        hooks: Hooks {
            validate: validate_storage_class,
            warn: warnings::storage::storage_class,
            validate_update: |new, old| {
                let fields = ["parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"];
                forbidden(new, old, &fields)
            },
            ..hooks(false)
        },
        ..resource(GROUP, "v1", "storageclasses")
    }
}

/// Returns the errors in the name of a driver. Its case does not matter.
fn validate_provisioner(class: &Value, field: &str) -> Vec<FieldError> {
    match class[field].as_str().unwrap_or_default() {
        "" => Vec::new(),
        name => Syntax::LabelKey.errors(&name.to_lowercase(), Path::Root.field(field)),
    }
}

fn validate_storage_class(class: &Value) -> Vec<FieldError> {
    let mut errors = validate_provisioner(class, "provisioner");
    errors.extend(empty_parameter(class));
    let policy = &class["reclaimPolicy"];
    if !matches!(policy.as_str(), None | Some("" | "Delete" | "Retain")) {
        let supported = ["Delete", "Retain"].map(Value::from);
        errors.push(FieldError::not_supported("reclaimPolicy", policy, &supported));
    }
    errors
}

fn empty_parameter(class: &Value) -> Option<FieldError> {
    let error = || FieldError::invalid("parameters", &json!(""), "field can not be empty.");
    class["parameters"].get("").is_some().then(error)
}

fn volume_attachments() -> BuiltinType {
    BuiltinType {
        has_generation: false,
        allows_unconditional_update: false,
        columns: vec![
            Column {
                format: "name".into(),
                ..column("Attacher", "string", Cell::Pointer("/spec/attacher"))
            },
            column("PV", "string", Cell::Pointer("/spec/source/persistentVolumeName")),
            column("Node", "string", Cell::Pointer("/spec/nodeName")),
            column(
                "Attached",
                "boolean",
                Cell::Computed(|attachment| {
                    json!(attachment["status"]["attached"].as_bool().unwrap_or(false))
                }),
            ),
            age(),
        ],
        hooks: Hooks {
            validate: validate_attachment,
            validate_update: |new, old| immutable(new, old, &["spec"]),
            validate_status: statuses::attachment,
            is_new_generation: |_, _| false,
            ..hooks(true)
        },
        ..resource(GROUP, "v1", "volumeattachments")
    }
}

fn validate_attachment(attachment: &Value) -> Vec<FieldError> {
    let path = Path::Root.field("spec");
    let path = path.field("source");
    let source = &attachment["spec"]["source"];
    let (name, spec) = (&source["persistentVolumeName"], &source["inlineVolumeSpec"]);
    let exactly_one = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
    match (name.as_str(), spec.is_null()) {
        (None, true) => vec![FieldError::required(path, exactly_one)],
        (Some(_), false) => vec![FieldError::forbidden(path, exactly_one)],
        (Some(""), true) => {
            let why = "must specify non empty persistentVolumeName";
            vec![FieldError::required(path.field("persistentVolumeName"), why)]
        }
        (Some(_), true) => Vec::new(),
        (None, false) => validate_inline(spec, path.field("inlineVolumeSpec")),
    }
}

fn volume_attributes_classes() -> BuiltinType {
    BuiltinType {
        columns: vec![column("DriverName", "string", Cell::Pointer("/driverName")), age()],
        hooks: Hooks {
            validate: |class| {
                let mut errors = validate_provisioner(class, "driverName");
                errors.extend(empty_parameter(class));
                if count(class, "/parameters") == 0 {
                    let why = "must contain at least one key/value pair";
                    errors.push(FieldError::required("parameters", why));
                }
                errors
            },
            validate_update: |new, old| forbidden(new, old, &["driverName", "parameters"]),
            ..hooks(false)
        },
        ..resource(GROUP, "v1", "volumeattributesclasses")
    }
}

fn forbidden(new: &Value, old: &Value, fields: &[&str]) -> Vec<FieldError> {
    let changed = fields.iter().filter(|field| new[**field] != old[**field]);
    let error =
        |field: &&str| FieldError::forbidden(field, &format!("updates to {field} are forbidden."));
    changed.map(error).collect()
}

fn joined(list: &Value, field: &str, absent: &str) -> Value {
    let items = list.as_array().into_iter().flatten();
    let texts: Vec<_> = items.filter_map(|item| item[field].as_str()).collect();
    json!(if texts.is_empty() { absent.to_owned() } else { texts.join(",") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_is_filled_in_and_fixed() {
        let ty = storage_classes();
        let mut class = json!({"provisioner": "p", "parameters": {"a": "b"}});
        ty.schema().apply_defaults(&mut class);
        assert_eq!(
            (&class["reclaimPolicy"], &class["volumeBindingMode"]),
            (&json!("Delete"), &json!("Immediate"))
        );
        let mut new = class.clone();
        new["allowVolumeExpansion"] = json!(true);
        assert_eq!((ty.hooks.validate_update)(&new, &class), []);
        new["parameters"]["a"] = json!("c");
        let errors = (ty.hooks.validate_update)(&new, &class);
        assert_eq!(errors[0].field, "parameters");
        class["reclaimPolicy"] = json!("Recycle");
        assert_eq!((ty.hooks.validate)(&class)[0].field, "reclaimPolicy");
        class["reclaimPolicy"] = json!("");
        class["provisioner"] = json!("A.b/C");
        assert_eq!((ty.hooks.validate)(&class), []);
        class["provisioner"] = json!("a b");
        assert_eq!((ty.hooks.validate)(&class)[0].field, "provisioner");
    }

    #[test]
    fn a_driver_is_filled_in() {
        let ty = csi_drivers();
        let mut driver = json!({"spec": {}});
        ty.schema().apply_defaults(&mut driver);
        assert_eq!(driver["spec"]["attachRequired"], true);
        assert_eq!(driver["spec"]["volumeLifecycleModes"], json!(["Persistent"]));
    }

    #[test]
    fn an_attachment_has_one_source() {
        let validate = volume_attachments().hooks.validate;
        let attachment = |source: Value| json!({"spec": {"source": source}});
        assert_eq!(validate(&attachment(json!({"persistentVolumeName": "v"}))), []);
        assert_eq!(validate(&attachment(json!({})))[0].field, "spec.source");
        let both = json!({"persistentVolumeName": "v", "inlineVolumeSpec": {}});
        assert_eq!(validate(&attachment(both))[0].field, "spec.source");
        let inline = json!({"inlineVolumeSpec": {"csi": {}}});
        let expected = "spec.source.inlineVolumeSpec.accessModes";
        assert_eq!(validate(&attachment(inline))[0].field, expected);
    }
}
