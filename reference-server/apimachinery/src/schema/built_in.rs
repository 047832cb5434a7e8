//! Schemas of built-in types from their definitions.
//!
//! A definition has the structure. Defaults, ranges and enumerations that Go code sets come from
//! [`Rules`]. A required string must not be empty, unless a rule makes it optional or the
//! definition is part of a status.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;

use super::build::{anything, boolean, bytes, int_or_string, int32, int64, list, map};
use super::build::{micro_time, object, quantity, string, time};
use super::constraints::{Check, Constraints};
use super::definitions::{Definition, Definitions, Field, Type};
use super::rules_file::{Rule, Rules};
use super::{Kind, ListType, Schema};

/// The schemas of the built-in types. Each is built on its first use, and types share their parts.
#[derive(Debug)]
pub struct Schemas {
    definitions: &'static Definitions,
    rules: Rules,
    checks: HashMap<&'static str, Vec<Check>>,
    built: Mutex<HashMap<&'static str, Arc<Schema>>>,
}

impl Schemas {
    /// Creates the schemas of all definitions. `known` are schemas that replace definitions.
    /// `checks` are functions for what rules cannot express, by the published name of the
    /// definition. A check applies wherever its definition is used.
    pub fn new(
        definitions: &'static Definitions,
        rules: Rules,
        known: impl IntoIterator<Item = Arc<Schema>>,
        checks: impl IntoIterator<Item = (&'static str, Check)>,
    ) -> Self {
        let known = known.into_iter().filter_map(|schema| Some((schema.name?, schema)));
        let mut by_name: HashMap<_, Vec<_>> = HashMap::new();
        for (name, check) in checks {
            by_name.entry(name).or_default().push(check);
        }
        Self { definitions, rules, checks: by_name, built: Mutex::new(known.collect()) }
    }

    /// Returns the schema of a kind.
    pub fn kind(&self, group: &str, version: &str, kind: &str) -> Option<Arc<Schema>> {
        let definition = self.definitions.kind(group, version, kind)?;
        let mut built = self.built.lock().unwrap_or_else(PoisonError::into_inner);
        let mut builder = Builder { schemas: self, built: &mut built, open: Vec::new() };
        Some(builder.message(definition.name))
    }
}

struct Builder<'s> {
    schemas: &'s Schemas,
    built: &'s mut HashMap<&'static str, Arc<Schema>>,
    /// The definitions that are being built, from the outermost one.
    open: Vec<&'static str>,
}

impl Builder<'_> {
    fn message(&mut self, name: &'static str) -> Arc<Schema> {
        if let Some(schema) = self.built.get(name) {
            return Arc::clone(schema);
        }
        let Some(definition) = self.schemas.definitions.get(name) else {
            return Arc::new(anything());
        };
        // A definition that contains itself has no finite tree.
        if self.open.contains(&name) {
            return Arc::new(anything());
        }
        self.open.push(name);
        let order = self.schemas.rules.order(name);
        let schema = Schema { atomic_map: definition.atomic_map, order, ..object(name) };
        let schema = Schema { union: self.schemas.rules.union(name), ..schema };
        let schema = Arc::new(self.fields(schema, definition));
        self.open.pop();
        self.built.insert(name, Arc::clone(&schema));
        schema
    }

    fn fields(&mut self, mut schema: Schema, definition: &Definition) -> Schema {
        schema
            .constraints
            .checks
            .extend(self.schemas.checks.get(definition.name).into_iter().flatten());
        for field in &definition.fields {
            if field.inline {
                if let Some(inner) =
                    field.ty.message().and_then(|name| self.schemas.definitions.get(name))
                {
                    schema = self.fields(schema, inner);
                }
                continue;
            }
            let rule = self.schemas.rules.get(definition.name, field.name);
            let is_optional = rule.optional || self.schemas.rules.is_optional(definition.name);
            let need = !is_optional && is_needed(definition, field, rule);
            let child = self.field(definition, field, rule, need);
            // A field with a default is never absent, so requiring it is only documentation.
            if need || field.required && child.default.is_some() {
                schema.required.push(field.name.to_owned());
            }
            schema.properties.insert(field.name.to_owned(), child);
            if !schema.order.contains(&field.name) {
                schema.order.push(field.name);
            }
        }
        schema
    }

    fn field(
        &mut self,
        definition: &Definition,
        field: &Field,
        rule: &Rule,
        need: bool,
    ) -> Arc<Schema> {
        let base = self.ty(&field.ty);
        let mut schema = Schema::clone(&base);
        let default = rule.default.or(field.default).filter(|_| !need);
        schema.default = default.and_then(|text| serde_json::from_str(text).ok());
        // In Go, a field with a published default is no pointer: zero counts as absent.
        let is_replaced = rule.default.is_some() && field.default.is_some();
        schema.keep_empty = rule.keep || field.keep_empty && !need && !is_replaced;
        schema.write_null = rule.null || field.write_null;
        schema.always_set = field.default.is_some() && rule.default.is_none();
        schema.omit_zero = !field.keep_empty || is_replaced;
        schema.list_type = match field.list_type {
            // The validation of each type checks the keys, with its own messages.
            ListType::Map => ListType::Unset,
            other => other,
        };
        schema.list_map_keys = field.list_map_keys.iter().map(|key| (*key).to_owned()).collect();
        schema.atomic_map = !field.granular_map && (schema.atomic_map || field.atomic_map);
        schema.patch_merge_key = field.patch_merge_key;
        schema.patch_strategy = field.patch_strategy;
        schema.limits.minimum = rule.minimum;
        schema.limits.maximum = rule.maximum;
        schema.disabled = rule.disabled;
        let checks = std::mem::take(&mut schema.constraints.checks);
        schema.constraints = Constraints { checks, ..rule.constraints.clone() };
        enumerate(&mut schema, definition, field, rule);
        if rule.unchecked {
            uncheck(&mut schema);
        }
        Arc::new(schema)
    }

    fn ty(&mut self, ty: &Type) -> Arc<Schema> {
        let schema = match ty {
            Type::Message(name) => return self.message(name),
            Type::List(inner) | Type::WrappedList(inner) => list(self.ty(inner)),
            Type::Map(inner) => map(self.ty(inner)),
            Type::String | Type::Duration => string(),
            Type::Bytes => bytes(),
            Type::Boolean => boolean(),
            Type::Int32 => int32(),
            Type::Int64 => int64(),
            Type::Double => Schema { kind: Some(Kind::Number), ..Schema::default() },
            Type::Time => time(),
            Type::MicroTime => micro_time(),
            Type::Quantity => quantity(),
            Type::IntOrString => int_or_string(),
            Type::RawExtension | Type::FieldsV1 => {
                // Managers own such a value as a whole.
                Schema { kind: Some(Kind::Object), atomic_map: true, ..anything() }
            }
            Type::Json => anything(),
        };
        Arc::new(schema)
    }
}

/// Removes everything that makes a value of the right structure a mistake.
fn uncheck(schema: &mut Schema) {
    schema.constraints = Constraints::default();
    schema.required.clear();
    schema.enumeration.clear();
    let parts = schema.properties.values_mut().chain(&mut schema.items);
    parts.chain(&mut schema.additional_properties).for_each(|part| uncheck(Arc::make_mut(part)));
}

/// Sets the permitted values. Those of a status are published and not checked.
fn enumerate(schema: &mut Schema, definition: &Definition, field: &Field, rule: &Rule) {
    let values = if rule.enumeration.is_empty() { &field.enumeration } else { &rule.enumeration };
    if values.is_empty() || rule.open || is_status(definition) {
        return;
    }
    let values = values.iter().map(|value| Value::from(*value)).collect();
    match &mut schema.items {
        Some(items) => Arc::make_mut(items).enumeration = values,
        None => schema.enumeration = values,
    }
}

/// Reports whether an absent value is a mistake.
fn is_needed(definition: &Definition, field: &Field, rule: &Rule) -> bool {
    if is_status(definition) {
        return false;
    }
    rule.needed
        || field.required
            && match field.ty {
                // The zero value of these types can be intended.
                Type::Int32 | Type::Int64 | Type::Double | Type::Boolean | Type::Message(_) => {
                    field.default.is_none()
                }
                _ => true,
            }
}

/// Reports whether a definition belongs to a status, which controllers write. Users write the
/// conditions of webhooks and policies.
fn is_status(definition: &Definition) -> bool {
    let name = definition.name;
    name.ends_with("Status") || name.ends_with("Condition") && !name.ends_with(".MatchCondition")
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use rstest::rstest;
    use serde_json::json;

    use super::*;

    const CORE: &str = r#"package io.k8s.farm.v1

io.k8s.farm.v1.Barn kind=farm/v1/Barn
  0 kind string
  0 apiVersion string
  1 metadata Meta default={}
  2 spec BarnSpec default={}
  3 status BarnStatus default={}

io.k8s.farm.v1.BarnSpec
  1 animals []Animal required null list=map keys=name merge=name strategy=merge
  2 roof Roof inline
  8 former Animal
  3 size int32 keep
  4 doors int32
  5 open bool keep
  6 parent BarnSpec
  7 note string required keep default=""

io.k8s.farm.v1.BarnStatus
  1 phase string required keep enum=Old,New default=""

io.k8s.farm.v1.Roof
  1 material string enum=Straw,Wood

io.k8s.farm.v1.Animal
  1 name string required keep default=""
  2 legs int32 required keep default=0

io.k8s.farm.v1.Meta
  1 name string
"#;

    const RULES: &str = "package io.k8s.farm.v1

BarnSpec
  size minimum=1 maximum=9 default=3
  note optional
  former unchecked
";

    fn schema() -> Arc<Schema> {
        static DEFINITIONS: LazyLock<Definitions> =
            LazyLock::new(|| Definitions::parse(&[("farm", CORE)]).unwrap());
        let rules = Rules::parse(&[("farm", RULES)]).unwrap();
        Schemas::new(&DEFINITIONS, rules, [], []).kind("farm", "v1", "Barn").unwrap()
    }

    #[rstest]
    #[case(json!({"spec": {"animals": [{"name": "cow"}]}}), &[])]
    #[case(json!({"spec": {}}), &["spec.animals"])]
    #[case(json!({"spec": {"animals": []}}), &["spec.animals"])]
    #[case(json!({"spec": {"animals": [{"name": ""}]}}), &["spec.animals[0].name"])]
    #[case(json!({"spec": {"animals": [{"name": "a"}], "size": 0}}), &["spec.size"])]
    #[case(json!({"spec": {"animals": [{"name": "a"}], "former": {"name": ""}}}), &[])]
    #[case(json!({"spec": {"animals": [{"name": "a"}], "material": "Tin"}}), &["spec.material"])]
    #[case(
        json!({"spec": {"animals": [{"name": "a"}]}, "status": {"phase": "Burnt"}}),
        &[]
    )]
    fn structure_and_rules_are_validated(#[case] mut barn: Value, #[case] expected: &[&str]) {
        let schema = schema();
        schema.prune(&mut barn);
        schema.apply_defaults(&mut barn);
        let errors = schema.validate(&barn, None);
        assert_eq!(errors.into_iter().map(|error| error.field).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn values_are_written_like_go_writes_them() {
        let schema = schema();
        let mut barn = json!({"spec": {
            "animals": [{"name": "cow"}], "doors": 0, "open": false, "unknown": 1,
        }});
        schema.prune(&mut barn);
        schema.apply_defaults(&mut barn);
        let expected = json!({
            "metadata": {},
            "spec": {"animals": [{"name": "cow", "legs": 0}], "open": false, "size": 3, "note": ""},
            "status": {"phase": ""},
        });
        assert_eq!(barn, expected);
    }

    #[test]
    fn lists_have_keys_and_recursion_ends() {
        let spec = schema().properties["spec"].clone();
        let animals = &spec.properties["animals"];
        assert_eq!(animals.list_map_keys, ["name"]);
        assert_eq!((animals.patch_merge_key, animals.patch_strategy.merge), (Some("name"), true));
        assert!(spec.properties["parent"].preserve_unknown);
        assert_eq!(spec.name, Some("io.k8s.farm.v1.BarnSpec"));
    }
}
