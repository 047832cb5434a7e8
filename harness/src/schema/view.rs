//! A selection of published types to judge.

use std::collections::BTreeSet;

use kubeproof_cases::case::ResourceName;
use kubeproof_cases::rule::{Rule, SchemaSet};
use serde_json::{Value, json};

use super::model::{Published, TypeSchema};
use super::{Finding, rules};

/// The prefix of Kubernetes definitions.
const KUBERNETES: &str = "io.k8s.";

/// The prefix of definitions that all of Kubernetes shares.
const SHARED: &str = "io.k8s.apimachinery.";

/// A selection of published types.
#[derive(Debug)]
pub struct View<'a> {
    published: &'a Published,
    types: Vec<&'a TypeSchema>,
    /// Why the selection is empty.
    nothing: String,
}

impl Published {
    /// Selects all types, or those of custom resource definitions.
    pub fn view(&self, of: SchemaSet) -> View<'_> {
        let (all, nothing) = match of {
            SchemaSet::Published => (true, "the OpenAPI documents hold no schema"),
            SchemaSet::Crds => (false, "there are no custom resource definitions to judge"),
        };
        let types = self.types.iter().filter(|ty| all || ty.custom).collect();
        View { published: self, types, nothing: nothing.to_owned() }
    }

    /// Selects the types of one resource, without shared Kubernetes types. The author of the
    /// resource did not design those.
    pub fn view_of(&self, of: SchemaSet, name: &ResourceName, kind: &str) -> View<'_> {
        let full_name = name.to_string();
        let custom: Vec<&TypeSchema> =
            self.types.iter().filter(|ty| ty.custom && ty.name == full_name).collect();
        let (types, nothing) = if !custom.is_empty() {
            (custom, String::new())
        } else if of == SchemaSet::Crds {
            (custom, format!("{name} is no custom resource"))
        } else {
            (self.types_of(name, kind), format!("no OpenAPI document has a schema of {name}"))
        };
        View { published: self, types, nothing }
    }

    /// Selects one version of a custom resource.
    pub(super) fn view_of_type(&self, name: &str) -> View<'_> {
        let types = self.types.iter().filter(|ty| ty.name == name).collect();
        View { published: self, types, nothing: format!("there is no schema of {name}") }
    }

    /// Returns the custom resources, such as `widgets.v1.example.com`.
    pub(super) fn custom_types(&self) -> impl Iterator<Item = &str> {
        self.types.iter().filter(|ty| ty.custom).map(|ty| ty.name.as_str())
    }

    fn types_of(&self, name: &ResourceName, kind: &str) -> Vec<&TypeSchema> {
        let is_root = |ty: &TypeSchema| {
            ty.kind.as_ref().is_some_and(|served| {
                served.kind == kind && served.group == name.group && served.version == name.version
            })
        };
        let mut reached = BTreeSet::new();
        for root in self.types.iter().filter(|ty| is_root(ty)) {
            let foreign = if root.name.starts_with(KUBERNETES) { SHARED } else { KUBERNETES };
            reached.insert(root.name.clone());
            self.reach(&root.schema, &mut reached, &|name| !name.starts_with(foreign));
        }
        self.types.iter().filter(|ty| reached.contains(&ty.name)).collect()
    }
}

impl View<'_> {
    /// Returns every place that breaks a rule.
    pub fn findings(&self, rule: Rule) -> Vec<Finding> {
        let found = self.types.iter().flat_map(|ty| rules::findings(rule, self.published, ty));
        let mut found: Vec<Finding> = found.collect();
        found.sort_by(|a, b| a.at.cmp(&b.at));
        found.dedup_by(|a, b| a.at == b.at && a.message == b.message);
        found
    }

    /// Returns why the selection is empty.
    pub(super) fn nothing(&self) -> Option<&str> {
        self.types.is_empty().then_some(self.nothing.as_str())
    }

    /// Returns the number of types and fields.
    pub(super) fn size(&self) -> Value {
        let fields: usize = self.types.iter().map(|ty| ty.fields).sum();
        json!({"types": self.types.len(), "fields": fields})
    }
}
