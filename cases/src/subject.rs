//! Subjects: the resources that cases run on.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::case::{ResourceName, Scope};
use crate::diagnostic::Diagnostic;
use crate::raw::forms::YamlMapping;
use crate::yaml::{Located, Source};

/// A resource, and objects of it that a server accepts.
#[derive(Clone, Debug)]
pub struct SubjectDefinition {
    /// As `configmaps.v1`.
    pub name: ResourceName,
    /// As `ConfigMap`.
    pub kind: String,
    /// As `ConfigMapList`.
    pub list_kind: String,
    /// As `configmap`.
    pub singular: String,
    /// Whether objects live in namespaces.
    pub scope: Scope,
    /// Cases that take any subject run on it unasked.
    pub standard: bool,
    /// A valid object without apiVersion, kind and name. `${ns}` in its strings is the namespace of
    /// the run.
    pub template: Value,
    /// A merge patch that changes the desired state of an object made from the template.
    pub change: Option<Value>,
    /// A merge patch for the status subresource.
    pub status: Option<Value>,
    /// The manifest of the custom resource definition that the suite installs; `${group}` in its
    /// strings is the group.
    pub crd: Option<Value>,
}

/// A file of `subjects/`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schemars(title = "kubeproof subject")]
pub(crate) struct RawSubjectDefinition {
    /// `plural.version` or `plural.version.group`.
    name: Located<String>,
    /// As `ConfigMap`.
    kind: String,
    /// Default: the kind with `List` behind it.
    list_kind: Option<String>,
    /// Default: the kind in lower case.
    singular: Option<String>,
    /// Whether objects live in namespaces.
    scope: Scope,
    /// Cases that take any subject run on it unasked.
    #[serde(default)]
    standard: bool,
    /// A valid object without apiVersion, kind and name; `${ns}` is the namespace of the run.
    template: YamlMapping,
    /// A merge patch that changes the desired state.
    change: Option<YamlMapping>,
    /// A merge patch for the status subresource.
    status: Option<YamlMapping>,
    /// The custom resource definition that the suite installs; `${group}` is its group.
    crd: Option<YamlMapping>,
}

impl RawSubjectDefinition {
    pub(crate) fn lower(self, source: &Source) -> Result<SubjectDefinition, Vec<Diagnostic>> {
        let mut errors = Vec::new();
        let name = parse_resource_name(&self.name.value);
        if name.is_none() {
            errors.push(bad_resource_name(source, &self.name));
        }
        let value = |yaml: YamlMapping| yaml.0.to_value();
        let definition = SubjectDefinition {
            name: name.unwrap_or_else(|| ResourceName {
                resource: String::new(),
                version: String::new(),
                group: String::new(),
            }),
            list_kind: self.list_kind.unwrap_or_else(|| format!("{}List", self.kind)),
            singular: self.singular.unwrap_or_else(|| self.kind.to_lowercase()),
            kind: self.kind,
            scope: self.scope,
            standard: self.standard,
            template: value(self.template),
            change: self.change.map(value),
            status: self.status.map(value),
            crd: self.crd.map(value),
        };
        if errors.is_empty() { Ok(definition) } else { Err(errors) }
    }
}

/// `plural.version` or `plural.version.group`.
pub(crate) fn parse_resource_name(text: &str) -> Option<ResourceName> {
    let mut parts = text.splitn(3, '.');
    let (resource, version) = (parts.next()?, parts.next()?);
    let group = parts.next().unwrap_or_default();
    let version_like = version
        .strip_prefix('v')
        .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    let plain = |part: &str| {
        part.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '.'))
    };
    let well_formed = !resource.is_empty() && version_like && plain(text) && !text.ends_with('.');
    well_formed.then(|| ResourceName {
        resource: resource.to_owned(),
        version: version.to_owned(),
        group: group.to_owned(),
    })
}

pub(crate) fn bad_resource_name(source: &Source, name: &Located<String>) -> Diagnostic {
    let message = format!("`{}` does not name a resource", name.value);
    Diagnostic::new(source, name.place.clone(), "malformed-resource", message).help(
        "expected `plural.version` or `plural.version.group`, as `configmaps.v1` or \
         `deployments.v1.apps`",
    )
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("configmaps.v1", Some(("configmaps", "v1", "")))]
    #[case("widgets.v1beta1.kubeproof.dev", Some(("widgets", "v1beta1", "kubeproof.dev")))]
    #[case("configmaps", None)]
    #[case("deployments.apps", None)]
    #[case("ConfigMaps.v1", None)]
    #[case("pods.v1.", None)]
    fn names_of_resources(#[case] text: &str, #[case] expected: Option<(&str, &str, &str)>) {
        let parsed = parse_resource_name(text);
        let parts = parsed.as_ref().map(|name| (&*name.resource, &*name.version, &*name.group));
        assert_eq!(parts, expected);
        assert!(parsed.is_none_or(|name| name.to_string() == text));
    }
}
