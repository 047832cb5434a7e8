//! Published types and their schemas, from OpenAPI documents and custom resource definitions.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use super::fields::fields;

/// The extension with the kinds of a definition.
const KINDS: &str = "x-kubernetes-group-version-kind";

/// The annotation that approves a CRD in a group of the Kubernetes project.
const APPROVED: &str = "api-approved.kubernetes.io";

/// A published API.
#[derive(Clone, Debug, Default)]
pub struct Published {
    /// All types.
    pub(super) types: Vec<TypeSchema>,
    /// Named schemas, for references. Types share them.
    definitions: BTreeMap<String, Arc<Value>>,
}

#[derive(Clone, Debug)]
pub(super) struct TypeSchema {
    /// Such as `widgets.v1.example.com`, or the name of the definition.
    pub(super) name: String,
    /// True for a custom resource definition.
    pub(super) custom: bool,
    /// Group and kind, for types whose objects are served.
    pub(super) kind: Option<Served>,
    pub(super) schema: Arc<Value>,
    /// True if the spec of another type contains it.
    pub(super) in_spec: bool,
    /// JSON Pointer to the schema in its document.
    pub(super) root: String,
    /// Number of its own fields.
    pub(super) fields: usize,
}

/// The kind of a served type.
#[derive(Clone, Debug, Default)]
pub(super) struct Served {
    pub(super) group: String,
    pub(super) version: String,
    pub(super) kind: String,
    pub(super) namespaced: bool,
    /// True with a status subresource.
    pub(super) has_status: bool,
    /// True if the project approved the group.
    pub(super) approved: bool,
}

/// Why a manifest is no valid custom resource definition.
#[derive(Debug, thiserror::Error)]
pub enum CrdError {
    /// It has another API version.
    #[error("expected apiVersion apiextensions.k8s.io/v1, found {0}; convert it first")]
    OldVersion(String),
    /// It lacks a required member.
    #[error("the CustomResourceDefinition has no {0}")]
    Lacks(&'static str),
}

impl Published {
    /// Adds the definitions of an OpenAPI v3 document, except for groups in `left_out`.
    pub fn add_document(&mut self, document: &Value, left_out: &dyn Fn(&str) -> bool) {
        let Some(schemas) = document.pointer("/components/schemas").and_then(Value::as_object)
        else {
            return;
        };
        for (name, schema) in schemas {
            let kinds = schema[KINDS].as_array().into_iter().flatten();
            if kinds.filter_map(|kind| kind["group"].as_str()).any(left_out) {
                continue;
            }
            self.definitions.entry(name.clone()).or_insert_with(|| Arc::new(schema.clone()));
        }
    }

    /// Converts definitions to types after all documents were added.
    pub fn finish(&mut self) {
        let mut in_spec = BTreeSet::new();
        for schema in self.definitions.values() {
            if kind_of(schema).is_some()
                && let Some(spec) = schema.pointer("/properties/spec")
            {
                self.reach(spec, &mut in_spec, &|_| true);
            }
        }
        let types = self.definitions.iter().map(|(name, schema)| TypeSchema {
            name: name.clone(),
            custom: false,
            kind: kind_of(schema),
            schema: Arc::clone(schema),
            in_spec: in_spec.contains(name),
            root: format!("/components/schemas/{name}"),
            fields: 0,
        });
        let types: Vec<TypeSchema> = types.map(|ty| self.counted(ty)).collect();
        self.types.extend(types);
    }

    /// Adds every served version of a custom resource definition.
    pub fn add_crd(&mut self, crd: &Value) -> Result<(), CrdError> {
        let version = crd["apiVersion"].as_str().unwrap_or("none");
        if version != "apiextensions.k8s.io/v1" {
            return Err(CrdError::OldVersion(version.to_owned()));
        }
        let text = |pointer, what| {
            crd.pointer(pointer).and_then(Value::as_str).ok_or(CrdError::Lacks(what))
        };
        let group = text("/spec/group", "spec.group")?;
        let plural = text("/spec/names/plural", "spec.names.plural")?;
        let kind = Served {
            group: group.to_owned(),
            version: String::new(),
            kind: text("/spec/names/kind", "spec.names.kind")?.to_owned(),
            namespaced: crd["spec"]["scope"] == "Namespaced",
            has_status: false,
            approved: crd["metadata"]["annotations"][APPROVED].is_string(),
        };
        let versions =
            crd["spec"]["versions"].as_array().ok_or(CrdError::Lacks("spec.versions"))?;
        for (nth, version) in
            versions.iter().enumerate().filter(|(_, version)| version["served"] != false)
        {
            let schema =
                version.pointer("/schema/openAPIV3Schema").ok_or(CrdError::Lacks("schema"))?;
            let name = version["name"].as_str().ok_or(CrdError::Lacks("name of a version"))?;
            let ty = TypeSchema {
                name: format!("{plural}.{name}.{group}"),
                custom: true,
                kind: Some(Served {
                    version: name.to_owned(),
                    has_status: version.pointer("/subresources/status").is_some(),
                    ..kind.clone()
                }),
                schema: Arc::new(schema.clone()),
                in_spec: false,
                root: format!("/spec/versions/{nth}/schema/openAPIV3Schema"),
                fields: 0,
            };
            self.types.push(self.counted(ty));
        }
        Ok(())
    }

    fn counted(&self, ty: TypeSchema) -> TypeSchema {
        let fields = fields(self, &ty).len();
        TypeSchema { fields, ..ty }
    }

    /// Follows a reference. Members beside the reference are lost.
    pub(super) fn resolve<'a>(&'a self, schema: &'a Value) -> &'a Value {
        target(schema).and_then(|name| self.definitions.get(name)).map_or(schema, Arc::as_ref)
    }

    /// Collects the definitions that a schema refers to.
    pub(super) fn reach(
        &self,
        schema: &Value,
        reached: &mut BTreeSet<String>,
        followed: &dyn Fn(&str) -> bool,
    ) {
        match schema {
            Value::Object(members) => {
                if let Some(name) = members.get("$ref").and_then(Value::as_str).map(last)
                    && followed(name)
                    && let Some(definition) = self.definitions.get(name)
                    && reached.insert(name.to_owned())
                {
                    self.reach(definition, reached, followed);
                }
                members.values().for_each(|member| self.reach(member, reached, followed));
            }
            Value::Array(items) => {
                for item in items {
                    self.reach(item, reached, followed);
                }
            }
            _ => {}
        }
    }
}

/// Returns the name of the referenced definition.
pub(super) fn target(schema: &Value) -> Option<&str> {
    let alone = || schema["$ref"].as_str();
    let beside = || match schema["allOf"].as_array()?.as_slice() {
        [one] => one["$ref"].as_str(),
        _ => None,
    };
    alone().or_else(beside).map(last)
}

fn last(pointer: &str) -> &str {
    pointer.rsplit('/').next().unwrap_or(pointer)
}

fn kind_of(schema: &Value) -> Option<Served> {
    let kind = schema[KINDS].as_array()?.first()?;
    Some(Served {
        group: kind["group"].as_str()?.to_owned(),
        version: kind["version"].as_str()?.to_owned(),
        kind: kind["kind"].as_str()?.to_owned(),
        ..Served::default()
    })
}
