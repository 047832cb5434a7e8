//! The definitions of built-in types in documents, as Kubernetes publishes them.
//!
//! They follow from the data of the version. Unlike the schemas that validate objects, they have no
//! ranges, and version 2 has no defaults.

use serde_json::{Map, Value, json};

use super::definitions::{Dialect, KINDS};
use super::naming::capital;
use crate::config::KubernetesVersion;

use kubeproof_apimachinery::schema::ListType;
use kubeproof_apimachinery::schema::definitions::{Definition, Definitions, Field, Type, Union};

const API_MACHINERY: &str = "io.k8s.apimachinery.pkg";
/// The schemas whose JSON is not an object with the fields of the message.
const ANYTHING: &str = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOr";
const JSON: &str = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON";

/// Writes definitions, and those that they refer to.
#[derive(Debug)]
pub(super) struct Published {
    definitions: &'static Definitions,
    dialect: Dialect,
    /// Items of lists and values of maps have the default of their type.
    item_defaults: bool,
    written: Map<String, Value>,
}

impl Published {
    pub(super) fn new(version: KubernetesVersion, dialect: Dialect) -> Self {
        // Kubernetes 1.36 no longer publishes these defaults.
        let item_defaults = version == KubernetesVersion::V1_35 && dialect == Dialect::V3;
        Self { item_defaults, ..Self::of(version.definitions(), dialect) }
    }

    fn of(definitions: &'static Definitions, dialect: Dialect) -> Self {
        Self { definitions, dialect, item_defaults: false, written: Map::new() }
    }

    /// Writes a definition. Returns whether the name is known.
    pub(super) fn add(&mut self, name: &str) -> bool {
        let Some(definition) = self.definitions.get(name) else { return false };
        if !self.written.contains_key(name) {
            // A definition can refer to itself.
            self.written.insert(name.to_owned(), Value::Null);
            let schema = self.definition(definition);
            self.written.insert(name.to_owned(), schema);
        }
        true
    }

    /// Writes the definition of a kind. Returns whether the kind is known.
    pub(super) fn add_kind(&mut self, group: &str, version: &str, kind: &str) -> bool {
        let definition = self.definitions.kind(group, version, kind);
        definition.is_some_and(|definition| self.add(definition.name))
    }

    /// Returns the definitions by name.
    pub(super) fn finish(self) -> Map<String, Value> {
        self.written
    }

    fn definition(&mut self, definition: &Definition) -> Value {
        if definition.name.starts_with(ANYTHING) {
            return json!({});
        }
        let (mut properties, mut required) = (Map::new(), Vec::new());
        self.fields(definition, &mut properties, &mut required);
        let mut schema = json!({ "type": "object" });
        if !properties.is_empty() {
            schema["properties"] = properties.into();
        }
        if !required.is_empty() {
            schema["required"] = required.into();
        }
        if definition.atomic_map {
            schema["x-kubernetes-map-type"] = "atomic".into();
        }
        if let Some(union) = &definition.union {
            schema["x-kubernetes-unions"] = json!([write_union(union)]);
        }
        let kinds = definition.group_version_kind.iter().map(
            |(group, version, kind)| json!({"group": group, "version": version, "kind": kind}),
        );
        let kinds: Vec<Value> = kinds.collect();
        if !kinds.is_empty() {
            schema[KINDS] = kinds.into();
        }
        schema
    }

    fn fields(
        &mut self,
        definition: &Definition,
        properties: &mut Map<String, Value>,
        required: &mut Vec<&str>,
    ) {
        for field in &definition.fields {
            if field.inline {
                let inner = field.ty.message().and_then(|name| self.definitions.get(name));
                if let Some(inner) = inner {
                    self.fields(inner, properties, required);
                }
                continue;
            }
            if field.required {
                required.push(field.name);
            }
            properties.insert(field.name.to_owned(), self.property(field));
        }
    }

    fn property(&mut self, field: &Field) -> Value {
        let mut schema = self.ty(&field.ty);
        if !field.enumeration.is_empty() {
            let children = ["items", "additionalProperties"].into_iter();
            let child = children.into_iter().find(|child| schema.get(child).is_some());
            let place = if let Some(child) = child { &mut schema[child] } else { &mut schema };
            place["enum"] = json!(field.enumeration);
        }
        let keywords = keywords(field, self.dialect);
        // In v3, keywords beside a reference are ignored. Kubernetes has a description beside each.
        if self.dialect == Dialect::V3 && schema.get("$ref").is_some() {
            schema = json!({ "allOf": [schema] });
        }
        if let Some(schema) = schema.as_object_mut() {
            schema.extend(keywords);
        }
        schema
    }

    fn ty(&mut self, ty: &Type) -> Value {
        match ty {
            Type::String => json!({"type": "string"}),
            Type::Bytes => json!({"type": "string", "format": "byte"}),
            Type::Boolean => json!({"type": "boolean"}),
            Type::Int32 => json!({"type": "integer", "format": "int32"}),
            Type::Int64 => json!({"type": "integer", "format": "int64"}),
            Type::Double => json!({"type": "number", "format": "double"}),
            Type::List(inner) | Type::WrappedList(inner) => {
                json!({"type": "array", "items": self.item(inner)})
            }
            Type::Map(inner) => json!({"type": "object", "additionalProperties": self.item(inner)}),
            Type::Message(name) => {
                self.add(name);
                self.reference(name)
            }
            Type::Time => self.time("Time"),
            Type::MicroTime => self.time("MicroTime"),
            Type::Duration => self.special("apis.meta.v1.Duration", json!({"type": "string"})),
            Type::Quantity => {
                let schema = match self.dialect {
                    Dialect::V2 => json!({"type": "string"}),
                    Dialect::V3 => json!({"oneOf": [{"type": "string"}, {"type": "number"}]}),
                };
                self.special("api.resource.Quantity", schema)
            }
            Type::IntOrString => {
                let mut schema = match self.dialect {
                    Dialect::V2 => json!({"type": "string"}),
                    Dialect::V3 => json!({"oneOf": [{"type": "integer"}, {"type": "string"}]}),
                };
                schema["format"] = "int-or-string".into();
                self.special("util.intstr.IntOrString", schema)
            }
            Type::RawExtension => self.special("runtime.RawExtension", json!({"type": "object"})),
            Type::FieldsV1 => self.special("apis.meta.v1.FieldsV1", json!({"type": "object"})),
            Type::Json => self.named(JSON, json!({})),
        }
    }

    /// Returns the schema of the items of a list, or the values of a map.
    fn item(&mut self, ty: &Type) -> Value {
        let mut schema = self.ty(ty);
        if !self.item_defaults {
            return schema;
        }
        let default = match ty {
            Type::String => json!(""),
            Type::Int32 | Type::Int64 => json!(0),
            Type::Message(name) if !name.starts_with(ANYTHING) => {
                schema = json!({ "allOf": [schema] });
                json!({})
            }
            _ => return schema,
        };
        schema["default"] = default;
        schema
    }

    fn time(&mut self, name: &str) -> Value {
        let schema = json!({"type": "string", "format": "date-time"});
        self.special(&format!("apis.meta.v1.{name}"), schema)
    }

    /// Returns a reference to a type of the API machinery that is not a message of the data.
    fn special(&mut self, name: &str, schema: Value) -> Value {
        self.named(&format!("{API_MACHINERY}.{name}"), schema)
    }

    fn named(&mut self, name: &str, schema: Value) -> Value {
        self.written.entry(name).or_insert(schema);
        self.reference(name)
    }

    fn reference(&self, name: &str) -> Value {
        json!({ "$ref": self.dialect.pointer(name) })
    }
}

/// Returns which fields of a union belong to which value of the discriminator: their name with a
/// capital letter.
fn write_union(union: &Union) -> Value {
    let fields = union.fields.iter().map(|field| ((*field).to_owned(), capital(field).into()));
    let mut written = json!({"fields-to-discriminateBy": fields.collect::<Map<_, Value>>()});
    if let Some(discriminator) = union.discriminator {
        written["discriminator"] = discriminator.into();
    }
    written
}

/// Returns the keywords of a field beside its type.
fn keywords(field: &Field, dialect: Dialect) -> Map<String, Value> {
    let list_type = match field.list_type {
        ListType::Unset => None,
        ListType::Atomic => Some("atomic"),
        ListType::Set => Some("set"),
        ListType::Map => Some("map"),
    };
    let strategy = match (field.patch_strategy.merge, field.patch_strategy.retain_keys) {
        (true, true) => Some("merge,retainKeys"),
        (true, false) => Some("merge"),
        (false, true) => Some("retainKeys"),
        (false, false) => field.patch_strategy.replace.then_some("replace"),
    };
    let map_type = match (field.atomic_map, field.granular_map) {
        (true, _) => Some("atomic"),
        (false, true) => Some("granular"),
        (false, false) => None,
    };
    let keys = Some(&field.list_map_keys).filter(|keys| !keys.is_empty());
    let default = field.default.filter(|_| dialect == Dialect::V3);
    let keywords = [
        ("default", default.and_then(|text| serde_json::from_str(text).ok())),
        ("x-kubernetes-list-type", list_type.map(Value::from)),
        ("x-kubernetes-list-map-keys", keys.map(|keys| json!(keys))),
        ("x-kubernetes-map-type", map_type.map(Value::from)),
        ("x-kubernetes-patch-merge-key", field.patch_merge_key.map(Value::from)),
        ("x-kubernetes-patch-strategy", strategy.map(Value::from)),
    ];
    let present = keywords.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    present.collect()
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use super::*;

    const FARM: &str = r#"package io.k8s.farm.v1

io.k8s.farm.v1.Barn kind=farm/v1/Barn
  0 kind string
  1 animals []Animal required null list=map keys=name merge=name strategy=merge
  2 roof Roof inline
  3 doors {}quantity map=granular
  4 largest Animal default={}

io.k8s.farm.v1.Roof
  1 colours []string list=set enum=Blue,Red
  2 built time
  3 signs {}string enum=No,Yes

io.k8s.farm.v1.Animal map=atomic union=name:parent
  1 name string required keep default=""
  2 parent Animal
"#;

    fn written(dialect: Dialect, item_defaults: bool) -> Value {
        static DEFINITIONS: LazyLock<Definitions> =
            LazyLock::new(|| Definitions::parse(&[("farm", FARM)]).unwrap());
        let mut published = Published::of(&DEFINITIONS, dialect);
        published.item_defaults = item_defaults;
        assert!(published.add_kind("farm", "v1", "Barn") && !published.add("Horse"));
        Value::Object(published.finish())
    }

    #[test]
    fn fields_have_their_published_keywords() {
        let document = written(Dialect::V3, false);
        let reference = |name: &str| json!({"$ref": format!("#/components/schemas/{name}")});
        let animal_name = "io.k8s.farm.v1.Animal";
        let barn = json!({
            "type": "object",
            "required": ["animals"],
            "properties": {
                "kind": {"type": "string"},
                "animals": {
                    "type": "array", "items": reference(animal_name),
                    "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                    "x-kubernetes-patch-merge-key": "name", "x-kubernetes-patch-strategy": "merge",
                },
                "colours": {
                    "type": "array", "items": {"type": "string", "enum": ["Blue", "Red"]},
                    "x-kubernetes-list-type": "set",
                },
                "built": {"allOf": [reference("io.k8s.apimachinery.pkg.apis.meta.v1.Time")]},
                "signs": {
                    "type": "object",
                    "additionalProperties": {"type": "string", "enum": ["No", "Yes"]},
                },
                "doors": {
                    "type": "object",
                    "additionalProperties":
                        reference("io.k8s.apimachinery.pkg.api.resource.Quantity"),
                    "x-kubernetes-map-type": "granular",
                },
                "largest": {"allOf": [reference(animal_name)], "default": {}},
            },
            KINDS: [{"group": "farm", "version": "v1", "kind": "Barn"}],
        });
        assert_eq!(document["io.k8s.farm.v1.Barn"], barn);
        let animal = json!({
            "type": "object",
            "required": ["name"],
            "properties": {
                "name": {"type": "string", "default": ""},
                "parent": {"allOf": [reference(animal_name)]},
            },
            "x-kubernetes-map-type": "atomic",
            "x-kubernetes-unions": [{
                "discriminator": "name", "fields-to-discriminateBy": {"parent": "Parent"},
            }],
        });
        assert_eq!(document["io.k8s.farm.v1.Animal"], animal);
        assert_eq!(document.as_object().map(Map::len), Some(4));
    }

    #[test]
    fn items_of_older_versions_have_defaults() {
        let document = written(Dialect::V3, true);
        let properties = &document["io.k8s.farm.v1.Barn"]["properties"];
        let animal = json!({"$ref": "#/components/schemas/io.k8s.farm.v1.Animal"});
        assert_eq!(properties["animals"]["items"], json!({"allOf": [animal], "default": {}}));
        assert_eq!(properties["signs"]["additionalProperties"]["default"], "");
        assert_eq!(properties["doors"]["additionalProperties"].get("default"), None);
    }

    #[test]
    fn version_2_has_no_defaults() {
        let document = written(Dialect::V2, false);
        let properties = &document["io.k8s.farm.v1.Barn"]["properties"];
        let expected = json!({"$ref": "#/definitions/io.k8s.farm.v1.Animal"});
        assert_eq!(properties["largest"], expected);
        let quantity = &document["io.k8s.apimachinery.pkg.api.resource.Quantity"];
        assert_eq!(quantity, &json!({"type": "string"}));
    }
}
