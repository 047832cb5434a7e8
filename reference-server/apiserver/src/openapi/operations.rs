//! A model of the paths and operations of the API, independent of the version of OpenAPI.

use super::naming::{capital, of_group, tag};
use super::parameters::{self, Parameter};

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
    pub(super) action: Option<&'static str>,
    pub(super) id: String,
    pub(super) description: String,
    pub(super) tag: String,
    /// The group, version and kind of the body: `x-kubernetes-group-version-kind`.
    pub(super) kind: Option<[String; 3]>,
    pub(super) parameters: Vec<Parameter>,
    pub(super) body: Option<Body>,
    /// The status codes of success.
    pub(super) codes: &'static [u16],
    /// The content of all these responses.
    pub(super) content: Content,
    /// The media types of the responses.
    pub(super) produces: Vec<&'static str>,
    /// The media types of the request.
    pub(super) consumes: Vec<&'static str>,
}

/// The body of a request.
#[derive(Debug)]
pub(super) struct Body {
    pub(super) content: Content,
    pub(super) required: bool,
}

/// The schema of a body.
#[derive(Clone, Debug)]
pub(super) enum Content {
    /// A published definition.
    Definition(String),
    /// Text, such as a log or the messages of a connection.
    Text,
    /// An object whose schema is not published.
    Object,
}

impl Content {
    /// Returns the name of the definition.
    pub(super) fn definition(&self) -> Option<&str> {
        match self {
            Self::Definition(name) => Some(name),
            Self::Text | Self::Object => None,
        }
    }
}

impl PathItem {
    /// Adds the parameters of the path to the operations. Parameters of all operations become
    /// parameters of the path. Returns nothing without operations.
    pub(super) fn new(path: String, mut operations: Vec<Operation>) -> Option<Self> {
        for operation in &mut operations {
            operation.parameters.extend(parameters::of_path(&path));
            operation.parameters.sort_unstable();
        }
        let mut parameters = operations.first()?.parameters.clone();
        parameters.retain(|it| operations.iter().all(|other| other.parameters.contains(it)));
        for operation in &mut operations {
            operation.parameters.retain(|it| !parameters.contains(it));
        }
        Some(Self { path, parameters, operations })
    }

    /// Returns the names of the definitions that requests and responses need.
    pub(super) fn definitions(&self) -> impl Iterator<Item = &str> {
        self.operations.iter().flat_map(|operation| {
            let body = operation.body.as_ref().and_then(|body| body.content.definition());
            body.into_iter().chain(operation.content.definition())
        })
    }
}

/// The names in an operation id: `readCoreV1NamespacedPodLog`.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Id<'a> {
    pub(super) verb: &'a str,
    pub(super) group: &'a str,
    pub(super) version: &'a str,
    /// What follows the version, such as `Collection`.
    pub(super) prefix: &'a str,
    pub(super) namespaced: bool,
    pub(super) kind: &'a str,
    pub(super) suffix: &'a str,
}

impl Id<'_> {
    /// Returns an operation with this id that returns nothing yet.
    pub(super) fn operation(self, method: &'static str) -> Operation {
        let Id { verb, group, version, prefix, namespaced, kind, suffix } = self;
        let scope = if namespaced { "Namespaced" } else { "" };
        let (words, number) = (of_group(group), capital(version));
        Operation {
            method,
            action: None,
            id: format!("{verb}{words}{number}{prefix}{scope}{kind}{suffix}"),
            description: format!("{verb} {kind}{suffix}"),
            tag: tag(group, version),
            kind: None,
            parameters: Vec::new(),
            body: None,
            codes: &[200],
            content: Content::Object,
            produces: Vec::new(),
            consumes: Vec::new(),
        }
    }
}

impl Operation {
    pub(super) fn returns(mut self, codes: &'static [u16], content: Content) -> Self {
        (self.codes, self.content) = (codes, content);
        self
    }

    pub(super) fn with_body(mut self, content: Content, required: bool) -> Self {
        self.body = Some(Body { content, required });
        self
    }

    pub(super) fn with(mut self, parameters: impl IntoIterator<Item = Parameter>) -> Self {
        self.parameters.extend(parameters);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_of_all_operations_belong_to_the_path() {
        let id =
            Id { verb: "read", group: "farm.k8s.io", version: "v1", kind: "Barn", ..Id::default() };
        let [name, size] =
            ["name", "size"].map(|name| Parameter { name, place: "query", kind: "string" });
        let operations =
            vec![id.operation("get").with([size, name]), id.operation("put").with([name])];
        let item = PathItem::new("/barns/{path}".to_owned(), operations).unwrap();
        let names = |parameters: &[Parameter]| -> Vec<_> {
            parameters.iter().map(|parameter| parameter.name).collect()
        };
        assert_eq!(names(&item.parameters), ["name", "path"]);
        assert_eq!(names(&item.operations[0].parameters), ["size"]);
        assert_eq!(item.operations[0].id, "readFarmV1Barn");
        assert_eq!(item.operations[0].tag, "farm_v1");
        assert!(PathItem::new(String::new(), Vec::new()).is_none());
    }
}
