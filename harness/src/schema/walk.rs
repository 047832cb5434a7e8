//! The fields of a type, each with its path. References are not followed: what they lead to is a type of its own. Nor
//! is what a custom resource has copied out of Kubernetes looked into: it is a type of somebody else.

use serde_json::Value;

use super::copies::is_copy;
use super::model::{Published, TypeSchema, target};
use super::optional::is_required;

/// A field, an item of a list or a value of a map.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts about one place")]
pub(super) struct Field<'a> {
    /// As `spec.items[].mode`.
    pub(super) path: String,
    /// Where it stands in the schema of the type: a JSON Pointer.
    pub(super) pointer: String,
    /// The name; empty for items of lists and values of maps.
    pub(super) name: &'a str,
    /// The schema as it is used, with the default that stands there.
    pub(super) used: &'a Value,
    /// The schema with references followed.
    pub(super) schema: &'a Value,
    /// The schema that it stands in.
    pub(super) parent: &'a Value,
    /// The object must have it.
    pub(super) required: bool,
    /// Part of the desired state.
    pub(super) in_spec: bool,
    /// Part of the observed state.
    pub(super) in_status: bool,
    /// Right below `status`.
    pub(super) status_member: bool,
}

impl Field<'_> {
    /// The type of its values.
    pub(super) fn is(&self, name: &str) -> bool {
        self.schema["type"] == name
    }
}

/// The definition of shared metadata of objects, by the end of its name.
pub(super) const OBJECT_META: &str = ".ObjectMeta";

/// All fields of a type.
pub(super) fn fields<'a>(published: &'a Published, ty: &'a TypeSchema) -> Vec<Field<'a>> {
    let mut walk = Walk { published, ty, found: Vec::new() };
    // The type of a status is known by its name; that of a served kind has its status inside.
    let is_status = !ty.custom && ty.kind.is_none() && ty.name.ends_with("Status");
    let part = Part { in_spec: ty.in_spec, in_status: is_status, status: is_status };
    walk.members(&ty.schema, &Way::default(), part);
    walk.found
}

/// The part of an object that a schema is of.
#[derive(Clone, Copy)]
struct Part {
    in_spec: bool,
    in_status: bool,
    /// The schema is that of a status itself.
    status: bool,
}

/// The way to a schema: for people, and for programs.
#[derive(Clone, Default)]
struct Way {
    path: String,
    pointer: String,
}

impl Way {
    fn member(&self, name: &str) -> Self {
        let path = if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) };
        let escaped = name.replace('~', "~0").replace('/', "~1");
        Self { path, pointer: format!("{}/properties/{escaped}", self.pointer) }
    }

    fn inside(&self, mark: &str, keyword: &str) -> Self {
        Self { path: format!("{}{mark}", self.path), pointer: format!("{}/{keyword}", self.pointer) }
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
            // Every object has these; that a CRD repeats them says nothing.
            if (at_root || embedded) && matches!(name.as_str(), "apiVersion" | "kind" | "metadata") {
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
            let field = self.field(name, used, schema, way.member(name), inner);
            self.visit(Field { required, status_member: part.status, ..field }, inner);
        }
        let inner = Part { status: false, ..part };
        for (keyword, mark) in [("items", "[]"), ("additionalProperties", ".*")] {
            if let Some(used) = schema.get(keyword).filter(|used| used.is_object()) {
                self.visit(self.field("", used, schema, way.inside(mark, keyword), inner), inner);
            }
        }
    }

    fn field(&self, name: &'a str, used: &'a Value, parent: &'a Value, way: Way, part: Part) -> Field<'a> {
        let schema = self.published.resolve(used);
        let (Way { path, pointer }, Part { in_spec, in_status, .. }) = (way, part);
        let (required, status_member) = (false, false);
        Field { path, pointer, name, used, schema, parent, required, in_spec, in_status, status_member }
    }

    fn visit(&mut self, field: Field<'a>, part: Part) {
        let (used, way) = (field.used, Way { path: field.path.clone(), pointer: field.pointer.clone() });
        self.found.push(field);
        if target(used).is_none() && !(self.ty.custom && is_copy(used)) {
            self.members(used, &way, part);
        }
    }
}
