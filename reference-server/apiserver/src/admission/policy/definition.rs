//! Policies, compiled.

use std::sync::Arc;

use kubeproof_apimachinery::object::Object as _;
use kubeproof_apimachinery::schema::rules::expression::{Expression, Names, Wanted};
use kubeproof_apimachinery::serializer::json;
use serde_json::Value;

use super::super::conditions::Conditions;
use super::super::rules::Constraints;
use crate::registry::builtin::expressions::{names_of_message, names_of_policy};

/// A policy of either kind.
pub(super) struct Policy {
    pub(super) name: String,
    pub(super) constraints: Constraints,
    pub(super) conditions: Conditions,
    pub(super) variables: Vec<(String, Expression)>,
    pub(super) param_kind: Option<ParamKind>,
    pub(super) ignores_failures: bool,
    /// The policy runs again if a later one changed the object.
    pub(super) reinvokes: bool,
    pub(super) validations: Vec<Validation>,
    pub(super) annotations: Vec<Annotation>,
    pub(super) mutations: Vec<Mutation>,
    /// The first mistake in an expression. The policy then treats each request as a failure.
    pub(super) mistake: Option<String>,
}

/// The type of the parameters of a policy.
#[derive(Clone, Debug)]
pub(super) struct ParamKind {
    pub(super) api_version: String,
    pub(super) kind: String,
}

pub(super) struct Validation {
    pub(super) expression: Expression,
    pub(super) message: String,
    pub(super) message_expression: Option<Expression>,
    pub(super) code: (u16, &'static str),
}

pub(super) struct Annotation {
    pub(super) key: String,
    pub(super) value: Expression,
}

/// A change of the object.
pub(super) enum Mutation {
    /// The expression returns the fields to set.
    Apply(Expression),
    /// The expression returns the steps of a patch.
    JsonPatch(Expression),
}

/// Parses a policy.
pub(super) fn parse(text: &[u8]) -> Option<Arc<Policy>> {
    let policy = json::parse(text).ok()?;
    let spec = &policy["spec"];
    let param_kind = spec["paramKind"].as_object().map(|_| ParamKind {
        api_version: text_of(&spec["paramKind"], "apiVersion"),
        kind: text_of(&spec["paramKind"], "kind"),
    });
    let names = names_of_policy(spec);
    let ignores_failures = spec["failurePolicy"] == "Ignore";
    let conditions = Conditions::of_policy(spec, &names, ignores_failures);
    let mut compiler = Compiler { names, variables: Vec::new(), mistake: None };
    compiler.variables(&spec["variables"]);
    let validations = list(&spec["validations"]).filter_map(|it| compiler.validation(it)).collect();
    let annotations =
        list(&spec["auditAnnotations"]).filter_map(|it| compiler.annotation(it)).collect();
    let mutations = list(&spec["mutations"]).filter_map(|it| compiler.mutation(it)).collect();
    Some(Arc::new(Policy {
        name: policy.meta("name").to_owned(),
        constraints: Constraints::of_policy(&spec["matchConstraints"]),
        conditions,
        variables: compiler.variables,
        param_kind,
        ignores_failures,
        reinvokes: spec["reinvocationPolicy"] == "IfNeeded",
        validations,
        annotations,
        mutations,
        mistake: compiler.mistake,
    }))
}

struct Compiler {
    names: Names,
    variables: Vec<(String, Expression)>,
    mistake: Option<String>,
}

impl Compiler {
    fn compile(&mut self, text: &str, wanted: Wanted) -> Option<Expression> {
        let compiled = Expression::compile(text, &self.names, wanted);
        self.remembered(compiled)
    }

    fn message(&mut self, text: &str) -> Option<Expression> {
        let compiled = Expression::compile(text, &names_of_message(&self.names), Wanted::Text);
        self.remembered(compiled)
    }

    /// Keeps the first mistake.
    fn remembered(&mut self, compiled: Result<Expression, String>) -> Option<Expression> {
        compiled.map_err(|why| self.mistake.get_or_insert(why).clone()).ok()
    }

    /// Compiles the variables. Each may use those before it.
    fn variables(&mut self, variables: &Value) {
        for variable in list(variables) {
            let name = text_of(variable, "name");
            if let Some(value) = self.compile(&text_of(variable, "expression"), Wanted::Any) {
                self.variables.push((name.clone(), value));
            }
            self.names.variables.push(name);
        }
    }

    fn validation(&mut self, validation: &Value) -> Option<Validation> {
        let message = text_of(validation, "messageExpression");
        let message_expression =
            if message.is_empty() { None } else { Some(self.message(&message)?) };
        Some(Validation {
            expression: self.compile(&text_of(validation, "expression"), Wanted::Bool)?,
            message: text_of(validation, "message").trim().to_owned(),
            message_expression,
            code: match validation["reason"].as_str() {
                Some("Forbidden") => (403, "Forbidden"),
                Some("Unauthorized") => (401, "Unauthorized"),
                Some("RequestEntityTooLarge") => (413, "RequestEntityTooLarge"),
                _ => super::validating::INVALID,
            },
        })
    }

    fn annotation(&mut self, annotation: &Value) -> Option<Annotation> {
        let text = text_of(annotation, "valueExpression");
        let value = self.compile(&text, Wanted::OptionalText)?;
        Some(Annotation { key: text_of(annotation, "key"), value })
    }

    fn mutation(&mut self, mutation: &Value) -> Option<Mutation> {
        let is_patch = mutation["patchType"] == "JSONPatch";
        let field = if is_patch { "jsonPatch" } else { "applyConfiguration" };
        let expression = self.compile(&text_of(&mutation[field], "expression"), Wanted::Any)?;
        Some(if is_patch { Mutation::JsonPatch(expression) } else { Mutation::Apply(expression) })
    }
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text_of(value: &Value, field: &str) -> String {
    value[field].as_str().unwrap_or_default().to_owned()
}
