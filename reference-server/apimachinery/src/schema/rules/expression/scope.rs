//! The values of the variables in expressions of admission.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use cel::common::value::{CowVal, Val};
use cel::context::VariableResolver;
use cel::{Context, ExecutionError, IdedExpr, Value as Cel};
use serde_json::Value;

use super::super::authorizer::{self, Authorize};
use super::super::errors::evaluation_error;
use super::super::{library, value};
use super::{AUTHORIZER, Expression, REQUEST_RESOURCE, VARIABLES};
use crate::resource::ResourceInfo;

/// The values of the variables in expressions. The variables of a policy are evaluated when an
/// expression reads them, and only once.
#[derive(Debug)]
pub struct Scope<'a> {
    pub(super) lazy: Lazy<'a>,
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
pub(super) struct Lazy<'a> {
    roots: Vec<(&'static str, Cel)>,
    variables: &'a [(String, Expression)],
    known: Mutex<HashMap<String, Cel>>,
    /// The error of a variable. The library only reports that the variable is missing.
    error: Mutex<Option<String>>,
}

impl Lazy<'_> {
    pub(super) fn run(&self, program: &IdedExpr) -> Result<Cel, ExecutionError> {
        let mut context = Context::with_env(library::env());
        for (name, value) in &self.roots {
            context.add_variable_from_value(*name, value.clone());
        }
        context.set_variable_resolver(self);
        Cel::resolve(program, &context)
    }

    pub(super) fn reset(&self) {
        *self.error.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    pub(super) fn error(&self) -> Option<String> {
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
