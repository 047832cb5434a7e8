//! The parameters of operations. Those of the query are the fields of the options types.

use kubeproof_apimachinery::schema::definitions::{Definitions, Field, Type};

/// A parameter in the path or the query.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Parameter {
    pub(super) name: &'static str,
    pub(super) place: &'static str,
    pub(super) kind: &'static str,
}

pub(super) const PRETTY: Parameter = query("pretty", "string");

const IN_PATHS: [Parameter; 3] = [in_path("name"), in_path("namespace"), in_path("path")];

const fn query(name: &'static str, kind: &'static str) -> Parameter {
    Parameter { name, place: "query", kind }
}

const fn in_path(name: &'static str) -> Parameter {
    Parameter { name, place: "path", kind: "string" }
}

/// Returns the parameters of a path such as `/api/v1/nodes/{name}`.
pub(super) fn of_path(path: &str) -> impl Iterator<Item = Parameter> {
    IN_PATHS.into_iter().filter(move |parameter| path.contains(&format!("{{{}}}", parameter.name)))
}

/// Returns the parameters of an options type of metadata, such as `DeleteOptions`.
pub(super) fn options(definitions: &Definitions, name: &str) -> Vec<Parameter> {
    of_type(definitions, &format!("io.k8s.apimachinery.pkg.apis.meta.v1.{name}"))
}

/// Returns the parameters of an options type.
pub(super) fn of_type(definitions: &Definitions, name: &str) -> Vec<Parameter> {
    let fields = definitions.get(name).map(|definition| definition.fields.as_slice());
    fields.unwrap_or_default().iter().filter_map(of_field).collect()
}

/// Objects and times are no parameters. `kind` and `apiVersion` have no number.
fn of_field(field: &Field) -> Option<Parameter> {
    let ty = if let Type::List(item) = &field.ty { item } else { &field.ty };
    let kind = match ty {
        Type::String => "string",
        Type::Boolean => "boolean",
        Type::Int32 | Type::Int64 => "integer",
        _ => return None,
    };
    (field.number != 0).then(|| query(field.name, kind))
}

impl Parameter {
    /// Returns what the parameter does, if its name does not tell.
    pub(super) fn description(&self) -> Option<&'static str> {
        let known =
            DESCRIPTIONS.iter().find(|(place, name, _)| (*place, *name) == (self.place, self.name));
        known.map(|(.., text)| *text)
    }
}

const DESCRIPTIONS: [(&str, &str, &str); 19] = [
    ("path", "name", "Name of the object."),
    ("path", "namespace", "Namespace of the object."),
    ("path", "path", "Path of the request to the backend."),
    ("query", "allowWatchBookmarks", "Ask for events that only have a version."),
    ("query", "continue", "Continue the list whose response had this token."),
    ("query", "dryRun", "'All' runs all stages except storage."),
    ("query", "fieldManager", "The manager that makes the change."),
    ("query", "fieldSelector", "Restricts the objects by their fields."),
    ("query", "fieldValidation", "What happens to unknown fields: Ignore, Warn or Strict."),
    ("query", "force", "Take over fields of other managers; for apply only."),
    ("query", "gracePeriodSeconds", "How long the object may take to end; 0 deletes at once."),
    ("query", "labelSelector", "Restricts the objects by their labels."),
    ("query", "limit", "The maximum number of objects in the response."),
    ("query", "orphanDependents", "Deprecated: use propagationPolicy."),
    ("query", "pretty", "If 'true', the response is indented."),
    ("query", "propagationPolicy", "Orphan, Background or Foreground."),
    ("query", "resourceVersion", "The version of the response."),
    ("query", "timeoutSeconds", "How long a list or watch may take."),
    ("query", "watch", "Returns a stream of events instead of a list."),
];

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::config::KubernetesVersion;

    #[rstest]
    #[case("UpdateOptions", &["dryRun", "fieldManager", "fieldValidation"])]
    #[case("PatchOptions", &["dryRun", "force", "fieldManager", "fieldValidation"])]
    #[case("GetOptions", &["resourceVersion"])]
    fn options_are_parameters(#[case] name: &str, #[case] expected: &[&str]) {
        let found = options(KubernetesVersion::default().definitions(), name);
        assert_eq!(found.iter().map(|it| it.name).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn objects_are_no_parameters() {
        let found = options(KubernetesVersion::default().definitions(), "DeleteOptions");
        assert!(found.contains(&query("dryRun", "string")), "{found:?}");
        assert!(found.iter().all(|parameter| parameter.name != "preconditions"));
    }

    #[test]
    fn paths_have_parameters() {
        let found: Vec<_> = of_path("/api/v1/namespaces/{namespace}/pods/{name}").collect();
        assert_eq!(found, [in_path("name"), in_path("namespace")]);
    }
}
