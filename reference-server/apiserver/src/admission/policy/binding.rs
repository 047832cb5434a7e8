//! Bindings of policies, and their parameters.

use std::sync::Arc;

use kubeproof_apimachinery::object::Object as _;
use kubeproof_apimachinery::selector::LabelSelector;
use kubeproof_apimachinery::serializer::json;
use kubeproof_storage::Key;
use serde_json::Value;

use super::super::Attributes;
use super::super::rules::{self, Constraints};
use super::definition::ParamKind;

/// A binding of either kind.
pub(super) struct Binding {
    pub(super) name: String,
    /// The name of the policy.
    pub(super) policy: String,
    pub(super) constraints: Constraints,
    /// What follows from a failed validation: `Deny`, `Warn` and `Audit`.
    pub(super) actions: Vec<String>,
    /// The field `paramRef`, or null.
    param_ref: Value,
}

/// Parses a binding.
pub(super) fn parse(text: &[u8]) -> Option<Arc<Binding>> {
    let binding = json::parse(text).ok()?;
    let spec = &binding["spec"];
    let actions = spec["validationActions"].as_array().into_iter().flatten();
    Some(Arc::new(Binding {
        name: binding.meta("name").to_owned(),
        policy: spec["policyName"].as_str().unwrap_or_default().to_owned(),
        constraints: Constraints::of_policy(&spec["matchResources"]),
        actions: actions.filter_map(Value::as_str).map(str::to_owned).collect(),
        param_ref: spec["paramRef"].clone(),
    }))
}

impl Binding {
    /// Returns the parameters of a request. A policy without parameters runs once with null. The
    /// error is a mistake in the configuration.
    pub(super) fn params(
        &self,
        kind: Option<&ParamKind>,
        request: &Attributes<'_>,
        object: &Value,
    ) -> Result<Vec<Value>, String> {
        let Some(kind) = kind.filter(|_| self.param_ref.is_object()) else {
            return Ok(vec![Value::Null]);
        };
        let catalogue = request.context.registry.current();
        let found = catalogue
            .types()
            .iter()
            .find(|ty| ty.kind == kind.kind && ty.api_version() == kind.api_version);
        let Some(ty) = found else {
            let ParamKind { api_version, kind } = kind;
            return Err(format!("paramKind kind `{api_version}, Kind={kind}` not known"));
        };
        let text = |field: &str| self.param_ref[field].as_str().unwrap_or_default();
        let given = text("namespace");
        let namespace = match (ty.namespaced, given) {
            (false, "") => "",
            (false, _) => {
                let why = "paramRef.namespace must not be provided for a cluster-scoped \
                           `paramKind`";
                return Err(why.to_owned());
            }
            (true, "") => rules::namespace(request, object),
            (true, given) => given,
        };
        if ty.namespaced && namespace.is_empty() {
            let why = "cannot use namespaced paramRef in policy binding that matches \
                       cluster-scoped resources";
            return Err(why.to_owned());
        }
        let store = request.context.store;
        let params: Vec<Value> = if text("name").is_empty() {
            let selector = LabelSelector::from_object(&self.param_ref["selector"])
                .map_err(|error| error.to_string())?;
            let (all, _) = store.snapshot(&ty.table, ty.namespaced.then_some(namespace));
            let selected = all.iter().filter(|stored| selector.matches(&stored.facts.labels));
            selected.map(|stored| ty.load(stored)).collect()
        } else {
            let stored = store.get(&ty.table, &Key::new(namespace, text("name")));
            stored.map(|stored| ty.load(&stored)).into_iter().collect()
        };
        if params.is_empty() && text("parameterNotFoundAction") != "Allow" {
            let why = "no params found for policy binding with `Deny` parameterNotFoundAction";
            return Err(why.to_owned());
        }
        Ok(params)
    }
}
