//! Names in files: requirements, faults, subjects, protocols, fragments.

use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::json;

/// Names that editors complete. [`crate::schema`] adds the known ones to the definition.
fn names(generator: &mut SchemaGenerator, name: &str) -> Schema {
    generator.definitions_mut().insert(name.to_owned(), json!({"type": "string"}));
    json_schema!({"$ref": format!("#/$defs/{name}")})
}

/// A list of requirement ids.
pub(crate) fn requirement_ids(generator: &mut SchemaGenerator) -> Schema {
    let id = names(generator, "RequirementId");
    json_schema!({"type": "array", "items": id})
}

/// A list of fault names.
pub(crate) fn fault_names(generator: &mut SchemaGenerator) -> Schema {
    let name = names(generator, "FaultName");
    json_schema!({"type": "array", "items": name})
}

/// A subject, or a list of subjects.
pub(crate) fn subject_names(generator: &mut SchemaGenerator) -> Schema {
    let name = names(generator, "SubjectName");
    json_schema!({"anyOf": [name, {"type": "array", "items": name, "minItems": 1}]})
}

/// A list of protocols.
pub(crate) fn protocols(generator: &mut SchemaGenerator) -> Schema {
    let name = names(generator, "ProtocolName");
    json_schema!({"type": "array", "items": name})
}

/// The name of a fragment.
pub(crate) fn fragment_name(generator: &mut SchemaGenerator) -> Schema {
    names(generator, "FragmentName")
}
