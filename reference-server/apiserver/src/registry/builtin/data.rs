//! Types from the data of the crate `api`: structure, names, verbs and scope.

use std::sync::{Arc, OnceLock};

use serde_json::{Value, json};

use super::{BuiltinType, FieldLabel, Hooks, Scale, restore};
use crate::registry::LazySchema;
use crate::registry::strategy::Plain;

use kubeproof_api::{Resource, Version, rules};
use kubeproof_apimachinery::object::validation::names::NameRule;
use kubeproof_apimachinery::schema::built_in::Schemas;
use kubeproof_apimachinery::schema::meta;
use kubeproof_apimachinery::table::column::{Cell, Column, age, column, wide};

/// Returns the schema of a type in a version of Kubernetes, or `None` if the version lacks it.
pub(crate) fn schema(version: Version, ty: &BuiltinType) -> Option<LazySchema> {
    let (group, api, kind) = (ty.group, ty.version, ty.kind);
    version.definitions().kind(group, api, kind)?;
    Some(LazySchema::new(move || schemas(version).kind(group, api, kind).unwrap_or_default()))
}

/// Returns the schema of a body that is no stored object, in the newest version.
pub(crate) fn body_schema(group: &str, api: &str, kind: &str) -> LazySchema {
    let (group, api, kind) = (group.to_owned(), api.to_owned(), kind.to_owned());
    LazySchema::new(move || {
        schemas(Version::default()).kind(&group, &api, &kind).unwrap_or_default()
    })
}

/// Returns the schemas of a version. All servers of a process share them.
fn schemas(version: Version) -> &'static Schemas {
    static V1_35: OnceLock<Schemas> = OnceLock::new();
    static V1_36: OnceLock<Schemas> = OnceLock::new();
    let cell = match version {
        Version::V1_35 => &V1_35,
        Version::V1_36 => &V1_36,
    };
    cell.get_or_init(|| {
        let known = [meta::object_meta(), super::apiextensions::json_schema_props()];
        Schemas::new(version.definitions(), rules(), known, super::checks::all())
    })
}

/// Returns a resource with the structure and the names of the data, and with the usual behaviour:
/// only the server sets the status, and only its own endpoint changes it.
pub(super) fn resource(group: &str, version: &str, plural: &str) -> BuiltinType {
    let resource = Version::default()
        .resource(group, version, plural)
        .expect("a test builds each type of the data");
    let has = |name: &str| resource.subresources.iter().any(|sub| sub.name == name);
    BuiltinType {
        group: resource.group,
        version: resource.version,
        kind: resource.kind,
        list_kind: format!("{}List", resource.kind),
        plural: resource.plural,
        singular: resource.singular.to_owned(),
        namespaced: resource.namespaced,
        has_status: has("status"),
        scale: has("scale").then(scale),
        subresources: &[],
        has_generation: has_spec(resource),
        name_rule: NameRule::DnsSubdomain,
        allows_create_on_update: false,
        allows_unconditional_update: true,
        field_labels: NO_LABELS,
        columns: vec![age()],
        hooks: hooks(has("status")),
        strategy: || Arc::new(Plain),
        storage: None,
        deprecation: None,
    }
}

const NO_LABELS: &[FieldLabel] = &[];

fn has_spec(resource: &Resource) -> bool {
    let definitions = Version::default().definitions();
    let definition = definitions.kind(resource.group, resource.version, resource.kind);
    definition.is_some_and(|definition| definition.field("spec").is_some())
}

/// Returns the usual hooks.
pub(super) fn hooks(has_status: bool) -> Hooks {
    if has_status {
        Hooks { prepare_update: |new, old| restore(new, old, "status"), ..Hooks::NONE }
    } else {
        Hooks::NONE
    }
}

fn scale() -> Scale {
    super::workload::scale("/spec/selector")
}

/// Returns the names and the images of the containers of a template, as columns of wide output.
pub(super) fn container_columns(
    names: fn(&Value) -> Value,
    images: fn(&Value) -> Value,
) -> [Column; 2] {
    [
        wide("Containers", "string", Cell::Computed(names)),
        wide("Images", "string", Cell::Computed(images)),
    ]
}

/// Returns a field of all containers of a pod template, with commas between them.
pub(super) fn of_containers(template: &Value, field: &str) -> Value {
    let containers = template["spec"]["containers"].as_array().into_iter().flatten();
    let texts: Vec<&str> = containers.filter_map(|container| container[field].as_str()).collect();
    json!(texts.join(","))
}

/// Returns the column for the time of creation, for types without their own columns.
pub(super) fn created_at() -> Column {
    column("Created At", "date", Cell::Pointer("/metadata/creationTimestamp"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_resource_of_the_data_has_a_schema() {
        for data in Version::default().resources().iter().filter(|it| it.verbs.contains(&"list")) {
            let ty = resource(data.group, data.version, data.plural);
            assert_eq!((ty.kind, ty.namespaced), (data.kind, data.namespaced));
            let mut object = json!({"metadata": {"name": "a"}});
            let schema = ty.schema();
            schema.prune(&mut object);
            schema.apply_defaults(&mut object);
            assert_eq!(object["metadata"]["name"], "a");
        }
    }

    #[test]
    fn types_share_the_template_of_pods() {
        let template = |plural: &str, pointer: &str| {
            let schema = resource("apps", "v1", plural).schema();
            let whole = Arc::clone(&schema);
            pointer.split('/').fold(whole, |schema, name| Arc::clone(&schema.properties[name]))
        };
        let one = template("daemonsets", "spec/template");
        let other = template("statefulsets", "spec/template");
        assert_eq!(one.name, other.name);
        let dns = &one.properties["spec"].properties["dnsPolicy"];
        assert_eq!(dns.default, Some(json!("ClusterFirst")));
    }
}
