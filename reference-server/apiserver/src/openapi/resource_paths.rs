//! The paths of a resource.

use super::common::{DELETE_OPTIONS, PATCH, SCALE, STATUS, WATCH_EVENT};
use super::definitions::{definition_name, list_definition_name};
use super::naming::capital;
use super::operations::{Content, Id, Operation, PathItem};
use super::parameters::{self, PRETTY, Parameter};
use super::prefix;
use crate::discovery::{Resource, Subresource};

use kubeproof_apimachinery::schema::definitions::Definitions;
use kubeproof_apimachinery::serializer::protobuf;

/// The verbs of subresources with their methods, and the beginnings of the operation ids.
const METHODS: [(&str, &str, &str); 4] = [
    ("get", "get", "read"),
    ("create", "post", "create"),
    ("update", "put", "replace"),
    ("patch", "patch", "patch"),
];

/// The methods of a proxy.
const ALL_METHODS: [&str; 7] = ["delete", "get", "head", "options", "patch", "post", "put"];

/// Returns the paths of one resource.
pub(super) fn paths(resource: &Resource, definitions: &Definitions) -> Vec<PathItem> {
    let maker = Maker { resource, definitions };
    let root = format!("/{}", prefix(resource));
    let scope = if resource.namespaced { "/namespaces/{namespace}" } else { "" };
    let plural = &resource.plural;
    let list = format!("{scope}/{plural}");
    let named = format!("{scope}/{plural}/{{name}}");
    let item = |path: String, operations: Vec<Option<Operation>>| {
        PathItem::new(format!("{root}{path}"), operations.into_iter().flatten().collect())
    };
    let mut items = vec![
        item(list.clone(), vec![maker.list(false), maker.create(), maker.delete_collection()]),
        item(named.clone(), vec![maker.get(), maker.replace(), maker.delete(), maker.patch()]),
        item(format!("/watch{list}"), vec![maker.watch_list(false)]),
        item(format!("/watch{named}"), vec![maker.watch()]),
    ];
    if resource.namespaced {
        items.push(item(format!("/{plural}"), vec![maker.list(true)]));
        items.push(item(format!("/watch/{plural}"), vec![maker.watch_list(true)]));
    }
    for subresource in &resource.subresources {
        let path = format!("{named}/{}", subresource.name);
        if let Some(options) = maker.options(subresource) {
            items.push(item(path.clone(), maker.connections(subresource, &options, "")));
            if options.iter().any(|option| option.name == "path") {
                let operations = maker.connections(subresource, &options, "WithPath");
                items.push(item(format!("{path}/{{path}}"), operations));
            }
        } else {
            items.push(item(path, maker.subresource(subresource)));
        }
    }
    items.into_iter().flatten().collect()
}

struct Maker<'r> {
    resource: &'r Resource,
    definitions: &'r Definitions,
}

impl Maker<'_> {
    fn has(&self, verb: &str) -> bool {
        self.resource.verbs.iter().any(|known| known == verb)
    }

    /// Returns an operation on the resource.
    fn on(&self, method: &'static str, action: &'static str, id: Id<'_>) -> Operation {
        let Resource { group, version, kind, namespaced, body_types, .. } = self.resource;
        let is_in_namespace = *namespaced && !id.suffix.ends_with("ForAllNamespaces");
        let mut operation =
            Id { group, version, kind, namespaced: is_in_namespace, ..id }.operation(method);
        operation.action = Some(action);
        operation.kind = Some([group, version, kind].map(Clone::clone));
        operation.produces.clone_from(body_types);
        operation.consumes = if self.resource.custom { body_types.clone() } else { vec!["*/*"] };
        operation.with([PRETTY])
    }

    fn object(&self) -> Content {
        Content::Definition(definition_name(self.resource))
    }

    fn meta(&self, name: &str) -> Vec<Parameter> {
        parameters::options(self.definitions, name)
    }

    fn list(&self, all_namespaces: bool) -> Option<Operation> {
        let suffix = if all_namespaces { "ForAllNamespaces" } else { "" };
        let id = Id { verb: "list", suffix, ..Id::default() };
        let content = Content::Definition(list_definition_name(self.resource));
        let mut operation = self.on("get", "list", id).with(self.meta("ListOptions"));
        self.add_streams(&mut operation);
        self.has("list").then(|| operation.returns(&[200], content))
    }

    fn watch_list(&self, all_namespaces: bool) -> Option<Operation> {
        let suffix = if all_namespaces { "ListForAllNamespaces" } else { "List" };
        self.watching("watchlist", suffix).filter(|_| self.has("list"))
    }

    fn watch(&self) -> Option<Operation> {
        self.watching("watch", "").filter(|_| self.has("get"))
    }

    /// The deprecated paths of watches, which custom resources lack.
    fn watching(&self, action: &'static str, suffix: &str) -> Option<Operation> {
        let id = Id { verb: "watch", suffix, ..Id::default() };
        let mut operation = self.on("get", action, id).with(self.meta("ListOptions"));
        self.add_streams(&mut operation);
        let event = Content::Definition(WATCH_EVENT.to_owned());
        let is_served = self.has("watch") && !self.resource.custom;
        is_served.then(|| operation.returns(&[200], event))
    }

    /// Adds the media types of watches.
    fn add_streams(&self, operation: &mut Operation) {
        if !self.resource.custom {
            operation.produces.push("application/json;stream=watch");
            if self.resource.body_types.contains(&protobuf::MEDIA_TYPE) {
                operation.produces.push(protobuf::STREAM_MEDIA_TYPE);
            }
        }
    }

    fn create(&self) -> Option<Operation> {
        let operation = self.on("post", "post", Id { verb: "create", ..Id::default() });
        self.has("create").then(|| {
            operation
                .with(self.meta("CreateOptions"))
                .with_body(self.object(), true)
                .returns(&[200, 201, 202], self.object())
        })
    }

    /// Kubernetes publishes the options of a list for custom resources, and no body.
    fn delete_collection(&self) -> Option<Operation> {
        let id = Id { verb: "delete", prefix: "Collection", ..Id::default() };
        let operation = self
            .on("delete", "deletecollection", id)
            .returns(&[200], Content::Definition(STATUS.to_owned()));
        let mut options = self.meta("ListOptions");
        let operation = if self.resource.custom {
            operation
        } else {
            options.retain(|option| !["watch", "allowWatchBookmarks"].contains(&option.name));
            options.extend(self.meta("DeleteOptions"));
            operation.with_body(Content::Definition(DELETE_OPTIONS.to_owned()), false)
        };
        self.has("deletecollection").then(|| operation.with(options))
    }

    fn get(&self) -> Option<Operation> {
        let operation = self.reads(Id { verb: "read", ..Id::default() });
        self.has("get").then(|| operation.returns(&[200], self.object()))
    }

    fn reads(&self, id: Id<'_>) -> Operation {
        let options = if self.resource.custom { self.meta("GetOptions") } else { Vec::new() };
        self.on("get", "get", id).with(options)
    }

    fn replace(&self) -> Option<Operation> {
        let operation = self.on("put", "put", Id { verb: "replace", ..Id::default() });
        self.has("update").then(|| {
            operation
                .with(self.meta("UpdateOptions"))
                .with_body(self.object(), true)
                .returns(&[200, 201], self.object())
        })
    }

    fn delete(&self) -> Option<Operation> {
        let operation = self.on("delete", "delete", Id { verb: "delete", ..Id::default() });
        // The deletion of a namespace returns it, too, but Kubernetes publishes a Status.
        let returns_object = self.resource.deletion_returns_object;
        let returned = if returns_object && self.resource.kind != "Namespace" {
            self.object()
        } else {
            Content::Definition(STATUS.to_owned())
        };
        self.has("delete").then(|| {
            operation
                .with(self.meta("DeleteOptions"))
                .with_body(Content::Definition(DELETE_OPTIONS.to_owned()), false)
                .returns(&[200, 202], returned)
        })
    }

    fn patch(&self) -> Option<Operation> {
        let operation = self.on("patch", "patch", Id { verb: "patch", ..Id::default() });
        self.has("patch").then(|| self.patches(operation, self.object()))
    }

    fn patches(&self, operation: Operation, object: Content) -> Operation {
        let codes: &[u16] = if self.resource.custom { &[200] } else { &[200, 201] };
        let mut operation = operation
            .with(self.meta("PatchOptions"))
            .with_body(Content::Definition(PATCH.to_owned()), true)
            .returns(codes, object);
        operation.consumes.clone_from(&self.resource.patch_types);
        operation
    }

    fn subresource(&self, subresource: &Subresource) -> Vec<Option<Operation>> {
        let suffix = &capital(&subresource.name);
        let operations = METHODS.iter().map(|(verb, method, id)| {
            let known = subresource.verbs.iter().any(|known| known == verb);
            known.then(|| self.part(subresource, method, Id { verb: id, suffix, ..Id::default() }))
        });
        operations.collect()
    }

    fn part(&self, subresource: &Subresource, method: &'static str, id: Id<'_>) -> Operation {
        let Subresource { name, group, version, kind, .. } = subresource;
        let object = self.content(subresource);
        let mut operation =
            if method == "get" { self.reads(id) } else { self.on(method, method, id) };
        operation.kind = Some([group, version, kind].map(Clone::clone));
        match method {
            "get" if name == "log" => {
                operation.produces.insert(0, "text/plain");
                let options = "io.k8s.api.core.v1.PodLogOptions";
                let options = parameters::of_type(self.definitions, options);
                operation.with(options).returns(&[200], Content::Text)
            }
            "get" => operation.returns(&[200], object),
            "patch" => self.patches(operation, object),
            "put" => {
                let operation = operation.with(self.meta("UpdateOptions"));
                operation.with_body(object.clone(), true).returns(&[200, 201], object)
            }
            _ => {
                let operation = operation.with(self.meta("CreateOptions"));
                operation.with_body(object.clone(), true).returns(&[200, 201, 202], object)
            }
        }
    }

    /// Returns the content of a subresource.
    fn content(&self, Subresource { group, version, kind, .. }: &Subresource) -> Content {
        if [group, version, kind]
            == [&self.resource.group, &self.resource.version, &self.resource.kind]
        {
            return self.object();
        }
        let known = self.definitions.kind(group, version, kind).map(|known| known.name);
        let known = known.or((kind == "Scale").then_some(SCALE));
        known.map_or(Content::Object, |name| Content::Definition(name.to_owned()))
    }

    /// Returns the parameters of a connection such as `exec`, whose kind has the options.
    fn options(&self, subresource: &Subresource) -> Option<Vec<Parameter>> {
        let Subresource { version, kind, .. } = subresource;
        let name = format!("io.k8s.api.core.{version}.{kind}");
        let is_connection = kind.ends_with("Options") && self.definitions.get(&name).is_some();
        is_connection.then(|| parameters::of_type(self.definitions, &name))
    }

    fn connections(
        &self,
        subresource: &Subresource,
        options: &[Parameter],
        suffix: &str,
    ) -> Vec<Option<Operation>> {
        let Subresource { name, group, version, kind, verbs, .. } = subresource;
        let is_proxy = verbs.iter().any(|verb| verb == "update");
        let methods =
            ALL_METHODS.iter().filter(|method| is_proxy || ["get", "post"].contains(*method));
        let operations = methods.map(|method| {
            let suffix = &format!("{}{suffix}", capital(name));
            let prefix = &capital(method);
            let id = Id { verb: "connect", prefix, suffix, ..Id::default() };
            let mut operation = self.on(method, "connect", id).returns(&[200], Content::Text);
            operation.kind = Some([group, version, kind].map(Clone::clone));
            operation.produces = vec!["*/*"];
            operation.parameters = options.to_vec();
            Some(operation)
        });
        operations.collect()
    }
}
