//! Expressions of admission: policies, match conditions of webhooks, and mutations.
//!
//! Their variables have no schema, as in kube-apiserver, where `object` is dynamic. Only the names
//! of `request` and of the own variables are known.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use cel::common::ast::{
    EntryExpr, Expr, IdedEntryExpr, IdedExpr, LiteralValue, MapEntryExpr, MapExpr, SelectExpr,
};
use cel::common::value::{CowVal, Val};
use cel::context::VariableResolver;
use cel::{Context, ExecutionError, Value as Cel};
use serde_json::Value;

use super::super::Schema;
use super::authorizer::{self, Authorize};
use super::check::check_dynamic;
use super::counted::counted;
use super::errors::evaluation_error;
use super::syntax;
use super::{library, meter, unreadable, value};
use crate::field::Path;
use crate::resource::ResourceInfo;

/// The variable that checks permissions.
pub const AUTHORIZER: &str = "authorizer";
/// The check of the resource of the request.
pub const REQUEST_RESOURCE: &str = "authorizer.requestResource";
/// The prefix of the variables that a policy declares.
const VARIABLES: &str = "variables";

/// The type of the result of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// A condition.
    Bool,
    /// A message.
    Text,
    /// A text or null.
    OptionalText,
    /// The configuration of a mutation: `Object{}` or a value of any type.
    Object,
    /// The patches of a mutation: a list of `JSONPatch{}` or a value of any type.
    Patches,
    /// Any value, such as a variable.
    Any,
}

/// The names that an expression may use.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// The variables, such as `object`.
    pub roots: Vec<&'static str>,
    /// The fields of `variables`.
    pub variables: Vec<String>,
    /// The schemas of variables, for a type check. The others have any type.
    pub types: Vec<(&'static str, Arc<Schema>)>,
}

/// A compiled expression.
#[derive(Clone, Debug)]
pub struct Expression {
    text: String,
    program: Arc<IdedExpr>,
}

/// Why an evaluation has no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EvaluationError {
    /// The expression failed, for example for a missing field.
    #[error("expression '{expression}' resulted in error: {why}")]
    Failed {
        /// The text of the expression.
        expression: String,
        /// The error of the evaluation.
        why: String,
    },
    /// The evaluation exceeded the cost limit of one expression.
    #[error("operation cancelled: actual cost limit exceeded")]
    CallLimit,
    /// The evaluations exceeded the cost limit of a policy.
    #[error(
        "validation failed due to running out of cost budget, no further validation rules will \
             be run"
    )]
    Budget,
}

impl Expression {
    /// Compiles an expression. The error is a message for the user.
    pub fn compile(text: &str, names: &Names, wanted: Wanted) -> Result<Self, String> {
        if let Some(error) = unreadable(text, Path::Root) {
            return Err(error.message);
        }
        let compiled = library::env().compile(text).map_err(|error| {
            format!("compilation failed: {}", error.to_string().replace('\n', "; "))
        })?;
        let expression = simplified(compiled.expression());
        let ty = check_dynamic(&expression, names)
            .map_err(|error| format!("compilation failed: {error}"))?;
        let fits = match wanted {
            Wanted::Any => true,
            _ if ty == "dyn" => true,
            Wanted::Bool => ty == "bool",
            Wanted::Text => ty == "string",
            Wanted::OptionalText => matches!(ty.as_str(), "string" | "null"),
            // A literal of a structure is a map here.
            Wanted::Object => ty.starts_with("map("),
            Wanted::Patches => ty.starts_with("list("),
        };
        if !fits {
            let expected = match wanted {
                Wanted::Bool => "bool".to_owned(),
                Wanted::Text => "string".to_owned(),
                Wanted::OptionalText => "string or null_type".to_owned(),
                Wanted::Object => format!("Object but got {ty}"),
                Wanted::Patches => format!("list(JSONPatch) but got {ty}"),
                Wanted::Any => "any".to_owned(),
            };
            return Err(format!("must evaluate to {expected}"));
        }
        Ok(Self { text: text.to_owned(), program: Arc::new(counted(&expression)) })
    }

    /// Returns the text of the expression.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Evaluates the expression, and subtracts its cost from `budget`.
    pub fn evaluate(&self, scope: &Scope<'_>, budget: &mut u64) -> Result<Value, EvaluationError> {
        let failed = |why: String| EvaluationError::Failed { expression: self.text.clone(), why };
        scope.lazy.reset();
        let (result, cost) = meter::measure(|| scope.lazy.run(&self.program));
        match budget.checked_sub(cost) {
            Some(rest) => *budget = rest,
            None => return Err(EvaluationError::Budget),
        }
        let result = result.ok_or(EvaluationError::CallLimit)?;
        if let Some(why) = scope.lazy.error() {
            return Err(failed(why));
        }
        let result = result.map_err(|error| failed(evaluation_error(&error)))?;
        value::to_json(&result).map_err(failed)
    }
}

/// The values of the variables in expressions. The variables of a policy are evaluated when an
/// expression reads them, and only once.
#[derive(Debug)]
pub struct Scope<'a> {
    lazy: Lazy<'a>,
}

impl<'a> Scope<'a> {
    /// Creates a scope with these values, and with the variables of a policy in their order.
    pub fn new(roots: &Roots, variables: &'a [(String, Expression)]) -> Self {
        let roots = roots.0.clone();
        Self { lazy: Lazy { roots, variables, known: Mutex::default(), error: Mutex::default() } }
    }
}

/// The values of the variables that all policies share.
#[derive(Clone, Debug, Default)]
pub struct Roots(Vec<(&'static str, Cel)>);

impl Roots {
    /// Sets a variable.
    pub fn set(&mut self, name: &'static str, value: &Value) {
        self.set_value(name, value::untyped(value));
    }

    /// Sets the variable that checks permissions. `request` is the resource of the request.
    pub fn set_authorizer(&mut self, decide: Arc<dyn Authorize>, request: ResourceInfo) {
        let (authorizer, check) = authorizer::values(decide, request);
        self.set_value(AUTHORIZER, authorizer);
        self.set_value(REQUEST_RESOURCE, check);
    }

    fn set_value(&mut self, name: &'static str, value: Cel) {
        self.0.retain(|(known, _)| *known != name);
        self.0.push((name, value));
    }
}

#[derive(Debug)]
struct Lazy<'a> {
    roots: Vec<(&'static str, Cel)>,
    variables: &'a [(String, Expression)],
    known: Mutex<HashMap<String, Cel>>,
    /// The error of a variable. The library only reports that the variable is missing.
    error: Mutex<Option<String>>,
}

impl Lazy<'_> {
    fn run(&self, program: &IdedExpr) -> Result<Cel, ExecutionError> {
        let mut context = Context::with_env(library::env());
        for (name, value) in &self.roots {
            context.add_variable_from_value(*name, value.clone());
        }
        context.set_variable_resolver(self);
        Cel::resolve(program, &context)
    }

    fn reset(&self) {
        *self.error.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    fn error(&self) -> Option<String> {
        self.error.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn find(&self, name: &str) -> Option<Cel> {
        let name = name.strip_prefix(VARIABLES)?.strip_prefix('.')?;
        let (_, expression) = self.variables.iter().find(|(known, _)| known == name)?;
        let known = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(value) = known().get(name) {
            return Some(value.clone());
        }
        match self.run(&expression.program) {
            Ok(value) => {
                known().insert(name.to_owned(), value.clone());
                Some(value)
            }
            Err(error) => {
                let mut first = self.error.lock().unwrap_or_else(PoisonError::into_inner);
                first.get_or_insert_with(|| {
                    let why = evaluation_error(&error);
                    format!("composited variable {name:?} fails to evaluate: {why}")
                });
                None
            }
        }
    }
}

impl VariableResolver for Lazy<'_> {
    fn resolve<'b>(&'b self, variable: &str) -> Option<CowVal<'b, 'b>> {
        let value: Box<dyn Val> = self.find(variable)?.try_into().ok()?;
        Some(CowVal::Owned(value))
    }
}

/// Replaces literals such as `Object.spec{replicas: 1}` and `JSONPatch{op: "add"}` by maps, and
/// `authorizer.requestResource` by a variable of this name.
fn simplified(expression: &IdedExpr) -> IdedExpr {
    let boxed = |part: &IdedExpr| Box::new(simplified(part));
    let all = |parts: &[IdedExpr]| parts.iter().map(simplified).collect();
    let expr = match &expression.expr {
        Expr::Struct(literal) if is_object(&literal.type_name) => {
            Expr::Map(MapExpr { entries: literal.entries.iter().map(entry).collect() })
        }
        Expr::Map(map) => Expr::Map(MapExpr { entries: map.entries.iter().map(entry).collect() }),
        Expr::List(list) => {
            let mut list = list.clone();
            list.elements = all(&list.elements);
            Expr::List(list)
        }
        Expr::Select(select) if is_request_resource(select) => {
            Expr::Ident(REQUEST_RESOURCE.to_owned())
        }
        Expr::Select(select) => {
            let mut select = select.clone();
            select.operand = boxed(&select.operand);
            Expr::Select(select)
        }
        Expr::Call(call) => {
            let mut call = call.clone();
            call.target = call.target.as_deref().map(boxed);
            call.args = all(&call.args);
            Expr::Call(call)
        }
        Expr::Comprehension(loops) => {
            let mut loops = loops.clone();
            loops.iter_range = simplified(&loops.iter_range);
            loops.accu_init = simplified(&loops.accu_init);
            loops.loop_cond = simplified(&loops.loop_cond);
            loops.loop_step = simplified(&loops.loop_step);
            loops.result = simplified(&loops.result);
            Expr::Comprehension(loops)
        }
        _ => return expression.clone(),
    };
    IdedExpr { id: expression.id, expr }
}

fn is_request_resource(select: &SelectExpr) -> bool {
    matches!(&select.operand.expr, Expr::Ident(name) if name == AUTHORIZER)
        && select.field == "requestResource"
}

fn is_object(name: &str) -> bool {
    matches!(name, "Object" | "JSONPatch") || name.starts_with("Object.")
}

fn entry(entry: &IdedEntryExpr) -> IdedEntryExpr {
    let expr = match &entry.expr {
        EntryExpr::StructField(field) => {
            let name = value::unescaped(&field.field).unwrap_or_else(|| field.field.clone());
            let key = Expr::Literal(LiteralValue::String(name.into()));
            EntryExpr::MapEntry(MapEntryExpr {
                key: IdedExpr { id: entry.id, expr: key },
                // Fields have different types, unlike the values of a map.
                value: syntax::call("dyn", vec![simplified(&field.value)]),
                optional: field.optional,
            })
        }
        EntryExpr::MapEntry(entry) => EntryExpr::MapEntry(MapEntryExpr {
            key: simplified(&entry.key),
            value: simplified(&entry.value),
            optional: entry.optional,
        }),
    };
    IdedEntryExpr { id: entry.id, expr }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::super::authorizer::{Decision, Subject, Target};
    use super::*;

    fn names() -> Names {
        Names {
            roots: vec![
                "object",
                "oldObject",
                "request",
                "params",
                "namespaceObject",
                AUTHORIZER,
                REQUEST_RESOURCE,
            ],
            variables: vec!["size".to_owned(), "broken".to_owned()],
            types: Vec::new(),
        }
    }

    /// Permits `get` on what it repeats as the reason.
    #[derive(Debug)]
    struct Echo;

    impl Authorize for Echo {
        fn decide(&self, subject: &Subject, verb: &str, target: &Target) -> Decision {
            let subject = match subject {
                Subject::Requester => String::new(),
                Subject::ServiceAccount { namespace, name } => format!("{namespace}/{name} "),
            };
            let target = match target {
                Target::Path(path) => path.clone(),
                Target::Resource(info) => {
                    let ResourceInfo { group, resource, subresource, namespace, name, .. } = info;
                    format!("{group}|{resource}|{subresource}|{namespace}|{name}")
                }
            };
            Decision { allowed: verb == "get", reason: format!("{subject}{target}") }
        }
    }

    fn evaluate(text: &str) -> Result<Value, String> {
        let compile = |text| Expression::compile(text, &names(), Wanted::Any);
        let variables = [
            ("size".to_owned(), compile("object.spec.replicas * 2")?),
            ("broken".to_owned(), compile("object.missing.field")?),
        ];
        let mut roots = Roots::default();
        let object = json!({
            "metadata": {"name": "a", "namespace": "n", "labels": {"x-y": "z"}},
            "spec": {"replicas": 3, "ratio": 0.5},
        });
        roots.set("object", &object);
        roots.set("oldObject", &Value::Null);
        roots.set("request", &json!({"operation": "CREATE", "namespace": "n"}));
        let resource = ResourceInfo { resource: "pods".to_owned(), ..ResourceInfo::default() };
        roots.set_authorizer(Arc::new(Echo), resource);
        let scope = Scope::new(&roots, &variables);
        compile(text)?.evaluate(&scope, &mut 10_000_000).map_err(|error| error.to_string())
    }

    #[rstest]
    #[case("object.metadata.namespace == request.namespace", json!(true))]
    #[case("object.metadata.labels['x-y']", json!("z"))]
    #[case("has(object.metadata.annotations)", json!(false))]
    #[case("oldObject == null", json!(true))]
    #[case("variables.size > 5 && variables.size < 7", json!(true))]
    #[case("has(object.missing) ? variables.broken : variables.size", json!(6))]
    #[case("[1, 2].all(x, x < variables.size)", json!(true))]
    #[case("object.spec.ratio", json!(0.5))]
    #[case(
        "Object{metadata: Object.metadata{labels: {'a': 'b'}}}",
        json!({"metadata": {"labels": {"a": "b"}}})
    )]
    #[case(
        "[JSONPatch{op: 'add', path: '/metadata/labels/' + jsonpatch.escapeKey('a/b~c'), \
         value: 1}]",
        json!([{"op": "add", "path": "/metadata/labels/a~1b~0c", "value": 1}])
    )]
    #[case("object.?spec.?other.orValue('none')", json!("none"))]
    #[case("authorizer.path('/healthz').check('get').reason()", json!("/healthz"))]
    #[case(
        "authorizer.group('apps').resource('deployments').subresource('scale').namespace('n')
         .name('a').check('get').reason()",
        json!("apps|deployments|scale|n|a")
    )]
    #[case("authorizer.group('').resource('pods').check('list').allowed()", json!(false))]
    #[case("authorizer.requestResource.check('get').reason()", json!("|pods|||"))]
    #[case(
        "authorizer.serviceAccount('n', 'robot').path('/x').check('get').reason()",
        json!("n/robot /x")
    )]
    fn expressions_about_requests(#[case] text: &str, #[case] expected: Value) {
        assert_eq!(evaluate(text), Ok(expected));
    }

    #[rstest]
    #[case("unknown == 1", "undeclared reference to 'unknown'")]
    #[case("variables.other == 1", "undefined field 'other'")]
    #[case("object.a.b == 1", "no such key: a")]
    #[case("variables.broken == 1", "composited variable \"broken\" fails to evaluate")]
    #[case("object.", "compilation failed")]
    #[case("authorizer.group('').resource(' ')", "resource must not be empty")]
    #[case("authorizer.serviceAccount('N', 'a')", "Invalid service account namespace")]
    #[case("authorizer.resource('pods')", "found no matching overload for 'resource'")]
    #[case(
        "[1, 2, 3].all(i, authorizer.path('/x').check('get').allowed())",
        "actual cost limit exceeded"
    )]
    fn mistakes_have_a_reason(#[case] text: &str, #[case] expected: &str) {
        let error = evaluate(text).expect_err("an error");
        assert!(error.contains(expected), "{error}");
    }

    #[test]
    fn an_expression_has_the_wanted_type() {
        let compile = |text, wanted| Expression::compile(text, &names(), wanted).map(drop);
        assert_eq!(compile("object.a", Wanted::Bool), Ok(()));
        assert_eq!(compile("1 + 1", Wanted::Bool), Err("must evaluate to bool".to_owned()));
        assert_eq!(compile("'a' + object.b", Wanted::Text), Ok(()));
        let configuration = "Object{metadata: Object.metadata{labels: {'a': 'b'}}}";
        assert_eq!(compile(configuration, Wanted::Object), Ok(()));
        let why = "must evaluate to Object but got int".to_owned();
        assert_eq!(compile("1", Wanted::Object), Err(why));
        let patches = "[JSONPatch{op: 'add', path: '/a', value: 1}]";
        assert_eq!(compile(patches, Wanted::Patches), Ok(()));
        assert!(compile(configuration, Wanted::Patches).is_err());
    }
}
