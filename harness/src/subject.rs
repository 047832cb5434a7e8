//! The resources that cases run on: standard ones, the suite's own, the user's, and adopted ones.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use futures_util::future::join_all;
use kubeproof_cases::SubjectDefinition;
use kubeproof_cases::case::{ResourceName, Scope};
use serde_json::{Map, Value, json};

use crate::capability::{Asker, Discovered, Questions, may_create, root_of};
use crate::fence::Fence;

/// Verbs of every custom resource.
const CUSTOM_VERBS: [&str; 8] =
    ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

/// How many resources a target without standard ones lends at most.
const ADOPTED: usize = 2;

/// How many resources are asked whether they would do.
const CANDIDATES: usize = 24;

/// A resource, as cases see it.
#[derive(Clone, Debug)]
pub struct Subject {
    /// As files and reports name it. The suite's own resources are served under another group in each run.
    pub name: ResourceName,
    /// Under this name it is served.
    pub served: ResourceName,
    /// As `ConfigMap`.
    pub kind: String,
    /// As `ConfigMapList`.
    pub list_kind: String,
    /// As `configmap`.
    pub singular: String,
    /// Whether objects live in namespaces.
    pub namespaced: bool,
    /// The verbs of discovery.
    pub verbs: BTreeSet<String>,
    /// As `status`.
    pub subresources: BTreeSet<String>,
    /// A valid object without apiVersion, kind and name.
    pub template: Value,
    /// A merge patch that changes the desired state.
    pub change: Option<Value>,
    /// A merge patch for the status.
    pub status: Option<Value>,
    /// Where it comes from.
    pub origin: Origin,
}

/// Where a subject comes from.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Origin {
    /// The suite knows it.
    Standard,
    /// The suite installs it.
    Suite,
    /// The user named it.
    User,
    /// Found by discovery, for want of others.
    Adopted,
    /// A case names it.
    Named,
}

impl Subject {
    /// A resource that the server lists and the suite knows.
    pub fn standard(definition: &SubjectDefinition, discovered: &Discovered, origin: Origin) -> Self {
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

    /// A resource of which only discovery is known.
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

    /// One of the suite's own resources, as it will be served under this group.
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
            verbs: CUSTOM_VERBS.map(str::to_owned).into(),
            subresources: subresources.cloned().collect(),
            template: definition.template.clone(),
            change: definition.change.clone(),
            status: definition.status.clone(),
            origin: Origin::Suite,
        }
    }

    /// The path of its group version.
    pub fn root(&self) -> String {
        root_of(&self.served)
    }

    /// The path of its collection, in this namespace if it is namespaced.
    pub fn collection(&self, namespace: &str) -> String {
        if self.namespaced {
            format!("{}/namespaces/{namespace}/{}", self.root(), self.served.resource)
        } else {
            self.collection_of_all()
        }
    }

    /// The path of its collection across all namespaces.
    pub fn collection_of_all(&self) -> String {
        format!("{}/{}", self.root(), self.served.resource)
    }

    /// As `v1`, `apps/v1`.
    pub fn api_version(&self) -> String {
        match self.served.group.as_str() {
            "" => self.served.version.clone(),
            group => format!("{group}/{}", self.served.version),
        }
    }

    /// What cases know as `subject`, in this namespace.
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

/// A value with `${name}` replaced in all its strings.
pub fn filled(value: &Value, name: &str, by: &str) -> Value {
    match value {
        Value::String(text) => Value::String(text.replace(&format!("${{{name}}}"), by)),
        Value::Array(items) => items.iter().map(|item| filled(item, name, by)).collect(),
        Value::Object(members) => {
            Value::Object(members.iter().map(|(key, value)| (key.clone(), filled(value, name, by))).collect())
        }
        other => other.clone(),
    }
}

/// `--subject GROUP/VERSION/RESOURCE[=template.yaml]`.
#[derive(Clone, Debug, PartialEq)]
pub struct SubjectArgument {
    /// The resource.
    pub name: ResourceName,
    /// An object of it that the server accepts; absent: one of a name alone.
    pub template: Option<Value>,
}

/// Why a subject of the user cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SubjectError {
    /// Not a resource.
    #[error(
        "the subject {0:?} is not one: expected GROUP/VERSION/RESOURCE, or VERSION/RESOURCE of the core group, as apps/v1/deployments, with =FILE behind it for a template"
    )]
    Malformed(String),
    /// The template cannot be read.
    #[error("cannot use {} as template of a subject: {reason}", path.display())]
    Template {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// Discovery does not list it.
    #[error("the server does not serve the subject {name}{}", nearest.as_ref().map(|n| format!("; did you mean {n}?")).unwrap_or_default())]
    NotServed {
        /// The resource.
        name: ResourceName,
        /// The nearest that it serves.
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
        let (group, version, resource) = match resource.split('/').collect::<Vec<_>>()[..] {
            [version, resource] => ("", version, resource),
            [group, version, resource] => (group, version, resource),
            _ => return Err(SubjectError::Malformed(text.to_owned())),
        };
        if version.is_empty() || resource.is_empty() {
            return Err(SubjectError::Malformed(text.to_owned()));
        }
        let (group, version, resource) = (group.to_owned(), version.to_owned(), resource.to_owned());
        let name = ResourceName { resource, version, group };
        Ok(Self { name, template: file.map(template_file).transpose()? })
    }
}

fn template_file(path: &Path) -> Result<Value, SubjectError> {
    let bad = |reason: String| SubjectError::Template { path: path.to_owned(), reason };
    let text = std::fs::read_to_string(path).map_err(|error| bad(error.to_string()))?;
    let mut template: Value = serde_saphyr::from_str(&text).map_err(|error| bad(error.to_string()))?;
    let Some(object) = template.as_object_mut() else {
        return Err(bad("expected the manifest of one object".to_owned()));
    };
    // Cases give these themselves, and the server the rest.
    for member in ["apiVersion", "kind", "status"] {
        object.remove(member);
    }
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.retain(|member, _| matches!(member.as_str(), "labels" | "annotations"));
    }
    Ok(template)
}

/// Resources whose minimal object a dry-run create accepts: for targets that serve nothing that the suite knows.
///
/// One that is namespaced and one that is not are preferred to two alike.
pub(crate) async fn adopt(
    asker: &Asker<'_>,
    resources: &BTreeMap<ResourceName, Discovered>,
    questions: &Questions<'_>,
) -> Vec<Subject> {
    let usable =
        |found: &Discovered| ["create", "get", "list", "delete"].iter().all(|v| found.verbs.contains(*v));
    let candidates = resources.iter().filter(|(_, found)| usable(found)).take(CANDIDATES);
    let accepted = join_all(candidates.map(async |(name, found)| {
        let subject = Subject::discovered(name, found, Origin::Adopted);
        let manifest = json!({
            "apiVersion": subject.api_version(), "kind": subject.kind, "metadata": {"name": questions.probe_name},
        });
        let collection = subject.collection(questions.namespace.unwrap_or("default"));
        accepts(asker, questions, &collection, &manifest).await.then_some(subject)
    }))
    .await;
    let (mut adopted, cluster): (Vec<Subject>, Vec<Subject>) =
        accepted.into_iter().flatten().partition(|subject| subject.namespaced);
    adopted.truncate(if cluster.is_empty() { ADOPTED } else { 1 });
    adopted.extend(cluster);
    adopted.truncate(ADOPTED);
    adopted
}

async fn accepts(asker: &Asker<'_>, questions: &Questions<'_>, collection: &str, manifest: &Value) -> bool {
    if !questions.may_send("POST", collection) {
        // Where nothing is written, discovery has to do; beyond the namespace there is nothing to adopt.
        return matches!(questions.fence, Fence::Reads);
    }
    let answer = may_create(asker, collection, manifest).await;
    matches!(answer, Ok(status) if (200..300).contains(&status))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("apps/v1/deployments", "deployments.v1.apps")]
    #[case("v1/configmaps", "configmaps.v1")]
    #[case("example.org/v1beta1/things", "things.v1beta1.example.org")]
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
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: b, uid: c, labels: {d: e}}\ndata: {f: g}\n",
        )
        .unwrap();
        let argument: SubjectArgument = format!("v1/configmaps={}", file.path().display()).parse().unwrap();
        assert_eq!(argument.template, Some(json!({"metadata": {"labels": {"d": "e"}}, "data": {"f": "g"}})));
    }

    #[test]
    fn a_custom_resource_keeps_its_name_and_is_served_under_the_group_of_the_run() {
        let name =
            ResourceName { resource: "widgets".into(), version: "v1".into(), group: "kubeproof.dev".into() };
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
        let crd =
            json!({"spec": {"versions": [{"name": "v1", "subresources": {"status": {}, "scale": {}}}]}});
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
