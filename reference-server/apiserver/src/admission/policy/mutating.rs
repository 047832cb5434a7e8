//! `MutatingAdmissionPolicy`.

use kubeproof_apimachinery::patch::{self, PatchError};
use kubeproof_apimachinery::schema::rules::expression::Scope;
use kubeproof_apimachinery::status::ApiError;
use serde_json::{Value, json};

use super::super::{Attributes, Decision, Plugin, decided};
use super::definition::Mutation;
use super::validating::BUDGET;
use super::{Invocation, Misconfigured, Policies, rejection};

/// Changes objects with expressions.
pub(in super::super) struct MutatingPolicies(Policies);

impl Default for MutatingPolicies {
    fn default() -> Self {
        Self(Policies::new(
            "mutatingadmissionpolicies.admissionregistration.k8s.io",
            "mutatingadmissionpolicybindings.admissionregistration.k8s.io",
        ))
    }
}

impl Plugin for MutatingPolicies {
    fn name(&self) -> &'static str {
        "MutatingAdmissionPolicy"
    }

    fn handles(&self, request: &Attributes<'_>) -> bool {
        self.0.handles(request)
    }

    fn mutates(&self) -> bool {
        true
    }

    fn mutate<'a>(&'a self, request: Attributes<'a>, object: &'a mut Value) -> Decision<'a> {
        decided(self.dispatch(&request, object))
    }
}

impl MutatingPolicies {
    fn dispatch(&self, request: &Attributes<'_>, object: &mut Value) -> Result<(), ApiError> {
        request.reinvocation.begin_plugin(self.name(), object);
        let (invocations, mistakes) = self.0.find(request, object);
        let mut errors: Vec<String> = mistakes.iter().map(Misconfigured::denied).collect();
        for invocation in &invocations {
            let mut failed = |why: &str| {
                if !invocation.policy.ignores_failures {
                    errors.push(invocation.denied(why));
                }
            };
            if let Some(mistake) = &invocation.policy.mistake {
                failed(mistake);
                continue;
            }
            let shown = invocation.found.shown(request, object);
            let roots = invocation.roots(request, &shown);
            match invocation.policy.conditions.hold(&roots, &[]) {
                Ok(true) => {}
                Ok(false) => continue,
                Err(why) => {
                    failed(&why);
                    continue;
                }
            }
            let id = invocation.id();
            if object.is_null() || !request.reinvocation.may_run(self.name(), &id) {
                continue;
            }
            let before = object.clone();
            for mutation in &invocation.policy.mutations {
                match invocation.mutate(mutation, request, object) {
                    Ok(new) => *object = new,
                    Err(why) => failed(&why),
                }
            }
            if *object != before {
                request.reinvocation.object_changed(self.name());
            }
            if invocation.policy.reinvokes {
                request.reinvocation.may_run_again(self.name(), &id);
            }
        }
        request.reinvocation.end_plugin(self.name(), object);
        let Some(first) = errors.first() else { return Ok(()) };
        let mut error = rejection(request, object, first, (403, "Invalid"));
        if let Some(status) = &mut error.given {
            status["message"] = first.as_str().into();
            let causes = errors.iter().map(|message| json!({ "message": message }));
            status["details"]["causes"] = causes.collect();
        }
        Err(error)
    }
}

impl Misconfigured {
    fn denied(&self) -> String {
        let (policy, why) = (&self.policy.name, &self.why);
        match &self.binding {
            Some(binding) => {
                format!("policy '{policy}' with binding '{}' denied request: {why}", binding.name)
            }
            None => format!("policy {policy:?} denied request: {why}"),
        }
    }
}

impl Invocation {
    fn denied(&self, why: &str) -> String {
        let (policy, binding) = (&self.policy.name, &self.binding.name);
        format!("policy '{policy}' with binding '{binding}' denied request: {why}")
    }

    /// Returns what distinguishes the invocation from those of other bindings and parameters.
    fn id(&self) -> String {
        let param = &self.param["metadata"];
        format!(
            "{}/{}/{}/{}",
            self.policy.name, self.binding.name, param["namespace"], param["name"]
        )
    }

    /// Returns the object after a mutation.
    fn mutate(
        &self,
        mutation: &Mutation,
        request: &Attributes<'_>,
        object: &Value,
    ) -> Result<Value, String> {
        let shown = self.found.shown(request, object);
        let roots = self.roots(request, &shown);
        let scope = Scope::new(&roots, &self.policy.variables);
        let mut budget = BUDGET;
        let (Mutation::Apply(expression) | Mutation::JsonPatch(expression)) = mutation;
        let result = expression.evaluate(&scope, &mut budget).map_err(|error| error.to_string())?;
        let changed = if let Mutation::JsonPatch(_) = mutation {
            match patch::json::apply(&shown, &result) {
                Ok(patched) => patched,
                // A failed test step means that the patch does not apply to this object.
                Err(PatchError::Unprocessable(_)) if has_test(&result) => return Ok(object.clone()),
                Err(error) => return Err(format!("JSON Patch: {error}")),
            }
        } else {
            self.apply(request, &shown, result)?
        };
        self.found.restore(request, changed)
    }

    fn apply(
        &self,
        request: &Attributes<'_>,
        object: &Value,
        mut config: Value,
    ) -> Result<Value, String> {
        if !config.is_object() {
            return Err("unsupported return type from ApplyConfiguration expression".to_owned());
        }
        for field in ["apiVersion", "kind"] {
            config[field] = object[field].clone();
        }
        let schema = &self.found.resource(request).schema;
        let unknown = schema.unknown_fields(&config);
        if let Some(field) = unknown.first() {
            return Err(format!(
                "error applying patch: failed to convert patch object to typed object: .{field}: \
                 field not declared in schema"
            ));
        }
        patch::apply::merge_unowned(object, &config, schema)
            .map_err(|why| format!("error applying patch: {why}"))
    }
}

fn has_test(patch: &Value) -> bool {
    patch.as_array().into_iter().flatten().any(|step| step["op"] == "test")
}
