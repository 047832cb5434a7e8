//! The resources that cases run on: standard, of the suite, of the user, and adopted ones.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use kubeproof_cases::SubjectDefinition;
use kubeproof_cases::case::{ResourceName, Scope};
use serde_json::{Map, Value, json};

use super::notation;
use crate::capability::{Discovered, STANDARD_VERBS, root_of};
use crate::yaml;

/// A resource that cases run on.
#[derive(Clone, Debug)]
pub struct Subject {
    /// The name in files and reports. Custom resources of the suite have another group in each run.
    pub name: ResourceName,
    /// The name that the server uses.
    pub served: ResourceName,
    /// Such as `ConfigMap`.
    pub kind: String,
    /// Such as `ConfigMapList`.
    pub list_kind: String,
    /// Such as `configmap`.
    pub singular: String,
    /// Whether objects live in namespaces.
    pub namespaced: bool,
    /// Verbs of discovery.
    pub verbs: BTreeSet<String>,
    /// Such as `status`.
    pub subresources: BTreeSet<String>,
    /// A valid object without apiVersion, kind and name.
    pub template: Value,
    /// A merge patch that changes the desired state.
    pub change: Option<Value>,
    /// A merge patch for the status.
    pub status: Option<Value>,
    /// The origin of the subject.
    pub origin: Origin,
}

/// The origin of a subject.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Origin {
    /// A built-in type with a definition of the suite.
    Standard,
    /// A resource that the suite installs.
    Suite,
    /// A resource of `--subject`.
    User,
    /// A resource from discovery, on targets without standard ones.
    Adopted,
    /// A resource that a case names.
    Named,
}

impl Subject {
    /// Returns a valid object with this name.
    pub(crate) fn object(&self, namespace: &str, name: &str) -> Value {
        let mut object = filled(&self.template, "ns", namespace);
        if !object.is_object() {
            object = json!({});
        }
        object["apiVersion"] = self.api_version().into();
        object["kind"] = self.kind.clone().into();
        object["metadata"]["name"] = name.into();
        if self.namespaced {
            object["metadata"]["namespace"] = namespace.into();
        }
        object
    }

    /// Creates the subject for a listed resource with a definition of the suite.
    pub fn standard(
        definition: &SubjectDefinition,
        discovered: &Discovered,
        origin: Origin,
    ) -> Self {
        Self {
            kind: definition.kind.clone(),
            list_kind: definition.list_kind.clone(),
            singular: definition.singular.clone(),
            template: definition.template.clone(),
            change: definition.change.clone(),
            status: definition.status.clone(),
            ..Self::discovered(&definition.name, discovered, origin)
        }
    }

    /// Creates the subject for a resource that only discovery describes.
    pub fn discovered(name: &ResourceName, discovered: &Discovered, origin: Origin) -> Self {
        let singular = match discovered.singular.as_str() {
            "" => discovered.kind.to_lowercase(),
            given => given.to_owned(),
        };
        Self {
            name: name.clone(),
            served: name.clone(),
            kind: discovered.kind.clone(),
            list_kind: format!("{}List", discovered.kind),
            singular,
            namespaced: discovered.namespaced,
            verbs: discovered.verbs.clone(),
            subresources: discovered.subresources.keys().cloned().collect(),
            template: json!({}),
            change: None,
            status: None,
            origin,
        }
    }

    /// Creates the subject for a resource of the suite, served under this group.
    pub fn custom(definition: &SubjectDefinition, crd: &Value, group: &str) -> Self {
        let versions = crd["spec"]["versions"].as_array().into_iter().flatten();
        let subresources = versions
            .filter(|version| version["name"] == definition.name.version.as_str())
            .filter_map(|version| version["subresources"].as_object())
            .flat_map(Map::keys);
        Self {
            name: definition.name.clone(),
            served: ResourceName { group: group.to_owned(), ..definition.name.clone() },
            kind: definition.kind.clone(),
            list_kind: definition.list_kind.clone(),
            singular: definition.singular.clone(),
            namespaced: definition.scope == Scope::Namespaced,
            verbs: STANDARD_VERBS.map(str::to_owned).into(),
            subresources: subresources.cloned().collect(),
            template: definition.template.clone(),
            change: definition.change.clone(),
            status: definition.status.clone(),
            origin: Origin::Suite,
        }
    }

    /// Returns the path of its group version.
    pub fn root(&self) -> String {
        root_of(&self.served)
    }

    /// Returns the path of its collection, in this namespace if it is namespaced.
    pub fn collection(&self, namespace: &str) -> String {
        if self.namespaced {
            format!("{}/namespaces/{namespace}/{}", self.root(), self.served.resource)
        } else {
            self.collection_of_all()
        }
    }

    /// Returns the path of its collection across all namespaces.
    pub fn collection_of_all(&self) -> String {
        format!("{}/{}", self.root(), self.served.resource)
    }

    /// Returns `v1`, `apps/v1` and the like.
    pub fn api_version(&self) -> String {
        match self.served.group.as_str() {
            "" => self.served.version.clone(),
            group => format!("{group}/{}", self.served.version),
        }
    }

    /// Returns the variable `subject` of cases.
    pub fn variables(&self, namespace: &str) -> Value {
        let qualified = match self.served.group.as_str() {
            "" => self.served.resource.clone(),
            group => format!("{}.{group}", self.served.resource),
        };
        let filled = |value: &Value| filled(value, "ns", namespace);
        let mut variables = json!({
            "group": self.served.group,
            "version": self.served.version,
            "apiVersion": self.api_version(),
            "resource": self.served.resource,
            "singular": self.singular,
            "kind": self.kind,
            "listKind": self.list_kind,
            "qualified": qualified,
            "root": self.root(),
            "namespaced": self.namespaced,
            "template": filled(&self.template),
        });
        for (name, value) in [("change", &self.change), ("status", &self.status)] {
            if let Some(value) = value {
                variables[name] = filled(value);
            }
        }
        variables
    }
}

/// Replaces `${name}` in all strings of a value.
pub(crate) fn filled(value: &Value, name: &str, by: &str) -> Value {
    match value {
        Value::String(text) => Value::String(text.replace(&format!("${{{name}}}"), by)),
        Value::Array(items) => items.iter().map(|item| filled(item, name, by)).collect(),
        Value::Object(members) => Value::Object(
            members.iter().map(|(key, value)| (key.clone(), filled(value, name, by))).collect(),
        ),
        other => other.clone(),
    }
}

/// The value of `--subject RESOURCE.VERSION[.GROUP][=template.yaml]`. The resource can have the
/// form `[GROUP/]VERSION/RESOURCE` too.
#[derive(Clone, Debug, PartialEq)]
pub struct SubjectArgument {
    /// The resource.
    pub name: ResourceName,
    /// A valid object; without it, an object with only a name.
    pub template: Option<Value>,
    /// The kind of the template.
    pub kind: Option<String>,
}

/// Why a subject of the user is invalid.
#[derive(Debug, thiserror::Error)]
pub enum SubjectError {
    /// The argument does not name a resource.
    #[error(
        "{0:?} is no subject: expected RESOURCE.VERSION[.GROUP] or [GROUP/]VERSION/RESOURCE, for \
         example deployments.v1.apps, and =FILE for a template"
    )]
    Malformed(String),
    /// The template cannot be used.
    #[error("cannot use {} as template of a subject: {reason}", path.display())]
    Template {
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// The template is an object of another kind.
    #[error("the template of the subject {name} contains a {found}, expected a {expected}")]
    Kind {
        /// The resource.
        name: String,
        /// The kind of the resource.
        expected: String,
        /// The kind of the template.
        found: String,
    },
    /// An object with only a name is not valid.
    #[error(
        "the server rejects the object that kubeproof made for the subject {name}: {response}; \
         give a valid object with --subject {name}=FILE"
    )]
    Rejected {
        /// The resource.
        name: ResourceName,
        /// The status code and the message.
        response: String,
    },
    /// Discovery does not list the resource, and the server does not serve it.
    #[error(
        "the server does not serve the subject {name}{}",
        nearest.as_ref().map(|n| format!("; did you mean {n}?")).unwrap_or_default()
    )]
    NotServed {
        /// The resource.
        name: ResourceName,
        /// The most similar resource of the server.
        nearest: Option<String>,
    },
}

impl FromStr for SubjectArgument {
    type Err = SubjectError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (resource, file) = match text.split_once('=') {
            Some((resource, file)) => (resource, Some(Path::new(file))),
            None => (text, None),
        };
        let name =
            notation::resource(resource).ok_or_else(|| SubjectError::Malformed(text.to_owned()))?;
        let (kind, template) = file.map(template_file).transpose()?.unzip();
        Ok(Self { name, template, kind: kind.flatten() })
    }
}

/// Reads a template. Returns its kind too.
fn template_file(path: &Path) -> Result<(Option<String>, Value), SubjectError> {
    let bad = |reason: String| SubjectError::Template { path: path.to_owned(), reason };
    let text = std::fs::read_to_string(path).map_err(|error| bad(error.to_string()))?;
    let mut template: Value = yaml::read(&text).map_err(bad)?;
    let Some(object) = template.as_object_mut() else {
        return Err(bad("expected the manifest of one object".to_owned()));
    };
    let kind = object.get("kind").and_then(Value::as_str).map(str::to_owned);
    // Cases set the first two, and the server the rest.
    for member in ["apiVersion", "kind", "status"] {
        object.remove(member);
    }
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.retain(|member, _| matches!(member.as_str(), "labels" | "annotations"));
    }
    Ok((kind, template))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("apps/v1/deployments", "deployments.v1.apps")]
    #[case("v1/configmaps", "configmaps.v1")]
    #[case("example.org/v1beta1/things", "things.v1beta1.example.org")]
    #[case("deployments.v1.apps", "deployments.v1.apps")]
    fn arguments_name_resources(#[case] text: &str, #[case] name: &str) {
        assert_eq!(text.parse::<SubjectArgument>().unwrap().name.to_string(), name);
    }

    #[rstest]
    #[case("deployments")]
    #[case("a/b/c/d")]
    #[case("apps//deployments")]
    #[case("v1/configmaps=missing.yaml")]
    fn other_arguments_are_errors(#[case] text: &str) {
        assert!(text.parse::<SubjectArgument>().is_err());
    }

    #[test]
    fn a_template_leaves_names_and_server_fields_to_others() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(
            file.path(),
            "apiVersion: v1\nkind: ConfigMap\n\
             metadata: {name: a, namespace: b, uid: c, labels: {d: e}}\ndata: {f: g}\n",
        )
        .unwrap();
        let argument: SubjectArgument =
            format!("v1/configmaps={}", file.path().display()).parse().unwrap();
        assert_eq!(
            argument.template,
            Some(json!({"metadata": {"labels": {"d": "e"}}, "data": {"f": "g"}}))
        );
    }

    #[test]
    fn a_custom_resource_keeps_its_name_and_is_served_under_the_group_of_the_run() {
        let name = ResourceName {
            resource: "widgets".into(),
            version: "v1".into(),
            group: "kubeproof.dev".into(),
        };
        let definition = SubjectDefinition {
            name,
            kind: "Widget".into(),
            list_kind: "WidgetList".into(),
            singular: "widget".into(),
            scope: Scope::Namespaced,
            standard: true,
            template: json!({"spec": {"home": "${ns}"}}),
            change: Some(json!({"spec": {"size": 2}})),
            status: None,
            crd: None,
        };
        let crd = json!({
            "spec": {"versions": [{"name": "v1", "subresources": {"status": {}, "scale": {}}}]},
        });
        let widgets = Subject::custom(&definition, &crd, "abc.kubeproof.dev");
        assert_eq!(widgets.name.to_string(), "widgets.v1.kubeproof.dev");
        assert_eq!(widgets.collection("ns"), "/apis/abc.kubeproof.dev/v1/namespaces/ns/widgets");
        assert!(widgets.subresources.contains("status") && widgets.subresources.contains("scale"));
        let variables = widgets.variables("ns");
        assert_eq!(variables["apiVersion"], "abc.kubeproof.dev/v1");
        assert_eq!(variables["template"], json!({"spec": {"home": "ns"}}));
        assert_eq!(variables["change"], json!({"spec": {"size": 2}}));
        assert!(variables.get("status").is_none());
    }
}
