//! Lists the fields of a type with their paths.
//!
//! References are not followed, since their targets are types of their own. Embedded Kubernetes
//! types are not entered either.

use serde_json::Value;

use super::embedded_types::is_copy;
use super::model::{Published, TypeSchema, target};
use super::optional::is_required;

/// A field, an item of a list, or a value of a map.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts about one place")]
pub(super) struct Field<'a> {
    /// Such as `spec.items[].mode`.
    pub(super) path: String,
    /// JSON Pointer to the field in the schema of the type.
    pub(super) pointer: String,
    pub(super) name: &'a str,
    /// The schema as used, with the default at the point of use.
    pub(super) used: &'a Value,
    pub(super) schema: &'a Value,
    /// The enclosing schema.
    pub(super) parent: &'a Value,
    /// True if the object must have it.
    pub(super) required: bool,
    /// True in the desired state.
    pub(super) in_spec: bool,
    /// True in the observed state.
    pub(super) in_status: bool,
    /// True directly below `status`.
    pub(super) status_member: bool,
}

impl Field<'_> {
    pub(super) fn is(&self, name: &str) -> bool {
        self.schema["type"] == name
    }
}

/// The name suffix of the shared object metadata.
pub(super) const OBJECT_META: &str = ".ObjectMeta";

/// Returns all fields of a type.
pub(super) fn fields<'a>(published: &'a Published, ty: &'a TypeSchema) -> Vec<Field<'a>> {
    let mut walk = Walk { published, ty, found: Vec::new() };
    // The name identifies the type of a status. A served kind contains its status.
    let is_status = !ty.custom && ty.kind.is_none() && ty.name.ends_with("Status");
    let part = Part { in_spec: ty.in_spec, in_status: is_status, status: is_status };
    walk.members(&ty.schema, &Way::default(), part);
    walk.found
}

/// The part of an object that a schema describes.
#[derive(Clone, Copy)]
struct Part {
    in_spec: bool,
    in_status: bool,
    /// True for the schema of a status itself.
    status: bool,
}

/// The path to a schema, for readers and as a JSON Pointer.
#[derive(Clone, Default)]
struct Way {
    path: String,
    pointer: String,
}

impl Way {
    fn member(&self, name: &str) -> Self {
        let path =
            if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) };
        let escaped = name.replace('~', "~0").replace('/', "~1");
        Self { path, pointer: format!("{}/properties/{escaped}", self.pointer) }
    }

    fn inside(&self, mark: &str, keyword: &str) -> Self {
        Self {
            path: format!("{}{mark}", self.path),
            pointer: format!("{}/{keyword}", self.pointer),
        }
    }
}

struct Walk<'a> {
    published: &'a Published,
    ty: &'a TypeSchema,
    found: Vec<Field<'a>>,
}

impl<'a> Walk<'a> {
    fn members(&mut self, schema: &'a Value, way: &Way, part: Part) {
        let embedded = schema["x-kubernetes-embedded-resource"] == true;
        let at_root = way.path.is_empty() && self.ty.custom;
        for (name, used) in schema["properties"].as_object().into_iter().flatten() {
            // Every object has these members, so a CRD may repeat them.
            if (at_root || embedded) && matches!(name.as_str(), "apiVersion" | "kind" | "metadata")
            {
                continue;
            }
            let inner = match (way.path.as_str(), name.as_str()) {
                ("", "spec") if self.ty.kind.is_some() => Part { in_spec: true, ..part },
                ("", "status") if self.ty.kind.is_some() => {
                    Part { in_spec: false, in_status: true, status: true }
                }
                _ => Part { status: false, ..part },
            };
            let required = is_required(schema, name);
            let field = self.field(used, schema, way.member(name), inner);
            self.visit(Field { name, required, status_member: part.status, ..field }, inner);
        }
        let inner = Part { status: false, ..part };
        for (keyword, mark) in [("items", "[]"), ("additionalProperties", ".*")] {
            if let Some(used) = schema.get(keyword).filter(|used| used.is_object()) {
                self.visit(self.field(used, schema, way.inside(mark, keyword), inner), inner);
            }
        }
    }

    fn field(&self, used: &'a Value, parent: &'a Value, way: Way, part: Part) -> Field<'a> {
        let schema = self.published.resolve(used);
        let (Way { path, pointer }, Part { in_spec, in_status, .. }) = (way, part);
        let (name, required, status_member) = ("", false, false);
        Field {
            path,
            pointer,
            name,
            used,
            schema,
            parent,
            required,
            in_spec,
            in_status,
            status_member,
        }
    }

    fn visit(&mut self, field: Field<'a>, part: Part) {
        let (used, way) =
            (field.used, Way { path: field.path.clone(), pointer: field.pointer.clone() });
        self.found.push(field);
        if target(used).is_none() && !(self.ty.custom && is_copy(used)) {
            self.members(used, &way, part);
        }
    }
}
