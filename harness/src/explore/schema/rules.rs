//! Validation rules in CEL.

use cel::{Context, Program};
use serde_json::Value;

use crate::verdict::to_cel;

/// Evaluates the validation rules of a schema. Returns `None` if this program cannot decide.
pub(super) fn hold(node: &Value, value: &Value) -> Option<bool> {
    let rules = node["x-kubernetes-validations"].as_array().into_iter().flatten();
    for rule in rules {
        let rule = rule["rule"].as_str()?;
        if rule.contains("oldSelf") {
            return None;
        }
        let program = Program::compile(rule).ok()?;
        let mut context = Context::default();
        context.add_variable_from_value("self", to_cel(value));
        match program.execute(&context).ok()? {
            cel::Value::Bool(true) => {}
            cel::Value::Bool(false) => return Some(false),
            _ => return None,
        }
    }
    Some(true)
}
