//! A model of the paths and operations of the API, independent of the version of OpenAPI.

use super::common::{DELETE_OPTIONS, PATCH, SCALE, STATUS};
use super::definitions::{definition_name, list_definition_name};
use super::prefix;
use crate::discovery::{Resource, Subresource};
use kubeproof_apimachinery::serializer::protobuf;

/// One path with its operations.
#[derive(Debug)]
pub(super) struct PathItem {
    pub(super) path: String,
    /// Parameters of every operation.
    pub(super) parameters: Vec<Parameter>,
    pub(super) operations: Vec<Operation>,
}

/// One method on one path.
#[derive(Debug)]
pub(super) struct Operation {
    /// The HTTP method in lower case.
    pub(super) method: &'static str,
    /// The kind of operation: `x-kubernetes-action`.
    pub(super) action: &'static str,
    pub(super) id: String,
    pub(super) description: String,
    pub(super) tag: String,
    /// The group, version and kind of the body: `x-kubernetes-group-version-kind`.
    pub(super) kind: [String; 3],
    pub(super) query: Vec<Parameter>,
    pub(super) body: Option<Body>,
    /// The status codes with the definition of the response. A schema that is not published has
    /// none.
    pub(super) responses: Vec<(u16, Option<String>)>,
    /// The media types of the responses.
    pub(super) produces: Vec<&'static str>,
}

/// The body of a request.
#[derive(Debug)]
pub(super) struct Body {
    /// None for a schema that is not published.
    pub(super) definition: Option<String>,
    pub(super) media_types: Vec<&'static str>,
    pub(super) required: bool,
}

/// A parameter in the path or the query.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parameter {
    pub(super) name: &'static str,
    pub(super) place: &'static str,
    pub(super) kind: &'static str,
    pub(super) description: &'static str,
}

const fn query(name: &'static str, kind: &'static str, description: &'static str) -> Parameter {
    Parameter { name, place: "query", kind, description }
}

const NAME: Parameter =
    Parameter { name: "name", place: "path", kind: "string", description: "Name of the object." };
const NAMESPACE: Parameter = Parameter {
    name: "namespace",
    place: "path",
    kind: "string",
    description: "Namespace of the object.",
};
const PRETTY: Parameter = query("pretty", "string", "If 'true', the response is indented.");
const DRY_RUN: Parameter =
    query("dryRun", "string", "'All' does everything but store the outcome.");
const FIELD_MANAGER: Parameter = query("fieldManager", "string", "Who makes the change.");
const FIELD_VALIDATION: Parameter = query(
    "fieldValidation",
    "string",
    "What to do about unknown and duplicate fields: Ignore, Warn or Strict.",
);
const FORCE: Parameter =
    query("force", "boolean", "Take over fields of other managers; for apply only.");
const LABEL_SELECTOR: Parameter =
    query("labelSelector", "string", "Restricts the objects by their labels.");
const FIELD_SELECTOR: Parameter =
    query("fieldSelector", "string", "Restricts the objects by their fields.");
const GRACE_PERIOD: Parameter = query(
    "gracePeriodSeconds",
    "integer",
    "How long the object may take to end; 0 deletes at once.",
);
const PROPAGATION: Parameter = query(
    "propagationPolicy",
    "string",
    "What becomes of dependents: Orphan, Background or Foreground.",
);
const ORPHAN: Parameter =
    query("orphanDependents", "boolean", "Deprecated: use propagationPolicy.");

const LIST: &[Parameter] = &[
    query("allowWatchBookmarks", "boolean", "Ask for events that only tell a version."),
    query("continue", "string", "Go on with the list that gave this token."),
    FIELD_SELECTOR,
    LABEL_SELECTOR,
    query("limit", "integer", "The maximum number of objects in the response."),
    query("resourceVersion", "string", "The version of the response."),
    query("resourceVersionMatch", "string", "How to read resourceVersion."),
    query("sendInitialEvents", "boolean", "Begin a watch with what is there."),
    query("timeoutSeconds", "integer", "How long a list or watch may take."),
    query("watch", "boolean", "Returns a stream of events instead of a list."),
];
const DELETE_COLLECTION: &[Parameter] = &[
    DRY_RUN,
    FIELD_SELECTOR,
    GRACE_PERIOD,
    LABEL_SELECTOR,
    ORPHAN,
    PROPAGATION,
    query("limit", "integer", "The most objects to delete."),
    query("resourceVersion", "string", "Which version to list."),
];
const DELETE: &[Parameter] = &[DRY_RUN, GRACE_PERIOD, ORPHAN, PROPAGATION];
const WRITE: &[Parameter] = &[DRY_RUN, FIELD_MANAGER, FIELD_VALIDATION];
const PATCH_QUERY: &[Parameter] = &[DRY_RUN, FIELD_MANAGER, FIELD_VALIDATION, FORCE];

/// Returns the paths of one resource.
pub(super) fn paths(resource: &Resource) -> Vec<PathItem> {
    let maker = Maker { resource };
    let root = format!("/{}", prefix(resource));
    let scoped =
        if resource.namespaced { format!("{root}/namespaces/{{namespace}}") } else { root.clone() };
    let scope: &[Parameter] = if resource.namespaced { &[NAMESPACE, PRETTY] } else { &[PRETTY] };
    let item = |path: String, parameters: Vec<Parameter>, operations: Vec<Option<Operation>>| {
        let operations: Vec<_> = operations.into_iter().flatten().collect();
        (!operations.is_empty()).then_some(PathItem { path, parameters, operations })
    };
    let with_name = || [&[NAME], scope].concat();
    let plural = &resource.plural;
    let mut items = vec![
        item(
            format!("{scoped}/{plural}"),
            scope.to_vec(),
            vec![maker.list(false), maker.create(), maker.delete_collection()],
        ),
        item(
            format!("{scoped}/{plural}/{{name}}"),
            with_name(),
            vec![maker.get(), maker.replace(), maker.delete(), maker.patch()],
        ),
    ];
    if resource.namespaced {
        items.push(item(format!("{root}/{plural}"), vec![PRETTY], vec![maker.list(true)]));
    }
    for subresource in &resource.subresources {
        let path = format!("{scoped}/{plural}/{{name}}/{}", subresource.name);
        items.push(item(path, with_name(), maker.subresource(subresource)));
    }
    items.into_iter().flatten().collect()
}

struct Maker<'r> {
    resource: &'r Resource,
}

impl Maker<'_> {
    /// Returns an operation on the resource if it supports the verb.
    fn on(
        &self,
        verb: &str,
        method: &'static str,
        action: &'static str,
        id: &str,
    ) -> Option<Operation> {
        let resource = self.resource;
        resource.verbs.iter().any(|known| known == verb).then(|| {
            let kind = [&resource.group, &resource.version, &resource.kind].map(Clone::clone);
            self.operation(method, action, (id, ""), kind)
        })
    }

    fn operation(
        &self,
        method: &'static str,
        action: &'static str,
        (id, suffix): (&str, &str),
        kind: [String; 3],
    ) -> Operation {
        let Resource { group, version, kind: name, namespaced, .. } = self.resource;
        let group = if group.is_empty() { "core" } else { group };
        let words = group.split(['.', '-']).map(capital).collect::<String>();
        let scope =
            if *namespaced && !suffix.ends_with("ForAllNamespaces") { "Namespaced" } else { "" };
        Operation {
            method,
            action,
            id: format!("{id}{words}{}{scope}{name}{suffix}", capital(version)),
            description: format!("{id} {name}{suffix}"),
            tag: format!("{}_{version}", group.replace(['.', '-'], "_")),
            kind,
            query: Vec::new(),
            body: None,
            responses: vec![(401, None)],
            produces: self.resource.body_types.clone(),
        }
    }

    fn definition(&self) -> String {
        definition_name(self.resource)
    }

    fn list(&self, all_namespaces: bool) -> Option<Operation> {
        let mut operation = self.on("list", "get", "list", "list")?;
        if all_namespaces {
            let kind = operation.kind;
            operation = self.operation("get", "list", ("list", "ForAllNamespaces"), kind);
        }
        operation.query = LIST.to_vec();
        if self.resource.verbs.iter().any(|verb| verb == "watch") {
            operation.produces.push("application/json;stream=watch");
            if self.resource.body_types.contains(&protobuf::MEDIA_TYPE) {
                operation.produces.push(protobuf::STREAM_MEDIA_TYPE);
            }
        }
        Some(operation.returns(&[200], Some(&list_definition_name(self.resource))))
    }

    fn create(&self) -> Option<Operation> {
        let operation = self.on("create", "post", "post", "create")?;
        Some(
            operation
                .writes(Some(self.definition()), &self.resource.body_types, WRITE)
                .returns(&[200, 201, 202], Some(&self.definition())),
        )
    }

    fn delete_collection(&self) -> Option<Operation> {
        let operation =
            self.on("deletecollection", "delete", "deletecollection", "deletecollection")?;
        Some(
            operation
                .deletes(DELETE_COLLECTION, &self.resource.body_types)
                .returns(&[200], Some(STATUS)),
        )
    }

    fn get(&self) -> Option<Operation> {
        Some(self.on("get", "get", "get", "read")?.returns(&[200], Some(&self.definition())))
    }

    fn replace(&self) -> Option<Operation> {
        let operation = self.on("update", "put", "put", "replace")?;
        Some(
            operation
                .writes(Some(self.definition()), &self.resource.body_types, WRITE)
                .returns(&[200, 201], Some(&self.definition())),
        )
    }

    fn delete(&self) -> Option<Operation> {
        let operation = self.on("delete", "delete", "delete", "delete")?;
        Some(
            operation.deletes(DELETE, &self.resource.body_types).returns(&[200, 202], Some(STATUS)),
        )
    }

    fn patch(&self) -> Option<Operation> {
        let operation = self.on("patch", "patch", "patch", "patch")?;
        Some(
            operation
                .writes(Some(PATCH.to_owned()), &self.resource.patch_types, PATCH_QUERY)
                .returns(&[200, 201], Some(&self.definition())),
        )
    }

    fn subresource(&self, subresource: &Subresource) -> Vec<Option<Operation>> {
        let Subresource { name, group, version, kind, .. } = subresource;
        let own = [group, version, kind]
            == [&self.resource.group, &self.resource.version, &self.resource.kind];
        let definition = match (own, kind.as_str()) {
            (true, _) => Some(self.definition()),
            (false, "Scale") => Some(SCALE.to_owned()),
            _ => None,
        };
        let on = |verb: &str, method, action, id: &str| {
            subresource.verbs.iter().any(|known| known == verb).then(|| {
                let kind = [group, version, kind].map(Clone::clone);
                self.operation(method, action, (id, &capital(name)), kind)
            })
        };
        let (body, returned) = (|| definition.clone(), definition.as_deref());
        vec![
            on("get", "get", "get", "read").map(|op| op.returns(&[200], returned)),
            on("create", "post", "post", "create").map(|op| {
                op.writes(body(), &self.resource.body_types, WRITE)
                    .returns(&[200, 201, 202], returned)
            }),
            on("update", "put", "put", "replace").map(|op| {
                op.writes(body(), &self.resource.body_types, WRITE).returns(&[200, 201], returned)
            }),
            on("patch", "patch", "patch", "patch").map(|op| {
                let patch = Some(PATCH.to_owned());
                op.writes(patch, &self.resource.patch_types, PATCH_QUERY)
                    .returns(&[200, 201], returned)
            }),
        ]
    }
}

impl Operation {
    fn returns(mut self, codes: &[u16], definition: Option<&str>) -> Self {
        let responses = codes.iter().map(|code| (*code, definition.map(str::to_owned)));
        self.responses.splice(0..0, responses);
        self
    }

    fn writes(
        mut self,
        definition: Option<String>,
        media_types: &[&'static str],
        query: &[Parameter],
    ) -> Self {
        self.query = query.to_vec();
        self.body = Some(Body { definition, media_types: media_types.to_vec(), required: true });
        self
    }

    fn deletes(mut self, query: &[Parameter], media_types: &[&'static str]) -> Self {
        self.query = query.to_vec();
        let definition = Some(DELETE_OPTIONS.to_owned());
        self.body = Some(Body { definition, media_types: media_types.to_vec(), required: false });
        self
    }
}

fn capital(word: &str) -> String {
    let mut chars = word.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}
