//! The fields of a type, each with its path. References are not followed: what they lead to is a type of its own.

use serde_json::Value;

use super::model::{Published, TypeSchema, target};

/// A field, an item of a list or a value of a map.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts about one place")]
pub(super) struct Field<'a> {
    /// As `spec.items[].mode`.
    pub(super) path: String,
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
    let mut found = Vec::new();
    let walk = Walk { published, ty };
    // The type of a status is known by its name; that of a served kind has its status inside.
    let is_status = !ty.custom && ty.kind.is_none() && ty.name.ends_with("Status");
    walk.members(
        &ty.schema,
        "",
        Place { in_spec: ty.in_spec, in_status: is_status, status: is_status },
        &mut found,
    );
    found
}

#[derive(Clone, Copy)]
struct Place {
    in_spec: bool,
    in_status: bool,
    /// The schema is that of a status itself.
    status: bool,
}

struct Walk<'a> {
    published: &'a Published,
    ty: &'a TypeSchema,
}

impl<'a> Walk<'a> {
    fn members(&self, schema: &'a Value, path: &str, place: Place, found: &mut Vec<Field<'a>>) {
        let embedded = schema["x-kubernetes-embedded-resource"] == true;
        let at_root = path.is_empty() && self.ty.custom;
        for (name, used) in schema["properties"].as_object().into_iter().flatten() {
            // Every object has these; that a CRD repeats them says nothing.
            if (at_root || embedded) && matches!(name.as_str(), "apiVersion" | "kind" | "metadata") {
                continue;
            }
            let inner = match (path, name.as_str()) {
                ("", "spec") if self.ty.kind.is_some() => Place { in_spec: true, ..place },
                ("", "status") if self.ty.kind.is_some() => {
                    Place { in_spec: false, in_status: true, status: true }
                }
                _ => Place { status: false, ..place },
            };
            let required = schema["required"].as_array().is_some_and(|all| all.iter().any(|one| one == name));
            let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            let field = self.field(name, used, schema, path, required, inner, place.status);
            self.visit(field, inner, found);
        }
        let inner = Place { status: false, ..place };
        if let Some(items) = schema.get("items").filter(|items| items.is_object()) {
            self.visit(self.field("", items, schema, format!("{path}[]"), false, inner, false), inner, found);
        }
        if let Some(values) = schema.get("additionalProperties").filter(|values| values.is_object()) {
            self.visit(
                self.field("", values, schema, format!("{path}.*"), false, inner, false),
                inner,
                found,
            );
        }
    }

    #[expect(clippy::too_many_arguments, reason = "they are the members of a field")]
    fn field(
        &self,
        name: &'a str,
        used: &'a Value,
        parent: &'a Value,
        path: String,
        required: bool,
        place: Place,
        status_member: bool,
    ) -> Field<'a> {
        let schema = self.published.resolve(used);
        let Place { in_spec, in_status, .. } = place;
        Field { path, name, used, schema, parent, required, in_spec, in_status, status_member }
    }

    fn visit(&self, field: Field<'a>, place: Place, found: &mut Vec<Field<'a>>) {
        let (used, path) = (field.used, field.path.clone());
        found.push(field);
        if target(used).is_none() {
            self.members(used, &path, place, found);
        }
    }
}
