//! Which requests a webhook or a policy matches: rules, selectors and equivalent versions.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use kubeproof_apimachinery::object::Object as _;
use kubeproof_apimachinery::selector::LabelSelector;
use kubeproof_apimachinery::status::{ApiError, Subject};
use kubeproof_storage::Key;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::namespace_lifecycle::NAMESPACES;
use super::{Attributes, Operation};
use crate::registry::ResourceType;

const GROUP: &str = "admissionregistration.k8s.io";
/// The label of each namespace with its name.
const NAME_LABEL: &str = "kubernetes.io/metadata.name";

/// A rule with the operations, resources and scope that it matches.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Rule {
    operations: Vec<String>,
    api_groups: Vec<String>,
    api_versions: Vec<String>,
    resources: Vec<String>,
    scope: Option<String>,
    /// Only rules of policies have names.
    resource_names: Vec<String>,
}

/// The requests that a webhook or a policy is for.
#[derive(Clone, Debug, Default)]
pub(super) struct Constraints {
    rules: Vec<Rule>,
    excluded: Vec<Rule>,
    /// Without rules, each request matches.
    rules_are_optional: bool,
    /// Rules match other versions of the resource, too.
    equivalent: bool,
    namespaces: Selector,
    objects: Selector,
}

/// A label selector of a configuration. An invalid one is an error of each request.
#[derive(Clone, Debug)]
struct Selector(Result<LabelSelector, String>);

impl Default for Selector {
    fn default() -> Self {
        Self(Ok(LabelSelector::default()))
    }
}

impl Selector {
    fn parse(value: &Value) -> Self {
        if value.is_null() {
            return Self::default();
        }
        Self(LabelSelector::from_object(value).map_err(|error| error.to_string()))
    }

    fn get(&self) -> Result<&LabelSelector, ApiError> {
        self.0.as_ref().map_err(|why| ApiError::internal_cause(why))
    }
}

/// How a request matches.
#[derive(Clone, Debug)]
pub(super) enum Match {
    /// The rules contain the resource.
    Same,
    /// The rules contain another version of the resource.
    Equivalent(Arc<ResourceType>),
}

impl Match {
    /// Returns the resource in the version of the rule.
    pub(super) fn resource<'a>(&'a self, request: &Attributes<'a>) -> &'a ResourceType {
        match self {
            Self::Same => request.ty,
            Self::Equivalent(ty) => ty,
        }
    }

    /// Returns an object in the version of the rule.
    pub(super) fn shown<'v>(&self, request: &Attributes<'_>, object: &'v Value) -> Cow<'v, Value> {
        match self {
            Self::Equivalent(ty) if is_object(request, object) => {
                Cow::Owned(request.ty.convert(object, ty))
            }
            _ => Cow::Borrowed(object),
        }
    }

    /// Returns a changed object in the version of the request, with defaults. The error is a
    /// message for the user.
    pub(super) fn restore(
        &self,
        request: &Attributes<'_>,
        mut changed: Value,
    ) -> Result<Value, String> {
        if let Self::Equivalent(ty) = self
            && is_object(request, &changed)
        {
            changed = ty.convert(&changed, request.ty);
        }
        if is_object(request, &changed) {
            let ty = request.ty;
            ty.schema.check_types(&changed).map_err(|error| {
                let (kind, version) = (&ty.kind, ty.api_version());
                let why = error.message;
                format!("{kind} in version {version:?} cannot be handled as a {kind}: {why}")
            })?;
            ty.schema.prune(&mut changed);
            ty.default(&mut changed);
        }
        Ok(changed)
    }
}

/// Returns whether a value is an object of the resource, not of another kind such as `Scale`.
fn is_object(request: &Attributes<'_>, value: &Value) -> bool {
    value["kind"] == request.ty.kind.as_str() && value["metadata"].is_object()
}

impl Constraints {
    /// Reads the rules and the selectors of a webhook.
    pub(super) fn of_webhook(webhook: &Value) -> Self {
        Self { rules: rules(&webhook["rules"]), ..Self::read(webhook) }
    }

    /// Reads `matchConstraints` of a policy, or `matchResources` of a binding.
    pub(super) fn of_policy(constraints: &Value) -> Self {
        Self { rules_are_optional: true, ..Self::read(constraints) }
    }

    fn read(value: &Value) -> Self {
        Self {
            rules: rules(&value["resourceRules"]),
            excluded: rules(&value["excludeResourceRules"]),
            rules_are_optional: false,
            equivalent: value["matchPolicy"] != "Exact",
            namespaces: Selector::parse(&value["namespaceSelector"]),
            objects: Selector::parse(&value["objectSelector"]),
        }
    }

    /// Returns how a request matches, or none if it does not.
    pub(super) fn matches(
        &self,
        request: &Attributes<'_>,
        object: &Value,
    ) -> Result<Option<Match>, ApiError> {
        let in_namespace = self.matches_namespace(request, object);
        let has_labels = self.objects.get().map(|selector| {
            selector.is_empty()
                || has_labels(selector, object)
                || request.old.is_some_and(|old| has_labels(selector, old))
        });
        if matches!(in_namespace, Ok(false)) || matches!(has_labels, Ok(false)) {
            return Ok(None);
        }
        if self.find(&self.excluded, request, object).is_some() {
            return Ok(None);
        }
        let found = if self.rules.is_empty() && self.rules_are_optional {
            Some(Match::Same)
        } else {
            self.find(&self.rules, request, object)
        };
        // An invalid selector is an error only for requests that match otherwise.
        let Some(found) = found else { return Ok(None) };
        in_namespace?;
        has_labels?;
        Ok(Some(found))
    }

    fn find(&self, rules: &[Rule], request: &Attributes<'_>, object: &Value) -> Option<Match> {
        if rules.iter().any(|rule| rule.matches(request, request.ty, object)) {
            return Some(Match::Same);
        }
        if !self.equivalent || rules.is_empty() {
            return None;
        }
        let catalogue = request.context.registry.current();
        let mut others = catalogue.types().iter().filter(|ty| {
            ty.table == request.ty.table
                && (ty.version != request.ty.version || ty.group != request.ty.group)
        });
        let other = others.find(|ty| rules.iter().any(|rule| rule.matches(request, ty, object)))?;
        Some(Match::Equivalent(Arc::clone(other)))
    }

    /// Returns whether the namespace of the request has the labels. Objects of the cluster have no
    /// namespace, so they always match. A namespace has its own labels.
    fn matches_namespace(
        &self,
        request: &Attributes<'_>,
        object: &Value,
    ) -> Result<bool, ApiError> {
        let is_namespace = request.ty.is_core(NAMESPACES);
        let name = namespace(request, object);
        if name.is_empty() && !is_namespace {
            return Ok(true);
        }
        let selector = self.namespaces.get()?;
        if selector.is_empty() {
            return Ok(true);
        }
        let writes = matches!(request.operation, Operation::Create | Operation::Update);
        if is_namespace && writes && request.info.subresource.is_empty() {
            return Ok(has_labels(selector, object));
        }
        let stored = request.context.store.get(NAMESPACES, &Key::new("", name));
        if stored.is_none() && !request.context.disabled_capabilities.namespaces_exist() {
            return Ok(
                selector.matches(&BTreeMap::from([(NAME_LABEL.to_owned(), name.to_owned())]))
            );
        }
        let missing = || ApiError::not_found(Subject { group: "", word: NAMESPACES }, name);
        Ok(selector.matches(&stored.ok_or_else(missing)?.facts.labels))
    }
}

/// Returns the namespace of a request. A namespace is in itself.
pub(super) fn namespace<'v>(request: &'v Attributes<'_>, object: &'v Value) -> &'v str {
    if request.ty.is_core(NAMESPACES) {
        request.name(object)
    } else if request.ty.namespaced {
        &request.info.namespace
    } else {
        ""
    }
}

/// Returns whether the object configures admission. Such objects are exempt, so that a mistake in
/// one can be fixed.
pub(super) fn is_exempt(request: &Attributes<'_>) -> bool {
    request.ty.group == GROUP
        && (request.ty.plural.ends_with("webhookconfigurations")
            || request.ty.plural.contains("admissionpolic"))
}

fn rules(value: &Value) -> Vec<Rule> {
    let rules = value.as_array().into_iter().flatten();
    rules.filter_map(|rule| Rule::deserialize(rule).ok()).collect()
}

fn has_labels(selector: &LabelSelector, object: &Value) -> bool {
    let empty = Map::new();
    let labels = object.metadata().and_then(|metadata| metadata.get("labels"));
    !object.is_null() && selector.matches(labels.and_then(Value::as_object).unwrap_or(&empty))
}

impl Rule {
    /// Returns whether the rule matches a request for a resource in this version.
    fn matches(&self, request: &Attributes<'_>, ty: &ResourceType, object: &Value) -> bool {
        let contains =
            |list: &[String], wanted: &str| list.iter().any(|item| item == "*" || item == wanted);
        let operation = request.operation.name();
        let in_scope = match self.scope.as_deref() {
            Some("Namespaced") => request.ty.namespaced,
            Some("Cluster") => !request.ty.namespaced,
            _ => true,
        };
        let is_resource = self.resources.iter().any(|resource| {
            let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
            (resource == "*" || resource == ty.plural)
                && (subresource == "*" || subresource == request.info.subresource)
        });
        in_scope
            && contains(&self.operations, operation)
            && contains(&self.api_groups, &ty.group)
            && contains(&self.api_versions, &ty.version)
            && is_resource
            && (self.resource_names.is_empty()
                || self.resource_names.iter().any(|name| name == request.name(object)))
    }
}
