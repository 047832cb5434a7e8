//! The part of a published API that a step judges.

use std::collections::BTreeSet;

use kubeproof_cases::case::ResourceName;
use kubeproof_cases::rule::{Rule, SchemaSet};
use serde_json::{Value, json};

use super::model::{Published, TypeSchema};
use super::{Finding, judge};

/// Definitions of Kubernetes, which other APIs use without having designed them.
const KUBERNETES: &str = "io.k8s.";

/// Those of them that all of Kubernetes uses.
const SHARED: &str = "io.k8s.apimachinery.";

/// Some types of a published API.
#[derive(Debug)]
pub struct View<'a> {
    published: &'a Published,
    types: Vec<&'a TypeSchema>,
    /// Why there are none.
    nothing: String,
}

impl Published {
    /// All of it, or what custom resource definitions define.
    pub fn view(&self, of: SchemaSet) -> View<'_> {
        let (all, nothing) = match of {
            SchemaSet::Published => (true, "the OpenAPI documents hold no schema"),
            SchemaSet::Crds => (false, "there are no custom resource definitions to judge"),
        };
        let types = self.types.iter().filter(|ty| all || ty.custom).collect();
        View { published: self, types, nothing: nothing.to_owned() }
    }

    /// What the schema of one resource leads to. Types that it shares with all of Kubernetes are left out: whoever designed
    /// the resource did not design them.
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

    /// One custom resource in one version.
    pub(super) fn view_of_type(&self, name: &str) -> View<'_> {
        let types = self.types.iter().filter(|ty| ty.name == name).collect();
        View { published: self, types, nothing: format!("there is no schema of {name}") }
    }

    /// The custom resources, as `widgets.v1.example.com`.
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
    /// Every place that breaks a rule.
    pub fn findings(&self, rule: Rule) -> Vec<Finding> {
        let found = self.types.iter().flat_map(|ty| judge::findings(rule, self.published, ty));
        let mut found: Vec<Finding> = found.collect();
        found.sort_by(|a, b| a.at.cmp(&b.at));
        found.dedup_by(|a, b| a.at == b.at && a.message == b.message);
        found
    }

    /// Why there is nothing to judge, where that is so.
    pub(super) fn nothing(&self) -> Option<&str> {
        self.types.is_empty().then_some(self.nothing.as_str())
    }

    /// How much is judged.
    pub(super) fn size(&self) -> Value {
        let fields: usize = self.types.iter().map(|ty| ty.fields).sum();
        json!({"types": self.types.len(), "fields": fields})
    }
}
